package arena

import "context"

// An Event is a flag that many wait for. Its state word: times it was set 63 | set 1.
type Event struct{ *Sync }

// IsSet reports whether the flag is set.
func (e Event) IsSet() bool { return e.c.state.Load()&1 != 0 }

// Set sets the flag and wakes all waiters, also those that look only after the flag was cleared
// again.
func (e Event) Set() {
	for v := e.c.state.Load(); v&1 == 0; v = e.c.state.Load() {
		if e.c.state.CAS(v, v+3) {
			break
		}
	}
	e.d.wakeBits(&e.c.watching)
}

// Clear clears the flag.
func (e Event) Clear() {
	for v := e.c.state.Load(); v&1 != 0; v = e.c.state.Load() {
		if e.c.state.CAS(v, v&^1) {
			break
		}
	}
}

// Wait waits until the flag is set, or until ctx ends.
func (e Event) Wait(ctx context.Context) error {
	begun := e.c.state.Load()
	set := func() bool { v := e.c.state.Load(); return v&1 != 0 || v>>1 != begun>>1 }
	if set() {
		return nil
	}
	if err := e.watch(ctx, set); err != nil && !set() {
		return err
	}
	return nil
}

// Flag returns the state word of a FormMutex, whose meaning is the matter of its user. The holder
// of the lock sets it by SetFlag.
func (s *Sync) Flag() uint64 { return s.c.state.Load() }

// SetFlag is the counterpart of Flag.
func (s *Sync) SetFlag(v uint64) { s.c.state.Store(v) }
