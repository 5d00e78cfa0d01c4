package mpi_test

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/dist"
	"github.com/shoal-mp/shoal/dist/internal/mpi"
	_ "github.com/shoal-mp/shoal/dist/mpi"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/shoaltest"
	"github.com/shoal-mp/shoal/tensor"
)

// roleKey is the variable by which a test tells the ranks, which are this binary again, what they
// are to do.
const roleKey = "SHOAL_TEST_RANK"

func TestMain(m *testing.M) {
	if role := os.Getenv(roleKey); role != "" && !shoal.IsWorker() {
		shoal.Main(func(ctx context.Context) error { return roles[role](ctx) })
	}
	shoaltest.TestMain(m)
}

// full has tests run with 4 ranks as well. MPICH takes half a minute then, with fewer processors.
var full = flag.Bool("mpi.full", false, "the tests of failures, and 4 ranks as well: scripts/mpi")

func onlyFull(t *testing.T) {
	t.Helper()
	if !*full {
		t.Skip("only with -mpi.full, which scripts/mpi has")
	}
}

// watchdog is far beyond what anything here takes.
const watchdog = 100 * time.Second

var roles = map[string]func(ctx context.Context) error{
	"suite": func(ctx context.Context) error { return joined(ctx, suite) },
	"late":  func(ctx context.Context) error { return joined(ctx, late) },
	"left":  func(ctx context.Context) error { return joined(ctx, leaves) },
	"alone": func(ctx context.Context) error { return joined(ctx, barriers) },
	"soon":  func(ctx context.Context) error { return soon(ctx, 200*time.Millisecond) },
	"shares": func(ctx context.Context) error {
		if os.Getenv("RANK") == "1" {
			if _, err := tensor.NewShared(tensor.Float32, 1); err != nil {
				return err
			}
		}
		return soon(ctx, watchdog)
	},
	"dies": func(ctx context.Context) error {
		return joined(ctx, func(ctx context.Context, g *dist.Group) error { return dies(ctx, g, 1) })
	},
	"leaderDies": func(ctx context.Context) error {
		return joined(ctx, func(ctx context.Context, g *dist.Group) error { return dies(ctx, g, 0) })
	},
	"sharesBefore": func(ctx context.Context) error {
		if os.Getenv("PMI_RANK")+os.Getenv("OMPI_COMM_WORLD_RANK") == "1" {
			if _, err := tensor.NewShared(tensor.Float32, 1); err != nil {
				return err
			}
		}
		return joined(ctx, suite)
	},
	"refused": func(context.Context) error { return refused() },
}

// joined runs f as a rank.
func joined(ctx context.Context, f func(ctx context.Context, g *dist.Group) error) (err error) {
	ctx, cancel := context.WithTimeout(ctx, watchdog)
	defer cancel()
	g, err := dist.Init(ctx)
	if err != nil {
		return err
	}
	if err := f(ctx, g); err != nil {
		return errors.Join(err, g.Close())
	}
	if err := g.Close(); err != nil {
		return err
	}
	fmt.Printf("rank %d of %d is done\n", g.Rank(), g.Size())
	return nil
}

// soon joins within a time.
func soon(ctx context.Context, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return joined(ctx, barriers)
}

// late has rank 1 not come to a call whose deadline ends. All get the error of a group of one
// machine.
func late(ctx context.Context, g *dist.Group) error {
	if err := g.Barrier(ctx); err != nil {
		return err
	}
	if g.Rank() == 1 {
		time.Sleep(300 * time.Millisecond)
		if err := broken("the late one", g.Barrier(ctx)); err != nil {
			return err
		}
		return toldLate(g)
	}
	if g.Rank() == 0 {
		var cancel func()
		ctx, cancel = context.WithTimeout(ctx, 100*time.Millisecond)
		defer cancel()
	}
	t := tensor.Ones(tensor.Float32, 1000)
	err := g.AllReduce(ctx, dist.Sum, t)
	t.Close() // which the library may still write to
	if g.Rank() == 0 && !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("no deadline: %w", err)
	}
	if err := broken("who waited", err); err != nil {
		return err
	}
	if err := broken("the next call", g.Barrier(ctx)); err != nil {
		return err
	}
	return toldLate(g)
}

// toldLate says that all is as it should be, and waits for the other rank: Hydra ends the others
// when a rank leaves without the library.
func toldLate(g *dist.Group) error {
	fmt.Printf("rank %d has the error\n", g.Rank())
	time.Sleep(time.Second)
	return nil
}

func broken(who string, err error) error {
	var e *dist.RankError
	if !errors.As(err, &e) || !errors.Is(err, dist.ErrBroken) {
		return fmt.Errorf("%s: %v", who, err)
	}
	return nil
}

// leaves has rank 1 close its group while the others call.
func leaves(ctx context.Context, g *dist.Group) error {
	if err := g.Barrier(ctx); err != nil || g.Rank() == 1 {
		return err
	}
	err := g.AllReduce(ctx, dist.Sum, tensor.Ones(tensor.Float32, 10))
	var e *dist.RankError
	if !errors.As(err, &e) || !errors.Is(err, dist.ErrLeft) || !slices.Equal(e.Ranks, []int{1}) {
		return fmt.Errorf("rank 1 has left: %v", err)
	}
	if _, err := g.Recv(ctx, 1, 0, tensor.Ones(tensor.Float32, 1)); !errors.Is(err, dist.ErrLeft) {
		return fmt.Errorf("a letter of a rank that has left: %v", err)
	}
	return nil
}

// dies has a rank kill itself in the middle of all-reduces. A launcher ends the other ranks by
// SIGTERM, or leaves them to their deadline: they say which error they got.
func dies(ctx context.Context, g *dist.Group, victim int) error {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	t := tensor.Ones(tensor.Float32, 1<<20)
	for i := 0; ; i++ {
		if g.Rank() == victim && i == 5 {
			go func() {
				time.Sleep(5 * time.Millisecond)
				syscall.Kill(os.Getpid(), syscall.SIGKILL)
			}()
		}
		if err := g.AllReduce(ctx, dist.Mean, t); err != nil {
			if err := broken("a survivor", err); err != nil {
				return err
			}
			fmt.Printf("survivor %d: %v\n", g.Rank(), err)
			os.Stdout.Sync()
			return err
		}
	}
}

// A launcher starts ranks.
type launcher struct {
	name    string // of its library
	engine  string // how dist.Init says that it is used
	program string
	flags   []string
	cannot  string // why it is not there
	limit   time.Duration
	env     []string
}

// abiKey is the folder of an MPICH with the ABI of MPI 5, and its launcher: scripts/mpi sets it.
const abiKey = "SHOAL_MPI_ABI"

// launchers returns those of this machine, some of which may be missing.
func launchers() []launcher {
	open := launcher{name: "Open MPI", engine: "Open MPI ", flags: []string{"--oversubscribe", "--allow-run-as-root"}}
	mpich := launcher{name: "MPICH", engine: "MPICH "}
	abi := launcher{name: "MPI 5 ABI", cannot: abiKey + " names no library with this ABI: scripts/mpi installs one"}
	if home := os.Getenv(abiKey); home != "" {
		abi = launcher{name: abi.name, engine: "MPICH 5", program: home + "/bin/mpiexec",
			env: []string{"SHOAL_MPI_LIBRARY=" + home + "/lib/libmpi_abi.so.1"}}
	}
	find := func(l *launcher, version string, names ...string) {
		for _, name := range names {
			out, err := exec.Command(name, "--version").CombinedOutput()
			if err == nil && strings.Contains(string(out), version) {
				l.program = name
				return
			}
		}
		l.cannot = fmt.Sprintf("no %s here: %q say nothing of %s; scripts/mpi installs it", l.name, names, version)
	}
	find(&open, "Open MPI", "mpirun.openmpi", "mpirun", "mpiexec")
	find(&mpich, "HYDRA", "mpirun.mpich", "mpiexec.hydra", "mpirun", "mpiexec")
	return []launcher{open, mpich, abi}
}

// start runs this binary as so many ranks, and returns what they wrote.
func (l launcher) start(t *testing.T, role string, ranks int, env ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), cmp.Or(l.limit, watchdog))
	defer cancel()
	args := append(slices.Clone(l.flags), "-n", strconv.Itoa(ranks), os.Args[0])
	c := exec.CommandContext(ctx, l.program, args...)
	c.Cancel = func() error { return c.Process.Signal(syscall.SIGTERM) }
	c.WaitDelay = 5 * time.Second
	env = append([]string{"SHOAL_DIST_ENGINE=mpi", roleKey + "=" + role, "GOMAXPROCS=2"}, env...)
	c.Env = slices.Concat(os.Environ(), l.env, env)
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	err := c.Run()
	return out.String(), err
}

// each runs a test with each launcher.
func each(t *testing.T, test func(t *testing.T, l launcher)) {
	for _, l := range launchers() {
		t.Run(strings.ReplaceAll(l.name, " ", ""), func(t *testing.T) {
			if l.cannot != "" {
				t.Skip(l.cannot)
			}
			test(t, l)
		})
	}
}

func TestRanks_EveryCall(t *testing.T) {
	each(t, func(t *testing.T, l launcher) {
		for _, ranks := range []int{2, 4} {
			if ranks == 4 && !*full {
				continue
			}
			out, err := l.start(t, "suite", ranks)
			if err != nil || strings.Count(out, " is done\n") != ranks ||
				!strings.Contains(out, "engine=\""+l.engine) ||
				strings.Contains(out, "by the MPI 5 ABI") != (l.name == "MPI 5 ABI") {
				t.Errorf("%d ranks: %v\n%s", ranks, err, out)
			}
		}
	})
}

// Ranks of one machine by the library and by shared memory, as those of several hosts.
func TestRanks_EveryCallByHosts(t *testing.T) {
	each(t, func(t *testing.T, l launcher) {
		ranks := 2
		if *full {
			ranks = 4
		}
		out, err := l.start(t, "suite", ranks, "SHOAL_DIST_HIERARCHICAL=1")
		if err != nil || strings.Count(out, " is done\n") != ranks ||
			!strings.Contains(out, ", hierarchical, hosts: 1") {
			t.Errorf("%v\n%s", err, out)
		}
	})
}

// A rank that cannot share memory with those of its host: all goes by the library, which is said
// once.
func TestRanks_ThatCannotShareMemory(t *testing.T) {
	onlyFull(t)
	each(t, func(t *testing.T, l launcher) {
		out, err := l.start(t, "sharesBefore", 2, "SHOAL_DIST_HIERARCHICAL=1")
		if err != nil || strings.Count(out, " is done\n") != 2 || strings.Contains(out, "hierarchical") ||
			strings.Count(out, "cannot share memory; sending all data through the MPI library") != 1 ||
			!strings.Contains(out, "rank 1: ") || !strings.Contains(out, "call Init before creating") {
			t.Errorf("%v\n%s", err, out)
		}
	})
}

func TestInit_AWayThatThereIsNot(t *testing.T) {
	onlyFull(t)
	each(t, func(t *testing.T, l launcher) {
		out, err := l.start(t, "suite", 2, "SHOAL_DIST_HIERARCHICAL=often")
		if err == nil || strings.Contains(out, " is done\n") ||
			!strings.Contains(out, `SHOAL_DIST_HIERARCHICAL of rank 0 is "often", want 1 or 0`) {
			t.Errorf("%v\n%s", err, out)
		}
	})
}

// Ranks of one machine share memory if nobody asks for the library.
func TestRanks_EveryCallBesideTheLibrary(t *testing.T) {
	each(t, func(t *testing.T, l launcher) {
		out, err := l.start(t, "suite", 2, "SHOAL_DIST_ENGINE=")
		if err != nil || strings.Count(out, " is done\n") != 2 ||
			!strings.Contains(out, "engine=\"shared memory, beside "+l.engine) {
			t.Errorf("%v\n%s", err, out)
		}
	})
}

// The same calls, by ranks that share memory.
func TestRanks_EveryCallInSharedMemory(t *testing.T) {
	for _, ranks := range []int{2, 3} {
		ctx, cancel := context.WithTimeout(t.Context(), watchdog)
		defer cancel()
		first, err := dist.NewGroup(ranks)
		if err != nil {
			t.Fatal(err)
		}
		defer first.Close()
		q, err := ipc.NewQueue[*dist.Group](1)
		if err != nil {
			t.Fatal(err)
		}
		defer q.Close()
		errs := make([]error, ranks)
		var wg sync.WaitGroup
		for r := range ranks {
			if err := q.Put(ctx, first); err != nil {
				t.Fatal(err)
			}
			g, err := q.Get(ctx)
			if err != nil {
				t.Fatal(err)
			}
			wg.Go(func() {
				errs[r] = g.Join(r)
				if errs[r] == nil {
					errs[r] = suite(ctx, g)
				}
				errs[r] = errors.Join(errs[r], g.Close())
			})
		}
		wg.Wait()
		if err := errors.Join(errs...); err != nil {
			t.Error(err)
		}
	}
}

// ways are the library alone, and hosts.
var ways = []string{"SHOAL_DIST_HIERARCHICAL=0", "SHOAL_DIST_HIERARCHICAL=1"}

func TestRanks_OneThatIsLate(t *testing.T) {
	each(t, func(t *testing.T, l launcher) {
		for _, way := range ways {
			if way == ways[0] && !*full {
				continue
			}
			out, _ := l.start(t, "late", 2, way) // the launcher may say that a rank has left without the library
			if strings.Count(out, " has the error\n") != 2 {
				t.Errorf("%s: %s", way, out)
			}
		}
	})
}

// refused makes a call that a library refuses, without package dist, which would not make it.
func refused() error {
	lib, err := mpi.Load(mpi.OpenMPI, mpi.MPICH, mpi.ABI)
	if by := os.Getenv("PMI_RANK"); by != "" && os.Getenv(mpi.LibraryKey) == "" {
		lib, err = mpi.Load(mpi.MPICH)
	}
	if err == nil {
		err = lib.Init()
	}
	if err != nil {
		return err
	}
	var e *mpi.Error
	if err := lib.World().Broadcast(99, []byte{1}); !errors.As(err, &e) || e.Text == "" {
		return fmt.Errorf("a rank that there is not: %v", err)
	}
	fmt.Printf("is refused: %v\n", e)
	return lib.Finalize()
}

// An error of the library is an error of the call, and does not end the process.
func TestRanks_ErrorsAreReturned(t *testing.T) {
	each(t, func(t *testing.T, l launcher) {
		out, err := l.start(t, "refused", 2)
		if err != nil || strings.Count(out, "is refused: MPI_Bcast: ") != 2 {
			t.Errorf("%v\n%s", err, out)
		}
	})
}

func TestRanks_OneThatLeaves(t *testing.T) {
	onlyFull(t)
	each(t, func(t *testing.T, l launcher) {
		for _, way := range ways {
			out, _ := l.start(t, "left", 2, way)
			if strings.Count(out, " is done\n") < 1 || strings.Contains(out, "rank 1 has left") {
				t.Errorf("%s: %s", way, out)
			}
		}
	})
}

func TestRanks_OneThatIsKilled(t *testing.T) {
	onlyFull(t)
	each(t, func(t *testing.T, l launcher) {
		for _, way := range ways {
			begin := time.Now()
			out, err := l.start(t, "dies", 3, way)
			if err == nil || strings.Contains(out, " is done\n") || strings.Contains(out, "a survivor: ") {
				t.Errorf("%s: nobody minds: %v\n%s", way, err, out)
			}
			t.Logf("%s: after %v: %v\n%s", way, time.Since(begin).Round(100*time.Millisecond), err, out)
		}
	})
}

// ranksOf starts this binary as ranks by variables, as shoal run and torchrun do.
func ranksOf(t *testing.T, role string, n int, env func(rank int) []string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), watchdog)
	defer cancel()
	outs, errs := make([]bytes.Buffer, n), make([]error, n)
	var wg sync.WaitGroup
	for r := range n {
		c := exec.CommandContext(ctx, os.Args[0])
		c.Env = append(os.Environ(), append(env(r), roleKey+"="+role)...)
		c.Stdout, c.Stderr = &outs[r], &outs[r]
		wg.Go(func() { errs[r] = c.Run() })
	}
	wg.Wait()
	var all string
	for r := range outs {
		all += outs[r].String()
	}
	return all, errors.Join(errs...)
}

func variables(rank, n int, job ...string) []string {
	return append([]string{fmt.Sprint("RANK=", rank), fmt.Sprint("WORLD_SIZE=", n), fmt.Sprint("LOCAL_RANK=", rank),
		fmt.Sprint("LOCAL_WORLD_SIZE=", n)}, job...)
}

func TestInit_RanksOfOneMachine(t *testing.T) {
	for by, job := range map[string][]string{
		"shoal run": {"SHOAL_JOB=" + rand.Text()},
		"torchrun":  {"MASTER_ADDR=127.0.0.1", "MASTER_PORT=29500", "TORCHELASTIC_RUN_ID=" + rand.Text()},
	} {
		out, err := ranksOf(t, "suite", 3, func(rank int) []string { return variables(rank, 3, job...) })
		if err != nil || strings.Count(out, " is done\n") != 3 || !strings.Contains(out, `engine="shared memory"`) ||
			!strings.Contains(out, by) {
			t.Errorf("%s: %v\n%s", by, err, out)
		}
	}
	out, err := ranksOf(t, "alone", 1, func(int) []string { return nil })
	if err != nil || !strings.Contains(out, "rank 0 of 1 is done") {
		t.Errorf("%v\n%s", err, out)
	}
}

// What started the ranks is said, and what there is to do.
func TestInit_NoWay(t *testing.T) {
	for _, c := range []struct {
		env  []string
		want string
	}{
		{[]string{"RANK=0", "WORLD_SIZE=4", "LOCAL_RANK=0", "LOCAL_WORLD_SIZE=2", "MASTER_ADDR=a"},
			"started by torchrun: dist: no transport between ranks: only 2 of 4 ranks are on this machine"},
		{[]string{"RANK=0", "WORLD_SIZE=4", "LOCAL_RANK=0", "LOCAL_WORLD_SIZE=2", "MASTER_ADDR=a"},
			"the others cannot use its shared memory: start it with mpirun, shoal run --mpi, or srun --mpi=pmix"},
		{[]string{"SLURM_JOB_ID=1", "SLURM_STEP_ID=0", "SLURM_PROCID=0", "SLURM_STEP_NUM_TASKS=3", "SLURM_LOCALID=0",
			"SLURM_STEP_TASKS_PER_NODE=2,1", "SLURM_NODEID=0"}, // and not by a library, which would end the process
			"started by srun of Slurm: dist: no transport between ranks: only 2 of 3 ranks are on this machine"},
		{[]string{"JOB_COMPLETION_INDEX=1"}, "set WORLD_SIZE to it"},
		{[]string{"RANK=x", "WORLD_SIZE=2"}, `RANK="x" is not a number`},
		{[]string{"RANK=5", "WORLD_SIZE=2"}, "RANK=5 is out of range for WORLD_SIZE=2"},
	} {
		out, err := ranksOf(t, "suite", 1, func(int) []string { return c.env })
		if err == nil || !strings.Contains(out, c.want) {
			t.Errorf("%v: want %q: %v\n%s", c.env, c.want, err, out)
		}
	}
}

// A rank that does not come, and one that is there twice.
func TestInit_RanksThatDoNotFit(t *testing.T) {
	job := "SHOAL_JOB=" + rand.Text()
	out, err := ranksOf(t, "soon", 1, func(int) []string { return variables(0, 2, job) })
	if err == nil || !strings.Contains(out, "1 of 2 ranks have called Init") ||
		!strings.Contains(out, "deadline exceeded") {
		t.Errorf("rank 0 alone: %v\n%s", err, out)
	}
	out, err = ranksOf(t, "soon", 1, func(int) []string { return variables(1, 2, job) })
	if err == nil || !strings.Contains(out, "rank 0 has not called Init") {
		t.Errorf("rank 1 alone: %v\n%s", err, out)
	}
	job = "SHOAL_JOB=" + rand.Text()
	out, err = ranksOf(t, "shares", 2, func(rank int) []string { return variables(rank, 2, job) })
	if err == nil || !strings.Contains(out, "call Init before creating tensors in shared memory") {
		t.Errorf("shared memory before Init: %v\n%s", err, out)
	}
}

// The library of one launcher under the other: an error that says what to install. MPICH 5 would
// end the process, before it says how many ranks there are.
func TestInit_AnotherLibrary(t *testing.T) {
	onlyFull(t)
	each(t, func(t *testing.T, l launcher) {
		for _, other := range launchers() {
			if other.cannot != "" || other.packages() == l.packages() {
				continue
			}
			library := map[string]string{"Open MPI": "libmpi.so.40", "MPICH": "libmpich.so.12",
				"MPI 5 ABI": os.Getenv(abiKey) + "/lib/libmpi_abi.so.1"}[other.name]
			out, err := l.start(t, "suite", 2, "SHOAL_MPI_LIBRARY="+library)
			if err == nil || strings.Contains(out, " is done") ||
				!strings.Contains(out, "does not match the launcher") || !strings.Contains(out, l.packages()) {
				t.Errorf("%s: %s", other.name, out)
			}
		}
	})
}

// packages is how the error of a library that is not there says to install that of a launcher.
func (l launcher) packages() string {
	if l.name == "Open MPI" {
		return "apt-get install libopenmpi3 openmpi-bin"
	}
	return "apt-get install libmpich12 mpich"
}

func TestInit_NoLibrary(t *testing.T) {
	each(t, func(t *testing.T, l launcher) {
		out, err := l.start(t, "suite", 2, "SHOAL_MPI_LIBRARY=libthereisnone.so.1")
		if err == nil || !strings.Contains(out, l.packages()) || !strings.Contains(out, "libthereisnone.so.1") {
			t.Errorf("want %q: %v\n%s", l.packages(), err, out)
		}
	})
}
