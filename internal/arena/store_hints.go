package arena

import (
	"github.com/shoal-mp/shoal/internal/arena/layout"
	"github.com/shoal-mp/shoal/internal/arena/word"
)

// The free blocks of a class form a list. Its head is a word {epoch 12 | tag 20 | index 32}, and
// its links are the blocks' next words {epoch 31 | listed 1 | index 32}. The lists are hints: a
// lane owns a popped block only after the CAS of the block's state word, and a sweep finds a block
// again if the lane that popped it died. Only the lane that changes a block's mark to listed may
// push it, so a block is on at most one list.
const (
	hintListed     = 1 << 32
	hintEpochShift = 33
	hintTries      = 64
)

// Each lane keeps a few freed blocks of each smaller class for its next allocations.
const (
	magazineClasses = 48 // classes up to 64 KiB
	magazineSize    = 8
)

type magazine struct {
	n     int32
	index [magazineSize]uint32
}

// addFreeBlock makes a free block available to later allocations.
func (l *lane) addFreeBlock(index uint32) {
	c := layout.ExtentClass(l.d.mem.Blocks[index].Extent.Load())
	if c < magazineClasses {
		if l.mags == nil {
			l.mags = new([magazineClasses]magazine)
		}
		if m := &l.mags[c]; m.n < magazineSize {
			m.index[m.n] = index
			m.n++
			if l.keeps.Load()&(1<<c) == 0 {
				l.keeps.Or(1 << c)
			}
			return
		}
	}
	l.d.pushFree(c, index)
}

// gatherFree moves the blocks of class c from the magazines of this process's other lanes to the
// list, and reports whether it moved any. A lane that finds no block must call it before it takes
// new memory. Otherwise each lane would keep idle blocks of its own, because goroutines that
// allocate seldom use the lanes of goroutines that free.
func (l *lane) gatherFree(c int) bool {
	if c >= magazineClasses {
		return false
	}
	found := false
	for i := range commonLanes {
		o := &l.d.lanes[i]
		if o == l || o.keeps.Load()&(1<<c) == 0 || !o.tryLock() {
			continue
		}
		o.keeps.And(^uint64(1 << c))
		for m := &o.mags[c]; m.n > 0; found = true {
			m.n--
			l.d.pushFree(c, m.index[m.n])
		}
		o.unlock()
	}
	return found
}

// nextFree removes a block of class c from the lane's magazine or the free list, and returns its
// index, or 0 if there is none. The block may be in use: the caller must claim it.
func (l *lane) nextFree(c int) uint32 {
	if c < magazineClasses && l.mags != nil {
		if m := &l.mags[c]; m.n > 0 {
			m.n--
			return m.index[m.n]
		}
	}
	return l.d.popFree(c)
}

// headEpoch returns the epoch in the head of a list, which is {epoch 12 | tag 20 | index 32}.
// The epoch belongs to the last sweep that emptied the list, and a block may be linked only into
// a list of the epoch in the block's mark. So a push that is overtaken by a sweep does not link
// a block twice.
func headEpoch(head uint64) uint64 { return head >> 52 }

func nextHead(head uint64, index uint64) uint64 {
	tag := (head>>32 + 1) & (1<<20 - 1)
	return headEpoch(head)<<52 | tag<<32 | index
}

func (d *Domain) pushFree(c int, index uint32) {
	if c >= layout.ClassCount {
		// corrupt logs the error; the block is lost
		_ = reportCorruption("the class of a free block", uint64(c))
		return
	}
	head, next := &d.mem.Header.Lists[c], &d.mem.Blocks[index].Next
	for wrote := uint64(0); ; {
		// The mark must be read before the head: its epoch is then never newer, and a block of the
		// new list is not listed twice.
		mark := next.Load()
		top := head.Load()
		here := headEpoch(top)<<hintEpochShift | hintListed
		if mark&^0xffffffff == here && mark != wrote {
			return // it is listed already
		}
		link := here | top&0xffffffff
		if !next.CAS(mark, link) {
			continue
		}
		wrote = link
		if head.CAS(top, nextHead(top, uint64(index))) {
			return
		}
	}
}

// popFree removes a block from the list of class c and returns its index, or 0 if the list is
// empty.
//
// A popped index is a hint (docs/memory.md, "Free hints"): its block may be in use, or also in a
// lane's magazine. The claim of the block's state word decides, so a wrong list entry costs a
// look and never loses a block.
func (d *Domain) popFree(c int) uint32 {
	head := &d.mem.Header.Lists[c]
	for {
		top := head.Load()
		index := uint32(top)
		if index == 0 {
			return 0
		}
		if uint64(index) >= d.blockCount() {
			d.markHintsLost() // corrupt: a sweep rebuilds the list
			return 0
		}
		next := &d.mem.Blocks[index].Next
		link := next.Load()
		if !head.CAS(top, nextHead(top, link&0xffffffff)) {
			continue
		}
		if link&hintListed != 0 {
			next.CAS(link, link&^hintListed)
		}
		return index
	}
}

// markHintsLost makes the next lane that finds a list empty run a sweep. A sweep in progress may
// have passed the lost block already, so its end does not clear the flag.
func (d *Domain) markHintsLost() { d.mem.Header.Lost.Store(layout.HintsLost) }

// sweepFree puts every free block on its list again if hints were lost, and reports whether it
// did. It returns false if no hints were lost or another lane sweeps already. Lists lose blocks
// if a process dies between two steps. The reaper then sets the flag in the header, and the next
// lane that finds a list empty sweeps. If the sweeper dies, its reaper sets the flag again.
func (d *Domain) sweepFree() bool {
	if d.mem.Header.Lost.Load() != layout.HintsLost || !d.mem.Header.Lost.CAS(layout.HintsLost, layout.HintsSweeping) {
		return false
	}
	epoch := d.mem.Header.Hints.Add(1) & (1<<12 - 1)
	for c := range d.mem.Header.Lists {
		for head := &d.mem.Header.Lists[c]; ; {
			top := head.Load()
			if head.CAS(top, epoch<<52|nextHead(top, 0)&(1<<52-1)) {
				break
			}
		}
	}
	for i := uint32(1); uint64(i) < d.blockCount(); i++ {
		b := &d.mem.Blocks[i]
		if b.State.Load()&(word.AllocBit|word.StampMask) == 0 {
			d.pushFree(layout.ExtentClass(b.Extent.Load()), i)
		}
	}
	d.mem.Header.Lost.CAS(layout.HintsSweeping, layout.HintsKept)
	return true
}

// searchFree claims a free block of class c without using the lists. It returns the index of the
// block, which is stamped (l, ALLOC), or 0. It must be used while another lane's sweep has
// emptied the lists and not filled them again: new memory instead would let idle memory grow
// with each sweep.
func (l *lane) searchFree(c int) uint32 {
	for i := uint32(1); uint64(i) < l.d.blockCount(); i++ {
		if l.claimBlock(i, c) {
			return i
		}
	}
	return 0
}
