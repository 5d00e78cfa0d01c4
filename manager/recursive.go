package manager

import "context"

// A RecursiveMutex is a Mutex that its owner may lock repeatedly, with one Unlock per Lock. The
// owner is a proxy: another proxy of the lock, even in the same process, is another owner.
type RecursiveMutex struct{ locker[RecursiveMutex] }

// NewRecursiveMutex creates an unlocked RecursiveMutex. The caller must close it.
func NewRecursiveMutex(ctx context.Context, m *Manager) (*RecursiveMutex, error) {
	p, err := createTyped[RecursiveMutex](ctx, m, mutexKind, encodeArg(true))
	return &RecursiveMutex{locker[RecursiveMutex]{p}}, err
}
