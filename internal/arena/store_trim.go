package arena

import (
	"sync"
	"time"
)

// Free blocks keep their pages, since fresh pages cost ten times a copy. The trimmer gives the
// pages of big blocks back that were idle for a while: one look notes which blocks are free, and
// the next one, trimAge later, gives back those that nobody has used since.
//
// Big is what the tensors of a network are: weights that were replaced are many blocks of a few
// MiB. All smaller blocks of a program together are rarely worth a call each.
const (
	trimAge  = 5 * time.Second
	trimSize = 1 << 20
)

// trimmer gives the pages of idle big blocks back. It has a timer only while there are such blocks.
type trimmer struct {
	mu    sync.Mutex
	timer *time.Timer // of the next look, or of the one that is going on
	again bool        // a block became free since the last look began

	idle map[uint32]uint32 // index to generation, at the last look; only a look uses it
}

// freed is called for every block that this process frees.
func (t *trimmer) freed(d *Domain, b *block) {
	if b.committed.Load() >= trimSize {
		t.soon(d)
	}
}

func (t *trimmer) soon(d *Domain) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.again = true
	if t.timer == nil {
		t.timer = time.AfterFunc(trimAge, d.trim)
	}
}

// TrimSoon looks for idle blocks as if this process had freed one. The starter of a process calls
// it when that one has ended: what it freed at last, it did not live to give back.
func (d *Domain) TrimSoon() { d.trimmer.soon(d) }

// trim is one look.
//
// A block of the same generation at both looks was not used between them: each use that ends adds
// one to it. The pages of many blocks take long to give back, so nobody waits for a look: the lane
// is free between two blocks, and the mutex all the while.
func (d *Domain) trim() {
	t := &d.trimmer
	t.mu.Lock()
	t.again = false
	t.mu.Unlock()
	before := t.idle
	t.idle = make(map[uint32]uint32)
	for i := uint32(1); uint64(i) < d.count(); i++ {
		b := &d.blocks[i]
		w := b.w.Load()
		if w&(allocBit|xoMask) != 0 || b.committed.Load() < trimSize {
			continue
		}
		if gen, ok := before[i]; !ok || gen != w.generation() {
			t.idle[i] = w.generation()
			continue
		}
		l, err := d.enter()
		if err != nil {
			return
		}
		l.punchIdle(b)
		l.unlock()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.timer = nil
	if t.again || len(t.idle) > 0 {
		t.timer = time.AfterFunc(trimAge, d.trim)
	}
}

// stop ends the timer.
func (t *trimmer) stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.timer != nil {
		t.timer.Stop()
	}
}
