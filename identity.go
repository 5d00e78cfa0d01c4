package shoal

import (
	"context"
	"fmt"
	"os"

	"github.com/shoal-mp/shoal/internal/seed"
	"github.com/shoal-mp/shoal/internal/sys"
)

// An Identity identifies a process.
type Identity struct {
	Name   string // name of the function, or main if the process was not started by this package
	Rank   int
	PID    int
	Parent *Identity // parent, with a nil Parent; nil if not started by this package
}

// String returns name, rank and process id on one line.
func (i Identity) String() string { return fmt.Sprintf("%s rank %d (pid %d)", i.Name, i.Rank, i.PID) }

// Current returns the identity of this process. A goroutine that replaces a process shares it. When
// the Parent dies, the context of a worker is canceled with [ErrOrphaned].
func Current() Identity {
	i := currentIdentity()
	if self != nil {
		i.Parent = new(Identity)
		*i.Parent = self.job.Parent
	}
	return i
}

// currentIdentity returns the identity of this process without its Parent, as its workers receive
// it.
func currentIdentity() Identity {
	if self != nil {
		return Identity{Name: self.job.Func, Rank: self.job.Rank, PID: os.Getpid()}
	}
	return Identity{Name: "main", PID: os.Getpid()}
}

// Seed returns the seed of a worker's random numbers. ctx should be the context passed to the
// worker's function, or derived from it; for any other context Seed returns the seed of this
// process. The seed is derived from the parent's tensor.InitialSeed, the worker's rank, and the
// number of times that the worker was started. Therefore each worker has a different seed, and
// after tensor.ManualSeed it is the same in every run. A process initializes its default generator
// with its seed. A goroutine that replaces a process shares the generator of its process; it should
// create its own with tensor.NewGenerator(shoal.Seed(ctx)).
func Seed(ctx context.Context) uint64 { return seed.From(ctx).Initial() }

// CPUCount returns the number of online processors of the machine. See [Threads] for the number
// that this process can use.
func CPUCount() int { return sys.MachineCPUs() }
