package domains_test

import (
	"context"
	"os"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/cmd/internal/domains"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/shoaltest"
)

func TestMain(m *testing.M) { shoaltest.TestMain(m) }

// pair is two locks, a barrier at which each worker has its first one, and a queue to say which
// process it is.
type pair struct {
	Locks [2]*ipc.Mutex
	Both  *ipc.Barrier
	Ready *ipc.Sender[int]
}

// crosswise takes the lock of its rank, then the other one.
var crosswise = shoal.Register("crosswise", func(ctx context.Context, rank int, p pair) error {
	if err := p.Locks[rank].Lock(ctx); err != nil {
		return err
	}
	defer p.Locks[rank].Unlock()
	if err := p.Ready.Put(ctx, os.Getpid()); err != nil {
		return err
	}
	if _, err := p.Both.Wait(ctx); err != nil {
		return err
	}
	return p.Locks[1-rank].Lock(ctx)
})

func TestAWatcherSeesADeadlockAndWhatItsProcessesAre(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs /proc")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	ready, err := ipc.NewQueue[int](4)
	if err != nil {
		t.Fatal(err)
	}
	defer ready.Close()
	p := pair{Ready: ready.Sender()}
	for i := range p.Locks {
		if p.Locks[i], err = ipc.NewMutex(); err != nil {
			t.Fatal(err)
		}
		defer p.Locks[i].Close()
	}
	if p.Both, err = ipc.NewBarrier(2); err != nil {
		t.Fatal(err)
	}
	defer p.Both.Close()
	end, stop := context.WithCancel(ctx)
	g := shoal.NewGroup(end, shoal.Options{})
	defer g.Close()
	defer stop()
	var pids []int
	for range 2 {
		crosswise.Go(g, p)
	}
	for len(pids) < 2 {
		pid, err := ready.Get(ctx)
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	slices.Sort(pids)
	var w domains.Watcher
	for {
		c, err := w.Look(ctx, 50*time.Millisecond)
		if err != nil {
			t.Fatal(err)
		}
		d := mine(c)
		if d == nil {
			t.Fatalf("this program is not among %+v", c.Domains)
		}
		if len(d.Deadlocks) == 0 {
			continue
		}
		var circle []int
		for _, w := range d.Deadlocks[0].Waits {
			circle = append(circle, w.PID)
		}
		slices.Sort(circle)
		if !slices.Equal(circle, pids) {
			t.Errorf("a circle of %v, want %v", circle, pids)
		}
		ranks := 0
		for _, p := range d.Processes {
			if p.Role == domains.Worker && p.Function == "crosswise" && p.State == domains.Running && p.Parent == os.Getpid() &&
				p.Seat > 0 && p.Rank != nil {
				ranks += 1 + *p.Rank
			}
		}
		if ranks != 3 || d.Processes[0].Role != domains.Root || d.Processes[0].PID != os.Getpid() {
			t.Errorf("processes: %+v", d.Processes)
		}
		break
	}
	if err := syscall.Kill(pids[0], syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	defer syscall.Kill(pids[0], syscall.SIGCONT)
	for stopped := false; !stopped; {
		c, err := w.Look(ctx, 20*time.Millisecond)
		if err != nil {
			t.Fatal(err)
		}
		stopped = slices.ContainsFunc(mine(c).Processes, func(p domains.Process) bool {
			return p.PID == pids[0] && p.State == domains.Stopped
		})
	}
}

// waits says that it is there, and waits.
var waits = shoal.Register("waits", func(ctx context.Context, _ int, ready *ipc.Sender[int]) error {
	if err := ready.Put(ctx, os.Getpid()); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
})

// A Watcher does not read the threads of a process that had no processor time, and sees that one
// that had some can run, also in looks after its first.
func TestAWatcherSeesWhoCanRun(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	ready, err := ipc.NewQueue[int](1)
	if err != nil {
		t.Fatal(err)
	}
	defer ready.Close()
	g := shoal.NewGroup(ctx, shoal.Options{})
	defer g.Close()
	defer cancel()
	waits.Go(g, ready.Sender())
	idle, err := ready.Get(ctx)
	if err != nil {
		t.Fatal(err)
	}
	spin, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		for spin.Err() == nil {
		}
	}()
	const renewed = 10 // looks until a Watcher reads threads again
	var w domains.Watcher
	for n := 0; ; n++ {
		c, err := w.Look(ctx, 30*time.Millisecond)
		if err != nil {
			t.Fatal(err)
		}
		runnable := map[int]int{}
		for _, p := range mine(c).Processes {
			runnable[p.PID] = p.Runnable
		}
		if n >= renewed && runnable[os.Getpid()] > 0 && runnable[idle] == 0 {
			break
		}
	}
}

func mine(c domains.Census) *domains.Domain {
	for i, d := range c.Domains {
		if len(d.Processes) > 0 && d.Processes[0].PID == os.Getpid() {
			return &c.Domains[i]
		}
	}
	return nil
}
