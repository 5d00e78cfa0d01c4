//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/codec"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/pool"
	"github.com/shoal-mp/shoal/shoaltest"
)

func TestMain(m *testing.M) { shoaltest.TestMain(m) }

// faulty registers lockers that do something wrong now and then.
func faulty(name string, deed func(w *locker, ctx context.Context) error) *shoal.Func[lockJob] {
	return shoal.Register("faulty: "+name, func(ctx context.Context, _ int, j lockJob) error {
		return j.work(ctx, deed)
	})
}

var (
	getsTwice = faulty("gets twice", func(w *locker, ctx context.Context) error {
		return w.takeTensor(func() (numberedTensor, error) {
			v, err := w.Queue.TryGet()
			if err == nil {
				w.pen.write(gets, v.ID)
			}
			return v, err
		})
	})
	loses = faulty("loses", func(w *locker, ctx context.Context) error {
		v, err := w.Queue.TryGet()
		if err != nil {
			return forgive(err)
		}
		return v.T.Close()
	})
	invents = faulty("invents", func(w *locker, ctx context.Context) error {
		v, err := newParcel(w.number(), 1)
		if err != nil {
			return err
		}
		return errors.Join(forgive(w.Queue.TryPut(v)), v.T.Close())
	})
	mixesUp = faulty("mixes up", func(w *locker, ctx context.Context) error {
		return w.putNumbered(func(v numberedTensor) error {
			v.T.Fill(1)
			return w.Queue.TryPut(v)
		})
	})
	halfDone = faulty("half done", func(w *locker, ctx context.Context) error {
		if err := w.Mutex.Lock(ctx); err != nil {
			return forgive(err, errors.Join(w.Mutex.MarkConsistent(), w.Mutex.Unlock(), ipc.ErrOwnerDied))
		}
		n, err := w.Numbers.At(0)
		return errors.Join(err, w.Numbers.Set(0, n+1), w.Mutex.Unlock())
	})
	unlocked = faulty("unlocked", func(w *locker, ctx context.Context) error {
		w.pen.write(enters, theMutex)
		time.Sleep(time.Millisecond)
		w.pen.write(leaves, theMutex)
		return nil
	})
	leavesName = faulty("leaves a name", func(w *locker, ctx context.Context) error {
		v, err := newParcel(w.number(), 1)
		if err != nil {
			return err
		}
		return errors.Join(forgive(ipc.Bind(ctx, "left", v), arena.ErrExist), v.T.Close())
	})
	exits = faulty("exits", func(w *locker, ctx context.Context) error {
		if w.rand.IntN(20) == 0 {
			os.Exit(3)
		}
		return nil
	})
	deaf = faulty("deaf", func(w *locker, ctx context.Context) error {
		if w.Number%2 == 0 {
			<-ctx.Done()
			select {}
		}
		return nil
	})

	wrongResult = pool.Register("faulty: wrong result", func(ctx context.Context, in poolTask) (numberedTensor, error) {
		p, err := openPen(in.Book)
		if err != nil {
			return numberedTensor{}, err
		}
		p.write(begins, in.ID)
		return newParcel(in.ID^1, 3)
	})
	failingTask = pool.Register("faulty: failing task", func(ctx context.Context, in poolTask) (numberedTensor, error) {
		p, err := openPen(in.Book)
		if err != nil {
			return numberedTensor{}, err
		}
		p.write(begins, in.ID)
		return numberedTensor{}, errors.New("no result")
	})

	paysHalf = shoal.Register("faulty: pays half", func(ctx context.Context, _ int, j clientJob) error {
		return j.work(ctx, func(c *client, ctx context.Context) error {
			_, err := c.Accounts.Add(ctx, 0, -1)
			return err
		})
	})
	addsUnseen = shoal.Register("faulty: adds unseen", func(ctx context.Context, _ int, j clientJob) error {
		return j.work(ctx, func(c *client, ctx context.Context) error {
			_, err := c.Count.Add(ctx, 1000)
			return err
		})
	})

	blamesNobody = shoal.Register("faulty: blames nobody", func(ctx context.Context, _ int, j rankJob) error {
		defer j.Group.Close()
		p, err := openPen(j.Book)
		if err != nil {
			return err
		}
		p.write(begins, j.Round)
		if err := j.Group.Join(j.Rank); err != nil {
			return err
		}
		j.Group.Barrier(ctx)
		j.Group.Barrier(ctx)
		return nil
	})

	passesTwice = shoal.Register("faulty: passes on twice", func(ctx context.Context, _ int, j deviceJob) error {
		p, err := openPen(j.Book)
		if err != nil {
			return err
		}
		for ctx.Err() == nil {
			v, err := j.In.Get(ctx)
			if err != nil {
				return nil
			}
			p.write(gets, v.ID)
			if err := errors.Join(j.Out.Put(ctx, v), j.Out.Put(ctx, v), v.T.Close()); err != nil && ctx.Err() == nil {
				return err
			}
		}
		return nil
	})
)

// A repeating data set has one sample in the place of another.
type repeating struct{ Book indexDataset }

func (r *repeating) Len() int { return r.Book.Len() }

func (r *repeating) Get(ctx context.Context, i int) (data.Sample, error) {
	return r.Book.Get(ctx, max(i, 1))
}

func init() { codec.RegisterType[*repeating]("torture.repeating") }

// leave opens a descriptor, which stays open until the test ends.
func leave(t *testing.T) error {
	fd, err := syscall.Open("/dev/null", syscall.O_CLOEXEC, 0)
	if err == nil {
		t.Cleanup(func() { syscall.Close(fd) })
	}
	return err
}

// Torture is worth what it notices. Each storm is had with processes that do something wrong.
func TestStorm_NoticesWhatGoesWrong(t *testing.T) {
	locks := func(work *shoal.Func[lockJob]) func(*storm) error {
		return func(s *storm) error { return lockerStorm(s, work) }
	}
	crashes, hangs := func(t tally) int { return t.Crashes }, func(t tally) int { return t.Hangs }
	twice, lost := func(t tally) int { return t.Twice }, func(t tally) int { return t.Lost }
	for _, c := range []struct {
		name string
		blow func(*storm) error
		seen func(tally) int // what is to be more than 0
		says string          // of what went wrong
	}{
		{"gets twice", locks(getsTwice), twice, "came 2 times"},
		{"loses", locks(loses), lost, "are lost"},
		{"invents", locks(invents), twice, "nobody put it"},
		{"mixes up", locks(mixesUp), crashes, "has the element 0x1"},
		{"half done", locks(halfDone), crashes, "because no holder died"},
		{"unlocked", locks(unlocked), twice, "processes hold what 1 may"},
		{"leaves a name", locks(leavesName), func(t tally) int { return t.Blocks }, "blocks are left"},
		{"exits", locks(exits), crashes, "ended by itself"},
		{"deaf", locks(deaf), hangs, "had to be ended"},
		{"wrong result", func(s *storm) error { return taskStorm(s, wrongResult) }, twice, "has the result of"},
		{"failing task", func(s *storm) error { return taskStorm(s, failingTask) }, lost, "a task has failed"},
		{"pays half", func(s *storm) error { return clientStorm(s, paysHalf) }, twice, "a transaction sees"},
		{"adds unseen", func(s *storm) error { return clientStorm(s, addsUnseen) }, lost, "additions, want"},
		{"blames nobody", func(s *storm) error { return groupStorm(s, blamesNobody) }, lost, "0 of 2 ranks blame"},
		{"repeats a sample", func(s *storm) error { return epochStorm(s, &repeating{indexDataset{samples, s.path}}) },
			twice, "sample 1 comes where 0"},
		{"passes on twice", func(s *storm) error { return consumerStorm(s, passesTwice) }, twice,
			"came twice from a device"},
		{"stands still", func(s *storm) error { s.progress(); return nil }, hangs, "nobody gets on"},
		{"fails", func(s *storm) error { return errors.New("by itself") }, crashes, "by itself"},
		{"leaves a descriptor", func(s *storm) error { return leave(t) }, func(t tally) int { return t.FDs },
			"descriptors, and"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := stormKind{name: c.name, blow: c.blow}.begin(20, 1, 2*time.Second)
			if err != nil {
				t.Fatal(err)
			}
			if err := s.runTwice(t.Context()); err != nil {
				t.Fatal(err)
			}
			ipc.Unlink("left")
			if said := fmt.Sprintf("%q", s.violate); c.seen(s.seen) == 0 || !strings.Contains(said, c.says) {
				t.Errorf("it is not noticed: %+v, %s", s.seen, said)
			}
		})
	}
}

// Where nothing goes wrong, no storm says that something did.
func TestStorm_FindsNothingWhereAllIsWell(t *testing.T) {
	for _, k := range storms {
		if k.full || k.name == "python" {
			continue
		}
		t.Run(k.name, func(t *testing.T) {
			s, err := k.begin(10, 1, time.Minute)
			if err != nil {
				t.Fatal(err)
			}
			if err := s.runTwice(t.Context()); err != nil {
				t.Fatal(err)
			}
			if s.seen.wrong() != 0 || s.seen.Kills+s.seen.Early < 5 {
				t.Errorf("%+v: %q", s.seen, s.violate)
			}
		})
	}
}
