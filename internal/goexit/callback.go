package goexit

import (
	"fmt"
	"log/slog"
	"runtime/debug"
)

// Recover calls f and returns its error. If f panics, the error wraps kind and has the panic value
// and the stack. Goroutines of the library must call user code through Recover if an error can
// reach the caller, because the program cannot recover a panic there.
func Recover(kind error, f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v\n%s", kind, p, debug.Stack())
		}
	}()
	return f()
}

// RunCallback calls f, a callback of the program that cannot return an error, such as a hook. It
// logs a panic of f under the given name. If f calls runtime.Goexit, RunCallback logs that as well,
// and the goroutine ends.
func RunCallback(name string, f func()) {
	returned := false
	defer func() {
		if p := recover(); p != nil {
			slog.Error(name+" panicked", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
		} else if !returned {
			slog.Error(name+" did not return", "cause", Err)
		}
	}()
	f()
	returned = true
}

// Isolate is RunCallback on a new goroutine. It returns when f has ended, even by runtime.Goexit.
func Isolate(name string, f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		RunCallback(name, f)
	}()
	<-done
}
