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

// Note [Semaphores] The locks of multiprocessing are named POSIX semaphores. glibc implements such
// a semaphore as a file of 32 bytes in /dev/shm. On 64-bit platforms since glibc 2.21, the lower
// half of the first word is the value and the upper half is the number of sleepers, which wait on
// the lower half with futex(2):
// https://github.com/bminor/glibc/blob/glibc-2.40/nptl/sem_waitcommon.c. Python gives a name only
// to objects of the start methods spawn and forkserver.

const (
	semaphoreSize = 32
	sharedBetween = 0x80 // the third word: shared between processes
	oneSleeper    = 1 << 32
	napAtMost     = 100 * time.Millisecond // interval at which a sleeper checks its context
)

// A Semaphore is a Lock, RLock, Semaphore or BoundedSemaphore of multiprocessing: in memory that
// its processes share, or in a manager's server. Its methods may be called from several goroutines.
// In Go an RLock is not reentrant, because a goroutine has no identity; in a manager's server the
// owner of an RLock is a [Proxy.Thread].
type Semaphore interface {
	// Acquire blocks until a permit is available, and takes it. If ctx is done first, it returns
	// [context.Cause].
	Acquire(ctx context.Context) error
	// TryAcquire takes a permit if one is available, and otherwise returns [ErrLocked].
	TryAcquire() error
	// Release returns a permit. The error wraps [ErrProtocol] if the semaphore has its maximum of
	// permits already, and is a *[RemoteError] if a manager's server refuses.
	Release() error
	// Permits returns the number of available permits, which may change at any time. For the
	// objects of a SyncManager, which do not support it, the error is a *[RemoteError].
	Permits() (int, error)
	// Close removes the name of a semaphore that this process created, so that no further process
	// can open it. Processes that have opened it, including this one, may continue to use it. For a
	// manager's semaphore it closes the proxy. Close is idempotent.
	Close() error
}

// A semaphore is a semaphore in memory that processes share: see Note [Semaphores]. newSemaphore
// creates one, and openSemaphore opens one of another process. It implements [Semaphore].
type semaphore struct {
	word  *atomic.Uint64
	class python.Global
	name  string // as passed to sem_open
	max   int64
	ours  bool // this process created it, so Close removes the name

	// releases orders memory accesses for the race detector, which cannot see synchronization
	// through shared memory: writes before a release happen before reads after an acquire.
	releases atomic.Int64
}

// These are the classes of semaphores in multiprocessing.
var (
	lockClass      = named("multiprocessing.synchronize.Lock")
	rlockClass     = named("multiprocessing.synchronize.RLock")
	semaphoreClass = named("multiprocessing.synchronize.Semaphore")
	boundedClass   = named("multiprocessing.synchronize.BoundedSemaphore")
)

// maxPermits is SEM_VALUE_MAX.
const maxPermits = math.MaxInt32

// NewLock creates a Lock to be passed to [Spawn]. The caller must close it after the processes that
// use it have ended.
func NewLock() (Semaphore, error) { return asSemaphore(newSemaphore(lockClass, 1, 1)) }

// NewRLock creates an RLock to be passed to [Spawn]. The caller must close it after the processes
// that use it have ended.
func NewRLock() (Semaphore, error) { return asSemaphore(newSemaphore(rlockClass, 1, 1)) }

// NewSemaphore creates a Semaphore with n permits to be passed to [Spawn]. It panics if n is not in
// the range from 0 to 2^31-1. The caller must close it after the processes that use it have ended.
func NewSemaphore(n int) (Semaphore, error) {
	return asSemaphore(newSemaphore(semaphoreClass, n, maxPermits))
}

// NewBoundedSemaphore creates a BoundedSemaphore with n permits to be passed to [Spawn]. It must
// not be released more often than it is acquired. NewBoundedSemaphore panics if n is not in the
// range from 0 to 2^31-1. The caller must close the semaphore after the processes that use it have
// ended.
func NewBoundedSemaphore(n int) (Semaphore, error) {
	return asSemaphore(newSemaphore(boundedClass, n, int64(n)))
}

// asSemaphore converts the results of newSemaphore, so that the interface is nil on an error.
func asSemaphore(s *semaphore, err error) (Semaphore, error) {
	if err != nil {
		return nil, err
	}
	return s, nil
}

// newSemaphore creates the file that sem_open would create, with n permits and a maximum of
// most, and maps it. The caller must close the semaphore. newSemaphore panics if n is not in the
// range from 0 to maxPermits.
func newSemaphore(class python.Global, n int, most int64) (_ *semaphore, err error) {
	if n < 0 || n > maxPermits {
		panic(fmt.Sprintf("torch: new semaphore: value %d is out of range", n))
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

// openSemaphore maps the semaphore with the given name, as passed to sem_open. The mapping stays
// until the process ends, because Python programs create few semaphores. The error wraps
// [ErrGone] if the semaphore does not exist, [ErrProtocol] if the name is invalid, and
// [ErrUnsupported] if the file has another size than with a 64-bit glibc.
func openSemaphore(class python.Global, name string, most int64) (*semaphore, error) {
	bare, ok := strings.CutPrefix(name, "/")
	if !ok || bare == "" || strings.ContainsAny(bare, "/\x00") {
		return nil, protocolError("invalid semaphore name %q", name)
	}
	f, err := os.OpenFile(semaphorePath(name), os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("open semaphore %s: %w", name, errors.Join(ErrGone, err))
	}
	defer f.Close()
	if _, size, err := sys.Identify(f); err != nil || size != semaphoreSize {
		return nil, unsupported("semaphore has %d bytes, want that of a 64-bit glibc", size)
	}
	mem, err := sys.Map(f, semaphoreSize)
	if err != nil {
		return nil, err
	}
	return &semaphore{word: &sys.Words(mem)[0], class: class, name: name, max: most}, nil
}

func (s *semaphore) Acquire(ctx context.Context) error {
	if s.tryAcquire() {
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
	if !s.tryAcquire() {
		return ErrLocked
	}
	return nil
}

// tryAcquire takes a permit if one is available, and reports whether it did.
func (s *semaphore) tryAcquire() bool {
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
			return protocolError("semaphore released too often, its maximum is %d", s.max)
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

func (s *semaphore) Permits() (int, error) { return s.permitCount(), nil }

// permitCount returns the number of available permits.
func (s *semaphore) permitCount() int { return int(uint32(s.word.Load())) }

// decodeSemaphore decodes the state (handle, kind, maximum, name) to a *semaphore. The error
// wraps [ErrUnsupported] if it has no name, as under the start method fork.
func (i *importer) decodeSemaphore(o *pickle.Object) (any, error) {
	state, _ := o.State.(python.Tuple)
	if len(state) != 4 {
		return nil, protocolError("state of %s has %d parts, want 4", o.Class, len(state))
	}
	most, ok := state[2].(int64)
	name, named := state[3].(string)
	if !ok || !named {
		return nil, unsupported("%s has no name: create it with a spawn or forkserver context", o.Class)
	}
	return openSemaphore(o.Class, name, most)
}

// encodeSemaphore encodes the state of s, or None if s is nil. The handle is 0, because it has
// no meaning in another process.
func (e *exporter) encodeSemaphore(s *semaphore) (any, error) {
	if s == nil {
		return nil, nil
	}
	kind := 1
	if s.class == rlockClass {
		kind = 0
	}
	return newInstance(s.class, python.Tuple{0, kind, s.max, s.name}), nil
}

// newInstance returns the encoding of an instance of a Python class. The instance is created
// without a call of __init__ and gets the given state.
func newInstance(class python.Global, state any) *pickle.Object {
	return &pickle.Object{Class: class, New: true, Args: python.Tuple{}, State: state, HasState: true}
}
