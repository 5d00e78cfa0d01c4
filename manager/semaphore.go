package manager

import (
	"context"
	"fmt"
)

// A Semaphore is a number of permits in the server. The permits of a process that dies are
// returned.
//
// Any process may release. A process that has no permit releases a permit of another process; if no
// process has one, the semaphore has one more from then on, and so it is also a signal. The permits
// of dead processes come back only up to the number at first.
type Semaphore struct{ typed[Semaphore] }

// NewSemaphore makes a semaphore with n permits. The caller closes it.
func NewSemaphore(ctx context.Context, m *Manager, n int) (*Semaphore, error) {
	p, err := create[Semaphore](ctx, m, semaphoreKind, in(n), in(false))
	return &Semaphore{p}, err
}

// NewBoundedSemaphore makes a semaphore that never has more than its n permits: a Release too many
// is ErrTooOften.
func NewBoundedSemaphore(ctx context.Context, m *Manager, n int) (*Semaphore, error) {
	p, err := create[Semaphore](ctx, m, semaphoreKind, in(n), in(true))
	return &Semaphore{p}, err
}

// Acquire takes a permit and waits while there is none.
func (s *Semaphore) Acquire(ctx context.Context) error {
	return s.callUndo(ctx, semaphoreGiveBack.alone, semaphoreAcquire).none()
}

// TryAcquire takes a permit, or returns ErrLocked at once.
func (s *Semaphore) TryAcquire(ctx context.Context) error {
	return s.callUndo(ctx, semaphoreGiveBack.alone, semaphoreTryAcquire).none()
}

// Release returns a permit; ErrTooOften if a bounded semaphore has all of them.
func (s *Semaphore) Release(ctx context.Context) error { return s.call(ctx, semaphoreRelease).none() }

// Permits returns the number of permits that are free.
func (s *Semaphore) Permits(ctx context.Context) (int, error) {
	return one[int](s.call(ctx, semaphorePermits))
}

// A semaphore is the state of a Semaphore.
type semaphore struct {
	free, first int
	bounded     bool
	held        map[*session]int // who has none is not in it
}

// What can be asked of a Semaphore.
var (
	semaphoreKind = newKind("Semaphore", newSemaphore)

	semaphoreAcquire    = define(semaphoreKind, "acquire", (*semaphore).acquire)
	semaphoreTryAcquire = define(semaphoreKind, "tryacquire", (*semaphore).tryAcquire)
	semaphoreRelease    = define(semaphoreKind, "release", (*semaphore).release)
	semaphoreGiveBack   = define(semaphoreKind, "return", (*semaphore).giveBack)
	semaphorePermits    = define(semaphoreKind, "permits", (*semaphore).permits)
)

func newSemaphore(c *call) (any, error) {
	n, err := arg[int](c, 0)
	if err != nil {
		return nil, err
	}
	bounded, err := arg[bool](c, 1)
	if err == nil && n < 0 {
		err = fmt.Errorf("%w: %d permits", ErrArgument, n)
	}
	return &semaphore{free: n, first: n, bounded: bounded, held: make(map[*session]int)}, err
}

func (s *semaphore) acquire(c *call) error {
	if s.free == 0 {
		return errWait
	}
	s.free--
	s.held[c.session()]++
	return nil
}

func (s *semaphore) tryAcquire(c *call) error { return orState(s.acquire(c), ErrLocked) }

func (s *semaphore) release(c *call) error {
	if s.bounded && s.free == s.first {
		return fmt.Errorf("release: %w", ErrTooOften)
	}
	s.free++
	holder := c.session()
	for other := range s.held {
		if s.held[holder] == 0 {
			holder = other
		}
	}
	if s.held[holder]--; s.held[holder] <= 0 {
		delete(s.held, holder)
	}
	return nil
}

// giveBack returns a permit that came too late, if it is still there to be returned.
func (s *semaphore) giveBack(c *call) error {
	if s.held[c.session()] == 0 {
		return nil
	}
	return s.release(c)
}

func (s *semaphore) permits(c *call) error { return give(c, s.free) }

func (s *semaphore) leave(p *session) {
	s.free = max(s.free, min(s.free+s.held[p], s.first))
	delete(s.held, p)
}
