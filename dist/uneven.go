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
	return g.engine().exchange(ctx, c, &u)
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
	return g.engine().exchange(ctx, c, &u)
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
	parts   []vector // to send, by rank; nil if all get what the call brings
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

// now returns how many of n bytes go in the turn that begins at one of them.
func now(n, at, limit int) int { return min(limit, max(0, n-at)) }

// tell writes what this rank sends and gets: tableBytes for each rank.
func (u *uneven) tell(slot []byte) {
	for r := range u.g.size {
		binary.LittleEndian.PutUint64(slot[tableBytes*r:], uint64(u.out[r]))
		binary.LittleEndian.PutUint64(slot[tableBytes*r+8:], uint64(u.in[r]))
	}
}

// tableBytes is how much a rank tells of another one.
const tableBytes = 16

// compare returns the length of the longest part of any rank, or an error, the same in all ranks,
// if one sends what another does not get. told returns what a rank told.
func (u *uneven) compare(told func(rank int) []byte) (longest int, err error) {
	said := func(rank, of, what int) int {
		return int(binary.LittleEndian.Uint64(told(rank)[tableBytes*of+what:]))
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
