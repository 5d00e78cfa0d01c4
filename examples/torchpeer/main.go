// Command torchpeer shares a tensor with a PyTorch function, which is in worker.py in this
// directory, and receives its result.
//
//	cd examples/torchpeer && go run .
//
// It prints the sum that PyTorch computed. Python with PyTorch must be installed.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/torch"
)

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintf(os.Stderr, "%+v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	p, err := torch.Spawn(ctx, "worker:run", 3)
	if err != nil {
		return err
	}
	defer p.Close()
	t, err := torch.Zeros(tensor.Float32, 1024) // in memory that PyTorch can map
	if err != nil {
		return err
	}
	defer t.Close()
	if err := p.Conn.Send(ctx, t.Fill(1)); err != nil { // a handle; both write the same elements
		return err
	}
	sum, err := torch.As[*tensor.Tensor](p.Conn.Recv(ctx)) // also when Python has ended
	if err != nil {
		return err
	}
	defer sum.Close()
	fmt.Println("the sum of", tensor.At[float32](t, 0), "and so on is", tensor.At[float32](sum))
	return nil
}
