package ipc

import (
	"context"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/codec"
)

// A Semaphore counts permits, which processes take and give back. A permit that a process has taken
// is given back for it when it dies.
//
// Any process may release. A process that has no permit releases a permit of another process; if no
// process has one, the semaphore has one more from then on. So a semaphore is also a signal: made
// with no permit, released for each event, and acquired by the processes that wait for events. The
// permits of dead processes come back only up to the number at first: a signal is not heard twice.
//
// Its methods may be called by several goroutines. The zero Semaphore is closed.
type Semaphore struct{ cell }

const semaphoreName = "Semaphore"

// NewSemaphore makes a semaphore of so many permits, 0 to 1,048,575, or else ErrSize. The caller
// closes it.
func NewSemaphore(permits int) (*Semaphore, error) {
	return newSemaphore(arena.SyncOptions{Form: arena.FormSemaphore, Limit: permits})
}

// NewBoundedSemaphore makes a semaphore of so many permits, 0 to 1,048,575, or else ErrSize, which
// never has more: a Release too many is ErrReleased. The caller closes it.
func NewBoundedSemaphore(permits int) (*Semaphore, error) {
	return newSemaphore(arena.SyncOptions{Form: arena.FormSemaphore, Limit: permits, Bounded: true})
}

func newSemaphore(opts arena.SyncOptions) (*Semaphore, error) {
	if err := sized(semaphoreName, opts.Limit, 0, maxCount); err != nil {
		return nil, err
	}
	o, err := newObject(semaphoreName, opts)
	if err != nil {
		return nil, err
	}
	return &Semaphore{cell{o}}, nil
}

// Acquire waits for a permit and takes it. The error is ErrLocked and context.DeadlineExceeded if
// ctx had a deadline.
func (s *Semaphore) Acquire(ctx context.Context) error {
	return s.obj.do(ctx, "acquire", ErrLocked, func() error { return s.shm().Acquire(ctx) })
}

// TryAcquire takes a permit, or returns ErrLocked at once. It returns ErrLocked a second later
// where a process is stopped in the middle of an operation on the semaphore.
func (s *Semaphore) TryAcquire() error {
	return s.obj.do(context.Background(), "acquire", ErrLocked, func() error { return s.shm().TryAcquire() })
}

// Release gives a permit back. The error is ErrReleased if a bounded semaphore has all its permits.
// Where a process is stopped in the middle of an operation on the semaphore, Release does not wait
// for it: it returns nil, and the permit comes back when that process goes on or dies.
func (s *Semaphore) Release() error {
	return s.obj.do(context.Background(), "release", nil, func() error { return s.shm().Release() })
}

// Permits returns how many permits there are to be taken, which may be another number by the time
// it returns. Where a process is stopped in the middle of an operation on the semaphore, the
// permits of dead processes may be missing.
func (s *Semaphore) Permits() (n int, err error) {
	err = s.obj.do(context.Background(), "count permits", nil, func() (err error) {
		n, err = s.shm().Permits()
		return err
	})
	return n, err
}

func (s *Semaphore) shm() arena.Semaphore { return arena.Semaphore{Sync: s.obj.sync} }

// unmarshalWire reads the object that marshalWire wrote. The error is ErrType if it is of another
// type.
func (s *Semaphore) unmarshalWire(d *codec.Decoder) (err error) {
	s.obj, err = readObject(d, semaphoreName, arena.FormSemaphore)
	return err
}
