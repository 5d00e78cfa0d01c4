package watch_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/shoal-mp/shoal/cmd/internal/domains"
	"github.com/shoal-mp/shoal/cmd/internal/watch"
)

func TestAJoinIsAWholeURL(t *testing.T) {
	print := strings.Repeat("0aB1", 16)
	for text, want := range map[string]string{
		"https://node1:8443/TOKEN/":                                     "",
		"https://node1:8443/TOKEN":                                      "",
		"https://[2001:db8::1]:8443/TOKEN/":                             "",
		"https://node1:8443/TOKEN/#" + print:                            "",
		"https://node1:8443/TOKEN/#" + strings.Repeat("AB:", 31) + "01": "",
		"http://127.0.0.1:80/TOKEN/":                                    "",
		"http://localhost:80/TOKEN/":                                    "",
		"http://[::1]:80/TOKEN/":                                        "",
		"http://node1:80/TOKEN/":                                        "expose the token",
		"http://127.0.0.1.evil.example/TOKEN/":                          "expose the token",
		"http://localhost:80/TOKEN/#" + print:                           "want https",
		"https://node1:8443/TOKEN/#" + print[1:]:                        "64 hexadecimal digits",
		"https://node1:8443/TOKEN/#overview":                            "64 hexadecimal digits",
		"https://node1:8443/":                                           "only the token",
		"https://node1:8443/TOKEN/events":                               "only the token",
		"https://node1:8443/TOKEN/?a":                                   "only the token",
		"https://user@node1:8443/TOKEN/":                                "only the token",
		"ftp://node1/TOKEN/":                                            "want an https URL",
		"https:///TOKEN/":                                               "want an https URL",
		"node1:8443":                                                    "want an https URL",
		"https://node1:port/TOKEN/":                                     "invalid URL",
		"":                                                              "want an https URL",
	} {
		_, err := watch.ParseJoin(text, nil)
		said := fmt.Sprint(err)
		if (err == nil) != (want == "") || !strings.Contains(said, want) || strings.Contains(said, "TOKEN") {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// joined is a moment with the hosts that are joined.
type joined struct {
	Host  string
	Error string
	Hosts []struct {
		Key, Name, State, Error string
		Since                   int64
	}
	Domains []struct {
		Host string
		domains.Domain
	}
}

// until waits for a moment of which something holds.
func until(t *testing.T, events <-chan event, holds func(joined) bool) joined {
	t.Helper()
	var m joined
	for end := time.Now().Add(watchdog); time.Now().Before(end); {
		e := next(t, events, "moment")
		m = joined{}
		if err := json.Unmarshal([]byte(e.data), &m); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(e.data, "SECRET") {
			t.Fatalf("a token is told: %s", e.data)
		}
		if holds(m) {
			return m
		}
	}
	t.Fatalf("it does not come: %+v", m)
	return m
}

// joinAll reads joins.
func joinAll(t *testing.T, urls ...string) (all []watch.Join) {
	t.Helper()
	for _, u := range urls {
		j, err := watch.ParseJoin(u, nil)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, j)
	}
	return all
}

// secured is a server on a loopback address with a certificate of its own, seen as another machine.
func secured(t *testing.T, host string, o watch.Options) (s *watch.Server, c *tls.Certificate, stop func() error) {
	t.Helper()
	c, err := watch.SelfSigned(host)
	if err != nil {
		t.Fatal(err)
	}
	o.Host, o.Certificate = host, c
	s, stop = serve(t, o.At(host), counting(new(atomic.Int64)))
	return s, c, stop
}

func TestOnePageShowsTheProgramsOfJoinedHosts(t *testing.T) {
	far, c, _ := secured(t, "127.0.0.3", watch.Options{})
	near, d, stop := secured(t, "127.0.0.2", watch.Options{Joins: joinAll(t, far.URL+"#"+watch.Fingerprint(c))})
	roots := x509.NewCertPool()
	roots.AddCert(d.Leaf)
	j, err := watch.ParseJoin(near.URL, roots)
	if err != nil {
		t.Fatal(err)
	}
	s, _ := serve(t, watch.Options{Joins: []watch.Join{j}}, counting(new(atomic.Int64)))
	u, _ := url.Parse(near.URL)
	p := follow(t, s)
	m := until(t, p, func(m joined) bool { return len(m.Domains) == 2 })
	h := m.Hosts[0]
	if m.Host == "" || h.State != "live" || h.Error != "" || h.Key != u.Host || h.Name != m.Host+" ("+u.Host+")" {
		t.Errorf("on %s, one machine with three names: %+v", m.Host, h)
	}
	if a, b := m.Domains[0], m.Domains[1]; a.Host != "" || a.Address != "@shoal/0/7-a" || b.Host != u.Host ||
		b.Address != u.Host+" @shoal/0/7-a" || b.Processes[0].Name != "program" {
		t.Errorf("the programs are %+v", m.Domains)
	}
	// What it joins itself is on its own page, and not passed on.
	until(t, followBy(t, near, roots), func(m joined) bool { return len(m.Domains) == 2 })
	if m := until(t, p, func(joined) bool { return true }); len(m.Domains) != 2 || len(m.Hosts) != 1 {
		t.Errorf("%d programs of %d hosts are shown", len(m.Domains), len(m.Hosts))
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	m = until(t, p, func(m joined) bool { return m.Hosts[0].State == "silent" })
	if len(m.Domains) != 1 || m.Hosts[0].Since == 0 {
		t.Errorf("of a host that has gone: %+v", m)
	}
	var history []watch.Sample
	if err := json.Unmarshal([]byte(next(t, follow(t, s), "history").data), &history); err != nil {
		t.Fatal(err)
	}
	seen := false
	for _, h := range history {
		seen = seen || h.Domains[u.Host+" @shoal/0/7-a"].Bytes > 0
	}
	if !seen {
		t.Error("a page that is opened later has no memory of the host")
	}
}

func TestAHostThatCannotBeJoinedIsNamedWithTheCause(t *testing.T) {
	good, c, _ := secured(t, "127.0.0.2", watch.Options{})
	other, err := watch.SelfSigned("127.0.0.2")
	if err != nil {
		t.Fatal(err)
	}
	u, _ := url.Parse(good.URL)
	play := func(h http.HandlerFunc) string {
		s := httptest.NewServer(h)
		t.Cleanup(s.Close)
		return s.URL + "/SECRET/"
	}
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	for name, c := range map[string]struct{ at, want string }{
		"another token":       {"https://" + u.Host + "/SECRET/#" + watch.Fingerprint(c), "token rejected"},
		"another fingerprint": {good.URL + "#" + watch.Fingerprint(other), "does not have the fingerprint"},
		"no authority":        {good.URL, "set -ca, or use the URL with the fingerprint"},
		"nobody there":        {gone.URL + "/SECRET/", "connection refused"},
		"no TLS": {"https://" + strings.TrimPrefix(play(http.NotFound), "http://"),
			"gave HTTP response to HTTPS client"},
		"something else": {play(http.NotFound), "not a shoal watch of this version: got HTTP status 404"},
		"a page": {play(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "<html>") }),
			"not a shoal watch of this version: got HTTP status 200"},
		"a way elsewhere": {play(func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, good.URL+"own", http.StatusSeeOther)
		}), "not a shoal watch of this version: got HTTP status 303"},
		"another name": {play(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(421) }),
			"host name in the URL rejected"},
		"too many pages": {play(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(503) }),
			"too many open pages"},
		"itself": {good.URL + "#" + watch.Fingerprint(c), "already shown"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := watch.Options{Joins: joinAll(t, c.at)}
			if name == "itself" {
				o = o.At("127.0.0.2")
			}
			s, _ := serve(t, o, counting(new(atomic.Int64)))
			m := until(t, follow(t, s), func(m joined) bool { return m.Hosts[0].State == "failed" })
			if h := m.Hosts[0]; !strings.Contains(h.Error, c.want) || len(m.Domains) != 1 || h.Since == 0 {
				t.Errorf("%+v, want %q", h, c.want)
			}
		})
	}
}

func TestJoinsAreDifferentAndFew(t *testing.T) {
	twice := joinAll(t, "https://node1:1/A/", "https://node1:1/B/")
	if _, err := watch.Listen(watch.Options{Joins: twice}); err == nil ||
		!strings.Contains(err.Error(), "node1:1 is joined more than once") {
		t.Error(err)
	}
	var many []string
	for i := range 33 {
		many = append(many, fmt.Sprintf("https://node%d:1/A/", i))
	}
	if _, err := watch.Listen(watch.Options{Joins: joinAll(t, many...)}); err == nil {
		t.Error("33 hosts can be joined")
	}
}

// A liar is a host that says what a test wants it to say.
type liar struct {
	mu   sync.Mutex
	says []string // each time that it is asked, and then it holds the line
	next chan struct{}
}

func (l *liar) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	l.mu.Lock()
	says := l.says
	l.mu.Unlock()
	for _, s := range says {
		if _, err := fmt.Fprint(w, s); err != nil {
			return
		}
	}
	http.NewResponseController(w).Flush()
	select {
	case <-r.Context().Done():
	case <-l.next:
	}
}

const greets = "event: hello\ndata: {\"name\":\"node1\",\"place\":\"there\",\"every\":50}\n\n"

func said(moment string) string { return "event: moment\ndata: " + moment + "\n\n" }

func TestAHostThatGoesComesBack(t *testing.T) {
	l := &liar{next: make(chan struct{}), says: []string{greets, said(`{"at":1,"domains":[{"address":"@shoal/0/8-b"}]}`)}}
	far := httptest.NewServer(l)
	defer far.Close()
	defer far.CloseClientConnections()
	s, _ := serve(t, watch.Options{Joins: joinAll(t, far.URL+"/SECRET/")}, counting(new(atomic.Int64)))
	p := follow(t, s)
	live := func(m joined) bool {
		return m.Hosts[0].State == "live" && m.Hosts[0].Name == "node1" && len(m.Domains) == 2
	}
	since := until(t, p, live).Hosts[0].Since
	l.next <- struct{}{} // the connection breaks
	m := until(t, p, func(m joined) bool { return m.Hosts[0].State == "silent" })
	if h := m.Hosts[0]; h.Since != since || h.Error == "" || len(m.Domains) != 1 {
		t.Errorf("silent since %d, last heard of at %d: %+v", h.Since, since, m)
	}
	until(t, p, live)
	until(t, p, func(m joined) bool { // it says nothing, though the connection is there
		return m.Hosts[0].State == "silent" && strings.Contains(m.Hosts[0].Error, "no data received") &&
			len(m.Domains) == 1
	})
	l.mu.Lock()
	l.says = append(l.says, said(`{"at":2,"error":"no table","domains":[]}`))
	l.mu.Unlock()
	l.next <- struct{}{}
	until(t, p, func(m joined) bool { return m.Hosts[0].Error == "last reading failed: no table" })
	l.mu.Lock()
	l.says = append(l.says, "event: end\ndata: {}\n\n")
	l.mu.Unlock()
	l.next <- struct{}{}
	until(t, p, func(m joined) bool { return m.Hosts[0].Error == "shoal watch on this host has ended" })
}

func TestWhatAJoinedHostSaysIsChecked(t *testing.T) {
	many := func(n int, item string) string { return strings.TrimSuffix(strings.Repeat(item+",", n), ",") }
	program := func(more string) string { return `{"at":1,"domains":[{"address":"@shoal/0/8-b"` + more + `}]}` }
	for name, c := range map[string]struct {
		says  []string
		error string // "": it is live, and check looks at its programs
		check func(joined) bool
	}{
		"no hello":                 {[]string{said(program(""))}, "no hello", nil},
		"an empty hello":           {[]string{"event: hello\ndata: {}\n\n"}, "no hello", nil},
		"a hello of text":          {[]string{"event: hello\ndata: \"hi\"\n\n"}, "no hello", nil},
		"no JSON":                  {[]string{greets, said(`{"at":`)}, "malformed reading", nil},
		"other types":              {[]string{greets, said(`{"at":1,"domains":{"a":3}}`)}, "malformed reading", nil},
		"a number where a list is": {[]string{greets, said(program(`,"processes":7`))}, "malformed reading", nil},
		"nothing":                  {[]string{greets, said(`null`)}, "malformed reading", nil},
		"deep":                     {[]string{greets, said(strings.Repeat("[", 1<<20))}, "too large for the page", nil},
		"one large line": {[]string{greets, said(`"` + strings.Repeat("x", 5<<20) + `"`)},
			"too large for the page", nil},
		"many elements": {[]string{greets, said(program(`,"processes":[` + many(1<<19, "0") + `]`))},
			"too large for the page", nil},
		"many fields": {[]string{greets, said(program(`,"bound":{` + many(1<<18, `"":{}`) + `}`))},
			"too large for the page", nil},
		"many processes": {[]string{greets, said(`{"at":1,"domains":[` + func() (all string) {
			for i := range 5 {
				all += fmt.Sprintf(`{"address":"@shoal/0/%d-b","processes":[%s]},`, i, many(600, "{}"))
			}
			return strings.TrimSuffix(all, ",")
		}() + `]}`)}, "too large for the page", nil},
		"other events and comments": {[]string{": hi\n\nevent: surprise\ndata: {}\n\n", greets, said(program(""))}, "",
			func(m joined) bool { return len(m.Domains) == 2 }},
		"hosts of its own, and no lists": {[]string{greets,
			said(`{"at":1,"host":"x","hosts":[{"key":"evil"}],"domains":[{"address":"@shoal/0/8-b",` +
				`"host":"evil","loaders":[{"tracks":[{}]}],"deadlocks":[{}],"waits":[{}]}]}`)}, "",
			func(m joined) bool {
				d := m.Domains[1]
				l := d.Loaders[0]
				return len(m.Hosts) == 1 && d.Host == m.Hosts[0].Key && d.Processes != nil && l.Batches != nil &&
					l.Tracks[0].Idle != nil && d.Deadlocks[0].Waits != nil && d.Waits[0].On != nil
			}},
		"addresses": {[]string{greets,
			said(`{"at":1,"domains":[{"address":"__proto__"},{"address":""},{"address":"@shoal/0/8-b"},` +
				`{"address":"@shoal/0/8-b"},{"address":"@shoal/<b>\n"},{"address":"@shoal/` + strings.Repeat("8", 200) +
				`"}]}`)}, "",
			func(m joined) bool {
				return len(m.Domains) == 2 && strings.HasSuffix(m.Domains[1].Address, " @shoal/0/8-b")
			}},
		"long texts and lists": {[]string{greets,
			said(program(`,"error":"` + strings.Repeat("é", 4000) + `","names":["` +
				strings.Repeat("n", 9000) + `"],"queues":[` + many(700, `{"names":["loss"],"value":1,"news":"AAAA"}`) +
				`],"summary":{"by_kind":{"` +
				strings.Repeat("k", 2000) + `":{}}}`))}, "",
			func(m joined) bool {
				d := m.Domains[1]
				numbers := 0
				for _, q := range d.Queues {
					if q.Value != nil {
						numbers++
					}
				}
				return d.Error == strings.Repeat("é", 512) && len(d.Names[0]) == 1024 && len(d.Queues) == 512 &&
					numbers == 64 && d.Queues[0].News == nil && len(d.Summary.Kinds) == 0
			}},
		"a name that moves the cursor": {[]string{strings.Replace(greets, "node1",
			`\u001b[2J\u202e`+strings.Repeat("n", 200), 1), said(program(""))}, "",
			func(m joined) bool {
				return strings.HasPrefix(m.Hosts[0].Name, `\x1b[2J\u202enn`) && len(m.Hosts[0].Name) < 90
			}},
		"many programs": {[]string{greets, said(`{"at":1,"domains":[` + func() (all string) {
			for i := range 67 {
				all += fmt.Sprintf(`{"address":"@shoal/0/%d-b"},`, i)
			}
			return strings.TrimSuffix(all, ",")
		}() + `]}`)}, "", func(m joined) bool {
			return len(m.Domains) == 65 && m.Hosts[0].Error == "3 programs more than the page can show"
		}},
		"the name of this machine": {[]string{strings.Replace(greets, "node1", name(t), 1), said(program(""))}, "",
			func(m joined) bool { return m.Hosts[0].Name == m.Host+" ("+m.Hosts[0].Key+")" }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			far := httptest.NewServer(&liar{says: c.says})
			defer far.Close()
			defer far.CloseClientConnections()
			o := watch.Options{Every: 10 * time.Millisecond, Joins: joinAll(t, far.URL+"/SECRET/")}
			s, _ := serve(t, o, counting(new(atomic.Int64)))
			m := until(t, follow(t, s), func(m joined) bool { return m.Hosts[0].State != "connecting" })
			h := m.Hosts[0]
			if c.check == nil {
				if h.State != "failed" || !strings.Contains(h.Error, c.error) || len(m.Domains) != 1 {
					t.Errorf("%+v, want %q", h, c.error)
				}
			} else if h.State != "live" || !c.check(m) {
				t.Errorf("%+v of %+v", h, m.Domains[min(1, len(m.Domains)):])
			}
		})
	}
}

// name returns how a server calls this machine.
func name(t *testing.T) string {
	t.Helper()
	s, _ := serve(t, watch.Options{Joins: joinAll(t, "http://127.0.0.1:1/SECRET/")}, counting(new(atomic.Int64)))
	return until(t, follow(t, s), func(joined) bool { return true }).Host
}

// A flood of readings is read, but decoded no more often than a page is told of them, and the end
// of a host that floods is noticed.
func TestAFloodOfReadingsStopsNoPage(t *testing.T) {
	large := said(`{"at":1,"domains":[{"address":"@shoal/0/8-b","names":["` + strings.Repeat("x", 1<<20) + `"]}]}`)
	far := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, err := fmt.Fprint(w, greets); err == nil; _, err = fmt.Fprint(w, large) {
		}
	}))
	defer far.Close()
	defer far.CloseClientConnections()
	o := watch.Options{Every: 10 * time.Millisecond, Joins: joinAll(t, far.URL+"/SECRET/")}
	s, stop := serve(t, o, counting(new(atomic.Int64)))
	p := follow(t, s)
	for range 8 {
		until(t, p, func(m joined) bool { return m.Hosts[0].State == "live" })
	}
	ended := time.Now()
	if err := stop(); err != nil || time.Since(ended) > 10*time.Second {
		t.Errorf("%v after %v", err, time.Since(ended))
	}
}

// A reading of this machine that fails takes nothing from the joined ones.
func TestAFailedReadingHereShowsTheOthersOn(t *testing.T) {
	far := httptest.NewServer(&liar{says: []string{greets, said(`{"at":1,"domains":[{"address":"@shoal/0/8-b"}]}`)}})
	defer far.Close()
	defer far.CloseClientConnections()
	fails := func(context.Context, time.Duration) (domains.Census, error) {
		return domains.Census{}, errors.New("no table")
	}
	s, _ := serve(t, watch.Options{Joins: joinAll(t, far.URL+"/SECRET/")}, fails)
	until(t, follow(t, s), func(m joined) bool {
		return m.Error == "no table" && len(m.Domains) == 1 && m.Domains[0].Host != ""
	})
}

func FuzzDecode(f *testing.F) {
	f.Add(
		[]byte(
			`{"at":1,"domains":[{"address":"@shoal/0/8-b","processes":[{"pid":8,"rank":0}],"queues":[{"value":1,"names":["a"]}]}]}`))
	f.Add(
		[]byte(
			`{"at":1,"domains":[{"address":"@shoal/0/8-b","summary":{"by_kind":{"a":{"blocks":1}},"by_site":[{"stack":"x"}]}}]}`))
	f.Add([]byte(`[[[{"a":"\"]"}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		m, err := watch.Decode(raw)
		if err != nil {
			return
		}
		data, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err) // a page would not be told of any host
		}
		if n, err := watch.Decode(data); err != nil || len(n.Domains) != len(m.Domains) {
			t.Fatalf("%v: what was checked is refused: %s", err, data)
		}
	})
}

// A program of this machine that hangs delays no news of other machines.
func TestJoinedHostsAreToldWhileAReadingTakesLong(t *testing.T) {
	far, c, _ := secured(t, "127.0.0.3", watch.Options{})
	var looks atomic.Int64
	hang := make(chan struct{})
	s, _ := serve(t, watch.Options{Joins: joinAll(t, far.URL+"#"+watch.Fingerprint(c))},
		func(ctx context.Context, every time.Duration) (domains.Census, error) {
			if looks.Load() == 1 {
				select {
				case <-hang:
				case <-ctx.Done():
				}
			}
			return counting(&looks)(ctx, every)
		})
	p := follow(t, s)
	hangs := func(m joined) bool { return m.Error == "a program on this machine does not respond yet" }
	m := until(t, p, func(m joined) bool { return hangs(m) && len(m.Domains) == 1 })
	if m.Hosts[0].State != "live" || m.Domains[0].Host == "" {
		t.Errorf("while this machine's programs hang: %+v", m)
	}
	before := m.Domains[0].Bytes
	until(t, p, func(m joined) bool { return hangs(m) && m.Domains[0].Bytes > before })
	if n := looks.Load(); n != 1 {
		t.Errorf("%d looks, and one hangs", n)
	}
	close(hang)
	until(t, p, func(m joined) bool { return m.Error == "" && len(m.Domains) == 2 })
}
