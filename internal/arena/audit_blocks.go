package arena

import (
	"cmp"
	"math/bits"
	"slices"
	"strconv"

	"github.com/shoal-mp/shoal/internal/arena/word"
	"github.com/shoal-mp/shoal/internal/sys"
)

// checkState checks a block's state word, its holders, and the number of its messages. The rings
// must have been read before.
func (a *auditor) checkState(i uint32, b *block, w word.State) {
	a.counts.Blocks++
	part, observed := blockName(i), seenWord(b.w.Untyped(), uint64(w))
	if why := w.FindFault(); why != "" {
		a.addFinding(ruleState, part, []seen{observed}, "state word %#x (%v): %s", uint64(w), w, why)
		return
	}
	if w.IsStamped() {
		a.checkStamper(w.Lane(), observed, part, w)
	}
	if a.rest && w.IsStamped() {
		a.addFinding(ruleRest, part, nil, "%v", w)
	}
	a.checkBits(&b.own, "own", part)
	if w != a.before[i] {
		return // in use while the rings were read
	}
	a.checkTransit(part, i, w, observed)
	words := []seen{observed}
	for k := range b.own {
		words = append(words, seenWord(&b.own[k], b.own[k].Load()))
	}
	owned := slices.ContainsFunc(words[1:], func(s seen) bool { return s.v != 0 })
	switch {
	case !w.IsAllocated() && owned:
		a.addFinding(ruleHolder, part, words, "%v, and participants hold it: own is %s", w, ownText(words[1:]))
	case w.IsAllocated() && !w.IsStamped() && !owned && w.TransitCount() == 0:
		a.addFinding(ruleHolder, part, words, "%v, and nothing holds it", w)
	case a.rest && a.d.seat >= 0 && a.d.isHeld(i) != (b.own[a.d.word].Load()&a.d.bit != 0):
		a.addFinding(ruleHolder, part, nil, "the bit of this process disagrees with its count of references, held %v",
			a.d.isHeld(i))
	}
}

// ownText formats a bitmap of participants as a list of seats.
func ownText(words []seen) string {
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
func (a *auditor) checkTransit(part string, i uint32, w word.State, observed seen) {
	t, least, most := w.TransitCount(), uint64(a.sure[i]), uint64(a.sure[i]+a.maybe[i])
	if w.Kind() == word.KindPut && !a.rest {
		most++
	}
	if t < least || t > most {
		a.addFinding(ruleTransit, part, []seen{observed}, "%v, and %d messages hold it", w, least)
	}
}

// checkExtent checks a block's extent and committed length.
func (a *auditor) checkExtent(i uint32, b *block, w word.State) {
	e, n, part := b.ext.Load(), b.committed.Load(), blockName(i)
	words := []seen{seenWord(&b.ext, e)}
	off, most, ok := a.d.peekRange(e)
	kind, end := extKind(e), min(a.d.hdr.brk.Load(), uint64(len(a.d.bytes)))
	switch {
	case !ok, kind > objectContents, e>>58 != 0 || e&(1<<extOffsetShift-1) != 0,
		extClass(e) != 0 && off+most > end:
		a.addFinding(ruleExtent, part, words, "extent %#x: class %d, kind %d, offset %d", e, extClass(e), kind, off)
	case n > most || n%pageSize != 0 || e&extSmall != 0 && e&extLead == 0 && n != 0:
		a.addFinding(rulePages, part, append(words, seenWord(&b.committed, n)),
			"extent %#x, committed %d bytes of %d", e, n, most)
	case w.IsSteady() && kind.isToken() && extOffset(e)/64 >= a.d.blockCount():
		a.addFinding(ruleExtent, part, words, "extent %#x: an end of ring %d, of %d blocks", e,
			extOffset(e)/64, a.count)
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
	a.eachBlock(func(i uint32, b *block, _ word.State) {
		e := b.ext.Load()
		if c := extClass(e); c != 0 && c < classCount {
			all = append(all, extent{extOffset(e), extOffset(e) + extentSize(c), i, e})
		}
	})
	slices.SortFunc(all, func(x, y extent) int {
		return cmp.Or(cmp.Compare(x.off, y.off), cmp.Compare(x.index, y.index))
	})
	for k := 1; k < len(all) && a.hasTime(); k++ {
		if x, y := all[k-1], all[k]; y.off < x.end {
			a.addFinding(ruleOverlap, blockName(y.index), []seen{seenWord(&a.d.blocks[x.index].ext, x.e),
				seenWord(&a.d.blocks[y.index].ext, y.e)}, "extents %#x and %#x: it overlaps with block %d", y.e,
				x.e, x.index)
		}
	}
}

// checkCharge compares the charged bytes with the committed bytes of all blocks, and with the pages
// that the kernel has allocated. While operations are in progress, more may be charged than is
// committed, and so it stays after the death of a process that had bytes to uncharge.
func (a *auditor) checkCharge() {
	w, sum := a.d.hdr.budget.Load(), uint64(0)
	a.eachBlock(func(_ uint32, b *block, _ word.State) { sum += b.committed.Load() })
	charged := w.Pages() * pageSize
	if charged < sum || a.rest && charged != sum {
		a.addFinding(ruleCharge, "the budget", []seen{seenWord(a.d.hdr.budget.Untyped(), uint64(w))},
			"%d bytes are charged and %d belong to blocks", charged, sum)
	}
	s, ok := a.d.store.(*memfds)
	if !ok || !a.rest {
		return
	}
	if n, err := sys.Allocated(s.dataFile); err != nil || uint64(n) != charged {
		a.addFinding(ruleCharge, "the budget", nil, "%d bytes are charged and the kernel has %d: %v", charged, n, err)
	}
}

// checkLists checks that the free lists have indices of blocks, and end.
func (a *auditor) checkLists() {
	h := a.d.hdr
	for c := range h.lists {
		head := h.lists[c].Load()
		words, steps := []seen{seenWord(&h.lists[c], head)}, uint32(0)
		for i := uint32(head); i != 0 && a.hasTime(); steps++ {
			if uint64(i) >= a.d.blockCount() || steps > a.count {
				a.addFinding(ruleList, "the free list of class "+strconv.Itoa(c), words,
					"head %#x, and block %d after %d others", head, i, steps)
				break
			}
			if i >= a.count || h.lists[c].Load() != head {
				break // changed since the pass began
			}
			next := &a.d.blocks[i].next
			v := next.Load()
			words = append(words[:1], seenWord(next, v))
			i = uint32(v)
		}
	}
}

// checkListed checks that an allocation can find every free block. It knows the magazines of this
// process only, so it checks nothing if there are other participants.
func (a *auditor) checkListed() {
	if a.d.seat < 0 || a.d.hdr.lost.Load() != hintsKept || a.living != a.d.own() {
		return
	}
	known := make(map[uint32]bool)
	for i := range a.d.lanes {
		mags := a.d.lanes[i].mags
		if mags == nil {
			continue
		}
		for _, m := range mags {
			for _, index := range m.index[:m.n] {
				known[index] = true
			}
		}
	}
	for c := range a.d.hdr.lists {
		steps := uint32(0)
		for i := uint32(a.d.hdr.lists[c].Load()); i != 0 && i < a.count && steps <= a.count; steps++ {
			known[i] = true
			i = uint32(a.d.blocks[i].next.Load())
		}
	}
	a.eachBlock(func(i uint32, b *block, w word.State) {
		if !w.IsAllocated() && !known[i] {
			a.addFinding(ruleListed, blockName(i), nil, "free, of class %d, and on no list", extClass(b.ext.Load()))
		}
	})
}

// own returns a participant bitmap with this participant's bit.
func (d *Domain) own() (bits [ownWords]uint64) {
	bits[d.word] = d.bit
	return bits
}
