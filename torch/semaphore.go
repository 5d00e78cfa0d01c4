package torch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/shoal-mp/shoal/internal/pickle"
	"github.com/shoal-mp/shoal/internal/sys"
)

// Note [Semaphores]
// multiprocessing's locks are the C library's named semaphores: files in /dev/shm of 32 bytes. In glibc's, from 2.21 on and for 64
// bits, the first word has the value in its lower half and the number of those who sleep in its upper half, and they sleep on the
// lower half with futex(2). Names are known only of objects made under the start methods spawn and forkserver.

const (
	semaphoreSize = 32
	oneSleeper    = 1 << 32
	napAtMost     = 100 * time.Millisecond // after which a sleeper looks whether it was cancelled
)

// A Semaphore is a Lock, Semaphore or BoundedSemaphore of multiprocessing. Its methods may be called by several goroutines.
type Semaphore struct {
	word *atomic.Uint64
	max  int64
}

// openSemaphore maps the semaphore of a name. It stays mapped as long as the process: objects of Python's are few.
func openSemaphore(name string, most int64) (*Semaphore, error) {
	bare, ok := strings.CutPrefix(name, "/")
	if !ok || bare == "" || strings.ContainsAny(bare, "/\x00") {
		return nil, protocolError("%q is no name of a semaphore", name)
	}
	f, err := os.OpenFile(shmDir+"/sem."+bare, os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("open semaphore %s: %w", name, errors.Join(ErrGone, err))
	}
	defer f.Close()
	if _, size, err := sys.Identify(f); err != nil || size != semaphoreSize {
		return nil, unsupported("a semaphore of %d bytes is not of a glibc of 64 bits", size)
	}
	mem, err := sys.Map(f, semaphoreSize)
	if err != nil {
		return nil, err
	}
	return &Semaphore{&sys.Words(mem)[0], most}, nil
}

// Acquire takes one, and waits for it until ctx is done.
func (s *Semaphore) Acquire(ctx context.Context) error {
	if s.TryAcquire() {
		return nil
	}
	s.word.Add(oneSleeper)
	for {
		v := s.word.Load()
		switch {
		case uint32(v) > 0:
			if s.word.CompareAndSwap(v, v-1-oneSleeper) {
				return nil
			}
		case ctx.Err() != nil:
			s.word.Add(^uint64(oneSleeper - 1))
			return context.Cause(ctx)
		default:
			if err := sys.FutexWait(s.word, 0, napAtMost); err != nil {
				return err
			}
		}
	}
}

// TryAcquire takes one if there is one.
func (s *Semaphore) TryAcquire() bool {
	for {
		v := s.word.Load()
		if uint32(v) == 0 {
			return false
		}
		if s.word.CompareAndSwap(v, v-1) {
			return true
		}
	}
}

// Release gives one back. The error wraps ErrProtocol where that would be more than there may be.
func (s *Semaphore) Release() error {
	for {
		v := s.word.Load()
		if int64(uint32(v)) >= s.max {
			return protocolError("a semaphore of %d is released too often", s.max)
		}
		if !s.word.CompareAndSwap(v, v+1) {
			continue
		}
		if v >= oneSleeper {
			return sys.FutexWake(s.word)
		}
		return nil
	}
}

// Value returns how many there are at the moment.
func (s *Semaphore) Value() int { return int(uint32(s.word.Load())) }

// semaphore reads the state (handle, kind, maximum, name).
func (i *importer) semaphore(o *pickle.Object) (any, error) {
	state, _ := o.State.(Tuple)
	if len(state) != 4 {
		return nil, protocolError("the state of %s has %d parts", o.Class, len(state))
	}
	kind, _ := state[1].(int64)
	most, ok := state[2].(int64)
	name, named := state[3].(string)
	switch {
	case kind == 0:
		return nil, unsupported("an RLock: its owner is a thread of Python")
	case !ok || !named:
		return nil, unsupported("%s has no name: it must be made by a context of spawn or forkserver", o.Class)
	}
	return openSemaphore(name, most)
}

// An Event is multiprocessing's.
type Event struct{ flag *Semaphore }

// IsSet reports whether the event is set.
func (e *Event) IsSet() bool { return e.flag.Value() != 0 }

// event reads the state {'_cond': …, '_flag': Semaphore}.
func (i *importer) event(o *pickle.Object) (any, error) {
	state, _ := o.State.(*Dict)
	flag, _ := state.Get("_flag")
	s, ok := flag.(*pickle.Object)
	if !ok {
		return nil, protocolError("the flag of an Event is %T", flag)
	}
	v, err := i.semaphore(s)
	if err != nil {
		return nil, err
	}
	return &Event{v.(*Semaphore)}, nil
}
