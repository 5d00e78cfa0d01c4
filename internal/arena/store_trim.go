package arena

import (
	"sync"
	"time"

	"github.com/shoal-mp/shoal/internal/arena/layout"
	"github.com/shoal-mp/shoal/internal/arena/word"
)

// Free blocks keep their pages, because fresh pages cost ten times as much as a copy. The trimmer
// gives back the pages of big blocks that have been idle for a while: one scan records which blocks
// are free, and the next one, trimAge later, gives back the pages of blocks that have not been used
// since.
//
// Blocks count as big from the size of a network's tensors on: replaced weights are many blocks of
// a few MiB. All smaller blocks of a program together are rarely worth a system call each.
const (
	trimAge  = 5 * time.Second
	trimSize = 1 << 20
)

// trimmer gives back the pages of idle big blocks. Its timer runs only while there are such blocks.
type trimmer struct {
	mu    sync.Mutex
	timer *time.Timer // timer of the next scan, or of the one in progress
	again bool        // a block became free since the last scan began

	idle map[uint32]uint32 // index to generation, at the last scan; accessed only by scans
}

// recordFreed schedules a scan if b, which this process has just freed, is big. It must be
// called for every block that this process frees.
func (t *trimmer) recordFreed(d *Domain, b *layout.Block) {
	if b.Committed.Load() >= trimSize {
		t.scheduleTrim(d)
	}
}

func (t *trimmer) scheduleTrim(d *Domain) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.again = true
	if t.timer == nil {
		t.timer = time.AfterFunc(trimAge, d.trimIdleBlocks)
	}
}

// TrimSoon schedules a scan for idle blocks as if this process had freed one. A process that
// started another one should call it after that one has ended, because the ended process did not
// give back the pages of the last blocks that it freed.
func (d *Domain) TrimSoon() { d.trimmer.scheduleTrim(d) }

// trimIdleBlocks runs one scan.
//
// A block with the same generation in both scans was not used between them, because the end of each
// use increments the generation. Giving back the pages of many blocks takes long, so trimIdleBlocks
// releases its lane between two blocks, and does not hold the mutex meanwhile.
func (d *Domain) trimIdleBlocks() {
	t := &d.trimmer
	t.mu.Lock()
	t.again = false
	t.mu.Unlock()
	before := t.idle
	t.idle = make(map[uint32]uint32)
	for i := uint32(1); uint64(i) < d.blockCount(); i++ {
		b := &d.mem.Blocks[i]
		w := b.State.Load()
		if w&(word.AllocBit|word.StampMask) != 0 || b.Committed.Load() < trimSize {
			continue
		}
		if gen, ok := before[i]; !ok || gen != w.Generation() {
			t.idle[i] = w.Generation()
			continue
		}
		l, err := d.acquireLane()
		if err != nil {
			return
		}
		l.punchIdleBlock(b)
		l.unlock()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.timer = nil
	if t.again || len(t.idle) > 0 {
		t.timer = time.AfterFunc(trimAge, d.trimIdleBlocks)
	}
}

// stopTimer stops the timer.
func (t *trimmer) stopTimer() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.timer != nil {
		t.timer.Stop()
	}
}
