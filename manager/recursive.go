package manager

import "context"

// A RecursiveMutex is a Mutex that its owner may acquire again, and releases as often. The owner is
// the proxy: what is received, or made by sending it through a queue, is another one, also in the
// same process.
type RecursiveMutex struct{ locker[RecursiveMutex] }

// NewRecursiveMutex makes a lock that nobody has. The caller closes it.
func NewRecursiveMutex(ctx context.Context, m *Manager) (*RecursiveMutex, error) {
	p, err := create[RecursiveMutex](ctx, m, mutexKind, in(true))
	return &RecursiveMutex{locker[RecursiveMutex]{p}}, err
}
