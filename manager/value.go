package manager

import (
	"context"

	"github.com/shoal-mp/shoal/ipc"
)

// A Value is a number in the server, like an [Array] with one element. For values of other
// types, use a [Dict] or a [Namespace]. All methods may be called from several goroutines.
type Value[T ipc.Number] struct{ typed[Value[T]] }

// NewValue creates a Value with the initial value v. The caller must close it.
func NewValue[T ipc.Number](ctx context.Context, m *Manager, v T) (*Value[T], error) {
	a, err := NewArray(ctx, m, v)
	return &Value[T]{typed[Value[T]]{a.proxy}}, err
}

func (v *Value[T]) array() *Array[T] { return &Array[T]{typed[Array[T]]{v.proxy}} }

// Get returns the value. It blocks only while a transaction that has changed the value is in
// progress.
func (v *Value[T]) Get(ctx context.Context) (T, error) { return v.array().Get(ctx, 0) }

// Set sets the value.
func (v *Value[T]) Set(ctx context.Context, to T) error { return v.array().Set(ctx, 0, to) }

// Add atomically adds delta and returns the sum.
func (v *Value[T]) Add(ctx context.Context, delta T) (T, error) { return v.array().Add(ctx, 0, delta) }

// Swap atomically sets the value and returns the previous one.
func (v *Value[T]) Swap(ctx context.Context, to T) (T, error) {
	w, err := oneResult[uint64](v.call(ctx, arraySwap, encodeArg(0), encodeArg(encodeWord(to))))
	return decodeWord[T](w), err
}

// CompareAndSwap atomically sets the value to to if it equals old, and reports whether it did.
func (v *Value[T]) CompareAndSwap(ctx context.Context, old, to T) (bool, error) {
	return v.array().CompareAndSwap(ctx, 0, old, to)
}
