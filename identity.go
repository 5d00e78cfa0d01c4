package shoal

import (
	"context"
	"fmt"
	"os"

	"github.com/shoal-mp/shoal/internal/seed"
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

// Seed returns what the random numbers of a worker begin with: for ctx, or one that comes of it,
// that of its function. It follows from the starter's tensor.InitialSeed, from the worker's rank,
// and from how often it was started, so it is another one for each worker, and after
// tensor.ManualSeed the same in every run. A process begins its default generator with it; a
// goroutine that stands for a process shares that of its process, and makes one of its own by
// tensor.NewGenerator(shoal.Seed(ctx)). With any other context it is that of this process.
func Seed(ctx context.Context) uint64 { return seed.From(ctx).Initial() }

// Parent returns who has started this process, false if this package has not. The context of a
// worker ends with ErrOrphaned when it dies.
func Parent() (Identity, bool) {
	if self == nil {
		return Identity{}, false
	}
	return self.job.Parent, true
}

// CPUCount returns how many processors the machine has running. How many this process can use is
// Threads.
func CPUCount() int { return sys.MachineCPUs() }
