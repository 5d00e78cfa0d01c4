package arena

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/metrics"
	"slices"
	"time"

	"github.com/shoal-mp/shoal/internal/sys"
)

// Note [Memory pressure] A tensor is some hundred bytes of Go heap, whatever its size, so tensors
// that a program forgets start no garbage collection. Where no block can be had, the allocator
// gives idle pages back, collects garbage in this process, has every other participant collect as
// well, and only then returns ErrNoSpace. From 80 % of the budget on it also collects ahead of
// need, in the background.
//
// Long before that, fresh pages cost more than a collection that finds forgotten blocks. So where
// no block is warm, the allocator has the collector run as often as it would run if blocks were
// heap.

const collectWait = time.Second // for others that are stopped, and for cleanups that wait for the allocating goroutine

// A goroutine that is short of memory tries again as long as others take what it finds, so many
// times and so long at least: goroutines that forget all that they allocate may be quicker for many
// rounds.
const (
	pressureRounds = 16
	pressureTime   = 5 * time.Second
)

// allocUnderPressure is alloc once more after an error, if that was want of memory. It ends with
// ctx, but not before it has tried what this process can do by itself.
func (d *Domain) allocUnderPressure(ctx context.Context, size, commit uint64, kind objectKind,
	err error) (Handle, error) {
	if !errors.Is(err, ErrNoSpace) {
		return 0, err
	}
	need := charged(size, commit)
	steps := []func(){
		func() { d.giveBack(need) },
		func() { d.collect(); d.giveBack(need) },
		func() { d.collectEverywhere(ctx); d.giveBack(need) },
	}
	for round, begin := 0, time.Now(); round < pressureRounds || time.Since(begin) < pressureTime; round++ {
		seen := d.seekRelief()
		for _, step := range steps {
			step()
			var h Handle
			if h, err = d.alloc(ctx, size, commit, kind); !errors.Is(err, ErrNoSpace) {
				return h, err
			}
		}
		if d.hdr.relief.Load() == seen || ctx.Err() != nil {
			break
		}
	}
	return 0, d.explain(err)
}

// charged returns the bytes that a new block of size bytes needs from the budget: small ones come
// by the slab.
func charged(size, commit uint64) uint64 {
	if small(classOf(size)) {
		return slabSize
	}
	return roundUp(commit, pageSize)
}

const (
	nearLimit    = 80 // per cent of the budget from which on garbage is collected ahead of need
	collectEvery = time.Second
)

func (d *Domain) nearLimit() bool {
	return d.hdr.budget.Load().pages()*100 > d.hdr.limit.Load()*nearLimit
}

// collectSoon collects in the background, at most once in collectEvery.
func (d *Domain) collectSoon() {
	now, last := int64(sys.Monotonic()), d.lastCollect.Load()
	if now-last > int64(collectEvery) && d.lastCollect.CompareAndSwap(last, now) {
		go d.collect()
	}
}

// AllocWait is Alloc, but waits for memory while the budget is used up, until ctx ends.
func (d *Domain) AllocWait(ctx context.Context, size int) (Handle, error) {
	for {
		seen := d.seekRelief() // before we look
		n := d.lives.pad(uint64(size))
		h, err := d.alloc(ctx, n, n, objectNone)
		if err != nil {
			h, err = d.allocUnderPressure(ctx, n, n, objectNone, err)
		}
		if !errors.Is(err, ErrNoSpace) || uint64(size) > d.hdr.limit.Load()*pageSize {
			return h, err
		}
		if end := context.Cause(ctx); end != nil {
			return 0, errors.Join(err, end)
		}
		l := &waitQueue{d: d, bits: &d.hdr.memwait,
			ready: func() bool { return d.hdr.relief.Load() != seen || d.closed.Load() }}
		d.park.add(l)
		werr := l.wait(ctx)
		d.park.remove(l)
		if werr != nil {
			return 0, errors.Join(err, werr)
		}
	}
}

// seekRelief returns how many blocks became free so far. From now on the
// domain counts each one that becomes free, and the next one wakes this participant.
func (d *Domain) seekRelief() uint64 {
	if d.hdr.relief.Load() == 0 {
		d.hdr.relief.CAS(0, 1)
	}
	d.setBit(&d.hdr.memwait)
	return d.hdr.relief.Load()
}

// relieve tells the waiters for memory that a block, or pages of the budget, have become free. A
// domain that was never short of memory has no waiters. In others every block counts, whether a
// participant is to be woken or not: the one that takes the bits off the bitmap may be slow to wake
// the waiters, which must not miss what becomes free meanwhile.
//
// Invariant (docs/memory.md, "Budget and commit"): relief grows after the block is free, or the
// pages are uncharged. A look that read it before and found nothing either saw that block or sees
// another number now.
func (d *Domain) relieve() {
	if d.hdr.relief.Load() != 0 {
		d.wakeRelieved()
	}
}

func (d *Domain) wakeRelieved() {
	d.hdr.relief.Add(1)
	d.wakeBits(&d.hdr.memwait)
}

// giveBack punches idle blocks until bytes could be charged, by the budget and by the machine, and
// a sixteenth of the budget more, so that not every allocation that follows comes here. Idle blocks
// that only another lane knows of are put on the lists again.
func (d *Domain) giveBack(bytes uint64) {
	l, err := d.enter()
	if err != nil {
		return
	}
	defer l.unlock()
	d.loseHints()
	limit, short := d.hdr.limit.Load(), int64(0)
	if bytes >= hugeAlign { // as charge does
		short = int64(bytes) - d.store.headroom()
	}
	for i := uint32(1); uint64(i) < d.count(); i++ {
		if short <= 0 && d.hdr.budget.Load().pages()+bytes/pageSize+limit/16 <= limit {
			return
		}
		short -= int64(l.punchIdle(&d.blocks[i]))
	}
}

// punchIdle gives the pages of a free block back, and returns their bytes. The block is
// listed, cold: an allocator that has found it by a list meanwhile has left it alone.
//
// The stamp PUNCH keeps allocators off (docs/memory.md, "Budget and commit"), and the push comes
// after it has gone: one that popped the block meanwhile has found it stamped and gone on, so the
// list has lost it.
func (l *lane) punchIdle(b *block) uint64 {
	w, n := b.w.Load(), b.committed.Load()
	if w&(allocBit|xoMask) != 0 || n == 0 || b.ext.Load()&extSmall != 0 {
		return 0
	}
	if _, _, err := l.d.pages(b, 0, n); err != nil || !b.w.CAS(w, w|stamp(l.id, kindPunch)) {
		return 0
	}
	l.shrink(b, 0)
	l.d.unstamp(b)
	l.d.push(extClass(b.ext.Load()), l.d.indexOf(b))
	return n
}

// collect runs garbage collections, each until the cleanups that it found have run. A goroutine
// that comes during a collection waits for it, and for another one that begins after it came.
func (d *Domain) collect() {
	begun := d.collected.Load() + 1
	d.collecting.Lock()
	defer d.collecting.Unlock()
	if d.collected.Load() >= begun {
		return
	}
	d.collected.Add(1)
	for range 2 { // what one collection's cleanups let go, the next one finds
		collectOnce()
	}
}

// collectOnce collects garbage and has its cleanups run.
func collectOnce() {
	runtime.GC()
	awaitCleanups()
}

// awaitCleanups returns when every cleanup that is queued has run, or none has for collectWait.
func awaitCleanups() {
	counts := []metrics.Sample{{Name: "/gc/cleanups/queued:cleanups"}, {Name: "/gc/cleanups/executed:cleanups"}}
	metrics.Read(counts)
	queued, ran := counts[0].Value.Uint64(), counts[1].Value.Uint64()
	for last := time.Now(); ran < queued && time.Since(last) < collectWait; {
		time.Sleep(50 * time.Microsecond)
		metrics.Read(counts[1:])
		if now := counts[1].Value.Uint64(); now != ran {
			ran, last = now, time.Now()
		}
	}
}

// collectEverywhere lets every other participant collect, and waits until all have.
func (d *Domain) collectEverywhere(ctx context.Context) {
	if d.alone() || ctx.Err() != nil {
		return
	}
	n := d.hdr.pressure.Add(1)
	l := &waitQueue{d: d, bits: &d.hdr.memwait, ready: func() bool { return d.allCollected(n) }}
	d.park.add(l)
	defer d.park.remove(l)
	ctx, cancel := context.WithTimeout(ctx, collectWait)
	defer cancel()
	d.wakeAll()
	l.wait(ctx)
}

// allCollected reports whether every other participant has collected since pressure was n.
func (d *Domain) allCollected(n uint64) bool {
	for s := range d.parts {
		p := &d.parts[s]
		if s != d.seat && p.state.Load().is(participantLive) && p.collected.Load() < n {
			return false
		}
	}
	return true
}

// collectForOthers collects because a participant ran out of budget, and tells the waiters.
func (d *Domain) collectForOthers() {
	n := d.hdr.pressure.Load()
	d.collect()
	l, err := d.enter() // the seat may be another participant's after Close
	if err != nil {
		return
	}
	defer l.unlock()
	w := &d.parts[d.seat].collected
	for v := w.Load(); v < n && !w.CAS(v, n); {
		v = w.Load()
	}
	d.wakeBits(&d.hdr.memwait)
}

func (d *Domain) alone() bool {
	for s := range d.parts {
		if s != d.seat && d.parts[s].state.Load().is(participantLive) {
			return false
		}
	}
	return true
}

// A shortage is why an allocation failed. explain makes the caller's error of it, once all was
// tried.
type shortage struct {
	bytes uint64 // that were wanted
	spent string // what is used up besides the budget, if it is not the budget
}

func (s shortage) Error() string { return fmt.Sprintf("shm: no space for %d bytes", s.bytes) }
func (s shortage) Unwrap() error { return ErrNoSpace }

// explain replaces a shortage by the *SpaceError with the numbers.
func (d *Domain) explain(err error) error {
	short, ok := errors.AsType[shortage](err)
	if !ok {
		return err
	}
	want := int64(short.bytes)
	s := d.Stats()
	free := max(min(s.Limit-s.Committed, d.store.headroom()), 0)
	machine := ""
	if s.Limit-s.Committed >= want && free < want {
		if m, err := sys.MemoryLimit(); err == nil {
			machine = left(m)
		}
	}
	return &SpaceError{
		Want: want, Used: s.Committed, Limit: s.Limit, Free: free, Machine: machine, Spent: short.spent,
		Unread: d.unread(), Queues: d.unreadByQueue(3), Holders: d.holders(3),
	}
}

// unread returns the bytes of blocks that only messages hold.
func (d *Domain) unread() (bytes int64) {
	for i := uint64(1); i < d.count(); i++ {
		b := &d.blocks[i]
		if b.w.Load().transit() > 0 && !b.owned() {
			bytes += int64(b.committed.Load())
		}
	}
	return bytes
}

// holders returns the n participants that hold most.
func (d *Domain) holders(n int) []Holder {
	var bytes [maxParticipants]int64
	for i := uint64(1); i < d.count(); i++ {
		b := &d.blocks[i]
		if c := int64(b.committed.Load()); c != 0 && !isContents(b, b.w.Load()) {
			for s := range seatsIn(&b.own) {
				bytes[s] += c
			}
		}
	}
	var all []Holder
	for s, v := range bytes {
		if v != 0 {
			all = append(all, Holder{PID: int(d.parts[s].pid.Load()), Seat: s, Bytes: v})
		}
	}
	slices.SortFunc(all, func(a, b Holder) int { return cmp.Compare(b.Bytes, a.Bytes) })
	return all[:min(n, len(all))]
}
