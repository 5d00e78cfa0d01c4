package arena

import (
	"context"
	"errors"
	"runtime"

	"github.com/shoal-mp/shoal/internal/arena/layout"
	"github.com/shoal-mp/shoal/internal/arena/word"
)

// The state word of a semaphore: permits 32 | share 20 | 0 3 | seat + 1 9. The holder of the cell's
// lock must write it before the share of the seat that it names. If the holder dies between the two
// writes, the next holder repeats the second one. So the sum of permits and shares stays right, and
// the permits of a dead participant can be recovered.
const (
	permitShift = 32
	grantShift  = 12
	grantSeat   = 1<<9 - 1
)

// A Semaphore is a counting semaphore. The lock in its cell is held only for the few
// instructions of a change.
type Semaphore struct{ *Sync }

// Acquire blocks until it has taken a permit or ctx ends, and then returns nil or the cause of
// ctx. It returns [ErrClosed] if the view or the domain is closed. The permit belongs to this
// participant until a [Semaphore.Release]. If the participant dies, the permit becomes available
// again. If ctx has ended before the call, Acquire takes a permit that is available. For that it
// may wait up to 20 ms for the operation of another process.
func (m Semaphore) Acquire(ctx context.Context) error {
	return m.retryUntilAcquired(ctx, func() error {
		err := m.Take(ctx)
		if err == nil || err == ErrLocked || ctx.Err() == nil {
			return err
		}
		// The deadline passed during another process's operation, which does not mean that there is
		// no permit: a deadline in the past must find one that is there.
		if last := m.Take(briefly / 50); !errors.Is(last, context.DeadlineExceeded) {
			return last
		}
		return err
	})
}

// TryAcquire is like [Semaphore.Acquire], but returns [ErrLocked] if no permit is available. It
// waits up to a second for another process's operation on the semaphore, and then returns ErrLocked
// too.
func (m Semaphore) TryAcquire() error {
	err := m.Take(briefly)
	if errors.Is(err, context.DeadlineExceeded) {
		return ErrLocked
	}
	return err
}

// Take is like [Semaphore.TryAcquire], but waits for another process's operation until ctx ends,
// and then returns the context's cause.
func (m Semaphore) Take(ctx context.Context) error {
	if err := m.lockCell(ctx); err != nil {
		return err
	}
	defer m.unlockCell()
	mine := m.c.Shares[m.d.seat].Load()
	if m.permits() == 0 || mine&word.IdentityMask != m.id {
		m.reclaimPermits()
		mine = m.c.Shares[m.d.seat].Load()
	}
	if m.permits() == 0 || mine&word.CountMask == word.CountMask {
		return ErrLocked
	}
	m.setPermits(m.permits()-1, m.d.seat, m.id, mine&word.CountMask+1)
	return nil
}

// Release returns a permit. It is a permit of this participant if there is one, and otherwise a
// permit of another participant. If no participant has a permit, Release adds one, which makes the
// semaphore usable as a signal.
//
// Release returns [ErrReleased] if the semaphore is bounded and has no room for the permit. If
// another process is stopped in the middle of an operation on the semaphore, Release returns nil
// after a moment, and a goroutine returns the permit when that process resumes or dies.
func (m Semaphore) Release() error {
	err := m.lockCell(briefly / 50)
	switch {
	case err == nil:
		return m.releasePermit()
	case errors.Is(err, context.DeadlineExceeded):
		return m.releaseLater()
	}
	return err
}

// releaseLater starts a goroutine that returns the permit. The goroutine opens a view of its own,
// because the caller may close its view first.
func (m Semaphore) releaseLater() error {
	if err := m.d.Retain(m.h); err != nil {
		return err
	}
	s, err := m.d.OpenSync(m.h, FormSemaphore)
	if err != nil {
		return errors.Join(err, m.d.Release(m.h))
	}
	go func() {
		if (Semaphore{s}).lockCell(context.Background()) == nil { // ErrClosed if the domain closes
			(Semaphore{s}).releasePermit() // ErrReleased is ignored: the permit is dropped
		}
		s.Close()
		m.d.Release(s.h)
	}()
	return nil
}

// releasePermit does the work of [Semaphore.Release]. The caller must hold the cell's lock;
// releasePermit releases it.
func (m Semaphore) releasePermit() error {
	seat, v := m.d.seat, m.c.Shares[m.d.seat].Load()
	if v&word.IdentityMask != m.id || v&word.CountMask == 0 {
		m.reclaimPermits()
		seat, v = m.findShare()
	}
	var err error
	switch {
	case v&word.CountMask != 0:
		m.setPermits(m.permits()+1, seat, v&word.IdentityMask, v&word.CountMask-1)
	case m.c.Form.Load()&layout.FormBounded != 0 && m.permits() >= m.c.Limit.Load():
		err = ErrReleased
	default:
		m.c.State.Store((m.permits() + 1) << permitShift)
	}
	m.unlockCell()
	m.waiting.WakeParticipant()
	return err
}

// Permits returns the number of available permits. The number may have changed by the time it is
// returned. If another process is stopped in the middle of an operation on the semaphore,
// permits of dead participants may be missing from it. The only error is [ErrClosed], if the
// view or the domain is closed.
func (m Semaphore) Permits() (int, error) {
	n, err := m.countPermits(briefly / 50)
	if errors.Is(err, context.DeadlineExceeded) {
		return int(m.permits()), nil
	}
	return n, err
}

// countPermits recovers the permits of dead participants and returns the number of available
// permits. It waits for the cell's lock until ctx ends.
func (m Semaphore) countPermits(ctx context.Context) (int, error) {
	if err := m.lockCell(ctx); err != nil {
		return 0, err
	}
	defer m.unlockCell()
	m.reclaimPermits()
	return int(m.permits()), nil
}

// Watch blocks until ready reports true for the number of available permits, or ctx ends, and
// then returns nil or the cause of ctx. It returns [ErrClosed] if the view or the domain is
// closed. It calls ready again whenever a participant takes or returns a permit, or has died
// with one. ready must be fast, and must not block.
func (m Semaphore) Watch(ctx context.Context, ready func(permits int) bool) error {
	for {
		n, err := m.countPermits(ctx)
		if err != nil || ready(n) {
			return err
		}
		if err := m.watchUntil(ctx,
			func() bool { return m.isOrphaned() || m.hasDeadShare() || ready(int(m.permits())) }); err != nil {
			return err
		}
	}
}

// TakeDeath returns a *PeerError that wraps [ErrOwnerDied] if a participant has died with permits
// since the last TakeDeath in any process, and nil otherwise. After several deaths it names the one
// noticed last.
func (m Semaphore) TakeDeath() error {
	if w := m.c.Dead.Load(); w != 0 && m.c.Dead.CAS(w, 0) {
		return newPeerError(word.Lock(w), ErrOwnerDied)
	}
	return nil
}

func (m Semaphore) permits() uint64 { return m.c.State.Load() >> permitShift }

// findShare returns the seat and the share of a participant that has permits. share is 0 if there
// is none.
func (m Semaphore) findShare() (seat int, share uint64) {
	for i := range m.d.mem.CountSeats() {
		if v := m.c.Shares[i].Load(); v&word.CountMask != 0 {
			return i, v
		}
	}
	return 0, 0
}

// reclaimPermits returns the permits of participants that are gone, up to the initial number.
// Permits above it were added as signals, and the dead participant has received its signal. The
// caller must hold the cell's lock.
func (m Semaphore) reclaimPermits() {
	m.forEachDeadShare(func(i int, v uint64) bool {
		m.c.Dead.Store(v&word.IdentityMask | uint64(i)<<word.SeatShift) // for TakeDeath
		n := m.permits()
		back := min(v&word.CountMask, max(m.c.Limit.Load(), n)-n)
		m.setPermits(n+back, i, v&word.IdentityMask, 0)
		return true
	})
}

// setPermits sets the number of permits, and the share of the participant in a seat with the
// identity id. The caller must hold the cell's lock.
//
// Invariant (docs/memory.md, "Cells"): the state word contains the new share before the share
// word does. If the holder of the lock dies between the two writes, the next holder copies the
// share from there (redoGrant), so that permits and shares always add up.
func (m Semaphore) setPermits(permits uint64, seat int, id, share uint64) {
	m.c.State.Store(permits<<permitShift | share<<grantShift | uint64(seat+1))
	m.c.Shares[seat].Set(id | share)
}

// isReady reports whether a TryAcquire may succeed. It must test for a dead holder of the lock as
// well: the permit that this holder was taking is not in its share yet.
func (m Semaphore) isReady() bool {
	return m.permits() > 0 || m.isOrphaned() || m.hasDeadShare() || m.isClosed()
}

// lockCell takes the cell's lock and completes the change of a dead holder. The lock is held for
// a few instructions only, so lockCell waits long only if its holder is stopped. It returns the
// cause of ctx if ctx ends, and [ErrClosed] if the view or the domain is closed.
func (m Semaphore) lockCell(ctx context.Context) error {
	for i := 0; !m.c.Lock.CAS(word.LockFree, m.me|word.LockHeld); i++ {
		w := m.c.Lock.Load()
		switch {
		case w == word.LockFree:
		case m.d.isHolderGone(w):
			if m.c.Lock.CAS(w, m.me|word.LockHeld) {
				m.redoGrant(w)
				return nil
			}
		case i < 64:
			runtime.Gosched()
		default:
			if i == 64 {
				var cancel context.CancelFunc
				ctx, cancel = beginWait(ctx)
				defer cancel()
			}
			if err := m.watchUntil(ctx, m.isLockReady); err != nil {
				return err
			}
		}
	}
	return nil
}

// redoGrant repeats the second write of setPermits for a dead holder of the lock. The share
// keeps the identity in its word, unless it belongs to the dead holder's own seat: then
// redoGrant writes the holder's identity.
func (m Semaphore) redoGrant(holder word.Lock) {
	st := m.c.State.Load()
	seat := int(st&grantSeat) - 1
	if seat < 0 || seat >= word.MaxParticipants || word.IsDisabled("grant") {
		return
	}
	id := m.c.Shares[seat].Load() & word.IdentityMask
	if seat == holder.Seat() {
		id = uint64(holder & word.IdentityMask)
	}
	m.c.Shares[seat].Store(id | st>>grantShift&word.CountMask)
}

// unlockCell releases the cell's lock and wakes all watchers.
func (m Semaphore) unlockCell() {
	m.c.Lock.CAS(m.me|word.LockHeld, word.LockFree)
	m.d.park.WakeBits(&m.c.Watching)
}
