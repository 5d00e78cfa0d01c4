package dist

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/shoal-mp/shoal/tensor"
)

// AllGatherTensors copies the src of rank r to dst[r] in all ranks: torch's all_gather. src may
// differ in shape between ranks. dst must have Size() tensors, and all tensors must be
// contiguous and of one dtype; otherwise this rank gets [ErrTensor] and the others
// [ErrMismatch]. dst[r] must have as many elements as the src of rank r; otherwise all ranks get
// ErrMismatch.
func (g *Group) AllGatherTensors(ctx context.Context, dst []*tensor.Tensor, src *tensor.Tensor) error {
	c, err := g.beginCall(ctx, "all_gather_tensors", "")
	if err != nil {
		return err
	}
	defer g.endCall(slices.Concat(dst, []*tensor.Tensor{src})...)
	u := uneven{g: g, c: c}
	u.setReceivers(dst, src.DType())
	u.checkDType(src)
	for range g.size {
		u.out = append(u.out, lengthOf(src))
	}
	c.addInput(src)
	defer touchAll(dst)
	return g.engine().exchange(ctx, c, &u)
}

// AllToAllTensors sends src[r] to rank r, and receives the tensor from rank r into dst[r]:
// torch's all_to_all. Tensors may differ in shape. dst and src must have Size() tensors, and all
// must be contiguous and of one dtype; otherwise this rank gets [ErrTensor] and the others
// [ErrMismatch]. dst[r] must have as many elements as rank r sends; otherwise all ranks get
// ErrMismatch.
func (g *Group) AllToAllTensors(ctx context.Context, dst, src []*tensor.Tensor) error {
	c, err := g.beginCall(ctx, "all_to_all_tensors", "")
	if err != nil {
		return err
	}
	defer g.endCall(slices.Concat(dst, src)...)
	u := uneven{g: g, c: c}
	u.setReceivers(dst, dtypeOf(src, dst))
	u.checkDType(src...)
	if len(src) != g.size {
		c.recordProblem("%d tensors to send, want %d, one per rank", len(src), g.size)
	}
	for _, t := range src {
		u.out = append(u.out, lengthOf(t))
		var v vector
		if c.problem == nil {
			v.appendTensor(t)
		}
		u.parts = append(u.parts, v)
	}
	defer touchAll(dst)
	return g.engine().exchange(ctx, c, &u)
}

// allToAllSplits implements AllToAll for parts of different lengths.
func (g *Group) allToAllSplits(ctx context.Context, dst, src *tensor.Tensor, dstSplits, srcSplits []int) error {
	to, err := splitRows(src, srcSplits)
	defer closeAll(to)
	if err == nil {
		var from []*tensor.Tensor
		from, err = splitRows(dst, dstSplits)
		defer closeAll(from)
		if err == nil {
			return g.AllToAllTensors(ctx, from, to)
		}
	}
	c, e := g.beginCall(ctx, "all_to_all_tensors", "") // fail in all ranks
	if e != nil {
		return e
	}
	defer g.endCall(dst, src)
	c.recordProblem("%v", err)
	return g.awaitTurn(ctx, c)
}

// splitRows splits the first dimension of t into views of the given numbers of rows. The caller
// must close them, also if there is an error.
func splitRows(t *tensor.Tensor, splits []int) (parts []*tensor.Tensor, err error) {
	if t.Dims() == 0 {
		return nil, errors.New("tensor has 0 dimensions, want at least 1")
	}
	left := t.Dim(0)
	for _, n := range splits {
		if n < 0 || n > left {
			return parts, fmt.Errorf("splits %v, want non-negative counts that add up to %d rows", splits, t.Dim(0))
		}
		parts = append(parts, t.Narrow(0, t.Dim(0)-left, n))
		left -= n
	}
	if left > 0 {
		return parts, fmt.Errorf("splits %v, want non-negative counts that add up to %d rows", splits, t.Dim(0))
	}
	return parts, nil
}

func closeAll(ts []*tensor.Tensor) {
	for _, t := range ts {
		t.Close()
	}
}

// dtypeOf returns the dtype of the first tensor that is not nil, or Float32 if there is none.
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

// An uneven is a call that exchanges parts of different lengths. In its first turn each rank
// publishes the numbers of bytes that it sends to and expects from each rank. All ranks therefore
// detect the same mismatches and take the same number of turns.
type uneven struct {
	g       *Group
	c       *call
	out, in []int    // bytes per rank
	parts   []vector // data to send per rank; nil if all ranks get the call's input
	results []vector // tensors to fill per rank
}

// setReceivers sets the tensors that receive the data and the dtype of the call. It records an
// error unless dst has one tensor of this dtype for each rank.
func (u *uneven) setReceivers(dst []*tensor.Tensor, dt tensor.DType) {
	u.c.dtype = dt
	u.c.text = append(append(u.c.text, " of "...), dt.String()...)
	if len(dst) != u.g.size {
		u.c.recordProblem("%d tensors to receive, want %d, one per rank", len(dst), u.g.size)
	}
	u.checkDType(dst...)
	for _, t := range dst {
		u.in = append(u.in, lengthOf(t))
		var v vector
		if u.c.problem == nil {
			v.appendTensor(t)
		}
		u.results = append(u.results, v)
	}
}

// checkDType records an error in the call unless all tensors are contiguous, of the call's dtype
// and not nil.
func (u *uneven) checkDType(ts ...*tensor.Tensor) {
	for r, t := range ts {
		if t == nil {
			u.c.recordProblem("tensor %d is nil", r)
			return
		}
		u.c.checkTensors(t)
	}
}

func lengthOf(t *tensor.Tensor) int {
	if t == nil {
		return 0
	}
	return t.Nbytes()
}

// stepBytes returns the number of bytes, of n, that are moved in the turn that starts at byte at.
func stepBytes(n, at, limit int) int { return min(limit, max(0, n-at)) }

// encodeCounts encodes the byte counts of this rank into slot, tableBytes for each rank.
func (u *uneven) encodeCounts(slot []byte) {
	for r := range u.g.size {
		binary.LittleEndian.PutUint64(slot[tableBytes*r:], uint64(u.out[r]))
		binary.LittleEndian.PutUint64(slot[tableBytes*r+8:], uint64(u.in[r]))
	}
}

// tableBytes is the size of the counts for one peer.
const tableBytes = 16

// compareCounts returns the length in bytes of the longest part of any rank. It returns a
// [*RankError] that wraps [ErrMismatch], with the same text in all ranks, if a rank sends more
// or fewer bytes than the receiver expects. told returns the encoded counts of a rank.
func (u *uneven) compareCounts(told func(rank int) []byte) (longest int, err error) {
	said := func(rank, of, what int) int {
		return int(binary.LittleEndian.Uint64(told(rank)[tableBytes*of+what:]))
	}
	size := u.c.dtype.Size()
	for from := range u.g.size {
		for to := range u.g.size {
			sends, gets := said(from, to, 0), said(to, from, 8)
			if sends != gets {
				text := fmt.Errorf("%w: rank %d sends %d elements to rank %d, which expects %d",
					ErrMismatch, from, sends/size, to, gets/size)
				return 0, &RankError{Call: string(u.c.text), Ranks: u.otherRanks(from, to), Err: text}
			}
			longest = max(longest, sends)
		}
	}
	return longest, nil
}

// otherRanks returns the given ranks without this one, sorted.
func (u *uneven) otherRanks(ranks ...int) []int {
	slices.Sort(ranks)
	return slices.DeleteFunc(slices.Compact(ranks), func(r int) bool { return r == u.g.Rank() })
}
