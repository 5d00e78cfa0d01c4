package shoal

import (
	"context"
	"fmt"
	"os"

	"github.com/shoal-mp/shoal/internal/seed"
	"github.com/shoal-mp/shoal/internal/sys"
)

// An Identity names a process.
type Identity struct {
	Name   string // the name of the function, or main for a process that was not started by this package
	Rank   int
	PID    int
	Parent *Identity // the process that has started it, without a Parent; nil if this package has not
}

// String returns name, rank and process id on one line.
func (i Identity) String() string { return fmt.Sprintf("%s rank %d (pid %d)", i.Name, i.Rank, i.PID) }

// Current returns the identity of this process. A goroutine that stands for a process shares it.
// When the process of its Parent dies, the context of a worker ends with ErrOrphaned.
func Current() Identity {
	i := identity()
	if self != nil {
		i.Parent = new(Identity)
		*i.Parent = self.job.Parent
	}
	return i
}

// identity returns the identity of this process without its Parent. The workers of this process are
// told it.
func identity() Identity {
	if self != nil {
		return Identity{Name: self.job.Func, Rank: self.job.Rank, PID: os.Getpid()}
	}
	return Identity{Name: "main", PID: os.Getpid()}
}

// Seed returns the seed of a worker's random numbers. For ctx, or a context that is derived from
// it, this is the seed of the function that was given ctx. The seed follows from the starter's
// tensor.InitialSeed, from the worker's rank, and from how often the worker was started. So each
// worker has another one, and after tensor.ManualSeed it is the same in every run. A process begins
// its default generator with the seed. A goroutine that stands for a process shares the generator
// of its process, and makes one of its own by tensor.NewGenerator(shoal.Seed(ctx)). With any other
// context Seed returns the seed of this process.
func Seed(ctx context.Context) uint64 { return seed.From(ctx).Initial() }

// CPUCount returns how many processors the machine has running. How many this process can use is
// Threads.
func CPUCount() int { return sys.MachineCPUs() }
