package cuda

import (
	"encoding/binary"
	"errors"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/shoal-mp/shoal/cuda/internal/ptx"
	"github.com/shoal-mp/shoal/internal/cuda/cudriver"
)

// looks is a pool of words in pinned host memory to which kernels write results for the host.
// Each device has one.
type looks struct {
	sync.Mutex
	pages   []byte
	at      cudriver.Ptr
	free    []*look // not in use
	used    int     // number of slots assigned to a look
	refused bool    // the driver does not register the pages
}

// A look is a slot for a number and a flag that tells whether there is one, and an event that
// completes after the kernel that writes them.
type look struct {
	words *[2]atomic.Int64
	at    cudriver.Ptr
	event cudriver.Event
}

// reporting queues a kernel that writes its result to an address.
type reporting = func(to cudriver.Ptr) error

// lookSize is the size of a slot: a cache line, to avoid false sharing.
const lookSize = 64

// Outside implements [device.Computer]: it queues a search for an element of index that is not
// in [from, to), calls meanwhile, and waits for the search. If found is false, there is no such
// element. Errors are as for [engine.Map].
func (d engine) Outside(index tensorOperand, from, to int64, meanwhile func()) (v int64, found bool, err error) {
	index = withoutBroadcast(index)
	w, err := d.walkOver(index.Shape, index)
	if err != nil {
		return 0, false, err
	}
	return d.launchReporting(func(report cudriver.Ptr) error {
		return d.each(ptx.Outside(), w, uint64(from), uint64(to), uint64(report))
	}, meanwhile)
}

// launchReporting queues a kernel that may report a number: it writes the number to the address
// that it is passed, and then 1 in the next word. Then launchReporting calls meanwhile, which
// may queue more work, and waits for the kernel but not for that work. It returns the number;
// found is false if the kernel reported nothing.
func (d engine) launchReporting(kernel reporting, meanwhile func()) (v int64, found bool, err error) {
	r, err := d.readyState()
	if err != nil {
		return 0, false, err
	}
	l, err := d.takeSlot(r)
	switch {
	case err != nil:
		return 0, false, err
	case l == nil:
		return d.launchReportingOnDevice(kernel, meanwhile)
	}
	l.words[1].Store(0)
	launched := kernel(l.at) // a part of it may run, also after an error
	if err := d.withReadyContext(r, func() error { return d.driver.EventRecord(l.event, r.stream) }); err != nil {
		return 0, false, errors.Join(launched, err)
	}
	defer func() { // also if meanwhile panics
		// If the wait fails, the slot must not be reused, because the kernel may still write to it.
		waited := d.withReadyContext(r, func() error { return d.driver.EventSynchronize(l.event) })
		if waited == nil && launched == nil {
			v, found = l.words[0].Load(), l.words[1].Load() != 0
		}
		if waited == nil {
			r.looks.returnSlot(l)
		}
		err = errors.Join(launched, waited)
	}()
	if launched != nil {
		return 0, false, launched
	}
	meanwhile()
	return 0, false, nil
}

// launchReportingOnDevice is like [engine.launchReporting], but keeps the words in device memory,
// and waits until all queued work is done.
func (d engine) launchReportingOnDevice(kernel reporting, meanwhile func()) (v int64, found bool, err error) {
	m, err := d.Alloc(16)
	if err != nil {
		return 0, false, err
	}
	defer func() { err = errors.Join(err, m.End()) }()
	if err := m.Fill(0, 16, []byte{0}); err != nil {
		return 0, false, err
	}
	if err := kernel(m.(*memory).addressAt(0, 16)); err != nil {
		return 0, false, err
	}
	meanwhile()
	var words [16]byte
	err = m.Read(words[:], 0)
	return int64(binary.LittleEndian.Uint64(words[:])), words[8] != 0, err
}

// takeSlot takes a free slot from the pool. It returns nil and no error if there is none. The
// caller must return the slot by [looks.returnSlot].
func (d *Device) takeSlot(r *ready) (*look, error) {
	s := &r.looks
	s.Lock()
	defer s.Unlock()
	if n := len(s.free); n > 0 {
		l := s.free[n-1]
		s.free = s.free[:n-1]
		return l, nil
	}
	if s.pages == nil && !s.refused {
		if err := s.pinPages(d); err != nil {
			if !isUnsupported(err) {
				return nil, err
			}
			s.refused = true
		}
	}
	if s.refused || (s.used+1)*lookSize > len(s.pages) {
		return nil, nil
	}
	l := &look{at: s.at + cudriver.Ptr(s.used*lookSize),
		words: (*[2]atomic.Int64)(unsafe.Pointer(&s.pages[s.used*lookSize]))}
	err := d.withReadyContext(r, func() (err error) {
		l.event, err = d.driver.EventCreate(cudriver.EventDisableTiming)
		return err
	})
	if err != nil {
		return nil, err
	}
	s.used++
	return l, nil
}

// pinPages pins pages for the pool. The caller must hold s. Go allocates a slice of this size
// in pages of its own and does not move it. An error for which [isUnsupported] is true means
// that this driver cannot do it.
func (s *looks) pinPages(d *Device) error {
	pages := make([]byte, 1<<16)
	p, err := d.register(pages)
	if err != nil {
		return err
	}
	err = d.withContext(func(cudriver.Stream) (err error) {
		s.at, err = d.driver.MemHostGetDevicePointer(pages)
		return err
	})
	if err != nil {
		return errors.Join(err, p.unlock())
	}
	s.pages = pages
	return nil
}

// returnSlot returns a slot to the pool. The kernel that writes to it must have ended.
func (s *looks) returnSlot(l *look) {
	s.Lock()
	defer s.Unlock()
	s.free = append(s.free, l)
}

// destroyEvents destroys the events of the free slots, with the context of d current; the
// context destroys the others when it ends. [Close] has unpinned the pages before.
func (s *looks) destroyEvents(d *Device) (err error) {
	s.Lock()
	defer s.Unlock()
	for _, l := range s.free {
		err = errors.Join(err, d.driver.EventDestroy(l.event))
	}
	s.free, s.pages = nil, nil
	return err
}
