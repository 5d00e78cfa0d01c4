//go:build cgo && linux

package main

// #include "native.h"
import "C"

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/shoal-mp/shoal/ipc"
)

// A readiness is the descriptor of an object that is readable while the object is ready. A
// goroutine waits for the object and then makes the descriptor readable; after that it ends. arm
// starts the next one.
type readiness struct {
	fd     C.int
	cancel context.CancelFunc // ends the goroutine; nil if there is none
	done   sync.WaitGroup
}

// arm returns the descriptor of o, after it has been brought up to date. o owns the descriptor.
// For a Latest, a version greater than after makes it ready. The error wraps errUnsupported if o
// can never be ready, errHandle if o has been released, and errSystem if there is no free
// descriptor.
func (o *object) arm(after uint64) (C.int, error) {
	watch, err := o.watcher(after)
	if err != nil {
		return 0, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.uses.Load() <= 0 { // release closes the descriptor under mu
		return 0, fmt.Errorf("%w: the handle was closed by another thread", errHandle)
	}
	r := o.readiness
	if r == nil {
		r = new(readiness)
		if r.fd = C.shoal_native_eventfd(); r.fd < 0 {
			return 0, fmt.Errorf("%w: eventfd: error %d: raise the limit of open files (ulimit -n)", errSystem, -r.fd)
		}
		o.readiness = r
	}
	r.stop()
	if watch(expired) == nil {
		C.shoal_native_signal(r.fd)
		return r.fd, nil
	}
	C.shoal_native_drain(r.fd)
	r.start(watch)
	return r.fd, nil
}

// start waits for the object on a goroutine, which then makes the descriptor readable. The
// caller must hold the object's mu.
func (r *readiness) start(watch wait) {
	ctx, cancel := context.WithCancel(context.Background())
	r.cancel = cancel
	r.done.Go(func() {
		if err := watch.call(ctx); err == nil || ctx.Err() == nil { // a failed object is ready
			C.shoal_native_signal(r.fd)
		}
	})
}

// stop ends the goroutine and waits for it. The caller must hold the object's mu.
func (r *readiness) stop() {
	if r.cancel != nil {
		r.cancel()
		r.done.Wait()
		r.cancel = nil
	}
}

// close ends the goroutine and closes the descriptor. r may be nil. The caller must hold the
// object's mu.
func (r *readiness) close() {
	if r != nil {
		r.stop()
		C.shoal_native_close(r.fd)
	}
}

// expired is a context with an expired deadline: a wait with it tests its condition once.
var expired = func() context.Context {
	ctx, cancel := context.WithDeadline(context.Background(), time.Unix(1, 0))
	_ = cancel
	return ctx
}()

// watcher returns the wait that ends when o is ready: when a get would not wait, an event is
// set, or a Latest has a version greater than after. The error wraps errUnsupported for an
// object of another kind.
func (o *object) watcher(after uint64) (wait, error) {
	switch v := o.value.(type) {
	case *ipc.Event:
		return func(ctx context.Context) error {
			switch {
			case v.IsSet():
				return nil
			case ctx.Err() != nil:
				return ctx.Err()
			}
			return v.Wait(ctx)
		}, nil
	case *latest:
		return func(ctx context.Context) error {
			if v.Version() > after {
				return nil
			}
			m, _, err := v.Wait(ctx, after)
			m.Close()
			return err
		}, nil
	}
	if o.in == nil {
		return nil,
			fmt.Errorf("%w: a %v is not ready at some time: want a queue, a receiver, a pipe, a Latest or an event",
				errUnsupported, o.kind)
	}
	return o.in.Poll, nil
}

// waitAny waits until one of the objects is ready. It sets ready, which must be as long as objects,
// to 1 for each object that is ready and to 0 for the others. If none is ready, it returns
// ipc.ErrEmpty for a timeout of 0, or else errTimeout after timeout, unless that is forever. It may
// also return errInterrupted, as [wait.run] does.
func waitAny(objects []*object, timeout time.Duration, ready []uint8) error {
	waits := make([]ipc.Poller, len(objects))
	for i, o := range objects {
		w, err := o.watcher(0)
		if err != nil {
			return fmt.Errorf("wait for object %d: %w", i, err)
		}
		waits[i] = ipc.PollFunc(w)
	}
	clear(ready)
	found := false
	for i, w := range waits {
		if err := w.Poll(expired); err == nil || !isContextError(err) {
			ready[i], found = 1, true
		}
	}
	switch {
	case found:
		return nil
	case timeout == 0:
		return fmt.Errorf("wait for %d objects: %w", len(objects), ipc.ErrEmpty)
	}
	return wait(func(ctx context.Context) error {
		at, err := ipc.Wait(ctx, waits...)
		for _, i := range at {
			ready[i] = 1
		}
		return err
	}).runParked(timeout)
}
