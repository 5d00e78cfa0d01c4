package manager

import (
	"context"
	"fmt"
)

// A Set is a set in the server. Two elements are equal if their bytes in a message are equal.
type Set[T comparable] struct{ keyed[Set[T], T] }

// NewSet makes an empty Set. The caller closes it.
func NewSet[T comparable](ctx context.Context, m *Manager) (*Set[T], error) {
	if err := check[map[T]bool](); err != nil {
		return nil, fmt.Errorf("manager: new Set: %w", err)
	}
	p, err := newKeyed[Set[T], T](ctx, m)
	return &Set[T]{p}, err
}

// Add adds elements, in one call.
func (s *Set[T]) Add(ctx context.Context, vs ...T) error {
	args := make([]argument, 0, 2*len(vs))
	for _, v := range vs {
		args = append(args, in(v), in(true))
	}
	return s.call(ctx, dictUpdate, args...).none()
}

// Remove removes v, or returns ErrNoKey.
func (s *Set[T]) Remove(ctx context.Context, v T) error { return s.call(ctx, dictDelete, in(v)).none() }

// Discard removes the values vs that the set has, in one call: s -= vs.
func (s *Set[T]) Discard(ctx context.Context, vs ...T) error {
	return s.call(ctx, dictDiscard, ins(vs)...).none()
}

// Keep removes all elements except vs, in one call: s &= vs.
func (s *Set[T]) Keep(ctx context.Context, vs ...T) error {
	return s.call(ctx, dictKeep, ins(vs)...).none()
}

// Pop removes some element and returns it, or ErrNoKey if the set is empty.
func (s *Set[T]) Pop(ctx context.Context) (T, error) {
	v, _, err := pair[T, bool](s.callUndo(ctx, dictUpdate.with, dictFirst))
	return v, err
}

// All returns the elements, in the order of their bytes.
func (s *Set[T]) All(ctx context.Context) ([]T, error) { return all[T](s.call(ctx, dictKeys)) }
