package pool

import (
	"context"
	"log/slog"
	"sync"

	"github.com/shoal-mp/shoal/internal/goexit"
)

// A Result is the future result of an asynchronous call, like Python's AsyncResult. All methods may
// be called from several goroutines.
type Result[T any] struct {
	done chan struct{}

	mu      sync.Mutex
	waiting []func(T, error)
	value   T // value and err are set before done is closed
	err     error
}

func newResult[T any]() *Result[T] { return &Result[T]{done: make(chan struct{})} }

// Done returns a channel that is closed when the result is available.
func (r *Result[T]) Done() <-chan struct{} { return r.done }

// Ready reports whether the result is available.
func (r *Result[T]) Ready() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}

// Get waits for the result and returns it. The caller must close the result's shared memory, once,
// even if Get is called repeatedly. If ctx is done first, Get returns its cause. Otherwise the
// error is the error of the call.
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

// Then registers a callback for the result, like Python's callback and error_callback. If the
// result is available, Then calls f itself before it returns. Otherwise f runs later on a new
// goroutine, and the goroutine that serves a worker waits for it. f should therefore return
// quickly: it may start further calls, but must not wait for them.
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

// then calls now immediately if the result is available. Otherwise it registers later, which set
// calls.
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

// set completes the result, unless it is complete already, and calls the registered functions.
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
