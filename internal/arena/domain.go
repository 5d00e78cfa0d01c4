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
	"unsafe"

	"github.com/shoal-mp/shoal/internal/sys"
)

// A Domain is the memory that a family of processes shares, seen from this process, which is one of
// its participants. All methods may be called by several goroutines.
type Domain struct {
	store  store
	hdr    *header
	parts  *[maxParticipants]participant
	recs   *[maxLanes]laneRec
	blocks []block
	bytes  []byte // the data segment

	seat  int
	epoch uint32
	word  int    // of a participant bitmap that holds our bit
	bit   uint64 // our bit in that word

	ready atomic.Uint64 // block headers with pages, as far as this process has seen
	lanes [lanesPerSeat]lane
	refs  refTable
	lives *lifetimes
	park  parking

	closed         atomic.Bool
	closing        sync.Mutex
	lingering      context.Context // of who has to end an operation: it ends some time after closed is set
	hurry          context.CancelFunc
	debt           atomic.Uint64 // bytes that are to be uncharged: see uncharge
	unfinishedGets atomic.Int32  // by goroutines: see takeLater
	watching       context.CancelFunc
	relink         chan struct{}
	done           sync.WaitGroup
	unfinished     atomic.Bool // a reap waits for a living lane
	trimmer        trimmer
	listeners      listeners
	services       []io.Closer
	files          descriptors
	lastCollect    atomic.Int64
	collecting     sync.Mutex // held by the goroutine that collects garbage for memory
	collected      atomic.Uint64
	received       received
}

// create lays out a new domain in s, whose memory is all zero, and joins it as the first
// participant.
func create(s store, budget int64) (*Domain, error) {
	d, err := layOut(s, budget)
	if err != nil {
		return nil, err
	}
	return d, d.join()
}

// The magic number is written last: a process that attaches and finds it finds the rest.
func layOut(s store, budget int64) (*Domain, error) {
	d := overlay(s)
	if err := s.commitControl(0, offLanes); err != nil {
		return nil, fmt.Errorf("commit control segment: %w", err)
	}
	var token [16]byte
	if err := sys.Random(token[:]); err != nil {
		return nil, fmt.Errorf("make a token: %w", err)
	}
	d.hdr.token[0].Store(binary.LittleEndian.Uint64(token[:8]))
	d.hdr.token[1].Store(binary.LittleEndian.Uint64(token[8:]))
	d.hdr.layout.Store(layoutHash())
	d.hdr.version.Store(protocolVersion)
	d.hdr.dataSize.Store(uint64(len(s.data())))
	d.hdr.limit.Store(uint64(budget) / pageSize)
	d.hdr.cpus.Store(uint64(sys.CPUs()))
	d.hdr.blocks.Store(1) // index 0 is nobody's
	d.hdr.hints.Store(1)
	d.hdr.magic.Store(magic)
	return d, nil
}

// attach joins the domain in s.
func attach(s store) (*Domain, error) {
	d := overlay(s)
	if err := d.checkLayout(); err != nil {
		return nil, err
	}
	return d, d.join()
}

func overlay(s store) *Domain {
	c := s.control()
	d := &Domain{store: s, bytes: s.data(), relink: make(chan struct{}, 1), seat: -1}
	d.lingering, d.hurry = context.WithCancel(context.Background())
	d.hdr = (*header)(unsafe.Pointer(&c[0]))
	d.parts = (*[maxParticipants]participant)(unsafe.Pointer(&c[offParticipants]))
	d.recs = (*[maxLanes]laneRec)(unsafe.Pointer(&c[offLanes]))
	d.blocks = unsafe.Slice((*block)(unsafe.Pointer(&c[offBlocks])), (len(c)-offBlocks)/blockSize)
	if m, ok := s.(*memfds); ok {
		d.lives = m.lives
	}
	return d
}

func (d *Domain) checkLayout() error {
	if m := d.hdr.magic.Load(); m != magic {
		return fmt.Errorf("%w: magic %#x instead of %#x", ErrVersion, m, uint64(magic))
	}
	if h := d.hdr.layout.Load(); h != layoutHash() {
		return otherVersion(d.hdr.version.Load(), h)
	}
	if n := d.hdr.dataSize.Load(); n != uint64(len(d.bytes)) {
		return fmt.Errorf("%w: data segment of %d bytes, mapped %d", ErrCorrupt, n, len(d.bytes))
	}
	return nil
}

// otherVersion is the error of meeting a program of another version, which has said its version, or
// 0 if it is too old to say it. Builds of one version may differ in their layouts, on machines of
// different kinds.
func otherVersion(theirs, layout uint64) error {
	said := fmt.Sprintf("version %d", theirs)
	if theirs == 0 {
		said = "a version before 9"
	}
	return fmt.Errorf("%w: the domain is of %s, layout %#x, and this program of version %d, layout %#x: "+
		"build both programs from one version of Shoal", ErrVersion, said, layout, protocolVersion, layoutHash())
}

// joinWait is how long a process that joins a full domain waits until the others have reaped the
// dead among them.
const joinWait = time.Second

// join takes a free seat. Where all are taken, it asks the living to reap the dead: a newcomer
// without a seat has no name for the recovery lock, so it cannot reap by itself. The last look for
// a seat comes after a look that found nobody dead, since the dead may have been reaped after the
// look for a seat before it.
func (d *Domain) join() error {
	begun, dead := time.Now(), 1
	for {
		joined, err := d.tryJoin()
		if err != nil {
			return fmt.Errorf("join domain: %w", err)
		}
		if joined {
			return d.start()
		}
		if dead == 0 || time.Since(begun) > joinWait {
			return ErrTooManyParticipants
		}
		if _, dead, err = d.findDead(); err != nil {
			return errors.Join(ErrTooManyParticipants, err)
		}
		if dead != 0 {
			d.announce()
			time.Sleep(time.Millisecond)
		}
	}
}

// tryJoin takes the first seat that is free. The proof of life comes first: a process that dies
// after it leaves the seat free.
func (d *Domain) tryJoin() (bool, error) {
	for s := range maxParticipants {
		if ok, err := d.claimSeat(s); ok || err != nil {
			return ok, err
		}
	}
	return false, nil
}

// Invariant (docs/memory.md, "Notice"): the proof of life is taken before the word says JOINING,
// and the state is read once more under it. Two newcomers cannot have one place, and one that dies
// on the way leaves it free.
func (d *Domain) claimSeat(s int) (bool, error) {
	p := &d.parts[s]
	state := p.state.Load()
	if !state.is(participantFree) {
		return false, nil
	}
	if ok, err := d.store.enter(s); !ok || err != nil {
		return false, err
	}
	if p.state.Load() != state {
		return false, d.store.leave(s)
	}
	if err := d.store.commitControl(offLanes+uint64(s)*laneBytes, laneBytes); err != nil {
		return false, errors.Join(err, d.store.leave(s))
	}
	for n := d.hdr.lanes.Load(); n <= uint64(s) && !d.hdr.lanes.CAS(n, uint64(s)+1); {
		n = d.hdr.lanes.Load()
	}
	d.seat, d.epoch = s, uint32(state>>32)
	d.word, d.bit = s/64, 1<<(s%64)
	for i := range d.lanes {
		id := uint32(s*lanesPerSeat + i)
		d.lanes[i].d, d.lanes[i].id, d.lanes[i].rec = d, id, &d.recs[id]
	}
	p.pid.Store(uint64(os.Getpid()))
	p.nap.Store(awake) // the participant before us may have died napping
	p.state.CAS(state, state.become(participantJoining))
	return true, nil
}

// start begins to listen to the doorbell and to watch the next living participants. It wakes
// everybody before this participant is LIVE. A participant that is killed before that wakeup holds
// nothing yet, and one that is killed after it has a watcher.
func (d *Domain) start() error {
	b, name, err := d.store.listen()
	if err != nil {
		return errors.Join(fmt.Errorf("listen to doorbell: %w", err), d.store.leave(d.seat))
	}
	ctx, cancel := context.WithCancel(context.Background())
	d.watching = cancel
	d.park.bell = b
	d.parts[d.seat].bell.Store(name)
	d.parts[d.seat].collected.Store(d.hdr.pressure.Load()) // it holds nothing that an earlier shortage could want
	d.done.Add(2)
	go d.answer(b)
	go d.watch(ctx)
	d.live()
	d.tellContents()
	return nil
}

func (d *Domain) live() {
	d.announce()
	p := &d.parts[d.seat].state
	p.CAS(p.Load(), p.Load().become(participantLive))
}

// Seat returns this process's participant seat, 0 to 255.
func (d *Domain) Seat() int { return d.seat }

// Token returns the domain's random identity. It is not a secret among participants.
func (d *Domain) Token() [16]byte {
	var t [16]byte
	binary.LittleEndian.PutUint64(t[:8], d.hdr.token[0].Load())
	binary.LittleEndian.PutUint64(t[8:], d.hdr.token[1].Load())
	return t
}

// Close leaves the domain: the code that reaps the dead drops every reference that this process
// holds. The slices that Bytes returned may show other processes' bytes from now on. They stay
// mapped as long as the Domain, or an object that refers to it, can be reached. Close is
// idempotent.
//
// The lanes are taken for good and not given back: no operation of this participant is in the
// middle of anything when its place goes to another one, and none begins. What waits for a process
// that is stopped is left as it is after a second: then another participant reaps this one.
func (d *Domain) Close() error {
	d.closing.Lock()
	defer d.closing.Unlock()
	if d.closed.Swap(true) {
		return nil
	}
	unheard := errors.Join(d.listeners.close(), d.closeServices())
	defer d.hurry()
	if !(crashing && controlled()) {
		defer time.AfterFunc(time.Duration(briefly), d.hurry).Stop()
	}
	d.park.wakeup()
	for i := range commonLanes {
		l := &d.lanes[i]
		eventually(func() bool { return l.tryLock() || l.left.Load() }) // waits for the operation that is going on
	}
	d.trimmer.stop()
	d.noNaps()
	d.lives.endAll()
	d.depart()
	d.watching() // not before: a reaper that depart waits for may die
	d.park.doubt.stop()
	d.announce()
	err := d.park.bell.Close()
	d.done.Wait()
	d.park.wakeEverybody()
	return errors.Join(err, unheard, d.store.leave(d.seat), d.store.close())
}
