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
	"github.com/shoal-mp/shoal/internal/arena/layout"
	"github.com/shoal-mp/shoal/internal/arena/observe"
	"github.com/shoal-mp/shoal/internal/arena/socket"
	"github.com/shoal-mp/shoal/internal/arena/word"
	"github.com/shoal-mp/shoal/internal/sys"
)

// What the tests see of the inside.

const (
	MaxParticipants = word.MaxParticipants
	MaxTransit      = word.MaxTransit
	LanesPerSeat    = layout.LanesPerSeat
	ControlSize     = layout.ControlSize
	SlabSize        = layout.SlabSize
	PageSize        = layout.PageSize
	SlotBlocks      = layout.SlotBlocks
	Racing          = word.RaceEnabled
)

var (
	BudgetFor    = budgetFor
	RingHeadSize = int(layout.RingHeaderSize)
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
	d.mem.Header.Magic.Store(m)
	d.mem.Header.Layout.Store(hash)
	d.mem.Header.Version.Store(version)
}

// ProtocolVersion is the version that this build says to others.
const ProtocolVersion = layout.ProtocolVersion

// Magic returns the first word of the control segment.
func (d *Domain) Magic() uint64 { return d.mem.Header.Magic.Load() }

// BeginSweep leaves the domain as it is while another process sweeps and has only emptied the
// lists.
func (d *Domain) BeginSweep() {
	for c := range d.mem.Header.Lists {
		d.mem.Header.Lists[c].Store(headEpoch(d.mem.Header.Lists[c].Load()) << 52)
	}
	for i := range d.lanes {
		d.lanes[i].mags = nil
		d.lanes[i].keeps.Store(0)
	}
	d.mem.Header.Lost.Store(layout.HintsSweeping)
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
	d.park.StopDeathChecks()
	err := d.bell.Close()
	d.done.Wait()
	return err
}

// Backed returns the bytes of the data segment that have pages, as the store sees them.
func (d *Domain) Backed() (int64, error) {
	s := d.store.(*heap)
	s.mu.Lock()
	defer s.mu.Unlock()
	return int64(len(s.backed)) * layout.PageSize, nil
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
		b := &d.mem.Blocks[i]
		w := b.State.Load()
		pages += b.Committed.Load() / layout.PageSize
		transits += w.TransitCount()
		switch {
		case w&word.StampMask != 0:
			return fmt.Errorf("block %d: stamp of kind %d by lane %d", i, w.Kind(), w.Lane())
		case w&word.AllocBit == 0 && (b.IsOwned() || w.TransitCount() != 0):
			return fmt.Errorf("block %d: free and held", i)
		case w&word.AllocBit != 0 && !b.IsOwned() && w.TransitCount() == 0:
			return fmt.Errorf("block %d: in use and held by nobody", i)
		}
		if w&word.AllocBit == 0 || layout.ExtentKind(b.Extent.Load()) != layout.ObjectRing {
			continue
		}
		r, err := d.ringOf(b)
		if err != nil {
			return fmt.Errorf("block %d: %w", i, err)
		}
		r.forEachSlot(func(s *layout.Slot, w word.Slot) {
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
	budget := d.mem.Header.Budget.Load()
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
	e := d.mem.Blocks[h.Block()].Extent.Load()
	return layout.ExtentOffset(e), layout.ExtentSize(layout.ExtentClass(e))
}

// Committed returns the bytes of a block that are backed.
func (d *Domain) Committed(h Handle) uint64 { return d.mem.Blocks[h.Block()].Committed.Load() }

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
		b := &d.mem.Blocks[h.Block()]
		b.State.CAS(b.State.Load(), b.State.Load()|word.MakeStamp(l.id, word.KindFree))
		return nil
	}},
	{"alloc stamped", func(d *Domain, r *Ring, h Handle) error {
		l := d.anyLane(context.Background())
		_, err := l.carveBlock(context.Background(), layout.ClassOf(1<<20))
		return err
	}},
	{"alloc charged", func(d *Domain, r *Ring, h Handle) error {
		l := d.anyLane(context.Background())
		index, err := l.carveBlock(context.Background(), layout.ClassOf(1<<20))
		if err != nil {
			return err
		}
		l.rec.Block.Set(uint64(index))
		l.rec.From.Set(0)
		l.rec.Target.Set(1 << 20)
		if err := l.chargeBudget(context.Background(), 1<<20); err != nil {
			return err
		}
		return d.store.commitData(layout.ExtentOffset(d.mem.Blocks[index].Extent.Load()), 512<<10)
	}},
	{"alloc committed", func(d *Domain, r *Ring, h Handle) error {
		l := d.anyLane(context.Background())
		index, err := l.carveBlock(context.Background(), layout.ClassOf(1<<20))
		if err != nil {
			return err
		}
		b := &d.mem.Blocks[index]
		if err := l.growBlock(context.Background(), b, 1<<20); err != nil {
			return err
		}
		l.rec.Phase.Store(layout.PhaseCharged) // killed before it was idle again
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
		b := &d.mem.Blocks[idle.Block()]
		b.State.CAS(b.State.Load(), b.State.Load()|word.MakeStamp(l.id, word.KindPunch))
		l.rec.Block.Set(uint64(idle.Block()))
		l.rec.From.Set(b.Committed.Load())
		l.rec.Target.Set(0)
		l.rec.Phase.Store(layout.PhaseShrink)
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
		index, err := l.carveBlock(context.Background(), layout.ClassOf(1<<20))
		if err != nil {
			return err
		}
		l.rec.Block.Set(uint64(index))
		l.rec.From.Set(0)
		l.rec.Target.Set(1 << 20)
		w := d.mem.Header.Budget.Load()
		d.mem.Header.Budget.CAS(w, w+word.MakeBudget(256, word.BudgetAdd, l.id))
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
	s.Word.Store(word.MakeSlot(lap, word.SlotFull, l.id))
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
		s.Word.Store(word.MakeSlot(lap+1, word.SlotEmpty, 0))
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
	l, b := d.anyLane(context.Background()), &d.mem.Blocks[h.Block()]
	b.State.CAS(b.State.Load(), b.State.Load()|word.MakeStamp(l.id, word.KindPunch))
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
func (d *Domain) DeathEpoch() uint64 { return d.mem.Header.DeathEpoch.Load() }

// AlmostFree does all of a free of the object h but its last write. This process holds h once.
func (d *Domain) AlmostFree(h Handle) {
	l, err := d.acquireLane()
	if err != nil {
		panic(err)
	}
	b := &d.mem.Blocks[h.Block()]
	d.dropRef(h.Block())
	b.State.CAS(b.State.Load(), b.State.Load()|word.MakeStamp(l.id, word.KindFree))
	d.markGone(b)
	if !l.finaliseObject(b) {
		panic("not finalised")
	}
}

// WaitsForStamp reports whether somebody asked to be woken when the stamp on h clears.
func (d *Domain) WaitsForStamp(h Handle) bool {
	return d.mem.Blocks[h.Block()].State.Load()&word.WaitBit != 0
}

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
func Judge(a []byte) error { return socket.AnswerError([32]byte(a), programLayout()) }

// Answer is what a listener of this process says.
func Answer(status byte) []byte { return socket.EncodeAnswer(status, programLayout()) }

// Epoch returns how many lives the participant seat had before this one.
func (d *Domain) Epoch() uint32 { return d.epoch }

// CollectWait is how long an allocation waits for other participants' collections.
const CollectWait time.Duration = collectWait

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
	for i := range c.d.mem.CountSeats() {
		v := c.c.Tickets[i].Load()
		n += int(uint32(v>>ticketShift) - uint32(v))
	}
	return n
}

// Waiters returns how many goroutines of this process are parked for a message.
func (r *Ring) Waiters() int { return r.notEmpty.Waiters() }

// Parked returns how many goroutines of this process are parked, for whatever.
func (d *Domain) Parked() (n int) {
	for _, l := range d.park.Queues() {
		n += l.Waiters()
	}
	return n
}

// CountLooks counts from now on how often the condition of each ring's receivers is tested. The
// function that it returns returns the counts since its last call. No goroutine may wait yet.
func (d *Domain) CountLooks() func() map[Handle]int {
	var mu sync.Mutex
	looks := make(map[Handle]int)
	for _, l := range d.park.Queues() {
		ready := l.Ready
		for i := range d.mem.Blocks[:d.blockCount()] {
			b := &d.mem.Blocks[i]
			if layout.ExtentKind(b.Extent.Load()) != layout.ObjectRing {
				continue
			}
			if hdr, err := d.ringHeader(b); err == nil && l.Bits == &hdr.NotEmpty {
				h := word.MakeHandle(uint32(i), b.State.Load().Generation())
				l.SetReady(func() bool {
					mu.Lock()
					defer mu.Unlock()
					looks[h]++
					return ready()
				})
			}
		}
	}
	return func() map[Handle]int {
		mu.Lock()
		defer mu.Unlock()
		defer clear(looks)
		return maps.Clone(looks)
	}
}

// LieDown makes this goroutine its process's napper, and GetUp ends that.
func (d *Domain) LieDown() bool { return d.park.BecomeNapper() }

// Sleep is what it does between.
func (d *Domain) Sleep(ctx context.Context, most time.Duration) { d.park.NapFor(ctx, most) }

// WakeUp is what the end of its context does.
func (d *Domain) WakeUp() { d.park.EndNap() }

// GetUp reports whether the process was woken meanwhile.
func (d *Domain) GetUp() bool { return d.park.FinishNap() }

// Napping reports whether the participant in the seat is said to nap.
func (d *Domain) Napping(seat int) bool { return d.park.IsNapping(seat) }

// Asks reports whether the participant asks to be woken when there is a message.
func (r *Ring) Asks(seat int) bool { return r.hdr.NotEmpty[seat/64].Load()>>(seat%64)&1 != 0 }

// Asks reports whether the participant asks to be woken when there is something to be had.
func (s *Sync) Asks(seat int) bool { return s.c.Waiting[seat/64].Load()>>(seat%64)&1 != 0 }

// BellName returns the address of the participant's doorbell, without its @.
func (d *Domain) BellName() string { return bellName(d.mem.Participants[d.seat].Bell.Load()) }

// HangBell hangs a doorbell whose names are drawn so, and returns what was drawn last.
func HangBell(draw func() (uint64, error)) (io.Closer, uint64, error) { return bindBell(draw) }

// Members returns how many participants have a share.
func (b Barrier) Members() (n int) {
	for i := range b.d.mem.CountSeats() {
		if b.c.Shares[i].Load()&word.CountMask != 0 {
			n++
		}
	}
	return n
}

// Where words lie, for who writes garbage into them.
const (
	ParticipantsAt = layout.OffParticipants
	LanesAt        = layout.OffLanes
	BlocksAt       = layout.OffBlocks
)

// HeaderSize is the bytes of the header that mean something, and BlocksWord the offset of its count
// of blocks.
var (
	HeaderSize = int(unsafe.Sizeof(layout.Header{}))
	BlocksWord = int(unsafe.Offsetof(layout.Header{}.Blocks))
)

// Scribble writes a value into a word of the header or of a block, as somebody mad would, and
// returns what restores it.
func (d *Domain) Scribble(h Handle, name string, v uint64) (restore func()) {
	b := &d.mem.Blocks[h.Block()]
	w := map[string]*word.Word{"blocks": &d.mem.Header.Blocks, "ready": &d.mem.Header.Ready, "brk": &d.mem.Header.Brk,
		"budget": &d.mem.Header.Budget.Word, "names": &d.mem.Header.Names, "ext": &b.Extent, "committed": &b.Committed}[name]
	old := w.Load()
	w.Overwrite(v)
	return func() { w.Overwrite(old) }
}

// ScribbleRing writes a ticket to the head or the tail, or a lap to the word of the first slot: it
// is empty then.
func (r *Ring) ScribbleRing(name string, v uint64) {
	switch name {
	case "head":
		r.hdr.Head.Overwrite(v)
	case "tail":
		r.hdr.Tail.Overwrite(v)
	case "slot":
		r.slot(0).Word.Overwrite(uint64(word.MakeSlot(v, word.SlotEmpty, 0)))
	}
}

// ScribbleList lets the list of free blocks of a size begin with a block.
func (d *Domain) ScribbleList(size uint64, index uint32) {
	w := &d.mem.Header.Lists[layout.ClassOf(size)]
	w.Overwrite(w.Load()&^0xffffffff | uint64(index))
}

// AwaitedStamp reports whether somebody waits for the stamp on a block.
func (d *Domain) AwaitedStamp(h Handle) bool {
	w := d.mem.Blocks[h.Block()].State.Load()
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
func (b Barrier) Napped() bool { return b.c.State.Load()&barrierNapping != 0 }

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
	return int(l.id % layout.LanesPerSeat)
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
	add(unsafe.Pointer(d.mem.Header), unsafe.Sizeof(*d.mem.Header))
	add(unsafe.Pointer(d.mem.Participants), unsafe.Sizeof(*d.mem.Participants))
	add(unsafe.Pointer(d.mem.Lanes), layout.LanesPerSeat*unsafe.Sizeof(d.mem.Lanes[0]))
	add(unsafe.Pointer(&d.mem.Blocks[0]), uintptr(d.blockCount())*unsafe.Sizeof(d.mem.Blocks[0]))
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
func (r *Ring) Desert() { r.hdr.Flags.Or(layout.RingNoReceivers) }

// GetsGoOn reports whether goroutines end gets that were in the way of others: see
// completeGetLater.
func (d *Domain) GetsGoOn() bool { return d.unfinishedGets.Load() != 0 }
