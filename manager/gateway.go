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

// A gateway passes on the calls of clients on other machines. It may be in any process that has the
// manager. To the server, each such client is one more process, whose number is 0.
type gateway struct {
	mu     sync.Mutex
	guests map[[16]byte]*guest // by session
}

// A guest is a client on another machine, and the objects that it has proxies of: the gateway holds
// those for it.
type guest struct {
	g       *gateway
	c       *client
	session [16]byte
	streams int // guarded by the gateway's lock

	mu      sync.Mutex
	objects map[uint64]*lent
}

// lent is an object, and how often it was granted.
type lent struct {
	life   arena.Handle
	grants int
}

// Serve serves one stream of a client on another machine that has called [Connect]. It returns when
// the stream is closed or ctx ends, and closes the stream. The error is nil if the client closed
// it. m must stay open until Serve returns.
//
// Serve does not authenticate: check the client's right before. Package manager/remote does.
func (m *Manager) Serve(ctx context.Context, s Stream) error {
	conn := link.NewConn(s, maxFrame)
	defer conn.Close()
	c, err := m.open()
	if err != nil {
		return err
	}
	if c.accept == 0 {
		return fmt.Errorf("manager: gateway: %w", ErrShared)
	}
	kind, body, err := conn.Recv(ctx)
	if err == nil && (kind != frameHello || len(body) != len(c.session)) {
		err = fmt.Errorf("%w: a hello of kind %d and %d bytes", codec.ErrFormat, kind, len(body))
	}
	if err != nil {
		return fmt.Errorf("manager: gateway: %w", err)
	}
	gu := m.gateway.enter(c, [16]byte(body))
	defer m.gateway.leave(gu)
	inner, err := c.greet(ctx, gu.session, 0)
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
			r = gu.forward(ctx, outer, inner, req)
			releaseAll(c, req.Args)
		}
		err = outer.Send(ctx, r)
		if err != nil && !errors.Is(err, ipc.ErrClosed) { // such as a tensor, which cannot leave
			err = outer.Send(ctx, reply{Err: fmt.Errorf("reply of %s: %w", req.Method, err)})
		}
		releaseAll(c, r.Results)
		if err != nil {
			return nil
		}
	}
}

// gatewayDrop is asked of a gateway, and no server knows it: the references of an object are given
// back that were granted to another machine.
var gatewayDrop = &method{name: "drop"}

// forward has the server do a call, and passes on that the client cancels it or is gone.
func (gu *guest) forward(ctx context.Context, outer lane[reply, request], inner lane[request, reply],
	req request) reply {
	switch {
	case req.Object != 0 && !gu.granted(req.Object):
		return reply{Err: fmt.Errorf("%w: number %d is not granted", ErrNoObject, req.Object)}
	case req.Object == 0 && req.Method == gatewayDrop.name:
		return reply{Err: gu.drop(req)}
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

func (g *gateway) enter(c *client, session [16]byte) *guest {
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

// leave is the end of a stream. With the last one the client is gone, and its proxies.
func (g *gateway) leave(gu *guest) {
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

// anyBlock is what identify says of blocks that proxies have but for the one by which they are
// known.
const anyBlock = math.MaxUint64

// Retain and Release are those of the domain: what a guest sends was translated.
func (gu *guest) Retain(h arena.Handle) error  { return gu.c.Retain(h) }
func (gu *guest) Release(h arena.Handle) error { return gu.c.Release(h) }

// export grants the objects that a reply has proxies of. Of all else in shared memory the guest
// gets copies.
func (gu *guest) export(ctx context.Context, blocks []arena.Handle) ([]uint64, error) {
	if len(blocks) == 0 {
		return nil, nil
	}
	handles := make([]uint64, len(blocks))
	for i, h := range blocks {
		handles[i] = uint64(h)
	}
	numbers, err := one[[]uint64](gu.c.invoke(ctx, serverIdentify.with(nil), nil, []argument{in(handles)}))
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

// adopt lets a guest name what it was granted, and nothing else.
func (gu *guest) adopt(numbers []uint64) ([]arena.Handle, error) {
	gu.mu.Lock()
	defer gu.mu.Unlock()
	var blocks []arena.Handle
	for _, n := range numbers {
		l := gu.objects[n]
		if l == nil {
			releaseAll(gu.c, []item{{blocks: blocks}})
			return nil, fmt.Errorf("%w: number %d is not granted", ErrNoObject, n)
		}
		if err := gu.c.Retain(l.life); err != nil {
			releaseAll(gu.c, []item{{blocks: blocks}})
			return nil, err
		}
		blocks = append(blocks, l.life)
	}
	return blocks, nil
}

func (gu *guest) granted(object uint64) bool {
	gu.mu.Lock()
	defer gu.mu.Unlock()
	return gu.objects[object] != nil
}

// drop takes back as many grants as the guest had counted when it let go. What was granted since it
// keeps.
func (gu *guest) drop(req request) error {
	if len(req.Args) != 2 {
		return fmt.Errorf("%w: %d instead of 2", ErrArgument, len(req.Args))
	}
	id, err := unpack[uint64](unkept{}, item{body: req.Args[0].body})
	if err != nil {
		return err
	}
	n, err := unpack[int](unkept{}, item{body: req.Args[1].body})
	if err != nil {
		return err
	}
	gu.mu.Lock()
	defer gu.mu.Unlock()
	l := gu.objects[id]
	if l == nil || n < 1 || n > l.grants {
		return fmt.Errorf("%w: %d grants of number %d", ErrNoObject, n, id)
	}
	if l.grants -= n; l.grants == 0 {
		delete(gu.objects, id)
		return gu.c.Release(l.life)
	}
	return nil
}
