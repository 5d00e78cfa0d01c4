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

// Options configure a [Server].
type Options struct {
	Host  string // "" means 127.0.0.1
	Port  int    // 0 means any free port
	Every time.Duration
	// Certificate is the server's TLS certificate. It must be set if Host is not a loopback
	// address.
	Certificate *tls.Certificate
	// Joins lists up to 32 instances of shoal watch on other machines. Their programs are shown as
	// well.
	Joins []Join

	place string // overridden by tests
}

// ErrHost is wrapped if the page would be reachable from the network without TLS.
var ErrHost = errors.New("pages served beyond the loopback require TLS")

// patience is the timeout for reading a request and for writing a response.
var patience = 10 * time.Second

// mostHosts is the maximum number of joined hosts.
const mostHosts = 32

// A Server serves the page. [Listen] creates it.
type Server struct {
	URL string // contains the token

	listener net.Listener
	guard    *guard
	reader   *reader
	place    string
}

// Listen opens the port. The caller must call [Server.Serve], which closes it. The error wraps
// [ErrHost] if TLS is required and missing. A host that is joined twice, or too many of them,
// are errors as well.
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
			return nil, fmt.Errorf("host %s is joined more than once", j.key())
		}
		known[j.key()] = true
	}
	if len(o.Joins) > mostHosts {
		return nil, fmt.Errorf("%d hosts joined, want at most %d", len(o.Joins), mostHosts)
	}
	local := at.IP.IsLoopback()
	if !local && o.Certificate == nil {
		return nil, fmt.Errorf("host %s: %w", o.Host, ErrHost)
	}
	l, err := net.ListenTCP("tcp", at)
	if err != nil {
		return nil, err
	}
	s := &Server{listener: l, reader: newReader(look, o.Every), place: cmp.Or(o.place, placeID())}
	s.reader.name, _ = os.Hostname()
	for _, j := range o.Joins {
		s.reader.hosts = append(s.reader.hosts, newHost(j, s.place))
	}
	s.guard = &guard{token: rand.Text(), names: []string{o.Host}, local: local, next: s.routes()}
	scheme, host := "http", o.Host
	if at.IP.IsUnspecified() { // the machine is known by its host name
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
	s.URL = (&url.URL{Scheme: scheme, Host: net.JoinHostPort(host, strconv.Itoa(port)),
		Path: "/" + s.guard.token + "/"}).
		String()
	return s, nil
}

// Serve answers requests until ctx is done, notifies the open pages and returns nil. It returns an
// error if the server fails earlier. It must be called only once.
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
	<-read // the streams have ended or end with their next write
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience/5)
	defer cancel()
	if server.Shutdown(end) != nil {
		server.Close() // do not wait for a browser that does not read
	}
	return err
}

// quiet discards the log of net/http, which reports aborted connections and untrusted certificates.
type quiet struct{}

func (quiet) Write(b []byte) (int, error) { return len(b), nil }

// routes returns the handler for paths after the token.
func (s *Server) routes() http.Handler {
	page, err := fs.Sub(files, "page")
	if err != nil {
		panic(err) // cannot happen: constant name
	}
	mux := http.NewServeMux()
	mux.Handle("/", http.FileServerFS(page))
	mux.HandleFunc("/events", func(w http.ResponseWriter, r *http.Request) { s.streamEvents(w, r, pages) })
	mux.HandleFunc("/"+own, func(w http.ResponseWriter, r *http.Request) { s.streamEvents(w, r, others) })
	return mux
}

// helloEvent returns the first event of every stream.
func (s *Server) helloEvent() news {
	data, err := json.Marshal(hello{Name: s.reader.name, Place: s.place, Every: s.reader.every.Milliseconds()})
	if err != nil {
		panic(err) // cannot happen: strings and a number
	}
	return news{"hello", data}
}

// placeID identifies the set of visible programs by the boot ID, the network namespace and the
// user: it is equal for two processes that see the same programs. It is random if these cannot
// be read.
func placeID() string {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	network, err2 := os.Readlink("/proc/self/ns/net")
	if err != nil || err2 != nil {
		return rand.Text()
	}
	return fmt.Sprintf("%x", sha256.Sum256(fmt.Append(boot, network, os.Getuid())))
}

// streamEvents streams the current state and then each reading until the client disconnects or
// the reader ends. of is the kind of client.
func (s *Server) streamEvents(w http.ResponseWriter, r *http.Request, of side) {
	first, next, ok := s.reader.subscribe(of)
	if !ok {
		w.Header().Set("Retry-After", "10")
		respondError(w, http.StatusServiceUnavailable, "Too many pages", "Close some tabs that show this page.")
		return
	}
	defer s.reader.unsubscribe(next)
	w.Header().Set("Content-Type", "text/event-stream")
	control := http.NewResponseController(w)
	control.SetReadDeadline(time.Time{}) // the response outlives the read timeout
	send := func(n news) error {
		control.SetWriteDeadline(time.Now().Add(patience))
		if _, err := fmt.Fprintf(w, "event: %s\ndata: %s\n\n", n.event, n.data); err != nil {
			return err
		}
		return control.Flush()
	}
	if send(s.helloEvent()) != nil {
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
