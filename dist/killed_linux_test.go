package dist_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/dist"
	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/nn"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
)

// A mortal is the argument of a rank that does something over and over until one of the ranks is
// killed.
type mortal struct {
	Group   *dist.Group
	Rank    int
	Victim  int
	Does    string
	Reports *ipc.Sender[report]
	Enough  *ipc.Event // all have reported
}

// deeds are what mortals do, once each time.
var deeds = map[string]func(ctx context.Context, m mortal) error{
	"send and receive": func(ctx context.Context, m mortal) error {
		x := tensor.Full(tensor.Float32, 1, 1000)
		return m.withTheVictim(func(r int) error {
			if err := m.Group.Send(ctx, r, 0, x); err != nil {
				return err
			}
			_, err := m.Group.Recv(ctx, r, 0, x)
			return err
		})
	},
	"receive from any rank": func(ctx context.Context, m mortal) error {
		x := tensor.Full(tensor.Float32, 1, 10)
		for r := range m.Group.Size() {
			if r != m.Rank {
				if err := m.Group.Send(ctx, r, 1, x); err != nil {
					return err
				}
			}
		}
		for range m.Group.Size() - 1 { // as many as come
			if _, err := m.Group.Recv(ctx, dist.AnyRank, 1, x); err != nil {
				return err
			}
		}
		return nil
	},
	"send to one that does not receive": func(ctx context.Context, m mortal) error {
		if m.Rank == m.Victim {
			return greet(ctx, m)
		}
		return dist.SendValue(ctx, m.Group, m.Victim, 0, tensor.Ones(tensor.Float32, 10))
	},
	"values": func(ctx context.Context, m mortal) error {
		all, err := dist.AllGatherValues(ctx, m.Group, tensor.Full(tensor.Int64, float64(m.Rank), 100))
		for _, t := range all {
			t.Close()
		}
		return err
	},
	"monitored barrier": func(ctx context.Context, m mortal) error { return m.Group.MonitoredBarrier(ctx, watchdog) },
	"exchanges of different shapes": func(ctx context.Context, m mortal) error {
		var dst []*tensor.Tensor
		for r := range m.Group.Size() {
			dst = append(dst, tensor.New(tensor.Float32, 100_000*r))
		}
		return m.Group.AllGatherTensors(ctx, dst, dst[m.Rank].Clone())
	},
	"distributed data parallel": func(ctx context.Context, m mortal) error {
		n := newNet(uint64(m.Rank))
		d, err := dist.NewDistributedDataParallel(ctx, m.Group, n, dist.DDPOptions{})
		if err != nil {
			return err
		}
		return d.Backward(ctx, n.loss(nil, samples(1, 4)))
	},
	"all-reduces of shared tensors": func(ctx context.Context, m mortal) error {
		x, err := tensor.NewShared(tensor.Float32, 1<<20)
		if err != nil {
			return err
		}
		defer x.Close()
		x.Fill(float64(m.Rank))
		for range 3 {
			if err := m.Group.AllReduce(ctx, dist.Mean, x); err != nil {
				return err
			}
		}
		return nil
	},
	"all-reduces of tensors on the heap": func(ctx context.Context, m mortal) error {
		return m.Group.AllReduce(ctx, dist.Mean, tensor.Full(tensor.Float32, 1, 1<<20))
	},
	"calls in flight": func(ctx context.Context, m mortal) (err error) {
		x := tensor.Full(tensor.Float32, 1, 100_000)
		var works []*dist.Work
		for range 3 {
			works = append(works, m.Group.Async(ctx,
				func(g *dist.Group) error { return g.AllReduce(ctx, dist.Mean, x) }))
		}
		for _, w := range works {
			err = w.Wait(ctx) // those after one that failed name the same
		}
		return err
	},
	"new groups": func(ctx context.Context, m mortal) error {
		sub, err := m.Group.NewGroup(ctx)
		if err != nil {
			return err
		}
		defer sub.Close()
		return errors.Join(sub.AllReduce(ctx, dist.Sum, tensor.Ones(tensor.Float32, 10)), sub.Barrier(ctx))
	},
}

// greet receives once from each rank, so that all begin, and then nothing more.
func greet(ctx context.Context, m mortal) error {
	time.Sleep(time.Millisecond)
	if greeted {
		return nil
	}
	greeted = true
	return m.withTheVictim(func(r int) error {
		_, _, err := dist.RecvValue[*tensor.Tensor](ctx, m.Group, r, 0)
		return err
	})
}

var greeted bool

// withTheVictim calls f with the ranks that this one has to do with: the victim, or all others.
func (m mortal) withTheVictim(f func(r int) error) error {
	for r := range m.Group.Size() {
		if r != m.Rank && (r == m.Victim || m.Rank == m.Victim) {
			if err := f(r); err != nil {
				return err
			}
		}
	}
	return nil
}

var until = shoal.Register("go on until one is killed", func(ctx context.Context, _ int, m mortal) error {
	defer m.Group.Close()
	defer m.Reports.Close()
	if err := m.Group.Join(m.Rank); err != nil {
		return err
	}
	err := deeds[m.Does](ctx, m)
	if err := m.Reports.Put(ctx, report{Rank: m.Rank, Going: true}); err != nil {
		return err
	}
	for err == nil {
		err = deeds[m.Does](ctx, m)
	}
	r := report{Rank: m.Rank, Message: err.Error()}
	if p := new(arena.PeerError); errors.As(err, &p) {
		r.Dead, r.PID = true, p.PID
	}
	if e := new(dist.RankError); errors.As(err, &e) {
		r.Blamed = e.Ranks
	}
	return errors.Join(m.Reports.Put(ctx, r), m.Enough.Wait(ctx))
})

func TestRegression_S3_3_AKilledRankIsNamedWhateverTheOthersDo(t *testing.T) {
	for does := range deeds {
		for round := range 3 {
			t.Run(fmt.Sprint(does, round), func(t *testing.T) { killedWhile(t, does, round%3) })
		}
	}
}

func killedWhile(t *testing.T, does string, victim int) {
	const size = 3
	ctx, g := testutil.Context(t), newGroup(t, size)
	q, err := ipc.NewQueue[report](2 * size)
	testutil.NoError(t, err)
	enough, err := ipc.NewEvent()
	testutil.NoError(t, err)
	var groups []*shoal.Group
	var processes []*shoal.Process
	for r := range size {
		// of its own, so that none is cancelled by another's end
		group := shoal.NewGroup(ctx, shoal.Options{Workers: size})
		groups = append(groups, group)
		processes = append(processes, until.Go(group, mortal{g, r, victim, does, q.Sender(), enough}))
	}
	for range size {
		if r, err := q.Get(ctx); err != nil || !r.Going {
			t.Fatal(r, err)
		}
	}
	time.Sleep(time.Duration(victim) * time.Millisecond) // in the middle of something
	pid := processes[victim].PID()
	testutil.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
	for range size - 1 {
		r, err := q.Get(ctx)
		testutil.NoError(t, err)
		if !r.Dead || r.PID != pid || !slices.Equal(r.Blamed, []int{victim}) {
			t.Errorf("rank %d died; rank %d says %q and blames %v", victim, r.Rank, r.Message, r.Blamed)
		}
	}
	testutil.NoError(t, enough.Set())
	for r, group := range groups {
		if err := group.Wait(); (err != nil) != (r == victim) {
			t.Error(err)
		}
	}
	testutil.NoError(t, errors.Join(q.Close(), g.Close(), enough.Close()))
	allBlocksCome(t, ctx)
}

// allBlocksCome wants all memory back, as soon as the dead have been reaped, and the collector has
// found what the tests before have dropped.
func allBlocksCome(t *testing.T, ctx context.Context) {
	d, err := arena.Default()
	testutil.NoError(t, err)
	testutil.EventuallyNoError(t, func() error {
		if n := d.Stats().Blocks; n > 0 {
			d.Reap()
			runtime.GC()
			return fmt.Errorf("%d blocks are left", n)
		}
		return nil
	})
}

// A doomed net kills its process where a sample is large.
type doomed struct{ Linear *nn.Linear }

func (d *doomed) Forward(x *autograd.Var) *autograd.Var {
	if x.T().Sum() > 100 {
		syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}
	return d.Linear.Forward(x)
}

var doomedLoss = dist.RegisterLoss("doomed", func(s *autograd.Scope, d *doomed, batch []*tensor.Tensor) *autograd.Var {
	return autograd.Sum(d.Forward(s.Const(batch[0])))
})

func TestRegression_S3_3_AReplicaThatIsKilledInForward(t *testing.T) {
	ctx, n := testutil.Context(t), &doomed{nn.NewLinear(2, 2, tensor.NewGenerator(1))}
	d, err := dist.NewDataParallel(ctx, doomedLoss, n,
		dist.DataParallelOptions{Process: shoal.Options{Workers: 2, Start: shoal.SpawnStart, Grace: watchdog}})
	testutil.NoError(t, err)
	x := ones(4, 2)
	_, err = d.Forward(ctx, x)
	testutil.NoError(t, err)
	tensor.SetAt(x, float32(1000), 3, 0) // in the part of rank 1
	_, err = d.Forward(ctx, x)
	if p := new(shoal.ProcessError); !errors.As(err, &p) || p.Rank != 1 {
		t.Errorf("%v", err)
	}
	if err := d.BackwardFrom(ctx, ones(4, 2)); !errors.Is(err, dist.ErrClosed) {
		t.Error(err)
	}
	d.Close()
}
