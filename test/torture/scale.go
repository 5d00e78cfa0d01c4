//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/tensor"
)

// crowd is the number of concurrent processes. With their parent and dead processes that are not
// reaped yet, they fill the domain's 256 seats.
const crowd = 250

// A crowdJob holds the objects that the processes of a crowd share.
type crowdJob struct {
	Number uint64
	Book   string
	Queue  *ipc.Queue[uint64]
	Count  *ipc.Value[int64]
}

var crowdWork = shoal.Register("torture crowd", func(ctx context.Context, _ int, j crowdJob) error {
	p, err := openPen(j.Book)
	if err != nil {
		return err
	}
	r := rand.New(rand.NewPCG(j.Number, 4))
	for seq := uint64(1); ctx.Err() == nil; seq++ {
		id := j.Number<<24 | seq
		p.write(begins, id)
		err := j.Queue.TryPut(id)
		if err == nil {
			p.write(ends, id)
		}
		p.write(takes, 0)
		got, failed := j.Queue.TryGet()
		if failed == nil {
			p.write(gets, got)
		} else {
			p.write(none, 0)
		}
		_, sum := j.Count.Add(1)
		if err := errors.Join(forgive(err), forgive(failed), sum); err != nil {
			return err
		}
		time.Sleep(time.Duration(50+r.IntN(100)) * time.Millisecond) // they share a few processors
	}
	return nil
})

// turnoverStorm kills and replaces as many processes as a domain has seats for. It reports lost
// and duplicate messages to s, and returns only the errors of its queue and its value.
func turnoverStorm(s *storm) error {
	q, err := ipc.NewQueue[uint64](1024)
	if err != nil {
		return err
	}
	count, err := ipc.NewValue[int64](0)
	if err != nil {
		return err
	}
	n := crowd
	if s.deaths == 0 {
		n = 4
	}
	s.keep(n, func(g *shoal.Group, number uint64) *shoal.Process {
		return crowdWork.Go(g, crowdJob{number, s.path, q, count})
	})
	a, doubtful := accounts(s.book.readEntries())
	for {
		id, failed := q.TryGet()
		if failed != nil {
			err = errors.Join(err, forgive(failed))
			break
		}
		a.got[id]++
	}
	a.judge(s, doubtful)
	return errors.Join(err, q.Close(), count.Close())
}

const million, lot = 1_000_000, 1000

// A hoardJob is the argument of the process that allocates a million tensors.
type hoardJob struct {
	Book string
	N    int
	Out  *ipc.Sender[[]*tensor.Tensor]
}

// hoardWork allocates and keeps tensors, and sends every other batch of them.
var hoardWork = shoal.Register("torture hoard", func(ctx context.Context, _ int, j hoardJob) error {
	p, err := openPen(j.Book)
	if err != nil {
		return err
	}
	var all []*tensor.Tensor
	for len(all) < j.N {
		var some []*tensor.Tensor
		for range lot {
			t, err := tensor.NewShared(tensor.Int64, 1)
			if err != nil {
				return fmt.Errorf("tensor %d: %w", len(all), err)
			}
			tensor.Data[int64](t)[0] = int64(len(all))
			all, some = append(all, t), append(some, t)
		}
		if len(all)/lot%2 == 0 {
			if err := j.Out.Put(ctx, some); err != nil {
				return err
			}
		}
	}
	p.write(ends, uint64(len(all)))
	if err := j.Out.Close(); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
})

// millionStorm kills a process that has allocated a million tensors while this process holds
// half of them. It reports wrong tensors to s, and returns other errors.
func millionStorm(s *storm) error {
	n := million
	if s.deaths == 0 {
		n = 10 * lot
	}
	d, err := arena.Default()
	if err != nil {
		return err
	}
	q, err := ipc.NewQueue[[]*tensor.Tensor](4)
	if err != nil {
		return err
	}
	g := shoal.NewGroup(s.ctx, shoal.Options{})
	p := hoardWork.Go(g, hoardJob{s.path, n, q.Sender()})
	if err := q.Sender().Close(); err != nil {
		return err
	}
	var mine []*tensor.Tensor
	for len(mine) < n/2 {
		some, err := q.Get(s.ctx)
		if err != nil {
			return err
		}
		mine = append(mine, some...)
	}
	s.eventually(func() bool { return s.book.knows(p.PID()) })
	if live := d.Stats().Blocks; live < n {
		s.wrong(&s.seen.Lost, 1, "%d tensors live, want %d", live, n)
	}
	s.kill(p)
	if s.deaths == 0 {
		s.seen = tally{} // the first run does not count
	}
	if err := g.Wait(); !s.explained(err) {
		return fmt.Errorf("the process with the tensors: %w", err)
	}
	for i, t := range mine {
		if got := tensor.At[int64](t, 0); got != int64(lot+i/lot*2*lot+i%lot) {
			s.wrong(&s.seen.Twice, 1, "tensor %d has %d", i, got)
			break
		}
		err = errors.Join(err, t.Close())
	}
	return errors.Join(err, q.Close())
}
