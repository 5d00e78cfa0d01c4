package watch_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/shoal-mp/shoal/cmd/internal/domains"
	"github.com/shoal-mp/shoal/cmd/internal/watch"
	"github.com/shoal-mp/shoal/shoaltest"
	"github.com/shoal-mp/shoal/test/testutil"
)

func TestMain(m *testing.M) { shoaltest.TestMain(m) }

const watchdog = 60 * time.Second

type look = func(context.Context, time.Duration) (domains.Census, error)

// census is one program with a process.
func census(holds int64) domains.Census {
	return domains.Census{Domains: []domains.Domain{{Address: "@shoal/0/7-a", Bytes: holds, Names: []string{},
		Processes: []domains.Process{{PID: 7, Name: "program", Holds: holds}}}}}
}

// counting looks at once, and says each time that one byte more is held.
func counting(looks *atomic.Int64) look {
	return func(ctx context.Context, every time.Duration) (domains.Census, error) {
		select {
		case <-time.After(every):
		case <-ctx.Done():
		}
		return census(looks.Add(1)), ctx.Err()
	}
}

// serve has a server until the test ends, or stop is called, which returns what Serve did.
func serve(t *testing.T, o watch.Options, l look) (s *watch.Server, stop func() error) {
	t.Helper()
	if o.Every == 0 {
		o.Every = time.Millisecond
	}
	s, err := watch.ListenWith(o, l)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx) }()
	var result error
	stopped := false
	stop = func() error {
		if stopped {
			return result
		}
		stopped = true
		cancel()
		select {
		case result = <-ended:
		case <-time.After(watchdog):
			t.Fatal("the server does not end")
		}
		return result
	}
	t.Cleanup(func() { stop() })
	return s, stop
}

// ask makes a request; change may be nil.
func ask(t *testing.T, method, at string, change func(*http.Request)) (*http.Response, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), watchdog)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, at, nil)
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(r)
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	answer, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer, string(body)
}

func TestWithoutTheTokenThereIsOnlyWhatToDo(t *testing.T) {
	s, _ := serve(t, watch.Options{}, counting(new(atomic.Int64)))
	u, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	token := strings.Trim(u.Path, "/")
	if len(token) < 26 {
		t.Errorf("a token of %d characters can be guessed", len(token))
	}
	root := "http://" + u.Host
	for _, path := range []string{"/", "/events", "/app.js", "/" + token[:len(token)-1] + "/", "/" + token + "x/",
		"/" + strings.ToLower(token) + "/events", "//" + token + "/", "/?token=" + token,
		"/" + strings.Repeat("A", len(token)) + "/"} {
		answer, body := ask(t, "GET", root+path, nil)
		if answer.StatusCode != http.StatusForbidden || !strings.Contains(body, "Copy the whole URL") ||
			strings.Contains(body, token) || strings.Contains(body, "7-a") {
			t.Errorf("%s: %s\n%s", path, answer.Status, body)
		}
	}
	for path, kind := range map[string]string{"": "text/html", "app.js": "text/javascript", "style.css": "text/css",
		"icon.svg": "image/svg+xml", "uplot/uPlot.js": "text/javascript", "uplot/LICENSE": "text/plain"} {
		answer, body := ask(t, "GET", s.URL+path, nil)
		if answer.StatusCode != http.StatusOK || !strings.HasPrefix(answer.Header.Get("Content-Type"), kind) ||
			body == "" {
			t.Errorf("%q: %s, %s, %d bytes", path, answer.Status, answer.Header.Get("Content-Type"), len(body))
		}
	}
	answer, _ := ask(t, "GET", strings.TrimSuffix(s.URL, "/"), nil)
	if answer.StatusCode != http.StatusSeeOther || answer.Header.Get("Location") != u.Path {
		t.Errorf("without its last stroke the URL leads to %s, %q", answer.Status, answer.Header.Get("Location"))
	}
	other, _ := serve(t, watch.Options{}, counting(new(atomic.Int64)))
	if v, _ := url.Parse(other.URL); v.Path == u.Path {
		t.Error("two servers have one token")
	}
}

func TestEveryAnswerKeepsOtherSitesOut(t *testing.T) {
	s, _ := serve(t, watch.Options{}, counting(new(atomic.Int64)))
	u, _ := url.Parse(s.URL)
	for _, at := range []string{s.URL, s.URL + "app.js", "http://" + u.Host + "/"} {
		answer, _ := ask(t, "GET", at, nil)
		h := answer.Header
		csp := h.Get("Content-Security-Policy")
		if !strings.HasPrefix(csp, "default-src 'none'; script-src 'self'; style-src 'self';") ||
			!strings.Contains(csp, "frame-ancestors 'none'") || strings.Contains(csp, "unsafe") {
			t.Errorf("%s: policy %q", at, csp)
		}
		for name, want := range map[string]string{"Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff",
			"Cross-Origin-Resource-Policy": "same-origin", "Cross-Origin-Opener-Policy": "same-origin",
			"Cache-Control": "no-store", "Access-Control-Allow-Origin": "", "Set-Cookie": ""} {
			if h.Get(name) != want {
				t.Errorf("%s: %s is %q, want %q", at, name, h.Get(name), want)
			}
		}
	}
}

func TestOnlyItsOwnNamesAreAnswered(t *testing.T) {
	s, _ := serve(t, watch.Options{}, counting(new(atomic.Int64)))
	u, _ := url.Parse(s.URL)
	for host, want := range map[string]int{
		u.Host: 200, "localhost:" + u.Port(): 200, "LOCALHOST": 200, "127.0.0.1": 200, "[::1]:80": 200,
		"127.1.2.3:9":  200,
		"evil.example": 421, "evil.example:" + u.Port(): 421, "localhost.evil.example": 421, "192.0.2.1": 421,
		"127.0.0.1.evil.example": 421, "[2001:db8::1]": 421, "127.0.0.1@evil.example": 421,
	} {
		answer, body := ask(t, "GET", s.URL, func(r *http.Request) { r.Host = host })
		if answer.StatusCode != want {
			t.Errorf("host %s: %s, want %d\n%s", host, answer.Status, want, body)
		}
	}
}

func TestItOnlyShows(t *testing.T) {
	s, _ := serve(t, watch.Options{}, counting(new(atomic.Int64)))
	for _, method := range []string{"POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE"} {
		answer, _ := ask(t, method, s.URL, nil)
		if answer.StatusCode != http.StatusMethodNotAllowed || answer.Header.Get("Allow") != "GET, HEAD" {
			t.Errorf("%s: %s", method, answer.Status)
		}
	}
	if answer, body := ask(t, "HEAD", s.URL, nil); answer.StatusCode != http.StatusOK || body != "" {
		t.Errorf("HEAD: %s %q", answer.Status, body)
	}
}

func TestAnotherSiteGetsNothing(t *testing.T) {
	s, _ := serve(t, watch.Options{}, counting(new(atomic.Int64)))
	u, _ := url.Parse(s.URL)
	for _, c := range []struct {
		headers map[string]string
		want    int
	}{
		{map[string]string{"Origin": "http://" + u.Host}, 200},
		{map[string]string{"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "cors", "Sec-Fetch-Dest": "empty"}, 200},
		{map[string]string{"Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}, 200},
		// a link in a chat
		{map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate",
			"Sec-Fetch-Dest": "document"}, 200},
		{map[string]string{"Origin": "http://evil.example"}, 403},
		{map[string]string{"Origin": "http://127.0.0.1:1"}, 403},
		{map[string]string{"Origin": "null"}, 403},
		{map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "script"},
			403},
		{map[string]string{"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "cors", "Sec-Fetch-Dest": "empty"}, 403},
		{map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "iframe"},
			403},
	} {
		answer, _ := ask(t, "GET", s.URL+"app.js", func(r *http.Request) {
			for name, value := range c.headers {
				r.Header.Set(name, value)
			}
		})
		if answer.StatusCode != c.want {
			t.Errorf("%v: %s, want %d", c.headers, answer.Status, c.want)
		}
	}
}

// An event of the stream.
type event struct{ name, data string }

// follow opens the stream and hands on its events, until it ends.
func follow(t *testing.T, s *watch.Server) <-chan event {
	t.Helper()
	return followBy(t, s, nil)
}

// followBy is follow with authorities of certificates.
func followBy(t *testing.T, s *watch.Server, roots *x509.CertPool) <-chan event {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), watchdog)
	t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, "GET", s.URL+"events", nil)
	if err != nil {
		t.Fatal(err)
	}
	client := http.Client{Transport: &http.Transport{TLSClientConfig: tlsConfig(roots)}}
	answer, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	if kind := answer.Header.Get("Content-Type"); answer.StatusCode != http.StatusOK || kind != "text/event-stream" {
		answer.Body.Close()
		t.Fatalf("%s, %s", answer.Status, kind)
	}
	events := make(chan event)
	go func() {
		defer close(events)
		defer answer.Body.Close()
		var e event
		for lines := bufio.NewReader(answer.Body); ; {
			line, err := lines.ReadString('\n')
			if err != nil {
				return
			}
			name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
			switch name {
			case "event":
				e.name = value
			case "data":
				e.data = value
			case "":
				select {
				case events <- e:
				case <-ctx.Done():
					return
				}
				e = event{}
			}
		}
	}()
	return events
}

// holds reads how many bytes the first process of a moment holds.
func holds(t *testing.T, e event) int64 {
	t.Helper()
	var m struct {
		At    int64
		Error string
		domains.Census
	}
	if err := json.Unmarshal([]byte(e.data), &m); err != nil || m.At == 0 || m.Error != "" || len(m.Domains) != 1 {
		t.Fatalf("%v of %q", err, e.data)
	}
	return m.Domains[0].Processes[0].Holds
}

// next waits for an event of a name.
func next(t *testing.T, events <-chan event, name string) event {
	t.Helper()
	for e := range events {
		if e.name == name {
			return e
		}
	}
	t.Fatalf("the stream ended without %s", name)
	return event{}
}

func TestManyPagesAreOneReader(t *testing.T) {
	var now, most, looks atomic.Int64
	s, _ := serve(t, watch.Options{}, func(ctx context.Context, every time.Duration) (domains.Census, error) {
		most.Store(max(most.Load(), now.Add(1)))
		defer now.Add(-1)
		return counting(&looks)(ctx, every)
	})
	var pages []<-chan event
	for range 20 {
		pages = append(pages, follow(t, s))
	}
	seen := make(map[string]bool)
	for _, p := range pages {
		first := holds(t, next(t, p, "moment"))
		for range 5 { // each is newer than the one before
			e := next(t, p, "moment")
			seen[e.data] = true
			n := holds(t, e)
			if n <= first {
				t.Fatalf("reading %d comes after reading %d", n, first)
			}
			first = n
		}
	}
	if most.Load() != 1 {
		t.Errorf("%d readings at once", most.Load())
	}
	if n := looks.Load(); int64(len(seen)) > n {
		t.Errorf("%d moments of %d readings", len(seen), n)
	}
}

func TestAPageThatIsOpenedLaterHasWhatWasBefore(t *testing.T) {
	s, _ := serve(t, watch.Options{}, counting(new(atomic.Int64)))
	testutil.Eventually(t, func() bool { return s.Samples() >= 10 }, "nothing is read while no page is open")
	var history []watch.Sample
	e := next(t, follow(t, s), "history")
	if err := json.Unmarshal([]byte(e.data), &history); err != nil || len(history) < 10 {
		t.Fatalf("%v, %d samples", err, len(history))
	}
	if h := history[9].Domains["@shoal/0/7-a"]; h.Bytes != 10 || h.Holds[7] != 10 {
		t.Errorf("the tenth sample is %+v", history[9])
	}
}

func TestHistoryIsThinnedOutAndKeepsItsEnds(t *testing.T) {
	var all []watch.Sample
	for at := range int64(10 * watch.MostSamples) {
		all = append(watch.Thin(all), watch.Sample{At: at})
		if len(all) > watch.MostSamples || all[0].At != 0 || all[len(all)-1].At != at {
			t.Fatalf("after %d samples there are %d, from %d to %d", at+1, len(all), all[0].At, all[len(all)-1].At)
		}
	}
	for i := 1; i < len(all); i++ {
		if all[i].At <= all[i-1].At {
			t.Fatalf("sample %d comes after %d", all[i].At, all[i-1].At)
		}
	}
}

func TestAPageThatDoesNotReadStopsNoOther(t *testing.T) {
	var looks atomic.Int64
	large := strings.Repeat("x", 1<<20)
	s, stop := serve(t, watch.Options{}, func(ctx context.Context, every time.Duration) (domains.Census, error) {
		c, err := counting(&looks)(ctx, every)
		c.Domains[0].Names = []string{large} // more than a socket takes
		return c, err
	})
	u, _ := url.Parse(s.URL)
	for range 3 {
		c, err := net.Dial("tcp", u.Host)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		fmt.Fprintf(c, "GET %sevents HTTP/1.1\r\nHost: %s\r\n\r\n", u.Path, u.Host)
	}
	p := follow(t, s)
	for before, i := int64(0), 0; i < 30; i++ {
		n := holds(t, next(t, p, "moment"))
		if n <= before {
			t.Fatalf("reading %d comes after reading %d", n, before)
		}
		before = n
	}
	if err := stop(); err != nil { // nor do they stop its end
		t.Errorf("ended with %v", err)
	}
}

func TestPagesAreToldOfTheEnd(t *testing.T) {
	s, stop := serve(t, watch.Options{}, counting(new(atomic.Int64)))
	p := follow(t, s)
	next(t, p, "moment")
	ended := make(chan error, 1)
	go func() { ended <- stop() }()
	next(t, p, "end")
	if _, more := <-p; more {
		t.Error("there is something behind the end")
	}
	if err := <-ended; err != nil {
		t.Errorf("ended with %v", err)
	}
	u, _ := url.Parse(s.URL)
	if c, err := net.Dial("tcp", u.Host); err == nil {
		c.Close()
		t.Error("it listens on")
	}
}

func TestAReadingThatFailsIsToldAndTheNextOneFollows(t *testing.T) {
	var looks atomic.Int64
	s, _ := serve(t, watch.Options{}, func(ctx context.Context, every time.Duration) (domains.Census, error) {
		c, err := counting(&looks)(ctx, every)
		if c.Domains[0].Bytes%2 == 1 {
			return domains.Census{}, errors.Join(err, errors.New("the table of sockets is away"))
		}
		return c, err
	})
	p := follow(t, s)
	good, bad := 0, 0
	for good < 3 || bad < 3 {
		e := next(t, p, "moment")
		if strings.Contains(e.data, `"error":"the table of sockets is away"`) {
			if !strings.Contains(e.data, `"domains":[]`) {
				t.Fatalf("a failed reading without a list of domains: %s", e.data)
			}
			bad++
			continue
		}
		holds(t, e)
		good++
	}
}

func TestTooManyPagesAreRefused(t *testing.T) {
	s, _ := serve(t, watch.Options{}, counting(new(atomic.Int64)))
	for range 64 {
		next(t, follow(t, s), "hello")
	}
	answer, body := ask(t, "GET", s.URL+"events", nil)
	if answer.StatusCode != http.StatusServiceUnavailable || !strings.Contains(body, "Close some") ||
		answer.Header.Get("Retry-After") == "" {
		t.Errorf("%s %s", answer.Status, body)
	}
}

func TestBeyondTheLoopbackItNeedsTLS(t *testing.T) {
	for _, host := range []string{"0.0.0.0", "::", "192.0.2.1"} {
		if _, err := watch.Listen(watch.Options{Host: host}); !errors.Is(err, watch.ErrHost) {
			t.Errorf("%s: %v", host, err)
		}
	}
	c, err := watch.SelfSigned("0.0.0.0")
	if err != nil {
		t.Fatal(err)
	}
	s, _ := serve(t, watch.Options{Host: "0.0.0.0", Certificate: c}, counting(new(atomic.Int64)))
	u, err := url.Parse(s.URL)
	if err != nil || u.Scheme != "https" || u.Hostname() == "0.0.0.0" {
		t.Fatalf("%v, %v", u, err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(c.Leaf)
	transport := &http.Transport{
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) { // the name need not resolve here
			return new(net.Dialer).DialContext(ctx, network, "127.0.0.1:"+u.Port())
		},
		DisableKeepAlives: true,
	}
	transport.TLSClientConfig = tlsConfig(roots)
	client := http.Client{Transport: transport, Timeout: watchdog}
	answer, err := client.Get(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusOK || len(watch.Fingerprint(c)) != 32*3-1 {
		t.Errorf("%s, fingerprint %s", answer.Status, watch.Fingerprint(c))
	}
	for host, want := range map[string]int{"192.0.2.7": 200, "evil.example": 421} {
		r, _ := http.NewRequestWithContext(t.Context(), "GET", s.URL, nil)
		r.Host = host
		answer, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != want {
			t.Errorf("host %s: %s", host, answer.Status)
		}
	}
	// Without TLS nobody is answered, but by Go's own line.
	answer, body := ask(t, "GET", "http://127.0.0.1:"+u.Port()+u.Path, nil)
	if answer.StatusCode != http.StatusBadRequest || strings.Contains(body, "<html") {
		t.Errorf("%s %s", answer.Status, body)
	}
}

func TestAPortThatIsTakenIsAnError(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	port := l.Addr().(*net.TCPAddr).Port
	if _, err := watch.Listen(watch.Options{Port: port}); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("%v", err)
	}
}

func tlsConfig(roots *x509.CertPool) *tls.Config { return &tls.Config{RootCAs: roots} }
