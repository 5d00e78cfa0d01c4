//go:build cgo && linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/ipc/pickle"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/wire"
)

// A kind is a kind of object, with the numbers of SHOAL_KIND in shoal.h.
type kind uint8

const (
	kindNone kind = iota
	kindTensor
	kindMessage
	kindQueue
	kindJoinable
	kindSender
	kindReceiver
	kindPipe
	kindLatest
	kindMutex
	kindRMutex
	kindSemaphore
	kindCond
	kindEvent
	kindBarrier
	kindMemory
	kindListener
	kindCanceller
)

var kindNames = [...]string{"nothing", "tensor", "message", "queue", "joinable queue", "sender", "receiver", "pipe",
	"Latest", "mutex", "recursive mutex", "semaphore", "condition", "event", "barrier", "memory", "listener",
	"canceller"}

func (k kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// The types of this library's objects, as Go programs of the domain name them.
type (
	value    = pickle.Value
	queue    = ipc.Queue[value]
	joinable = ipc.JoinableQueue[value]
	sender   = ipc.Sender[value]
	receiver = ipc.Receiver[value]
	pipe     = ipc.PipeEnd[value, value]
	latest   = ipc.Latest[value]
)

// The types are registered so that an export can carry each of them as an any.
func init() {
	wire.RegisterType[value]("libshoal.Message")
	wire.RegisterType[*queue]("libshoal.Queue")
	wire.RegisterType[*joinable]("libshoal.JoinableQueue")
	wire.RegisterType[*sender]("libshoal.Sender")
	wire.RegisterType[*receiver]("libshoal.Receiver")
	wire.RegisterType[*pipe]("libshoal.Pipe")
	wire.RegisterType[*latest]("libshoal.Latest")
}

// An object is a value of this library with a count of uses: its handles, exports and forks.
// Each use must be released; the last one closes the value. It may be used by several threads.
type object struct {
	kind  kind
	value any
	uses  atomic.Int64 // handles, exports and forks that hold it

	in  source // nil if nothing can be received from it
	out sink   // nil if nothing can be sent to it

	closedEnds atomic.Uint32 // ends closed by shoal_close_end
	span       *span         // of a tensor in shared memory
	pins       *pinned       // of a message or memory, the pointers that C has
	mu         sync.Mutex
	readiness  *readiness // its descriptor, or nil; guarded by mu
}

// A source is an object that messages are received from. Get waits for a message, and TryGet
// returns [ipc.ErrEmpty] if there is none; the caller must close the message. Poll waits until a
// get would not wait. Len returns the number of messages.
type source interface {
	Get(ctx context.Context) (value, error)
	TryGet() (value, error)
	Poll(ctx context.Context) error
	Len() int
}

// A sink is an object that messages are sent to. Put waits for a free slot, and TryPut returns
// [ipc.ErrFull] if there is none. The caller still owns the message.
type sink interface {
	Put(ctx context.Context, v value) error
	TryPut(v value) error
}

// pipeSource and pipeSink give the methods of a pipe the names of a queue's.
type (
	pipeSource struct{ *pipe }
	pipeSink   struct{ *pipe }
)

func (p pipeSource) Get(ctx context.Context) (value, error) { return p.Recv(ctx) }
func (p pipeSource) TryGet() (value, error)                 { return p.TryRecv() }
func (p pipeSink) Put(ctx context.Context, v value) error   { return p.Send(ctx, v) }
func (p pipeSink) TryPut(v value) error                     { return p.TrySend(v) }

// newObject returns an object without uses for a value of one of the types of this library. It
// returns nil for a value of another type, which it does not close.
func newObject(v any) *object {
	o := &object{value: v, kind: kindOf(v)}
	switch v := v.(type) {
	case nil:
		return nil
	case *queue:
		o.in, o.out = v, v
	case *joinable:
		o.in, o.out = v, v
	case *sender:
		o.out = v
	case *receiver:
		o.in = v
	case *pipe:
		o.in, o.out = pipeSource{v}, pipeSink{v}
	case *tensor.Tensor:
		o.span = spans.add(v)
	}
	if o.kind == kindNone {
		return nil
	}
	return o
}

// kindOf returns the kind of a value, or kindNone for a value of another type.
func kindOf(v any) kind {
	switch v.(type) {
	case *tensor.Tensor:
		return kindTensor
	case value:
		return kindMessage
	case *queue:
		return kindQueue
	case *joinable:
		return kindJoinable
	case *sender:
		return kindSender
	case *receiver:
		return kindReceiver
	case *pipe:
		return kindPipe
	case *latest:
		return kindLatest
	}
	return kindOfLock(v)
}

func kindOfLock(v any) kind {
	switch v.(type) {
	case *ipc.Mutex:
		return kindMutex
	case *ipc.RecursiveMutex:
		return kindRMutex
	case *ipc.Semaphore:
		return kindSemaphore
	case *ipc.Cond:
		return kindCond
	case *ipc.Event:
		return kindEvent
	case *ipc.Barrier:
		return kindBarrier
	case *ipc.Memory:
		return kindMemory
	case *ipc.Listener[int]:
		return kindListener
	}
	return kindNone
}

// addObject returns a handle of a new object for v. The handle owns v, and addObject closes v if it
// returns an error. The error wraps errType if C programs cannot use the type of v, and errTooLarge
// if all handles are in use.
func addObject(v any) (handle, error) {
	o := newObject(v)
	if o == nil {
		err := fmt.Errorf("%w: the object has the Go type %T, which C programs cannot use", errType, v)
		if c, ok := v.(io.Closer); ok {
			err = errors.Join(err, c.Close())
		}
		return 0, err
	}
	o.uses.Store(1)
	h, err := handles.add(o)
	if err != nil {
		o.release()
	}
	return h, err
}

// retain adds a use, which the caller must release. It returns false if the object has been
// released.
func (o *object) retain() bool {
	for {
		n := o.uses.Load()
		if n <= 0 {
			return false
		}
		if o.uses.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// release drops a use. With the last one it closes the value, and returns the error of that.
func (o *object) release() error {
	if o.uses.Add(-1) != 0 {
		return nil
	}
	o.mu.Lock()
	o.readiness.close()
	o.readiness = nil
	o.mu.Unlock()
	o.pins.unpin()
	spans.remove(o.span)
	if c, ok := o.value.(interface{ Close() error }); ok {
		return c.Close()
	}
	return nil
}

// duplicate returns a second handle of the object of h, which the caller must close. The error
// wraps errHandle if h is invalid, or errUnsupported if it is a listener.
func duplicate(h handle) (handle, error) {
	o, err := handles.find(h)
	if err != nil {
		return 0, err
	}
	if o.kind == kindListener {
		return 0, fmt.Errorf("duplicate a listener: %w", errUnsupported)
	}
	if !o.retain() {
		return 0, fmt.Errorf("duplicate: %w: the handle was closed by another thread", errHandle)
	}
	copied, err := handles.add(o)
	if err != nil {
		o.release()
	}
	return copied, err
}

// findAs returns the value of h, which must have type T. The handle still owns it. The error
// wraps errHandle if h is not open or its value has another type.
func findAs[T any](h handle) (T, error) {
	o, err := handles.find(h)
	if err == nil {
		if v, ok := o.value.(T); ok {
			return v, nil
		}
		err = wrongKind(o.kind, kindOf(*new(T)))
	}
	return *new(T), err
}

func wrongKind(got, want kind) error {
	return fmt.Errorf("%w: it names a %v, want a %v", errHandle, got, want)
}

// findReceiver returns the object of h, with a source to receive messages from. The handle still
// owns it. The error wraps errHandle if there is no such object, and [ipc.ErrClosed] if this
// process closed the receiving end.
func findReceiver(h handle) (*object, error) {
	o, err := handles.find(h)
	switch {
	case err != nil:
	case o.in == nil:
		err = fmt.Errorf("get: %w: nothing can be received from a %v", errHandle, o.kind)
	case o.closedEnds.Load()&receiving != 0:
		err = fmt.Errorf("get: %w: this process closed the receiving end", ipc.ErrClosed)
	}
	return o, err
}

// findSender returns the object of h, with a sink to send messages to. The handle still owns it.
// The error wraps errHandle if there is no such object, and [ipc.ErrClosed] if this process
// closed the sending end.
func findSender(h handle) (*object, error) {
	o, err := handles.find(h)
	switch {
	case err != nil:
	case o.out == nil:
		err = fmt.Errorf("put: %w: nothing can be sent to a %v", errHandle, o.kind)
	case o.closedEnds.Load()&sending != 0:
		err = fmt.Errorf("put: %w: this process closed the sending end", ipc.ErrClosed)
	}
	return o, err
}
