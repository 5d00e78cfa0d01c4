package watch

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"time"

	"github.com/shoal-mp/shoal/cmd/internal/domains"
)

//go:embed page
var files embed.FS

// Options say where to listen, and how often to look.
type Options struct {
	Host  string // "" is 127.0.0.1
	Port  int    // 0 is any that is free
	Every time.Duration
	// Certificate is what the server shows to browsers. Beyond the loopback there has to be one.
	Certificate *tls.Certificate
	// Joins are the shoal watches of other machines, at most 32, whose programs are shown as well.
	Joins []Join

	place string // tests say where they are
}

// ErrHost is wrapped where the network could see the page without TLS.
var ErrHost = errors.New("a page that others can reach needs TLS")

// patience is how long a browser may take to read what it was sent, and to ask.
var patience = 10 * time.Second

// mostHosts can be joined.
const mostHosts = 32

// A Server is a page and who listens for it.
type Server struct {
	URL string // with the token

	listener net.Listener
	guard    *guard
	reader   *reader
	place    string
}

// Listen takes the port.
func Listen(o Options) (*Server, error) {
	return listen(o, new(domains.Watcher).Look)
}

func listen(o Options, look func(context.Context, time.Duration) (domains.Census, error)) (*Server, error) {
	if o.Host == "" {
		o.Host = "127.0.0.1"
	}
	at, err := net.ResolveTCPAddr("tcp", net.JoinHostPort(o.Host, strconv.Itoa(o.Port)))
	if err != nil {
		return nil, fmt.Errorf("host %s: %w", o.Host, err)
	}
	known := make(map[string]bool)
	for _, j := range o.Joins {
		if known[j.key()] {
			return nil, fmt.Errorf("%s is joined twice", j.key())
		}
		known[j.key()] = true
	}
	if len(o.Joins) > mostHosts {
		return nil, fmt.Errorf("%d hosts are joined; a page shows %d", len(o.Joins), mostHosts)
	}
	local := at.IP.IsLoopback()
	if !local && o.Certificate == nil {
		return nil, fmt.Errorf("host %s: %w", o.Host, ErrHost)
	}
	l, err := net.ListenTCP("tcp", at)
	if err != nil {
		return nil, err
	}
	s := &Server{listener: l, reader: newReader(look, o.Every), place: cmp.Or(o.place, place())}
	s.reader.name, _ = os.Hostname()
	for _, j := range o.Joins {
		s.reader.hosts = append(s.reader.hosts, newHost(j, s.place))
	}
	s.guard = &guard{token: rand.Text(), names: []string{o.Host}, local: local, next: s.routes()}
	scheme, host := "http", o.Host
	if at.IP.IsUnspecified() { // all addresses of this machine, which is known by its name
		if host, err = os.Hostname(); err != nil {
			return nil, errors.Join(err, l.Close())
		}
		s.guard.names = append(s.guard.names, host)
	}
	if o.Certificate != nil {
		scheme, s.guard.leaf = "https", o.Certificate.Leaf
		s.listener = tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{*o.Certificate},
			MinVersion: tls.VersionTLS12})
	}
	port := l.Addr().(*net.TCPAddr).Port
	s.URL = (&url.URL{Scheme: scheme, Host: net.JoinHostPort(host, strconv.Itoa(port)), Path: "/" + s.guard.token + "/"}).
		String()
	return s, nil
}

// Serve answers until ctx is done, tells the pages so, and returns nil then.
func (s *Server) Serve(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	read := make(chan struct{})
	go func() {
		defer close(read)
		s.reader.run(ctx)
	}()
	server := &http.Server{Handler: s.guard, ReadTimeout: patience, WriteTimeout: patience,
		IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 16 << 10, ErrorLog: log.New(quiet{}, "", 0)}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(s.listener) }()
	var err error
	select {
	case <-ctx.Done():
	case err = <-failed:
	}
	stop()
	<-read // so the streams have ended, or end with their next write
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience/5)
	defer cancel()
	if server.Shutdown(end) != nil {
		server.Close() // of a browser that does not read there is nothing to wait for
	}
	return err
}

// quiet drops what net/http logs: browsers that end a connection, or do not trust a certificate.
type quiet struct{}

func (quiet) Write(b []byte) (int, error) { return len(b), nil }

// routes serves what is behind the token.
func (s *Server) routes() http.Handler {
	page, err := fs.Sub(files, "page")
	if err != nil {
		panic(err) // the name is a constant
	}
	mux := http.NewServeMux()
	mux.Handle("/", http.FileServerFS(page))
	mux.HandleFunc("/events", func(w http.ResponseWriter, r *http.Request) { s.events(w, r, pages) })
	mux.HandleFunc("/"+own, func(w http.ResponseWriter, r *http.Request) { s.events(w, r, others) })
	return mux
}

// hello is what a subscriber is told first.
func (s *Server) hello() news {
	data, err := json.Marshal(hello{Name: s.reader.name, Place: s.place, Every: s.reader.every.Milliseconds()})
	if err != nil {
		panic(err) // texts and a number
	}
	return news{"hello", data}
}

// place says whose programs are seen from here: those of a user, in a network of a machine that has
// booted once.
func place() string {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	network, err2 := os.Readlink("/proc/self/ns/net")
	if err != nil || err2 != nil {
		return rand.Text()
	}
	return fmt.Sprintf("%x", sha256.Sum256(fmt.Append(boot, network, os.Getuid())))
}

// events sends what there is, and then each reading, until the browser goes or the reader ends.
func (s *Server) events(w http.ResponseWriter, r *http.Request, of side) {
	first, next, ok := s.reader.subscribe(of)
	if !ok {
		w.Header().Set("Retry-After", "10")
		refuse(w, http.StatusServiceUnavailable, "Too many pages", "Close some of the tabs that show this page.")
		return
	}
	defer s.reader.unsubscribe(next)
	w.Header().Set("Content-Type", "text/event-stream")
	control := http.NewResponseController(w)
	control.SetReadDeadline(time.Time{}) // the request is here, and the page stays
	send := func(n news) error {
		control.SetWriteDeadline(time.Now().Add(patience))
		if _, err := fmt.Fprintf(w, "event: %s\ndata: %s\n\n", n.event, n.data); err != nil {
			return err
		}
		return control.Flush()
	}
	if send(s.hello()) != nil {
		return
	}
	for _, n := range first {
		if send(n) != nil {
			return
		}
	}
	for {
		select {
		case n, ok := <-next:
			if !ok {
				send(news{"end", []byte("{}")})
				return
			}
			if send(n) != nil {
				return
			}
		case <-r.Context().Done():
			return
		}
	}
}
