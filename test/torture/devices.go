//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/cuda"
	"github.com/shoal-mp/shoal/internal/cuda/sim"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/tensor"
)

// A deviceJob is the argument of a process that maps device memory: it gets tensors from In and
// puts them to Out.
type deviceJob struct {
	Book   string
	Number uint64
	In     *ipc.Receiver[numberedTensor]
	Out    *ipc.Sender[numberedTensor]
}

// deviceWork forwards each received tensor together with a tensor of its own.
var deviceWork = shoal.Register("torture device", func(ctx context.Context, _ int, j deviceJob) error {
	p, err := openPen(j.Book)
	if err != nil {
		return err
	}
	defer j.In.Close()
	defer j.Out.Close()
	for {
		v, err := j.In.Get(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if errors.Is(err, cuda.ErrUnfinished) {
			continue
		}
		if err != nil {
			return err
		}
		p.write(gets, v.ID)
		mine, err := tensor.On(v.T.Device()).Full(tensor.Int64, float64(v.ID), 100)
		if err == nil {
			err = errors.Join(forgive(j.Out.TryPut(numberedTensor{v.ID, mine}), cuda.ErrUnfinished), mine.Close())
		}
		// A wait for the device returns ErrUnfinished once if it depended on a process that died.
		if err := errors.Join(forgive(err, cuda.ErrUnfinished), v.T.Close()); err != nil {
			return err
		}
	}
})

// deviceStorm kills processes that map memory of a simulated device. It reports violations to s.
func deviceStorm(s *storm) error { return consumerStorm(s, deviceWork) }

func consumerStorm(s *storm, work *shoal.Func[deviceJob]) (err error) {
	s.kept = 1 // a driver keeps its device file open, and each run has a new driver
	devices, err := sim.Create(1, 8<<30)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cuda.Close(), devices.Close()) }()
	if err := errors.Join(os.Setenv(cuda.SimulateKey, strings.Join(devices.Paths(), ",")), cuda.Close()); err != nil {
		return err
	}
	dev, err := cuda.ForRank(0)
	if err != nil {
		return err
	}
	in, err := ipc.NewQueue[numberedTensor](16)
	if err != nil {
		return err
	}
	out, err := ipc.NewQueue[numberedTensor](16)
	if err != nil {
		return err
	}
	turn, stop := context.WithCancel(s.ctx)
	fed := make(chan error, 2)
	go func() {
		for id := uint64(1); ; id++ {
			t, err := tensor.On(dev).Full(tensor.Int64, float64(id), 100)
			if err == nil {
				err = errors.Join(in.Put(turn, numberedTensor{id, t}), t.Close())
			}
			if err = forgive(err, cuda.ErrUnfinished); err != nil {
				fed <- err
				return
			}
		}
	}()
	go func() {
		came := make(map[uint64]bool)
		for {
			v, err := out.Get(turn)
			if errors.Is(err, cuda.ErrUnfinished) {
				continue // its sender was killed before the device had written it
			}
			if err != nil {
				fed <- err
				return
			}
			if came[v.ID] {
				s.wrong(&s.seen.Twice, 1, "%d came twice from a device", v.ID)
			}
			came[v.ID] = true
			host, err := v.T.CPU()
			if err == nil {
				_, err = numberedTensor{v.ID, host}.open()
			}
			if errors.Is(err, cuda.ErrUnfinished) {
				err = nil
			}
			if err = errors.Join(err, v.T.Close()); err != nil {
				fed <- fmt.Errorf("%d: %w", v.ID, err)
				return
			}
		}
	}()
	s.keep(4, func(g *shoal.Group, n uint64) *shoal.Process {
		return work.Go(g, deviceJob{s.path, n, in.Receiver(), out.Sender()})
	})
	stop()
	for range 2 {
		if failed := <-fed; !errors.Is(failed, context.Canceled) {
			err = errors.Join(err, failed)
		}
	}
	return errors.Join(err, in.Close(), out.Close())
}
