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

// Get waits until there is a result, and returns it. The caller closes what the result holds of
// shared memory, once. If ctx is done first, the error is the cause of ctx.
func (r *Result[T]) Get(ctx context.Context) (T, error) {
	if !r.Ready() {
		select {
		case <-r.done:
		case <-ctx.Done():
			var zero T
			return zero, context.Cause(ctx)
		}
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
