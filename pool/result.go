package pool

import (
	"context"
	"iter"
	"sync"

	"github.com/shoal-mp/shoal/internal/goexit"
)

// A Result is the future result of an asynchronous call, like Python's AsyncResult. All methods may
// be called from several goroutines.
type Result[T any] struct {
	done   chan struct{}
	cancel func() bool // see Cancel

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

// Get waits for the result and returns it. It may be called any number of times. The caller must
// close the result's shared memory, once, even if Get is called repeatedly. If ctx is done
// first, Get returns its cause. Otherwise the error is the error of the call.
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

// Cancel cancels the call, unless its result is available, and reports whether it did. The result
// is then [ErrCanceled]. The pool drops the values that no worker has started, and cancels the
// context of the running ones. Unlike Future.cancel of Python's concurrent.futures, Cancel does not
// fail because the function is running.
func (r *Result[T]) Cancel() bool { return r.cancel() }

// Then registers a callback for the result, like Python's callback and error_callback. If the
// result is available, Then calls f itself before it returns. Otherwise f runs later on a new
// goroutine, and the goroutine that serves a worker waits for it. f should therefore return
// quickly: it may start further calls, but must not wait for them.
func (r *Result[T]) Then(f func(value T, err error)) {
	r.onDone(f, func(value T, err error) {
		goexit.Isolate("pool: callback of Result.Then", func() { f(value, err) })
	})
}

// onDone calls now immediately if the result is available. Otherwise it registers later, which
// complete calls on its goroutine.
func (r *Result[T]) onDone(now, later func(value T, err error)) {
	r.mu.Lock()
	if !r.Ready() {
		r.waiting = append(r.waiting, later)
		r.mu.Unlock()
		return
	}
	r.mu.Unlock()
	now(r.value, r.err)
}

// complete sets the result, value or err, closes r.done, and calls the registered functions. It
// must be called once.
func (r *Result[T]) complete(value T, err error) {
	r.mu.Lock()
	r.value, r.err = value, err
	waiting := r.waiting
	close(r.done)
	r.mu.Unlock()
	for _, f := range waiting {
		f(value, err)
	}
}

// AsCompleted returns an iterator over the results in the order in which they become available,
// like as_completed of Python's concurrent.futures. It yields each result once, with a nil error.
// When ctx is done first, it yields a nil result and the cause of ctx as the last pair.
//
// A loop that breaks after the first result, or after the first one whose Get returns an error,
// corresponds to the modes FIRST_COMPLETED and FIRST_EXCEPTION of concurrent.futures.wait, and a
// loop over all results to ALL_COMPLETED. A break cancels nothing; see [Result.Cancel].
func AsCompleted[T any](ctx context.Context, results ...*Result[T]) iter.Seq2[*Result[T], error] {
	return func(yield func(*Result[T], error) bool) {
		available := make(chan *Result[T], len(results))
		for _, r := range results {
			f := func(T, error) { available <- r }
			r.onDone(f, f)
		}
		for range results {
			select {
			case r := <-available:
				if !yield(r, nil) {
					return
				}
			case <-ctx.Done():
				yield(nil, context.Cause(ctx))
				return
			}
		}
	}
}
