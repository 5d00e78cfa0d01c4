//go:build !linux

package sys

import (
	"os"
	"syscall"
	"time"
)

// An Orphanage ends this process when one of its ancestors has died. It needs Linux:
// [NewOrphanage] returns an error on other systems.
type Orphanage struct{}

// NewOrphanage returns an error that wraps [errors.ErrUnsupported]: watching the ancestors of a
// process needs Linux.
func NewOrphanage(lifelines []int, wake int, grace time.Duration, code int) (*Orphanage, error) {
	return nil, unsupportedError("ppoll")
}

// Watch does nothing: watching the ancestors of a process needs Linux, and [NewOrphanage] returns
// an error.
func (o *Orphanage) Watch() {}

// GoesOnAsOrphan returns nil: a signal at the parent's death needs Linux.
func GoesOnAsOrphan() *syscall.SysProcAttr { return nil }

// EndsWithThread returns nil: a signal at the parent's death needs Linux.
func EndsWithThread(ownGroup bool) *syscall.SysProcAttr { return nil }

// EndedByBrokenPipe returns false: the representation of signals differs between systems.
func EndedByBrokenPipe(p *os.ProcessState) bool { return false }

// SignalGroup sends a signal to p alone: a signal to a process group needs Linux.
func SignalGroup(p *os.Process, sig syscall.Signal) error { return p.Signal(sig) }
