package arena

import (
	"math"
	"runtime/metrics"
	"sync/atomic"
	"time"

	"github.com/shoal-mp/shoal/internal/arena/layout"
)

// Programs leave tensors to the garbage collector. A tensor uses so little of Go's heap that the
// collector hardly ever runs for it, and its block would stay in use for minutes. So a process runs
// the collector according to the bytes of the blocks that it has allocated and received.

const (
	forgottenBytes = 16 << 20 // minimum number of bytes that is worth a collection
	freshSpeed     = 5        // speed at which the system provides pages, in bytes per nanosecond
)

// collectIfDue collects garbage if so many bytes were handed out since the last time that a
// collection is likely to find blocks. It waits at most as long as fresh pages for commit bytes
// would take, and reports whether there may be blocks with pages now. A program that closes its
// tensors hardly ever gets here, because it reuses its blocks.
func (l *lane) collectIfDue(commit uint64) bool {
	d := l.d
	if l.handed < max(forgottenBytes, d.mem.Header.Budget.Load().Pages()*layout.PageSize/2) || l.handed < heapGoal() {
		return false
	}
	l.handed = 0
	done := make(chan struct{})
	go func() {
		defer close(done)
		d.collectForgotten()
	}()
	select {
	case <-done:
		return true
	// later allocations use the blocks that it finds
	case <-time.After(time.Duration(commit / freshSpeed)):
		return false
	}
}

// collectForgotten runs one collection, which finds the blocks of unreachable tensors. Blocks in
// messages of unreachable queues are left to a later one.
func (d *Domain) collectForgotten() {
	d.collecting.Lock()
	defer d.collecting.Unlock()
	collectOnce()
}

// heapGoal returns the heap size in bytes at which the collector runs next, or the largest number
// if the collector is off.
func heapGoal() uint64 {
	m := []metrics.Sample{{Name: "/gc/gogc:percent"}, {Name: "/gc/heap/goal:bytes"}}
	metrics.Read(m)
	if m[0].Value.Uint64() > math.MaxInt32 {
		return math.MaxUint64
	}
	return m[1].Value.Uint64()
}

// received counts the bytes of the blocks that this process has received in messages.
type received struct {
	bytes      atomic.Int64 // currently held
	goal       atomic.Int64 // the bytes at which to collect; 0 before the first block
	collecting atomic.Bool
	kept       uint64 // bytes after the last collection; accessed only by the collecting goroutine
}

// Received counts n bytes of a block that this process has received. It starts a garbage collection
// in the background if the process holds at least twice as much as after the last collection, and
// at least 16 MiB and the heap's own goal more. A process that returns its blocks soon never
// triggers one. Each call must be matched by a call of [Domain.Returned].
func (d *Domain) Received(n int) {
	r := &d.received
	if n >= layout.PageSize && r.bytes.Add(int64(n)) >= r.goal.Load() && r.collecting.CompareAndSwap(false, true) {
		go d.collectReceived()
	}
}

// Returned undoes [Domain.Received] after the process has given the block back.
func (d *Domain) Returned(n int) {
	if n >= layout.PageSize {
		d.received.bytes.Add(-int64(n))
	}
}

func (d *Domain) collectReceived() {
	r := &d.received
	defer r.collecting.Store(false)
	if uint64(r.bytes.Load()) >= r.nextThreshold() {
		d.collectForgotten()
		r.kept = uint64(max(0, r.bytes.Load()))
	}
	r.goal.Store(int64(min(r.nextThreshold(), math.MaxInt64)))
}

// nextThreshold returns the number of bytes at which the next collection is worthwhile.
func (r *received) nextThreshold() uint64 {
	more := max(forgottenBytes, r.kept, heapGoal())
	if more > math.MaxInt64 {
		return math.MaxUint64
	}
	return r.kept + more
}
