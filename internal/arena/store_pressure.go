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

	"github.com/shoal-mp/shoal/internal/arena/layout"
	"github.com/shoal-mp/shoal/internal/arena/park"
	"github.com/shoal-mp/shoal/internal/arena/word"
	"github.com/shoal-mp/shoal/internal/sys"
)

// Note [Memory pressure] A tensor uses a few hundred bytes of Go heap, whatever its size, so
// unreachable tensors start no garbage collection. If no block is available, the allocator gives
// idle pages back, collects garbage in this process, makes every other participant collect as well,
// and only then returns ErrNoSpace. Above 80 % of the budget it also collects ahead of need, in the
// background.
//
// Long before that, fresh pages cost more than a collection that finds blocks of unreachable
// tensors. So if no block with pages is free, the allocator makes the collector run as often as it
// would run if blocks were on the heap.

// for other participants that are stopped, and for cleanups that wait for the allocating goroutine
const collectWait = time.Second

// A goroutine that is short of memory tries again while other goroutines take the memory that it
// frees, for at least this many rounds and this long: goroutines that never close their tensors may
// win many rounds.
const (
	pressureRounds = 16
	pressureTime   = 5 * time.Second
)

// allocUnderPressure retries [Domain.allocBlock] after its error err, after freeing memory in
// several ways. It returns err at once if that was not a lack of memory. It stops when ctx ends,
// but not before it has tried every way that needs only this process. If memory stays short, it
// returns the error of [Domain.explainShortage].
func (d *Domain) allocUnderPressure(ctx context.Context, size, commit uint64, kind layout.ObjectKind,
	err error) (Handle, error) {
	if !errors.Is(err, ErrNoSpace) {
		return 0, err
	}
	need := chargedBytes(size, commit)
	steps := []func(){
		func() { d.punchIdleBlocks(need) },
		func() { d.collectGarbage(); d.punchIdleBlocks(need) },
		func() { d.collectEverywhere(ctx); d.punchIdleBlocks(need) },
	}
	for round, begin := 0, time.Now(); round < pressureRounds || time.Since(begin) < pressureTime; round++ {
		seen := d.requestRelief()
		for _, step := range steps {
			step()
			var h Handle
			if h, err = d.allocBlock(ctx, size, commit, kind); !errors.Is(err, ErrNoSpace) {
				return h, err
			}
		}
		if d.mem.Header.Relief.Load() == seen || ctx.Err() != nil {
			break
		}
	}
	return 0, d.explainShortage(err)
}

// chargedBytes returns the number of bytes that a new block charges to the budget. A small block
// charges a slab.
func chargedBytes(size, commit uint64) uint64 {
	if layout.IsSmall(layout.ClassOf(size)) {
		return layout.SlabSize
	}
	return layout.RoundUp(commit, layout.PageSize)
}

const (
	nearLimit    = 80 // percentage of the budget above which garbage is collected ahead of need
	collectEvery = time.Second
)

func (d *Domain) isNearLimit() bool {
	return d.mem.Header.Budget.Load().Pages()*100 > d.mem.Header.Limit.Load()*nearLimit
}

// collectSoon starts a collection in the background, at most once per collectEvery.
func (d *Domain) collectSoon() {
	now, last := int64(sys.Monotonic()), d.lastCollect.Load()
	if now-last > int64(collectEvery) && d.lastCollect.CompareAndSwap(last, now) {
		go d.collectGarbage()
	}
}

// AllocWait is [Domain.Alloc], but waits for memory while the budget is used up, until ctx ends.
// The error then wraps [ErrNoSpace] and the cause of ctx. AllocWait does not wait if size
// exceeds the whole budget.
func (d *Domain) AllocWait(ctx context.Context, size int) (Handle, error) {
	for {
		seen := d.requestRelief() // before the attempt to allocate
		n := d.lives.padSize(uint64(size))
		h, err := d.allocBlock(ctx, n, n, layout.ObjectNone)
		if err != nil {
			h, err = d.allocUnderPressure(ctx, n, n, layout.ObjectNone, err)
		}
		if !errors.Is(err, ErrNoSpace) || uint64(size) > d.mem.Header.Limit.Load()*layout.PageSize {
			return h, err
		}
		if end := context.Cause(ctx); end != nil {
			return 0, errors.Join(err, end)
		}
		l := &park.Queue{Lot: &d.park, Bits: &d.mem.Header.MemWait,
			Ready: func() bool { return d.mem.Header.Relief.Load() != seen || d.closed.Load() }}
		d.park.Add(l)
		werr := l.WaitOnce(ctx)
		d.park.Remove(l)
		if werr != nil {
			return 0, errors.Join(err, werr)
		}
	}
}

// requestRelief returns the number of blocks freed so far. From now on the domain counts each freed
// block, and the next one wakes this participant.
func (d *Domain) requestRelief() uint64 {
	if d.mem.Header.Relief.Load() == 0 {
		d.mem.Header.Relief.CAS(0, 1)
	}
	d.park.SetBit(&d.mem.Header.MemWait)
	return d.mem.Header.Relief.Load()
}

// notifyRelief tells the waiters for memory that a block, or pages of the budget, have become free.
// A domain that was never short of memory has no waiters. In other domains every block counts, even
// if no participant has to be woken: the participant that clears the bitmap may be slow to wake the
// waiters, which must not miss memory freed meanwhile.
//
// Invariant (docs/memory.md, "Budget and commit"): relief must increase after the block is free, or
// the pages are uncharged. An attempt that read relief before and found no memory either saw that
// block or sees another number now.
func (d *Domain) notifyRelief() {
	if d.mem.Header.Relief.Load() != 0 {
		d.wakeMemoryWaiters()
	}
}

func (d *Domain) wakeMemoryWaiters() {
	d.mem.Header.Relief.Add(1)
	d.park.WakeBits(&d.mem.Header.MemWait)
}

// punchIdleBlocks punches idle blocks until bytes can be charged to the budget and to the machine,
// and a sixteenth of the budget more, so that not every following allocation must do the same. Idle
// blocks that only another lane knows of return to the lists.
func (d *Domain) punchIdleBlocks(bytes uint64) {
	l, err := d.acquireLane()
	if err != nil {
		return
	}
	defer l.unlock()
	d.markHintsLost()
	limit, short := d.mem.Header.Limit.Load(), int64(0)
	if bytes >= layout.HugeAlign { // as in chargeBudget
		short = int64(bytes) - d.store.headroom()
	}
	for i := uint32(1); uint64(i) < d.blockCount(); i++ {
		if short <= 0 && d.mem.Header.Budget.Load().Pages()+bytes/layout.PageSize+limit/16 <= limit {
			return
		}
		short -= int64(l.punchIdleBlock(&d.mem.Blocks[i]))
	}
}

// punchIdleBlock gives the pages of a free block back, and returns their size in bytes. The block
// stays on the free list, without pages.
//
// The stamp PUNCH keeps allocators off (docs/memory.md, "Budget and commit"). The block must be
// pushed after the stamp has cleared: an allocator that popped the block meanwhile found it stamped
// and moved on, so the list has lost it.
func (l *lane) punchIdleBlock(b *layout.Block) uint64 {
	w, n := b.State.Load(), b.Committed.Load()
	if w&(word.AllocBit|word.StampMask) != 0 || n == 0 || b.Extent.Load()&layout.ExtentSmall != 0 {
		return 0
	}
	if _, _, err := l.d.subrange(b, 0, n); err != nil || !b.State.CAS(w, w|word.MakeStamp(l.id, word.KindPunch)) {
		return 0
	}
	l.shrinkBlock(b, 0)
	l.d.unstampBlock(b)
	l.d.pushFree(layout.ExtentClass(b.Extent.Load()), l.d.indexOf(b))
	return n
}

// collectGarbage runs two garbage collections, each until its cleanups have run. A goroutine
// that calls it during a collection waits for that one, and for another one that begins after
// the call.
func (d *Domain) collectGarbage() {
	begun := d.collected.Load() + 1
	d.collecting.Lock()
	defer d.collecting.Unlock()
	if d.collected.Load() >= begun {
		return
	}
	d.collected.Add(1)
	for range 2 { // objects released by one collection's cleanups are found by the next one
		collectOnce()
	}
}

// collectOnce runs one garbage collection and waits for its cleanups.
func collectOnce() {
	runtime.GC()
	awaitCleanups()
}

// awaitCleanups waits until every queued cleanup has run, or none has run for collectWait.
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

// collectEverywhere makes every other participant collect garbage, and waits for them until ctx
// ends, at most for collectWait.
func (d *Domain) collectEverywhere(ctx context.Context) {
	if d.isAlone() || ctx.Err() != nil {
		return
	}
	n := d.mem.Header.Pressure.Add(1)
	l := &park.Queue{Lot: &d.park, Bits: &d.mem.Header.MemWait, Ready: func() bool { return d.allCollected(n) }}
	d.park.Add(l)
	defer d.park.Remove(l)
	ctx, cancel := context.WithTimeout(ctx, collectWait)
	defer cancel()
	d.park.WakeAll(park.NoTopic)
	l.WaitOnce(ctx)
}

// allCollected reports whether every other living participant has collected for the request with
// number n of the header's pressure counter, or for a later one.
func (d *Domain) allCollected(n uint64) bool {
	for s := range d.mem.Participants {
		p := &d.mem.Participants[s]
		if s != d.seat && p.State.Load().HasState(word.ParticipantLive) && p.Collected.Load() < n {
			return false
		}
	}
	return true
}

// collectForOthers collects garbage because a participant ran out of budget, and wakes the waiters.
func (d *Domain) collectForOthers() {
	n := d.mem.Header.Pressure.Load()
	d.collectGarbage()
	l, err := d.acquireLane() // after Close the seat may belong to another participant
	if err != nil {
		return
	}
	defer l.unlock()
	w := &d.mem.Participants[d.seat].Collected
	for v := w.Load(); v < n && !w.CAS(v, n); {
		v = w.Load()
	}
	d.park.WakeBits(&d.mem.Header.MemWait)
}

func (d *Domain) isAlone() bool {
	for s := range d.mem.Participants {
		if s != d.seat && d.mem.Participants[s].State.Load().HasState(word.ParticipantLive) {
			return false
		}
	}
	return true
}

// A shortage is the reason why an allocation failed. After all remedies have failed,
// explainShortage converts it to the caller's error.
type shortage struct {
	bytes uint64 // bytes requested
	spent string // the exhausted resource, if it is not the budget
}

func (s shortage) Error() string { return fmt.Sprintf("shm: no space for %d bytes", s.bytes) }
func (s shortage) Unwrap() error { return ErrNoSpace }

// explainShortage replaces a [shortage] by a [*SpaceError] with the figures. It returns any
// other error as it is.
func (d *Domain) explainShortage(err error) error {
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
			machine = describeFree(m)
		}
	}
	return &SpaceError{
		Want: want, Used: s.Committed, Limit: s.Limit, Free: free, Machine: machine, Spent: short.spent,
		Unread: d.unreadTotal(), Queues: d.unreadByQueue(3), Holders: d.topHolders(3),
	}
}

// unreadTotal returns the bytes of blocks that only messages hold.
func (d *Domain) unreadTotal() (bytes int64) {
	for i := uint64(1); i < d.blockCount(); i++ {
		b := &d.mem.Blocks[i]
		if b.State.Load().TransitCount() > 0 && !b.IsOwned() {
			bytes += int64(b.Committed.Load())
		}
	}
	return bytes
}

// topHolders returns the n participants that hold the most bytes, the one with the most first.
func (d *Domain) topHolders(n int) []Holder {
	var bytes [word.MaxParticipants]int64
	for i := uint64(1); i < d.blockCount(); i++ {
		b := &d.mem.Blocks[i]
		if c := int64(b.Committed.Load()); c != 0 && !isContents(b, b.State.Load()) {
			for s := range b.Own.Seats() {
				bytes[s] += c
			}
		}
	}
	var all []Holder
	for s, v := range bytes {
		if v != 0 {
			all = append(all, Holder{PID: int(d.mem.Participants[s].PID.Load()), Seat: s, Bytes: v})
		}
	}
	slices.SortFunc(all, func(a, b Holder) int { return cmp.Compare(b.Bytes, a.Bytes) })
	return all[:min(n, len(all))]
}
