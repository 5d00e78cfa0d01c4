//go:build cgo && linux

package main

// #include "native.h"
// #include "shoal.h"
import "C"

import (
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"unsafe"
)

// Note [Fork] A forked child has a dead copy of this library. It loads a second copy and imports
// the objects that the parent had at the fork, by the handles of the parent. The parent numbers its
// forks. It keeps a handle that it closes after a fork, if the handle was made before, until the
// child's lifeline has ended: a pipe that only the child and its own children hold open.

// A forkTable holds the forks of this process with children that may still import. The process
// has one, for any goroutine.
type forkTable struct {
	count atomic.Uint64 // number of forks so far

	mu      sync.Mutex
	open    map[uint64]bool       // numbers of the forks with an open lifeline
	closed  map[handle]*reference // handles that were closed since, and are kept
	pending atomic.Int64          // size of open
}

var forks = forkTable{open: make(map[uint64]bool), closed: make(map[handle]*reference)}

// retainClosed keeps the reference of a closed handle, and its use of the object, for children
// that may import it. It returns false if there are none; the caller must then release the
// object.
func (f *forkTable) retainClosed(r *reference) bool {
	if f.pending.Load() == 0 {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for n := range f.open {
		if n > r.born {
			f.closed[r.handle] = r
			return true
		}
	}
	return false
}

// find returns the object that had the handle at a fork. The caller must release it. The error
// wraps errNotFound if the fork is over or the parent had no such handle.
func (f *forkTable) find(fork uint64, h handle) (*object, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.open[fork] {
		return nil, fmt.Errorf("%w: fork %d of the parent is over: import before shoal_fork_done", errNotFound, fork)
	}
	r := f.closed[h]
	if r == nil {
		if e := handles.entryOf(h); e != nil {
			r = e.Load()
		}
	}
	if r == nil || r.handle != h || r.born >= fork || !r.object.retain() {
		return nil, fmt.Errorf("%w: the parent had no handle %#x at fork %d", errNotFound, uint64(h), fork)
	}
	return r.object, nil
}

// startFork returns the number of a new fork, from 1. The fork ends when its lifeline, the
// reading end of a pipe, reports that no process has the writing end. startFork takes ownership
// of the lifeline.
func (f *forkTable) startFork(lifeline *os.File) uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := f.count.Add(1)
	f.open[n] = true
	f.pending.Add(1)
	go func() {
		var b [1]byte
		lifeline.Read(b[:]) // ends with the last process that has the writing end
		lifeline.Close()
		f.finishFork(n)
	}()
	return n
}

// finishFork ends a fork and releases the handles that no other child may import.
func (f *forkTable) finishFork(n uint64) {
	f.mu.Lock()
	delete(f.open, n)
	f.pending.Add(-1)
	last := uint64(0)
	for other := range f.open {
		last = max(last, other)
	}
	var free []*reference
	for h, r := range f.closed {
		if r.born >= last {
			free = append(free, r)
			delete(f.closed, h)
		}
	}
	f.mu.Unlock()
	for _, r := range free {
		r.object.release()
	}
}

func (f *forkTable) countForks() int { return int(f.pending.Load()) }

// releaseAll releases all handles that are kept.
func (f *forkTable) releaseAll() {
	f.mu.Lock()
	kept := f.closed
	f.closed = make(map[handle]*reference)
	f.mu.Unlock()
	for _, r := range kept {
		r.object.release()
	}
}

//export goForkPrepare
func goForkPrepare(ticket *C.shoal_fork_ticket) (code C.int) {
	defer recoverTo(&code)
	if err := requirePointer(ticket, "ticket"); err != nil {
		return result(err)
	}
	*ticket = C.shoal_fork_ticket{lifeline: -1, process: C.int32_t(os.Getpid())}
	if process.ready.Load() == nil {
		return C.SHOAL_OK // nothing to import
	}
	return result(fillTicket(ticket))
}

func fillTicket(ticket *C.shoal_fork_ticket) error {
	t, err := exports.ticket()
	if err != nil {
		return fmt.Errorf("prepare fork: %w", err)
	}
	b, err := t.encode(make([]byte, 0, mostToken))
	if err != nil {
		return fmt.Errorf("prepare fork: %w", err)
	}
	var fds [2]C.int
	if n := C.shoal_native_pipe(&fds[0]); n != 0 {
		return fmt.Errorf("prepare fork: %w: pipe: error %d: raise the limit of open files (ulimit -n)", errSystem, -n)
	}
	ticket.fork = C.uint64_t(forks.startFork(os.NewFile(uintptr(fds[0]), "lifeline of a fork")))
	ticket.lifeline = C.int32_t(fds[1])
	ticket.length = C.uint32_t(copy(unsafe.Slice((*byte)(&ticket.token[0]), len(ticket.token)), b))
	return nil
}

//export goForkImport
func goForkImport(ticket *C.shoal_fork_ticket, old C.shoal_handle, timeout C.double, h *C.shoal_handle) (code C.int) {
	defer recoverTo(&code)
	err := requirePointer(ticket, "ticket")
	if err == nil {
		err = requirePointer(h, "h")
	}
	if err != nil {
		return result(err)
	}
	if ticket.length == 0 || int(ticket.length) > len(ticket.token) {
		return result(fmt.Errorf("%w: the parent had no objects at the fork", errNotFound))
	}
	if int(ticket.process) == os.Getpid() {
		return result(fmt.Errorf("%w: the ticket is for a child of this process", errArgument))
	}
	t, err := decodeToken(C.GoBytes(unsafe.Pointer(&ticket.token[0]), C.int(ticket.length)))
	if err != nil {
		return result(err)
	}
	return importTo(h, t, request{Fork: uint64(ticket.fork), Handle: uint64(old)}, timeout)
}
