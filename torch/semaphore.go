package torch

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/shoal-mp/shoal/encoding/python"
	"github.com/shoal-mp/shoal/internal/pickle"
	"github.com/shoal-mp/shoal/internal/sys"
)

// Note [Semaphores] multiprocessing's locks are the C library's named semaphores: files in /dev/shm
// of 32 bytes. In 64-bit glibc from 2.21 on, the lower half of the first word is the value, and its
// upper half the number of sleepers. Sleepers wait on the lower half with futex(2). Only objects of
// the start methods spawn and forkserver have names.

const (
	semaphoreSize = 32
	sharedBetween = 0x80 // in the third word: shared between processes
	oneSleeper    = 1 << 32
	napAtMost     = 100 * time.Millisecond // after this time a sleeper checks its context
)

// A Semaphore is a Lock, RLock, Semaphore or BoundedSemaphore of multiprocessing. It is in memory
// that its processes share, or at a manager's server. Its methods may be called by several
// goroutines. In Go an RLock is a Lock, because a goroutine has no identity by which it could take
// the lock again. At a manager's server its owner is a [Proxy.Thread].
type Semaphore interface {
	// Acquire waits for a permit and takes it. The error is the cause of ctx's end.
	Acquire(ctx context.Context) error
	// TryAcquire takes a permit if there is one. The error is ErrLocked if there is none.
	TryAcquire() error
	// Release gives a permit back. The error wraps ErrProtocol if a semaphore has all its permits,
	// and is a *RemoteError if a manager's server refuses.
	Release() error
	// Permits returns how many permits are free. The number may have changed when Permits returns.
	// The objects of a SyncManager do not say it: the error is a *RemoteError.
	Permits() (int, error)
	// Close removes the name of a semaphore that this process has made: no other process can open
	// it after that. Processes that have opened it keep it, and this one can still use it. Close of
	// a manager's semaphore closes the proxy. Close is idempotent.
	Close() error
}

// A semaphore is in memory that processes share: see Note [Semaphores].
type semaphore struct {
	word  *atomic.Uint64
	class python.Global
	name  string // as sem_open knows it
	max   int64
	ours  bool // Close removes the name

	// releases tells the race detector, which does not see shared memory, about the order of
	// goroutines: the writes before a release come before the reads after an acquire.
	releases atomic.Int64
}

// These are multiprocessing's constants for semaphores.
var (
	lockClass      = named("multiprocessing.synchronize.Lock")
	rlockClass     = named("multiprocessing.synchronize.RLock")
	semaphoreClass = named("multiprocessing.synchronize.Semaphore")
	boundedClass   = named("multiprocessing.synchronize.BoundedSemaphore")
)

// maxPermits is SEM_VALUE_MAX.
const maxPermits = math.MaxInt32

// NewLock makes a Lock for processes of Python: pass it to Spawn. The caller closes it when those
// processes are at their end.
func NewLock() (Semaphore, error) { return shared(newSemaphore(lockClass, 1, 1)) }

// NewRLock makes an RLock for processes of Python: pass it to Spawn. The caller closes it when
// those processes are at their end.
func NewRLock() (Semaphore, error) { return shared(newSemaphore(rlockClass, 1, 1)) }

// NewSemaphore makes a Semaphore of n permits for processes of Python: pass it to Spawn. The caller
// closes it when those processes are at their end. It panics if n is not from 0 to 2^31-1.
func NewSemaphore(n int) (Semaphore, error) {
	return shared(newSemaphore(semaphoreClass, n, maxPermits))
}

// NewBoundedSemaphore makes a BoundedSemaphore of n permits for processes of Python, which cannot
// be released more often than it was acquired: pass it to Spawn. The caller closes it when those
// processes are at their end. It panics if n is not from 0 to 2^31-1.
func NewBoundedSemaphore(n int) (Semaphore, error) {
	return shared(newSemaphore(boundedClass, n, int64(n)))
}

// shared returns the semaphore as other processes see it.
func shared(s *semaphore, err error) (Semaphore, error) {
	if err != nil {
		return nil, err
	}
	return s, nil
}

// newSemaphore makes the file that sem_open would.
func newSemaphore(class python.Global, n int, most int64) (_ *semaphore, err error) {
	if n < 0 || n > maxPermits {
		panic(fmt.Sprintf("torch: no semaphore has the value %d", n))
	}
	sweepOnce()
	name, err := freshName()
	if err != nil {
		return nil, fmt.Errorf("new semaphore: %w", err)
	}
	image := make([]byte, semaphoreSize)
	binary.LittleEndian.PutUint64(image, uint64(n))
	binary.LittleEndian.PutUint32(image[8:], sharedBetween)
	path := semaphorePath(name)
	if err := os.WriteFile(path, image, 0o600); err != nil { // no other process knows the name yet
		return nil, fmt.Errorf("new semaphore: %w", errors.Join(err, ignoreMissing(os.Remove(path))))
	}
	s, err := openSemaphore(class, name, most)
	if err != nil {
		return nil, errors.Join(err, os.Remove(path))
	}
	s.ours = true
	return s, nil
}

func ignoreMissing(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

func semaphorePath(name string) string { return shmDir + "/" + semaphorePrefix + name[1:] }

func (s *semaphore) Close() error {
	if !s.ours {
		return nil
	}
	return ignoreMissing(os.Remove(semaphorePath(s.name)))
}

// openSemaphore maps the semaphore of a name. The mapping stays as long as the process, because
// Python makes few such objects.
func openSemaphore(class python.Global, name string, most int64) (*semaphore, error) {
	bare, ok := strings.CutPrefix(name, "/")
	if !ok || bare == "" || strings.ContainsAny(bare, "/\x00") {
		return nil, protocolError("%q is no name of a semaphore", name)
	}
	f, err := os.OpenFile(semaphorePath(name), os.O_RDWR, 0)
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
	return &semaphore{word: &sys.Words(mem)[0], class: class, name: name, max: most}, nil
}

func (s *semaphore) Acquire(ctx context.Context) error {
	if s.take() {
		return nil
	}
	s.word.Add(oneSleeper)
	for {
		v := s.word.Load()
		switch {
		case uint32(v) > 0:
			if s.word.CompareAndSwap(v, v-1-oneSleeper) {
				s.releases.Load()
				return nil
			}
		case ctx.Err() != nil:
			s.word.Add(^uint64(oneSleeper - 1))
			return context.Cause(ctx)
		default:
			nap := napAtMost
			if end, ok := ctx.Deadline(); ok {
				nap = min(nap, max(time.Until(end), 0)+time.Microsecond)
			}
			if err := sys.FutexWait(s.word, 0, nap); err != nil {
				return err
			}
		}
	}
}

func (s *semaphore) TryAcquire() error {
	if !s.take() {
		return ErrLocked
	}
	return nil
}

// take takes a permit if there is one, and reports whether there was.
func (s *semaphore) take() bool {
	for {
		v := s.word.Load()
		if uint32(v) == 0 {
			return false
		}
		if s.word.CompareAndSwap(v, v-1) {
			s.releases.Load()
			return true
		}
	}
}

func (s *semaphore) Release() error {
	s.releases.Add(1)
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

func (s *semaphore) Permits() (int, error) { return s.count(), nil }

// count is how many permits there are.
func (s *semaphore) count() int { return int(uint32(s.word.Load())) }

// semaphore reads the state (handle, kind, maximum, name).
func (i *importer) semaphore(o *pickle.Object) (any, error) {
	state, _ := o.State.(python.Tuple)
	if len(state) != 4 {
		return nil, protocolError("the state of %s has %d parts", o.Class, len(state))
	}
	most, ok := state[2].(int64)
	name, named := state[3].(string)
	if !ok || !named {
		return nil, unsupported("%s has no name: it must be made by a context of spawn or forkserver", o.Class)
	}
	return openSemaphore(o.Class, name, most)
}

// semaphore writes the state of a semaphore. Its handle is of no use in another process.
func (e *exporter) semaphore(s *semaphore) (any, error) {
	if s == nil {
		return nil, nil
	}
	kind := 1
	if s.class == rlockClass {
		kind = 0
	}
	return withState(s.class, python.Tuple{0, kind, s.max, s.name}), nil
}

// withState is an object of a class that has a state and no call.
func withState(class python.Global, state any) *pickle.Object {
	return &pickle.Object{Class: class, New: true, Args: python.Tuple{}, State: state, HasState: true}
}
