package arena

import (
	"math"
	"runtime/metrics"
	"sync/atomic"
	"time"
)

// Programs leave tensors to the garbage collector. A tensor takes so little of Go's heap that the
// collector hardly ever runs for it, and its block would stay in use for minutes. So a process
// collects garbage for the blocks that it made, and for those that it received.

const (
	forgottenBytes = 16 << 20 // are worth a collection, if there is no more than that in use
	freshSpeed     = 5        // bytes a nanosecond, at which the system makes pages
)

// collectAhead collects garbage where so much was handed out since the last time that a collection
// is likely to find blocks. It waits for no longer than fresh pages for commit bytes would take,
// and reports whether there may be warm blocks now. A program that closes its tensors hardly ever
// comes here: its blocks are warm.
func (l *lane) collectAhead(commit uint64) bool {
	d := l.d
	if l.handed < max(forgottenBytes, d.hdr.budget.Load().pages()*pageSize/2) || l.handed < heapGoal() {
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
	case <-time.After(time.Duration(commit / freshSpeed)): // later allocations have what it finds
		return false
	}
}

// collectForgotten collects garbage once: that finds blocks of tensors. Those in messages of a
// queue that it finds can wait.
func (d *Domain) collectForgotten() {
	d.collecting.Lock()
	defer d.collecting.Unlock()
	collectOnce()
}

// heapGoal returns the bytes of heap at which the collector runs, and the largest number if it
// never does.
func heapGoal() uint64 {
	m := []metrics.Sample{{Name: "/gc/gogc:percent"}, {Name: "/gc/heap/goal:bytes"}}
	metrics.Read(m)
	if m[0].Value.Uint64() > math.MaxInt32 {
		return math.MaxUint64
	}
	return m[1].Value.Uint64()
}

// received counts the bytes of blocks that came to this process in messages.
type received struct {
	bytes      atomic.Int64 // of those that it holds
	goal       atomic.Int64 // the bytes at which to collect; 0 before the first block
	collecting atomic.Bool
	kept       uint64 // bytes after the last collection; only the goroutine that collects uses it
}

// Received counts n bytes of a block that this process received. It collects garbage in the
// background when the process holds twice what it held after the last collection, and at least 16
// MiB and the heap's own goal more. A process that returns its blocks soon does not come there.
func (d *Domain) Received(n int) {
	r := &d.received
	if n >= pageSize && r.bytes.Add(int64(n)) >= r.goal.Load() && r.collecting.CompareAndSwap(false, true) {
		go d.collectReceived()
	}
}

// Returned takes back what Received counted: the process does not hold the block any more.
func (d *Domain) Returned(n int) {
	if n >= pageSize {
		d.received.bytes.Add(-int64(n))
	}
}

func (d *Domain) collectReceived() {
	r := &d.received
	defer r.collecting.Store(false)
	if uint64(r.bytes.Load()) >= r.next() {
		d.collectForgotten()
		r.kept = uint64(max(0, r.bytes.Load()))
	}
	r.goal.Store(int64(min(r.next(), math.MaxInt64)))
}

// next returns the bytes at which a collection is worth its time.
func (r *received) next() uint64 {
	more := max(forgottenBytes, r.kept, heapGoal())
	if more > math.MaxInt64 {
		return math.MaxUint64
	}
	return r.kept + more
}
