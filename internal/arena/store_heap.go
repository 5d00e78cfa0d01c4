package arena

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/shoal-mp/shoal/internal/arena/layout"
	"github.com/shoal-mp/shoal/internal/arena/park"
	"github.com/shoal-mp/shoal/internal/arena/word"
)

// heap is a store inside one process, on the Go heap. There the race detector, which cannot observe
// mapped memory, checks the protocol. The participants are Domain values. A participant dies when
// kill is called. Unlike a killed process it leaves its goroutines behind, so it must be idle at
// that time.
//
// A heap must provide the guarantees that the protocol relies on: a proof of life ends together
// with its holder, punched memory is zero, and a wakeup while no goroutine is in Wait is kept for
// the next Wait.
type heap struct {
	mu       sync.Mutex
	ctl, mem []byte
	living   [word.MaxParticipants]chan struct{} // closed at death
	bells    map[uint64]*heapBell
	backed   map[uint64]bool // pages
	room     atomic.Int64
}

func newHeap(dataSize, blocks int) *heap {
	s := &heap{
		ctl:    alignedBytes(layout.OffBlocks + blocks*layout.BlockSize),
		mem:    alignedBytes(dataSize),
		bells:  make(map[uint64]*heapBell),
		backed: make(map[uint64]bool),
	}
	s.room.Store(1 << 40)
	return s
}

// alignedBytes returns n bytes at a page boundary.
func alignedBytes(n int) []byte {
	b := make([]byte, n+layout.PageSize)
	off := int(-uintptr(unsafe.Pointer(&b[0])) & (layout.PageSize - 1))
	return b[off : off+n]
}

func (s *heap) control() []byte { return s.ctl }
func (s *heap) data() []byte    { return s.mem }
func (s *heap) commitControl(off, n uint64) error {
	if off+n > uint64(len(s.ctl)) {
		return fmt.Errorf("%w: heap domain has %d bytes of control segment", ErrTooLarge, len(s.ctl))
	}
	return nil
}
func (s *heap) headroom() int64 { return s.room.Load() }
func (s *heap) close() error    { return nil }

func (s *heap) commitData(off, n uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for p := off / layout.PageSize; p < (off+n)/layout.PageSize; p++ {
		s.backed[p] = true
	}
	return nil
}

// punchData gives pages back. Punched pages must read as zeroes, as in a memfd: a ring that grows
// into them is empty there.
func (s *heap) punchData(off, n uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for p := off / layout.PageSize; p < (off+n)/layout.PageSize; p++ {
		if s.backed[p] {
			clear(s.mem[p*layout.PageSize : (p+1)*layout.PageSize])
			delete(s.backed, p)
		}
	}
	return nil
}

func (s *heap) lockSeat(seat int) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.living[seat] != nil {
		return false, nil
	}
	s.living[seat] = make(chan struct{})
	return true, nil
}

func (s *heap) unlockSeat(seat int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.living[seat]; c != nil {
		close(c)
		s.living[seat] = nil
	}
	return nil
}

func (s *heap) isAlive(seat int) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.living[seat] != nil, nil
}

func (s *heap) awaitDeath(ctx context.Context, _, seat int) error {
	s.mu.Lock()
	c := s.living[seat]
	s.mu.Unlock()
	if c == nil {
		return nil
	}
	select {
	case <-c:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *heap) openBell() (bell, uint64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := &heapBell{woken: make(chan park.Topic, heapTopics), closed: make(chan struct{})}
	name := uint64(len(s.bells)) + 1
	s.bells[name] = b
	return b, name, nil
}

func (s *heap) RingBell(_ int, name uint64, t park.Topic) (full bool) {
	s.mu.Lock()
	b := s.bells[name]
	s.mu.Unlock()
	if b == nil {
		return false
	}
	select {
	case b.woken <- t:
		return false
	default:
		return true
	}
}

// heapTopics is the number of wakeups that may be pending at a bell within one process. It is
// small, so that tests also reach the case of a full bell.
const heapTopics = 2

type heapBell struct {
	woken  chan park.Topic
	closed chan struct{}
	once   sync.Once
}

func (b *heapBell) Wait() ([]park.Topic, error) {
	select {
	case t := <-b.woken:
		return []park.Topic{t}, nil
	case <-b.closed:
		return nil, os.ErrClosed
	}
}

func (b *heapBell) Close() error {
	b.once.Do(func() { close(b.closed) })
	return nil
}
