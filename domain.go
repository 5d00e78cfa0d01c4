package shoal

import (
	"os"
	"sync/atomic"

	"github.com/shoal-mp/shoal/shm"
)

// This file is all that the package knows of domains: every process that it starts joins its starter's.

// domainFiles returns the two descriptors that a new process inherits.
func domainFiles() ([]*os.File, error) {
	d, err := shm.Default()
	if err != nil {
		return nil, err
	}
	joined.Store(true)
	return d.Files(), nil
}

// joinDomain makes the inherited domain this process's default and returns its slot there.
func joinDomain(control, data *os.File) (slot int, err error) {
	d, err := shm.Attach(control, data)
	if err != nil {
		return 0, err
	}
	shm.SetDefault(d)
	joined.Store(true)
	return d.Slot(), nil
}

// joined is set once this process uses a domain, so that nothing makes one only to leave it.
var joined atomic.Bool

// leaveDomain gives up all that this process holds.
func leaveDomain() {
	if !joined.Load() {
		return
	}
	if d, err := shm.Default(); err == nil {
		d.Close()
	}
}

// reapDomain takes back what a dead process held, now instead of at the next notice.
func reapDomain() {
	if d, err := shm.Default(); err == nil {
		d.Reap()
	}
}
