package dist

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"runtime"
	"strconv"

	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/tensor"
)

// A call is the state of the collective call that this rank is making. [Group.beginCall] makes
// it, and the holder of the group's mu uses it.
type call struct {
	text    []byte // must be the same in all ranks
	problem error  // the first error of this rank's arguments; part of text, so that all ranks fail
	agreed  bool   // all ranks have the same text

	op      Op
	tensors int
	dtype   tensor.DType // common dtype
	in, out vector
	from    []operand // operands of a reduction; scratch
}

// beginCall starts a collective call: it waits for the earlier calls of this rank and locks
// g.mu. Unless it returns an error, the caller must call endCall, which unlocks g.mu. The call
// is valid until then. arg is a root rank or an operation for the call's text; it may be empty.
// The error is [ErrClosed] or an error of [Group.checkUsable].
func (g *Group) beginCall(ctx context.Context, name, arg string) (*call, error) {
	if err := g.checkUsable(name); err != nil {
		return nil, err
	}
	place := ticket{}
	if !g.seated {
		place = g.line.takeTicket()
		g.acquireLock(ctx, place)
	}
	g.mu.Lock()
	if g.stage.bytes == nil && (g.far == nil || g.box.isClosed()) {
		g.mu.Unlock()
		place.release()
		return nil, ErrClosed
	}
	c := &g.call
	g.place = place
	c.text, c.problem, c.agreed, c.tensors = append(c.text[:0], name...), nil, false, 0
	if arg != "" {
		c.text = append(append(append(c.text, '('), arg...), ')')
	}
	c.in.reset()
	c.out.reset()
	return c, nil
}

// checkUsable returns an error that begins with name if this process cannot make calls: one that
// wraps [ErrRank] before Join and in a group without this rank, or [ErrClosed] itself.
func (g *Group) checkUsable(name string) error {
	switch {
	case g.member == nil:
		return ErrClosed
	case g.outside != nil:
		return fmt.Errorf("%s: %w", name, g.outside)
	case g.far == nil && g.Rank() < 0 && g.barrier.Parties() == 0:
		return ErrClosed
	case g.Rank() < 0:
		return fmt.Errorf("%s before Join: %w", name, ErrRank)
	}
	return nil
}

func (g *Group) endCall(ts ...*tensor.Tensor) {
	g.call.in.reset()
	g.call.out.reset()
	runtime.KeepAlive(ts)
	runtime.KeepAlive(g)
	g.place.release()
	g.mu.Unlock()
}

// recordTensors records the tensors' dtype and shapes in the text that the ranks compare.
func (c *call) recordTensors(ts ...*tensor.Tensor) {
	c.tensors = len(ts)
	for i, t := range ts {
		if i == 0 {
			c.dtype = t.DType()
			c.text = append(append(c.text, " of "...), c.dtype.String()...)
		}
		c.text = append(c.text, ' ', '[')
		for k, n := range t.Shape() {
			if k > 0 {
				c.text = append(c.text, ' ')
			}
			c.text = strconv.AppendInt(c.text, int64(n), 10)
		}
		c.text = append(c.text, ']')
	}
}

// checkTensors records an error unless the tensors are contiguous and of the call's dtype.
func (c *call) checkTensors(ts ...*tensor.Tensor) {
	for _, t := range ts {
		if t.DType() != c.dtype {
			c.recordProblem("got tensors of %v and %v, want one dtype", t.DType(), c.dtype)
		}
		if !t.IsContiguous() {
			c.recordProblem("tensor of shape %v and strides %v is not contiguous: call Contiguous", t.Shape(),
				t.Strides())
		}
	}
}

// checkOp records an error unless op supports the call's dtype.
func (c *call) checkOp(op Op) {
	switch c.op = op; {
	case !op.isKnown():
		c.recordProblem("unknown operation %v", op)
	case c.tensors > 0 && !op.supports(c.dtype):
		c.recordProblem("operation %v does not support %v", op, c.dtype)
	}
}

// recordProblem records that this rank cannot make the call. Only the first error counts. It
// becomes part of the text, so the other ranks fail as well and do not wait for this one.
func (c *call) recordProblem(format string, args ...any) {
	if c.problem == nil {
		c.problem = fmt.Errorf("dist: %s: %w: %s", c.text, ErrTensor, fmt.Sprintf(format, args...))
		c.text = fmt.Appendf(append(c.text, ", where "...), format, args...)
	}
}

// awaitTurn is a barrier of all ranks. In the first turn of a call they also compare the call;
// see [Group.compareHeads] for its errors. Other errors are [ErrClosed] and a [*RankError] if a
// rank is gone or ctx ends, which breaks the group.
func (g *Group) awaitTurn(ctx context.Context, c *call) error { return g.engine().awaitTurn(ctx, c) }

// withCause adds the error of ctx to err if ctx has ended, unless err wraps it already or is
// [ipc.ErrClosed].
func withCause(ctx context.Context, err error) error {
	if ctx.Err() == nil || errors.Is(err, ctx.Err()) || errors.Is(err, ipc.ErrClosed) {
		return err
	}
	return fmt.Errorf("%w: %w", err, ctx.Err())
}

// compareHeads compares the descriptions of the call that all ranks have written; head returns
// the one of a rank. It returns nil and sets c.agreed if they are equal. Otherwise it returns
// this rank's own problem, or a [*RankError] that wraps [ErrMismatch]. All ranks fail or none,
// so either all continue after this turn or none.
func (g *Group) compareHeads(c *call, head func(rank int) []byte) error {
	if c.problem != nil {
		return c.problem
	}
	own := head(g.Rank())
	others := &RankError{Call: string(c.text)}
	var theirs []byte
	for r := range g.size {
		if head := head(r); !sameHead(own, head) {
			others.Ranks = append(others.Ranks, r)
			if theirs == nil {
				theirs = headText(head)
			}
		}
	}
	if c.agreed = others.Ranks == nil; c.agreed {
		return nil
	}
	others.Err = fmt.Errorf("%w: rank %d: %s", ErrMismatch, others.Ranks[0], theirs)
	return others
}

// A head is the hash of a call's text in 8 bytes, the length of the text in 2 bytes, and as much of
// the text as fits.
const textAt = 10

func writeHead(head, text []byte) {
	h := fnv.New64a()
	h.Write(text)
	binary.LittleEndian.PutUint64(head, h.Sum64())
	n := copy(head[textAt:], text)
	binary.LittleEndian.PutUint16(head[8:], uint16(n))
}

func sameHead(a, b []byte) bool {
	return bytes.Equal(a[:8], b[:8]) && bytes.Equal(headText(a), headText(b))
}

func headText(head []byte) []byte {
	n := int(binary.LittleEndian.Uint16(head[8:]))
	return head[textAt:min(textAt+n, len(head))]
}
