package cuda

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/shoal-mp/shoal/internal/cuda/cudriver"
	"github.com/shoal-mp/shoal/internal/shm"
)

// Note [An event that travels] A sender does not wait until its device has written the memory that
// it sends. Its stream writes the next number to a word of shared memory, the clock of its process,
// behind that work. The message says which number of which clock. The receiver's stream waits for
// the number before it does anything else. The clock is a page of its own, a block of the domain
// that message and receiver hold, so it is there as long as a process waits, whichever process has
// died. Each process registers the page with its driver, which gives it an address on every device.
//
// CUDA has events for several processes. CUDA says nowhere what becomes of an event whose process
// has died, and a stream that waits for it may wait for ever. The host can end the wait for a word
// of its own: it reads the word and changes it by an atomic operation, without the driver. A word
// of the device's will not do, since only streams read and write it. Streams share a few queues of
// the hardware, or one (CUDA_DEVICE_MAX_CONNECTIONS), so the stream that is to end a wait may stand
// behind it.
//
// The life of a process is a block that no other process holds. The first process that sees that
// another one has ended adds abandoned to the other one's clock. That mark ends every wait for the
// clock, and tells all receivers how far the device had come. They mark the clock again as long as
// a stream of theirs may have to come to it: see events.mark.
//
// A process that ends by itself waits for its device first. The receivers of one that was killed
// get ErrUnfinished, unless its device was quicker.
//
// Where the driver refuses to register the page, or has no such numbers, the host waits: the
// sender's before it sends, or the receiver's before it returns the memory.

// abandoned is added to a clock whose process has ended. A clock is replaced before it has come
// that far.
const abandoned = 1 << 30

// A clockPage is a clock as a process sees it.
type clockPage struct {
	d      *shm.Domain
	block  shm.Handle
	pages  []byte
	number *atomic.Uint32
}

// clockPageOf returns the clock that is a block, which this process holds.
func clockPageOf(d *shm.Domain, block shm.Handle) (w clockPage, err error) {
	w = clockPage{d: d, block: block}
	if w.pages, err = d.Bytes(block); err != nil {
		return w, err
	}
	if !pageable(w.pages) {
		return w, fmt.Errorf("%w: a clock of %d bytes", ErrRange, len(w.pages))
	}
	w.number = (*atomic.Uint32)(unsafe.Pointer(unsafe.SliceData(w.pages)))
	return w, nil
}

// giveBack releases the block.
func (w clockPage) giveBack() error { return released(w.d, w.block) }

// released releases a block of a domain, unless that was left.
func released(d *shm.Domain, h shm.Handle) error {
	if err := d.Release(h); !errors.Is(err, shm.ErrClosed) {
		return err
	}
	return nil
}

// A clock is how far a device has come with the work of this process.
type clock struct {
	clockPage
	*registration
	life shm.Handle // a block that is stale when this process has ended
	now  uint32     // the number that was given out last
}

// A registration is where streams find a clock.
type registration struct {
	*pin
	at cudriver.Ptr
}

// A sent is what memory that arrived waits for.
type sent struct {
	clockPage
	life   shm.Handle
	want   uint32
	of     *memory
	uses   int64 // of its fate when it arrived
	clock  *foreignClock
	judged atomic.Bool
	lost   atomic.Bool // judged so that the number will not come
}

// A foreignClock is another process's. It stays registered until that has ended, or there are many.
type foreignClock struct {
	clockPage
	*registration
	life shm.Handle
	uses int // by what is awaited
}

// events are the sending and the receiving side of a device. A goroutine that watches needs the
// first two locks, so they are held for no call of the driver; see Note [Calls that wait].
type events struct {
	sync.Mutex
	look    sync.Mutex // held by the goroutine that judges; see judgeOne
	number  sync.Mutex // of the clock
	clock   *clock
	left    atomic.Pointer[shm.Domain] // the one that is left only when the device has finished
	waits   atomic.Bool                // the driver has no numbers for streams: who sends waits
	awaited []*sent                    // by the stream
	watched bool                       // somebody watches; see Device.watch
	lost    error                      // of used memory, not yet told

	clocks  sync.Mutex // of foreign
	foreign map[key]*foreignClock
}

// refused reports whether an error is that of a driver that has no numbers for streams, or does not
// register shared memory; or that another library of this process has registered the page.
func refused(err error) bool {
	for _, r := range []cudriver.Result{cudriver.ErrorNotSupported, cudriver.ErrorNotPermitted,
		cudriver.ErrorInvalidValue, cudriver.ErrorOutOfMemory, cudriver.ErrorOperatingSystem,
		cudriver.ErrorHostMemoryAlreadyRegistered} {
		if errors.Is(err, r) {
			return true
		}
	}
	return false
}

// tick returns the clock and the number that the stream writes there behind the work that it has
// now; no clock where it has none. What this process itself was promised has come by then, or the
// error says that it has not.
func (d *Device) tick(domain *shm.Domain) (*clock, uint32, error) {
	r, err := d.use()
	if err != nil {
		return nil, 0, err
	}
	d.judge()
	if err := d.tell(); err != nil {
		return nil, 0, err
	}
	idle := d.within(r, func() error { return d.driver.StreamQuery(r.stream) })
	if !errors.Is(idle, cudriver.ErrorNotReady) {
		return nil, 0, idle
	}
	if !d.events.waits.Load() {
		c, n, err := d.next(r, domain)
		if err == nil || !refused(err) && !errors.Is(err, shm.ErrNoSpace) {
			return c, n, err
		}
		d.events.waits.Store(!errors.Is(err, shm.ErrNoSpace))
	}
	return nil, 0, d.within(r, func() error { return d.driver.StreamSynchronize(r.stream) })
}

// next lets the stream write the clock's next number.
func (d *Device) next(r *ready, domain *shm.Domain) (c *clock, n uint32, err error) {
	d.events.number.Lock()
	defer d.events.number.Unlock()
	if c = d.events.clock; c == nil || c.d != domain || c.now >= abandoned-1 {
		// the clock of before stays, with its life: a process may wait for it
		if c, err = d.newClock(domain); err != nil {
			return nil, 0, err
		}
		d.events.clock = c
	}
	c.now++
	err = d.within(r, func() error { return d.driver.StreamWriteValue32(r.stream, c.at, c.now) })
	return c, c.now, err
}

// newClock returns one that is at 0.
func (d *Device) newClock(domain *shm.Domain) (*clock, error) {
	block, err := domain.Alloc(os.Getpagesize())
	if err != nil {
		return nil, err
	}
	c := new(clock)
	if c.clockPage, err = clockPageOf(domain, block); err == nil {
		c.number.Store(0) // its page holds what the last block had there
		c.registration, err = d.registerClock(c.clockPage)
	}
	if err == nil {
		if c.life, err = domain.Alloc(0); err != nil {
			err = errors.Join(err, c.unlock())
		}
	}
	if err != nil {
		return nil, errors.Join(err, released(domain, block))
	}
	return c, nil
}

// registerClock registers a clock's page and returns its address on the device.
func (d *Device) registerClock(w clockPage) (*registration, error) {
	p, err := d.register(w.pages)
	if err != nil {
		return nil, err
	}
	s := &registration{pin: p}
	err = d.do(func(cudriver.Stream) (err error) {
		s.at, err = d.driver.MemHostGetDevicePointer(p.pages)
		return err
	})
	if err != nil {
		return nil, errors.Join(err, p.unlock())
	}
	return s, nil
}

// drop gives back a clock that nobody waits for.
func (c *clock) drop() error {
	return errors.Join(released(c.d, c.life), c.unlock(), c.giveBack())
}

// dropClock gives the clock back when the stream has written all its numbers: from then on nobody
// asks whether this process lives. A clock of another domain than of stays, unless of is nil.
func (d *Device) dropClock(of *shm.Domain) error {
	d.events.number.Lock()
	defer d.events.number.Unlock()
	c := d.events.clock
	if c == nil || of != nil && c.d != of {
		return nil
	}
	err := d.do(func(s cudriver.Stream) error { return d.driver.StreamSynchronize(s) })
	d.events.clock = nil
	return errors.Join(err, c.drop())
}

// leaveLate has this process, before it leaves the domain, finish what it does to memory that other
// processes have, and give up its clocks, whose pages go with the domain.
func (d *Device) leaveLate(domain *shm.Domain) error {
	if d.events.left.Swap(domain) == domain {
		return nil
	}
	return domain.AtClose(leaving{d, domain})
}

type leaving struct {
	*Device
	of *shm.Domain
}

func (l leaving) Close() error {
	r := l.ready.Load()
	if r == nil {
		return nil
	}
	return errors.Join(l.finish(r), l.dropClock(l.of),
		l.forgetClocks(func(k *foreignClock) bool { return k.d == l.of }))
}

// many is how many clocks of other processes a process keeps before it lets go of those that it
// does not wait for.
const many = 64

// await lets the stream wait for what a sender has not done yet. It has taken over the clock's
// block, also on an error.
func (d *Device) await(s *sent) error {
	r, err := d.use()
	if err != nil {
		return errors.Join(err, s.giveBack())
	}
	if came, _ := s.look(); came {
		return s.giveBack()
	}
	if d.awaits() >= many {
		if err := d.finish(r); err != nil {
			return errors.Join(err, s.giveBack())
		}
	}
	k, err := d.clockOf(s)
	if err == nil {
		err = d.within(r, func() error { return d.driver.StreamWaitValue32(r.stream, k.at, s.want) })
		if s.clock = k; err != nil {
			d.unuse(s)
		}
	}
	if err != nil && !refused(err) {
		return errors.Join(err, s.giveBack())
	}
	d.events.Lock()
	d.events.awaited = append(d.events.awaited, s)
	begin := !d.events.watched
	d.events.watched = true
	d.events.Unlock()
	if begin {
		go d.watch()
	}
	if err != nil { // the host waits, where the stream cannot
		d.judge()
	}
	return nil
}

// clockOf returns the clock, registered, with one more use.
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
			return nil, errors.Join(err, k.giveBack())
		}
		if d.events.foreign == nil {
			d.events.foreign = map[key]*foreignClock{}
		}
		d.events.foreign[name] = k
	}
	k.uses++
	return k, nil
}

// unuse takes back the use of a sent's clock.
func (d *Device) unuse(s *sent) {
	d.events.clocks.Lock()
	defer d.events.clocks.Unlock()
	if s.clock != nil {
		s.clock.uses--
		s.clock = nil
	}
}

// forgetClocks gives back other processes' clocks that the stream does not wait for.
func (d *Device) forgetClocks(which func(k *foreignClock) bool) (err error) {
	d.events.clocks.Lock()
	defer d.events.clocks.Unlock()
	for name, k := range d.events.foreign {
		if k.uses == 0 && which(k) {
			delete(d.events.foreign, name)
			err = errors.Join(err, k.unlock(), k.giveBack())
		}
	}
	return err
}

// awaits returns how many sent things the stream waits for, or has waited for.
func (d *Device) awaits() int {
	d.events.Lock()
	defer d.events.Unlock()
	return len(d.events.awaited)
}

// tell returns, once, that something was lost which this process may have used.
func (d *Device) tell() error {
	d.events.Lock()
	defer d.events.Unlock()
	err := d.events.lost
	d.events.lost = nil
	return err
}

// finish waits for the stream, which cannot wait for ever, and lets go of what it has waited for,
// and of the clocks of processes that have ended.
func (d *Device) finish(r *ready) error {
	d.events.Lock()
	all := slices.Clone(d.events.awaited)
	d.events.Unlock()
	d.judge()
	if err := d.within(r, func() error { return d.driver.StreamSynchronize(r.stream) }); err != nil {
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
			d.unuse(s)
			err = errors.Join(err, s.giveBack())
		}
	}
	return errors.Join(err, d.forgetClocks(func(k *foreignClock) bool {
		return len(d.events.foreign) > many || k.d.Stale(k.life)
	}))
}
