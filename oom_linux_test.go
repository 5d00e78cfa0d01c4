package shoal_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/internal/arena"
)

func init() {
	programs["eat"] = func() { shoal.Main(afterLine(runEater)) }
	programs["fill"] = func() { shoal.Main(afterLine(fill)) }
}

// afterLine runs a program when it has read a number: by then it is in its control group.
func afterLine(run func(ctx context.Context, n int64) error) func(ctx context.Context) error {
	return func(ctx context.Context) error {
		var n int64
		if _, err := fmt.Scan(&n); err != nil {
			return err
		}
		return run(ctx, n)
	}
}

// eat takes memory until it is killed. It asks to be the first that is.
var eat = shoal.Register("eat", func(ctx context.Context, _ int, _ struct{}) error {
	if err := os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0); err != nil {
		return err
	}
	var all [][]byte
	for range 64 << 10 {
		b := make([]byte, 1<<20)
		for i := 0; i < len(b); i += 4096 {
			b[i] = 1
		}
		all = append(all, b)
	}
	return fmt.Errorf("%d MiB, and nobody has killed me", len(all))
})

// runEater says what its worker's end looks like.
func runEater(ctx context.Context, _ int64) error {
	err := eat.Spawn(ctx, 1, struct{}{})
	pe, ok := errors.AsType[*shoal.ProcessError](err)
	if !ok {
		return fmt.Errorf("the worker lives, or was never there: %w", err)
	}
	fmt.Println(pe.OOM, errors.Is(err, shoal.ErrOOM), pe.Signal, pe)
	return nil
}

// fill takes all of the shared memory that it can get, touches it and says how much it was.
func fill(_ context.Context, budget int64) error {
	d, err := arena.New(arena.Options{Budget: budget})
	if err != nil {
		return err
	}
	got := 0
	for err == nil {
		var h arena.Handle
		if h, err = d.Alloc(4 << 20); err == nil {
			var p []byte
			p, err = d.Bytes(h)
			for i := 0; i < len(p); i += 4096 {
				p[i] = 1
			}
			got += len(p)
		}
	}
	space, ok := errors.AsType[*arena.SpaceError](err)
	if !ok || space.Want != 4<<20 || space.Free >= space.Want {
		return fmt.Errorf("%d bytes, then %w", got, err)
	}
	fmt.Println(got)
	return d.Close()
}

// A memoryGroup is a control group with a limit.
type memoryGroup struct{ dir string }

// newMemoryGroup makes one below our own, or skips the test where that is not possible: as another
// user than root, and in most containers.
func newMemoryGroup(t *testing.T, limit int) memoryGroup {
	t.Helper()
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		t.Skip(err)
	}
	for line := range strings.Lines(string(own)) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		top, file := "/sys/fs/cgroup/memory", "memory.limit_in_bytes"
		switch {
		case len(f) < 3:
			continue
		case f[1] == "":
			top, file = "/sys/fs/cgroup", "memory.max"
			f[2] = filepath.Dir(f[2]) // a group with processes, as ours, gives no controllers to groups below
		case f[1] != "memory":
			continue
		}
		g := memoryGroup{filepath.Join(top, f[2],
			fmt.Sprintf("shoal-test-%d-%s", os.Getpid(), filepath.Base(t.Name())))}
		if os.Mkdir(g.dir, 0o755) != nil {
			continue
		}
		t.Cleanup(g.remove)
		os.WriteFile(filepath.Join(filepath.Dir(g.dir), "cgroup.subtree_control"), []byte("+memory"), 0)
		if os.WriteFile(filepath.Join(g.dir, file), []byte(strconv.Itoa(limit)), 0) != nil {
			continue
		}
		for _, swap := range []string{"memory.swap.max", "memory.swappiness"} { // one of them is there
			os.WriteFile(filepath.Join(g.dir, swap), []byte("0"), 0)
		}
		return g
	}
	t.Skip("no memory control group can be made here: it takes root and a writable /sys/fs/cgroup")
	return memoryGroup{}
}

// remove waits until the kernel has noticed that the group's processes are gone.
func (g memoryGroup) remove() {
	for range 1000 {
		if os.Remove(g.dir) == nil {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func (g memoryGroup) add(t *testing.T, pid int) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(g.dir, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0); err != nil {
		t.Fatal(err)
	}
}

// run runs a program in the group, tells it a number and returns what it says.
func (g memoryGroup) run(t *testing.T, name string, n int64) string {
	t.Helper()
	cmd := program(t, name)
	in, out, errs := start(t, cmd)
	g.add(t, cmd.Process.Pid)
	fmt.Fprintln(in, n)
	var lines strings.Builder
	for out.Scan() {
		fmt.Fprintln(&lines, out.Text())
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, errs)
	}
	return lines.String()
}

const groupLimit = 256 << 20

func TestProcessError_SaysThatMemoryRanOut(t *testing.T) {
	g := newMemoryGroup(t, groupLimit)
	const alone = "true true killed shoal: eat rank 0"
	if said := g.run(t, "eat", 0); !strings.HasPrefix(said, alone) ||
		!strings.Contains(said, "signal: killed: by the kernel's out-of-memory killer") {
		t.Error(said)
	}
	// With a stranger in the group it may have been the stranger who was killed.
	stranger := exec.CommandContext(t.Context(), "sleep", "1000")
	if err := stranger.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		stranger.Process.Kill()
		stranger.Wait()
	}()
	g.add(t, stranger.Process.Pid)
	if said := g.run(t, "eat", 0); !strings.HasPrefix(said, alone) ||
		!strings.Contains(said, "probably by the kernel's out-of-memory killer") {
		t.Error(said)
	}
}

// The kernel would kill who commits more than its control group has: the budget says no before.
func TestSetMemory_EndsBeforeTheControlGroupDoes(t *testing.T) {
	g := newMemoryGroup(t, groupLimit)
	for name, budget := range map[string]int64{"default": 0, "far too large": 1 << 40} {
		got, err := strconv.Atoi(strings.TrimSpace(g.run(t, "fill", budget)))
		if err != nil || got < groupLimit/4 || got > groupLimit {
			t.Errorf("budget %s: %d bytes of shared memory in a group of %d, %v", name, got, groupLimit, err)
		}
	}
}
