// Command survivors trains four equal replicas. Two of them are killed, and the others continue in
// a new group from the state of one of them.
//
//	go run ./examples/survivors
//
// It prints the two deaths and the weights of the surviving ranks.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/dist"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/tensor"
)

const steps = 200

// dies is the step at which each rank dies, or -1.
var dies = [4]int64{120, -1, 50, -1}

// A team is a group and its members in the order of their group ranks. When a process with the
// group dies, the group is broken for all, so each death requires a new group.
type team struct {
	Group   *dist.Group
	Members []int
}

var train = shoal.Register("train", func(ctx context.Context, me int, teams *ipc.Latest[team]) error {
	w, step := tensor.New(tensor.Float32, 3), tensor.New(tensor.Int64, 1)
	for last := uint64(0); ; {
		t, version, err := teams.Wait(ctx, last) // the first team, or the one after a broken team
		if err != nil {
			return err
		}
		last = version
		err = trainWithTeam(ctx, t, me, w, step)
		t.Group.Close()
		if !errors.Is(err, dist.ErrBroken) && !errors.Is(err, dist.ErrLeft) {
			return err
		}
	}
})

// trainWithTeam trains until the last step or until a member dies.
func trainWithTeam(ctx context.Context, t team, me int, w, step *tensor.Tensor) error {
	if err := t.Group.Join(slices.Index(t.Members, me)); err != nil {
		return err
	}
	// After a death, the survivors may be at different steps.
	if err := t.Group.Broadcast(ctx, 0, w); err != nil {
		return err
	}
	if err := t.Group.Broadcast(ctx, 0, step); err != nil {
		return err
	}
	for ; tensor.At[int64](step, 0) < steps; step.AddScalarInPlace(1) {
		if tensor.At[int64](step, 0) == dies[me] {
			self, _ := os.FindProcess(os.Getpid())
			self.Kill()
		}
		grad := tensor.Sub(w, tensor.FromSlice([]float32{1, 2, 3}, 3))
		if err := t.Group.AllReduce(ctx, dist.Mean, grad); err != nil {
			return err
		}
		w.AxpyInPlace(-.1, grad)
	}
	fmt.Printf("rank %d, one of %d: %v\n", me, len(t.Members), w)
	return nil
}

func main() { shoal.Main(run) }
