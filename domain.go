package shoal

import (
	"os"
	"sync"

	"github.com/shoal-mp/shoal/internal/shm"
)

// This file is all that the package knows of domains: every process that it starts joins its
// starter's.

// home tells the domains apart that this process has had: what a process inherits is the one that
// its starter has then.
func home() shm.Token {
	d, err := shm.Default()
	if err != nil {
		return shm.Token{} // whoever starts a process hears of it
	}
	return d.Token()
}

// domainFiles returns the two descriptors that a new process inherits.
func domainFiles() ([]*os.File, error) {
	d, err := shm.Default()
	if err != nil {
		return nil, err
	}
	if self == nil {
		inspectable.Do(func() { go d.Serve() })
	}
	return d.Files(), nil
}

// inspectable makes the domain of a family answer to shm.Inspect, which is its root's affair. Where
// it cannot, nobody depends on it; the listener ends with the domain.
var inspectable sync.Once

// joinDomain makes the inherited domain this process's default and returns its seat there.
func joinDomain(control, data *os.File) (seat int, err error) {
	d, err := shm.Attach(control, data)
	if err != nil {
		return 0, err
	}
	shm.SetDefault(d)
	return d.Seat(), nil
}

// leaveDomain gives up all that this process holds.
func leaveDomain() {
	if d := shm.Current(); d != nil {
		d.Close()
	}
}

// reapDomain takes back what a dead process held, now instead of at the next notice.
func reapDomain() {
	if d := shm.Current(); d != nil {
		d.Reap()
	}
}
