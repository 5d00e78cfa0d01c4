package shoal_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/test/testutil"
)

type greeting struct {
	Dir   string
	Words map[string][]int
}

var stampRank = shoal.Register("stampRank", func(_ context.Context, rank int, g greeting) error {
	if len(g.Words["hello"]) != 3 {
		return fmt.Errorf("argument arrived as %v", g)
	}
	return os.WriteFile(fmt.Sprintf("%s/%d", g.Dir, rank), nil, 0o666)
})

func TestSpawn_RunsEveryRankWithTheSameArgument(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := stampRank.Spawn(testutil.Context(t), 5, greeting{dir, map[string][]int{"hello": {1, 2, 3}}}); err != nil {
		t.Fatal(err)
	}
	entries, _ := os.ReadDir(dir)
	var ranks []string
	for _, e := range entries {
		ranks = append(ranks, e.Name())
	}
	if want := []string{"0", "1", "2", "3", "4"}; !slices.Equal(ranks, want) {
		t.Errorf("ranks %v, want %v", ranks, want)
	}
}

func TestSpawn_NeedsAProcess(t *testing.T) {
	for _, n := range []int{0, -1} {
		if err := nothing.Spawn(testutil.Context(t), n, struct{}{}); err == nil {
			t.Errorf("Spawn of %d processes is no error", n)
		}
	}
}

var argvAndEnv = shoal.Register("argvAndEnv", func(_ context.Context, _ int, _ struct{}) error {
	fmt.Println(strings.Join(os.Args[1:], " "))
	if _, there := os.LookupEnv("SHOAL_WORKER"); there {
		return errors.New("the mark is still in the environment")
	}
	out, err := exec.Command("/bin/sh", "-c", `echo "mark=$SHOAL_WORKER"; ls -l /proc/self/fd`).Output()
	fmt.Printf("%s\n", out)
	if title := os.Args[0]; title != "shoal: argvAndEnv 0" {
		return fmt.Errorf("title is %q", title)
	}
	return err
})

func TestSpawn_HidesTheWorkerEnvironmentFromOthers(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	g := shoal.NewGroup(testutil.Context(t), shoal.Options{Stdout: &out})
	argvAndEnv.Go(g, struct{}{})
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(out.String(), "\n")
	if want := strings.Join(os.Args[1:], " "); lines[0] != want {
		t.Errorf("arguments %q, want %q", lines[0], want)
	}
	if lines[1] != "mark=" {
		t.Errorf("a program that a worker started sees %q", lines[1])
	}
	for _, ours := range []string{"socket:", "memfd:", "lifeline"} {
		if strings.Contains(out.String(), ours) {
			t.Errorf("a program that a worker started inherits %s\n%s", ours, out.String())
		}
	}
}

// seenInInit is what an initialiser of this package saw.
var seenInInit = shoal.IsWorker()

var initialised = shoal.Register("initialised", func(_ context.Context, _ int, parent int) error {
	if !seenInInit || !shoal.IsWorker() {
		return errors.New("IsWorker is false in a worker")
	}
	if os.Getpid() == parent {
		return errors.New("not another process")
	}
	return nil
})

func TestIsWorker_IsKnownToInitialisers(t *testing.T) {
	t.Parallel()
	if seenInInit || shoal.IsWorker() {
		t.Error("IsWorker is true in the first process")
	}
	if err := initialised.Spawn(testutil.Context(t), 2, os.Getpid()); err != nil {
		t.Error(err)
	}
}

// nested spawns itself, which only an assignment in init can say.
var nested *shoal.Func[int]

func init() {
	nested = shoal.Register("nested", func(ctx context.Context, _ int, depth int) error {
		fmt.Println("depth", depth)
		if depth == 0 {
			return fs404("the deepest")
		}
		return nested.Spawn(ctx, 2, depth-1)
	})
}

func TestSpawn_InAWorker(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	g := shoal.NewGroup(testutil.Context(t), shoal.Options{Stdout: &out})
	nested.Go(g, 2)
	err := g.Wait()
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the error of a grandchild comes back as %v", err)
	}
	if n := strings.Count(out.String(), "depth 2\n"); n != 1 {
		t.Errorf("%d workers of depth 2 in %q", n, out.String())
	}
}

func TestSpawn_ParallelOnesDoNotMix(t *testing.T) {
	t.Parallel()
	var wg sync.WaitGroup
	for range 4 {
		dir := t.TempDir()
		wg.Go(func() {
			if err := stampRank.Spawn(testutil.Context(t), 3,
				greeting{dir, map[string][]int{"hello": {1, 2, 3}}}); err != nil {
				t.Error(err)
			}
			if entries, _ := os.ReadDir(dir); len(entries) != 3 {
				t.Errorf("%d workers in %s", len(entries), dir)
			}
		})
	}
	wg.Wait()
}

var bulk = shoal.Register("bulk", func(_ context.Context, _ int, b []byte) error {
	for i, x := range b {
		if x != byte(i) {
			return fmt.Errorf("byte %d is %d", i, x)
		}
	}
	return nil
})

func TestSpawn_LargeArgumentArrivesWhole(t *testing.T) {
	t.Parallel()
	b := make([]byte, 10<<20)
	for i := range b {
		b[i] = byte(i)
	}
	if err := bulk.Spawn(testutil.Context(t), 2, b); err != nil {
		t.Error(err)
	}
}

func TestSpawn_RefusesAnOversizedArgument(t *testing.T) {
	t.Parallel()
	err := bulk.Spawn(testutil.Context(t), 1, make([]byte, 65<<20))
	if !errors.Is(err, shoal.ErrArgument) {
		t.Errorf("got %v, want ErrArgument", err)
	}
}

// TestSpawn_LeavesNoDescriptor runs alone, because it compares what is open.
func TestSpawn_LeavesNoDescriptor(t *testing.T) {
	nothing.Spawn(testutil.Context(t), 1, struct{}{}) // opens what stays open: lifeline, /dev/null, the domain
	before := openFiles(t)
	for range 3 {
		if err := nothing.Spawn(testutil.Context(t), 4, struct{}{}); err != nil {
			t.Fatal(err)
		}
		fails.Spawn(testutil.Context(t), 4, "exit")
	}
	// The domain lets go of its handle on a dead neighbour in its own time.
	testutil.EventuallyNoError(t, func() error {
		if len(openFiles(t)) > len(before) {
			return fmt.Errorf("before: %v\nafter: %v", before, openFiles(t))
		}
		return nil
	})
}

func TestRegister_AfterMainPanics(t *testing.T) {
	defer func() {
		if s := fmt.Sprint(recover()); !strings.Contains(s, "declare it as a package-level variable") {
			t.Errorf("panic %q", s)
		}
	}()
	shoal.Register("late", func(context.Context, int, int) error { return nil })
}
