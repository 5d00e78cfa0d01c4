// Command torchrun adds a Go rank to a PyTorch job. It does not train but evaluates the model in
// the memory of the other ranks.
//
//	go build -o evaluator ./examples/torchrun
//	torchrun --nproc-per-node 3 --no-python ./evaluator examples/torchrun/train.py
//
// torchrun starts the program once per rank. All but the last rank execute Python with the script
// and form their own process group. The last one maps the weights and prints them with all metrics
// each epoch.
package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/torch"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr,
			"torchrun starts this program: torchrun --nproc-per-node 3 --no-python PROGRAM train.py")
		os.Exit(2)
	}
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run runs one rank: Python with the script, or the evaluator in the last rank.
func run(script string) error {
	r, err := torch.ReadRank()
	if err != nil {
		return err
	}
	if r.Rank < r.WorldSize-1 {
		return execProgram("python3", script)
	}
	return r.Record(evaluate(context.Background()))
}

// execProgram replaces this process by another program.
func execProgram(name string, args ...string) error {
	path, err := exec.LookPath(name)
	if err != nil {
		return err
	}
	return syscall.Exec(path, append([]string{name}, args...), os.Environ())
}

func evaluate(ctx context.Context) error {
	r, err := torch.Rendezvous(ctx, torch.StoreOptions{})
	if err != nil {
		return err
	}
	defer r.Close()
	c, err := r.Connect(ctx, "weights", torch.Options{})
	if err != nil {
		return err
	}
	defer c.Close()
	weights, err := torch.As[*tensor.Tensor](c.Recv(ctx))
	if err != nil {
		return err
	}
	defer weights.Close()
	type metrics struct{ Loss float64 }
	for epoch := range 3 {
		if err := r.Barrier(ctx, "trained", r.WorldSize); err != nil {
			return err
		}
		all, err := torch.GatherJSON(ctx, r, "metrics", metrics{}, 0, 1)
		if err != nil {
			return err
		}
		fmt.Printf("epoch %d: the weights sum to %v, the losses are %v\n", epoch, weights.Sum(), all)
		if err := r.Barrier(ctx, "evaluated", r.WorldSize); err != nil {
			return err
		}
	}
	return nil
}
