package manager

import "context"

// A Namespace is a map from names to values of any types in the server. Each type is registered by
// wire.RegisterType.
type Namespace struct{ typed[Namespace] }

// NewNamespace makes an empty Namespace. The caller closes it.
func NewNamespace(ctx context.Context, m *Manager) (*Namespace, error) {
	p, err := create[Namespace](ctx, m, dictKind)
	return &Namespace{p}, err
}

// Get returns the value of a name, with the type that it had in Set, or ErrNoKey. The caller closes
// what the value holds.
func (n *Namespace) Get(ctx context.Context, name string) (any, error) {
	return one[any](n.call(ctx, dictGet, in(name)))
}

// Set sets the value of a name. The error wraps wire.ErrUnknownType if the type of v is not
// registered.
func (n *Namespace) Set(ctx context.Context, name string, v any) error {
	return n.call(ctx, dictUpdate, in(name), in(v)).none()
}

// Delete removes a name, or returns ErrNoKey.
func (n *Namespace) Delete(ctx context.Context, name string) error {
	return n.call(ctx, dictDelete, in(name)).none()
}

// Names returns the names, sorted.
func (n *Namespace) Names(ctx context.Context) ([]string, error) {
	return all[string](n.call(ctx, dictKeys))
}
