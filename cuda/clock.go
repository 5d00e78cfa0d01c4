package cuda

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/cuda/cudriver"
)

// Note [An event that travels] A sender does not wait until its device has written the memory that
// it sends. Instead its stream, after that work, writes the next number to a word of shared memory,
// the clock of its process. The message contains the clock and the number. The receiver's stream
// waits for the number before it does any other work. The clock is a page of its own, in a block of
// the domain that the message and the receiver reference, so it exists as long as a process waits
// for it, even if other processes die. Each process registers the page with its driver, which maps
// it on every device.
//
// CUDA has interprocess events, but does not document the state of an event after its process has
// died; a stream that waits for it may wait forever. The host can end the wait for a word in its
// own memory: it reads the word and changes it atomically, without the driver. A word in device
// memory would not work, because only streams read and write it. Streams share a few hardware
// queues, or a single one (CUDA_DEVICE_MAX_CONNECTIONS), so the stream that should end a wait may
// be queued behind it.
//
// The life of a process is a block that no other process references. The first process to find that
// another one has ended sets the bit abandoned in that process's clock. The bit ends every wait for
// the clock, and tells all receivers how far the device had come. They must set the bit again as
// long as one of their streams may still reach the clock: see [events.markAbandoned].
//
// A process that exits normally waits for its device first. Receivers of memory from a killed
// process get [ErrUnfinished], unless its device finished in time.
//
// If the driver refuses to register the page or does not support stream memory operations, the host
// waits: the sender before it sends, or the receiver before it returns the memory.

// abandoned is the bit that is set in the clock of a process that has ended. A clock must be
// replaced before its number reaches this value.
const abandoned = 1 << 30

// A clockPage is a clock as mapped in this process: a page of shared memory that begins with
// the number that a stream writes. See Note [An event that travels].
type clockPage struct {
	d      *arena.Domain
	block  arena.Handle
	pages  []byte
	number *atomic.Uint32
}

// clockPageOf returns the clock in a block. The caller must hold a reference to the block. The
// error wraps [ErrRange] if the block is smaller than a page.
func clockPageOf(d *arena.Domain, block arena.Handle) (w clockPage, err error) {
	w = clockPage{d: d, block: block}
	if w.pages, err = d.Bytes(block); err != nil {
		return w, err
	}
	if !isPageable(w.pages) {
		return w, fmt.Errorf("%w: clock has %d bytes", ErrRange, len(w.pages))
	}
	w.number = (*atomic.Uint32)(unsafe.Pointer(unsafe.SliceData(w.pages)))
	return w, nil
}

// releaseBlock releases one reference to the clock's block, after which w must not be used.
func (w clockPage) releaseBlock() error { return releaseIgnoringLeave(w.d, w.block) }

// releaseIgnoringLeave releases one reference to a block. It ignores the error if this process
// has already left the domain.
func releaseIgnoringLeave(d *arena.Domain, h arena.Handle) error {
	if err := d.Release(h); !errors.Is(err, arena.ErrClosed) {
		return err
	}
	return nil
}

// A clock counts the completed work of this process on a device. [Device.newClock] makes it,
// and events.number guards it.
type clock struct {
	clockPage
	*registration
	life arena.Handle // a block that becomes stale when this process ends
	now  uint32       // the last number assigned
}

// A registration is a clock's page registered with the driver, and its device address.
type registration struct {
	*pin
	at cudriver.Ptr
}

// A sent is the pending wait of this device's stream for received memory that the sender's
// device may not have written yet.
type sent struct {
	clockPage
	life   arena.Handle
	want   uint32
	of     *memory
	uses   int64 // value of of.fate.uses on arrival
	clock  *foreignClock
	judged atomic.Bool
	lost   atomic.Bool // judged, and the number will never arrive
}

// A foreignClock is the registered clock of another process, made by [Device.clockOf].
// events.clocks guards it. [Device.synchronize] releases a clock without pending waits if its
// process has ended, or if there are more than many clocks.
type foreignClock struct {
	clockPage
	*registration
	life arena.Handle
	uses int // number of pending waits for this clock
}

// events is the state of a device for sending and receiving memory. The goroutine that watches
// needs the first two locks, so they must not be held during a driver call; see Note [Calls that
// wait].
type events struct {
	sync.Mutex
	look   sync.Mutex // held by the goroutine that judges; see judgeOne
	number sync.Mutex // guards clock
	clock  *clock
	// the device finishes its work before this domain closes; see finishBeforeLeave
	left    atomic.Pointer[arena.Domain]
	waits   atomic.Bool // streams cannot write numbers, so the sender must wait
	awaited []*sent     // pending and judged waits of the stream
	watched bool        // a goroutine runs [Device.watchWaits]
	lost    error       // use of unfinished memory, not reported yet

	clocks  sync.Mutex // guards foreign
	foreign map[key]*foreignClock
}

// isUnsupported reports whether an error means that the driver does not support stream memory
// operations or the registration of shared memory, or that another library of this process has
// already registered the page.
func isUnsupported(err error) bool {
	for _, r := range []cudriver.Result{cudriver.ErrorNotSupported, cudriver.ErrorNotPermitted,
		cudriver.ErrorInvalidValue, cudriver.ErrorOutOfMemory, cudriver.ErrorOperatingSystem,
		cudriver.ErrorHostMemoryAlreadyRegistered} {
		if errors.Is(err, r) {
			return true
		}
	}
	return false
}

// advanceClock has the stream write the clock's next number after the work queued so far, and
// returns the clock and that number. The clock is nil if the stream is idle, so that there is
// nothing to wait for; if the stream cannot write a number, advanceClock waits until it is
// idle. First, advanceClock waits until all memory that this process has received is written,
// or returns the error that it will not be, which wraps [ErrUnfinished].
func (d *Device) advanceClock(domain *arena.Domain) (*clock, uint32, error) {
	r, err := d.readyState()
	if err != nil {
		return nil, 0, err
	}
	d.judgeWaits()
	if err := d.takeLostError(); err != nil {
		return nil, 0, err
	}
	idle := d.withReadyContext(r, func() error { return d.driver.StreamQuery(r.stream) })
	if !errors.Is(idle, cudriver.ErrorNotReady) {
		return nil, 0, idle
	}
	if !d.events.waits.Load() {
		c, n, err := d.queueClockWrite(r, domain)
		if err == nil || !isUnsupported(err) && !errors.Is(err, arena.ErrNoSpace) {
			return c, n, err
		}
		d.events.waits.Store(!errors.Is(err, arena.ErrNoSpace))
	}
	return nil, 0, d.withReadyContext(r, func() error { return d.driver.StreamSynchronize(r.stream) })
}

// queueClockWrite queues the write of the clock's next number on the stream, and returns the
// clock and the number. It creates a new clock if there is none for the domain, or if the
// number would reach [abandoned].
func (d *Device) queueClockWrite(r *ready, domain *arena.Domain) (c *clock, n uint32, err error) {
	d.events.number.Lock()
	defer d.events.number.Unlock()
	if c = d.events.clock; c == nil || c.d != domain || c.now >= abandoned-1 {
		// The old clock and its life are kept, because another process may still wait for it.
		if c, err = d.newClock(domain); err != nil {
			return nil, 0, err
		}
		d.events.clock = c
	}
	c.now++
	err = d.withReadyContext(r, func() error { return d.driver.StreamWriteValue32(r.stream, c.at, c.now) })
	return c, c.now, err
}

// newClock creates a clock at 0, in a new block of the domain. The caller must release it by
// [clock.releaseClock].
func (d *Device) newClock(domain *arena.Domain) (*clock, error) {
	block, err := domain.Alloc(os.Getpagesize())
	if err != nil {
		return nil, err
	}
	c := new(clock)
	if c.clockPage, err = clockPageOf(domain, block); err == nil {
		c.number.Store(0) // a reused page may hold old data
		c.registration, err = d.registerClock(c.clockPage)
	}
	if err == nil {
		if c.life, err = domain.Alloc(0); err != nil {
			err = errors.Join(err, c.unlock())
		}
	}
	if err != nil {
		return nil, errors.Join(err, releaseIgnoringLeave(domain, block))
	}
	return c, nil
}

// registerClock registers a clock's page with the driver and looks up its device address. The
// caller must unlock the registration.
func (d *Device) registerClock(w clockPage) (*registration, error) {
	p, err := d.register(w.pages)
	if err != nil {
		return nil, err
	}
	s := &registration{pin: p}
	err = d.withContext(func(cudriver.Stream) (err error) {
		s.at, err = d.driver.MemHostGetDevicePointer(p.pages)
		return err
	})
	if err != nil {
		return nil, errors.Join(err, p.unlock())
	}
	return s, nil
}

// releaseClock releases the pages and blocks of a clock, the counter of completed work that other
// processes wait for. No process may wait for the clock any more.
func (c *clock) releaseClock() error {
	return errors.Join(releaseIgnoringLeave(c.d, c.life), c.unlock(), c.releaseBlock())
}

// dropClock releases the device's clock after the stream has written all its numbers: then no
// receiver needs to know whether this process is alive. If of is not nil, it only releases a clock
// of that domain.
func (d *Device) dropClock(of *arena.Domain) error {
	d.events.number.Lock()
	defer d.events.number.Unlock()
	c := d.events.clock
	if c == nil || of != nil && c.d != of {
		return nil
	}
	err := d.withContext(func(s cudriver.Stream) error { return d.driver.StreamSynchronize(s) })
	d.events.clock = nil
	return errors.Join(err, c.releaseClock())
}

// finishBeforeLeave registers a function that runs before this process leaves the domain,
// unless it has done so already. The function finishes the device's work on memory that other
// processes share, and releases the clocks, because their pages are unmapped with the domain.
func (d *Device) finishBeforeLeave(domain *arena.Domain) error {
	if d.events.left.Swap(domain) == domain {
		return nil
	}
	return domain.AtClose(leaving{d, domain})
}

type leaving struct {
	*Device
	of *arena.Domain
}

func (l leaving) Close() error {
	r := l.ready.Load()
	if r == nil {
		return nil
	}
	return errors.Join(l.synchronize(r), l.dropClock(l.of),
		l.forgetClocks(func(k *foreignClock) bool { return k.d == l.of }))
}

// many is the number of foreign clocks above which a process releases those that it does not wait
// for.
const many = 64

// awaitSent makes the stream wait for memory that its sender has not written yet. It takes
// ownership of the reference to the clock's block, even if it returns an error.
func (d *Device) awaitSent(s *sent) error {
	r, err := d.readyState()
	if err != nil {
		return errors.Join(err, s.releaseBlock())
	}
	if came, _ := s.readClock(); came {
		return s.releaseBlock()
	}
	if d.pendingWaits() >= many {
		if err := d.synchronize(r); err != nil {
			return errors.Join(err, s.releaseBlock())
		}
	}
	k, err := d.clockOf(s)
	if err == nil {
		err = d.withReadyContext(r, func() error { return d.driver.StreamWaitValue32(r.stream, k.at, s.want) })
		if s.clock = k; err != nil {
			d.releaseClockUse(s)
		}
	}
	if err != nil && !isUnsupported(err) {
		return errors.Join(err, s.releaseBlock())
	}
	d.events.Lock()
	d.events.awaited = append(d.events.awaited, s)
	begin := !d.events.watched
	d.events.watched = true
	d.events.Unlock()
	if begin {
		go d.watchWaits()
	}
	if err != nil { // The stream cannot wait, so the host must.
		d.judgeWaits()
	}
	return nil
}

// clockOf returns the registered clock of s and increments its use count. The caller must call
// [Device.releaseClockUse] later.
func (d *Device) clockOf(s *sent) (*foreignClock, error) {
	d.events.clocks.Lock()
	defer d.events.clocks.Unlock()
	name := key{s.d, s.block}
	k := d.events.foreign[name]
	if k == nil {
		if err := s.d.Retain(s.block); err != nil {
			return nil, err
		}
		k = &foreignClock{clockPage: s.clockPage, life: s.life}
		var err error
		if k.registration, err = d.registerClock(s.clockPage); err != nil {
			return nil, errors.Join(err, k.releaseBlock())
		}
		if d.events.foreign == nil {
			d.events.foreign = map[key]*foreignClock{}
		}
		d.events.foreign[name] = k
	}
	k.uses++
	return k, nil
}

// releaseClockUse decrements the use count of the clock of s. It is a no-op if s has no clock. An
// unused clock stays registered until [Device.forgetClocks]. The caller must not hold
// d.events.clocks.
func (d *Device) releaseClockUse(s *sent) {
	d.events.clocks.Lock()
	defer d.events.clocks.Unlock()
	if s.clock != nil {
		s.clock.uses--
		s.clock = nil
	}
}

// forgetClocks releases those clocks of other processes that which selects and that the stream
// does not wait for. It calls which with d.events.clocks held; the caller must not hold that
// lock.
func (d *Device) forgetClocks(which func(k *foreignClock) bool) (err error) {
	d.events.clocks.Lock()
	defer d.events.clocks.Unlock()
	for name, k := range d.events.foreign {
		if k.uses == 0 && which(k) {
			delete(d.events.foreign, name)
			err = errors.Join(err, k.unlock(), k.releaseBlock())
		}
	}
	return err
}

// pendingWaits returns the number of waits, including completed ones that are not released yet.
func (d *Device) pendingWaits() int {
	d.events.Lock()
	defer d.events.Unlock()
	return len(d.events.awaited)
}

// takeLostError returns an error that wraps [ErrUnfinished] if work of this process may have
// used memory that was never written, and otherwise nil. It returns each such error only once.
func (d *Device) takeLostError() error {
	d.events.Lock()
	defer d.events.Unlock()
	err := d.events.lost
	d.events.lost = nil
	return err
}

// synchronize waits until the stream is idle; judging first ensures that it cannot wait
// forever. Then it releases the completed waits, and the clocks of processes that have ended.
// It does not return the error of lost memory, see [Device.takeLostError]. The caller must hold
// no lock of d.events.
func (d *Device) synchronize(r *ready) error {
	d.events.Lock()
	all := slices.Clone(d.events.awaited)
	d.events.Unlock()
	d.judgeWaits()
	if err := d.withReadyContext(r, func() error { return d.driver.StreamSynchronize(r.stream) }); err != nil {
		return err
	}
	if len(all) == 0 {
		return nil
	}
	var err error
	for _, s := range all {
		d.events.Lock()
		at := slices.Index(d.events.awaited, s)
		if at >= 0 {
			d.events.awaited = slices.Delete(d.events.awaited, at, at+1)
		}
		d.events.Unlock()
		if at >= 0 {
			d.releaseClockUse(s)
			err = errors.Join(err, s.releaseBlock())
		}
	}
	return errors.Join(err, d.forgetClocks(func(k *foreignClock) bool {
		return len(d.events.foreign) > many || k.d.Stale(k.life)
	}))
}
