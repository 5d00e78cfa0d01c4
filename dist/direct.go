package dist

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/tensor"
)

// Note [Direct all-reduce] A large all-reduce does not copy tensors to the stage and back in many
// small steps. The ranks read each other's tensors in shared memory, in three turns:
//
//  1. Each rank writes the handles of its tensors to its slot. A tensor outside shared memory is
//     copied to a buffer, a block that the rank allocates for the call. The call continues through
//     the stage if a rank has no memory for a buffer, or a tensor on a device, or if two of the
//     tensors overlap.
//  2. Each rank reduces one slice of the tensors of all ranks into its own tensors.
//  3. Each rank copies the other slices from the ranks that reduced them.
//
// If there are buffers, these turns are repeated for each roundBytes of the tensors. A call that
// fits in one step through the stage, which has two turns, is not direct.
//
// A rank writes only to its own tensors and buffer. In turn 2 it writes its own slice, which no
// other rank reads. In turn 3 it writes the other slices, and no other rank reads its copy of them.
// The death of a rank therefore damages no tensor of another rank.
//
// A rank holds the blocks that it reads, so their memory is not reused if their owner dies or
// closes its tensors. The rank releases them before the last turn: when the call returns, no other
// rank holds a block of this one. Blocks are opened again in each call, which takes less than a
// microsecond for each. A cache would delay the release of tensors that are closed between calls.

const (
	// roundBytes limits the size of a buffer.
	roundBytes = 32 << 20
	// pieceOfBuffer is the number of bytes that are reduced before they are copied to the buffer.
	// They must fit in the CPU cache.
	pieceOfBuffer = 128 << 10
)

// An offer is the location of a rank's tensor in shared memory. The handle is 0 if the tensor is
// empty or copied to the buffer.
type offer struct {
	handle uint64
	offset int // in bytes
}

// offerBytes is the size of an encoded offer. A slot begins with the number of offers and the
// handle of the buffer.
const offerBytes = 16

// A direct is the state of a direct all-reduce in one rank.
type direct struct {
	near
	c       *call
	domain  *arena.Domain
	own     arena.Handle       // the buffer of this rank; 0 for none
	offers  [][]offer          // by rank and tensor
	buffers []uint64           // by rank; 0 for none
	at, n   int                // the bytes of this round
	opened  [][]*tensor.Tensor // by rank and tensor; the buffer comes last; nil until it is needed
	from    []operand
}

// reduceDirect makes a direct all-reduce; see Note [Direct all-reduce]. done is false, in all
// ranks, if the call must continue through the stage; the caller must then ignore err.
func (g near) reduceDirect(ctx context.Context, c *call) (done bool, err error) {
	d := &direct{near: g, c: c, domain: arena.Current(), n: min(c.in.size, roundBytes)}
	defer func() { err = errors.Join(err, d.close()) }()
	d.writeOffers()
	if err := g.awaitTurn(ctx, c); err != nil {
		return true, err
	}
	if !d.readOffers() {
		return false, nil
	}
	if !d.hasBuffers() {
		d.n = c.in.size
	}
	for {
		if err := d.finishTurn(ctx, d.reduceSlice()); err != nil {
			return true, err
		}
		err := d.copySlices()
		if d.at+d.n == c.in.size {
			return true, d.finishTurn(ctx, errors.Join(err, d.closeOpened()))
		}
		if err := d.finishTurn(ctx, err); err != nil {
			return true, err
		}
		d.at += d.n
		d.n = min(roundBytes, c.in.size-d.at)
		if err := d.finishTurn(ctx, d.fillBuffer()); err != nil {
			return true, err
		}
	}
}

// writeOffers writes the offers of this rank to its slot, and fills its buffer.
func (d *direct) writeOffers() {
	slot, parts := d.ownSlot(), d.c.in.parts
	clear(slot[:offerBytes])
	if offerBytes*(1+len(parts)) > len(slot) || d.domain == nil {
		return
	}
	d.offers, d.buffers = make([][]offer, d.Size()), make([]uint64, d.Size())
	own := make([]offer, len(parts))
	needed := false
	for i, p := range parts {
		if p.far != nil {
			return
		}
		own[i].handle, own[i].offset = tensors.Block(p.of)
		needed = needed || own[i].handle == 0 && p.size > 0
	}
	d.offers[d.Rank()] = own
	if needed {
		if d.own = d.domain.AllocSpare(d.n); d.own == 0 || d.fillBuffer() != nil {
			return
		}
	}
	for i, o := range own {
		at := slot[offerBytes*(1+i):]
		binary.LittleEndian.PutUint64(at, o.handle)
		binary.LittleEndian.PutUint64(at[8:], uint64(o.offset))
	}
	binary.LittleEndian.PutUint64(slot[8:], uint64(d.own))
	slot[0] = 1
}

// readOffers reads the offers of all ranks after the first turn. It returns false, in all ranks,
// if a rank made none or if tensors overlap; then the call must continue through the stage.
func (d *direct) readOffers() bool {
	parts := d.c.in.parts
	for r := range d.Size() {
		slot := d.lastSlot(r)
		if slot[0] == 0 {
			return false
		}
		own := make([]offer, len(parts))
		for i := range own {
			at := slot[offerBytes*(1+i):]
			own[i] = offer{binary.LittleEndian.Uint64(at), int(binary.LittleEndian.Uint64(at[8:]))}
		}
		d.offers[r], d.buffers[r] = own, binary.LittleEndian.Uint64(slot[8:])
		d.opened = append(d.opened, make([]*tensor.Tensor, len(parts)+1))
	}
	return !d.hasOverlap()
}

func (d *direct) hasBuffers() bool {
	return slices.ContainsFunc(d.buffers, func(h uint64) bool { return h != 0 })
}

// hasOverlap reports whether any two of the offered tensors overlap.
func (d *direct) hasOverlap() bool {
	type extent struct {
		offer
		size int
	}
	var all []extent
	for _, own := range d.offers {
		for i, o := range own {
			if n := d.c.in.parts[i].size; n > 0 && o.handle != 0 {
				all = append(all, extent{o, n})
			}
		}
	}
	slices.SortFunc(all, func(a, b extent) int {
		return cmp.Or(cmp.Compare(a.handle, b.handle), cmp.Compare(a.offset, b.offset))
	})
	for i := 1; i < len(all); i++ {
		if a, b := all[i-1], all[i]; a.handle == b.handle && b.offset < a.offset+a.size {
			return true
		}
	}
	return false
}

// fillBuffer copies the bytes of this round to this rank's buffer, if it has one. It omits
// tensors in shared memory, and the slice that this rank reduces itself.
func (d *direct) fillBuffer() error {
	if d.own == 0 {
		return nil
	}
	to, err := d.domain.Bytes(d.own)
	if err != nil {
		return err
	}
	for r := range d.Size() {
		if r == d.Rank() {
			continue
		}
		for s := range d.slice(r) {
			if d.offers[d.Rank()][s.part].handle == 0 {
				copy(to[s.at-d.at:][:s.n], d.c.in.parts[s.part].bytes[s.in:])
			}
		}
	}
	return nil
}

// reduceSlice reduces this rank's slice of all tensors.
func (d *direct) reduceSlice() error {
	rank, how := d.Rank(), reductions[d.c.dtype]
	size := how.as.Size()
	d.from = make([]operand, d.Size())
	for s := range d.slice(rank) {
		for r := range d.from {
			o, err := d.openOperand(r, s, size)
			if err != nil {
				return err
			}
			d.from[r] = o
		}
		if d.offers[rank][s.part].handle != 0 {
			how.fold(d.c.op, d.from[rank], d.from, s.n/size)
			continue
		}
		buffer, err := d.domain.Bytes(d.own)
		if err != nil {
			return err
		}
		for at := 0; at < s.n; at += pieceOfBuffer {
			n := min(pieceOfBuffer, s.n-at)
			how.fold(d.c.op, d.from[rank], d.from, n/size)
			copy(buffer[s.at-d.at+at:][:n], d.c.out.parts[s.part].bytes[s.in+at:])
			for r := range d.from {
				d.from[r].at += n / size
			}
		}
	}
	return nil
}

// copySlices copies the slices that the other ranks have reduced.
func (d *direct) copySlices() error {
	for i := 1; i < d.Size(); i++ {
		r := (d.Rank() + i) % d.Size() // so that the ranks read different memory
		for s := range d.slice(r) {
			o, err := d.openOperand(r, s, 1)
			if err != nil {
				return err
			}
			copy(d.c.out.parts[s.part].bytes[s.in:][:s.n], tensor.Bytes(o.of)[o.at:])
		}
	}
	return nil
}

// slice returns the parts of tensors that a rank reduces in this round.
func (d *direct) slice(rank int) iter.Seq[run] {
	lo, hi := d.reduceRange(rank, d.n)
	lo, hi = lo+d.at, hi+d.at
	return func(yield func(run) bool) {
		at := 0
		for i, p := range d.c.in.parts {
			from, to := max(lo, at), min(hi, at+p.size)
			if from < to && !yield(run{at: from, n: to - from, part: i, in: from - at}) {
				return
			}
			at += p.size
		}
	}
}

// openOperand returns the operand at the start of s in the memory of a rank. Its index counts
// units of size bytes. d owns the tensor, which stays open until closeOpened.
func (d *direct) openOperand(rank int, s run, size int) (operand, error) {
	o, as := d.offers[rank][s.part], reductions[d.c.dtype].as
	index, bytes, at := s.part, d.c.in.parts[s.part].size, s.in
	own := rank == d.Rank()
	if o.handle == 0 && !own {
		o, index = offer{handle: d.buffers[rank]}, len(d.offers[rank])
		bytes, at = min(d.c.in.size, roundBytes), s.at-d.at
	}
	if t := d.opened[rank][index]; t != nil {
		return operand{t, at / size}, nil
	}
	var t *tensor.Tensor
	if own {
		t = tensors.Vector(d.c.in.parts[s.part].of, as)
	} else {
		var err error
		if t, err = tensors.OpenBlock(o.handle, as, o.offset, bytes/as.Size()); err != nil {
			return operand{}, fmt.Errorf("dist: %s: open tensor %d of rank %d: %w", d.c.text, s.part, rank, err)
		}
	}
	d.opened[rank][index] = t
	return operand{t, at / size}, nil
}

// finishTurn tells the other ranks whether this one has failed, and awaits the turn. It returns
// nil if no rank has failed, else failed, or a [*RankError] that names the ranks that have
// failed. A rank also fails if the owner of a block has died or has given up the call. Then the
// turn itself fails, and its error is returned.
func (d *direct) finishTurn(ctx context.Context, failed error) error {
	slot := d.ownSlot()
	slot[0] = 0
	if failed != nil {
		slot[0] = 1
	}
	if err := d.awaitTurn(ctx, d.c); err != nil {
		return err
	}
	others := &RankError{Call: string(d.c.text), Err: errUnreadable}
	for r := range d.Size() {
		if d.lastSlot(r)[0] != 0 {
			others.Ranks = append(others.Ranks, r)
		}
	}
	switch {
	case failed != nil:
		return failed
	case others.Ranks != nil:
		return others
	}
	return nil
}

// errUnreadable is the error of ranks whose peers have failed in a direct all-reduce.
var errUnreadable = errors.New("could not read the tensors of other ranks")

// closeOpened releases the blocks of other ranks. It is idempotent.
func (d *direct) closeOpened() (err error) {
	for _, own := range d.opened {
		for i, t := range own {
			if t != nil {
				err = errors.Join(err, t.Close())
				own[i] = nil
			}
		}
	}
	return err
}

// close releases the blocks of other ranks and the buffer of this rank, which the other ranks
// may open until the last turn. reduceDirect must call it in every case.
func (d *direct) close() error {
	err := d.closeOpened()
	if d.own != 0 {
		err = errors.Join(err, d.domain.Release(d.own))
	}
	return err
}
