package shoal

import (
	"os"
	"sync"

	"github.com/shoal-mp/shoal/internal/arena"
)

// This file manages the domain. Every process that this package starts joins its parent's domain.

// domainToken returns the token of the current domain. A new process inherits the domain that its
// parent has at that time.
func domainToken() arena.Token {
	d, err := arena.Default()
	if err != nil {
		return arena.Token{} // starting a process returns this error
	}
	return d.Token()
}

// domainFiles returns the two descriptors that a new process inherits.
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

// joinDomain makes the inherited domain this process's default domain and returns its seat.
func joinDomain(control, data *os.File) (seat int, err error) {
	d, err := arena.Attach(control, data)
	if err != nil {
		return 0, err
	}
	arena.SetDefault(d)
	return d.Seat(), nil
}

// addProcessors tells the domain on which processors this process may run, after a change.
func addProcessors() {
	if d := arena.Current(); d != nil {
		d.AddProcessors()
	}
}

// leaveDomain releases everything that this process holds in the domain.
func leaveDomain() {
	if d := arena.Current(); d != nil {
		d.Close()
	}
}

// reapDomain releases the holdings of ended processes now instead of at the next notification, and
// unused pages some time later.
func reapDomain() {
	if d := arena.Current(); d != nil {
		d.Reap()
		d.TrimSoon()
	}
}
