package manager

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/codec"
	"github.com/shoal-mp/shoal/internal/crossing"
	"github.com/shoal-mp/shoal/internal/link"
	"github.com/shoal-mp/shoal/internal/sys"
)

// Note [Far blocks] A proxy of an object on another machine has a block too, which is virtual. Its
// handle is in no domain, because a bit beyond every valid index is set. The handle consists of the
// object's id and the client's number. The client counts its references in place of a domain, and
// notifies the gateway when there are none. Proxies, items and calls are therefore the same for
// local and remote servers.
//
//	63       32 31 30      0
//	| object   | 1 | client |
const farBit = 1 << 31

func farBlock(object uint64, client uint32) arena.Handle {
	return arena.Handle(object<<32 | farBit | uint64(client))
}

func isFar(h arena.Handle) bool                { return uint64(h)&farBit != 0 }
func farObject(h arena.Handle) uint64          { return uint64(h) >> 32 }
func farClient(h arena.Handle) uint32          { return uint32(h) &^ farBit }
func (r *far) farHandle(o uint64) arena.Handle { return farBlock(o, r.number) }

// far is the keeper of a client of a server on another machine: it counts the references to the
// objects of its proxies, and tells the gateway when an object has none left.
type far struct {
	c      *client
	number uint32

	mu      sync.Mutex
	objects map[uint64]*granted
}

// granted is the state of one object: the references in this process, and the number of grants by
// the gateway. They differ while messages are in flight.
type granted struct{ refs, grants int }

var fars struct {
	last atomic.Uint32
	byNo sync.Map // *client by number
}

// farOf returns the client that counts the references of h. It returns nil if h is a block of
// this machine, or if that client is closed.
func farOf(h arena.Handle) *client {
	if !isFar(h) {
		return nil
	}
	c, ok := fars.byNo.Load(farClient(h))
	if !ok {
		return nil
	}
	return c.(*client)
}

// Connect returns a manager for a server on another machine. It calls dial for a stream to that
// machine, once per concurrent call, and one more time at the start. The other end must call
// [Manager.Serve] with each stream. The caller must close the manager. The streams are closed after
// the manager and all its proxies in this process are closed. Connect returns the error of dial or
// of the stream.
//
// A proxy of such a manager may be an argument of calls to its server, but it cannot be sent to
// another process. A process that needs one must call Connect itself.
func Connect(ctx context.Context, dial func(ctx context.Context) (Stream, error)) (*Manager, error) {
	f := &far{number: fars.last.Add(1), objects: make(map[uint64]*granted)}
	c := &client{keeper: f, uses: 1, shut: func() { fars.byNo.Delete(f.number) }}
	f.c = c
	if err := sys.Random(c.session[:]); err != nil {
		return nil, err
	}
	c.dial = func(ctx context.Context) (lane[request, reply], error) {
		s, err := dial(ctx)
		if err != nil {
			return nil, err
		}
		conn := link.NewConn(s, maxFrame)
		if err := c.handshake(ctx, conn); err != nil {
			return nil, errors.Join(err, conn.Close())
		}
		return &streamLane[request, reply]{conn, f}, nil
	}
	anchor, err := c.dial(ctx)
	if err != nil {
		return nil, fmt.Errorf("manager: connect: %w", err)
	}
	c.setAnchor(anchor)
	fars.byNo.Store(f.number, c)
	return newManager(c), nil
}

// handshake announces the client to the gateway, and verifies the id of the server. It returns
// an error that wraps [ErrServerDied] if another server than before answers.
func (c *client) handshake(ctx context.Context, conn *link.Conn) error {
	if err := conn.Send(ctx, frameHello, c.session[:]); err != nil {
		return err
	}
	kind, body, err := conn.Recv(ctx)
	if err != nil {
		return err
	}
	if kind != frameWelcome || len(body) != len(c.server) {
		return fmt.Errorf("%w: welcome has kind %d and %d bytes", codec.ErrFormat, kind, len(body))
	}
	server := [16]byte(body)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.server == [16]byte{} {
		c.server = server
	}
	if c.server != server {
		return fmt.Errorf("%w: another server answers at the same address", ErrServerDied)
	}
	return nil
}

// Retain increments the reference count of a block. A block that is not virtual is a copy in
// this process's domain, which counts it. It returns [ErrClosed] for a virtual block without
// references.
func (r *far) Retain(h arena.Handle) error {
	if !isFar(h) {
		return defaultKeeper().Retain(h)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if farObject(h) == 0 {
		return nil
	}
	g := r.objects[farObject(h)]
	if g == nil {
		return ErrClosed
	}
	g.refs++
	return nil
}

// Release decrements the reference count of a block. The last reference returns the grants to the
// gateway.
func (r *far) Release(h arena.Handle) error {
	if !isFar(h) {
		return defaultKeeper().Release(h)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	id := farObject(h)
	g := r.objects[id]
	if g == nil {
		return nil
	}
	if g.refs--; g.refs > 0 {
		return nil
	}
	delete(r.objects, id)
	r.c.addUse() // keep the client until the gateway is notified
	go func() {
		defer r.c.dropUse()
		r.c.invokeMethod(context.Background(), gatewayDrop.newRequest(nil), nil,
			[]argument{encodeArg(id), encodeArg(g.grants)}).noResult()
	}()
	return nil
}

func (r *far) exportBlocks(_ context.Context, blocks []arena.Handle) ([]uint64, error) {
	numbers := make([]uint64, len(blocks))
	for i, h := range blocks {
		switch {
		case !isFar(h):
			numbers[i] = crossing.Copied
		case farClient(h) != r.number:
			return nil, ErrForeign
		default:
			numbers[i] = farObject(h)
		}
	}
	return numbers, nil
}

func (r *far) importBlocks(numbers []uint64) ([]arena.Handle, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	blocks := make([]arena.Handle, len(numbers))
	for i, id := range numbers {
		if id > 1<<32-1 {
			return nil, fmt.Errorf("%w: object number %d exceeds 32 bits", codec.ErrFormat, id)
		}
		blocks[i] = r.farHandle(id)
		if id == 0 {
			continue
		}
		g := r.objects[id]
		if g == nil {
			g = new(granted)
			r.objects[id] = g
		}
		g.refs++
		g.grants++
	}
	return blocks, nil
}
