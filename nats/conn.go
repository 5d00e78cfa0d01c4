package nats

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	client "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Options say how to reach a broker. Of the credentials give at most one sort; a URL may have a
// user and a password as well.
type Options struct {
	User, Password string
	Token          string
	NKeyFile       string      // the seed of an NKey
	CredsFile      string      // a JWT and its NKey, as nsc writes them
	TLS            *tls.Config // the authorities, and a certificate if the broker asks for one
	Name           string      // what the broker shows of this process; default is the program's name and number
	// Timeout is how long one broker has to answer; default 5 s.
	Timeout time.Duration
}

const (
	defaultTimeout = 5 * time.Second
	leastVersion   = "2.11"
	leastPayload   = 64 << 10
	// headroom is what the headers of a message have of its largest size.
	headroom = 1 << 10
)

// A Conn is a connection with a broker, for any number of queues and stores. When it is cut, it is
// made again, with another broker of the cluster if need be, and what waits goes on. Its methods
// may be called by several goroutines.
type Conn struct {
	nc      *client.Conn
	js      jetstream.JetStream
	timeout time.Duration
	inbox   string // of the answers to requests

	closed atomic.Bool
	mu     sync.Mutex
	up     chan struct{}      // closed while connected
	asked  map[uint64]*answer // requests without an answer
	last   uint64             // number of the last request
	cut    chan struct{}      // closed when the connection is cut
	left   <-chan struct{}    // the last one that this process has cut itself
	node   string             // which node it has left by that
	others int                // of the addresses of other nodes, which may all be that node's
	quiet  atomic.Int64       // since when the broker answers nothing, by sinceStart; 0 if it does
}

// errCut is why a request has no answer.
var errCut = errors.New("nats: the connection was cut")

// Connect connects to a broker, or to the first of several URLs, separated by commas, that answers,
// and checks that it can keep queues. It waits up to 4 Options.Timeout while a cluster has no
// leader. The caller closes the connection. The errors are *HostError, and wrap ErrUnreachable,
// ErrCredentials or ErrBroker.
func Connect(ctx context.Context, url string, opts Options) (*Conn, error) {
	c := &Conn{timeout: opts.Timeout, up: make(chan struct{}), cut: make(chan struct{}),
		asked: make(map[uint64]*answer)}
	if c.timeout <= 0 {
		c.timeout = defaultTimeout
	}
	set, err := c.options(ctx, url, opts)
	if err != nil {
		return nil, hostError("connect", hosts(url), err)
	}
	close(c.up)
	if c.nc, err = connect(ctx, set); err != nil {
		return nil, hostError("connect", hosts(url), err)
	}
	if err := c.begin(ctx); err != nil {
		c.Close()
		return nil, hostError("connect", hosts(url), err)
	}
	return c, nil
}

// hosts returns the hosts of URLs, without the passwords.
func hosts(urls string) string {
	var names []string
	for u := range strings.SplitSeq(urls, ",") {
		u = strings.TrimSpace(u)
		if _, rest, ok := strings.Cut(u, "://"); ok {
			u = rest
		}
		names = append(names, u[strings.LastIndex(u, "@")+1:])
	}
	return strings.Join(names, ", ")
}

// connect is Connect of the client library, which knows no context.
func connect(ctx context.Context, opts client.Options) (*client.Conn, error) {
	type result struct {
		nc  *client.Conn
		err error
	}
	done := make(chan result, 1)
	go func() {
		nc, err := opts.Connect()
		done <- result{nc, err}
	}()
	select {
	case r := <-done:
		return r.nc, r.err
	case <-ctx.Done():
		go func() {
			if r := <-done; r.nc != nil {
				r.nc.Close()
			}
		}()
		return nil, fmt.Errorf("%w: %w", ErrUnreachable, context.Cause(ctx))
	}
}

func (c *Conn) options(ctx context.Context, url string, opts Options) (client.Options, error) {
	o := client.GetDefaultOptions()
	for u := range strings.SplitSeq(url, ",") {
		o.Servers = append(o.Servers, strings.TrimSpace(u))
	}
	o.Name = opts.Name
	if o.Name == "" {
		o.Name = filepath.Base(os.Args[0]) + " " + strconv.Itoa(os.Getpid())
	}
	o.User, o.Password, o.Token = opts.User, opts.Password, opts.Token
	o.Timeout = c.timeout
	if deadline, ok := ctx.Deadline(); ok {
		o.Timeout = max(min(o.Timeout, time.Until(deadline)), time.Millisecond)
	}
	o.MaxReconnect, o.ReconnectWait, o.ReconnectBufSize = -1, 100*time.Millisecond, -1
	o.ReconnectJitter, o.ReconnectJitterTLS = 50*time.Millisecond, 100*time.Millisecond
	o.MaxPingsOut = 3
	o.PingInterval = silent / time.Duration(o.MaxPingsOut+1)
	o.CustomDialer, o.FlusherTimeout = &dialer{Timeout: o.Timeout}, 0
	o.DisconnectedErrCB = func(*client.Conn, error) { c.down() }
	o.ReconnectedCB = func(*client.Conn) { c.again() }
	o.ClosedCB = func(*client.Conn) { c.down() }
	o.AsyncErrorCB = func(*client.Conn, *client.Subscription, error) {}
	var more []client.Option
	if opts.TLS != nil {
		more = append(more, client.Secure(opts.TLS))
	}
	if opts.CredsFile != "" {
		if _, err := os.Stat(opts.CredsFile); err != nil {
			return o, both(ErrCredentials, err)
		}
		more = append(more, client.UserCredentials(opts.CredsFile))
	}
	if opts.NKeyFile != "" {
		key, err := client.NkeyOptionFromSeed(opts.NKeyFile)
		if err != nil {
			return o, both(ErrCredentials, err)
		}
		more = append(more, key)
	}
	for _, m := range more {
		if err := m(&o); err != nil {
			return o, err
		}
	}
	return o, nil
}

// begin checks what the broker can, and listens for answers.
func (c *Conn) begin(ctx context.Context) (err error) {
	if v := c.nc.ConnectedServerVersion(); older(v, leastVersion) {
		return &HostError{"connect", c.Host(), fmt.Errorf("%w: it is version %s", ErrBroker, v),
			"install nats-server " + leastVersion + " or later, or use shoal broker"}
	}
	if n := c.nc.MaxPayload(); n < leastPayload {
		return &HostError{"connect", c.Host(), fmt.Errorf("%w: its messages end at %d bytes", ErrBroker, n),
			fmt.Sprintf("set max_payload to %d or more", leastPayload)}
	}
	if c.js, err = jetstream.New(c.nc, jetstream.WithDefaultTimeout(c.timeout)); err != nil {
		return err
	}
	if _, err := ask(ctx, c, c.js.AccountInfo); err != nil {
		if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil { // a cluster without it is silent
			err = both(jetstream.ErrJetStreamNotEnabled, err)
		}
		return err
	}
	c.inbox = c.nc.NewInbox() + "."
	_, err = c.nc.Subscribe(c.inbox+"*", c.answered)
	return err
}

// older reports whether version v comes before least.
func older(v, least string) bool {
	a, b := strings.Split(v, "."), strings.Split(least, ".")
	for i := range b {
		if i >= len(a) {
			return true
		}
		x, err := strconv.Atoi(strings.FieldsFunc(a[i], func(r rune) bool { return r < '0' || r > '9' })[0])
		y, _ := strconv.Atoi(b[i])
		if err != nil || x != y {
			return err != nil || x < y
		}
	}
	return false
}

// Host returns the host and the port of the broker that it is connected to.
func (c *Conn) Host() string {
	if c.nc == nil {
		return ""
	}
	if h := hosts(c.nc.ConnectedUrlRedacted()); h != "" {
		return h
	}
	return hosts(strings.Join(c.nc.Servers(), ","))
}

// Close closes the connection. What its queues have taken and not acknowledged goes to other
// consumers after the time of QueueOptions.AckWait, or at once if they were closed before. Close is
// idempotent.
func (c *Conn) Close() error {
	if !c.closed.Swap(true) && c.nc != nil {
		c.nc.Close()
	}
	return nil
}

// down says that requests without an answer will get none.
func (c *Conn) down() {
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.cut)
	c.cut = make(chan struct{})
	c.quiet.Store(0)
	select {
	case <-c.up:
		c.up = make(chan struct{})
	default:
	}
	for n, a := range c.asked {
		a.err = errCut
		close(a.done)
		delete(c.asked, n)
	}
}

// again says that there is a connection. A node has several addresses where others of its cluster
// call it by another one than the user does: then it may be the node that was left.
func (c *Conn) again() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.others--; c.others > 0 && c.node == c.nc.ConnectedServerId() {
		c.left = c.cut
		c.nc.ForceReconnect()
		return
	}
	c.others = 0
	select {
	case <-c.up:
	default:
		close(c.up)
	}
}

// heard says that the broker has answered.
func (c *Conn) heard() {
	if c.quiet.Load() != 0 {
		c.quiet.Store(0)
	}
}

// unheard says that nobody has answered, though there is a connection. A node that is cut off from
// the others of its cluster takes what is sent, and knows nobody who answers. After a while another
// node is asked.
func (c *Conn) unheard() {
	now := sinceStart()
	if c.quiet.CompareAndSwap(0, now) {
		return
	}
	since := c.quiet.Load()
	if since == 0 || time.Duration(now-since) < silent || len(c.nc.Servers()) < 2 || !c.quiet.CompareAndSwap(since, 0) {
		return
	}
	c.leave()
}

// leave has the connection made again with another node.
func (c *Conn) leave() {
	c.mu.Lock()
	c.left, c.node, c.others = c.cut, c.nc.ConnectedServerId(), len(c.nc.Servers())-1
	c.mu.Unlock()
	c.nc.ForceReconnect()
}

// hasLeft reports whether it was this process that has cut a connection.
func (c *Conn) hasLeft(session <-chan struct{}) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.left == session
}

// session returns a channel that is closed when the connection that there is now is cut.
func (c *Conn) session() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cut
}

// connected waits for a connection.
func (c *Conn) connected(ctx context.Context) error {
	for {
		if c.closed.Load() || c.nc.IsClosed() {
			if err := c.nc.LastError(); err != nil && !c.closed.Load() {
				return err
			}
			return ErrClosed
		}
		c.mu.Lock()
		up := c.up
		c.mu.Unlock()
		select {
		case <-up:
			return nil
		default:
		}
		select {
		case <-up:
			return nil
		case <-ctx.Done():
			return both(errCut, context.Cause(ctx))
		case <-time.After(time.Second): // it may have been closed for good
		}
	}
}

// An answer is what a request waits for.
type answer struct {
	n    uint64
	done chan struct{}
	msg  *client.Msg
	err  error

	at int64 // when a sign of life was sent
	of *held // that it is for; nil for another request
}

// request sends a message, of which the caller waits for the answer.
func (c *Conn) request(m *client.Msg) (*answer, error) {
	a := new(answer)
	if err := c.send(m, a); err != nil {
		return nil, err
	}
	return a, nil
}

// send sends a message, of which something waits for the answer.
func (c *Conn) send(m *client.Msg, a *answer) error {
	a.done = make(chan struct{})
	c.mu.Lock()
	c.last++
	a.n = c.last
	c.asked[a.n] = a
	c.mu.Unlock()
	m.Reply = c.inbox + strconv.FormatUint(a.n, 36)
	if err := c.nc.PublishMsg(m); err != nil {
		c.forget(a)
		return err
	}
	return nil
}

// answered takes the answer to a request.
func (c *Conn) answered(m *client.Msg) {
	n, err := strconv.ParseUint(m.Subject[len(c.inbox):], 36, 64)
	if err != nil {
		return
	}
	c.mu.Lock()
	a := c.asked[n]
	delete(c.asked, n)
	c.mu.Unlock()
	if a == nil {
		return // it was given up
	}
	a.msg = m
	if len(m.Data) == 0 && m.Header.Get("Status") == "503" {
		a.err = client.ErrNoResponders
	}
	if a.of != nil && a.err == nil {
		a.of.lives(a.at)
	}
	close(a.done)
}

// forget gives up a request.
func (c *Conn) forget(a *answer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.asked, a.n)
}

// wait waits for the answer to a request, and gives it up when ctx ends or the broker is silent for
// too long.
func (c *Conn) wait(ctx context.Context, a *answer) (*client.Msg, error) {
	if isClosed(a.done) {
		return a.msg, a.err
	}
	timer := time.NewTimer(c.timeout)
	defer timer.Stop()
	select {
	case <-a.done:
		return a.msg, a.err
	case <-ctx.Done():
		c.forget(a)
		return nil, context.Cause(ctx)
	case <-timer.C:
		c.forget(a)
		return nil, client.ErrTimeout
	}
}

// ask has f ask the broker, and again where the connection was cut meanwhile or a cluster had no
// leader. What it asks for may be done twice.
func ask[R any](ctx context.Context, c *Conn, f func(ctx context.Context) (R, error)) (R, error) {
	var quiet time.Time // since when nobody has answered, though there is a connection
	for pause := leastPause; ; pause = min(2*pause, mostPause) {
		var none R
		session := c.session() // before it is known to be up: what cuts it from here on is noticed
		if err := c.connected(ctx); err != nil {
			return none, err
		}
		r, cut, err := askOnce(ctx, c, session, f)
		silent := isSilence(err)
		switch {
		case !silent:
			c.heard()
		case !cut:
			c.unheard()
		}
		switch {
		case err == nil:
			return r, nil
		case ctx.Err() != nil:
			return none, fmt.Errorf("%w: %w", context.Cause(ctx), err)
		case !cut && !silent:
			return none, err
		case cut:
			if !c.hasLeft(session) {
				quiet = time.Time{}
			}
		case quiet.IsZero():
			quiet = time.Now()
		case time.Since(quiet) > 4*c.timeout:
			return none, both(ErrUnreachable, err)
		}
		if err := sleep(ctx, pause); err != nil {
			return none, err
		}
	}
}

// isSilence reports whether nobody has answered, as while a cluster has no leader. Or nobody was
// asked: the client library knows at times that the connection is cut, and has not said so.
func isSilence(err error) bool {
	return isAny(errCut, client.ErrReconnectBufExceeded, client.ErrConnectionReconnecting, client.ErrDisconnected,
		client.ErrStaleConnection, context.DeadlineExceeded, client.ErrTimeout, client.ErrNoResponders,
		jetstream.ErrNoStreamResponse, errLeaderless)(err) || has(codeUnavailable)(err)
}

// askOnce has f ask the broker, until the connection is cut.
func askOnce[R any](ctx context.Context, c *Conn, session <-chan struct{},
	f func(ctx context.Context) (R, error)) (r R, cut bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		select {
		case <-session:
			cancel()
		case <-ctx.Done():
		}
	}()
	r, err = f(ctx)
	cancel()
	<-stopped
	return r, isClosed(session), err
}

// stream returns a stream, and how it is now.
func (c *Conn) stream(ctx context.Context, name string) (jetstream.Stream, error) {
	return ask(ctx, c, func(ctx context.Context) (jetstream.Stream, error) {
		s, err := c.js.Stream(ctx, name)
		if err != nil {
			return nil, err
		}
		if in := s.CachedInfo().Cluster; in != nil && in.Leader == "" {
			return nil, errLeaderless
		}
		return s, nil
	})
}

// errLeaderless: a node tells of a stream that has no leader as far as it knows. One that is cut
// off from the others of its cluster knows no better, and they may have one.
var errLeaderless = errors.New("nats: the stream has no leader")

// make makes a stream, if there is none.
func (c *Conn) make(ctx context.Context, config jetstream.StreamConfig) error {
	_, err := ask(ctx, c, func(ctx context.Context) (jetstream.Stream, error) { return c.js.CreateStream(ctx, config) })
	return err
}

// delete removes streams, if they are there.
func (c *Conn) delete(ctx context.Context, names ...string) error {
	for _, name := range names {
		_, err := ask(ctx, c, func(ctx context.Context) (any, error) { return nil, c.js.DeleteStream(ctx, name) })
		if err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
			return err
		}
	}
	return nil
}

// subjects returns the subjects that a stream has now, of those that a filter names. The leader
// says so: a replica may be behind.
func (c *Conn) subjects(ctx context.Context, stream, filter string) (map[string]uint64, error) {
	info, err := ask(ctx, c, func(ctx context.Context) (*jetstream.StreamInfo, error) {
		s, err := c.js.Stream(ctx, stream)
		if err != nil {
			return nil, err
		}
		return s.Info(ctx, jetstream.WithSubjectFilter(filter))
	})
	if err != nil {
		return nil, err
	}
	return info.State.Subjects, nil
}

// purge removes messages of a stream.
func (c *Conn) purge(ctx context.Context, stream string, which ...jetstream.StreamPurgeOpt) error {
	_, err := ask(ctx, c, func(ctx context.Context) (any, error) {
		s, err := c.js.Stream(ctx, stream)
		if err == nil {
			err = s.Purge(ctx, which...)
		}
		return nil, err
	})
	return err
}
