package torch_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/torch"
)

// must returns v if err is nil.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// A program of Python would use multiprocessing.connection.Client with the same key.
func ExampleListener() {
	ctx := context.Background()
	opts := torch.Options{AuthKey: []byte("between us"), Strategy: torch.FileDescriptor}
	l := must(torch.Listen("unix", "", opts))
	defer l.Close()
	done := make(chan error, 1)
	go func() {
		c, err := torch.Dial(ctx, "unix", l.Addr(), opts)
		if err == nil {
			err = errors.Join(c.Send(ctx, map[string]any{"x": tensor.FromSlice([]float32{1, 2}, 2)}), c.Close())
		}
		done <- err
	}()
	c := must(l.Accept(ctx))
	defer c.Close()
	v := must(torch.As[struct {
		X *tensor.Tensor `torch:"x"`
	}](c.Recv(ctx)))
	fmt.Println(v.X, <-done)
	torch.CloseAll(v)
	// Output: tensor([1., 2.]) <nil>
}

// Processes of Python get it as an argument of Python.Spawn.
func ExampleSemaphore() {
	s := must(torch.NewSemaphore(1))
	defer s.Close()
	fmt.Println(s.TryAcquire(), must(s.Permits()), errors.Is(s.TryAcquire(), torch.ErrLocked))
	fmt.Println(s.Release(), must(s.Permits()))
	// Output:
	// <nil> 0 true
	// <nil> 1
}

func ExampleCond() {
	ctx := context.Background()
	c := must(torch.NewCond(nil))
	defer c.Close()
	ready, done := false, make(chan error, 1)
	go func() {
		err := c.Acquire(ctx)
		for !ready && err == nil {
			err = c.Wait(ctx)
		}
		done <- errors.Join(err, c.Release())
	}()
	err := c.Acquire(ctx)
	ready = true
	fmt.Println(errors.Join(err, c.NotifyAll(ctx), c.Release()), <-done)
	// Output: <nil> <nil>
}

func ExampleEvent() {
	ctx := context.Background()
	e := must(torch.NewEvent())
	defer e.Close()
	fmt.Println(e.IsSet(ctx))
	fmt.Println(e.Set(ctx), e.Wait(ctx))
	// Output:
	// false <nil>
	// <nil> <nil>
}

func ExampleQueue() {
	ctx := context.Background()
	q := must(torch.NewQueue(2, torch.Options{}))
	defer q.Close()
	fmt.Println(q.Put(ctx, "a word"), q.Put(ctx, 3))
	fmt.Println(q.Get(ctx))
	// Output:
	// <nil> <nil>
	// a word <nil>
}

// This is a job of one rank. torchrun sets these variables for each of its workers.
func ExampleRank() {
	for name, value := range map[string]string{"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0",
		"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500"} {
		os.Setenv(name, value)
		defer os.Unsetenv(name)
	}
	r := must(torch.ReadRank())
	fmt.Println(r.Rank, r.WorldSize)
	// Output: 0 1
}

// The batches of a DataLoader are without the samples that fail three times.
func ExampleTolerant() {
	open := func(context.Context, torch.Worker) (data.Dataset, error) {
		digits := data.NewTensorDataset(tensor.Arange(tensor.Int64, 0, 10, 1))
		return &torch.Tolerant{Dataset: digits, Retries: 2, Skip: func(i int, err error) bool {
			fmt.Println("without sample", i, err)
			return true
		}}, nil
	}
	fmt.Println(must(open(context.Background(), torch.Worker{})).Len())
	// Output: 10
}

// A program that a DataLoader of Python starts as its worker. Main must be the first call of main.
func ExampleChild() {
	open := func(context.Context, torch.Worker) (data.Dataset, error) {
		return data.NewTensorDataset(tensor.Arange(tensor.Int64, 0, 10, 1)), nil
	}
	torch.Child{Datasets: map[string]torch.OpenDataset{"digits": open}}.Main()
	fmt.Println("not started by Python")
	// Output: not started by Python
}

// A program may choose the interpreter and its environment.
func ExamplePython() {
	py := torch.Python{Path: "/no/such/python", Dir: os.TempDir(), Env: append(os.Environ(), "OMP_NUM_THREADS=1")}
	_, err := py.Spawn(context.Background(), "worker:run", 3)
	fmt.Println(errors.Is(err, fs.ErrNotExist))
	// Output: true
}
