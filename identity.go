package shoal

import (
	"context"
	"fmt"
	"os"

	"github.com/shoal-mp/shoal/internal/seed"
	"github.com/shoal-mp/shoal/internal/sys"
)

// An Identity says which process it is.
type Identity struct {
	Name   string // of the function, main for a process that was not started by this package
	Rank   int
	PID    int
	Parent *Identity // of the process that has started it, without a Parent; nil if this package has not
}

// String returns name, rank and process id on one line.
func (i Identity) String() string { return fmt.Sprintf("%s rank %d (pid %d)", i.Name, i.Rank, i.PID) }

// Current returns the identity of this process, which a goroutine that stands for a process shares.
// When the process of its Parent dies, the context of a worker ends with ErrOrphaned.
func Current() Identity {
	i := identity()
	if self != nil {
		i.Parent = new(Identity)
		*i.Parent = self.job.Parent
	}
	return i
}

// identity returns the identity of this process without its Parent, which its workers are told.
func identity() Identity {
	if self != nil {
		return Identity{Name: self.job.Func, Rank: self.job.Rank, PID: os.Getpid()}
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

// CPUCount returns how many processors the machine has running. How many this process can use is
// Threads.
func CPUCount() int { return sys.MachineCPUs() }
