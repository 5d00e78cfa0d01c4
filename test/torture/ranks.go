//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/dist"
	"github.com/shoal-mp/shoal/tensor"
)

const worldSize, elements = 3, 1000

// A rankJob is the argument of a rank, a process of a group.
type rankJob struct {
	Book  string
	Group *dist.Group
	Rank  int
	Round uint64
}

// blames is the kind of entry that records a round and the rank that is blamed.
const blames = 'X'

// rankWork performs all-reduces until a rank dies.
var rankWork = shoal.Register("torture rank", func(ctx context.Context, _ int, j rankJob) error {
	defer j.Group.Close()
	p, err := openPen(j.Book)
	if err != nil {
		return err
	}
	if err := j.Group.Join(j.Rank); err != nil {
		return err
	}
	for step := 1; ; step++ {
		t := tensor.Full(tensor.Float32, float64(step*(j.Rank+1)), elements)
		p.write(begins, j.Round)
		err := j.Group.AllReduce(ctx, dist.Sum, t)
		if e, ok := errors.AsType[*dist.RankError](err); ok && errors.Is(err, dist.ErrBroken) {
			for _, r := range e.Ranks {
				p.write(blames, j.Round<<8|uint64(r))
			}
			return nil
		}
		if err != nil {
			return err
		}
		for _, v := range tensor.Data[float32](t) {
			if v != float32(step*worldSize*(worldSize+1)/2) {
				return fmt.Errorf("round %d, step %d: the sum is %v", j.Round, step, v)
			}
		}
		p.write(ends, j.Round)
	}
})

// rankStorm runs one group after another and kills one rank of each at a random time. The others
// are stopped from time to time. It reports violations to s.
func rankStorm(s *storm) error { return groupStorm(s, rankWork) }

func groupStorm(s *storm, work *shoal.Func[rankJob]) error {
	for round := uint64(1); round <= uint64(max(1, s.deaths)); round++ {
		if err := rankRound(s, work, round); err != nil {
			return fmt.Errorf("round %d: %w", round, err)
		}
	}
	return shoal.Warm(s.ctx, 0, shoal.Options{Workers: worldSize})
}

func rankRound(s *storm, work *shoal.Func[rankJob], round uint64) error {
	world, err := dist.NewGroup(worldSize)
	if err != nil {
		return err
	}
	victim := s.intn(worldSize)
	o := shoal.Options{Workers: worldSize}
	// If a warm process dies before it has begun, another one takes its place.
	early := s.intn(4) == 0 && s.deaths > 0
	if s.intn(3) == 0 && !early {
		o.Start = shoal.WarmStart
	}
	var groups []*shoal.Group
	var ranks []*shoal.Process
	for r := range worldSize {
		g := shoal.NewGroup(s.ctx, o)
		groups = append(groups, g)
		ranks = append(ranks, work.Go(g, rankJob{s.path, world, r, round}))
	}
	if err := world.Close(); err != nil {
		return err
	}
	if !early {
		s.eventually(func() bool { return s.book.knows(ranks[victim].PID()) })
	}
	for range s.intn(3) {
		s.stop(ranks[s.intn(worldSize)])
		time.Sleep(time.Duration(s.intn(5000)) * time.Microsecond)
	}
	if s.deaths == 0 { // the first run does not count
		ranks[victim].Signal(syscall.SIGCONT)
		ranks[victim].Signal(os.Kill)
		s.mu.Lock()
		s.dead[ranks[victim].PID()] = true
		s.mu.Unlock()
	} else {
		s.kill(ranks[victim])
	}
	ctx, cancel := s.timeoutContext()
	defer cancel()
	for r, p := range ranks {
		err := p.Wait(ctx)
		if ctx.Err() != nil {
			s.wrong(&s.seen.Hangs, 1, "round %d: rank %d was killed, and rank %d waits", round, victim, r)
			groups[r].Close()
			continue
		}
		if (err != nil) != (r == victim) || err != nil && !s.explained(err) {
			s.wrong(&s.seen.Crashes, 1, "round %d: rank %d was killed, and rank %d ends with %v", round, victim, r, err)
		}
		groups[r].Wait()
	}
	blamed := slices.DeleteFunc(slices.Clone(s.book.readEntries()), func(e entry) bool {
		return e.What != blames || e.ID != round<<8|uint64(victim)
	})
	if len(blamed) != worldSize-1 {
		s.wrong(&s.seen.Lost, 1, "round %d: %d of %d ranks blame rank %d", round, len(blamed), worldSize-1, victim)
	}
	return nil
}
