// Package browser_test opens the page of shoal watch in a headless Chromium.
package browser_test

import (
	"bytes"
	"context"
	"fmt"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

const patience = time.Minute

// A page is a tab of the browser, and what it complained of.
type page struct {
	*testing.T
	ctx     context.Context
	started bool

	mu         sync.Mutex
	complaints []string
}

// open starts a browser, or skips the test where there is none.
func open(t *testing.T) *page {
	t.Helper()
	browser := os.Getenv("SHOAL_CHROMIUM")
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil && browser == "" {
			browser = path
		}
	}
	if browser == "" {
		t.Skip("no Chromium here: install the package chromium, or name one in SHOAL_CHROMIUM")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(browser),
		chromedp.WSURLReadTimeout(patience), chromedp.UserDataDir(t.TempDir()))
	if os.Getuid() == 0 {
		options = append(options, chromedp.NoSandbox)
	}
	ctx, stop := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(stop)
	p := &page{T: t}
	ctx, end := chromedp.NewContext(ctx, chromedp.WithListener(p.listen))
	t.Cleanup(func() { chromedp.Cancel(ctx); end() })
	p.ctx = ctx
	p.run(chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, log.Enable, cdp.Empty{})
		return err
	}))
	return p
}

// step is a part of the test with a name of its own.
func (p *page) step(name string, f func()) {
	whole := p.T
	whole.Run(name, func(t *testing.T) {
		p.T = t
		defer func() { p.T = whole }()
		f()
	})
}

// listen notes what the browser says.
func (p *page) listen(event any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		text := e.ExceptionDetails.Text
		if x := e.ExceptionDetails.Exception; x != nil {
			text += ": " + x.Description
		}
		p.complaints = append(p.complaints, text)
	case *log.EventEntryAdded: // what the policy refuses is here
		p.complaints = append(p.complaints, fmt.Sprintf("%s: %s %s", e.Entry.Level, e.Entry.Text, e.Entry.URL))
	}
}

func (p *page) run(actions ...chromedp.Action[chromedp.Void]) {
	p.Helper()
	ctx, cancel := p.ctx, context.CancelFunc(func() {})
	if len(actions) > 0 && p.started { // the first call binds the browser's life to its context
		ctx, cancel = context.WithTimeout(p.ctx, patience)
	}
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		p.Fatal(err)
	}
	p.started = true
}

// holds fails the test if the expression does not become true.
func (p *page) holds(expression string) {
	p.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	for {
		ok, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("Boolean("+expression+")"))
		if ok {
			return
		}
		if err == nil {
			select {
			case <-time.After(50 * time.Millisecond):
				continue
			case <-ctx.Done():
				err = ctx.Err()
			}
		}
		text, _ := chromedp.Run(p.ctx, chromedp.Evaluate[string]("document.body.innerText"))
		p.Fatalf("not so: %s: %v\n%s", expression, err, text)
	}
}

// value returns what an expression is.
func (p *page) value(expression string) string {
	p.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	s, err := chromedp.Run(ctx, chromedp.Evaluate[string]("String("+expression+")"))
	if err != nil {
		p.Fatalf("%s: %v", expression, err)
	}
	return s
}

// quiet fails the test if the page has complained of anything but what is expected.
func (p *page) quiet(expected ...string) {
	p.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.complaints {
		known := false
		for _, e := range expected {
			known = known || strings.Contains(c, e)
		}
		if !known {
			p.Errorf("the browser says: %s", c)
		}
	}
}

// show gives the page a width and a scheme of colours.
func (p *page) show(width, height int64, scheme string) {
	p.Helper()
	prefer := func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
		return err
	}
	p.run(chromedp.EmulateViewport(width, height), chromedp.Func(prefer))
	p.holds(fmt.Sprintf("innerWidth === %d && matchMedia('(prefers-color-scheme: %s)').matches", width, scheme))
	// Nothing may be wider than the window, since nobody looks there.
	p.holds("document.documentElement.scrollWidth <= innerWidth")
	dark := p.value("getComputedStyle(document.body).backgroundColor.match(/[0-9]+/g).reduce((sum, n) => sum + Number(n), 0) < 384")
	if dark != fmt.Sprint(scheme == "dark") {
		p.Errorf("in the scheme %s the ground is dark: %s", scheme, dark)
	}
}

// picture takes a screenshot of an element, or of the window, which must not be empty. It is kept
// in the folder $SHOAL_SCREENSHOTS, if there is one.
func (p *page) picture(name, element string) {
	p.Helper()
	take := chromedp.CaptureScreenshot()
	if element != "" {
		take = chromedp.Screenshot(chromedp.CSS(element))
	}
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	b, err := chromedp.Run(ctx, take)
	if err != nil {
		p.Fatal(err)
	}
	img, err := png.Decode(bytes.NewReader(b))
	if err != nil {
		p.Fatal(err)
	}
	colours := make(map[any]int)
	for y := img.Bounds().Min.Y; y < img.Bounds().Max.Y; y++ {
		for x := img.Bounds().Min.X; x < img.Bounds().Max.X; x++ {
			colours[img.At(x, y)]++
		}
	}
	if len(colours) < 16 { // letters alone have more
		p.Errorf("%s has %d colours", name, len(colours))
	}
	if dir := os.Getenv("SHOAL_SCREENSHOTS"); dir != "" {
		if err := os.WriteFile(filepath.Join(dir, name+".png"), b, 0o644); err != nil {
			p.Fatal(err)
		}
	}
}

// press types a key, as a person does who has clicked nowhere.
func (p *page) press(key string) {
	p.Helper()
	p.run(chromedp.KeyEvent(key))
}

// escape is the key that closes a dialog.
const escape = kb.Escape
