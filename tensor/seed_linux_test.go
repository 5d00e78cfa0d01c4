package tensor_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/pool"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
)

// A lottery is the argument of workers that draw.
type lottery struct {
	Drawn *ipc.Sender[ticket]
	Once  string // directory: each rank fails in its first life; empty for none
}

// A ticket is what a life of a worker has drawn.
type ticket struct {
	Rank, Life int
	Number     uint64
}

// own returns the first number of a worker: of its default generator where that is its own.
func own(ctx context.Context) uint64 {
	if shoal.IsWorker() {
		return tensor.DefaultGenerator().Uint64()
	}
	return tensor.NewGenerator(shoal.Seed(ctx)).Uint64()
}

var drawLot = shoal.Register("draw a lot", func(ctx context.Context, rank int, l lottery) error {
	defer l.Drawn.Close()
	generation := 0
	if l.Once != "" && os.Mkdir(filepath.Join(l.Once, fmt.Sprint(rank)), 0o777) != nil {
		generation = 1
	}
	if shoal.IsWorker() && tensor.InitialSeed() != shoal.Seed(ctx) {
		return errors.New("the process has another seed than its function")
	}
	if err := l.Drawn.Put(ctx, ticket{rank, generation, own(ctx)}); err != nil {
		return err
	}
	if l.Once != "" && generation == 0 {
		return errors.New("its first life")
	}
	return nil
})

var drawFirst = pool.RegisterInit("draw first", func(ctx context.Context, drawn *ipc.Sender[ticket]) error {
	defer drawn.Close()
	return drawn.Put(ctx, ticket{Rank: pool.Rank(ctx), Number: own(ctx)})
})

var end = pool.Register("end the worker", func(context.Context, int) (int, error) { os.Exit(1); return 0, nil })

// tickets runs workers and returns what each of their lives has drawn.
func tickets(t *testing.T, lives int, run func(q *ipc.Queue[ticket])) map[[2]int]uint64 {
	t.Helper()
	q, err := ipc.NewQueue[ticket](64)
	testutil.NoError(t, err)
	defer q.Close()
	run(q)
	all, born := map[[2]int]uint64{}, map[int]int{}
	for range lives {
		k, err := q.Get(testutil.Context(t))
		testutil.NoError(t, err)
		k.Life = max(k.Life, born[k.Rank])
		born[k.Rank]++
		all[[2]int{k.Rank, k.Life}] = k.Number
	}
	return all
}

func TestRegression_S2_1_RanksDrawDifferentNumbersAndSeededRunsRepeat(t *testing.T) {
	const ranks = 3
	started := func(opts shoal.Options, once bool) func(t *testing.T) map[[2]int]uint64 {
		return func(t *testing.T) map[[2]int]uint64 {
			lives, dir := ranks, ""
			if once {
				lives, dir = 2*ranks, t.TempDir()
			}
			return tickets(t, lives, func(q *ipc.Queue[ticket]) {
				g, err := drawLot.Start(testutil.Context(t), ranks, lottery{q.Sender(), dir}, opts)
				testutil.NoError(t, err)
				testutil.NoError(t, g.Wait())
			})
		}
	}
	pooled := func(start shoal.StartMethod) func(t *testing.T) map[[2]int]uint64 {
		return func(t *testing.T) map[[2]int]uint64 {
			return tickets(t, ranks, func(q *ipc.Queue[ticket]) {
				p, err := pool.New(testutil.Context(t), pool.Options{Workers: ranks,
					Initializer: drawFirst(q.Sender()), Process: shoal.Options{Start: start}})
				testutil.NoError(t, err)
				testutil.NoError(t, p.Ready(testutil.Context(t)))
				testutil.NoError(t, p.Close())
			})
		}
	}
	replaced := func(t *testing.T) map[[2]int]uint64 {
		return tickets(t, 3, func(q *ipc.Queue[ticket]) {
			p, err := pool.New(testutil.Context(t), pool.Options{Workers: 1, Initializer: drawFirst(q.Sender())})
			testutil.NoError(t, err)
			for range 2 {
				if _, err := end.Apply(testutil.Context(t), p, 0); err == nil {
					t.Error("the worker did not die")
				}
			}
			testutil.Eventually(t, func() bool { return q.Len() >= 3 }, "fewer than 3 values arrive")
			testutil.NoError(t, p.Close())
		})
	}
	again := shoal.Restart{Max: 1}
	for name, run := range map[string]func(t *testing.T) map[[2]int]uint64{
		"spawned":             started(shoal.Options{Start: shoal.SpawnStart}, false),
		"warm":                started(shoal.Options{Start: shoal.WarmStart}, false),
		"goroutines":          started(shoal.Options{Start: shoal.GoroutineStart}, false),
		"restarted":           started(shoal.Options{Restart: again}, true),
		"restarted warm":      started(shoal.Options{Start: shoal.WarmStart, Restart: again}, true),
		"restarted goroutine": started(shoal.Options{Start: shoal.GoroutineStart, Restart: again}, true),
		"pool":                pooled(shoal.SpawnStart),
		"pool of goroutines":  pooled(shoal.GoroutineStart),
		"replaced":            replaced,
	} {
		t.Run(name, func(t *testing.T) {
			d, err := arena.New(arena.Options{Budget: 64 << 20})
			testutil.NoError(t, err)
			use(t, d)
			defer collect(t, func() bool { return d.Stats().Blocks == 0 })
			defer func() {
				testutil.NoError(t, shoal.Warm(testutil.Context(t), 0, shoal.Options{Start: shoal.WarmStart}))
			}()
			tensor.ManualSeed(42)
			first, second := run(t), run(t)
			tensor.ManualSeed(42)
			if again := run(t); !maps.Equal(first, again) {
				t.Errorf("%v, and with the same seed %v", first, again)
			}
			tensor.ManualSeed(43)
			seen := map[uint64]string{}
			for run, drawn := range map[string]map[[2]int]uint64{"first": first, "second": second,
				"another seed": run(t)} {
				for generation, n := range drawn {
					if seen[n] != "" {
						t.Errorf("%s: rank %d in life %d draws what was drawn by %s", run, generation[0],
							generation[1], seen[n])
					}
					seen[n] = fmt.Sprintf("%s, rank %d, life %d", run, generation[0], generation[1])
				}
			}
		})
	}
}

// Two runs of a program that sets no seed draw different numbers.
func TestRegression_S2_1_EachRunHasASeedOfItsOwn(t *testing.T) {
	const mark = "SHOAL_TEST_PRINT_SEED"
	if os.Getenv(mark) != "" {
		fmt.Printf("seed %d draws %d\n", tensor.InitialSeed(), tensor.DefaultGenerator().Uint64())
		return
	}
	var said [2]string
	for i := range said {
		cmd := exec.Command("/proc/self/exe", "-test.run=^"+t.Name()+"$")
		cmd.Env = append(os.Environ(), mark+"=1")
		out, err := cmd.Output()
		testutil.NoError(t, err)
		said[i], _, _ = strings.Cut(string(out), "\n")
		var seed, number uint64
		if _, err := fmt.Sscanf(said[i], "seed %d draws %d", &seed, &number); err != nil {
			t.Fatalf("%q: %v", out, err)
		}
		if g := tensor.NewGenerator(seed); g.Uint64() != number || g.InitialSeed() != seed {
			t.Errorf("%s, and a generator of that seed draws another number", said[i])
		}
	}
	if said[0] == said[1] {
		t.Errorf("both runs say %s", said[0])
	}
}
