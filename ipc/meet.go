package ipc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/codec"
	"github.com/shoal-mp/shoal/internal/crossing"
	"github.com/shoal-mp/shoal/internal/link"
	"github.com/shoal-mp/shoal/internal/sys"
)

// Note [Meeting] After the proof of the key (see package link), the listener offers its domain. The
// caller replies whether it is a member of that domain. If so, the listener sends one side of a
// pipe, and holds it until the caller confirms that it has its own reference. Then the socket is no
// longer needed. Each step is one frame.
const (
	frameOffer  = 'O' // from the listener: an offer
	frameAnswer = 'A' // from the caller: an answer
	framePipe   = 'P' // from the listener: an encoded value
	frameKeep   = 'K' // from the caller: it owns the blocks of the encoded value
)

// An offer identifies the listener's domain and describes how to join it.
type offer struct {
	Elem   string // name of the element type
	Domain [16]byte
	Addr   string // empty if the domain cannot be joined
	Token  [16]byte
}

// An answer is the caller's reply to an [offer]. Shared reports whether the caller is in the
// domain.
type answer struct {
	Elem   string
	Shared bool
}

// An encodedValue is a frame's value in encoded form: the bytes of the message, and the handles
// of its blocks, to which the bytes refer by index.
type encodedValue struct {
	Body   []byte
	Blocks []uint64
}

// Dial connects to the [Listener] at addr, which must belong to the same user; [DialWith] can
// accept others. The caller must close the connection. Dial gives up after 10 seconds, or
// earlier if ctx is done. The error wraps [ErrKey], [ErrPeer], [ErrType], shm.ErrUser or
// ECONNREFUSED, depending on the cause.
//
// If the process has no domain yet, it joins the listener's domain, which becomes its default
// domain permanently. With an address that begins with "tcp://" it does not: values are passed
// by copy. Then access depends on the key. With [DialWith] and tcp.Options, it may depend on
// certificates as well.
func Dial[T any](ctx context.Context, addr string, key []byte) (*Conn[T], error) {
	return DialWith[T](ctx, addr, key, MeetingOptions{})
}

// DialWith is like [Dial] with the given options.
func DialWith[T any](ctx context.Context, addr string, key []byte, opts MeetingOptions) (*Conn[T], error) {
	c, err := dialConn[T](ctx, addr, key, opts)
	if err != nil {
		return nil, fmt.Errorf("dial %s: %w", addr, err)
	}
	return c, nil
}

func dialConn[T any](ctx context.Context, addr string, key []byte, opts MeetingOptions) (_ *Conn[T], err error) {
	if err := codec.Check[T](); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, meetingTime)
	defer cancel()
	s, err := dialStream(ctx, addr, key, opts)
	if err != nil {
		return nil, err
	}
	m := meeting{link.NewConn(s, maxValue)}
	c, err := setUpDialed[T](ctx, m)
	if err != nil {
		m.Close()
	}
	return c, err
}

// dialStream connects to addr and proves the key in both directions. The caller must close the
// returned stream.
func dialStream(ctx context.Context, addr string, key []byte, opts MeetingOptions) (link.Stream, error) {
	t, host, err := transportFor(addr)
	if err != nil {
		return nil, err
	}
	if t != nil {
		return t.Dial(ctx, host, key, opts.Transport)
	}
	s, err := sys.Dial(ctx, addr)
	if err != nil {
		return nil, err
	}
	bound, err := link.ClientBinding(s)
	if err == nil {
		err = opts.checkUser(s)
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	stop := context.AfterFunc(ctx, func() { s.SetDeadline(time.Unix(1, 0)) })
	err = link.Client(s, key, bound)
	if !stop() && err != nil {
		err = errors.Join(context.Cause(ctx), err)
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, s.SetDeadline(time.Time{})
}

// MeetingOptions configure [ListenWith] and [DialWith]. The zero value has the defaults of [Listen]
// and [Dial].
type MeetingOptions struct {
	// AnyUser accepts processes of every user of this machine that prove the key. By default only
	// processes of the same user are accepted; the kernel reports the peer's user before any data
	// is exchanged. Processes of different users do not share memory: values are passed by copy.
	// The default also rejects processes of a user namespace that does not map this user. AnyUser
	// has no effect on connections to other machines, because their users are unknown.
	AnyUser bool

	// Transport configures connections to other machines: tcp.Options of package ipc/tcp for
	// addresses that begin with "tcp://". It has no effect on connections within this machine. The
	// default is the zero tcp.Options.
	Transport TransportOptions
}

// TransportOptions are options for connections to other machines. tcp.Options of package ipc/tcp
// implements it.
type TransportOptions interface {
	// TransportOptions does nothing. It marks the types that are TransportOptions.
	TransportOptions()
}

// checkUser returns nil if the peer of s belongs to this process's user or if o.AnyUser is set.
// Otherwise it returns shm.ErrUser.
func (o MeetingOptions) checkUser(s *sys.Conn) error {
	if o.AnyUser {
		return nil
	}
	uid, _, err := sys.PeerUID(s)
	if err == nil && uid != os.Getuid() {
		err = fmt.Errorf("%w: peer has user %d: set AnyUser of ipc.MeetingOptions to accept it", arena.ErrUser, uid)
	}
	return err
}

// setUpDialed is the setup after the handshake on the side that has called [Dial]. It returns
// [ErrType] if the two sides have different element types. If it succeeds, the connection owns
// m; after an error the caller must close m.
func setUpDialed[T any](ctx context.Context, m meeting) (*Conn[T], error) {
	o, err := recvFrame[offer](ctx, m, frameOffer)
	if err != nil {
		return nil, err
	}
	a := answer{Elem: elemName[T](), Shared: joinOffered(ctx, o)}
	if err := sendFrame(ctx, m, frameAnswer, a); err != nil {
		return nil, err
	}
	if o.Elem != a.Elem {
		return nil, fmt.Errorf("%w: connection of %s, want %s", ErrType, o.Elem, a.Elem)
	}
	if !a.Shared {
		return newStreamConn[T](m)
	}
	p, err := recvFrame[encodedValue](ctx, m, framePipe)
	if err != nil {
		return nil, err
	}
	pipe, err := unpackPipe[T](p)
	if err == nil {
		err = m.Send(ctx, frameKeep, nil)
	}
	if err != nil {
		if pipe != nil {
			pipe.Close()
		}
		return nil, err
	}
	m.Close()
	return &Conn[T]{pipe: pipe}, nil
}

// joinOffered reports whether this process is a member of the offered domain. If this process
// has no domain yet, joinOffered joins the offered one and makes it the default domain. If it
// cannot join, it returns false.
func joinOffered(ctx context.Context, o offer) bool {
	d := arena.Current()
	if d == nil && o.Addr != "" {
		var err error
		if d, err = arena.Join(ctx, o.Addr, o.Token); err != nil {
			return false // usually another namespace: values are passed by copy
		}
		if !arena.SetFirst(d) { // another goroutine was faster
			d.Close()
			d = arena.Current()
		}
	}
	return d != nil && d.Token() == o.Domain
}

// handshakeLocal proves the key to a process of this machine and sets up the connection, on the
// listener's side. After an error the caller must close s; otherwise the returned connection
// owns it.
func (l *Listener[T]) handshakeLocal(s *sys.Conn) (*Conn[T], error) {
	s.SetDeadline(time.Now().Add(meetingTime))
	bound, err := link.ServerBinding(s)
	if err == nil {
		err = link.Server(s, l.key, bound)
	}
	l.strangers.Leave(s)
	if err != nil {
		return nil, err
	}
	s.SetDeadline(time.Time{})
	return l.setUpAccepted(link.NewConn(s, maxValue))
}

// setUpAccepted is the setup after the handshake on the listener's side. It offers no domain to
// processes of other machines. It returns [ErrType] if the two sides have different element
// types. If it succeeds, the returned connection owns conn; after an error the caller must close
// conn.
func (l *Listener[T]) setUpAccepted(conn *link.Conn) (*Conn[T], error) {
	ctx, cancel := context.WithTimeout(l.ctx, meetingTime)
	defer cancel()
	m := meeting{conn}
	o := offer{Elem: elemName[T]()}
	if l.scheme == "" {
		d, err := arena.Default()
		if err != nil {
			return nil, err
		}
		o.Domain = d.Token()
	}
	if l.joins != nil {
		o.Addr, o.Token = l.joins.Addr(), l.joins.Token()
	}
	if err := sendFrame(ctx, m, frameOffer, o); err != nil {
		return nil, err
	}
	a, err := recvFrame[answer](ctx, m, frameAnswer)
	if err != nil {
		return nil, err
	}
	if a.Elem != o.Elem {
		return nil, ErrType
	}
	if !a.Shared {
		return newStreamConn[T](m)
	}
	ours, theirs, err := Pipe[T, T]()
	if err != nil {
		return nil, err
	}
	defer theirs.Close() // the caller has its own reference if sendPipe succeeded
	if err := sendPipe(ctx, m, theirs); err != nil {
		return nil, errors.Join(err, ours.Close())
	}
	m.Close()
	return &Conn[T]{pipe: ours}, nil
}

func newStreamConn[T any](m meeting) (*Conn[T], error) {
	plan, err := codec.PlanOf[T]()
	return &Conn[T]{stream: m.Conn, plan: plan}, err
}

// sendPipe sends one side of a pipe and waits until the other process has confirmed that it has
// its own references. The caller must still close side.
func sendPipe[T any](ctx context.Context, m meeting, side *PipeEnd[T, T]) error {
	plan, err := codec.PlanOf[*PipeEnd[T, T]]()
	if err != nil {
		return err
	}
	var e codec.Encoder
	e.Reset(nil)
	err = plan.Encode(&e, side)
	p := encodedValue{Body: e.Message().Body}
	for _, h := range e.Message().Blocks {
		p.Blocks = append(p.Blocks, uint64(h))
	}
	if err == nil {
		err = sendFrame(ctx, m, framePipe, p)
	}
	if err == nil {
		_, err = m.expectFrame(ctx, frameKeep)
	}
	e.Done(err == nil)
	return err
}

// unpackPipe decodes one side of a pipe, which the caller must close. It imports the blocks,
// which the sender must hold meanwhile.
func unpackPipe[T any](p encodedValue) (*PipeEnd[T, T], error) {
	d, err := arena.Default()
	if err != nil {
		return nil, err
	}
	plan, err := codec.PlanOf[*PipeEnd[T, T]]()
	if err != nil {
		return nil, err
	}
	im := importer{d: d}
	for _, h := range p.Blocks {
		im.handles = append(im.handles, arena.Handle(h))
	}
	var dec codec.Decoder
	dec.Reset(codec.Message{Body: p.Body, Blocks: im.handles}, im)
	pipe, err := plan.Decode(&dec)
	if err == nil && pipe == nil {
		err = fmt.Errorf("%w: message contains no pipe", codec.ErrFormat)
	}
	dec.Done(err == nil)
	if err != nil {
		return nil, err
	}
	return pipe, nil
}

// An importer imports blocks that another process holds in the meantime. It implements
// [codec.Blocks].
type importer struct {
	d       *arena.Domain
	handles []arena.Handle
}

// Take implements [codec.Blocks].
func (im importer) Take(i int) (arena.Handle, error) {
	return im.handles[i], im.d.Import(im.handles[i])
}

// A meeting is a stream on which the key is proven and the setup is in progress.
type meeting struct{ *link.Conn }

func (m meeting) expectFrame(ctx context.Context, kind byte) ([]byte, error) {
	got, body, err := m.Recv(ctx)
	if err == nil && got != kind {
		err = fmt.Errorf("%w: frame has kind %d, want %d", codec.ErrFormat, got, kind)
	}
	return body, err
}

func recvFrame[M any](ctx context.Context, m meeting, kind byte) (v M, err error) {
	body, err := m.expectFrame(ctx, kind)
	if err != nil {
		return v, err
	}
	plan, err := codec.PlanOf[M]()
	if err != nil {
		return v, err
	}
	if v, err = crossing.Decode(plan, codec.Message{Body: body}); err != nil {
		return v, fmt.Errorf("receive: %w", err)
	}
	return v, nil
}

func sendFrame[M any](ctx context.Context, m meeting, kind byte, v M) error {
	plan, err := codec.PlanOf[M]()
	if err != nil {
		return err
	}
	var e codec.Encoder
	e.Reset(nil)
	err = plan.Encode(&e, v)
	if err == nil {
		err = m.Send(ctx, kind, e.Message().Body)
	}
	e.Done(err == nil)
	return err
}
