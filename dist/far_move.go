package dist

import (
	"context"
	"encoding/binary"
	"math"

	"github.com/shoal-mp/shoal/dist/internal/collective"
	"github.com/shoal-mp/shoal/tensor"
)

// farEngine is the engine of ranks that a library connects.
type farEngine struct{ *Group }

// pieceBytes is the largest number of bytes per library call. It is large enough for the library's
// best algorithms, and small enough to keep temporary copies small next to the tensors. Tests set
// it.
var pieceBytes = 64 << 20

// apart is the minimum size in bytes of a tensor that is reduced in place rather than with others.
const apart = 256 << 10

// awaitTurn compares the calls of all ranks, with the results of [Group.compareHeads]. One
// all-reduce yields the maximum of the texts' hash and of its complement, which shows whether
// all hashes are equal. If they differ, the ranks exchange the texts.
func (g farEngine) awaitTurn(ctx context.Context, c *call) error {
	head := make([]byte, headBytes)
	writeHead(head, c.text)
	var heads []byte
	err := g.runMove(ctx, c, func(*vector, *vector) error {
		hash := binary.LittleEndian.Uint64(head)
		both := make([]byte, 16)
		binary.LittleEndian.PutUint64(both, hash)
		binary.LittleEndian.PutUint64(both[8:], ^hash)
		if err := g.far.comm.AllReduce(collective.Int64, collective.Max, both); err != nil {
			return err
		}
		if binary.LittleEndian.Uint64(both) == ^binary.LittleEndian.Uint64(both[8:]) {
			return nil
		}
		heads = make([]byte, g.size*headBytes)
		return g.far.comm.AllGather(heads, head)
	})
	if err != nil {
		return err
	}
	if heads == nil {
		c.agreed = c.problem == nil
		return c.problem
	}
	for n := (nap{}); n.times < 20; n.backOff() { // an abandoned call may have matched this one
		if err := g.checkNotices(c, g.far.callCount()); err != nil {
			return err
		}
	}
	return g.compareHeads(c, func(rank int) []byte { return heads[rank*headBytes:][:headBytes] })
}

// runCompared compares the call across ranks and, if they agree, runs move as [Group.runMove]
// does.
func (g farEngine) runCompared(ctx context.Context, c *call, move func(in, out *vector) error) error {
	if err := g.awaitTurn(ctx, c); err != nil {
		return err
	}
	return g.runMove(ctx, c, move)
}

func (g farEngine) broadcast(ctx context.Context, c *call, root int) error {
	return g.runCompared(ctx, c, func(in, out *vector) error {
		for p := range in.runs() {
			b, err := p.bytes(in, g.Rank() == root)
			if err == nil {
				err = g.far.comm.Broadcast(root, b)
			}
			if err == nil && g.Rank() != root {
				err = p.writeBack(out, b)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

func (g farEngine) reduce(ctx context.Context, c *call, root int) error {
	r, gets := newReducer(c, g.size), root == everyRank || root == g.Rank()
	return g.runCompared(ctx, c, func(in, out *vector) error {
		for p := range in.runs() {
			err := r.reduceRun(in, out, p, gets, func(b []byte) error {
				if root == everyRank {
					return g.far.comm.AllReduce(r.kind, r.op, b)
				}
				return g.far.comm.Reduce(root, r.kind, r.op, b)
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// A scratch is a buffer that is allocated on first use. grow returns n bytes with arbitrary
// contents, valid until the next grow.
type scratch struct{ mem []byte }

func (s *scratch) grow(n int) []byte {
	if len(s.mem) < n {
		s.mem = make([]byte, n)
	}
	return s.mem[:n]
}

// forEachStep divides a part of part bytes, the same for each rank, into consecutive ranges, and
// calls step with the start and the length of each until step fails. A range is a multiple of
// unit bytes, and all ranks together move about pieceBytes in one step.
func (g farEngine) forEachStep(part, unit int, step func(at, n int) error) error {
	limit := max(unit, pieceBytes/g.size/unit*unit)
	for at := 0; at < part; at += limit {
		if err := step(at, min(limit, part-at)); err != nil {
			return err
		}
	}
	return nil
}

func (g farEngine) gather(ctx context.Context, c *call, root int) error {
	gets := root == everyRank || root == g.Rank()
	return g.runCompared(ctx, c, func(in, out *vector) error {
		var one, all scratch
		part := in.size
		return g.forEachStep(part, 1, func(at, n int) error {
			src, err := in.bytesAt(at, n, &one)
			if err != nil {
				return err
			}
			var dst []byte
			if gets {
				if dst = out.singleMemory(); dst == nil || n < part {
					dst = all.grow(n * g.size)
				}
			}
			if root == everyRank {
				err = g.far.comm.AllGather(dst, src)
			} else {
				err = g.far.comm.Gather(root, dst, src)
			}
			if err != nil || !gets {
				return err
			}
			return g.copyToParts(out, part, at, n, dst)
		})
	})
}

// copyToParts copies the pieces of all ranks, n bytes each, from all to their places in out: the
// piece of rank r goes to byte r*part+at. It does nothing if all is out's own memory.
func (g farEngine) copyToParts(out *vector, part, at, n int, all []byte) error {
	if out.isMemory(all) {
		return nil
	}
	for r := range g.size {
		if err := out.writeAt(r*part+at, all[r*n:][:n]); err != nil {
			return err
		}
	}
	return nil
}

// concatPieces returns the pieces of all ranks, n bytes each, one after another. The piece of
// rank r starts at byte r*part+at of in. The result is in's own memory if possible, or else a
// copy in s, valid until s is used again.
func (g farEngine) concatPieces(in *vector, part, at, n int, s *scratch) ([]byte, error) {
	if b := in.singleMemory(); b != nil && n == part {
		return b, nil
	}
	all := s.grow(n * g.size)
	for r := range g.size {
		if err := in.readAt(r*part+at, all[r*n:][:n]); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func (g farEngine) scatter(ctx context.Context, c *call, root int) error {
	return g.runCompared(ctx, c, func(in, out *vector) error {
		var one, all scratch
		part := out.size
		return g.forEachStep(part, 1, func(at, n int) (err error) {
			var src []byte
			if g.Rank() == root {
				if src, err = g.concatPieces(in, part, at, n, &all); err != nil {
					return err
				}
			}
			dst := one.grow(n)
			if err := g.far.comm.Scatter(root, dst, src); err != nil {
				return err
			}
			return out.writeAt(at, dst)
		})
	})
}

func (g farEngine) allToAll(ctx context.Context, c *call) error {
	return g.runCompared(ctx, c, func(in, out *vector) error {
		var leave, come scratch
		part := in.size / g.size
		return g.forEachStep(part, 1, func(at, n int) error {
			src, err := g.concatPieces(in, part, at, n, &leave)
			if err != nil {
				return err
			}
			dst := out.singleMemory()
			if dst == nil || n < part {
				dst = come.grow(n * g.size)
			}
			if err := g.far.comm.AllToAll(dst, src); err != nil {
				return err
			}
			return g.copyToParts(out, part, at, n, dst)
		})
	})
}

func (g farEngine) reduceScatter(ctx context.Context, c *call) error {
	r := newReducer(c, g.size)
	return g.runCompared(ctx, c, func(in, out *vector) error {
		var one, all, way scratch
		part := out.size
		return g.forEachStep(part, r.dtype.Size(), func(at, n int) error {
			src, err := g.concatPieces(in, part, at, n, &all)
			if err != nil {
				return err
			}
			if !r.isNative() && in.isMemory(src) { // src must stay unchanged
				src = append([]byte(nil), src...)
			}
			src = r.encodeElements(src)
			dst := way.grow(len(src) / g.size)
			if err := g.far.comm.ReduceScatter(r.kind, r.op, dst, src); err != nil {
				return err
			}
			b := one.grow(n)
			r.decodeElements(dst, b)
			return out.writeAt(at, b)
		})
	})
}

// exchange exchanges parts of different lengths. First the ranks exchange their byte counts, so
// that all of them make the same number of steps.
func (g farEngine) exchange(ctx context.Context, c *call, u *uneven) error {
	table := make([]byte, g.size*tableBytes)
	told := make([]byte, g.size*len(table))
	if c.problem == nil {
		u.encodeCounts(table)
	}
	err := g.runCompared(ctx, c, func(*vector, *vector) error { return g.far.comm.AllGather(told, table) })
	if err != nil {
		return err
	}
	longest, err := u.compareCounts(func(rank int) []byte { return told[rank*len(table):] })
	if err != nil {
		return err
	}
	keep := &c.out // so that abandonCall keeps these tensors too
	for _, v := range u.results {
		keep.parts = append(keep.parts, v.parts...)
	}
	for _, v := range u.parts {
		keep.parts = append(keep.parts, v.parts...)
	}
	return g.runMove(ctx, c, func(in, _ *vector) error {
		limit := min(longest, max(1, pieceBytes/g.size))
		mine := make([]byte, limit*g.size)
		come := make([]byte, limit*g.size)
		for at := 0; at < longest; at += limit {
			if u.parts == nil {
				n := stepBytes(u.out[0], at, limit)
				if err := in.readAt(at, mine[:n]); err != nil {
					return err
				}
				if err := g.far.comm.AllGather(come, mine[:limit]); err != nil {
					return err
				}
			} else {
				for r, v := range u.parts {
					if err := v.readAt(at, mine[r*limit:][:stepBytes(u.out[r], at, limit)]); err != nil {
						return err
					}
				}
				if err := g.far.comm.AllToAll(come, mine); err != nil {
					return err
				}
			}
			for r, v := range u.results {
				if err := v.writeAt(at, come[r*limit:][:stepBytes(u.in[r], at, limit)]); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// A reducer maps a reduction of package dist to one that the library supports. Half precision is
// reduced in float32, and complex numbers as pairs of floats. Max and Min of floats use integers of
// the same order, so that NaN propagates in the same way in all ranks.
type reducer struct {
	dtype tensor.DType
	as    tensor.DType
	by    Op
	ranks int
	kind  collective.Kind
	op    collective.Op
	keys  bool // Max or Min of floats
}

var kindOfDType = map[tensor.DType]collective.Kind{
	tensor.Uint8: collective.Uint8, tensor.Int8: collective.Int8, tensor.Int16: collective.Int16,
	tensor.Int32: collective.Int32, tensor.Int64: collective.Int64, tensor.Float32: collective.Float32,
	tensor.Float64: collective.Float64, tensor.Float16: collective.Float32, tensor.BFloat16: collective.Float32,
}

var farOps = map[Op]collective.Op{Sum: collective.Sum, Mean: collective.Sum, Max: collective.Max,
	Min: collective.Min, Prod: collective.Prod, BAnd: collective.BAnd, BOr: collective.BOr, BXor: collective.BXor}

func newReducer(c *call, ranks int) *reducer {
	r := &reducer{dtype: c.dtype, as: reductions[c.dtype].as, by: c.op, ranks: ranks, op: farOps[c.op]}
	r.kind = kindOfDType[r.as]
	if r.dtype == tensor.Bool {
		switch c.op {
		case Sum, Max:
			r.op = collective.BOr
		case Prod, Min:
			r.op = collective.BAnd
		}
	}
	if r.keys = (c.op == Max || c.op == Min) && (r.kind == collective.Float32 || r.kind == collective.Float64); r.keys {
		r.kind = map[collective.Kind]collective.Kind{collective.Float32: collective.Int32,
			collective.Float64: collective.Int64}[r.kind]
	}
	return r
}

// isWidened reports whether elements are converted to a wider type for the library.
func (r *reducer) isWidened() bool { return r.dtype == tensor.Float16 || r.dtype == tensor.BFloat16 }

// isNative reports whether the library can reduce the elements in their own format.
func (r *reducer) isNative() bool { return !r.isWidened() && !r.keys }

// reduceRun reduces the run p of in and writes the result to out. call must reduce b over the
// ranks, in place, in the library's format. If gets is false, this rank gets no result, and its
// tensor stays unchanged.
func (r *reducer) reduceRun(in, out *vector, p run, gets bool, call func(b []byte) error) error {
	b, err := p.bytes(in, true)
	if err != nil {
		return err
	}
	if !gets && !r.isNative() && p.hostMemory(in) != nil { // the tensor must stay unchanged
		b = append([]byte(nil), b...)
	}
	way := r.encodeElements(b)
	if err := call(way); err != nil || !gets {
		return err
	}
	r.decodeElements(way, b)
	return p.writeBack(out, b)
}

// encodeElements converts elements to the library's format and returns them: in place in b, or
// in a new buffer if that format is wider.
func (r *reducer) encodeElements(b []byte) []byte {
	if r.isWidened() {
		wide := copyToTensor(r.dtype, b).To(tensor.Float32)
		b = tensor.Bytes(wide)
	}
	if r.keys {
		toKeys(r.kind, b, r.by == Max)
	}
	return b
}

// decodeElements converts the reduced elements way from the library's format and writes them to
// b, which may be the same memory. It also divides for [Mean], and changes way.
func (r *reducer) decodeElements(way, b []byte) {
	if r.keys {
		fromKeys(r.kind, way)
	}
	if r.by == Mean {
		divideBytes(r.kind, way, r.ranks)
	}
	if r.isWidened() {
		half := copyToTensor(tensor.Float32, way).To(r.dtype)
		copy(b, tensor.Bytes(half))
	} else if len(way) > 0 && &way[0] != &b[0] {
		copy(b, way)
	}
}

// copyToTensor returns a tensor with a copy of b.
func copyToTensor(dt tensor.DType, b []byte) *tensor.Tensor {
	t := tensor.Empty(dt, len(b)/dt.Size())
	copy(tensor.Bytes(t), b)
	return t
}

// divideBytes divides floats by the number of ranks, as [divideByRanks] does.
func divideBytes(k collective.Kind, b []byte, ranks int) {
	dt := tensor.Float32
	if k == collective.Float64 {
		dt = tensor.Float64
	}
	t := tensor.Empty(dt, min(blockLen, len(b)/dt.Size()))
	own := tensor.Bytes(t)
	for len(b) > 0 {
		n := copy(own, b)
		if dt == tensor.Float32 {
			divideByRanks(tensor.Data[float32](t)[:n/4], ranks)
		} else {
			divideByRanks(tensor.Data[float64](t)[:n/8], ranks)
		}
		copy(b, own[:n])
		b = b[n:]
	}
}

// toKeys replaces floats by integers of the same order. NaN becomes the largest integer if largest
// is set, and otherwise the smallest, so it is always the result.
func toKeys(k collective.Kind, b []byte, largest bool) {
	if k == collective.Int32 {
		nan := math.Float32bits(float32(math.NaN())) &^ (1 << 31)
		if !largest {
			nan |= 1 << 31
		}
		for ; len(b) > 0; b = b[4:] {
			u := binary.LittleEndian.Uint32(b)
			if u&^(1<<31) > 0x7f800000 {
				u = nan
			}
			binary.LittleEndian.PutUint32(b, key32(u))
		}
		return
	}
	nan := math.Float64bits(math.NaN()) &^ (1 << 63)
	if !largest {
		nan |= 1 << 63
	}
	for ; len(b) > 0; b = b[8:] {
		u := binary.LittleEndian.Uint64(b)
		if u&^(1<<63) > 0x7ff<<52 {
			u = nan
		}
		binary.LittleEndian.PutUint64(b, key64(u))
	}
}

// key32 and key64 convert the bits of a float to the bits of a signed integer, so that the
// integers have the order of the floats. Each is its own inverse. For a negative float they flip
// all bits except the sign, because the order of the bits is reversed.
func key32(u uint32) uint32 { return u ^ uint32(int32(u)>>31)&(1<<31-1) }
func key64(u uint64) uint64 { return u ^ uint64(int64(u)>>63)&(1<<63-1) }

func fromKeys(k collective.Kind, b []byte) {
	if k == collective.Int32 {
		for ; len(b) > 0; b = b[4:] {
			binary.LittleEndian.PutUint32(b, key32(binary.LittleEndian.Uint32(b)))
		}
		return
	}
	for ; len(b) > 0; b = b[8:] {
		binary.LittleEndian.PutUint64(b, key64(binary.LittleEndian.Uint64(b)))
	}
}
