package arena

import (
	"sync"
	"sync/atomic"
)

// process holds the domain of this process. Every message reads it, so a read takes no lock.
var process struct {
	mu sync.Mutex // must be held to set d
	d  atomic.Pointer[Domain]
}

// Default returns the domain of this process: the one that [SetDefault] or [SetFirst] has set,
// or a new one made by the first call. If that call fails with an error of [New], the next one
// tries again.
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

// Current returns the domain of this process, or nil if none has been set or requested yet.
func Current() *Domain { return process.d.Load() }

// SetDefault makes d the domain of this process. A program that needs options other than the
// defaults must call it before it allocates memory. A worker process calls it with the inherited
// domain.
func SetDefault(d *Domain) {
	process.mu.Lock()
	defer process.mu.Unlock()
	process.d.Store(d)
}

// SetFirst sets the domain of this process to d unless the process has a domain already. It reports
// whether it set d.
func SetFirst(d *Domain) bool {
	process.mu.Lock()
	defer process.mu.Unlock()
	if process.d.Load() != nil {
		return false
	}
	process.d.Store(d)
	return true
}
