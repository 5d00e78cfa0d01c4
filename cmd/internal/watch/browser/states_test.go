package browser_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/chromedp/chromedp"
)

// A play is a server of the page that says what a test wants it to say.
type play struct {
	*httptest.Server
	news    chan string // for the page that is connected
	opened  atomic.Int64
	refused atomic.Bool
}

func perform(t *testing.T) *play {
	s := &play{news: make(chan string)}
	mux := http.NewServeMux()
	mux.Handle("/", http.FileServer(http.Dir("../page")))
	mux.HandleFunc("/events", func(w http.ResponseWriter, r *http.Request) {
		if s.refused.Load() {
			http.Error(w, "no", http.StatusForbidden)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		s.opened.Add(1)
		fmt.Fprint(w, "retry: 50\nevent: hello\ndata: {}\n\n")
		http.NewResponseController(w).Flush()
		for {
			select {
			case n := <-s.news:
				if n == "" { // a connection that breaks
					return
				}
				fmt.Fprint(w, n)
				http.NewResponseController(w).Flush()
			case <-r.Context().Done():
				return
			}
		}
	})
	s.Server = httptest.NewServer(mux)
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return s
}

var clock atomic.Int64

// moment is a reading with these domains.
func moment(more, domains string) string {
	return fmt.Sprintf("event: moment\ndata: {\"at\":%d,\"every\":1000%s,\"machine\":{\"utilisation\":0.5},\"domains\":[%s]}\n\n",
		1_700_000_000_000+1000*clock.Add(1), more, domains)
}

// domain is a program of an old version, which tells what it holds and no more.
func domain(pid int, name string) string {
	return fmt.Sprintf(`{"address":"@shoal/0/%d-a","version":0,"limit":1073741824,"committed":1048576,"bytes":524288,"blocks":3,`+
		`"names":[],"processes":[{"pid":%d,"name":"%s","holds":524288,"cpus":0.5,"threads":4,"runnable":1}]}`, pid, pid, name)
}

func TestPage_OfEveryState(t *testing.T) {
	p, s := open(t), perform(t)
	p.run(chromedp.EmulateViewport(1280, 800), chromedp.Navigate(s.URL+"/"))
	notice := func(text string) string {
		return fmt.Sprintf("!document.querySelector('#notice').hidden && document.querySelector('#notice').textContent.includes('%s')", text)
	}
	const silent = "document.querySelector('#notice').hidden"
	state := func(s string) string { return "document.querySelector('#status').dataset.state === '" + s + "'" }

	s.news <- moment("", "")
	p.holds("!document.querySelector('#empty').hidden && document.querySelector('#panels').hidden && " + silent)
	p.holds("document.querySelector('#empty').innerText.includes('shoal hogwild')")
	for _, scheme := range []string{"light", "dark"} {
		for _, width := range []int64{1280, 400} {
			p.show(width, 800, scheme)
			p.picture(fmt.Sprintf("empty-%s-%d", scheme, width), "")
		}
	}
	p.show(1280, 800, "light")

	s.news <- moment("", domain(7, "first"))
	p.holds("document.querySelector('#empty').hidden && document.title.startsWith('first (7)')")
	p.holds("document.querySelector('#queues').hidden && !document.querySelector('#memory').hidden") // it is too old

	// A program that comes takes nobody's place, and [ and ] go from one to the other.
	s.news <- moment("", domain(7, "first")+","+domain(8, "second"))
	p.holds("document.querySelectorAll('#program option').length === 2 && document.title.startsWith('first')")
	p.press("]")
	p.holds("document.title.startsWith('second')")
	p.press("[")
	p.holds("document.title.startsWith('first')")

	// What a person has chosen stays, also when it has ended.
	s.news <- moment("", domain(8, "second"))
	p.holds(notice("This program ended at "))
	for n := range 8 { // as many others as come and go meanwhile
		s.news <- moment("", domain(8, "second")+","+domain(100+n, "other"))
	}
	s.news <- moment("", domain(8, "second"))
	p.holds("document.querySelectorAll('#program option').length === 6")
	p.holds(notice("This program ended at ") + " && document.title.startsWith('first')")
	s.news <- moment("", domain(8, "second"))
	p.holds("document.querySelector('#program option').textContent.startsWith('second')")
	p.press("]")
	p.holds("!document.title.startsWith('first')")
	p.value("(() => { const s = document.querySelector('#program'); s.selectedIndex = 0; s.dispatchEvent(new Event('change')) })()")
	p.holds("document.title.startsWith('second') && " + silent)

	s.news <- moment(`,"error":"the table of sockets is away"`, "")
	p.holds(notice("the table of sockets is away") + " && !document.querySelector('#panels').hidden")
	p.holds("[...document.querySelectorAll('#program option')].filter(o => o.textContent.startsWith('second')).length === 1")
	s.news <- moment("", `{"address":"@shoal/0/8-a","error":"no answer for five seconds","names":[],"processes":[]}`)
	p.holds(notice("no answer for five seconds") + " && document.querySelector('#panels').hidden")
	s.news <- moment("", domain(8, "<img src=x onerror=alert(1)>"))
	p.holds("document.querySelector('#processes').innerText.includes('<img src=x') && !document.querySelector('#processes img')")

	// One that does not answer while it ends has ended, with what it said before.
	s.news <- moment("", domain(8, "second")+","+domain(9, "third"))
	s.news <- moment("", domain(8, "second")+`,{"address":"@shoal/0/9-a","error":"reset","names":[],"processes":[]}`)
	s.news <- moment("", domain(8, "second"))
	p.holds("[...document.querySelectorAll('#program option')].some(o => o.textContent === 'third (9), ended')")

	// A connection that breaks is made again, and what was seen stays.
	s.news <- ""
	p.holds(state("connecting") + " || " + state("live"))
	s.news <- moment("", domain(8, "second"))
	p.holds(state("live") + " && document.title.startsWith('second')")
	if n := s.opened.Load(); n != 2 {
		t.Errorf("the page has connected %d times", n)
	}

	// Nothing comes: the page says so, and recovers.
	p.holds(state("late") + " && " + notice("There is no news"))
	s.news <- moment("", domain(8, "second"))
	p.holds(state("live") + " && " + silent)

	// Another server has the port.
	s.refused.Store(true)
	s.news <- ""
	p.holds(state("lost") + " && " + notice("Open the URL that it has printed last"))
	s.refused.Store(false)
	p.holds("true")
	s.news <- moment("", domain(8, "second"))
	p.holds(state("live") + " && " + silent)

	s.news <- "event: end\ndata: {}\n\n"
	p.holds(state("ended") + " && " + notice("shoal watch has ended"))
	p.quiet("403", "events") // the server of this test refuses the stream once
}
