// Keep is the program of lesson 4: one worker meets its starter in five ways.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"

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
	n, err1 := j.Queue.Get(ctx)
	m, err2 := j.Pipe.Recv(ctx)
	err3 := j.Pipe.Send(ctx, fmt.Sprintf("%d from the queue, %d from the pipe", n, m))
	_, err4 := j.Dict.Add(ctx, "visits", 1)
	named, err5 := ipc.Lookup[*tensor.Tensor]("weights")
	file, err6 := tensor.FromFile(j.File, true, tensor.Float32, 4)
	if err := errors.Join(err1, err2, err3, err4, err5, err6); err != nil {
		return err
	}
	named.AddScalar(1)
	file.AddScalar(2)
	return errors.Join(named.Close(), file.Close())
})

func main() { shoal.Main(run) }

func run(ctx context.Context) error {
	file := os.TempDir() + "/keep.bin"
	defer os.Remove(file)
	queue, err1 := ipc.NewQueue[int](1)
	here, there, err2 := ipc.Pipe[int, string]()
	m, err3 := manager.Start(ctx)
	if err := errors.Join(err1, err2, err3); err != nil {
		return err
	}
	defer m.Close()
	dict, err4 := manager.NewDict[string, int](ctx, m)
	weights := tensor.New(tensor.Float32, 4)
	err := errors.Join(err4, queue.Put(ctx, 1), here.Send(ctx, 2), ipc.Bind(ctx, "weights", weights))
	if err == nil {
		err = visit.Spawn(ctx, 1, job{queue.Receiver(), there, dict, file})
	}
	if err != nil {
		return err
	}
	said, err1 := here.Recv(ctx)
	visits, err2 := dict.Get(ctx, "visits")
	info, err3 := os.Stat(file)
	fmt.Println(said)
	fmt.Println("visits in the manager's dict:", visits, "and the named tensor is", weights)
	fmt.Println("the file has", info.Size(), "bytes, which stay")
	return errors.Join(err1, err2, err3, dict.Close())
}
