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

// Options configure a connection to a broker. At most one kind of credentials should be set; the
// URL may contain a user and a password as well.
type Options struct {
	User, Password string
	Token          string
	NKeyFile       string      // file with the seed of an NKey
	CredsFile      string      // file with a JWT and its NKey, in the format of nsc
	TLS            *tls.Config // root CAs, and a client certificate if required
	Name           string      // client name; default: program name and process id
	// Timeout is the time to wait for an answer of one broker; default 5 s.
	Timeout time.Duration
}

const (
	defaultTimeout = 5 * time.Second
	leastVersion   = "2.11"
	leastPayload   = 64 << 10
	// headroom is the part of max_payload that is reserved for headers.
	headroom = 1 << 10
)

// A Conn is a connection to a broker. Any number of queues and stores may share it. If the
// connection breaks, it is made again, to another node of the cluster if necessary, and blocked
// operations continue. Its methods may be called from several goroutines.
type Conn struct {
	nc      *client.Conn
	js      jetstream.JetStream
	timeout time.Duration
	inbox   string // subject prefix of responses to requests

	closed atomic.Bool
	mu     sync.Mutex
	up     chan struct{}      // closed while connected
	asked  map[uint64]*answer // requests without a response, by number
	last   uint64             // number of the last request
	cut    chan struct{}      // closed when the connection breaks
	left   <-chan struct{}    // last session that this process disconnected itself
	node   string             // id of the node from which switchNode disconnected
	others int                // addresses left to try; several may belong to one node
	quiet  atomic.Int64       // time since start at which the broker became silent; 0 if it answers
}

// errCut is the error of a request that got no response because the connection broke.
var errCut = errors.New("nats: connection lost")

// Connect connects to a broker and checks that it supports queues. url may be a list of URLs,
// separated by commas; Connect uses the first that answers. It waits up to 4 times Options.Timeout
// while a cluster has no leader. The caller must close the connection with [Conn.Close]. Errors are
// [*HostError] and wrap [ErrUnreachable], [ErrCredentials] or [ErrBroker].
func Connect(ctx context.Context, url string, opts Options) (*Conn, error) {
	c := &Conn{timeout: opts.Timeout, up: make(chan struct{}), cut: make(chan struct{}),
		asked: make(map[uint64]*answer)}
	if c.timeout <= 0 {
		c.timeout = defaultTimeout
	}
	set, err := c.clientOptions(ctx, url, opts)
	if err != nil {
		return nil, hostError("connect", hostNames(url), err)
	}
	close(c.up)
	if c.nc, err = connect(ctx, set); err != nil {
		return nil, hostError("connect", hostNames(url), err)
	}
	if err := c.checkBroker(ctx); err != nil {
		c.Close()
		return nil, hostError("connect", hostNames(url), err)
	}
	return c, nil
}

// hostNames returns the hosts of a comma-separated list of URLs, without user names and passwords.
func hostNames(urls string) string {
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

// connect connects with the client library. The caller must close the connection. The library
// takes no context, so connect runs it on another goroutine; if ctx ends first, it returns an
// error that wraps [ErrUnreachable], and closes a connection that arrives later.
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

func (c *Conn) clientOptions(ctx context.Context, url string, opts Options) (client.Options, error) {
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
	o.DisconnectedErrCB = func(*client.Conn, error) { c.markDisconnected() }
	o.ReconnectedCB = func(*client.Conn) { c.markReconnected() }
	o.ClosedCB = func(*client.Conn) { c.markDisconnected() }
	o.AsyncErrorCB = func(*client.Conn, *client.Subscription, error) {}
	var more []client.Option
	if opts.TLS != nil {
		more = append(more, client.Secure(opts.TLS))
	}
	if opts.CredsFile != "" {
		if _, err := os.Stat(opts.CredsFile); err != nil {
			return o, wrapBoth(ErrCredentials, err)
		}
		more = append(more, client.UserCredentials(opts.CredsFile))
	}
	if opts.NKeyFile != "" {
		key, err := client.NkeyOptionFromSeed(opts.NKeyFile)
		if err != nil {
			return o, wrapBoth(ErrCredentials, err)
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

// checkBroker checks the version and the limits of the broker, and subscribes to responses. The
// error wraps [ErrBroker] if the broker is older than leastVersion or limits messages to fewer
// than leastPayload bytes.
func (c *Conn) checkBroker(ctx context.Context) (err error) {
	if v := c.nc.ConnectedServerVersion(); isOlder(v, leastVersion) {
		return &HostError{"connect", c.Host(), fmt.Errorf("%w: its version is %s", ErrBroker, v),
			"install nats-server " + leastVersion + " or later, or use shoal broker"}
	}
	if n := c.nc.MaxPayload(); n < leastPayload {
		return &HostError{"connect", c.Host(), fmt.Errorf("%w: its max_payload is %d bytes", ErrBroker, n),
			fmt.Sprintf("set max_payload to %d or more", leastPayload)}
	}
	if c.js, err = jetstream.New(c.nc, jetstream.WithDefaultTimeout(c.timeout)); err != nil {
		return err
	}
	if _, err := retryRequest(ctx, c, c.js.AccountInfo); err != nil {
		if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil { // no JetStream: no answer
			err = wrapBoth(jetstream.ErrJetStreamNotEnabled, err)
		}
		return err
	}
	c.inbox = c.nc.NewInbox() + "."
	_, err = c.nc.Subscribe(c.inbox+"*", c.handleResponse)
	return err
}

// isOlder reports whether version v precedes least. Both have numbers separated by dots; a v
// that cannot be read is older.
func isOlder(v, least string) bool {
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

// Host returns the host and port of the connected broker, or the configured ones if there is no
// connection.
func (c *Conn) Host() string {
	if c.nc == nil {
		return ""
	}
	if h := hostNames(c.nc.ConnectedUrlRedacted()); h != "" {
		return h
	}
	return hostNames(strings.Join(c.nc.Servers(), ","))
}

// Close closes the connection. Values that its queues have received but not acknowledged are
// delivered to other consumers after QueueOptions.AckWait; to return them at once, the caller
// should close the queues first. Close is idempotent and always returns nil.
func (c *Conn) Close() error {
	if !c.closed.Swap(true) && c.nc != nil {
		c.nc.Close()
	}
	return nil
}

// markDisconnected fails the requests in flight with [errCut] and marks the connection as
// broken. The client library calls it when it loses the connection.
func (c *Conn) markDisconnected() {
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

// markReconnected marks the connection as restored. The client library calls it after it has
// connected again. Inside a cluster, a node may be known by another address than the one the
// user configured, so the new connection may lead back to the node that [Conn.switchNode] left.
// In that case markReconnected reconnects to the next address.
func (c *Conn) markReconnected() {
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

// recordResponse records that the broker answered.
func (c *Conn) recordResponse() {
	if c.quiet.Load() != 0 {
		c.quiet.Store(0)
	}
}

// recordSilence records that the broker did not answer although the connection is up. A node that
// is partitioned from its cluster accepts messages, but reaches no leader. If the silence lasts
// longer than [silent], recordSilence connects to another node.
func (c *Conn) recordSilence() {
	now := sinceStart()
	if c.quiet.CompareAndSwap(0, now) {
		return
	}
	since := c.quiet.Load()
	if since == 0 || time.Duration(now-since) < silent || len(c.nc.Servers()) < 2 || !c.quiet.CompareAndSwap(since, 0) {
		return
	}
	c.switchNode()
}

// switchNode disconnects from the current node and connects to another one.
func (c *Conn) switchNode() {
	c.mu.Lock()
	c.left, c.node, c.others = c.cut, c.nc.ConnectedServerId(), len(c.nc.Servers())-1
	c.mu.Unlock()
	c.nc.ForceReconnect()
}

// hasLeft reports whether this process ended a session itself, with [Conn.switchNode].
func (c *Conn) hasLeft(session <-chan struct{}) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.left == session
}

// sessionDone returns a channel that is closed when the current connection breaks, or the next
// one if there is none. The channel also identifies the session.
func (c *Conn) sessionDone() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cut
}

// awaitConnection waits until the connection is up. It returns [ErrClosed] after [Conn.Close],
// the client library's error if that has given up, and an error that wraps errCut if ctx ends
// first.
func (c *Conn) awaitConnection(ctx context.Context) error {
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
			return wrapBoth(errCut, context.Cause(ctx))
		case <-time.After(time.Second): // poll: it may have been closed for good
		}
	}
}

// An answer is a pending response. done is closed when msg or err is set.
type answer struct {
	n    uint64
	done chan struct{}
	msg  *client.Msg
	err  error

	at int64 // time since start at which the heartbeat was sent
	of *held // message that the heartbeat extends; nil for other requests
}

// sendRequest publishes a message and returns its pending response. The caller must pass it to
// [Conn.awaitResponse] or [Conn.abandonRequest].
func (c *Conn) sendRequest(m *client.Msg) (*answer, error) {
	a := new(answer)
	if err := c.send(m, a); err != nil {
		return nil, err
	}
	return a, nil
}

// send publishes a message and registers a as its pending response, as [Conn.sendRequest] does
// for a new answer. It sets m.Reply.
func (c *Conn) send(m *client.Msg, a *answer) error {
	a.done = make(chan struct{})
	c.mu.Lock()
	c.last++
	a.n = c.last
	c.asked[a.n] = a
	c.mu.Unlock()
	m.Reply = c.inbox + strconv.FormatUint(a.n, 36)
	if err := c.nc.PublishMsg(m); err != nil {
		c.abandonRequest(a)
		return err
	}
	return nil
}

// handleResponse completes the pending request that m answers. The client library calls it for
// each response. It ignores responses to abandoned requests.
func (c *Conn) handleResponse(m *client.Msg) {
	n, err := strconv.ParseUint(m.Subject[len(c.inbox):], 36, 64)
	if err != nil {
		return
	}
	c.mu.Lock()
	a := c.asked[n]
	delete(c.asked, n)
	c.mu.Unlock()
	if a == nil {
		return // the request was abandoned
	}
	a.msg = m
	if len(m.Data) == 0 && m.Header.Get("Status") == "503" {
		a.err = client.ErrNoResponders
	}
	if a.of != nil && a.err == nil {
		a.of.confirmHeartbeat(a.at)
	}
	close(a.done)
}

// abandonRequest forgets a pending request. Its response will be ignored; a.done may stay open
// forever.
func (c *Conn) abandonRequest(a *answer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.asked, a.n)
}

// awaitResponse waits for the response to a request. It returns errCut if the connection breaks,
// [client.ErrNoResponders] if no stream or service has received the request, and
// [client.ErrTimeout] if no response comes within the connection's timeout. In the last case,
// and if ctx ends, it abandons the request.
func (c *Conn) awaitResponse(ctx context.Context, a *answer) (*client.Msg, error) {
	if isClosed(a.done) {
		return a.msg, a.err
	}
	timer := time.NewTimer(c.timeout)
	defer timer.Stop()
	select {
	case <-a.done:
		return a.msg, a.err
	case <-ctx.Done():
		c.abandonRequest(a)
		return nil, context.Cause(ctx)
	case <-timer.C:
		c.abandonRequest(a)
		return nil, client.ErrTimeout
	}
}

// A silence measures how long a connected broker has not answered. It starts again with
// each new session that this process did not begin itself with [Conn.switchNode].
type silence struct {
	since   time.Time
	session <-chan struct{} // session of the last failure
}

// recordFailure records a failure in a session and returns the time since the first failure.
func (s *silence) recordFailure(c *Conn, session <-chan struct{}) time.Duration {
	if s.since.IsZero() || s.session != session && !c.hasLeft(s.session) {
		s.since = time.Now()
	}
	s.session = session
	return time.Since(s.since)
}

// retryRequest calls f until the broker answers. It retries if the connection broke during the
// call, the cluster has no leader, or brokers needed for a new stream are missing, so f may run
// more than once and must be idempotent. It returns the error of missing brokers after the time
// that joinTimeouts allows, and [ErrUnreachable] if there was no answer for 4 timeouts.
func retryRequest[R any](ctx context.Context, c *Conn, f func(ctx context.Context) (R, error)) (R, error) {
	var quiet silence
	for pause := leastPause; ; pause = min(2*pause, mostPause) {
		var none R
		session := c.sessionDone() // must precede connected, so that a later break is noticed
		if err := c.awaitConnection(ctx); err != nil {
			return none, err
		}
		r, cut, err := tryRequest(ctx, c, session, f)
		silent, timeouts := isSilence(err), joinTimeouts(err)
		if silent {
			timeouts = 4
		}
		switch {
		case !silent:
			c.recordResponse()
		case !cut:
			c.recordSilence()
		}
		switch {
		case err == nil:
			return r, nil
		case ctx.Err() != nil:
			return none, fmt.Errorf("%w: %w", context.Cause(ctx), err)
		case cut:
		case timeouts == 0:
			return none, err
		case quiet.recordFailure(c, session) <= timeouts*c.timeout:
		case silent:
			return none, wrapBoth(ErrUnreachable, err)
		default:
			return none, err
		}
		if err := sleep(ctx, pause); err != nil {
			return none, err
		}
	}
}

// isSilence reports whether err means that the broker did not answer, for example while a cluster
// has no leader. It includes errors of a request that was never sent, because the client library
// may refuse to send on a broken connection before it calls DisconnectedErrCB.
func isSilence(err error) bool {
	return isAny(errCut, client.ErrReconnectBufExceeded, client.ErrConnectionReconnecting, client.ErrDisconnected,
		client.ErrStaleConnection, context.DeadlineExceeded, client.ErrTimeout, client.ErrNoResponders,
		jetstream.ErrNoStreamResponse, errLeaderless)(err) || isAPIError(codeUnavailable)(err)
}

// joinTimeouts returns the number of timeouts to wait for the brokers that a new stream needs and
// that err says are missing, or 0 if err means anything else. Just after the start of a cluster,
// its leader does not know all brokers. Those that it has heard of but not from are offline or a
// "miscellaneous issue", and worth 4 timeouts. If it names no reason, then the cluster has too few
// members: the others may join within a timeout, or there are none.
func joinTimeouts(err error) time.Duration {
	switch {
	case !isAPIError(codeNoPeers)(err):
		return 0
	case strings.Contains(err.Error(), "peer offline"), strings.Contains(err.Error(), "miscellaneous issue"):
		return 4
	case strings.HasSuffix(err.Error(), "no suitable peers for placement"):
		return 1
	}
	return 0
}

// tryRequest calls f with a context that ends with the session or after the connection's
// timeout, and returns its results. cut reports whether the connection broke meanwhile.
func tryRequest[R any](ctx context.Context, c *Conn, session <-chan struct{},
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

// lookupStream returns a stream with its current state. It retries while the stream has no
// leader. It returns [jetstream.ErrStreamNotFound] if there is no such stream, and the errors of
// retryRequest.
func (c *Conn) lookupStream(ctx context.Context, name string) (jetstream.Stream, error) {
	return retryRequest(ctx, c, func(ctx context.Context) (jetstream.Stream, error) {
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

// errLeaderless is returned if the node that answers knows no leader of the stream. The node may be
// partitioned from the cluster, and the other nodes may have a leader.
var errLeaderless = errors.New("nats: the stream has no leader")

// createStream creates a stream. It is a no-op if the stream exists with the same configuration,
// and fails if it exists with another one.
func (c *Conn) createStream(ctx context.Context, config jetstream.StreamConfig) error {
	_, err := retryRequest(ctx, c, func(ctx context.Context) (jetstream.Stream,
		error) {
		return c.js.CreateStream(ctx, config)
	})
	return err
}

// deleteStreams deletes streams. It ignores streams that do not exist.
func (c *Conn) deleteStreams(ctx context.Context, names ...string) error {
	for _, name := range names {
		_, err := retryRequest(ctx, c, func(ctx context.Context) (any, error) {
			return nil,
				c.js.DeleteStream(ctx, name)
		})
		if err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
			return err
		}
	}
	return nil
}

// countSubjects returns the subjects of a stream that match a filter, with their number of
// messages. It asks the leader, because replicas may lag. It returns
// [jetstream.ErrStreamNotFound] if there is no such stream.
func (c *Conn) countSubjects(ctx context.Context, stream, filter string) (map[string]uint64, error) {
	info, err := retryRequest(ctx, c, func(ctx context.Context) (*jetstream.StreamInfo, error) {
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

// purgeStream deletes the messages of a stream that the options select.
func (c *Conn) purgeStream(ctx context.Context, stream string, which ...jetstream.StreamPurgeOpt) error {
	_, err := retryRequest(ctx, c, func(ctx context.Context) (any, error) {
		s, err := c.js.Stream(ctx, stream)
		if err == nil {
			err = s.Purge(ctx, which...)
		}
		return nil, err
	})
	return err
}
