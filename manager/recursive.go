package manager

import "context"

// A RecursiveMutex is a Mutex that its owner may acquire again, and releases as often. The owner is
// the proxy: a proxy that was received is another owner, in the same process as well.
type RecursiveMutex struct{ locker[RecursiveMutex] }

// NewRecursiveMutex makes a lock that is free. The caller closes it.
func NewRecursiveMutex(ctx context.Context, m *Manager) (*RecursiveMutex, error) {
	p, err := create[RecursiveMutex](ctx, m, mutexKind, in(true))
	return &RecursiveMutex{locker[RecursiveMutex]{p}}, err
}
