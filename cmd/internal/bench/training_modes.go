package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/dist"
	"github.com/shoal-mp/shoal/internal/sys"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/nn"
	"github.com/shoal-mp/shoal/tensor"
)

var trainingModes = Suite{
	Name:   "ways",
	Doc:    "parallel training modes: samples/s of the MNIST network with batches of 64",
	peer:   "torch_train.py",
	groups: []func(context.Context, *environment) (group, error){trainingRows},
}

func trainingRows(_ context.Context, h *environment) (group, error) {
	g := group{rounds: 3}
	for _, workers := range processCounts {
		steps, opts := max(2, h.scaleRounds(128/workers)), shoal.Options{Workers: workers}
		for _, w := range []struct {
			name string
			*Probe
		}{
			{"hogwild", measureHogwild(opts, steps)},
			{"all_reduce", measureAllReduce(opts, steps)},
			{"periodic", measureAveraging(opts, steps)},
			{"data_parallel", measureDataParallel(opts, steps)},
		} {
			g.cases = append(g.cases, Case{Name: fmt.Sprint(w.name, "_", workers), Unit: PerSecond, Ours: w.Probe})
		}
	}
	return g, nil
}

// measureAllReduce returns a probe of the samples per second of processes that train replicas
// and average their gradients in each step.
func measureAllReduce(opts shoal.Options, steps int) *Probe {
	return measureRace(opts, steps, func(ctx context.Context, net *digitNet, races []race) (func() error, error) {
		group, err := dist.NewGroup(opts.Workers)
		for i := range races {
			races[i].Group = group
		}
		return group.Close, err
	})
}

// period is the number of steps between two exchanges of states.
const period = 32

// measureAveraging returns a probe of the samples per second of processes that train replicas,
// send their states to this process after every period steps, and receive the mean.
func measureAveraging(opts shoal.Options, steps int) *Probe {
	return measureRace(opts, steps, func(ctx context.Context, net *digitNet, races []race) (_ func() error, err error) {
		var ours []*ipc.PipeEnd[netState, netState]
		for i := range races {
			mine, theirs, e := ipc.Pipe[netState, netState]()
			if err = errors.Join(err, e); err != nil {
				break
			}
			ours, races[i].Meet = append(ours, mine), theirs
		}
		met := make(chan error, 1)
		go func() {
			var err error
			for range steps / period {
				if err = averageStates(ctx, net, ours); err != nil {
					break
				}
			}
			met <- err
		}()
		return func() error {
			for i, c := range ours { // ends pending receives
				c.Close()
				races[i].Meet.Close()
			}
			return <-met
		}, err
	})
}

type netState = map[string]*tensor.Tensor

// averageStates receives one state from each connection, sets net to their mean, and sends it to
// all of them.
func averageStates(ctx context.Context, net *digitNet, conns []*ipc.PipeEnd[netState, netState]) error {
	states := make([]netState, len(conns))
	for i, c := range conns {
		var err error
		if states[i], err = c.Recv(ctx); err != nil {
			return err
		}
	}
	if err := nn.Average(net, states...); err != nil {
		return err
	}
	for i, c := range conns {
		if err := c.Send(ctx, nn.State(net)); err != nil {
			return err
		}
		for _, t := range states[i] {
			t.Close()
		}
	}
	return nil
}

// exchangeState sends the state of net to the measuring process and sets net to the mean of all
// replicas that comes back. r.Meet must not be nil.
func (r *race) exchangeState(ctx context.Context, net *digitNet) error {
	if err := r.Meet.Send(ctx, nn.State(net)); err != nil {
		return err
	}
	mean, err := r.Meet.Recv(ctx)
	if err != nil {
		return err
	}
	return nn.Load(net, mean)
}

var digitLoss = dist.RegisterLoss("bench digit loss",
	func(s *autograd.Scope, n *digitNet, batch []*tensor.Tensor) *autograd.Var {
		return nn.NLLLoss{}.Of(n.Forward(s.Const(batch[0])), batch[1])
	})

// measureDataParallel returns a probe of the samples per second when a network is trained in
// this process with gradients from opts.Workers other processes, each with a batch of 64.
func measureDataParallel(opts shoal.Options, steps int) *Probe {
	return &Probe{Measure: func(ctx context.Context) (rate float64, err error) {
		net := newDigitNet()
		d, err := dist.NewDataParallel(ctx, digitLoss, net, dist.DataParallelOptions{Process: opts})
		if err != nil {
			return 0, err
		}
		defer func() { err = errors.Join(err, d.Close(), nn.Close(net)) }()
		t, all := newTrainer(net), opts.Workers*batch
		var begin time.Duration
		for i := range steps + 2 {
			if i == 2 {
				begin = sys.Monotonic()
			}
			images, labels := t.images[i%poolBatches], t.labels[i%poolBatches]
			t.sgd.ZeroGrad()
			if _, err := d.Backward(ctx, tensor.Cat(0, repeatTensor(images, opts.Workers)...),
				tensor.Cat(0, repeatTensor(labels, opts.Workers)...)); err != nil {
				return 0, err
			}
			t.sgd.Step()
		}
		return float64(steps*all) / (sys.Monotonic() - begin).Seconds(), nil
	}}
}

func repeatTensor(t *tensor.Tensor, n int) (all []*tensor.Tensor) {
	for range n {
		all = append(all, t)
	}
	return all
}
