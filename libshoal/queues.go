//go:build cgo && linux

package main

// #include "shoal.h"
import "C"

import (
	"errors"
	"fmt"
	"io"
	"time"
	"unsafe"

	"github.com/shoal-mp/shoal/ipc"
)

// Ends of a queue, with the numbers of shoal.h.
const (
	sending   = C.SHOAL_SENDING
	receiving = C.SHOAL_RECEIVING
)

// capacityOf converts the capacity of a new queue: [ipc.Unbounded] for SHOAL_UNBOUNDED. The
// error wraps errTooLarge unless n is 1 to 2^30.
func capacityOf(n C.int64_t) (int, error) {
	if n == C.SHOAL_UNBOUNDED {
		return ipc.Unbounded, nil
	}
	if n < 1 || n > 1<<30 {
		return 0, fmt.Errorf("new queue: %w: capacity %d, want 1 to 2^30, or SHOAL_UNBOUNDED", errTooLarge, n)
	}
	return int(n), nil
}

//export goQueueNew
func goQueueNew(capacity C.int64_t, tasks C.int, to *C.shoal_handle) (code C.int) {
	defer recoverTo(&code)
	n, err := capacityOf(capacity)
	if err == nil {
		err = requireMaking(to, "queue")
	}
	if err != nil {
		return result(err)
	}
	if tasks != 0 {
		q, err := ipc.NewJoinableQueue[value](n)
		return storeNew(to, q, err)
	}
	q, err := ipc.NewQueue[value](n)
	return storeNew(to, q, err)
}

//export goTaskDone
func goTaskDone(h C.shoal_handle) (code C.int) {
	defer recoverTo(&code)
	j, err := findAs[*joinable](handle(h))
	if err == nil {
		err = j.TaskDone()
	}
	return result(err)
}

//export goTaskJoin
func goTaskJoin(h C.shoal_handle, timeout C.double) (code C.int) {
	defer recoverTo(&code)
	j, err := findAs[*joinable](handle(h))
	if err != nil {
		return result(err)
	}
	t, err := timeoutOf(float64(timeout))
	if err == nil {
		err = wait(j.Join).runOrTry(t)
	}
	return result(err)
}

// runOrTry runs the operation for at most timeout, as [wait.run] does. If that is 0, it tests
// its condition once; the error then wraps errTimeout if the condition is not met.
func (w wait) runOrTry(timeout time.Duration) error {
	if timeout == 0 {
		return w.finalTry()
	}
	return w.run(timeout)
}

//export goPipeNew
func goPipeNew(duplex C.int, a, b *C.shoal_handle) (code C.int) {
	defer recoverTo(&code)
	if err := requireMaking(a, "a"); err != nil {
		return result(err)
	}
	if err := requirePointer(b, "b"); err != nil {
		return result(err)
	}
	first, second, err := newPipe(duplex != 0)
	if err != nil {
		return result(err)
	}
	h, err := addObject(first)
	if err != nil {
		return result(errors.Join(err, second.Close()))
	}
	if code := storeNew(b, second, nil); code != C.SHOAL_OK {
		closeHandle(h)
		return code
	}
	*a = C.shoal_handle(h)
	return C.SHOAL_OK
}

// newPipe returns the two ends of a pipe: two that send and receive if duplex is true, or a
// receiver and a sender. The caller must close both.
func newPipe(duplex bool) (a, b io.Closer, err error) {
	if duplex {
		return closerPair(ipc.Pipe[value, value]())
	}
	q, err := ipc.NewQueue[value](pipeCapacity)
	if err != nil {
		return nil, nil, err
	}
	defer q.Close()
	r, err := q.Receiver().Clone()
	if err != nil {
		return nil, nil, err
	}
	s, err := q.Sender().Clone()
	if err != nil {
		return nil, nil, errors.Join(err, r.Close())
	}
	return r, s, nil
}

// pipeCapacity is the capacity of a one-way pipe, as of the pipes of package ipc.
const pipeCapacity = 64

func closerPair[A, B io.Closer](a A, b B, err error) (io.Closer, io.Closer, error) { return a, b, err }

//export goEnd
func goEnd(h C.shoal_handle, end C.int, to *C.shoal_handle) (code C.int) {
	defer recoverTo(&code)
	if err := requirePointer(to, "result"); err != nil {
		return result(err)
	}
	o, err := handles.find(handle(h))
	if err != nil {
		return result(err)
	}
	switch v := o.value.(type) {
	case *queue:
		switch end {
		case sending:
			s, err := v.Sender().Clone()
			return storeNew(to, s, err)
		case receiving:
			r, err := v.Receiver().Clone()
			return storeNew(to, r, err)
		}
		return result(fmt.Errorf("end of a queue: %w: end %d, want SHOAL_SENDING or SHOAL_RECEIVING", errArgument, end))
	}
	return result(fmt.Errorf("end of a queue: %w", wrongKind(o.kind, kindQueue)))
}

//export goCloseEnd
func goCloseEnd(h C.shoal_handle, ends C.int) (code C.int) {
	defer recoverTo(&code)
	if ends&^(sending|receiving) != 0 || ends == 0 {
		return result(fmt.Errorf("close end: %w: ends %d, want SHOAL_SENDING, SHOAL_RECEIVING or both",
			errArgument, ends))
	}
	o, err := handles.find(handle(h))
	if err == nil && o.in == nil && o.out == nil {
		err = wrongKind(o.kind, kindQueue)
	}
	if err != nil {
		return result(err)
	}
	return result(o.closeEnds(uint32(ends)))
}

// closeEnds closes ends of a queue or pipe for this process: sending, receiving, or both. The
// value of a pipe or a joinable queue is closed once both are.
func (o *object) closeEnds(ends uint32) error {
	now := o.closedEnds.Or(ends) | ends
	switch v := o.value.(type) {
	case *queue:
		var errs [2]error
		if ends&sending != 0 {
			errs[0] = v.Sender().Close()
		}
		if ends&receiving != 0 {
			errs[1] = v.Receiver().Close()
		}
		return errors.Join(errs[:]...)
	case *sender:
		if ends&sending != 0 {
			return v.Close()
		}
	case *receiver:
		if ends&receiving != 0 {
			return v.Close()
		}
	case interface{ Close() error }: // its ends close together
		if now == sending|receiving {
			return v.Close()
		}
	}
	return nil
}

//export goFinish
func goFinish(h C.shoal_handle) (code C.int) {
	defer recoverTo(&code)
	o, err := handles.find(handle(h))
	if err != nil {
		return result(err)
	}
	f, ok := o.value.(interface{ Finish() error })
	if !ok {
		return result(fmt.Errorf("finish: %w", wrongKind(o.kind, kindQueue)))
	}
	return result(f.Finish())
}

//export goLength
func goLength(h C.shoal_handle, length *C.int64_t) (code C.int) {
	defer recoverTo(&code)
	if err := requirePointer(length, "length"); err != nil {
		return result(err)
	}
	o, err := handles.find(handle(h))
	if err != nil {
		return result(err)
	}
	l, ok := o.value.(interface{ Len() int })
	if !ok {
		return result(fmt.Errorf("length: %w", wrongKind(o.kind, kindQueue)))
	}
	*length = C.int64_t(l.Len())
	return C.SHOAL_OK
}

//export goCapacity
func goCapacity(h C.shoal_handle, capacity *C.int64_t) (code C.int) {
	defer recoverTo(&code)
	if err := requirePointer(capacity, "capacity"); err != nil {
		return result(err)
	}
	o, err := handles.find(handle(h))
	if err != nil {
		return result(err)
	}
	switch v := o.value.(type) {
	case *pipe:
		*capacity = pipeCapacity
	case interface{ Cap() int }:
		*capacity = C.int64_t(v.Cap())
	default:
		return result(fmt.Errorf("capacity: %w", wrongKind(o.kind, kindQueue)))
	}
	return C.SHOAL_OK
}

//export goPoll
func goPoll(h C.shoal_handle, timeout C.double) (code C.int) {
	defer recoverTo(&code)
	o, err := findReceiver(handle(h))
	if err != nil {
		return result(err)
	}
	t, err := timeoutOf(float64(timeout))
	if err != nil {
		return result(err)
	}
	if err := o.in.Poll(expired); err == nil || t == 0 || !isContextError(err) {
		return result(errorOfTry(err, ipc.ErrEmpty))
	}
	return result(wait(o.in.Poll).run(t))
}

// errorOfTry returns err, or state if err is the error of an expired context.
func errorOfTry(err, state error) error {
	if err != nil && isContextError(err) {
		return state
	}
	return err
}

//export goWaitAny
func goWaitAny(objects *C.shoal_handle, count C.size_t, timeout C.double, ready *C.uint8_t) (code C.int) {
	defer recoverTo(&code)
	if objects == nil || ready == nil || count == 0 || count > 4096 {
		return result(fmt.Errorf("wait: %w: %d objects (NULL: %t, ready NULL: %t), want 1 to 4096", errArgument, count,
			objects == nil, ready == nil))
	}
	t, err := timeoutOf(float64(timeout))
	if err != nil {
		return result(err)
	}
	list := make([]*object, count)
	for i, h := range unsafe.Slice(objects, count) {
		if list[i], err = handles.find(handle(h)); err != nil {
			return result(fmt.Errorf("wait for object %d: %w", i, err))
		}
	}
	return result(waitAny(list, t, unsafe.Slice((*uint8)(ready), count)))
}

//export goReadyFD
func goReadyFD(h C.shoal_handle, after C.uint64_t, fd *C.int) (code C.int) {
	defer recoverTo(&code)
	if err := requirePointer(fd, "fd"); err != nil {
		return result(err)
	}
	o, err := handles.find(handle(h))
	if err != nil {
		return result(err)
	}
	n, err := o.arm(uint64(after))
	if err != nil {
		return result(fmt.Errorf("ready descriptor: %w", err))
	}
	*fd = n
	return C.SHOAL_OK
}
