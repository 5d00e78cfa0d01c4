package dist

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"runtime"
	"slices"
	"strconv"

	"github.com/shoal-mp/shoal/internal/shm"
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
	if g.stage.bytes == nil {
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
	case g.Rank() < 0 && g.barrier.Parties() == 0:
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

// run makes a call on so many bytes, of which step takes those from at on, at most limit.
func (g *Group) run(ctx context.Context, c *call, total, limit int, step func(at, n int) error) error {
	if c.problem != nil {
		return g.turn(ctx, c)
	}
	for at := 0; at == 0 || at < total; at += limit {
		if err := step(at, min(limit, total-at)); err != nil {
			return err
		}
	}
	return nil
}

// A turn is where all ranks meet. What they have written before it can be read after it.
func (g *Group) turn(ctx context.Context, c *call) error {
	rank := g.Rank()
	if !c.agreed {
		writeHead(g.stage.head(g.turns, rank), c.text)
	}
	if err := g.ranks.Set(g.stage.size+rank, g.turns+1); err != nil {
		return err
	}
	if _, err := g.barrier.Wait(ctx); err != nil {
		return g.blame(c, because(ctx, err))
	}
	g.turns++
	if c.agreed {
		return nil
	}
	return g.agree(c)
}

// because adds why a context has ended to the error of a call that had to wait for its place until
// then.
func because(ctx context.Context, err error) error {
	if ctx.Err() == nil || errors.Is(err, ctx.Err()) || errors.Is(err, ipc.ErrClosed) {
		return err
	}
	return fmt.Errorf("%w: %w", err, ctx.Err())
}

// agree compares what the ranks call. All of them find the same, and go on after this turn if it is
// not.
func (g *Group) agree(c *call) error {
	if c.problem != nil {
		return c.problem
	}
	own := g.stage.head(g.turns-1, g.Rank())
	others := &RankError{Call: string(c.text)}
	var theirs []byte
	for r := range g.stage.size {
		if head := g.stage.head(g.turns-1, r); !sameHead(own, head) {
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

// The head of a slot: the hash of the text, its length, and as much of it as there is room for.
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

// blame finds the ranks for which a turn did not end.
func (g *Group) blame(c *call, err error) error {
	if errors.Is(err, ipc.ErrClosed) {
		return ErrClosed
	}
	if pid, e := g.ranks.At(g.Rank()); e != nil {
		return errors.Join(err, e)
	} else if pid < 0 { // our own Close
		return ErrClosed
	}
	if e := errors.Join(g.ranks.Set(g.stage.size+g.Rank(), letDown), g.life.Abort()); e != nil {
		return errors.Join(err, e)
	}
	// Deaths are looked at first: a rank that leaves and ends meanwhile is not one of the dead.
	dead, err := g.dead(err)
	state := make([]int64, 2*g.stage.size)
	if e := g.ranks.Read(0, state); e != nil {
		return errors.Join(err, e)
	}
	pids, turns := state[:g.stage.size], state[g.stage.size:]
	e := &RankError{Call: string(c.text), Err: err}
	if len(dead) > 0 {
		e.Ranks = g.where(func(r int) bool { return slices.Contains(dead, int(pids[r])) })
		if e.Ranks == nil { // the dead was to be one of those as which nobody has joined
			e.Ranks = g.where(func(r int) bool { return pids[r] == 0 })
		}
		return e
	}
	if e.Ranks = g.where(func(r int) bool { return pids[r] < 0 && turns[r] != letDown }); e.Ranks != nil {
		e.Err = fmt.Errorf("%w: %w", ErrLeft, err)
		return e
	}
	e.Ranks = g.where(func(r int) bool { return turns[r] <= g.turns })
	return e
}

// letDown stands in the place of the turn of a rank whose call has failed: it had come, and if it
// leaves now that is no reason for anything.
const letDown = math.MaxInt64

// dead returns the processes of the group that have died, and err, which says so if there are any.
// The end of a context, which may be the first that a rank hears of a death, says less.
func (g *Group) dead(err error) (pids []int, _ error) {
	dead := g.barrier.Dead()
	var known *shm.PeerError
	switch {
	case errors.As(err, &known):
		dead = append(dead, known)
	case len(dead) > 0:
		err = fmt.Errorf("%w: %w", dead[0], err)
	}
	for _, d := range dead {
		pids = append(pids, d.PID)
	}
	return pids, err
}

// where returns the ranks of which is returns true.
func (g *Group) where(is func(rank int) bool) (found []int) {
	for r := range g.stage.size {
		if is(r) {
			found = append(found, r)
		}
	}
	return slices.Clip(found)
}
