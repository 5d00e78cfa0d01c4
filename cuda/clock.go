package cuda

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/shoal-mp/shoal/internal/cudriver"
	"github.com/shoal-mp/shoal/internal/shm"
)

// Note [An event that travels] Who sends memory does not wait until its device has written it.
// Behind that work its stream writes the next number to a word of the device's memory, its clock,
// and the message says which number of which clock; the receiver's stream waits for it before
// anything else. The clock is an allocation like others: message and receiver hold its block, so it
// is there as long as somebody waits, whichever process has died.
//
// CUDA has events for several processes. What becomes of one whose process has died is said
// nowhere, and it may be that a stream which waits for it waits for ever. With a word somebody can
// help. A process that may not use a stream's wait on the host before it has judged all that the
// stream waits for: the number has come, or the sender, whose life is a block that it alone holds,
// has ended. Then the process that sees it first adds abandoned to the word: every wait ends, and
// everybody can tell what had been done from what had not.
//
// An orderly end waits for the device. The receivers of one that was killed get ErrUnfinished,
// unless its device was quicker.

// abandoned is added to a clock whose process has ended. A clock is replaced before it has come
// that far.
const abandoned = 1 << 30

// A clock is how far a device has come with the work of this process.
type clock struct {
	*memory
	life shm.Handle // a block that is stale when this process has ended
	now  uint32     // the number that was given out last
}

// A sent is what memory that arrived waits for.
type sent struct {
	clock  *memory
	life   shm.Handle
	number uint32
	of     *memory
	uses   int64 // of its fate when it arrived
	judged atomic.Bool
}

// events are the sending and the receiving side of a device.
type events struct {
	sync.Mutex
	gate    sync.Mutex // of what the stream waits for; see Note [Calls that wait]
	look    sync.Mutex // of who judges; see judgeOne
	clock   *clock
	queued  atomic.Uint64              // pieces of work
	left    atomic.Pointer[shm.Domain] // the one that is left only when the device has finished
	waits   atomic.Bool                // the driver has no numbers for streams: who sends waits
	awaited []*sent                    // by the stream
	lost    error                      // of used memory, not yet told
}

// tick returns a number that the stream reaches when it has done what it has now; nil where there
// is nothing to wait for. What this process itself was promised has come, or it says that it has
// not.
func (d *Device) tick(domain *shm.Domain) (*clock, uint32, error) {
	r, err := d.use()
	if err != nil {
		return nil, 0, err
	}
	if err := errors.Join(d.judge(r), d.tell()); err != nil {
		return nil, 0, err
	}
	for {
		if err := d.haveClock(domain); err != nil {
			return nil, 0, err
		}
		if idle := d.do(func(s cudriver.Stream) error { return d.driver.StreamQuery(s) }); !errors.Is(idle,
			cudriver.ErrorNotReady) {
			return nil, 0, idle
		}
		if c, n, err := d.next(domain); c != nil || err != nil {
			return c, n, err
		} else if d.events.waits.Load() {
			return nil, 0, d.do(func(s cudriver.Stream) error { return d.driver.StreamSynchronize(s) })
		}
	}
}

// next lets the stream write the clock's next number. It returns nil where the clock has gone
// meanwhile, or the driver has no such numbers.
func (d *Device) next(domain *shm.Domain) (c *clock, n uint32, err error) {
	d.events.Lock()
	defer d.events.Unlock()
	if c = d.events.clock; !c.goesOn(domain) || d.events.waits.Load() {
		return nil, 0, nil
	}
	c.now++
	err = d.do(func(s cudriver.Stream) error { return d.driver.StreamWriteValue32(s, c.at(0, 4), c.now) })
	if errors.Is(err, ErrorNotSupported) {
		d.events.waits.Store(true)
		return nil, 0, nil
	}
	return c, c.now, err
}

// goesOn reports whether a clock of a domain has more numbers.
func (c *clock) goesOn(domain *shm.Domain) bool {
	return c != nil && c.d == domain && c.now < abandoned-1
}

// haveClock makes a clock where there is none. One that was there stays with its life: somebody may
// wait for it. No lock is held, since a device that is full gives back the clock that it has.
func (d *Device) haveClock(domain *shm.Domain) error {
	d.events.Lock()
	had := d.events.clock
	there := had.goesOn(domain)
	d.events.Unlock()
	if there {
		return nil
	}
	c, err := d.newClock(domain)
	if err != nil {
		return err
	}
	d.events.Lock()
	first := d.events.clock == had
	if first {
		d.events.clock = c
	}
	d.events.Unlock()
	if !first { // another goroutine's
		return c.drop()
	}
	return nil
}

// newClock returns one that is at 0. It waits for the device: an earlier look might find what was
// in the memory last.
func (d *Device) newClock(domain *shm.Domain) (c *clock, err error) {
	c = new(clock)
	if c.memory, err = d.alloc(domain, 4); err != nil {
		return nil, err
	}
	if c.life, err = domain.Alloc(0); err != nil {
		return nil, errors.Join(err, c.giveBack())
	}
	if err = c.Write(0, make([]byte, 4)); err != nil {
		return nil, errors.Join(err, c.drop())
	}
	return c, nil
}

// drop gives back a clock that nobody waits for.
func (c *clock) drop() error {
	err := c.d.Release(c.life)
	if errors.Is(err, shm.ErrClosed) {
		err = nil
	}
	return errors.Join(err, c.giveBack())
}

// dropClock gives the clock back if the stream has written all its numbers: then nobody asks
// whether this process lives.
func (d *Device) dropClock() error {
	d.events.Lock()
	defer d.events.Unlock()
	c := d.events.clock
	if c == nil || d.do(func(s cudriver.Stream) error { return d.driver.StreamQuery(s) }) != nil {
		return nil
	}
	d.events.clock = nil
	return c.drop()
}

// leaveLate has this process finish what it does to memory that others have as well before it
// leaves the domain.
func (d *Device) leaveLate(domain *shm.Domain) error {
	if d.events.left.Swap(domain) == domain {
		return nil
	}
	return domain.AtClose(leaving{d})
}

type leaving struct{ *Device }

func (l leaving) Close() error {
	r := l.ready.Load()
	if r == nil {
		return nil
	}
	return l.finish(r)
}

// many is from how many clocks on a process lets go of those that it has before it takes another
// one.
const many = 64

// await lets the stream wait for what a sender has not done yet.
func (d *Device) await(s *sent) error {
	if r, err := d.use(); err != nil {
		return err
	} else if d.awaits() >= many {
		if err := d.finish(r); err != nil {
			return err
		}
	}
	d.events.gate.Lock()
	defer d.events.gate.Unlock()
	d.events.Lock()
	defer d.events.Unlock()
	err := d.do(func(stream cudriver.Stream) error {
		return d.driver.StreamWaitValue32(stream, s.clock.at(0, 4), s.number)
	})
	if err == nil {
		d.events.awaited = append(d.events.awaited, s)
	}
	return err
}

// awaits returns for how much that was sent the stream waits, or has waited.
func (d *Device) awaits() int {
	d.events.Lock()
	defer d.events.Unlock()
	return len(d.events.awaited)
}

// tell returns, once, that something was lost which work of this process may have used.
func (d *Device) tell() error {
	d.events.Lock()
	defer d.events.Unlock()
	err := d.events.lost
	d.events.lost = nil
	return err
}

// finish waits for the stream, which cannot wait for ever, and lets go of the clocks that it has
// waited for.
func (d *Device) finish(r *ready) error {
	d.events.Lock()
	all := slices.Clone(d.events.awaited)
	d.events.Unlock()
	err := d.judge(r)
	if err == nil {
		err = d.within(r, func() error { return d.driver.StreamSynchronize(r.stream) })
	}
	if err != nil {
		return err
	}
	for _, s := range all {
		d.events.Lock()
		at := slices.Index(d.events.awaited, s)
		if at >= 0 {
			d.events.awaited = slices.Delete(d.events.awaited, at, at+1)
		}
		d.events.Unlock()
		if at >= 0 {
			err = errors.Join(err, s.clock.giveBack())
		}
	}
	return err
}
