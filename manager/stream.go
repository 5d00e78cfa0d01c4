package manager

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/codec"
	"github.com/shoal-mp/shoal/internal/crossing"
	"github.com/shoal-mp/shoal/internal/link"
	"github.com/shoal-mp/shoal/ipc"
)

// A Stream is a connection to another machine, such as a *tls.Conn. The deadlines are as for a
// [net.Conn].
type Stream interface {
	io.ReadWriteCloser
	SetReadDeadline(t time.Time) error
	SetWriteDeadline(t time.Time) error
}

// Frame types between a client and a gateway.
const (
	frameHello   = 'H' // first frame, from the client: the session, 16 bytes
	frameWelcome = 'W' // reply to it: the server, 16 bytes
	frameCall    = 'C' // a request or a reply
)

// maxFrame limits the encoding of a request or a reply between machines, in bytes, without the
// copies of shared memory.
const maxFrame = 64 << 20

// A translator maps the blocks of a message to numbers for another machine: the block that
// identifies a proxy to its object id, and its other blocks, which only matter on the server's
// machine, to 0. Blocks of other values are copied.
type translator interface {
	keeper
	// exportBlocks returns the numbers of blocks to be sent, and crossing.Copied for blocks that
	// must be copied.
	exportBlocks(ctx context.Context, blocks []arena.Handle) ([]uint64, error)
	// importBlocks returns the blocks for received numbers. The caller owns one reference to each.
	importBlocks(numbers []uint64) ([]arena.Handle, error)
}

// A streamLane is a lane to another machine. Each call is a frame in the format of package
// crossing.
type streamLane[S, R any] struct {
	conn *link.Conn
	translator
}

// A carrier is a request or a reply. The blocks of its items are the blocks of its message.
type carrier interface{ messageItems() []item }

func (r request) messageItems() []item { return r.Args }
func (r reply) messageItems() []item   { return r.Results }

func (l *streamLane[S, R]) Send(ctx context.Context, v S) error {
	a, err := packArg(v)
	if err != nil {
		return err
	}
	blocks, err := l.describeBlocks(ctx, a.blocks, any(v).(carrier).messageItems())
	if err == nil {
		err = crossing.Send(ctx, l.conn, frameCall, codec.Message{Body: a.body, Blocks: a.blocks}, blocks)
	}
	a.releaseArg(err == nil)
	return laneError(err)
}

// describeBlocks returns one description per block in handles, the blocks of a message: its
// number for the other machine, and for a block that is copied the span of bytes to copy. items
// are the items of the message. It returns [ErrShared] if a block cannot be copied.
func (l *streamLane[S, R]) describeBlocks(ctx context.Context, handles []arena.Handle,
	items []item) ([]crossing.Block, error) {
	numbers, err := l.exportBlocks(ctx, handles)
	if err != nil {
		return nil, err
	}
	blocks := make([]crossing.Block, len(numbers))
	place := make(map[arena.Handle]int)
	for i, n := range numbers {
		if blocks[i].Number = n; n == crossing.Copied {
			place[handles[i]] = i
		}
	}
	if len(place) == 0 {
		return blocks, nil
	}
	for _, it := range items {
		spans, ok, err := codec.Spans(codec.Message{Body: it.body, Blocks: it.blocks})
		if err != nil {
			return nil, err
		}
		for k, h := range it.blocks {
			i, copied := place[h]
			switch {
			case !copied:
			case !ok[k]:
				return nil, ErrShared
			default:
				blocks[i].Span = blocks[i].Union(spans[k])
			}
		}
	}
	return blocks, nil
}

func (l *streamLane[S, R]) Recv(ctx context.Context) (v R, err error) {
	m, blocks, err := crossing.Recv(ctx, l.conn, frameCall)
	if err != nil {
		return v, laneError(err)
	}
	var numbers []uint64
	for _, b := range blocks {
		if b.Number != crossing.Copied {
			numbers = append(numbers, b.Number)
		}
	}
	adopted, err := l.importBlocks(numbers)
	if err != nil {
		crossing.Release(m.Blocks)
		return v, err
	}
	for i, b := range blocks {
		if b.Number != crossing.Copied {
			m.Blocks[i], adopted = adopted[0], adopted[1:]
		}
	}
	if v, err = unpackItem[R](l, item{m.Body, m.Blocks}); err != nil {
		return v, err
	}
	place := make(map[arena.Handle]int, len(m.Blocks))
	for i, h := range m.Blocks {
		place[h] = i
	}
	items := any(v).(carrier).messageItems()
	for _, it := range items {
		err = crossing.Check(codec.Message{Body: it.body, Blocks: it.blocks}, blocks,
			func(i int) int { return place[it.blocks[i]] })
		if err != nil {
			releaseAll(l, items)
			var none R
			return none, err
		}
	}
	return v, nil
}

func (l *streamLane[S, R]) Close() error { return l.conn.Close() }

// laneError returns err, or an error that also wraps [ipc.ErrClosed] if the stream has ended or
// a frame on it was invalid. It returns nil if err is nil.
func laneError(err error) error {
	if errors.Is(err, link.ErrClosed) || errors.Is(err, link.ErrFrame) {
		return fmt.Errorf("%w: %w", ipc.ErrClosed, err)
	}
	return err
}
