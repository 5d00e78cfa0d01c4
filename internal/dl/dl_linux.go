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

// A Library is a shared library. It stays loaded until the process ends: nobody knows which threads
// it has started.
type Library struct {
	name   string
	handle uintptr
}

// Open loads the first of the libraries that can be. The error says of each why not.
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

// Symbol returns the address of a function.
func (l *Library) Symbol(name string) (uintptr, error) {
	p, err := purego.Dlsym(l.handle, name)
	if err != nil {
		return 0, fmt.Errorf("%w: %w", ErrNoSymbol, err)
	}
	return p, nil
}

// Call calls a C function whose arguments are integers and pointers, at most 32 words, and returns
// the register of the result. What the arguments point to is kept alive and in its place until the
// function has returned, if it is converted to uintptr in the call itself.
//
//go:uintptrescapes
func Call(fn uintptr, args ...uintptr) uintptr {
	r, _, _ := purego.SyscallN(fn, args...)
	return r
}

// Callback returns the address of a C function that calls f with its one argument, a pointer. It is
// never given back.
func Callback(f func(p uintptr)) uintptr {
	return purego.NewCallback(func(p uintptr) uintptr { f(p); return 0 })
}

// guards lets one Guard run at a time: of two, the second would note the handlers of the first
// one's library as Go's own, and write them back last.
var guards sync.Mutex

// Guard runs f, which runs foreign code for the first time, on one thread, and takes back the
// signals and the signal stack that it has taken. No program is started meanwhile, and none that is
// started later has the device files that f has opened: a child that had them would keep the
// memory of this process's devices. f calls no Guard.
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
