package arena

import "context"

// An Event is a flag that goroutines of several processes can wait for. Its state word: number of
// times it was set 63 | set 1.
type Event struct{ *Sync }

// IsSet reports whether the flag is set.
func (e Event) IsSet() bool { return e.c.State.Load()&1 != 0 }

// Set sets the flag and wakes all waiters. A goroutine that was waiting returns even if the flag is
// cleared before it runs.
func (e Event) Set() {
	for v := e.c.State.Load(); v&1 == 0; v = e.c.State.Load() {
		if e.c.State.CAS(v, v+3) {
			break
		}
	}
	e.d.park.WakeBits(&e.c.Watching)
}

// Clear clears the flag.
func (e Event) Clear() {
	for v := e.c.State.Load(); v&1 != 0; v = e.c.State.Load() {
		if e.c.State.CAS(v, v&^1) {
			break
		}
	}
}

// Wait blocks until the flag is set or ctx ends. It also returns nil if the flag was set and
// cleared again since the call began. It returns the cause of ctx if ctx ends, and [ErrClosed]
// if the view or the domain is closed.
func (e Event) Wait(ctx context.Context) error {
	begun := e.c.State.Load()
	set := func() bool { v := e.c.State.Load(); return v&1 != 0 || v>>1 != begun>>1 }
	if set() {
		return nil
	}
	if err := e.watchUntil(ctx, set); err != nil && !set() {
		return err
	}
	return nil
}

// Flag returns the state word of a FormMutex. Its meaning is defined by the caller.
func (s *Sync) Flag() uint64 { return s.c.State.Load() }

// SetFlag sets the word that [Sync.Flag] returns. The caller must hold the lock.
func (s *Sync) SetFlag(v uint64) { s.c.State.Store(v) }
