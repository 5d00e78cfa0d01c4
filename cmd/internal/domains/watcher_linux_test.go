package domains_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/cmd/internal/domains"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/shoaltest"
	"github.com/shoal-mp/shoal/test/testutil"
)

// aloneVar has the test binary be a program with a domain of its own, until its input ends.
const aloneVar = "SHOAL_TEST_ALONE"

// idle is a worker that does nothing until its program ends.
var idle = shoal.Register("idle", func(ctx context.Context, _, _ int) error {
	<-ctx.Done()
	return nil
})

// dies is a worker that fails.
var dies = shoal.Register("dies", func(context.Context, int, int) error { return errors.New("as it should") })

func TestMain(m *testing.M) {
	if os.Getenv(aloneVar) != "" {
		shoal.Main(func(ctx context.Context) error {
			q, err := ipc.NewQueue[int](1)
			if err != nil {
				return err
			}
			defer q.Close()
			g := shoal.NewGroup(ctx, shoal.Options{}) // a program answers from its first worker on
			defer g.Close()
			idle.Go(g, 0)
			again := shoal.NewGroup(ctx, shoal.Options{Restart: shoal.Restart{Max: 2, Backoff: time.Millisecond}})
			dies.Go(again, 0)
			again.Wait()
			fmt.Println("ready")
			io.Copy(io.Discard, os.Stdin)
			return nil
		})
	}
	shoaltest.TestMain(m)
}

func TestAProgramThatIsStoppedIsNamedAndNotWaitedFor(t *testing.T) {
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), aloneVar+"=1")
	in, err1 := c.StdinPipe()
	out, err2 := c.StdoutPipe()
	if err := errors.Join(err1, err2, c.Start()); err != nil {
		t.Fatal(err)
	}
	late := time.AfterFunc(time.Minute, func() { c.Process.Kill() })
	defer func() {
		c.Process.Signal(syscall.SIGCONT)
		in.Close()
		if err := c.Wait(); err != nil {
			t.Errorf("the other program: %v", err)
		}
		late.Stop()
	}()
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		t.Fatalf("%q, %v", line, err)
	}
	pid := c.Process.Pid
	wanted := fmt.Sprintf("process %d is stopped: resume it with kill -CONT %[1]d", pid)
	look := func() *domains.Domain {
		census, err := domains.Look(t.Context(), 10*time.Millisecond)
		if err != nil {
			t.Fatal(err)
		}
		for i, d := range census.Domains {
			if strings.Contains(d.Address, fmt.Sprintf("/%d-", pid)) {
				return &census.Domains[i]
			}
		}
		return nil
	}
	until := func(what string, ok func(*domains.Domain) bool) *domains.Domain {
		var d *domains.Domain
		testutil.Eventually(t, func() bool { d = look(); return d != nil && ok(d) },
			"the other program is never seen %s", what)
		return d
	}
	until("at all", func(d *domains.Domain) bool { return d.Error == "" })
	if err := c.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	d := until("as stopped", func(d *domains.Domain) bool { return d.Error == wanted })
	if len(d.Processes) < 2 || d.Processes[0].PID != pid || d.Processes[0].State != domains.Stopped {
		t.Errorf("%+v", d)
	}
	if err := c.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	d = until("to go on", func(d *domains.Domain) bool { return d.Error == "" && len(d.Queues) == 1 })
	if d.Restarts != 2 {
		t.Errorf("got %d restarts, want 2", d.Restarts)
	}
}

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
			if p.Role == domains.Worker && p.Function == "crosswise" && p.State == domains.Running &&
				p.Parent == os.Getpid() &&
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
