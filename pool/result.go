package pool

import (
	"context"
	"sync"
)

// A Result is what an asynchronous call will have returned: Python's AsyncResult. Its methods may
// be called by several goroutines.
type Result[T any] struct {
	done chan struct{}

	mu    sync.Mutex
	then  []func(T, error)
	value T // value and err are set before done is closed
	err   error
}

func newResult[T any]() *Result[T] { return &Result[T]{done: make(chan struct{})} }

// Done is closed when there is a result, for a select.
func (r *Result[T]) Done() <-chan struct{} { return r.done }

// Ready reports whether there is a result.
func (r *Result[T]) Ready() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}

// Successful reports whether the result is no error; ErrNotReady if there is none yet.
func (r *Result[T]) Successful() (bool, error) {
	if !r.Ready() {
		return false, ErrNotReady
	}
	return r.err == nil, nil
}

// Wait waits until there is a result or ctx is done, whose cause it returns then.
func (r *Result[T]) Wait(ctx context.Context) error {
	select {
	case <-r.done:
		return nil
	default:
	}
	select {
	case <-r.done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Get waits like Wait, and returns the result. What it holds of shared memory is the caller's to
// close, once.
func (r *Result[T]) Get(ctx context.Context) (T, error) {
	if err := r.Wait(ctx); err != nil {
		var zero T
		return zero, err
	}
	return r.value, r.err
}

// Then has f called with the result: at once if there is one, and otherwise on a goroutine that
// serves a worker, so f should be short: it may hand in more tasks, and must not wait for them.
// Python's callback and error_callback.
func (r *Result[T]) Then(f func(value T, err error)) {
	r.mu.Lock()
	if !r.Ready() {
		r.then = append(r.then, f)
		r.mu.Unlock()
		return
	}
	r.mu.Unlock()
	f(r.value, r.err)
}

// set makes the result, unless there is one.
func (r *Result[T]) set(value T, err error) {
	r.mu.Lock()
	if r.Ready() {
		r.mu.Unlock()
		return
	}
	r.value, r.err = value, err
	then := r.then
	close(r.done)
	r.mu.Unlock()
	for _, f := range then {
		f(value, err)
	}
}
