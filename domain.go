package shoal

import (
	"os"
	"sync"

	"github.com/shoal-mp/shoal/internal/shm"
)

// This file is all that the package knows of domains. Every process that it starts joins its
// starter's domain.

// home tells apart the domains that this process has had. A process inherits the domain that its
// starter has at that time.
func home() shm.Token {
	d, err := shm.Default()
	if err != nil {
		return shm.Token{} // the call that starts a process returns this error
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

// inspectable makes the domain of a family answer to shm.Inspect. This is the task of the family's
// root. If it fails, nothing depends on it. The listener ends with the domain.
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

// leaveDomain releases all that this process holds.
func leaveDomain() {
	if d := shm.Current(); d != nil {
		d.Close()
	}
}

// reapDomain takes back what a process held that has ended, now instead of at the next notice, and
// a while later the pages that nobody has used since.
func reapDomain() {
	if d := shm.Current(); d != nil {
		d.Reap()
		d.TrimSoon()
	}
}
