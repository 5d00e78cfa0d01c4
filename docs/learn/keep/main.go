// Keep is the program of lesson 4: one worker meets its starter in five ways.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/manager"
	"github.com/shoal-mp/shoal/tensor"
)

type job struct {
	Queue *ipc.Receiver[int]
	Pipe  *ipc.PipeEnd[string, int]
	Dict  *manager.Dict[string, int]
	File  string
}

var visit = shoal.Register("visit", func(ctx context.Context, rank int, j job) error {
	n, err := j.Queue.Get(ctx)
	if err != nil {
		return err
	}
	m, err := j.Pipe.Recv(ctx)
	if err != nil {
		return err
	}
	named, err := ipc.Lookup[*tensor.Tensor]("weights")
	if err != nil {
		return err
	}
	defer named.Close()
	file, err := tensor.FromFileShared(j.File, tensor.Float32, 4)
	if err != nil {
		return err
	}
	defer file.Close()
	named.AddScalarInPlace(1)
	file.AddScalarInPlace(2)
	if _, err := j.Dict.Add(ctx, "visits", 1); err != nil {
		return err
	}
	return j.Pipe.Send(ctx, fmt.Sprintf("%d from the queue, %d from the pipe", n, m))
})

func main() { shoal.Main(run) }

func run(ctx context.Context) error {
	queue, err := ipc.NewQueue[int](1)
	if err != nil {
		return err
	}
	defer queue.Close()
	here, there, err := ipc.Pipe[int, string]()
	if err != nil {
		return err
	}
	defer here.Close()
	defer there.Close()
	m, err := manager.Start(ctx)
	if err != nil {
		return err
	}
	defer m.Close()
	dict, err := manager.NewDict[string, int](ctx, m)
	if err != nil {
		return err
	}
	defer dict.Close()
	weights := tensor.New(tensor.Float32, 4)
	defer weights.Close()
	file := filepath.Join(os.TempDir(), "keep.bin")
	defer os.Remove(file)

	if err := errors.Join(queue.Put(ctx, 1), here.Send(ctx, 2), ipc.Bind(ctx, "weights", weights)); err != nil {
		return err
	}
	if err := visit.Spawn(ctx, 1, job{queue.Receiver(), there, dict, file}); err != nil {
		return err
	}
	said, err := here.Recv(ctx)
	if err != nil {
		return err
	}
	visits, err := dict.Get(ctx, "visits")
	if err != nil {
		return err
	}
	info, err := os.Stat(file)
	if err != nil {
		return err
	}
	fmt.Println(said)
	fmt.Println("visits in the manager's dict:", visits, "and the named tensor is", weights)
	fmt.Println("the file has", info.Size(), "bytes, which stay")
	return nil
}
