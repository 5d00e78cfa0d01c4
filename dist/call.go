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

// A call is what a rank is at.
type call struct {
	text    []byte // what all ranks must have in common
	problem error  // why this rank cannot do it; it says so to the others all the same
	agreed  bool   // all ranks have the same text

	op      Op
	tensors int
	dtype   tensor.DType // of all of them
	in, out vector
	from    []int // where the slots begin that are reduced
}

// begin begins a call, which needs an end unless there is an error. arg is a rank or an operation,
// if there is any.
func (g *Group) begin(ctx context.Context, name, arg string) (*call, error) {
	if err := g.usable(name); err != nil {
		return nil, err
	}
	place := place{}
	if !g.seated {
		place = g.line.stand()
		g.await(ctx, place)
	}
	g.mu.Lock()
	if g.stage.bytes == nil && (g.far == nil || g.box.isClosed()) {
		g.mu.Unlock()
		place.leave()
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

// usable returns why this process cannot make a call, if it cannot.
func (g *Group) usable(name string) error {
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

func (g *Group) end(ts ...*tensor.Tensor) {
	g.call.in.reset()
	g.call.out.reset()
	runtime.KeepAlive(ts)
	runtime.KeepAlive(g)
	g.place.leave()
	g.mu.Unlock()
}

// of says on which tensors the call is.
func (c *call) of(ts ...*tensor.Tensor) {
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

// check finds tensors that the call cannot work on.
func (c *call) check(ts ...*tensor.Tensor) {
	for _, t := range ts {
		if t.DType() != c.dtype {
			c.cannot("a tensor is %v, another %v", t.DType(), c.dtype)
		}
		if !t.IsContiguous() {
			c.cannot("a tensor of shape %v and strides %v is not contiguous", t.Shape(), t.Strides())
		}
	}
}

// reduces says that the elements are reduced, by what.
func (c *call) reduces(op Op) {
	switch c.op = op; {
	case !op.known():
		c.cannot("there is no %v", op)
	case c.tensors > 0 && !op.can(c.dtype):
		c.cannot("there is no %v of %v", op, c.dtype)
	}
}

// cannot says why this rank cannot make the call. The others read it too, and so do not wait for
// it.
func (c *call) cannot(format string, args ...any) {
	if c.problem == nil {
		c.problem = fmt.Errorf("dist: %s: %w: %s", c.text, ErrTensor, fmt.Sprintf(format, args...))
		c.text = fmt.Appendf(append(c.text, ", where "...), format, args...)
	}
}

// turn is where all ranks meet and agree on the call.
func (g *Group) turn(ctx context.Context, c *call) error { return g.engine().turn(ctx, c) }

// because adds why a context has ended to the error of a call that had to wait for its place until
// then.
func because(ctx context.Context, err error) error {
	if ctx.Err() == nil || errors.Is(err, ctx.Err()) || errors.Is(err, ipc.ErrClosed) {
		return err
	}
	return fmt.Errorf("%w: %w", err, ctx.Err())
}

// agree compares what the ranks call, by their heads. All of them find the same, and go on after
// this turn if it is not.
func (g *Group) agree(c *call, head func(rank int) []byte) error {
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
				theirs = textOf(head)
			}
		}
	}
	if c.agreed = others.Ranks == nil; c.agreed {
		return nil
	}
	others.Err = fmt.Errorf("%w: rank %d: %s", ErrMismatch, others.Ranks[0], theirs)
	return others
}

// A head: the hash of the text, its length, and as much of it as there is room for.
const textAt = 10

func writeHead(head, text []byte) {
	h := fnv.New64a()
	h.Write(text)
	binary.LittleEndian.PutUint64(head, h.Sum64())
	n := copy(head[textAt:], text)
	binary.LittleEndian.PutUint16(head[8:], uint16(n))
}

func sameHead(a, b []byte) bool {
	return bytes.Equal(a[:8], b[:8]) && bytes.Equal(textOf(a), textOf(b))
}

func textOf(head []byte) []byte {
	n := int(binary.LittleEndian.Uint16(head[8:]))
	return head[textAt:min(textAt+n, len(head))]
}
