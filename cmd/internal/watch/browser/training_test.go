package browser_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
)

func TestPage_OfATraining(t *testing.T) {
	p := open(t)
	dir := build(t, "./cmd/shoal", "./cmd/shoal-watch")
	at, _ := start(t, filepath.Join(dir, "shoal-watch"), "-every", "200ms")
	_, run := start(t, filepath.Join(dir, "shoal"), "hogwild", "--epochs", "100", "--log-interval", "2")
	p.run(chromedp.EmulateViewport(1280, 900), chromedp.Navigate(at))
	option := fmt.Sprintf("[...document.querySelectorAll('#program option')].find(o => o.textContent.includes('(%d)'))", run.Process.Pid)
	p.holds(option)
	p.value(fmt.Sprintf("(() => { const s = document.querySelector('#program'); s.value = %s.value; s.dispatchEvent(new Event('change')) })()", option))
	now := func(name string) string {
		return fmt.Sprintf("document.querySelector('figure[data-name=\"%s\"] b')?.textContent", name)
	}
	p.step("curves move", func() {
		for _, name := range []string{"training loss", "training accuracy"} {
			p.holds("Number(" + now(name) + ") > 0")
			for range 3 {
				p.holds(now(name) + " !== '" + p.value(now(name)) + "'")
			}
			p.holds(fmt.Sprintf("document.querySelector('figure[data-name=\"%s\"] canvas').width > 0", name))
		}
		p.holds("Number(" + now("training loss") + ") < 1 && Number(" + now("training accuracy") + ") > 0.7") // it learns
		p.holds("document.querySelector('figure[data-name=\"training loss\"] .plot').getAttribute('aria-label').includes('over time; now ')")
	})
	const most = "document.querySelector('figure[data-name=\"training loss\"] .plot')?.getAttribute('aria-label').split(' to ')[1]"
	p.step("history", func() { // a page that is opened later has what came before
		q := open(t)
		q.run(chromedp.Navigate(at))
		q.holds(option)
		q.value(fmt.Sprintf("(() => { const s = document.querySelector('#program'); s.value = %s.value; s.dispatchEvent(new Event('change')) })()", option))
		q.holds(most + " === '" + p.value(most) + "'")
	})
	p.step("pictures", func() {
		for _, scheme := range []string{"light", "dark"} {
			for _, width := range []int64{1280, 400} {
				p.show(width, 1180, scheme)
				p.picture(fmt.Sprintf("curves-%s-%d", scheme, width), "#curves")
			}
		}
		p.show(1280, 900, "light")
	})
	p.quiet()
}
