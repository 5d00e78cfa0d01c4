package manager

import (
	"context"
	"fmt"
)

// A Semaphore is a counting semaphore in the server. The permits of a process that dies are
// returned.
//
// Any process may call Release. If it holds no permit, it releases one of another process; if no
// process holds one, the number of permits grows by one. A semaphore can therefore serve as a
// signal. Permits of dead processes are returned only up to the initial number. All methods may
// be called from several goroutines.
type Semaphore struct{ typed[Semaphore] }

// NewSemaphore creates a semaphore with n permits. The caller must close it. It returns
// [ErrArgument] if n is negative.
func NewSemaphore(ctx context.Context, m *Manager, n int) (*Semaphore, error) {
	p, err := createTyped[Semaphore](ctx, m, semaphoreKind, encodeArg(n), encodeArg(false))
	return &Semaphore{p}, err
}

// NewBoundedSemaphore creates a semaphore that never has more than n permits: a Release beyond that
// returns [ErrReleased]. The caller must close it. It returns [ErrArgument] if n is negative.
func NewBoundedSemaphore(ctx context.Context, m *Manager, n int) (*Semaphore, error) {
	p, err := createTyped[Semaphore](ctx, m, semaphoreKind, encodeArg(n), encodeArg(true))
	return &Semaphore{p}, err
}

// Acquire takes a permit, and blocks until one is available. If ctx is done first, it returns an
// error that wraps the cause of ctx. An available permit is taken even after the deadline of
// ctx.
func (s *Semaphore) Acquire(ctx context.Context) error {
	return s.callUndo(ctx, semaphoreGiveBack.bareRequest, semaphoreAcquire).noResult()
}

// TryAcquire takes a permit, or returns [ErrLocked] immediately.
func (s *Semaphore) TryAcquire(ctx context.Context) error {
	return s.callUndo(ctx, semaphoreGiveBack.bareRequest, semaphoreTryAcquire).noResult()
}

// Release returns a permit. It returns [ErrReleased] if a bounded semaphore already has all its
// permits.
func (s *Semaphore) Release(ctx context.Context) error {
	return s.call(ctx, semaphoreRelease).noResult()
}

// Permits returns the number of available permits.
func (s *Semaphore) Permits(ctx context.Context) (int, error) {
	return oneResult[int](s.call(ctx, semaphorePermits))
}

// A semaphore is the server's state of a Semaphore.
type semaphore struct {
	free, first int
	bounded     bool
	held        map[*session]int // only clients with permits
}

// Methods of a Semaphore.
var (
	semaphoreKind = newKind("Semaphore", newSemaphore)

	semaphoreAcquire    = defineMethod(semaphoreKind, "acquire", (*semaphore).acquire)
	semaphoreTryAcquire = defineMethod(semaphoreKind, "tryacquire", (*semaphore).tryAcquire)
	semaphoreRelease    = defineMethod(semaphoreKind, "release", (*semaphore).release)
	semaphoreGiveBack   = defineMethod(semaphoreKind, "return", (*semaphore).releaseAbandoned)
	semaphorePermits    = defineMethod(semaphoreKind, "permits", (*semaphore).permits)
)

func newSemaphore(c *call) (any, error) {
	n, err := decodeArg[int](c, 0)
	if err != nil {
		return nil, err
	}
	bounded, err := decodeArg[bool](c, 1)
	if err == nil && n < 0 {
		err = fmt.Errorf("%w: %d permits, want 0 or more", ErrArgument, n)
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

func (s *semaphore) tryAcquire(c *call) error { return waitToState(s.acquire(c), ErrLocked) }

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

// releaseAbandoned returns one permit of the calling process, because the caller of acquire
// stopped waiting. It does nothing if that process has no permit.
func (s *semaphore) releaseAbandoned(c *call) error {
	if s.held[c.session()] == 0 {
		return nil
	}
	return s.release(c)
}

func (s *semaphore) permits(c *call) error { return addResult(c, s.free) }

func (s *semaphore) endSession(p *session) {
	s.free = max(s.free, min(s.free+s.held[p], s.first))
	delete(s.held, p)
}
