// Command pythontrainers feeds Python trainers with batches that Go makes, and reads the weights
// that they publish. All of them work on one copy of each tensor:
//
//	go run ./examples/pythontrainers --python python3
//
// The interpreter must have the package shoal. Two trainers (trainer.py) take batches from a queue
// and add them to the weights, which they replace by Latest. One trainer is killed in the middle:
// the other goes on, and the batch that the killed one had taken is the only one that is lost.
package main

import (
	"cmp"
	"context"
	"crypto/rand"
	_ "embed"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/ipc/pickle"
	"github.com/shoal-mp/shoal/tensor"
)

//go:embed trainer.py
var trainer string

const (
	batches  = 200
	features = 1 << 16
)

var python = flag.String("python", "python3", "an interpreter with the package shoal")

func main() {
	flag.Parse()
	shoal.Main(run)
}

// A state is published by a trainer: the sum of the batches, and their number.
type state struct {
	Weights *tensor.Tensor `torch:"weights"`
	Seen    int            `torch:"seen"`
}

func run(ctx context.Context) error {
	queue, err := ipc.NewQueue[pickle.Value](4)
	if err != nil {
		return err
	}
	defer queue.Close()
	first, err := pickle.Encode(state{Weights: tensor.Full(tensor.Float32, 0, features)})
	if err != nil {
		return err
	}
	defer first.Close()
	weights, err := ipc.NewLatest(first)
	if err != nil {
		return err
	}
	defer weights.Close()
	lock, err := ipc.NewMutex()
	if err != nil {
		return err
	}
	defer lock.Close()
	err = errors.Join(ipc.Bind(ctx, "batches", queue), ipc.Bind(ctx, "weights", weights), ipc.Bind(ctx, "lock", lock))
	if err != nil {
		return err
	}
	domain, stop, err := listen(ctx)
	if err != nil {
		return err
	}
	defer stop()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	victim, err := startTrainer(ctx, domain)
	if err != nil {
		return err
	}
	survivor, err := startTrainer(ctx, domain)
	if err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() {
		err := survivor.Wait()
		cancel(fmt.Errorf("a trainer ended: %w", cmp.Or(err, io.EOF)))
		done <- err
	}()
	if err := feed(ctx, queue, victim); err != nil {
		return err
	}
	victim.Wait() // it was killed
	if err := <-done; err != nil {
		return err
	}
	return report(weights)
}

// startTrainer starts a process of Python that joins the domain. It is killed when ctx ends.
func startTrainer(ctx context.Context, domain string) (*exec.Cmd, error) {
	c := exec.CommandContext(ctx, *python, "-c", trainer)
	c.Env, c.Stderr = append(os.Environ(), "SHOAL_DOMAIN="+domain), os.Stderr
	return c, c.Start()
}

// listen lets processes of this user join the domain. It returns the value of SHOAL_DOMAIN for
// Python.
func listen(ctx context.Context) (domain string, stop func(), err error) {
	key := make([]byte, 16)
	rand.Read(key)
	l, err := ipc.Listen[int](fmt.Sprintf("@pythontrainers-%d-%x", os.Getpid(), key[:4]), key)
	if err != nil {
		return "", nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept(ctx)
			if err != nil {
				return
			}
			defer c.Close() // it has joined; it may stay
		}
	}()
	return l.Addr() + " " + hex.EncodeToString(key), func() { cancel(); l.Close(); <-done }, nil
}

// feed puts the batches and then the end. It kills victim in the middle.
func feed(ctx context.Context, queue *ipc.Queue[pickle.Value], victim *exec.Cmd) error {
	for i := range batches {
		if i == batches/2 {
			if err := victim.Process.Kill(); err != nil {
				return err
			}
		}
		x, err := tensor.EmptyShared(tensor.Float32, features)
		if err != nil {
			return err
		}
		if err := put(ctx, queue, x.Fill(1)); err != nil {
			return err
		}
		x.Close()
	}
	return put(ctx, queue, nil)
}

func put(ctx context.Context, queue *ipc.Queue[pickle.Value], v any) error {
	message, err := pickle.Encode(v)
	if err != nil {
		return err
	}
	defer message.Close()
	return queue.Put(ctx, message)
}

// report checks the last state that a trainer has published, and prints its number of batches.
// It returns an error if more than one batch is missing or the weights do not match the number.
func report(weights *ipc.Latest[pickle.Value]) error {
	v, _, err := weights.Load()
	if err != nil {
		return err
	}
	defer v.Close()
	s, err := pickle.DecodeAs[state](v)
	if err != nil {
		return err
	}
	want := tensor.Full(tensor.Float32, float64(s.Seen), features)
	defer want.Close()
	if s.Seen < batches-1 || !tensor.Equal(s.Weights, want) {
		return fmt.Errorf("the weights are %v after %d batches, want %d to %d in each element", s.Weights, s.Seen,
			batches-1, batches)
	}
	fmt.Printf("%d of %d batches are in the weights\n", s.Seen, batches)
	return nil
}
