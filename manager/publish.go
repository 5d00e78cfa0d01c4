package manager

import (
	"context"
	"fmt"
)

// Publish publishes v under a name, so that every client of the manager can find it, also on
// other machines. v is usually a proxy. The manager keeps v until another value is published
// under the name, or until [Manager.Withdraw]. If v contains proxies, their objects live at
// least as long. The caller must still close v.
func Publish[T any](ctx context.Context, m *Manager, name string, v T) error {
	c, err := m.openClient()
	if err != nil {
		return err
	}
	return c.invokeMethod(ctx, serverPublish.newRequest(nil), nil, []argument{encodeArg(name), encodeArg(v)}).noResult()
}

// Find returns the value published under a name. The caller must close it. It returns [ErrNoKey] if
// there is none, and [ErrType] if it is a proxy of another type.
func Find[T any](ctx context.Context, m *Manager, name string) (v T, err error) {
	c, err := m.openClient()
	if err != nil {
		return v, err
	}
	return oneResult[T](c.invokeMethod(ctx, serverFind.newRequest(nil), nil, []argument{encodeArg(name)}))
}

// Withdraw removes a published name. It returns [ErrNoKey] if the name is not published.
func (m *Manager) Withdraw(ctx context.Context, name string) error {
	c, err := m.openClient()
	if err != nil {
		return err
	}
	return c.invokeMethod(ctx, serverWithdraw.newRequest(nil), nil, []argument{encodeArg(name)}).noResult()
}

func (l *served) publish(c *call) error {
	name, err := decodeArg[string](c, 0)
	if err != nil {
		return err
	}
	it, err := c.takeArg(1)
	if err != nil {
		return err
	}
	return l.s.setName(name, &it)
}

func (l *served) withdraw(c *call) error {
	name, err := decodeArg[string](c, 0)
	if err != nil {
		return err
	}
	return l.s.setName(name, nil)
}

// setName replaces the value published under name by *it, and takes over its references. If it
// is nil, the name is removed; then setName returns [ErrNoKey] if the name is not published.
func (s *server) setName(name string, it *item) error {
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
	name, err := decodeArg[string](c, 0)
	if err != nil {
		return err
	}
	l.s.mu.Lock()
	defer l.s.mu.Unlock()
	it, ok := l.s.names[name]
	if !ok {
		return fmt.Errorf("%w: %q is not published", ErrNoKey, name)
	}
	return c.addItemResult(it)
}
