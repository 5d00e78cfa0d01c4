package manager

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/codec"
	"github.com/shoal-mp/shoal/internal/crossing"
	"github.com/shoal-mp/shoal/internal/link"
	"github.com/shoal-mp/shoal/ipc"
)

// A gateway forwards the calls of clients on other machines. It may run in any process with a
// manager. To the server, each of these clients is another process, with process id 0.
type gateway struct {
	mu     sync.Mutex
	guests map[[16]byte]*guest // by session
}

// A guest is a client on another machine. The gateway holds references to the objects of its
// proxies. It exists while the client has at least one stream.
type guest struct {
	g       *gateway
	c       *client
	session [16]byte
	streams int // guarded by gateway.mu

	mu      sync.Mutex
	objects map[uint64]*lent
}

// lent is an object that a guest may use: the gateway's reference to it, and the number of
// replies that have granted it.
type lent struct {
	life   arena.Handle
	grants int
}

// Serve serves one stream of a client on another machine that has called [Connect]. It blocks
// until the stream is closed or ctx is done, and closes the stream. It returns nil if the client
// closed the stream or a reply cannot be delivered, and the cause of ctx if ctx is done. It
// returns [ErrShared] if m itself is a connection to another machine. m must stay open until
// Serve returns.
//
// Serve does not authenticate the client. The caller must do so before, as package
// manager/remote does.
func (m *Manager) Serve(ctx context.Context, s Stream) error {
	conn := link.NewConn(s, maxFrame)
	defer conn.Close()
	c, err := m.openClient()
	if err != nil {
		return err
	}
	if c.accept == 0 {
		return fmt.Errorf("manager: gateway: %w", ErrShared)
	}
	kind, body, err := conn.Recv(ctx)
	if err == nil && (kind != frameHello || len(body) != len(c.session)) {
		err = fmt.Errorf("%w: hello has kind %d and %d bytes", codec.ErrFormat, kind, len(body))
	}
	if err != nil {
		return fmt.Errorf("manager: gateway: %w", err)
	}
	gu := m.gateway.addStream(c, [16]byte(body))
	defer m.gateway.endStream(gu)
	inner, err := c.announceLane(ctx, gu.session, 0)
	if err != nil {
		return err
	}
	defer inner.Close()
	if err := conn.Send(ctx, frameWelcome, c.server[:]); err != nil {
		return err
	}
	outer := &streamLane[reply, request]{conn, gu}
	for {
		req, err := outer.Recv(ctx)
		switch {
		case errors.Is(err, ipc.ErrClosed):
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err == nil && req.Method == cancel:
			continue
		}
		var r reply
		if err != nil {
			r.Err = fmt.Errorf("%w: %w", ErrArgument, err)
		} else {
			r = gu.forwardCall(ctx, outer, inner, req)
			releaseAll(c, req.Args)
		}
		err = outer.Send(ctx, r)
		if err != nil && !errors.Is(err, ipc.ErrClosed) { // such as ErrShared
			err = outer.Send(ctx, reply{Err: fmt.Errorf("reply of %s: %w", req.Method, err)})
		}
		releaseAll(c, r.Results)
		if err != nil {
			return nil
		}
	}
}

// gatewayDrop is a request to the gateway itself, not to the server: a client on another machine
// returns its grants of an object.
var gatewayDrop = &method{name: "drop"}

// forwardCall makes the call req to the server by lane inner on behalf of the guest, and returns
// the reply; an error is in reply.Err. It returns [ErrNoObject] there if the object was not
// granted to the guest. Meanwhile it receives from lane outer: it passes on a cancellation, and
// aborts the call if the guest disconnects.
func (gu *guest) forwardCall(ctx context.Context, outer lane[reply, request], inner lane[request, reply],
	req request) reply {
	switch {
	case req.Object != 0 && !gu.isGranted(req.Object):
		return reply{Err: fmt.Errorf("%w: object %d was not granted to this client", ErrNoObject, req.Object)}
	case req.Object == 0 && req.Method == gatewayDrop.name:
		return reply{Err: gu.revokeGrants(req)}
	}
	if err := inner.Send(ctx, req); err != nil {
		return reply{Err: err}
	}
	listening, stop := context.WithCancel(ctx)
	heard := make(chan struct{})
	go func() {
		defer close(heard)
		late, err := outer.Recv(listening)
		switch {
		case err == nil:
			releaseAll(gu.c, late.Args)
			inner.Send(ctx, request{Method: cancel})
		case listening.Err() == nil:
			inner.Close()
		}
	}()
	r, err := inner.Recv(ctx)
	stop()
	<-heard
	if errors.Is(err, ipc.ErrClosed) {
		err = serverDied(0, nil)
	}
	if err != nil {
		return reply{Err: err}
	}
	return r
}

func (g *gateway) addStream(c *client, session [16]byte) *guest {
	g.mu.Lock()
	defer g.mu.Unlock()
	gu := g.guests[session]
	if gu == nil {
		gu = &guest{g: g, c: c, session: session, objects: make(map[uint64]*lent)}
		if g.guests == nil {
			g.guests = make(map[[16]byte]*guest)
		}
		g.guests[session] = gu
	}
	gu.streams++
	return gu
}

// endStream ends a stream that addStream has added. After the last one of the client, the
// guest's references are released.
func (g *gateway) endStream(gu *guest) {
	g.mu.Lock()
	gu.streams--
	last := gu.streams == 0
	if last {
		delete(g.guests, gu.session)
	}
	g.mu.Unlock()
	if !last {
		return
	}
	gu.mu.Lock()
	defer gu.mu.Unlock()
	for _, l := range gu.objects {
		gu.c.Release(l.life)
	}
	gu.objects = nil
}

// anyBlock is the result of identify for the blocks of a proxy other than its life, by which the
// proxy is identified.
const anyBlock = math.MaxUint64

// Retain and Release use the domain, because the blocks of a guest's messages were already
// translated.
func (gu *guest) Retain(h arena.Handle) error  { return gu.c.Retain(h) }
func (gu *guest) Release(h arena.Handle) error { return gu.c.Release(h) }

// exportBlocks grants the guest the objects of the proxies in a reply, for which the gateway
// keeps a reference until the guest revokes the grants. It returns a number for each block: the
// id of its object, 0 for the other blocks of a proxy, and [crossing.Copied] for a block that
// must be copied.
func (gu *guest) exportBlocks(ctx context.Context, blocks []arena.Handle) ([]uint64, error) {
	if len(blocks) == 0 {
		return nil, nil
	}
	handles := make([]uint64, len(blocks))
	for i, h := range blocks {
		handles[i] = uint64(h)
	}
	numbers, err := oneResult[[]uint64](gu.c.invokeMethod(ctx, serverIdentify.newRequest(nil), nil,
		[]argument{encodeArg(handles)}))
	if err != nil {
		return nil, err
	}
	gu.mu.Lock()
	defer gu.mu.Unlock()
	for i, n := range numbers {
		switch n {
		case anyBlock:
			numbers[i] = 0
			continue
		case 0:
			numbers[i] = crossing.Copied
			continue
		}
		if gu.objects[n] == nil {
			if err := gu.c.Retain(blocks[i]); err != nil {
				return nil, err
			}
			gu.objects[n] = &lent{life: blocks[i]}
		}
		gu.objects[n].grants++
	}
	return numbers, nil
}

// importBlocks translates object ids of a guest to the blocks that keep these objects alive. The
// caller owns one reference to each block. It returns [ErrNoObject] for an object that was not
// granted to the guest.
func (gu *guest) importBlocks(numbers []uint64) ([]arena.Handle, error) {
	gu.mu.Lock()
	defer gu.mu.Unlock()
	var blocks []arena.Handle
	for _, n := range numbers {
		l := gu.objects[n]
		if l == nil {
			releaseAll(gu.c, []item{{blocks: blocks}})
			return nil, fmt.Errorf("%w: object %d was not granted to this client", ErrNoObject, n)
		}
		if err := gu.c.Retain(l.life); err != nil {
			releaseAll(gu.c, []item{{blocks: blocks}})
			return nil, err
		}
		blocks = append(blocks, l.life)
	}
	return blocks, nil
}

func (gu *guest) isGranted(object uint64) bool {
	gu.mu.Lock()
	defer gu.mu.Unlock()
	return gu.objects[object] != nil
}

// revokeGrants serves the request of a guest that has released an object. The arguments are the
// object's id and the number of grants that the guest had received by then; later grants remain.
// It returns [ErrNoObject] if the object has fewer grants.
func (gu *guest) revokeGrants(req request) error {
	if len(req.Args) != 2 {
		return fmt.Errorf("%w: got %d arguments, want 2", ErrArgument, len(req.Args))
	}
	id, err := unpackItem[uint64](unkept{}, item{body: req.Args[0].body})
	if err != nil {
		return err
	}
	n, err := unpackItem[int](unkept{}, item{body: req.Args[1].body})
	if err != nil {
		return err
	}
	gu.mu.Lock()
	defer gu.mu.Unlock()
	l := gu.objects[id]
	if l == nil || n < 1 || n > l.grants {
		return fmt.Errorf("%w: cannot drop %d grants of object %d", ErrNoObject, n, id)
	}
	if l.grants -= n; l.grants == 0 {
		delete(gu.objects, id)
		return gu.c.Release(l.life)
	}
	return nil
}
