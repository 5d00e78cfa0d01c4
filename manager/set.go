package manager

import (
	"context"
	"fmt"
)

// A Set is a set in the server. Elements are equal if their encodings are equal. Each call is
// atomic. All methods may be called from several goroutines.
type Set[T comparable] struct{ keyed[Set[T], T] }

// NewSet creates an empty Set. The caller must close it. The error wraps wire.ErrType if values of
// type T cannot be sent to other processes.
func NewSet[T comparable](ctx context.Context, m *Manager) (*Set[T], error) {
	if err := checkType[map[T]bool](); err != nil {
		return nil, fmt.Errorf("manager: new Set: %w", err)
	}
	p, err := newKeyed[Set[T], T](ctx, m)
	return &Set[T]{p}, err
}

// Add adds elements, in one call. Elements that are already in the set are ignored.
func (s *Set[T]) Add(ctx context.Context, vs ...T) error {
	args := make([]argument, 0, 2*len(vs))
	for _, v := range vs {
		args = append(args, encodeArg(v), encodeArg(true))
	}
	return s.call(ctx, dictUpdate, args...).noResult()
}

// Remove removes v. It returns [ErrNoKey] if v is not in the set.
func (s *Set[T]) Remove(ctx context.Context, v T) error {
	return s.call(ctx, dictDelete, encodeArg(v)).noResult()
}

// Discard removes the values vs from the set, in one call, like Python's s -= vs. It ignores values
// that are not in the set.
func (s *Set[T]) Discard(ctx context.Context, vs ...T) error {
	return s.call(ctx, dictDiscard, encodeArgs(vs)...).noResult()
}

// Keep removes all elements except vs, in one call, like Python's s &= vs.
func (s *Set[T]) Keep(ctx context.Context, vs ...T) error {
	return s.call(ctx, dictKeep, encodeArgs(vs)...).noResult()
}

// Pop removes an arbitrary element and returns it. It returns [ErrNoKey] if the set is empty.
func (s *Set[T]) Pop(ctx context.Context) (T, error) {
	v, _, err := twoResults[T, bool](s.callUndo(ctx, dictUpdate.newRequest, dictFirst))
	return v, err
}

// All returns the elements, ordered by their encodings.
func (s *Set[T]) All(ctx context.Context) ([]T, error) { return allResults[T](s.call(ctx, dictKeys)) }
