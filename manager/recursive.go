package manager

import "context"

// A RecursiveMutex is a Mutex that its owner may lock again, and unlocks as many times. The owner
// is a proxy. A second proxy of the lock, even in the same process, is another owner.
type RecursiveMutex struct{ locker[RecursiveMutex] }

// NewRecursiveMutex makes a lock that is free. The caller closes it.
func NewRecursiveMutex(ctx context.Context, m *Manager) (*RecursiveMutex, error) {
	p, err := create[RecursiveMutex](ctx, m, mutexKind, in(true))
	return &RecursiveMutex{locker[RecursiveMutex]{p}}, err
}
