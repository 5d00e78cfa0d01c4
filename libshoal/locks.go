//go:build cgo && linux

package main

// #include "native.h"
// #include "shoal.h"
import "C"

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/codec"
	"github.com/shoal-mp/shoal/ipc"
)

// newLocks has the function that makes an object of each kind of lock. n is its number of permits
// or parties.
var newLocks = map[kind]func(n int) (any, error){
	kindMutex:  func(int) (any, error) { return anyOf(ipc.NewMutex()) },
	kindRMutex: func(int) (any, error) { return anyOf(ipc.NewRecursiveMutex()) },
	kindEvent:  func(int) (any, error) { return anyOf(ipc.NewEvent()) },
	kindBarrier: func(n int) (any, error) {
		return anyOf(ipc.NewBarrier(n))
	},
	kindSemaphore: func(n int) (any, error) { return anyOf(ipc.NewSemaphore(n)) },
}

func anyOf[T any](v T, err error) (any, error) { return v, err }

//export goLockNew
func goLockNew(k, n C.int, to *C.shoal_handle) (code C.int) {
	defer recoverTo(&code)
	if err := requireMaking(to, "the out parameter"); err != nil {
		return result(err)
	}
	v, err := newLocks[kind(k)](int(n))
	return storeNew(to, v, err)
}

//export goBoundedNew
func goBoundedNew(permits C.int, to *C.shoal_handle) (code C.int) {
	defer recoverTo(&code)
	if err := requireMaking(to, "semaphore"); err != nil {
		return result(err)
	}
	s, err := ipc.NewBoundedSemaphore(int(permits))
	return storeNew(to, s, err)
}

// A lock is a mutex, or a recursive mutex with its owner. Its methods are those that [ipc.Mutex]
// has.
type lock interface {
	Lock(ctx context.Context) error
	TryLock() error
	Unlock() error
	MarkConsistent() error
}

// An ownedLock is a recursive mutex for the thread that owner names.
type ownedLock struct {
	*ipc.RecursiveMutex
	owner ipc.Owner
}

func (l ownedLock) Lock(ctx context.Context) error { return l.RecursiveMutex.Lock(ctx, l.owner) }
func (l ownedLock) TryLock() error                 { return l.RecursiveMutex.TryLock(l.owner) }
func (l ownedLock) Unlock() error                  { return l.RecursiveMutex.Unlock(l.owner) }
func (l ownedLock) MarkConsistent() error          { return l.RecursiveMutex.MarkConsistent(l.owner) }

// findLock returns the lock of h: a mutex, a recursive mutex for the calling thread of C, or the
// mutex of a cond. The error wraps errHandle if h has none.
func findLock(h handle) (lock, error) {
	o, err := handles.find(h)
	if err != nil {
		return nil, err
	}
	switch v := o.value.(type) {
	case *ipc.Mutex:
		return v, nil
	case *ipc.Cond:
		return v.Mutex(), nil
	case *ipc.RecursiveMutex:
		return ownedLock{v, ownerOf(uint64(C.shoal_native_owner()))}, nil
	}
	return nil, wrongKind(o.kind, kindMutex)
}

// owners maps the number of a thread to its identity as an owner of recursive locks.
var owners sync.Map

func ownerOf(thread uint64) ipc.Owner {
	if o, ok := owners.Load(thread); ok {
		return o.(ipc.Owner)
	}
	o, _ := owners.LoadOrStore(thread, ipc.NewOwner())
	return o.(ipc.Owner)
}

//export goLockHolder
func goLockHolder(h C.shoal_handle, process *C.int) (code C.int) {
	defer recoverTo(&code)
	if err := requirePointer(process, "process"); err != nil {
		return result(err)
	}
	o, err := handles.find(handle(h))
	if err != nil {
		return result(err)
	}
	var pid int
	switch v := o.value.(type) {
	case *ipc.Mutex:
		pid, err = holderOf(v)
	case *ipc.Cond:
		pid, err = holderOf(v.Mutex())
	case *ipc.RecursiveMutex:
		pid, err = holderOf(v)
	default:
		err = wrongKind(o.kind, kindMutex)
	}
	*process = C.int(pid)
	return result(err)
}

// holderOf returns the id of the process that holds the lock l, or 0 if it is free. It reads the
// lock's block, which the encoding of the lock names.
func holderOf[T any](l T) (pid int, err error) {
	plan, err := codec.PlanOf[T]()
	if err != nil {
		return 0, err
	}
	var e codec.Encoder
	e.Reset(nil)
	defer func() { e.Done(false) }()
	if err := plan.Encode(&e, l); err != nil {
		return 0, err
	}
	d, err := arena.Default()
	if err != nil {
		return 0, err
	}
	s, err := d.OpenSync(e.Message().Blocks[0], arena.FormMutex)
	if err != nil {
		return 0, err
	}
	defer s.Close()
	return arena.Mutex{Sync: s}.Holder(), nil
}

//export goLock
func goLock(h C.shoal_handle, timeout C.double) (code C.int) {
	defer recoverTo(&code)
	l, err := findLock(handle(h))
	if err != nil {
		return result(err)
	}
	if err = l.TryLock(); timeout == 0 || !errors.Is(err, ipc.ErrLocked) {
		return result(err)
	}
	t, err := timeoutOf(float64(timeout))
	if err == nil {
		err = wait(l.Lock).run(t)
	}
	return result(err)
}

//export goUnlock
func goUnlock(h C.shoal_handle) (code C.int) {
	defer recoverTo(&code)
	l, err := findLock(handle(h))
	if err == nil {
		err = l.Unlock()
	}
	return result(err)
}

//export goMarkConsistent
func goMarkConsistent(h C.shoal_handle) (code C.int) {
	defer recoverTo(&code)
	l, err := findLock(handle(h))
	if err == nil {
		err = l.MarkConsistent()
	}
	return result(err)
}

//export goAcquire
func goAcquire(h C.shoal_handle, timeout C.double) (code C.int) {
	defer recoverTo(&code)
	s, err := findAs[*ipc.Semaphore](handle(h))
	if err != nil {
		return result(err)
	}
	if err = s.TryAcquire(); timeout == 0 || !errors.Is(err, ipc.ErrLocked) {
		return result(err)
	}
	t, err := timeoutOf(float64(timeout))
	if err == nil {
		err = wait(s.Acquire).run(t)
	}
	return result(err)
}

//export goRelease
func goRelease(h C.shoal_handle) (code C.int) {
	defer recoverTo(&code)
	s, err := findAs[*ipc.Semaphore](handle(h))
	if err == nil {
		err = s.Release()
	}
	return result(err)
}

//export goPermits
func goPermits(h C.shoal_handle, permits *C.int) (code C.int) {
	defer recoverTo(&code)
	if err := requirePointer(permits, "permits"); err != nil {
		return result(err)
	}
	s, err := findAs[*ipc.Semaphore](handle(h))
	if err != nil {
		return result(err)
	}
	n, err := s.Permits()
	if err == nil {
		*permits = C.int(n)
	}
	return result(err)
}

//export goCondNew
func goCondNew(mutex C.shoal_handle, to *C.shoal_handle) (code C.int) {
	defer recoverTo(&code)
	if err := requireMaking(to, "cond"); err != nil {
		return result(err)
	}
	var m *ipc.Mutex
	if mutex != 0 {
		var err error
		if m, err = findAs[*ipc.Mutex](handle(mutex)); err != nil {
			return result(err)
		}
	}
	c, err := ipc.NewCond(m)
	return storeNew(to, c, err)
}

//export goCondWait
func goCondWait(h C.shoal_handle, timeout C.double) (code C.int) {
	defer recoverTo(&code)
	c, err := findAs[*ipc.Cond](handle(h))
	if err != nil {
		return result(err)
	}
	t, err := timeoutOf(float64(timeout))
	if err != nil {
		return result(err)
	}
	err = wait(c.Wait).runParked(t)
	if errors.Is(err, ipc.ErrLocked) { // then the mutex is not held, whatever ended the wait
		storeError(err.Error(), 0)
		return C.SHOAL_LOCKED
	}
	return result(err)
}

//export goCondNotify
func goCondNotify(h C.shoal_handle, n C.int) (code C.int) {
	defer recoverTo(&code)
	c, err := findAs[*ipc.Cond](handle(h))
	switch {
	case err != nil:
	case n < 0:
		err = c.NotifyAll()
	default:
		err = c.Notify(int(n))
	}
	return result(err)
}

//export goEventSet
func goEventSet(h C.shoal_handle, set C.int) (code C.int) {
	defer recoverTo(&code)
	e, err := findAs[*ipc.Event](handle(h))
	switch {
	case err != nil:
	case set != 0:
		err = e.Set()
	default:
		err = e.Clear()
	}
	return result(err)
}

//export goEventIsSet
func goEventIsSet(h C.shoal_handle, set *C.int) (code C.int) {
	defer recoverTo(&code)
	if err := requirePointer(set, "set"); err != nil {
		return result(err)
	}
	e, err := findAs[*ipc.Event](handle(h))
	if err != nil {
		return result(err)
	}
	*set = 0
	if e.IsSet() {
		*set = 1
	}
	return C.SHOAL_OK
}

//export goEventWait
func goEventWait(h C.shoal_handle, timeout C.double) (code C.int) {
	defer recoverTo(&code)
	e, err := findAs[*ipc.Event](handle(h))
	if err != nil {
		return result(err)
	}
	t, err := timeoutOf(float64(timeout))
	switch {
	case err != nil || e.IsSet():
	case t == 0:
		err = fmt.Errorf("wait: %w: the event is not set", errTimeout)
	default:
		err = wait(e.Wait).run(t)
	}
	return result(err)
}

//export goBarrierWait
func goBarrierWait(h C.shoal_handle, timeout C.double, index *C.int) (code C.int) {
	defer recoverTo(&code)
	b, err := findAs[*ipc.Barrier](handle(h))
	if err != nil {
		return result(err)
	}
	t, err := timeoutOf(float64(timeout))
	if err != nil {
		return result(err)
	}
	var before int
	err = wait(func(ctx context.Context) (err error) {
		before, err = b.Wait(ctx)
		return err
	}).runOnce(t)
	if err == nil && index != nil {
		*index = C.int(before)
	}
	return result(err)
}

//export goBarrierReset
func goBarrierReset(h C.shoal_handle, abort C.int) (code C.int) {
	defer recoverTo(&code)
	b, err := findAs[*ipc.Barrier](handle(h))
	switch {
	case err != nil:
	case abort != 0:
		err = b.Abort()
	default:
		err = b.Reset()
	}
	return result(err)
}

//export goBarrierState
func goBarrierState(h C.shoal_handle, parties, waiting, broken *C.int) (code C.int) {
	defer recoverTo(&code)
	b, err := findAs[*ipc.Barrier](handle(h))
	if err != nil {
		return result(err)
	}
	if parties != nil {
		*parties = C.int(b.Parties())
	}
	if waiting != nil {
		*waiting = C.int(b.Waiting())
	}
	if broken != nil {
		*broken = 0
		if b.Broken() {
			*broken = 1
		}
	}
	return C.SHOAL_OK
}
