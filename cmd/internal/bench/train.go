package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/dist"
	"github.com/shoal-mp/shoal/internal/sys"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/nn"
)

var train = Suite{
	Name:   "train",
	Doc:    "a training step of the MNIST network, and training of one network in several processes without locks",
	peer:   "torch_train.py",
	groups: []func(context.Context, *environment) (group, error){stepRows, hogwildRows},
}

func stepRows(_ context.Context, h *environment) (group, error) {
	t, steps := newTrainer(newDigitNet()), max(2, h.scaleRounds(30))
	return group{rounds: 21, cases: []Case{{
		Name: "mnist_step", Unit: Nanoseconds, Target: timesPeer(1.5),
		Ours: &Probe{Measure: func(context.Context) (float64, error) {
			return float64(cpuTime(steps, func() { t.runSteps(1) })) / float64(steps), nil
		}},
		Peer: &peerWork{op: "step", Rounds: steps},
	}}}, nil
}

func hogwildRows(_ context.Context, h *environment) (group, error) {
	g := group{rounds: 5}
	for _, workers := range processCounts {
		c := h.hogwildCase(workers, false)
		c.Target = timesPeer(1.5)
		g.cases = append(g.cases, c)
	}
	// By default PyTorch uses as many threads as there are processors in each of the four
	// processes.
	four := h.hogwildCase(4, true)
	four.Name, four.Ours, four.Target = "hogwild_4_oversubscribed", g.cases[2].Ours, timesPeer(20)
	g.cases = append(g.cases, four)
	return g, nil
}

var hogwildSuite = Suite{
	Name:   "hogwild",
	Doc:    "processes that train one network, with their share of the threads and with one thread per CPU each",
	peer:   "torch_train.py",
	groups: []func(context.Context, *environment) (group, error){budgetRows},
}

func budgetRows(_ context.Context, h *environment) (group, error) {
	g := group{rounds: 5}
	for _, ignored := range []bool{false, true} {
		for _, workers := range processCounts {
			g.cases = append(g.cases, h.hogwildCase(workers, ignored))
		}
	}
	return g, nil
}

// processCounts are the numbers of processes that train together.
var processCounts = []int{1, 2, 4}

// hogwildCase returns the row of training with a number of processes, with the group's thread
// budget or, if ignored is set, without one. A peer that ignores the budget may be a hundred
// times slower, so it performs fewer steps, once.
func (h *environment) hogwildCase(workers int, ignored bool) Case {
	steps, opts := max(2, h.scaleRounds(320/workers)), shoal.Options{Workers: workers}
	c := Case{
		Name: fmt.Sprint("hogwild_", workers), Unit: PerSecond,
		Peer: &peerWork{op: "hogwild", Rounds: steps, Args: []int{workers}},
	}
	switch {
	case ignored:
		c.Name += "_ignored"
		opts.Threads = shoal.Threads()
		c.Peer.op, c.Peer.Rounds, c.Peer.once = "hogwild_oversubscribed", max(2, steps/30), true
	case workers == 1:
		c.Peer.op = "hogwild_alone"
	}
	c.Ours = measureHogwild(opts, steps)
	return c
}

// A race is the argument of a training process. It trains Net itself, or a replica if gradients or
// states are exchanged.
type race struct {
	Net   *digitNet
	Steps int
	Start *ipc.Receiver[bool]
	Laps  *ipc.Sender[lap]
	Group *dist.Group                      // may be nil
	Meet  *ipc.PipeEnd[netState, netState] // may be nil
}

// A lap is the training time of a process, from Begin to End on the monotonic clock. The first one
// is empty and means that the process is ready.
type lap struct{ Begin, End time.Duration }

var racer = shoal.Register("bench racer", func(ctx context.Context, rank int, r race) error {
	defer r.Start.Close()
	defer r.Laps.Close()
	defer nn.Close(r.Net)
	net := r.Net
	if r.Group != nil || r.Meet != nil {
		net = nn.Clone(net)
	}
	if r.Meet != nil {
		defer r.Meet.Close()
	}
	if r.Group != nil {
		defer r.Group.Close()
		if err := r.Group.Join(rank); err != nil {
			return err
		}
	}
	t := newTrainer(net)
	t.runSteps(2)
	if err := r.Laps.Put(ctx, lap{}); err != nil {
		return err
	}
	if _, err := r.Start.Get(ctx); err != nil {
		return err
	}
	begin := sys.Monotonic()
	if err := r.trainReplica(ctx, net, t); err != nil {
		return err
	}
	return r.Laps.Put(ctx, lap{begin, sys.Monotonic()})
})

// trainReplica performs r.Steps training steps on net with the trainer t, and the exchanges with
// the other processes that r.Group and r.Meet select.
func (r *race) trainReplica(ctx context.Context, net *digitNet, t *trainer) error {
	for i := range r.Steps {
		t.computeGradients()
		if r.Group != nil {
			if err := r.Group.AverageGrads(ctx, nn.Params(net)); err != nil {
				return err
			}
		}
		t.runStep()
		if r.Meet != nil && i%period == period-1 {
			if err := r.exchangeState(ctx, net); err != nil {
				return err
			}
		}
	}
	return nil
}

// measureHogwild returns a probe of the samples per second of opts.Workers processes that train
// one shared network, with steps steps each.
func measureHogwild(opts shoal.Options, steps int) *Probe {
	return measureRace(opts, steps, func(context.Context, *digitNet, []race) (func() error, error) {
		return func() error { return nil }, nil
	})
}

// measureRace returns a probe of the samples per second of opts.Workers processes that each
// perform steps steps, from the first start to the last end. prepare must fill in the objects
// that they share in addition to the network, and return a function that closes them.
func measureRace(opts shoal.Options, steps int,
	prepare func(ctx context.Context, net *digitNet, races []race) (end func() error, err error)) *Probe {
	workers := opts.Workers
	return &Probe{Measure: func(ctx context.Context) (rate float64, err error) {
		net := newDigitNet()
		if err := nn.Share(net); err != nil {
			return 0, err
		}
		defer func() { err = errors.Join(err, nn.Close(net)) }()
		start, err := ipc.NewQueue[bool](workers)
		if err != nil {
			return 0, err
		}
		defer start.Close()
		laps, err := ipc.NewQueue[lap](2 * workers)
		if err != nil {
			return 0, err
		}
		defer laps.Close()
		races := make([]race, workers)
		end, err := prepare(ctx, net, races)
		if err != nil {
			return 0, err
		}
		g := shoal.NewGroup(ctx, opts)
		for _, r := range races {
			r.Net, r.Steps, r.Start, r.Laps = net, steps, start.Receiver(), laps.Sender()
			racer.Go(g, r)
		}
		span, err := timeRace(ctx, workers, start, laps)
		return float64(workers*steps*batch) / span.Seconds(), errors.Join(g.Wait(), end(), err)
	}}
}

// timeRace starts all processes once all are ready, and returns the time from the first begin to
// the last end. It closes this process's sending end of laps.
func timeRace(ctx context.Context, workers int, start *ipc.Queue[bool], laps *ipc.Queue[lap]) (time.Duration, error) {
	laps.Sender().Close() // the queue must end if the processes fail
	for range workers {
		if _, err := laps.Get(ctx); err != nil {
			return 0, err
		}
	}
	for range workers {
		if err := start.Put(ctx, true); err != nil {
			return 0, err
		}
	}
	begin, end := time.Duration(1<<63-1), time.Duration(0)
	for range workers {
		l, err := laps.Get(ctx)
		if err != nil {
			return 0, err
		}
		begin, end = min(begin, l.Begin), max(end, l.End)
	}
	return end - begin, nil
}
