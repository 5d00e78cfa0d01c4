package shoal

import (
	"os"
	"sync"

	"github.com/shoal-mp/shoal/internal/arena"
)

// This file is all that the package knows of domains. Every process that it starts joins its
// starter's domain.

// home tells apart the domains that this process has had. A process inherits the domain that its
// starter has at that time.
func home() arena.Token {
	d, err := arena.Default()
	if err != nil {
		return arena.Token{} // the call that starts a process returns this error
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

// inspectable makes the domain of a family answer to arena.Inspect. This is the task of the
// family's root. If it fails, nothing depends on it. The listener ends with the domain.
var inspectable sync.Once

// joinDomain makes the inherited domain this process's default and returns its seat there.
func joinDomain(control, data *os.File) (seat int, err error) {
	d, err := arena.Attach(control, data)
	if err != nil {
		return 0, err
	}
	arena.SetDefault(d)
	return d.Seat(), nil
}

// leaveDomain releases all that this process holds.
func leaveDomain() {
	if d := arena.Current(); d != nil {
		d.Close()
	}
}

// reapDomain takes back what a process held that has ended, now instead of at the next notice, and
// a while later the pages that nobody has used since.
func reapDomain() {
	if d := arena.Current(); d != nil {
		d.Reap()
		d.TrimSoon()
	}
}
