package shoal

import (
	"fmt"
	"os"

	"github.com/shoal-mp/shoal/internal/sys"
)

// An Identity says which process somebody is.
type Identity struct {
	Name string // of the function, main for a process that was not started by this package
	Rank int
	PID  int
}

// String returns all of it on one line.
func (i Identity) String() string { return fmt.Sprintf("%s rank %d (pid %d)", i.Name, i.Rank, i.PID) }

// Current returns who this process is. A goroutine is its process.
func Current() Identity {
	if self != nil {
		return Identity{self.job.Func, self.job.Rank, os.Getpid()}
	}
	return Identity{Name: "main", PID: os.Getpid()}
}

// Parent returns who has started this process, false if this package has not. The context of a worker ends with ErrOrphaned when it dies.
func Parent() (Identity, bool) {
	if self == nil {
		return Identity{}, false
	}
	return self.job.Parent, true
}

// CPUCount returns how many processors the machine has running. How many this process can use is Threads.
func CPUCount() int { return sys.MachineCPUs() }
