package manager

import "context"

// A Namespace is a map in the server from names to values of arbitrary types. Each type must be
// registered with wire.RegisterType. All methods may be called from several goroutines.
type Namespace struct{ typed[Namespace] }

// NewNamespace creates an empty Namespace. The caller must close it.
func NewNamespace(ctx context.Context, m *Manager) (*Namespace, error) {
	p, err := createTyped[Namespace](ctx, m, dictKind)
	return &Namespace{p}, err
}

// Get returns the value for name with its dynamic type, or [ErrNoKey]. The caller must close the
// value's shared memory.
func (n *Namespace) Get(ctx context.Context, name string) (any, error) {
	return oneResult[any](n.call(ctx, dictGet, encodeArg(name)))
}

// Set sets the value for name. The caller must still close v. The error wraps wire.ErrUnknownType
// if the type of v is not registered.
func (n *Namespace) Set(ctx context.Context, name string, v any) error {
	return n.call(ctx, dictUpdate, encodeArg(name), encodeArg(v)).noResult()
}

// Delete removes a name. It returns [ErrNoKey] if there is no such name.
func (n *Namespace) Delete(ctx context.Context, name string) error {
	return n.call(ctx, dictDelete, encodeArg(name)).noResult()
}

// Names returns the names in sorted order.
func (n *Namespace) Names(ctx context.Context) ([]string, error) {
	return allResults[string](n.call(ctx, dictKeys))
}
