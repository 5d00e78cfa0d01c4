package browser_test

import (
	"bufio"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// root is the folder of the module that has the programs.
const root = "../../../.."

// build makes programs of the main module.
func build(t *testing.T, packages ...string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	c := exec.Command("go", append([]string{"build", "-o", dir + "/"}, packages...)...)
	c.Dir = root
	c.Env = append(os.Environ(), "GOWORK=") // the workspace of the programs, which this module is not in
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", c, err, out)
	}
	return dir
}

// start runs a program until the test ends, and returns the first line that it has printed.
func start(t *testing.T, program string, args ...string) (line string, c *exec.Cmd) {
	t.Helper()
	c = exec.Command(program, args...)
	c.Stderr = os.Stderr
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	t.Cleanup(func() {
		c.Process.Signal(os.Interrupt)
		select {
		case <-ended:
		case <-time.After(patience):
			c.Process.Kill()
			t.Errorf("%s does not end", program)
		}
	})
	lines := bufio.NewScanner(out)
	if !lines.Scan() {
		t.Fatalf("%s has printed nothing: %v", program, lines.Err())
	}
	go func() {
		for lines.Scan() {
		}
		c.Wait()
		close(ended)
	}()
	return lines.Text(), c
}

var panels = []string{"overview", "processes", "memory", "waits", "queues", "locks", "blocks", "names"}

func TestPage_OfARunThatJams(t *testing.T) {
	p := open(t)
	dir := build(t, "./cmd/shoal-watch", "./cmd/internal/watch/testdata/jam")
	_, jam := start(t, filepath.Join(dir, "jam"))
	at, _ := start(t, filepath.Join(dir, "shoal-watch"), "-every", "200ms")
	u, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	p.run(chromedp.EmulateViewport(1280, 900), chromedp.Navigate(at))

	// Other programs may run on this machine, so the page is told which one is meant.
	option := fmt.Sprintf("[...document.querySelectorAll('#program option')].find(o => o.textContent.includes('(%d)'))", jam.Process.Pid)
	p.holds(option)
	p.value(fmt.Sprintf("(() => { const s = document.querySelector('#program'); s.value = %s.value; s.dispatchEvent(new Event('change')) })()", option))
	p.holds("document.querySelector('#status').dataset.state === 'live'")
	row := func(panel, of string) string {
		return fmt.Sprintf("[...document.querySelectorAll('#%s tbody tr')].find(r => r.innerText.includes('%s'))", panel, of)
	}
	cell := func(panel, of string, n int) string {
		return fmt.Sprintf("%s?.children[%d].querySelector('.value').textContent", row(panel, of), n)
	}
	p.step("processes", func() {
		for _, name := range []string{"fork 0", "fork 1", "produce 0", "produce 1", "train 0", "forget 0"} {
			p.holds(row("processes", name))
			p.holds(cell("processes", name, 2) + " === 'worker' && " + cell("processes", name, 3) + " === '" + name[len(name)-1:] + "'")
		}
		p.holds(cell("processes", "jam", 2) + " === 'root' && " + cell("processes", "jam", 4) + " === 'runs'")
		p.holds(cell("processes", "fork 0", 4) + " === 'deadlock?'")
	})
	p.step("numbers move", func() {
		for range 3 {
			p.holds(cell("processes", "forget 0", 5) + " !== '" + p.value(cell("processes", "forget 0", 5)) + "'")
		}
		p.holds("Number(" + cell("queues", "batches", 4) + ".replace(',', '')) > 0")
		line := "[...document.querySelectorAll('#memory .legend button')].find(b => b.innerText.includes('forget 0'))?.querySelector('b').textContent"
		p.holds(line + " !== '" + p.value(line) + "'")
		p.holds("document.querySelector('#memory canvas').width > 0")
	})
	p.step("queues and locks", func() {
		p.holds(row("queues", "batches") + ".innerText.includes('produce')") // which wait for room
		p.holds(cell("locks", "left", 2) + " === 'fork 0' && " + cell("locks", "left", 3) + " === 'fork 1'")
		p.holds(cell("locks", "right", 2) + " === 'fork 1' && " + cell("locks", "right", 3) + " === 'fork 0'")
	})
	p.step("deadlock", func() {
		p.holds("document.querySelector('#notice').textContent.startsWith('Suspected deadlock: fork ')")
		for _, part := range []string{"fork 0 waits for the mutex “right”, which fork 1 has", "fork 1 waits for the mutex “left”, which fork 0 has"} {
			p.holds("document.querySelector('figure[data-kind=dead] figcaption').textContent.includes('" + part + "')")
		}
		p.holds("document.querySelectorAll('figure[data-kind=dead] .edge.dead').length === 2")
		p.holds("document.querySelectorAll('figure[data-kind=dead] .node.dead').length === 2")
		p.holds("document.querySelector('#nav a[href=\"#waits\"]').hasAttribute('data-alarm')")
	})
	p.step("blocks and names", func() {
		p.holds("document.querySelectorAll('#blocks .share dl > div').length > 6")
		p.holds("document.querySelector('#blocks .note').textContent.includes('SHOAL_DEBUG=lifetime')") // how to see more
		p.holds(row("blocks", "MiB") + ".innerText.includes('forget 0')")
		p.holds("document.querySelector('#names').innerText.includes('batches')")
	})
	p.step("keys", func() {
		p.press("3")
		p.holds("document.activeElement.id === 'memory'")
		p.press("?")
		p.holds("document.querySelector('#help').open")
		p.press(escape)
		p.holds("!document.querySelector('#help').open")
		p.press("t")
		p.press("t")
		p.holds("document.documentElement.dataset.theme === 'dark' && getComputedStyle(document.documentElement).colorScheme === 'dark'")
		p.press("t")
		p.holds("document.documentElement.dataset.theme === 'auto'")
		p.press("p")
		p.holds("document.querySelector('#status').dataset.state === 'paused'")
		p.press("p")
		p.holds("document.querySelector('#status').dataset.state === 'live'")
	})
	p.step("pictures", func() {
		p.value("document.activeElement.blur()")
		p.holds("parseFloat(" + cell("processes", "forget 0", 5) + ") >= 24") // MiB: some seconds, to be drawn
		for _, scheme := range []string{"light", "dark"} {
			for _, width := range []int64{1280, 400} {
				p.show(width, 1180, scheme)
				p.holds("scrollTo(0, 0) || scrollY === 0")
				p.picture(fmt.Sprintf("page-%s-%d", scheme, width), "")
				p.press("p") // so that nothing moves while the picture of a part is taken
				for _, panel := range panels {
					p.picture(fmt.Sprintf("%s-%s-%d", panel, scheme, width), "#"+panel)
				}
				p.press("p")
			}
		}
		p.show(1280, 900, "light")
	})
	p.step("refused", func() {
		q := open(p.T)
		q.run(chromedp.Navigate("http://" + u.Host + "/"))
		q.holds("document.body.innerText.includes('Copy the whole URL')")
		q.picture("refused", "")
	})
	p.step("its end", func() {
		jam.Process.Signal(os.Interrupt)
		p.holds("document.querySelector('#notice').textContent.startsWith('This program ended at ')")
		p.holds(option + ".textContent.endsWith(', ended')")
		p.holds(row("processes", "jam")) // the last reading stays; its workers may have ended before
	})
	p.quiet()
	if strings.Contains(p.value("document.cookie"), "=") {
		t.Error("the page has cookies")
	}
}
