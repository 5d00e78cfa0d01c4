package arena

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/shoal-mp/shoal/internal/arena/layout"
	"github.com/shoal-mp/shoal/internal/arena/park"
	"github.com/shoal-mp/shoal/internal/arena/socket"
	"github.com/shoal-mp/shoal/internal/arena/word"
	"github.com/shoal-mp/shoal/internal/sys"
)

// A Domain is the view that this process, one of the participants, has of the memory shared by a
// family of processes. [New], [NewLocal], [Attach] and [Join] return one, which must be closed.
// All methods may be called from several goroutines.
type Domain struct {
	store store
	mem   layout.Memory

	seat  int
	epoch uint32
	word  int    // index of the word with our bit in a participant bitmap
	bit   uint64 // our bit in that word

	ready atomic.Uint64 // block headers known to have pages
	lanes [layout.LanesPerSeat]lane
	refs  refTable
	lives *lifetimes
	park  park.Lot
	bell  bell

	closed         atomic.Bool
	closing        sync.Mutex
	lingering      context.Context // for operations that must end; canceled after closed is set
	hurry          context.CancelFunc
	debt           atomic.Uint64 // bytes still to be uncharged; see unchargeBudget
	unfinishedGets atomic.Int32  // gets completed by goroutines; see completeGetLater
	watching       context.CancelFunc
	relink         chan struct{}
	done           sync.WaitGroup
	named          atomic.Bool // a cell may name this participant as the holder of a lock or a share
	// reaped has the state words of the dead participants that this process has reaped, or begun to
	// reap, under the recovery lock.
	reaped      [word.MaxParticipants]atomic.Uint64
	trimmer     trimmer
	listeners   listeners
	services    []io.Closer
	files       descriptors
	lastCollect atomic.Int64
	collecting  sync.Mutex // held while the garbage collector runs to free memory
	collected   atomic.Uint64
	received    received
}

// createDomain lays out a new domain in s and joins it as the first participant. The memory of s
// must be all zero. budget is in bytes. If createDomain fails, s remains the caller's.
func createDomain(s store, budget int64) (*Domain, error) {
	d, err := layOut(s, budget)
	if err != nil {
		return nil, err
	}
	return d, d.joinDomain()
}

// layOut initializes the header of a new domain in s. The result has not joined the domain yet.
// layOut must write the magic number last: a process that attaches and finds the magic number
// relies on the rest of the header.
func layOut(s store, budget int64) (*Domain, error) {
	d := overlayStore(s)
	if err := s.commitControl(0, layout.OffLanes); err != nil {
		return nil, fmt.Errorf("commit control segment: %w", err)
	}
	var token [16]byte
	if err := sys.Random(token[:]); err != nil {
		return nil, fmt.Errorf("create token: %w", err)
	}
	d.mem.Header.Token[0].Store(binary.LittleEndian.Uint64(token[:8]))
	d.mem.Header.Token[1].Store(binary.LittleEndian.Uint64(token[8:]))
	d.mem.Header.Layout.Store(layout.Hash())
	d.mem.Header.Version.Store(layout.ProtocolVersion)
	d.mem.Header.DataSize.Store(uint64(len(s.data())))
	d.mem.Header.Limit.Store(uint64(budget) / layout.PageSize)
	d.mem.Header.Quota.Store(processorQuota())
	d.mem.Header.Blocks.Store(1) // index 0 is reserved
	d.mem.Header.Hints.Store(1)
	d.mem.Header.Magic.Store(layout.Magic)
	return d, nil
}

// attachDomain joins the existing domain in s. It returns [ErrVersion] if the domain has another
// layout, and [ErrCorrupt] if its size does not match. If it fails, s remains the caller's.
func attachDomain(s store) (*Domain, error) {
	d := overlayStore(s)
	if err := checkLayout(&d.mem); err != nil {
		return nil, err
	}
	return d, d.joinDomain()
}

func overlayStore(s store) *Domain {
	d := &Domain{store: s, mem: layout.OverlayMemory(s.control(), s.data()), relink: make(chan struct{}, 1), seat: -1}
	d.park.Init(parker{d}, s, &d.mem)
	d.lingering, d.hurry = context.WithCancel(context.Background())
	if m, ok := s.(*memfds); ok {
		d.lives = m.lives
	}
	return d
}

// checkLayout compares the layout of mapped memory with the layout of this program. It returns
// [ErrVersion] if they differ, and [ErrCorrupt] if the data segment has another size.
func checkLayout(m *layout.Memory) error {
	if v := m.Header.Magic.Load(); v != layout.Magic {
		return fmt.Errorf("%w: magic number is %#x, want %#x", ErrVersion, v, uint64(layout.Magic))
	}
	if h := m.Header.Layout.Load(); h != layout.Hash() {
		return programLayout().Mismatch(socket.Layout{Version: m.Header.Version.Load(), Hash: h})
	}
	if n := m.Header.DataSize.Load(); n != uint64(len(m.Data)) {
		return fmt.Errorf("%w: data segment has %d bytes, want %d as mapped", ErrCorrupt, n, len(m.Data))
	}
	return nil
}

// programLayout returns the layout of the shared memory in this program. Builds of one version may
// also differ in their layouts, on different kinds of machines.
func programLayout() socket.Layout {
	return socket.Layout{Version: layout.ProtocolVersion, Hash: layout.Hash()}
}

// Layout returns the layout of the domain's shared memory.
func (d *Domain) Layout() socket.Layout { return programLayout() }

// joinWait is the time that a process joining a full domain waits for the other participants to
// reap dead ones.
const joinWait = time.Second

// joinDomain claims a free seat and starts this participant. If all seats are taken, it asks the
// living participants to reap the dead ones: a newcomer without a seat cannot identify itself in
// the recovery lock, so it cannot reap. The last search for a seat must come after a search that
// found no dead participant, because the dead may have been reaped after the previous search for
// a seat. It returns [ErrTooManyParticipants] if no seat becomes free within one second.
func (d *Domain) joinDomain() error {
	begun, dead := time.Now(), 1
	for {
		joined, err := d.claimAnySeat()
		if err != nil {
			return fmt.Errorf("join domain: %w", err)
		}
		if joined {
			return d.startParticipant()
		}
		if dead == 0 || time.Since(begun) > joinWait {
			return ErrTooManyParticipants
		}
		if _, dead, err = d.findDead(); err != nil {
			return errors.Join(ErrTooManyParticipants, err)
		}
		if dead != 0 {
			d.announceChange(park.NoTopic)
			time.Sleep(time.Millisecond)
		}
	}
}

// claimAnySeat claims the first free seat and reports whether it found one. It takes the proof of
// life before it changes the seat's state, so a process that dies in between leaves the seat free.
func (d *Domain) claimAnySeat() (bool, error) {
	for s := range word.MaxParticipants {
		if ok, err := d.claimSeat(s); ok || err != nil {
			return ok, err
		}
	}
	return false, nil
}

// claimSeat claims seat s, and reports whether it did. It returns false without an error if
// another participant has the seat.
//
// Invariant (docs/memory.md, "Notice"): the proof of life must be taken before the word becomes
// JOINING, and the state must be read again while it is held. Then two newcomers cannot get one
// seat, and a newcomer that dies on the way leaves the seat free.
func (d *Domain) claimSeat(s int) (bool, error) {
	p := &d.mem.Participants[s]
	state := p.State.Load()
	if !state.HasState(word.ParticipantFree) {
		return false, nil
	}
	if ok, err := d.store.lockSeat(s); !ok || err != nil {
		return false, err
	}
	if p.State.Load() != state {
		return false, d.store.unlockSeat(s)
	}
	if err := d.store.commitControl(layout.OffLanes+uint64(s)*layout.LaneBytes, layout.LaneBytes); err != nil {
		return false, errors.Join(err, d.store.unlockSeat(s))
	}
	for n := d.mem.Header.Lanes.Load(); n <= uint64(s) && !d.mem.Header.Lanes.CAS(n, uint64(s)+1); {
		n = d.mem.Header.Lanes.Load()
	}
	d.seat, d.epoch = s, uint32(state>>32)
	d.word, d.bit = s/64, 1<<(s%64)
	d.park.TakeSeat(s)
	for i := range d.lanes {
		id := uint32(s*layout.LanesPerSeat + i)
		d.lanes[i].d, d.lanes[i].id, d.lanes[i].rec = d, id, &d.mem.Lanes[id]
	}
	p.PID.Store(uint64(os.Getpid()))
	p.State.CAS(state, state.WithState(word.ParticipantJoining))
	return true, nil
}

// startParticipant opens the doorbell and begins to watch the next living participants. The
// caller must have claimed a seat. If startParticipant fails, it releases the seat's proof of
// life, and others reap the seat. It wakes its watchers before this participant becomes LIVE:
// one that is killed before that wakeup holds nothing yet, and one that is killed after it has a
// watcher.
func (d *Domain) startParticipant() error {
	b, name, err := d.store.openBell()
	if err != nil {
		return errors.Join(fmt.Errorf("listen to doorbell: %w", err), d.store.unlockSeat(d.seat))
	}
	ctx, cancel := context.WithCancel(context.Background())
	d.watching = cancel
	d.bell = b
	d.mem.Participants[d.seat].Bell.Store(name)
	d.AddProcessors()
	// it holds nothing that an earlier shortage could reclaim
	d.mem.Participants[d.seat].Collected.Store(d.mem.Header.Pressure.Load())
	d.done.Add(2)
	go d.serveBell(b)
	go d.watchParticipants(ctx)
	d.markLive()
	d.createContentsTable()
	return nil
}

func (d *Domain) markLive() {
	d.announceSeat()
	p := &d.mem.Participants[d.seat].State
	p.CAS(p.Load(), p.Load().WithState(word.ParticipantLive))
}

// Seat returns this process's participant seat, 0 to 255.
func (d *Domain) Seat() int { return d.seat }

// Token returns the domain's random identity. It is not secret among participants.
func (d *Domain) Token() [16]byte { return d.mem.Token() }

// Contains reports whether addr is in the data segment.
func (d *Domain) Contains(addr uintptr) bool { return sys.Contains(d.mem.Data, addr) }

// Close leaves the domain and drops every reference that this process holds, by the code that also
// reaps dead participants. Slices returned by [Domain.Bytes] must not be used afterwards: they stay
// mapped as long as the Domain, or an object that refers to it, is reachable, but may show other
// processes' bytes. Close is idempotent.
//
// Close locks the lanes and never unlocks them, so no operation of this participant is in progress
// when its seat is given to another one, and none starts. Operations that still wait for a stopped
// process after one second are abandoned. Another participant then reaps this one.
func (d *Domain) Close() error {
	d.closing.Lock()
	defer d.closing.Unlock()
	if d.closed.Swap(true) {
		return nil
	}
	unheard := errors.Join(d.listeners.close(), d.closeServices())
	defer d.hurry()
	if !(word.Crashing && word.IsControlled()) {
		defer time.AfterFunc(time.Duration(briefly), d.hurry).Stop()
	}
	d.park.HandleWakeup()
	for i := range commonLanes {
		l := &d.lanes[i]
		// waits for operations in progress
		retryUntil(func() bool { return l.tryLock() || l.left.Load() })
	}
	d.trimmer.stopTimer()
	d.park.PreventNaps()
	d.lives.endAll()
	quiet := d.leaveDomain()
	d.watching() // must come after leaveDomain: a reaper that leaveDomain waits for may die
	d.park.StopDeathChecks()
	d.announceLeave(quiet)
	err := d.bell.Close()
	d.done.Wait()
	d.park.EndWaits()
	return errors.Join(err, unheard, d.store.unlockSeat(d.seat), d.store.close())
}
