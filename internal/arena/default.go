package arena

import (
	"sync"
	"sync/atomic"
)

// process is the domain of this process. Each message asks for it, so to ask takes no lock.
var process struct {
	mu sync.Mutex // held to set d
	d  atomic.Pointer[Domain]
}

// Default returns the domain of this process: the one that it inherited, or one that the first call
// makes.
func Default() (*Domain, error) {
	if d := process.d.Load(); d != nil {
		return d, nil
	}
	process.mu.Lock()
	defer process.mu.Unlock()
	if d := process.d.Load(); d != nil {
		return d, nil
	}
	d, err := New(Options{})
	if err != nil {
		return nil, err
	}
	process.d.Store(d)
	return d, nil
}

// Current returns the domain of this process, or nil as long as nothing has asked for one.
func Current() *Domain { return process.d.Load() }

// SetDefault makes d the domain of this process. A program that wants other options than the
// default calls it before anything is allocated; workers do it with the domain that they inherit.
func SetDefault(d *Domain) {
	process.mu.Lock()
	defer process.mu.Unlock()
	process.d.Store(d)
}

// SetFirst is SetDefault for a process that has no domain yet. It reports whether it had none.
func SetFirst(d *Domain) bool {
	process.mu.Lock()
	defer process.mu.Unlock()
	if process.d.Load() != nil {
		return false
	}
	process.d.Store(d)
	return true
}
