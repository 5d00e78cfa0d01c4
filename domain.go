package shoal

import (
	"os"
	"sync"

	"github.com/shoal-mp/shoal/internal/arena"
)

// This file manages the domain. Every process that this package starts joins its parent's domain.

// domainToken returns the token that identifies the current domain, or the zero token if no
// domain can be made. A new process inherits the domain that its parent has at that time.
func domainToken() arena.Token {
	d, err := arena.Default()
	if err != nil {
		return arena.Token{} // starting a process returns this error
	}
	return d.Token()
}

// domainFiles returns the domain's two files that a new process inherits, control and data, in
// this order. They belong to the domain, so the caller must not close them.
func domainFiles() ([]*os.File, error) {
	d, err := arena.Default()
	if err != nil {
		return nil, err
	}
	if self == nil {
		inspectable.Do(func() { go d.Serve() })
	}
	return d.Files(), nil
}

// inspectable makes the domain answer arena.Inspect, in the root process only. Errors are ignored,
// because no other function depends on it. The listener is closed with the domain.
var inspectable sync.Once

// joinDomain joins the domain in the two inherited files, makes it this process's default
// domain, and returns the number of this process's seat in it.
func joinDomain(control, data *os.File) (seat int, err error) {
	d, err := arena.Attach(control, data)
	if err != nil {
		return 0, err
	}
	arena.SetDefault(d)
	return d.Seat(), nil
}

// addProcessors tells the domain on which processors this process may run. It must be called
// after the affinity mask was changed. It does nothing without a domain.
func addProcessors() {
	if d := arena.Current(); d != nil {
		d.AddProcessors()
	}
}

// leaveDomain releases everything that this process holds in the domain. Tensors, queues and
// locks of this process must not be used afterwards.
func leaveDomain() {
	if d := arena.Current(); d != nil {
		d.Close()
	}
}

// reapDomain releases the shared memory and locks of ended processes now instead of at the next
// notification, and unused pages some time later.
func reapDomain() {
	if d := arena.Current(); d != nil {
		d.Reap()
		d.TrimSoon()
	}
}
