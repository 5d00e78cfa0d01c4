package shm

import "sync"

var process struct {
	mu sync.Mutex
	d  *Domain
}

// Default returns the domain of this process: the one that it inherited, or one that is made at the
// first call.
func Default() (*Domain, error) {
	process.mu.Lock()
	defer process.mu.Unlock()
	if process.d != nil {
		return process.d, nil
	}
	d, err := New(Options{})
	if err != nil {
		return nil, err
	}
	process.d = d
	return d, nil
}

// Current returns the domain of this process, or nil as long as nothing has asked for one.
func Current() *Domain {
	process.mu.Lock()
	defer process.mu.Unlock()
	return process.d
}

// SetDefault makes d the domain of this process. A program that wants other options than the
// default calls it before anything is allocated; workers do it with the domain that they inherit.
func SetDefault(d *Domain) {
	process.mu.Lock()
	defer process.mu.Unlock()
	process.d = d
}

// SetFirst is SetDefault for a process that has no domain yet. It reports whether it had none.
func SetFirst(d *Domain) bool {
	process.mu.Lock()
	defer process.mu.Unlock()
	if process.d != nil {
		return false
	}
	process.d = d
	return true
}
