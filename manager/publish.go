package manager

import (
	"context"
	"fmt"
)

// Publish gives v a name under which every client of the manager finds it, also on other machines.
// v is mostly a proxy. The manager holds v until another value is published under the name, or
// until Withdraw.
func Publish[T any](ctx context.Context, m *Manager, name string, v T) error {
	c, err := m.open()
	if err != nil {
		return err
	}
	return c.invoke(ctx, serverPublish.with(nil), nil, []argument{in(name), in(v)}).none()
}

// Find returns the value that was published under a name. The error is ErrNoKey if there is none,
// and ErrType if it is a proxy of another type. The caller closes the value.
func Find[T any](ctx context.Context, m *Manager, name string) (v T, err error) {
	c, err := m.open()
	if err != nil {
		return v, err
	}
	return one[T](c.invoke(ctx, serverFind.with(nil), nil, []argument{in(name)}))
}

// Withdraw removes a name that Publish gave. The error is ErrNoKey if no value has the name.
func (m *Manager) Withdraw(ctx context.Context, name string) error {
	c, err := m.open()
	if err != nil {
		return err
	}
	return c.invoke(ctx, serverWithdraw.with(nil), nil, []argument{in(name)}).none()
}

func (l *served) publish(c *call) error {
	name, err := arg[string](c, 0)
	if err != nil {
		return err
	}
	it, err := c.item(1)
	if err != nil {
		return err
	}
	return l.s.rename(name, &it)
}

func (l *served) withdraw(c *call) error {
	name, err := arg[string](c, 0)
	if err != nil {
		return err
	}
	return l.s.rename(name, nil)
}

// rename replaces what a name stands for, by nothing if it is nil.
func (s *server) rename(name string, it *item) error {
	s.mu.Lock()
	old, ok := s.names[name]
	if it != nil {
		s.names[name] = *it
	} else {
		delete(s.names, name)
	}
	s.mu.Unlock()
	if it == nil && !ok {
		return fmt.Errorf("%w: %q is not published", ErrNoKey, name)
	}
	old.release(s.d)
	return nil
}

func (l *served) find(c *call) error {
	name, err := arg[string](c, 0)
	if err != nil {
		return err
	}
	l.s.mu.Lock()
	defer l.s.mu.Unlock()
	it, ok := l.s.names[name]
	if !ok {
		return fmt.Errorf("%w: %q is not published", ErrNoKey, name)
	}
	return c.give(it)
}
