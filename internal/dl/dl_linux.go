//go:build amd64 || arm64

package dl

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"syscall"

	"github.com/ebitengine/purego"

	"github.com/shoal-mp/shoal/internal/sys"
)

// A Library is a loaded shared library. It is never unloaded, because it may have started threads.
type Library struct {
	name   string
	handle uintptr
}

// Open loads the first of the named libraries that can be loaded. If none can, the error wraps
// [ErrNotLoaded] and contains the reason for each.
func Open(names ...string) (*Library, error) {
	var lib *Library
	err := Guard(func() error {
		var failed error
		for _, name := range names {
			h, err := purego.Dlopen(name, purego.RTLD_NOW|purego.RTLD_LOCAL)
			if err == nil {
				lib = &Library{name, h}
				return nil
			}
			failed = errors.Join(failed, err)
		}
		return fmt.Errorf("%w: %w", ErrNotLoaded, failed)
	})
	if err != nil {
		return nil, err
	}
	return lib, nil
}

// Name returns the name under which the library was found.
func (l *Library) Name() string { return l.name }

// Symbol returns the address of a function. It returns [ErrNoSymbol] if the library does not have
// it.
func (l *Library) Symbol(name string) (uintptr, error) {
	p, err := purego.Dlsym(l.handle, name)
	if err != nil {
		return 0, fmt.Errorf("%w: %w", ErrNoSymbol, err)
	}
	return p, nil
}

// Call calls a C function with at most 32 integer or pointer arguments and returns its result
// register. Objects that pointer arguments refer to are kept alive and in place until the function
// returns, but only if the caller converts them to uintptr in the call expression itself.
//
//go:uintptrescapes
func Call(fn uintptr, args ...uintptr) uintptr {
	r, _, _ := purego.SyscallN(fn, args...)
	return r
}

// Callback returns the address of a C function that calls f with its only argument, a pointer. f
// runs on the thread that calls the C function. The callback is never freed, and a process can
// make at most 2000; one more panics.
func Callback(f func(p uintptr)) uintptr {
	return purego.NewCallback(func(p uintptr) uintptr { f(p); return 0 })
}

// guards serializes calls of Guard. Otherwise the second of two concurrent calls would save the
// handlers of the first one's library instead of Go's handlers, and restore them last.
var guards sync.Mutex

// Guard runs f, which runs initialization code of a library, on one thread. Afterwards it restores
// the signal handlers and the signal stack that the library has replaced. No process is started
// meanwhile, and processes started later do not inherit the device files opened by f, because a
// child with them would keep this process's device memory allocated. f must not call Guard.
func Guard(f func() error) error {
	guards.Lock()
	defer guards.Unlock()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	before, err := sys.SaveSignals()
	if err != nil {
		return err
	}
	devices := sys.InheritedDevices()
	err = f()
	devices.Seclude()
	_, restored := before.Restore()
	return errors.Join(err, restored)
}
