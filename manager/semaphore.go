package manager

import (
	"context"
	"fmt"
)

// A Semaphore is a number of permits in the server. When a process dies, the server takes its
// permits back.
//
// Any process may call Release. If the caller has no permit, Release gives back a permit of another
// process. If no process has one, Release adds a permit, so a semaphore is a signal as well. The
// server takes back permits of the dead only up to the number that the semaphore began with.
type Semaphore struct{ typed[Semaphore] }

// NewSemaphore makes a semaphore with n permits. The caller closes it.
func NewSemaphore(ctx context.Context, m *Manager, n int) (*Semaphore, error) {
	p, err := create[Semaphore](ctx, m, semaphoreKind, in(n), in(false))
	return &Semaphore{p}, err
}

// NewBoundedSemaphore makes a semaphore that never has more than n permits: one Release too many
// returns ErrReleased. The caller closes it.
func NewBoundedSemaphore(ctx context.Context, m *Manager, n int) (*Semaphore, error) {
	p, err := create[Semaphore](ctx, m, semaphoreKind, in(n), in(true))
	return &Semaphore{p}, err
}

// Acquire takes a permit and waits while there is none. A free permit is taken also after the
// deadline of ctx.
func (s *Semaphore) Acquire(ctx context.Context) error {
	return s.callUndo(ctx, semaphoreGiveBack.alone, semaphoreAcquire).none()
}

// TryAcquire takes a permit, or returns ErrLocked at once.
func (s *Semaphore) TryAcquire(ctx context.Context) error {
	return s.callUndo(ctx, semaphoreGiveBack.alone, semaphoreTryAcquire).none()
}

// Release gives a permit back. The error is ErrReleased if a bounded semaphore has all its permits.
func (s *Semaphore) Release(ctx context.Context) error { return s.call(ctx, semaphoreRelease).none() }

// Permits returns the number of free permits.
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
		return fmt.Errorf("release: %w", ErrReleased)
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
