package watch

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"embed"
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
}

// ErrHost is wrapped where the network could see the page without TLS.
var ErrHost = errors.New("a page that others can reach needs TLS")

// patience is how long a browser may take to read what it was sent, and to ask.
const patience = 10 * time.Second

// A Server is a page and who listens for it.
type Server struct {
	URL string // with the token

	listener net.Listener
	guard    *guard
	reader   *reader
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
	local := at.IP.IsLoopback()
	if !local && o.Certificate == nil {
		return nil, fmt.Errorf("host %s: %w", o.Host, ErrHost)
	}
	l, err := net.ListenTCP("tcp", at)
	if err != nil {
		return nil, err
	}
	s := &Server{listener: l, reader: newReader(look, o.Every)}
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
	server := &http.Server{Handler: s.guard, ReadHeaderTimeout: patience, IdleTimeout: 2 * time.Minute,
		MaxHeaderBytes: 16 << 10, ErrorLog: log.New(quiet{}, "", 0)}
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
	mux.HandleFunc("/events", s.events)
	return mux
}

// events sends what there is, and then each reading, until the browser goes or the reader ends.
func (s *Server) events(w http.ResponseWriter, r *http.Request) {
	first, next, ok := s.reader.subscribe()
	if !ok {
		w.Header().Set("Retry-After", "10")
		refuse(w, http.StatusServiceUnavailable, "Too many pages", "Close some of the tabs that show this page.")
		return
	}
	defer s.reader.unsubscribe(next)
	w.Header().Set("Content-Type", "text/event-stream")
	control := http.NewResponseController(w)
	send := func(n news) error {
		control.SetWriteDeadline(time.Now().Add(patience))
		if _, err := fmt.Fprintf(w, "event: %s\ndata: %s\n\n", n.event, n.data); err != nil {
			return err
		}
		return control.Flush()
	}
	if send(news{"hello", []byte("{}")}) != nil {
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
