package shm

import (
	"sync"
	"time"
)

// Free blocks keep their pages, since fresh pages cost ten times a copy. The trimmer gives the
// pages of big blocks back that were idle for a while: one look notes which blocks are free, and
// the next one, trimAge later, gives back those that nobody has used since.
const (
	trimAge  = 5 * time.Second
	trimSize = 32 << 20
)

// trimmer gives the pages of idle big blocks back. It has a timer only while there are such blocks.
type trimmer struct {
	mu    sync.Mutex
	timer *time.Timer
	idle  map[uint32]uint32 // index to generation, at the last look
}

// freed is called for every block that this process frees.
func (t *trimmer) freed(d *Domain, b *block) {
	if b.committed.Load() < trimSize {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.timer == nil {
		t.timer = time.AfterFunc(trimAge, func() { d.trim() })
	}
}

// trim is one look.
//
// A block of the same generation at both looks was not used between them: each use that ends adds
// one to it.
func (d *Domain) trim() {
	l, err := d.enter()
	if err != nil {
		return
	}
	defer l.unlock()
	t := &d.trimmer
	t.mu.Lock()
	defer t.mu.Unlock()
	before := t.idle
	t.idle = make(map[uint32]uint32)
	for i := uint32(1); uint64(i) < d.count(); i++ {
		b := &d.blocks[i]
		w := b.w.Load()
		if w&(allocBit|xoMask) != 0 || b.committed.Load() < trimSize {
			continue
		}
		if gen, ok := before[i]; ok && gen == w.generation() {
			l.punchIdle(b)
		} else {
			t.idle[i] = w.generation()
		}
	}
	t.timer = nil
	if len(t.idle) > 0 {
		t.timer = time.AfterFunc(trimAge, func() { d.trim() })
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
