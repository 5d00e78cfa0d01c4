package arena

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"sync"
	"time"
	"unsafe"

	"github.com/shoal-mp/shoal/internal/arena/keeper"
	"github.com/shoal-mp/shoal/internal/arena/observe"
	"github.com/shoal-mp/shoal/internal/arena/socket"
	"github.com/shoal-mp/shoal/internal/arena/word"
	"github.com/shoal-mp/shoal/internal/sys"
)

// What the tests see of the inside.

const (
	MaxParticipants = word.MaxParticipants
	MaxTransit      = word.MaxTransit
	ClassCount      = classCount
	LanesPerSeat    = lanesPerSeat
	ControlSize     = controlSize
	SlabSize        = slabSize
	PageSize        = pageSize
	SlotBlocks      = slotBlocks
	Racing          = word.RaceEnabled
)

var (
	BudgetFor    = budgetFor
	ClassOf      = classOf
	ClassSize    = classSize
	RingHeadSize = int(ringHead)
	ExtentSize   = extentSize
	ExtentAlign  = extentAlign
	LayoutHash   = layoutHash
	Unspill      = decodeSpill
)

// A Heap is a domain inside one process, on the Go heap.
type Heap struct{ s *heap }

// NewHeap makes one and joins it.
func NewHeap(budget int) (*Heap, *Domain, error) {
	h := &Heap{newHeap(4*budget, 1<<16)}
	d, err := createDomain(h.s, int64(budget))
	return h, d, err
}

// Join joins it once more.
func (h *Heap) Join() (*Domain, error) { return attachDomain(h.s) }

// SetRoom sets what the machine of a heap domain has left, in bytes.
func (h *Heap) SetRoom(bytes int64) { h.s.room.Store(bytes) }

// SetLayout writes the words by which an attaching process knows the domain.
func (d *Domain) SetLayout(m, hash, version uint64) {
	d.hdr.magic.Store(m)
	d.hdr.layout.Store(hash)
	d.hdr.version.Store(version)
}

// ProtocolVersion is the version that this build says to others.
const ProtocolVersion = protocolVersion

// Magic returns the first word of the control segment.
func (d *Domain) Magic() uint64 { return d.hdr.magic.Load() }

// BeginSweep leaves the domain as it is while another process sweeps and has only emptied the
// lists.
func (d *Domain) BeginSweep() {
	for c := range d.hdr.lists {
		d.hdr.lists[c].Store(headEpoch(d.hdr.lists[c].Load()) << 52)
	}
	for i := range d.lanes {
		d.lanes[i].mags = nil
		d.lanes[i].keeps.Store(0)
	}
	d.hdr.lost.Store(hintsSweeping)
}

// anyLane is enter for a halt, which stays in the lane for good.
func (d *Domain) anyLane(ctx context.Context) *lane {
	l, err := d.acquireLaneFor(ctx)
	if err != nil {
		panic(err)
	}
	return l
}

// Abandon ends a participant as a SIGKILL does: nothing of it runs any more, its proof of life is
// gone, and all that it was in the middle of stands in shared memory.
func (d *Domain) Abandon() error {
	if err := d.Stop(); err != nil {
		return err
	}
	if s, ok := d.store.(*memfds); ok {
		return s.close() // the proof of life among them
	}
	return d.store.unlockSeat(d.seat)
}

// Stop ends what a participant does by itself, as a SIGSTOP does for good: it watches nobody, and
// is deaf.
func (d *Domain) Stop() error {
	if d.closed.Swap(true) {
		return nil
	}
	d.watching()
	d.park.doubt.stop()
	err := d.park.bell.Close()
	d.done.Wait()
	return err
}

// Backed returns the bytes of the data segment that have pages, as the store sees them.
func (d *Domain) Backed() (int64, error) {
	s := d.store.(*heap)
	s.mu.Lock()
	defer s.mu.Unlock()
	return int64(len(s.backed)) * pageSize, nil
}

// AwaitCollection waits for the collection that is going on, if one is.
func (d *Domain) AwaitCollection() {
	d.collecting.Lock()
	d.collecting.Unlock() //lint:ignore SA2001 it waits until the other has unlocked, and no longer
}

// Trim is a look of the trimmer, now instead of in a while.
func (d *Domain) Trim() {
	d.trimmer.stopTimer()
	d.trimIdleBlocks()
}

// Audit checks what must hold when nothing goes on: no stamps, each block that is in use held by
// somebody, the budget the sum of the blocks' pages, and as many references in transit as the
// messages in all rings carry.
func (d *Domain) Audit() error {
	var pages, transits, carried uint64
	for i := uint32(1); uint64(i) < d.blockCount(); i++ {
		b := &d.blocks[i]
		w := b.w.Load()
		pages += b.committed.Load() / pageSize
		transits += w.TransitCount()
		switch {
		case w&word.StampMask != 0:
			return fmt.Errorf("block %d: stamp of kind %d by lane %d", i, w.Kind(), w.Lane())
		case w&word.AllocBit == 0 && (b.isOwned() || w.TransitCount() != 0):
			return fmt.Errorf("block %d: free and held", i)
		case w&word.AllocBit != 0 && !b.isOwned() && w.TransitCount() == 0:
			return fmt.Errorf("block %d: in use and held by nobody", i)
		}
		if w&word.AllocBit == 0 || extKind(b.ext.Load()) != objectRing {
			continue
		}
		r, err := d.ringOf(b)
		if err != nil {
			return fmt.Errorf("block %d: %w", i, err)
		}
		r.forEachSlot(func(s *slot, w word.Slot) {
			if w.State() == word.SlotFull || w.State() == word.SlotLeased {
				m := Message{d: d}
				if err = m.readSlot(s); err == nil {
					carried += uint64(len(m.order))
				}
			} else if w.State() == word.SlotWriting || w.State() == word.SlotReading {
				err = fmt.Errorf("slot in state %d", w.State())
			}
		})
		if err != nil {
			return fmt.Errorf("ring %d: %w", i, err)
		}
	}
	budget := d.hdr.budget.Load()
	switch {
	case budget&(word.BudgetStamp|word.BudgetWait) != 0:
		return fmt.Errorf("budget: stamp %#x", budget&(word.BudgetStamp|word.BudgetWait))
	case budget.Pages() != pages:
		return fmt.Errorf("budget: %d pages, blocks have %d", budget.Pages(), pages)
	case carried != transits:
		return fmt.Errorf("messages carry %d references, blocks count %d", carried, transits)
	}
	return nil
}

// Extent returns where a block's bytes are and how much address space they have.
func (d *Domain) Extent(h Handle) (off, size uint64) {
	e := d.blocks[h.Block()].ext.Load()
	return extOffset(e), extentSize(extClass(e))
}

// Committed returns the bytes of a block that are backed.
func (d *Domain) Committed(h Handle) uint64 { return d.blocks[h.Block()].committed.Load() }

// HandleAt makes the handle that a stranger could make up.
func HandleAt(index, gen uint32) Handle { return word.MakeHandle(index, gen) }

// Index returns the block index of h.
func Index(h Handle) uint32 { return h.Block() }

// A Halt is a point in the middle of an operation: Do goes up to it and stays there, its lane taken
// and its stamps set.
type Halt struct {
	Name string
	Do   func(d *Domain, r *Ring, h Handle) error
}

// Halts are one point in each kind of step that a death can interrupt. r holds one message and room
// for more; h is held by d. The last one keeps everybody else from the budget.
var Halts = []Halt{
	{"put stamped", func(d *Domain, r *Ring, h Handle) error {
		_, err := halfPut(d, r, h, 0)
		return err
	}},
	{"put writing", func(d *Domain, r *Ring, h Handle) error {
		_, err := halfPut(d, r, h, 1)
		return err
	}},
	{"put published", func(d *Domain, r *Ring, h Handle) error {
		_, err := halfPut(d, r, h, 2)
		return err
	}},
	{"get reading", func(d *Domain, r *Ring, h Handle) error { return halfGet(d, r, 0) }},
	{"get acquired", func(d *Domain, r *Ring, h Handle) error { return halfGet(d, r, 1) }},
	{"get stamped", func(d *Domain, r *Ring, h Handle) error { return halfGet(d, r, 2) }},
	{"get emptied", func(d *Domain, r *Ring, h Handle) error { return halfGet(d, r, 3) }},
	{"free stamped", func(d *Domain, r *Ring, h Handle) error {
		l := d.anyLane(context.Background())
		d.dropRef(h.Block())
		b := &d.blocks[h.Block()]
		b.w.CAS(b.w.Load(), b.w.Load()|word.MakeStamp(l.id, word.KindFree))
		return nil
	}},
	{"alloc stamped", func(d *Domain, r *Ring, h Handle) error {
		l := d.anyLane(context.Background())
		_, err := l.carveBlock(context.Background(), classOf(1<<20))
		return err
	}},
	{"alloc charged", func(d *Domain, r *Ring, h Handle) error {
		l := d.anyLane(context.Background())
		index, err := l.carveBlock(context.Background(), classOf(1<<20))
		if err != nil {
			return err
		}
		l.rec.block.Set(uint64(index))
		l.rec.from.Set(0)
		l.rec.target.Set(1 << 20)
		if err := l.chargeBudget(context.Background(), 1<<20); err != nil {
			return err
		}
		return d.store.commitData(extOffset(d.blocks[index].ext.Load()), 512<<10)
	}},
	{"alloc committed", func(d *Domain, r *Ring, h Handle) error {
		l := d.anyLane(context.Background())
		index, err := l.carveBlock(context.Background(), classOf(1<<20))
		if err != nil {
			return err
		}
		b := &d.blocks[index]
		if err := l.growBlock(context.Background(), b, 1<<20); err != nil {
			return err
		}
		l.rec.phase.Store(phaseCharged) // killed before it was idle again
		return nil
	}},
	{"punching", func(d *Domain, r *Ring, h Handle) error {
		idle, err := d.Alloc(1 << 20)
		if err != nil {
			return err
		}
		if err := d.Release(idle); err != nil {
			return err
		}
		l := d.anyLane(context.Background())
		b := &d.blocks[idle.Block()]
		b.w.CAS(b.w.Load(), b.w.Load()|word.MakeStamp(l.id, word.KindPunch))
		l.rec.block.Set(uint64(idle.Block()))
		l.rec.from.Set(b.committed.Load())
		l.rec.target.Set(0)
		l.rec.phase.Store(phaseShrink)
		return nil
	}},
	{"reaping", func(d *Domain, r *Ring, h Handle) error {
		if _, ok := d.lockRecovery(); !ok {
			return fmt.Errorf("somebody has the recovery lock")
		}
		return nil
	}},
	{"budget stamped", func(d *Domain, r *Ring, h Handle) error {
		l := d.anyLane(context.Background())
		index, err := l.carveBlock(context.Background(), classOf(1<<20))
		if err != nil {
			return err
		}
		l.rec.block.Set(uint64(index))
		l.rec.from.Set(0)
		l.rec.target.Set(1 << 20)
		w := d.hdr.budget.Load()
		d.hdr.budget.CAS(w, w+word.MakeBudget(256, word.BudgetAdd, l.id))
		return nil
	}},
}

func halfPut(d *Domain, r *Ring, h Handle, steps int) (*lane, error) {
	l := d.anyLane(context.Background())
	l.incrementOpseq()
	if err := l.stampForPut([]uint32{h.Block()}); err != nil || steps == 0 {
		return l, err
	}
	tk, _, err := r.claimSlots(l, 1)
	if err != nil || steps == 1 {
		return l, err
	}
	s, lap := r.slot(tk), tk>>r.bits
	r.writeMessage(l, s, &outgoing{table: []Handle{h}, blocks: []Handle{h}})
	s.word.Store(word.MakeSlot(lap, word.SlotFull, l.id))
	return l, nil
}

func halfGet(d *Domain, r *Ring, steps int) error {
	l := d.anyLane(context.Background())
	s, lap, err := r.claimOldest(l, word.SlotReading)
	if err != nil {
		return err
	}
	m := Message{d: d}
	if err := m.readSlot(s); err != nil || steps == 0 {
		return err
	}
	if steps == 1 {
		d.addRef(m.order[0])
		return nil
	}
	for _, i := range m.order {
		l.receiveBlock(i, &m)
	}
	if steps == 3 {
		s.word.Store(word.MakeSlot(lap+1, word.SlotEmpty, 0))
	}
	return nil
}

// StampPut stamps h as the put of a living lane does, until the returned function is called.
func (d *Domain) StampPut(h Handle) (end func(), err error) {
	l := d.anyLane(context.Background())
	order := []uint32{h.Block()}
	err = l.stampForPut(order)
	return func() {
		l.revertPutStamps(order)
		l.unlock()
	}, err
}

// StampPunch stamps a free block as who gives its pages back does, until the returned function has
// given them back.
func (d *Domain) StampPunch(h Handle) (end func()) {
	l, b := d.anyLane(context.Background()), &d.blocks[h.Block()]
	b.w.CAS(b.w.Load(), b.w.Load()|word.MakeStamp(l.id, word.KindPunch))
	return func() {
		l.shrinkBlock(b, 0)
		d.unstampBlock(b)
		l.unlock()
	}
}

// BusyLanes returns how many operations are going on in this process.
func (d *Domain) BusyLanes() (n int) {
	for i := range d.lanes {
		n += int(d.lanes[i].busy.Load())
	}
	return n
}

// DeathEpoch returns how often somebody was told of a death.
func (d *Domain) DeathEpoch() uint64 { return d.hdr.deathEpoch.Load() }

// AlmostFree does all of a free of the object h but its last write. This process holds h once.
func (d *Domain) AlmostFree(h Handle) {
	l, err := d.acquireLane()
	if err != nil {
		panic(err)
	}
	b := &d.blocks[h.Block()]
	d.dropRef(h.Block())
	b.w.CAS(b.w.Load(), b.w.Load()|word.MakeStamp(l.id, word.KindFree))
	d.markGone(b)
	if !l.finaliseObject(b) {
		panic("not finalised")
	}
}

// WaitsForStamp reports whether somebody asked to be woken when the stamp on h clears.
func (d *Domain) WaitsForStamp(h Handle) bool { return d.blocks[h.Block()].w.Load()&word.WaitBit != 0 }

// Listening is how Domains reads the kernel's table.
var Listening = socket.ParseAddresses

// JoinRequest is what Join says, with a version and a layout hash.
func JoinRequest(token Token, version uint16, layout uint64) []byte {
	r := socket.EncodeRequest(socket.WantJoin, socket.Layout{Version: uint64(version), Hash: layout}, token)
	return r[:]
}

// MaxConnections is how many clients a listener talks to at once.
const MaxConnections = sys.MostStrangers

// Judge tells what Join makes of an answer of so many bytes.
func Judge(a []byte) error { return socket.AnswerError([32]byte(a), layout()) }

// Answer is what a listener of this process says.
func Answer(status byte) []byte { return socket.EncodeAnswer(status, layout()) }

// Epoch returns how many lives the participant seat had before this one.
func (d *Domain) Epoch() uint32 { return d.epoch }

// CollectWait is how long an allocation waits for other participants' collections.
const CollectWait time.Duration = collectWait

// An Offset is one field of the shared structures.
type Offset struct {
	Name      string
	Got, Want uintptr
}

// Offsets are the layout that docs/memory.md draws.
var Offsets = []Offset{
	{"sizeof header", unsafe.Sizeof(header{}), 384 + 8*(classCount+processorWords)},
	{"header.magic", unsafe.Offsetof(header{}.magic), 0},
	{"header.layout", unsafe.Offsetof(header{}.layout), 8},
	{"header.dataSize", unsafe.Offsetof(header{}.dataSize), 16},
	{"header.limit", unsafe.Offsetof(header{}.limit), 24},
	{"header.token", unsafe.Offsetof(header{}.token), 32},
	{"header.version", unsafe.Offsetof(header{}.version), 48},
	{"header.blocks", unsafe.Offsetof(header{}.blocks), 64},
	{"header.ready", unsafe.Offsetof(header{}.ready), 72},
	{"header.brk", unsafe.Offsetof(header{}.brk), 80},
	{"header.hints", unsafe.Offsetof(header{}.hints), 88},
	{"header.lost", unsafe.Offsetof(header{}.lost), 96},
	{"header.budget", unsafe.Offsetof(header{}.budget), 128},
	{"header.recovery", unsafe.Offsetof(header{}.recovery), 192},
	{"header.deathEpoch", unsafe.Offsetof(header{}.deathEpoch), 200},
	{"header.members", unsafe.Offsetof(header{}.members), 208},
	{"header.pressure", unsafe.Offsetof(header{}.pressure), 216},
	{"header.spinners", unsafe.Offsetof(header{}.spinners), 256},
	{"header.xowait", unsafe.Offsetof(header{}.xowait), 288},
	{"header.memwait", unsafe.Offsetof(header{}.memwait), 320},
	{"header.relief", unsafe.Offsetof(header{}.relief), 352},
	{"header.names", unsafe.Offsetof(header{}.names), 360},
	{"header.quota", unsafe.Offsetof(header{}.quota), 248},
	{"header.lists", unsafe.Offsetof(header{}.lists), 384},
	{"header.processors", unsafe.Offsetof(header{}.processors), 384 + 8*classCount},
	{"sizeof participant", unsafe.Sizeof(participant{}), 256},
	{"participant.state", unsafe.Offsetof(participant{}.state), 0},
	{"participant.pid", unsafe.Offsetof(participant{}.pid), 8},
	{"participant.nap", unsafe.Offsetof(participant{}.nap), 32},
	{"participant.bell", unsafe.Offsetof(participant{}.bell), 40},
	{"sizeof laneRec", unsafe.Sizeof(laneRec{}), 64},
	{"laneRec.opseq", unsafe.Offsetof(laneRec{}.opseq), 0},
	{"laneRec.block", unsafe.Offsetof(laneRec{}.block), 8},
	{"laneRec.from", unsafe.Offsetof(laneRec{}.from), 16},
	{"laneRec.target", unsafe.Offsetof(laneRec{}.target), 24},
	{"laneRec.phase", unsafe.Offsetof(laneRec{}.phase), 32},
	{"sizeof block", unsafe.Sizeof(block{}), 64},
	{"block.own", unsafe.Offsetof(block{}.own), 0},
	{"block.w", unsafe.Offsetof(block{}.w), 32},
	{"block.ext", unsafe.Offsetof(block{}.ext), 40},
	{"block.committed", unsafe.Offsetof(block{}.committed), 48},
	{"block.next", unsafe.Offsetof(block{}.next), 56},
	{"sizeof ring", unsafe.Sizeof(ring{}), 512},
	{"ring.tail", unsafe.Offsetof(ring{}.tail), 128},
	{"ring.head", unsafe.Offsetof(ring{}.head), 256},
	{"ring.notEmpty", unsafe.Offsetof(ring{}.notEmpty), 384},
	{"ring.notFull", unsafe.Offsetof(ring{}.notFull), 416},
	{"sizeof slot", unsafe.Sizeof(slot{}), 256},
	{"slot.opseq", unsafe.Offsetof(slot{}.opseq), 8},
	{"slot.meta", unsafe.Offsetof(slot{}.meta), 16},
	{"slot.first", unsafe.Offsetof(slot{}.first), 24},
	{"slot.body", unsafe.Offsetof(slot{}.body), 32},
	{"slot.others", unsafe.Offsetof(slot{}.others), 232},
	{"participants", offParticipants, 64 << 10},
	{"lanes", offLanes, 128 << 10},
	{"blocks", offBlocks, 2 << 20},
	{"end", controlSize, 2<<20 + 256<<20},
}

// Fields are the parts of packed words by the names of docs/memory.md, each as the code reads it.
var Fields = map[string]func(w uint64) uint64{
	"stateWord.generation": func(w uint64) uint64 { return uint64(word.State(w).Generation()) },
	"stateWord.transit":    func(w uint64) uint64 { return word.State(w).TransitCount() },
	"stateWord.ALLOC":      func(w uint64) uint64 { return w & word.AllocBit },
	"stateWord.WAIT":       func(w uint64) uint64 { return w & word.WaitBit },
	"stateWord.GONE":       func(w uint64) uint64 { return w & word.GoneBit },
	"stateWord.kind":       func(w uint64) uint64 { return word.State(w).Kind() },
	"stateWord.lane":       func(w uint64) uint64 { return uint64(word.State(w).Lane()) },

	"extent.lead":   func(w uint64) uint64 { return w & extLead },
	"extent.small":  func(w uint64) uint64 { return w & extSmall },
	"extent.kind":   func(w uint64) uint64 { return uint64(extKind(w)) },
	"extent.class":  func(w uint64) uint64 { return uint64(extClass(w)) },
	"extent.offset": extOffset,

	"slotWord.lap":   func(w uint64) uint64 { return word.Slot(w).Lap() },
	"slotWord.state": func(w uint64) uint64 { return word.Slot(w).State() },
	"slotWord.span":  func(w uint64) uint64 { return word.Slot(w).Span() - 1 },
	"slotWord.lane":  func(w uint64) uint64 { return uint64(word.Slot(w).Lane()) },

	"lockWord.pid":   func(w uint64) uint64 { return uint64(word.Lock(w).PID()) },
	"lockWord.epoch": func(w uint64) uint64 { return w >> word.EpochShift & word.EpochMask },
	"lockWord.seat":  func(w uint64) uint64 { return uint64(word.Lock(w).Seat()) },
	"lockWord.state": func(w uint64) uint64 { return uint64(word.Lock(w).State()) },

	"participantWord.epoch": func(w uint64) uint64 { return uint64(word.Participant(w).Epoch()) },
	"participantWord.state": func(w uint64) uint64 { return word.Participant(w).State() },

	"budgetWord.pages": func(w uint64) uint64 { return uint64(word.Budget(w).Pages()) },
	"budgetWord.WAIT":  func(w uint64) uint64 { return w & word.BudgetWait },
	"budgetWord.kind":  func(w uint64) uint64 { return uint64(word.Budget(w).Kind()) },
	"budgetWord.lane":  func(w uint64) uint64 { return uint64(word.Budget(w).Lane()) },
}

// Dup returns the domain's two files once more, as another process would receive them.
func (d *Domain) Dup(dup func(*os.File) (*os.File, error)) (control, data *os.File, err error) {
	f := d.Files()
	if control, err = dup(f[0]); err != nil {
		return nil, nil, err
	}
	if data, err = dup(f[1]); err != nil {
		control.Close()
	}
	return control, data, err
}

// PreventReaping prevents the goroutines of this process from reaping until it is released.
func (d *Domain) PreventReaping() (release func()) {
	l := &d.lanes[reaperLane]
	l.lock()
	return l.unlock
}

// ReapAlone reaps if nobody else is at it, and reports whether it did.
func (d *Domain) ReapAlone() (bool, error) {
	l := &d.lanes[reaperLane]
	if !l.tryLock() {
		return false, nil
	}
	defer l.unlock()
	if _, ok := d.lockRecovery(); !ok {
		return false, nil
	}
	defer d.unlockRecovery()
	_, err := d.reapLocked(l)
	return true, err
}

// ShareOf makes the participant a reader that did not look whether there is a writer.
func (d *Domain) ShareOf(s *Sync) error {
	if !s.addShare() {
		return ErrLocked
	}
	return nil
}

// Waiting returns how many wait, and were not served.
func (c Cond) Waiting() (n int) {
	for i := range c.usedSeats() {
		v := c.c.tickets[i].Load()
		n += int(uint32(v>>ticketShift) - uint32(v))
	}
	return n
}

// Waiters returns how many goroutines of this process are parked for a message.
func (r *Ring) Waiters() int { return int(r.notEmpty.waiters.Load()) }

// Parked returns how many goroutines of this process are parked, for whatever.
func (d *Domain) Parked() (n int) {
	for _, l := range d.park.allQueues() {
		n += int(l.waiters.Load())
	}
	return n
}

// CountLooks counts from now on how often the condition of each ring's receivers is tested. The
// function that it returns returns the counts since its last call. No goroutine may wait yet.
func (d *Domain) CountLooks() func() map[Handle]int {
	var mu sync.Mutex
	looks := make(map[Handle]int)
	for _, l := range d.park.allQueues() {
		l.mu.Lock()
		ready := l.ready
		for i := range d.blocks[:d.blockCount()] {
			b := &d.blocks[i]
			if extKind(b.ext.Load()) != objectRing {
				continue
			}
			if hdr, err := d.ringHeader(b); err == nil && l.bits == &hdr.notEmpty {
				h := word.MakeHandle(uint32(i), b.w.Load().Generation())
				l.ready = func() bool {
					mu.Lock()
					defer mu.Unlock()
					looks[h]++
					return ready()
				}
			}
		}
		l.mu.Unlock()
	}
	return func() map[Handle]int {
		mu.Lock()
		defer mu.Unlock()
		defer clear(looks)
		return maps.Clone(looks)
	}
}

// LieDown makes this goroutine its process's napper, and GetUp ends that.
func (d *Domain) LieDown() bool { return d.becomeNapper() }

// Sleep is what it does between.
func (d *Domain) Sleep(ctx context.Context, most time.Duration) { d.napFor(ctx, most) }

// WakeUp is what the end of its context does.
func (d *Domain) WakeUp() { d.endNap() }

// GetUp reports whether the process was woken meanwhile.
func (d *Domain) GetUp() bool { return d.finishNap() }

// Napping reports whether the participant in the seat is said to nap.
func (d *Domain) Napping(seat int) bool { return d.parts[seat].nap.Load() == napping }

// Asks reports whether the participant asks to be woken when there is a message.
func (r *Ring) Asks(seat int) bool { return r.hdr.notEmpty[seat/64].Load()>>(seat%64)&1 != 0 }

// Asks reports whether the participant asks to be woken when there is something to be had.
func (s *Sync) Asks(seat int) bool { return s.c.waiting[seat/64].Load()>>(seat%64)&1 != 0 }

// An AdaptiveBackoff is an adaptiveBackoff.
type AdaptiveBackoff struct{ h adaptiveBackoff }

// Due and Learn are its methods.
func (h *AdaptiveBackoff) Due() bool       { return h.h.isDue() }
func (h *AdaptiveBackoff) Learn(paid bool) { h.h.recordResult(paid) }

// Spin spins for a condition, if that is due.
func (h *AdaptiveBackoff) Spin(d *Domain, ready func() bool) bool {
	return d.spinUntil(context.Background(), &h.h, ready)
}

// BellName returns the address of the participant's doorbell, without its @.
func (d *Domain) BellName() string { return bellName(d.parts[d.seat].bell.Load()) }

// HangBell hangs a doorbell whose names are drawn so, and returns what was drawn last.
func HangBell(draw func() (uint64, error)) (io.Closer, uint64, error) { return bindBell(draw) }

// Members returns how many participants have a share.
func (b Barrier) Members() (n int) {
	for i := range b.usedSeats() {
		if b.c.shares[i].Load()&word.CountMask != 0 {
			n++
		}
	}
	return n
}

// Where words lie, for who writes garbage into them.
const (
	ParticipantsAt = offParticipants
	LanesAt        = offLanes
	BlocksAt       = offBlocks
)

// HeaderSize is the bytes of the header that mean something, and BlocksWord the offset of its count
// of blocks.
var (
	HeaderSize = int(unsafe.Sizeof(header{}))
	BlocksWord = int(unsafe.Offsetof(header{}.blocks))
)

// Scribble writes a value into a word of the header or of a block, as somebody mad would, and
// returns what restores it.
func (d *Domain) Scribble(h Handle, name string, v uint64) (restore func()) {
	b := &d.blocks[h.Block()]
	w := map[string]*word.Word{"blocks": &d.hdr.blocks, "ready": &d.hdr.ready, "brk": &d.hdr.brk,
		"budget": &d.hdr.budget.Word, "names": &d.hdr.names, "ext": &b.ext, "committed": &b.committed}[name]
	old := w.Load()
	w.Overwrite(v)
	return func() { w.Overwrite(old) }
}

// ScribbleRing writes a ticket to the head or the tail, or a lap to the word of the first slot: it
// is empty then.
func (r *Ring) ScribbleRing(name string, v uint64) {
	switch name {
	case "head":
		r.hdr.head.Overwrite(v)
	case "tail":
		r.hdr.tail.Overwrite(v)
	case "slot":
		r.slot(0).word.Overwrite(uint64(word.MakeSlot(v, word.SlotEmpty, 0)))
	}
}

// ScribbleList lets the list of free blocks of a size begin with a block.
func (d *Domain) ScribbleList(size uint64, index uint32) {
	w := &d.hdr.lists[classOf(size)]
	w.Overwrite(w.Load()&^0xffffffff | uint64(index))
}

// AwaitedStamp reports whether somebody waits for the stamp on a block.
func (d *Domain) AwaitedStamp(h Handle) bool {
	w := d.blocks[h.Block()].w.Load()
	return w.IsStamped() && w&word.WaitBit != 0
}

// SetEndsTime changes for how long a reaper waits for the ends of rings, and returns what restores
// it.
func SetEndsTime(t time.Duration) (restore func()) {
	old := endsTime
	endsTime = t
	return func() { endsTime = old }
}

// SetStampTime changes for how long a stamp is believed in, and returns what restores it.
func SetStampTime(t time.Duration) (restore func()) {
	old := stampTime
	stampTime = t
	return func() { stampTime = old }
}

// NapAtBarriers sets how long a nap at a barrier lasts at most, and returns what restores it.
func NapAtBarriers(most time.Duration) (restore func()) {
	old := barrierNap
	barrierNap = most
	return func() { barrierNap = old }
}

// Napped reports whether a participant naps at the barrier, or did in this turn.
func (b Barrier) Napped() bool { return b.c.state.Load()&barrierNapping != 0 }

// LockCell takes the lock of a semaphore's cell, as each change of it does for a few instructions.
func (s *Sync) LockCell() error { return Semaphore{s}.lockCell(context.Background()) }
func (s *Sync) UnlockCell()     { Semaphore{s}.unlockCell() }

// KeeperAddress is where a domain's keeper listens.
func KeeperAddress(d *Domain) string { return keeper.Address(d) }

// ForgetLogged has the next garbage be logged again.
func ForgetLogged() { logged.Store(false) }

// LaneHere returns the lane in which an operation of this goroutine would begin.
func (d *Domain) LaneHere() int {
	l := d.anyLane(context.Background())
	defer l.unlock()
	return int(l.id % lanesPerSeat)
}

// Watching is an observer, for which time passes by Pass.
type Watching struct {
	o     *observe.Observer
	ahead time.Duration
}

func NewWatching(d *Domain) *Watching {
	w := &Watching{o: d.newObserver()}
	w.o.Clock = func() time.Time { return time.Now().Add(w.ahead) }
	return w
}
func (w *Watching) Look() observe.Observation { return w.o.Observe() }
func (w *Watching) Pass(t time.Duration)      { w.ahead += t }

// Words copies the header, the participants, the lanes and the headers of blocks that are in use.
func (d *Domain) Words() []uint64 {
	var all []uint64
	add := func(p unsafe.Pointer, bytes uintptr) { all = append(all, unsafe.Slice((*uint64)(p), bytes/8)...) }
	add(unsafe.Pointer(d.hdr), unsafe.Sizeof(*d.hdr))
	add(unsafe.Pointer(d.parts), unsafe.Sizeof(*d.parts))
	add(unsafe.Pointer(d.recs), lanesPerSeat*unsafe.Sizeof(d.recs[0]))
	add(unsafe.Pointer(&d.blocks[0]), uintptr(d.blockCount())*unsafe.Sizeof(d.blocks[0]))
	return all
}

// TimelineForm is in the first word of a timeline.
const TimelineForm = timelineForm

// Words returns the memory of a timeline.
func (t *Timeline) Words() Numbers[uint64] { return t.words }

// What is in a block of contents.
const (
	ContentsForm    = contentsForm
	ContentsRecords = contentsRecords
)

// ContentsWords returns the memory in which d's process tells what it holds.
func (d *Domain) ContentsWords() Numbers[uint64] { return d.lives.told.words }

// Desert says in the ring that there is no receiver, and does nothing else that a finaliser does.
func (r *Ring) Desert() { r.hdr.flags.Or(ringNoReceivers) }

// GetsGoOn reports whether goroutines end gets that were in the way of others: see
// completeGetLater.
func (d *Domain) GetsGoOn() bool { return d.unfinishedGets.Load() != 0 }
