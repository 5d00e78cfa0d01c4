package shoal_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/internal/sys"
	"github.com/shoal-mp/shoal/test/testutil"
)

// chain is a line of processes: each starts the next, and the last is busy.
type chain struct {
	Dir   string
	Depth int // of processes below
}

var descend *shoal.Func[chain]

func init() {
	programs["chain"] = func() {
		shoal.Main(func(ctx context.Context) error {
			return descend.Spawn(ctx, 1, chain{os.Getenv("SHOAL_TEST_DIR"), 2})
		})
	}
	programs["chain of a thread that ends"] = func() {
		shoal.Main(func(ctx context.Context) error {
			g := shoal.NewGroup(ctx, shoal.Options{})
			started := make(chan struct{})
			go func() {
				defer close(started)
				runtime.LockOSThread() // for good
				descend.Go(g, chain{os.Getenv("SHOAL_TEST_DIR"), 2})
			}()
			<-started
			return g.Wait()
		})
	}
	descend = shoal.Register("descend", func(ctx context.Context, _ int, c chain) error {
		if err := writeWhole(filepath.Join(c.Dir, strconv.Itoa(c.Depth)), strconv.Itoa(os.Getpid())); err != nil {
			return err
		}
		if c.Depth == 0 {
			return keepBusy()
		}
		g := shoal.NewGroup(context.Background(), shoal.Options{Threads: 1}) // deaf to its own cancellation
		descend.Go(g, chain{c.Dir, c.Depth - 1})
		return g.Wait()
	})
}

// keepBusy holds this process's only P. (What not even the scheduler can interrupt is tested in
// internal/sys.)
func keepBusy() error {
	if n := runtime.GOMAXPROCS(0); n != 1 {
		return fmt.Errorf("GOMAXPROCS is %d, and shall be 1", n)
	}
	for n := uint64(0); ; n++ {
		sink = n
	}
}

var sink uint64

// pidAt waits for the process at a depth.
func pidAt(t *testing.T, dir string, depth int) int {
	t.Helper()
	pid := 0
	testutil.Eventually(t, func() bool {
		b, err := os.ReadFile(filepath.Join(dir, strconv.Itoa(depth)))
		pid, _ = strconv.Atoi(string(b))
		return err == nil && pid > 0
	}, "no process at depth %d", depth)
	return pid
}

// TestProcess_EndsWithAnyAncestor kills each of the upper processes of a chain of four: the
// program, its child, its grandchild. Everything below must go by itself.
func TestProcess_EndsWithAnyAncestor(t *testing.T) {
	for victim := 3; victim >= 1; victim-- {
		t.Run(fmt.Sprintf("victim %d", victim), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			cmd := program(t, "chain", "SHOAL_TEST_DIR="+dir)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			pids := []int{pidAt(t, dir, 0), pidAt(t, dir, 1), pidAt(t, dir, 2), cmd.Process.Pid}
			if err := send(pids[victim], os.Kill); err != nil {
				t.Fatal(err)
			}
			t.Logf("%d descendants were gone after %v", victim, untilGone(t, pids[:victim]...))
			cmd.Wait() // the ancestors of the victim end with its failure
			untilGone(t, pids...)
		})
	}
}

// TestProcess_StoppedOnesEndWithTheirRoot stops all processes below a program and kills that.
func TestProcess_StoppedOnesEndWithTheirRoot(t *testing.T) {
	for _, name := range []string{"chain", "chain of a thread that ends"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			cmd := program(t, name, "SHOAL_TEST_DIR="+dir)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			pids := []int{pidAt(t, dir, 0), pidAt(t, dir, 1), pidAt(t, dir, 2)}
			for _, pid := range pids {
				defer send(pid, os.Kill)
				if err := send(pid, syscall.SIGSTOP); err != nil {
					t.Fatal(err)
				}
			}
			for _, pid := range pids {
				testutil.Eventually(t, func() bool { return sys.Stopped(pid) }, "process %d does not stop", pid)
			}
			cmd.Process.Kill()
			cmd.Wait()
			untilGone(t, pids...)
		})
	}
}

var orphaned = shoal.Register("orphaned", func(ctx context.Context, _ int, dir string) error {
	if err := stamp(dir); err != nil {
		return err
	}
	<-ctx.Done()
	cause := fmt.Sprint(context.Cause(ctx) == shoal.ErrOrphaned)
	return os.WriteFile(filepath.Join(dir, "cause"), []byte(cause), 0o666)
})

var fosters = shoal.Register("fosters", func(ctx context.Context, _ int, dir string) error {
	g := shoal.NewGroup(ctx, shoal.Options{OrphanGrace: watchdog})
	orphaned.Go(g, dir)
	return g.Wait()
})

func TestOptions_OrphanGraceLetsAWorkerSeeTheCancellation(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	g := shoal.NewGroup(testutil.Context(t), shoal.Options{})
	p := fosters.Go(g, dir)
	child := 0
	for begin := time.Now(); child == 0 && time.Since(begin) < watchdog; time.Sleep(time.Millisecond) {
		for pid := range stamps(t, dir) {
			child = pid
		}
	}
	p.Signal(os.Kill)
	g.Wait()
	untilGone(t, child)
	if b, err := os.ReadFile(filepath.Join(dir, "cause")); err != nil || string(b) != "true" {
		t.Errorf("the cause was ErrOrphaned: %q, %v", b, err)
	}
}
