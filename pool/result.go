package pool

import (
	"context"
	"log/slog"
	"sync"

	"github.com/shoal-mp/shoal/internal/goexit"
)

// A Result is the result of an asynchronous call: Python's AsyncResult. Several goroutines may call
// its methods.
type Result[T any] struct {
	done chan struct{}

	mu      sync.Mutex
	waiting []func(T, error)
	value   T // value and err are set before done is closed
	err     error
}

func newResult[T any]() *Result[T] { return &Result[T]{done: make(chan struct{})} }

// Done returns a channel that is closed when the result is ready.
func (r *Result[T]) Done() <-chan struct{} { return r.done }

// Ready reports whether the result is ready.
func (r *Result[T]) Ready() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}

// Get waits for the result and returns it. The caller closes what the result holds of shared
// memory, once. If ctx is done first, the error is the cause of ctx. Otherwise the error is that of
// the call.
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

// Then calls f with the result: Python's callback and error_callback. If the result is ready, Then
// calls f at once. Otherwise the goroutine that serves a worker waits while another goroutine calls
// f. So f should be short: it may begin further calls, and must not wait for them.
func (r *Result[T]) Then(f func(value T, err error)) {
	r.then(f, func(value T, err error) {
		done := make(chan struct{})
		go func() {
			defer close(done)
			goexit.Call(func() error { f(value, err); return nil }, func(err error) {
				if err != nil {
					slog.Error("pool: a function given to Then has failed", "cause", err)
				}
			})
		}()
		<-done
	})
}

// then calls now at once if the result is ready, or else has later called when it is.
func (r *Result[T]) then(now, later func(value T, err error)) {
	r.mu.Lock()
	if !r.Ready() {
		r.waiting = append(r.waiting, later)
		r.mu.Unlock()
		return
	}
	r.mu.Unlock()
	now(r.value, r.err)
}

// set makes the result, unless there is one.
func (r *Result[T]) set(value T, err error) {
	r.mu.Lock()
	if r.Ready() {
		r.mu.Unlock()
		return
	}
	r.value, r.err = value, err
	waiting := r.waiting
	close(r.done)
	r.mu.Unlock()
	for _, f := range waiting {
		f(value, err)
	}
}
