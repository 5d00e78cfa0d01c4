package browser_test

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/chromedp/chromedp"
)

func TestPage_OfALoader(t *testing.T) {
	p := open(t)
	dir := build(t, "./cmd/shoal-watch", "./cmd/internal/watch/testdata/feed")
	t.Setenv("SHOAL_DEBUG", "lifetime") // so that it tells what its blocks are
	_, feed := start(t, filepath.Join(dir, "feed"))
	at, _ := start(t, filepath.Join(dir, "shoal-watch"), "-every", "200ms")
	p.run(chromedp.EmulateViewport(1280, 900), chromedp.Navigate(at))
	option := fmt.Sprintf("[...document.querySelectorAll('#program option')].find(o => o.textContent.includes('(%d)'))", feed.Process.Pid)
	p.holds(option)
	p.value(fmt.Sprintf("(() => { const s = document.querySelector('#program'); s.value = %s.value; s.dispatchEvent(new Event('change')) })()", option))
	const lanes = "document.querySelectorAll('#loaders .lanes:not(.ways) .lane')"
	p.step("lanes", func() {
		p.holds(lanes + ".length === 4") // the trainer and three workers
		for i := range 4 {
			says := fmt.Sprintf("%s[%d].querySelector('svg').getAttribute('aria-label')", lanes, i)
			p.holds(says + ".includes('batch')")
			p.holds(says + " !== '" + p.value(says) + "'") // it moves
			p.holds(fmt.Sprintf("%s[%d].querySelector('.working').getAttribute('d').length > 100", lanes, i))
		}
	})
	p.step("verdict", func() {
		p.holds("document.querySelector('#loaders .verdict').textContent.startsWith('The trainer starves: it waited for batches ')")
		p.holds("document.querySelector('#loaders .verdict').dataset.kind === 'warn'")
		p.holds("document.querySelector('#nav a[href=\"#loaders\"]').hidden === false")
	})
	p.step("ways of batches", func() {
		p.holds("document.querySelectorAll('#loaders .ways .lane').length === 16")
		first := "document.querySelector('#loaders .ways .who').textContent"
		p.holds(first + ".startsWith('batch ')")
		p.holds(first + " !== '" + p.value(first) + "'")
		p.holds("document.querySelector('#loaders .where').textContent.includes('being loaded')")
		p.holds("[...document.querySelectorAll('#loaders .ways .load')].every(r => Number(r.getAttribute('width')) > 0)")
	})
	p.step("dtypes and shapes", func() {
		p.holds("[...document.querySelectorAll('#blocks .share dt')].some(d => d.textContent === 'uint8')")
		p.holds("[...document.querySelectorAll('#blocks .share dt')].some(d => d.textContent === 'uint8 [16 3 32 32]')")
		p.holds("[...document.querySelectorAll('#blocks tbody td')].some(d => d.textContent === 'uint8 [16 3 32 32]')")
		p.holds("[...document.querySelectorAll('#blocks .sites summary')].some(s => s.textContent.includes('main.run, main.go:'))")
		p.holds("document.querySelector('#blocks').textContent.includes('have SHOAL_DEBUG=lifetime, here 4.')") // with the workers
	})
	p.step("pictures", func() {
		p.holds("document.querySelector('#loaders .verdict').textContent.includes('of the last 10 s')")
		for _, scheme := range []string{"light", "dark"} {
			for _, width := range []int64{1280, 400} {
				p.show(width, 1180, scheme)
				p.press("p")
				p.picture(fmt.Sprintf("loaders-%s-%d", scheme, width), "#loaders")
				p.picture(fmt.Sprintf("shapes-%s-%d", scheme, width), "#blocks")
				p.press("p")
			}
		}
		p.show(1280, 900, "light")
	})
	p.step("a worker is killed", func() {
		title := p.value(lanes + "[1].querySelector('.who').title")
		_, number, _ := strings.Cut(strings.TrimSuffix(title, ")"), "(")
		pid, err := strconv.Atoi(number)
		if err != nil {
			t.Fatalf("worker 0 is %q", title)
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		p.holds(lanes + "[1].textContent.includes('1 worker killed here before')")
		p.picture("loaders-killed", "#loaders")
	})
	p.quiet()
}
