package ipc

import (
	"context"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/codec"
)

// A Semaphore is a counting semaphore for goroutines in any processes of the domain. The permits of
// a process that dies are returned.
//
// Any process may call Release. If it holds no permit, it releases one of another process; if no
// process holds one, the number of permits grows by one. A semaphore can therefore serve as a
// signal: create it with 0 permits, call Release for each event, and Acquire to wait for one.
// Permits of dead processes are returned only up to the initial number, so a signal is not received
// twice.
//
// All methods may be called from several goroutines. The zero Semaphore is closed.
type Semaphore struct{ cell }

const semaphoreName = "Semaphore"

// NewSemaphore returns a semaphore with the given number of permits. The caller must close it. It
// returns [ErrSize] unless permits is between 0 and 1,048,575.
func NewSemaphore(permits int) (*Semaphore, error) {
	return newSemaphore(arena.SyncOptions{Form: arena.FormSemaphore, Limit: permits})
}

// NewBoundedSemaphore returns a semaphore that never has more than the given number of permits: a
// Release beyond that returns [ErrReleased]. The caller must close it. It returns [ErrSize] unless
// permits is between 0 and 1,048,575.
func NewBoundedSemaphore(permits int) (*Semaphore, error) {
	return newSemaphore(arena.SyncOptions{Form: arena.FormSemaphore, Limit: permits, Bounded: true})
}

func newSemaphore(opts arena.SyncOptions) (*Semaphore, error) {
	if err := checkSize(semaphoreName, opts.Limit, 0, maxCount); err != nil {
		return nil, err
	}
	o, err := newObject(semaphoreName, opts)
	if err != nil {
		return nil, err
	}
	return &Semaphore{cell{o}}, nil
}

// Acquire takes a permit, and blocks until one is available. It returns [ErrLocked] with
// [context.DeadlineExceeded] if the deadline of ctx expires. An available permit is taken even
// after the deadline. For that, Acquire may wait up to 20 ms for the operation of another process.
func (s *Semaphore) Acquire(ctx context.Context) error {
	return s.obj.runOp(ctx, "acquire", ErrLocked, func() error { return s.shm().Acquire(ctx) })
}

// TryAcquire takes a permit, or returns [ErrLocked] immediately. If a process is stopped in the
// middle of an operation on the semaphore, it returns ErrLocked after a second.
func (s *Semaphore) TryAcquire() error {
	return s.obj.runOp(context.Background(), "acquire", ErrLocked, func() error { return s.shm().TryAcquire() })
}

// Release returns a permit. It returns [ErrReleased] if a bounded semaphore already has all its
// permits. If a process is stopped in the middle of an operation on the semaphore, Release returns
// nil immediately, and the permit becomes available when that process continues or dies.
func (s *Semaphore) Release() error {
	return s.obj.runOp(context.Background(), "release", nil, func() error { return s.shm().Release() })
}

// Permits returns the number of available permits, which may have changed by the time it returns.
// If a process is stopped in the middle of an operation on the semaphore, the count may lack the
// permits of dead processes.
func (s *Semaphore) Permits() (n int, err error) {
	err = s.obj.runOp(context.Background(), "count permits", nil, func() (err error) {
		n, err = s.shm().Permits()
		return err
	})
	return n, err
}

func (s *Semaphore) shm() arena.Semaphore { return arena.Semaphore{Sync: s.obj.sync} }

// unmarshalWire decodes a Semaphore. It returns [ErrType] if the value is of another type.
func (s *Semaphore) unmarshalWire(d *codec.Decoder) (err error) {
	s.obj, err = readObject(d, semaphoreName, arena.FormSemaphore)
	return err
}
