package dist

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/shoal-mp/shoal/tensor"
)

// AllGatherTensors fills dst[r] with the src of rank r: torch's all_gather. The shape of src may
// differ from rank to rank. All tensors are contiguous and of one dtype, and dst[r] has as many
// elements as the src of rank r.
func (g *Group) AllGatherTensors(ctx context.Context, dst []*tensor.Tensor, src *tensor.Tensor) error {
	c, err := g.begin(ctx, "all_gather_tensors", "")
	if err != nil {
		return err
	}
	defer g.end(slices.Concat(dst, []*tensor.Tensor{src})...)
	u := uneven{g: g, c: c}
	u.receive(dst, src.DType())
	u.ofDType(src)
	for range g.size {
		u.out = append(u.out, lengthOf(src))
	}
	c.input(src)
	defer touch(dst)
	limit := room(g.stage.size)
	return u.run(ctx, limit, func(at int) error {
		return c.in.read(at, g.mine()[:now(u.out[0], at, limit)])
	}, 0)
}

// AllToAllTensors sends src[r] to rank r, and fills dst[r] with the tensor from rank r: torch's
// all_to_all. Tensors may differ in shape. All are contiguous and of one dtype, and dst[r] has as
// many elements as rank r sends.
func (g *Group) AllToAllTensors(ctx context.Context, dst, src []*tensor.Tensor) error {
	c, err := g.begin(ctx, "all_to_all_tensors", "")
	if err != nil {
		return err
	}
	defer g.end(slices.Concat(dst, src)...)
	u := uneven{g: g, c: c}
	u.receive(dst, dtypeOf(src, dst))
	u.ofDType(src...)
	if len(src) != g.size {
		c.cannot("%d tensors to send are not one for each of %d ranks", len(src), g.size)
	}
	for _, t := range src {
		u.out = append(u.out, lengthOf(t))
		var v vector
		if c.problem == nil {
			v.add(t)
		}
		u.parts = append(u.parts, v)
	}
	defer touch(dst)
	piece := g.piece()
	return u.run(ctx, piece, func(at int) error {
		for r, v := range u.parts {
			if err := v.read(at, g.mine()[r*piece:][:now(u.out[r], at, piece)]); err != nil {
				return err
			}
		}
		return nil
	}, g.Rank()*piece)
}

// allToAllSplits is AllToAll of parts that differ in length.
func (g *Group) allToAllSplits(ctx context.Context, dst, src *tensor.Tensor, dstSplits, srcSplits []int) error {
	to, err := rows(src, srcSplits)
	defer closeAll(to)
	if err == nil {
		var from []*tensor.Tensor
		from, err = rows(dst, dstSplits)
		defer closeAll(from)
		if err == nil {
			return g.AllToAllTensors(ctx, from, to)
		}
	}
	c, e := g.begin(ctx, "all_to_all_tensors", "") // the others learn why
	if e != nil {
		return e
	}
	defer g.end(dst, src)
	c.cannot("%v", err)
	return g.turn(ctx, c)
}

// rows returns views of so many rows of t, one after another.
func rows(t *tensor.Tensor, splits []int) (parts []*tensor.Tensor, err error) {
	if t.Dims() == 0 {
		return nil, errors.New("a tensor without dimensions has no rows")
	}
	left := t.Dim(0)
	for _, n := range splits {
		if n < 0 || n > left {
			return parts, fmt.Errorf("splits %v of %d rows", splits, t.Dim(0))
		}
		parts = append(parts, t.Narrow(0, t.Dim(0)-left, n))
		left -= n
	}
	if left > 0 {
		return parts, fmt.Errorf("splits %v of %d rows", splits, t.Dim(0))
	}
	return parts, nil
}

func closeAll(ts []*tensor.Tensor) {
	for _, t := range ts {
		t.Close()
	}
}

// dtypeOf returns the dtype of the first tensor that there is.
func dtypeOf(lists ...[]*tensor.Tensor) tensor.DType {
	for _, ts := range lists {
		for _, t := range ts {
			if t != nil {
				return t.DType()
			}
		}
	}
	return tensor.Float32
}

// An uneven is a call by which ranks exchange parts of different lengths. In its first turn each
// says how many bytes it sends to each other rank, and gets from each; so all find the same pairs
// that do not agree, and the same number of turns.
type uneven struct {
	g       *Group
	c       *call
	out, in []int    // bytes, by rank
	parts   []vector // to send, by rank
	results []vector // to fill, by rank
}

// receive says where what comes belongs.
func (u *uneven) receive(dst []*tensor.Tensor, dt tensor.DType) {
	u.c.dtype = dt
	u.c.text = append(append(u.c.text, " of "...), dt.String()...)
	if len(dst) != u.g.size {
		u.c.cannot("%d tensors to receive are not one for each of %d ranks", len(dst), u.g.size)
	}
	u.ofDType(dst...)
	for _, t := range dst {
		u.in = append(u.in, lengthOf(t))
		var v vector
		if u.c.problem == nil {
			v.add(t)
		}
		u.results = append(u.results, v)
	}
}

// ofDType is check for tensors that may be missing.
func (u *uneven) ofDType(ts ...*tensor.Tensor) {
	for r, t := range ts {
		if t == nil {
			u.c.cannot("tensor %d is missing", r)
			return
		}
		u.c.check(t)
	}
}

func lengthOf(t *tensor.Tensor) int {
	if t == nil {
		return 0
	}
	return t.Nbytes()
}

// run exchanges parts: write puts the bytes of all parts from at on into this rank's slot, where
// each has room for limit, and place is where in the slots of others those for this one are.
func (u *uneven) run(ctx context.Context, limit int, write func(at int) error, place int) error {
	g, c := u.g, u.c
	if c.problem == nil {
		u.tell(g.mine())
	}
	if err := g.turn(ctx, c); err != nil {
		return err
	}
	longest, err := u.compare()
	if err != nil {
		return err
	}
	for at := 0; at < longest; at += limit {
		if err := write(at); err != nil {
			return err
		}
		if err := g.turn(ctx, c); err != nil {
			return err
		}
		for r, v := range u.results {
			if err := v.write(at, g.met(r)[place:][:now(u.in[r], at, limit)]); err != nil {
				return err
			}
		}
	}
	return nil
}

// now returns how many of n bytes go in the turn that begins at one of them.
func now(n, at, limit int) int { return min(limit, max(0, n-at)) }

// tell writes what this rank sends and gets.
func (u *uneven) tell(slot []byte) {
	for r := range u.g.size {
		binary.LittleEndian.PutUint64(slot[16*r:], uint64(u.out[r]))
		binary.LittleEndian.PutUint64(slot[16*r+8:], uint64(u.in[r]))
	}
}

// compare returns the length of the longest part of any rank, or an error, the same in all ranks,
// if one sends what another does not get.
func (u *uneven) compare() (longest int, err error) {
	said := func(rank, of, what int) int {
		return int(binary.LittleEndian.Uint64(u.g.met(rank)[16*of+what:]))
	}
	size := u.c.dtype.Size()
	for from := range u.g.size {
		for to := range u.g.size {
			sends, gets := said(from, to, 0), said(to, from, 8)
			if sends != gets {
				text := fmt.Errorf("%w: rank %d sends %d elements to rank %d, which has room for %d",
					ErrMismatch, from, sends/size, to, gets/size)
				return 0, &RankError{Call: string(u.c.text), Ranks: u.others(from, to), Err: text}
			}
			longest = max(longest, sends)
		}
	}
	return longest, nil
}

// others returns which of two ranks are others than this one, in their order.
func (u *uneven) others(ranks ...int) []int {
	slices.Sort(ranks)
	return slices.DeleteFunc(slices.Compact(ranks), func(r int) bool { return r == u.g.Rank() })
}
