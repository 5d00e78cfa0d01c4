package shoal_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/test/testutil"
)

// kin returns the children of this process.
func kin(t *testing.T) (pids []string) {
	lists, err := filepath.Glob("/proc/self/task/*/children")
	if err != nil {
		t.Fatal(err)
	}
	for _, list := range lists {
		b, _ := os.ReadFile(list) // a thread may have ended meanwhile
		pids = append(pids, strings.Fields(string(b))...)
	}
	return pids
}

var whoAmI = shoal.Register("whoAmI", func(context.Context, int, struct{}) error {
	comm, err := os.ReadFile("/proc/self/comm")
	fmt.Println(os.Getpid(), os.Args[0], strings.TrimSpace(string(comm)))
	return err
})

func TestWarm_ProcessIsThereBeforeItsJob(t *testing.T) {
	opts := shoal.Options{Start: shoal.WarmStart, Env: []string{"KIND=a"}}
	if err := shoal.Warm(testutil.Context(t), 2, opts); err != nil {
		t.Fatal(err)
	}
	before := kin(t)
	var out strings.Builder
	opts.Stdout = &out
	if g, err := whoAmI.Start(testutil.Context(t), 2, struct{}{}, opts); err != nil || g.Wait() != nil {
		t.Fatal(err, g.Wait())
	}
	for line := range strings.Lines(out.String()) {
		var pid, rest string
		fmt.Sscan(line, &pid, &rest)
		if !slices.Contains(before, pid) || !strings.Contains(line, "shoal: whoAmI ") ||
			!strings.Contains(line, " whoAmI ") {
			t.Errorf("%q was not among %v, or has no name", strings.TrimSpace(line), before)
		}
	}
	// another one takes the place of the one that has served
	if err := shoal.Warm(testutil.Context(t), 1, opts); err != nil {
		t.Error(err)
	}
	if err := shoal.Warm(testutil.Context(t), 0, opts); err != nil {
		t.Error(err)
	}
}

func TestWarm_ProcessThatDiedIsNotUsed(t *testing.T) {
	opts := shoal.Options{Start: shoal.WarmStart, Env: []string{"KIND=b"}}
	before := kin(t)
	if err := shoal.Warm(testutil.Context(t), 1, opts); err != nil {
		t.Fatal(err)
	}
	for _, pid := range kin(t) {
		if !slices.Contains(before, pid) && cmdline(pid) == "shoal: warm" {
			var n int
			fmt.Sscan(pid, &n)
			if err := send(n, os.Kill); err != nil {
				t.Fatal(err)
			}
			untilGone(t, n)
		}
	}
	g := shoal.NewGroup(testutil.Context(t), opts)
	hello.Go(g, "x")
	if err := g.Wait(); err != nil {
		t.Error(err)
	}
	if err := shoal.Warm(testutil.Context(t), 0, opts); err != nil {
		t.Error(err)
	}
}

func cmdline(pid string) string {
	b, _ := os.ReadFile("/proc/" + pid + "/cmdline")
	first, _, _ := strings.Cut(string(b), "\x00")
	return first
}

func TestWarm_SaysWhyItCannot(t *testing.T) {
	t.Parallel()
	err := shoal.Warm(testutil.Context(t), 1, shoal.Options{Executable: "/bin/sh", Env: []string{"ENV=/dev/null"}})
	if !errors.Is(err, shoal.ErrExited) {
		t.Errorf("a shell that waits for a job: %v", err)
	}
	if err := shoal.Warm(testutil.Context(t), 1, shoal.Options{Executable: "/does/not/exist"}); !errors.Is(err,
		os.ErrNotExist) {
		t.Errorf("nothing that waits for a job: %v", err)
	}
	if err := shoal.Warm(testutil.Context(t), -1, shoal.Options{}); err == nil {
		t.Error("less than no process is no error")
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	opts := shoal.Options{Env: []string{"KIND=c"}}
	if err := shoal.Warm(over, 1, opts); err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// TestWarm_ProcessIsOfTodaysDomain changes the domain of the process, as a program with its own
// shm.Options does that is late with it.
func TestWarm_ProcessIsOfTodaysDomain(t *testing.T) {
	opts := shoal.Options{Start: shoal.WarmStart, Env: []string{"KIND=c"}}
	first, err := arena.Default()
	if err != nil {
		t.Fatal(err)
	}
	before := kin(t)
	if err := shoal.Warm(testutil.Context(t), 1, opts); err != nil {
		t.Fatal(err)
	}
	waiting := slices.DeleteFunc(kin(t), func(pid string) bool { return slices.Contains(before, pid) })
	second, err := arena.New(arena.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	arena.SetDefault(second)
	defer arena.SetDefault(first)
	var out strings.Builder
	opts.Stdout = &out
	g := shoal.NewGroup(testutil.Context(t), opts)
	whoAmI.Go(g, struct{}{})
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	if pid, _, _ := strings.Cut(out.String(), " "); slices.Contains(waiting, pid) {
		t.Errorf("process %s has the job, which is in another domain", pid)
	}
	for _, n := range []int{1, 0} { // the successor comes, and goes
		if err := shoal.Warm(testutil.Context(t), n, opts); err != nil {
			t.Error(err)
		}
	}
}
