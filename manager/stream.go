package manager

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/shoal-mp/shoal/internal/link"
	"github.com/shoal-mp/shoal/internal/shm"
	"github.com/shoal-mp/shoal/internal/wire"
	"github.com/shoal-mp/shoal/ipc"
)

// A Stream is a connection to another machine, such as a *tls.Conn.
type Stream interface {
	io.ReadWriteCloser
	SetReadDeadline(t time.Time) error
	SetWriteDeadline(t time.Time) error
}

// Kinds of frames between a client and a gateway.
const (
	frameHello   = 'H' // first, from the client: the session, 16 bytes
	frameWelcome = 'W' // the answer: the server, 16 bytes
	frameCall    = 'C' // a request or a reply
)

// maxFrame bounds what one call takes or returns on its way between machines.
const maxFrame = 64 << 20

// A translator knows what stands for the blocks of a message where there is no shared memory: the
// number of an object for a proxy's block, and 0 for what only matters in the server's machine.
type translator interface {
	keeper
	// export returns the numbers of blocks that are about to be sent.
	export(ctx context.Context, blocks []shm.Handle) ([]uint64, error)
	// adopt returns the blocks of numbers that came, each with a reference.
	adopt(numbers []uint64) ([]shm.Handle, error)
}

// A streamLane is a lane to another machine. The body of a call's frame is the number of blocks, 4
// bytes, their numbers, 8 bytes each, all little-endian, and the message.
type streamLane[S, R any] struct {
	conn *link.Conn
	translator
}

func (l *streamLane[S, R]) Send(ctx context.Context, v S) error {
	a, err := pack(v)
	if err != nil {
		return err
	}
	numbers, err := l.export(ctx, a.blocks)
	if err == nil {
		err = l.conn.Send(ctx, frameCall, appendCall(nil, numbers, a.body))
	}
	a.done(err == nil)
	return laneError(err)
}

func (l *streamLane[S, R]) Recv(ctx context.Context) (v R, err error) {
	kind, body, err := l.conn.Recv(ctx)
	if err != nil {
		return v, laneError(err)
	}
	if kind != frameCall {
		return v, fmt.Errorf("%w: a frame of kind %d", wire.ErrFormat, kind)
	}
	numbers, body, err := parseCall(body)
	if err != nil {
		return v, err
	}
	blocks, err := l.adopt(numbers)
	if err != nil {
		return v, err
	}
	return unpack[R](l, item{body, blocks})
}

func (l *streamLane[S, R]) Close() error { return l.conn.Close() }

// laneError makes the end of a stream the end of a lane.
func laneError(err error) error {
	if errors.Is(err, link.ErrClosed) || errors.Is(err, link.ErrFrame) {
		return fmt.Errorf("%w: %w", ipc.ErrClosed, err)
	}
	return err
}

func appendCall(b []byte, numbers []uint64, body []byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(len(numbers)))
	for _, n := range numbers {
		b = binary.LittleEndian.AppendUint64(b, n)
	}
	return append(b, body...)
}

func parseCall(b []byte) (numbers []uint64, body []byte, err error) {
	if len(b) < 4 {
		return nil, nil, fmt.Errorf("%w: a call of %d bytes", wire.ErrFormat, len(b))
	}
	n, b := int64(binary.LittleEndian.Uint32(b)), b[4:]
	if n > wire.MaxBlocks || n*8 > int64(len(b)) {
		return nil, nil, fmt.Errorf("%w: a call of %d bytes with %d blocks", wire.ErrFormat, len(b), n)
	}
	for range n {
		numbers = append(numbers, binary.LittleEndian.Uint64(b))
		b = b[8:]
	}
	return numbers, b, nil
}
