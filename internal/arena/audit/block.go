package audit

import (
	"cmp"
	"math/bits"
	"slices"
	"strconv"

	"github.com/shoal-mp/shoal/internal/arena/layout"
	"github.com/shoal-mp/shoal/internal/arena/word"
)

// checkState checks a block's state word, its holders, and the number of its messages. The rings
// must have been read before.
func (a *auditor) checkState(i uint32, b *layout.Block, w word.State) {
	a.counts.Blocks++
	part, observed := blockName(i), evidenceOf(b.State.Untyped(), uint64(w))
	if why := w.FindFault(); why != "" {
		a.addFinding(ruleState, part, []evidence{observed}, "state word %#x (%v): %s", uint64(w), w, why)
		return
	}
	if w.IsStamped() {
		a.checkStamper(w.Lane(), observed, part, w)
	}
	if a.rest && w.IsStamped() {
		a.addFinding(ruleRest, part, nil, "%v", w)
	}
	a.checkBits(&b.Own, "own", part)
	if w != a.before[i] {
		return // in use while the rings were read
	}
	a.checkTransit(part, i, w, observed)
	words := []evidence{observed}
	for k := range b.Own {
		words = append(words, evidenceOf(&b.Own[k], b.Own[k].Load()))
	}
	owned := slices.ContainsFunc(words[1:], func(s evidence) bool { return s.v != 0 })
	switch {
	case !w.IsAllocated() && owned:
		a.addFinding(ruleHolder, part, words, "%v, and participants hold it: own is %s", w, ownText(words[1:]))
	case w.IsAllocated() && !w.IsStamped() && !owned && w.TransitCount() == 0:
		a.addFinding(ruleHolder, part, words, "%v, and nothing holds it", w)
	case a.rest && a.self != nil && a.self.IsHeld(i) != b.Own.Has(a.self.Seat):
		a.addFinding(ruleHolder, part, nil, "the bit of this process disagrees with its count of references, held %v",
			a.self.IsHeld(i))
	}
}

// ownText formats a bitmap of participants as a list of seats.
func ownText(words []evidence) string {
	text := []byte("seats")
	for k, s := range words {
		for v := s.v; v != 0; v &= v - 1 {
			text = append(text, ' ')
			text = strconv.AppendInt(text, int64(k*64+bits.TrailingZeros64(v)), 10)
		}
	}
	return string(text)
}

// checkTransit compares a block's t with the messages that hold it. A put counts before its message
// is in the ring, and a get uncounts while its slot is READING.
func (a *auditor) checkTransit(part string, i uint32, w word.State, observed evidence) {
	t, least, most := w.TransitCount(), uint64(a.sure[i]), uint64(a.sure[i]+a.maybe[i])
	if w.Kind() == word.KindPut && !a.rest {
		most++
	}
	if t < least || t > most {
		a.addFinding(ruleTransit, part, []evidence{observed}, "%v, and %d messages hold it", w, least)
	}
}

// checkExtent checks a block's extent and committed length.
func (a *auditor) checkExtent(i uint32, b *layout.Block, w word.State) {
	e, n, part := b.Extent.Load(), b.Committed.Load(), blockName(i)
	words := []evidence{evidenceOf(&b.Extent, e)}
	off, most, ok := a.mem.ExtentRange(e)
	kind, end := layout.ExtentKind(e), min(a.mem.Header.Brk.Load(), uint64(len(a.mem.Data)))
	switch {
	case !ok, kind > layout.ObjectContents, e>>58 != 0 || e&(1<<layout.ExtentOffsetShift-1) != 0,
		layout.ExtentClass(e) != 0 && off+most > end:
		a.addFinding(ruleExtent, part, words, "extent %#x: class %d, kind %d, offset %d", e, layout.ExtentClass(e),
			kind, off)
	case n > most || n%layout.PageSize != 0 || e&layout.ExtentSmall != 0 && e&layout.ExtentLead == 0 && n != 0:
		a.addFinding(rulePages, part, append(words, evidenceOf(&b.Committed, n)),
			"extent %#x, committed %d bytes of %d", e, n, most)
	case w.IsSteady() && kind.IsToken() && layout.ExtentOffset(e)/64 >= a.mem.CountBlocks():
		a.addFinding(ruleExtent, part, words, "extent %#x: an end of ring %d, of %d blocks", e,
			layout.ExtentOffset(e)/64, a.count)
	}
}

// checkOverlaps checks that no two blocks overlap.
func (a *auditor) checkOverlaps() {
	type extent struct {
		off, end uint64
		index    uint32
		e        uint64
	}
	var all []extent
	a.eachBlock(func(i uint32, b *layout.Block, _ word.State) {
		e := b.Extent.Load()
		if c := layout.ExtentClass(e); c != 0 && c < layout.ClassCount {
			all = append(all, extent{layout.ExtentOffset(e), layout.ExtentOffset(e) + layout.ExtentSize(c), i, e})
		}
	})
	slices.SortFunc(all, func(x, y extent) int {
		return cmp.Or(cmp.Compare(x.off, y.off), cmp.Compare(x.index, y.index))
	})
	for k := 1; k < len(all) && a.hasTime(); k++ {
		if x, y := all[k-1], all[k]; y.off < x.end {
			a.addFinding(ruleOverlap, blockName(y.index), []evidence{evidenceOf(&a.mem.Blocks[x.index].Extent, x.e),
				evidenceOf(&a.mem.Blocks[y.index].Extent, y.e)}, "extents %#x and %#x: it overlaps with block %d", y.e,
				x.e, x.index)
		}
	}
}

// checkCharge compares the charged bytes with the committed bytes of all blocks, and with the pages
// that the kernel has allocated. While operations are in progress, more may be charged than is
// committed, and so it stays after the death of a process that had bytes to uncharge.
func (a *auditor) checkCharge() {
	w, sum := a.mem.Header.Budget.Load(), uint64(0)
	a.eachBlock(func(_ uint32, b *layout.Block, _ word.State) { sum += b.Committed.Load() })
	charged := w.Pages() * layout.PageSize
	if charged < sum || a.rest && charged != sum {
		a.addFinding(ruleCharge, "the budget", []evidence{evidenceOf(a.mem.Header.Budget.Untyped(), uint64(w))},
			"%d bytes are charged and %d belong to blocks", charged, sum)
	}
	if !a.rest || a.self == nil || a.self.Allocated == nil {
		return
	}
	if n, err := a.self.Allocated(); err != nil || uint64(n) != charged {
		a.addFinding(ruleCharge, "the budget", nil, "%d bytes are charged and the kernel has %d: %v", charged, n, err)
	}
}

// checkLists checks that the free lists have indices of blocks, and end.
func (a *auditor) checkLists() {
	h := a.mem.Header
	for c := range h.Lists {
		head := h.Lists[c].Load()
		words, steps := []evidence{evidenceOf(&h.Lists[c], head)}, uint32(0)
		for i := uint32(head); i != 0 && a.hasTime(); steps++ {
			if uint64(i) >= a.mem.CountBlocks() || steps > a.count {
				a.addFinding(ruleList, "the free list of class "+strconv.Itoa(c), words,
					"head %#x, and block %d after %d others", head, i, steps)
				break
			}
			if i >= a.count || h.Lists[c].Load() != head {
				break // changed since the pass began
			}
			next := &a.mem.Blocks[i].Next
			v := next.Load()
			words = append(words[:1], evidenceOf(next, v))
			i = uint32(v)
		}
	}
}

// checkListed checks that an allocation can find every free block. It knows the magazines of this
// process only, so it checks nothing if there are other participants.
func (a *auditor) checkListed() {
	if a.self == nil || a.mem.Header.Lost.Load() != layout.HintsKept || !a.isAlone() {
		return
	}
	known := make(map[uint32]bool)
	for _, index := range a.self.Kept() {
		known[index] = true
	}
	for c := range a.mem.Header.Lists {
		steps := uint32(0)
		for i := uint32(a.mem.Header.Lists[c].Load()); i != 0 && i < a.count && steps <= a.count; steps++ {
			known[i] = true
			i = uint32(a.mem.Blocks[i].Next.Load())
		}
	}
	a.eachBlock(func(i uint32, b *layout.Block, w word.State) {
		if !w.IsAllocated() && !known[i] {
			a.addFinding(ruleListed, blockName(i), nil, "free, of class %d, and on no list",
				layout.ExtentClass(b.Extent.Load()))
		}
	})
}

// isAlone reports whether no other process is a participant.
func (a *auditor) isAlone() bool {
	var own [layout.BitmapWords]uint64
	own[a.self.Seat/64] = 1 << (a.self.Seat % 64)
	return a.living == own
}
