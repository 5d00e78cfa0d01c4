//go:build amd64 || arm64

package sys

import (
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Faults explains accesses to memory that must not be accessed any more. Go ends the process after
// such an access, and prints the address and the stacks. Faults adds the text that [Faults.Explain]
// set for the address.
//
// Note [A handler before Go's]: os/signal does not receive faults, and debug.SetPanicOnFault
// affects one goroutine only. So a few lines of assembly run before Go's own handler. They write
// the text of the faulting page, if it has one, to standard error. Then they jump to Go's handler,
// with the registers as set by the kernel:
// https://github.com/golang/go/blob/go1.24.0/src/runtime/signal_unix.go. The memory that they read
// is prepared in advance, and must never move or go away.
type Faults struct {
	base, size uintptr
	table      uintptr // address of pages
	next       *Faults

	mu    sync.Mutex
	pages []uintptr       // for each page of the memory the address of a text, or 0
	texts map[int]*string // keeps the texts alive, by their first page
}

// watched is the newest Faults. A Faults is never removed, and its memory must never be unmapped.
var watched *Faults

var (
	faultMu   sync.Mutex
	faultNext uintptr // Go's own handler; 0 until ours is installed
	onFaultPC uintptr // set in assembly
)

// WatchFaults starts to explain faults in mem, which must begin at a page boundary and stay
// mapped until the process ends. It cannot be undone. It returns an error that wraps EINVAL if
// Go has not installed its handler of SIGSEGV.
func WatchFaults(mem []byte) (*Faults, error) {
	size := len(mem) / os.Getpagesize() * int(unsafe.Sizeof(uintptr(0)))
	table, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE)
	if err != nil {
		return nil, fmt.Errorf("map fault table of %d bytes: %w", size, err)
	}
	f := &Faults{
		base: uintptr(unsafe.Pointer(unsafe.SliceData(mem))), size: uintptr(len(mem)),
		table: uintptr(unsafe.Pointer(unsafe.SliceData(table))),
		pages: unsafe.Slice((*uintptr)(unsafe.Pointer(unsafe.SliceData(table))), size/int(unsafe.Sizeof(uintptr(0)))),
		texts: map[int]*string{},
	}
	faultMu.Lock()
	defer faultMu.Unlock()
	if faultNext == 0 {
		if err := handleFaults(); err != nil {
			return nil, fmt.Errorf("install fault handler: %w", err)
		}
	}
	f.next = watched
	atomic.StorePointer((*unsafe.Pointer)(unsafe.Pointer(&watched)), unsafe.Pointer(f))
	return f, nil
}

// Explain sets the text that is written before the process dies of an access to the n bytes at
// off, counted from the start of the memory passed to [WatchFaults]. off and n must be
// multiples of the page size. The text of a range replaces an earlier text of the same range.
// The ranges of two calls must be equal or disjoint. Explain may be called concurrently.
func (f *Faults) Explain(off, n int, text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	first := off / os.Getpagesize()
	for i := range n / os.Getpagesize() {
		atomic.StoreUintptr(&f.pages[first+i], uintptr(unsafe.Pointer(&text)))
	}
	f.texts[first] = &text
}

// sigaction is the kernel's struct, not the C library's:
// https://github.com/torvalds/linux/blob/v6.12/include/linux/signal_types.h.
type sigaction struct {
	handler  uintptr
	flags    uint64
	restorer uintptr
	mask     uint64
}

func handleFaults() error {
	var a sigaction
	if err := changeAction(unix.SIGSEGV, nil, &a); err != nil {
		return err
	}
	if a.handler <= 1 {
		return fmt.Errorf("SIGSEGV has no existing handler: %w", unix.EINVAL)
	}
	faultNext, a.handler = a.handler, onFaultPC
	return changeAction(unix.SIGSEGV, &a, nil)
}

func changeAction(signal unix.Signal, to, from *sigaction) error {
	_, _, errno := unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(signal), uintptr(unsafe.Pointer(to)),
		uintptr(unsafe.Pointer(from)),
		unsafe.Sizeof(to.mask), 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}
