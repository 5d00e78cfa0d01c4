package arena

import (
	"context"
	"errors"
	"runtime"
)

// The state word of a semaphore: permits 32 | share 20 | 0 3 | seat + 1 9. It is written by the
// holder of the cell's lock, before the share of the seat that it names; the next holder of a dead
// one's lock does the second step for it. So the permits and the shares always fit, and a permit
// that a dead participant had is found.
const (
	permitShift = 32
	grantShift  = 12
	grantSeat   = 1<<9 - 1
)

// A Semaphore counts permits. Its lock is held for a few instructions at a time.
type Semaphore struct{ *Sync }

// Acquire waits for a permit and takes it, or until ctx ends. The participant has it until a
// Release, and gives it back when it dies.
func (m Semaphore) Acquire(ctx context.Context) error {
	return m.acquire(ctx, func() error { return m.Take(ctx) })
}

// TryAcquire is Acquire that returns ErrLocked instead of waiting for a permit. It returns that a
// second later where a process is stopped in the middle of an operation on the semaphore.
func (m Semaphore) TryAcquire() error {
	err := m.Take(briefly)
	if errors.Is(err, context.DeadlineExceeded) {
		return ErrLocked
	}
	return err
}

// Take is TryAcquire that waits for other processes' operations until ctx ends.
func (m Semaphore) Take(ctx context.Context) error {
	if err := m.enter(ctx); err != nil {
		return err
	}
	defer m.exit()
	mine := m.c.shares[m.d.seat].Load()
	if m.permits() == 0 || mine&idMask != m.id {
		m.reclaimPermits()
		mine = m.c.shares[m.d.seat].Load()
	}
	if m.permits() == 0 || mine&countMask == countMask {
		return ErrLocked
	}
	m.grant(m.permits()-1, m.d.seat, m.id, mine&countMask+1)
	return nil
}

// Release gives a permit back: one of this participant's, or else one of another participant's, for
// which it acts. If no participant has one, Release adds a permit, which is how a semaphore is a
// signal.
// ErrReleased says that a bounded semaphore has no room for it. Where a process is stopped in the
// middle of an operation on the semaphore, Release returns nil a moment later, and gives the permit
// back when that one goes on or dies.
func (m Semaphore) Release() error {
	err := m.enter(briefly / 50)
	switch {
	case err == nil:
		return m.giveBack()
	case errors.Is(err, context.DeadlineExceeded):
		return m.releaseLater()
	}
	return err
}

// releaseLater has a goroutine give the permit back, by a view of its own: the caller's may be
// closed before.
func (m Semaphore) releaseLater() error {
	if err := m.d.Retain(m.h); err != nil {
		return err
	}
	s, err := m.d.OpenSync(m.h, FormSemaphore)
	if err != nil {
		return errors.Join(err, m.d.Release(m.h))
	}
	go func() {
		if (Semaphore{s}).enter(context.Background()) == nil { // ErrClosed when the domain is closed
			(Semaphore{s}).giveBack() // a permit too many is dropped
		}
		s.Close()
		m.d.Release(s.h)
	}()
	return nil
}

// giveBack is a Release by the holder of the cell's lock.
func (m Semaphore) giveBack() error {
	seat, v := m.d.seat, m.c.shares[m.d.seat].Load()
	if v&idMask != m.id || v&countMask == 0 {
		m.reclaimPermits()
		seat, v = m.debtor()
	}
	var err error
	switch {
	case v&countMask != 0:
		m.grant(m.permits()+1, seat, v&idMask, v&countMask-1)
	case m.c.form.Load()&formBounded != 0 && m.permits() >= m.c.limit.Load():
		err = ErrReleased
	default:
		m.c.state.Store((m.permits() + 1) << permitShift)
	}
	m.exit()
	m.waiting.rewake()
	return err
}

// Permits returns how many there are to be had, which may be another number by the time it returns.
// Where a process is stopped in the middle of an operation on the semaphore, permits of the dead
// may be missing.
func (m Semaphore) Permits() (int, error) {
	n, err := m.count(briefly / 50)
	if errors.Is(err, context.DeadlineExceeded) {
		return int(m.permits()), nil
	}
	return n, err
}

func (m Semaphore) count(ctx context.Context) (int, error) {
	if err := m.enter(ctx); err != nil {
		return 0, err
	}
	defer m.exit()
	m.reclaimPermits()
	return int(m.permits()), nil
}

// Watch waits until ready is true of the permits there are, or until ctx ends. Watch
// calls ready again whenever a participant takes a permit, gives one back, or has died with one.
func (m Semaphore) Watch(ctx context.Context, ready func(permits int) bool) error {
	for {
		n, err := m.count(ctx)
		if err != nil || ready(n) {
			return err
		}
		if err := m.watch(ctx,
			func() bool { return m.orphaned() || m.bereft() || ready(int(m.permits())) }); err != nil {
			return err
		}
	}
}

// TakeDeath returns a *PeerError with ErrOwnerDied if a participant has died with permits since the
// last TakeDeath, anywhere: of several the last one that was noticed.
func (m Semaphore) TakeDeath() error {
	if w := m.c.dead.Load(); w != 0 && m.c.dead.CAS(w, 0) {
		return bereaved(lockWord(w), ErrOwnerDied)
	}
	return nil
}

func (m Semaphore) permits() uint64 { return m.c.state.Load() >> permitShift }

// debtor returns a participant that has permits, and its share.
func (m Semaphore) debtor() (seat int, share uint64) {
	for i := range m.seats() {
		if v := m.c.shares[i].Load(); v&countMask != 0 {
			return i, v
		}
	}
	return 0, 0
}

// reclaimPermits gives back the permits of participants that are gone, as long as there are no more
// than there were at first. Permits beyond were signals, and no signal counts twice.
func (m Semaphore) reclaimPermits() {
	m.sharesOfDead(func(i int, v uint64) bool {
		m.c.dead.Store(v&idMask | uint64(i)<<idSeatShift) // whose it was, for TakeDeath
		n := m.permits()
		back := min(v&countMask, max(m.c.limit.Load(), n)-n)
		m.grant(n+back, i, v&idMask, 0)
		return true
	})
}

// grant sets the permits and one participant's share.
//
// Invariant (docs/memory.md, "Cells"): the state word says the new share before the share does. A
// holder of the lock that dies between the two is followed by one that reads the share there
// (redo), so permits and shares always add up.
func (m Semaphore) grant(permits uint64, seat int, id, share uint64) {
	m.c.state.Store(permits<<permitShift | share<<grantShift | uint64(seat+1))
	m.c.shares[seat].Set(id | share)
}

// ready reports whether a TryAcquire may find a permit. One that a dead participant was taking when
// it died is in no share yet: the lock says so.
func (m Semaphore) ready() bool {
	return m.permits() > 0 || m.orphaned() || m.bereft() || m.over()
}

// enter takes the lock, which is never held for long, and finishes the change of a dead holder.
func (m Semaphore) enter(ctx context.Context) error {
	for i := 0; !m.c.lock.CAS(lockFree, m.me|lockHeld); i++ {
		w := m.c.lock.Load()
		switch {
		case w == lockFree:
		case m.d.holderGone(w):
			if m.c.lock.CAS(w, m.me|lockHeld) {
				m.redo(w)
				return nil
			}
		case i < 64:
			runtime.Gosched()
		default:
			if i == 64 {
				var cancel context.CancelFunc
				ctx, cancel = begin(ctx)
				defer cancel()
			}
			if err := m.watch(ctx, m.lockReady); err != nil {
				return err
			}
		}
	}
	return nil
}

// redo writes the share that the state word names. If it is the dead holder's own, so is the
// identity.
func (m Semaphore) redo(holder lockWord) {
	st := m.c.state.Load()
	seat := int(st&grantSeat) - 1
	if seat < 0 || seat >= maxParticipants || disabled("grant") {
		return
	}
	id := m.c.shares[seat].Load() & idMask
	if seat == holder.seat() {
		id = uint64(holder & idMask)
	}
	m.c.shares[seat].Store(id | st>>grantShift&countMask)
}

func (m Semaphore) exit() {
	m.c.lock.CAS(m.me|lockHeld, lockFree)
	m.d.wakeBits(&m.c.watching)
}
