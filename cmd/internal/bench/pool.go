package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/internal/sys"
	"github.com/shoal-mp/shoal/pool"
	"github.com/shoal-mp/shoal/tensor"
)

const poolWorkers = 4

var (
	poolSquare = pool.Register("bench square", func(_ context.Context, x int) (int, error) { return x * x, nil })
	poolSum    = pool.Register2("bench sum", func(_ context.Context, _ int, chunk *tensor.Tensor) (float64, error) {
		defer chunk.Close()
		return chunk.Sum(), nil
	})
	poolSumForgotten = pool.Register2("bench sum and forget",
		func(_ context.Context, _ int, chunk *tensor.Tensor) (float64, error) { return chunk.Sum(), nil })
)

// poolStartRows returns rows of the time from the creation of a pool until all four workers have
// answered, with cold and with warm workers.
func poolStartRows(ctx context.Context, h *environment) (group, error) {
	ready := time.Duration(12_890_000) // 1 % of PyTorch 1.13 on two processors
	peer := &peerWork{op: "pool_start", Rounds: 1, once: true}
	row := func(name string, m shoal.StartMethod, floor *Probe) Case {
		return Case{
			Name: name, Unit: Nanoseconds,
			Ours:   &Probe{Measure: func(ctx context.Context) (float64, error) { return poolStart(ctx, m) }},
			Floor:  floor,
			Target: timesPeer(100, atMost(float64(ready), ready.String())),
			Peer:   peer,
		}
	}
	return group{rounds: 11, cases: []Case{
		row("pool_start_4", shoal.SpawnStart, firstStatement(h, poolWorkers)),
		row("pool_start_4_warm", shoal.WarmStart, nil),
		{
			Name: "warm_first_statement", Unit: Nanoseconds,
			Ours:   warmFirstStatement(),
			Target: atMost(float64(200*time.Microsecond), "200 µs"),
			Peer:   &peerWork{op: "spawn", Rounds: 1, once: true},
		},
	}, close: func() error { return shoal.Warm(context.Background(), 0, shoal.Options{}) }}, nil
}

func poolStart(ctx context.Context, m shoal.StartMethod) (ns float64, err error) {
	if m == shoal.WarmStart {
		if err := shoal.Warm(ctx, poolWorkers, shoal.Options{}); err != nil {
			return 0, err
		}
	}
	begin := sys.Monotonic()
	p, err := pool.New(ctx, pool.Options{Workers: poolWorkers, Process: shoal.Options{Start: m}})
	if err != nil {
		return 0, err
	}
	defer p.Close()
	err = p.Ready(ctx)
	return float64(sys.Monotonic() - begin), err
}

// poolRows starts a pool and returns rows of calls to it.
func poolRows(ctx context.Context, h *environment) (group, error) {
	p, err := pool.New(ctx, pool.Options{Workers: poolWorkers, ChunkSize: 1,
		Process: shoal.Options{Start: shoal.SpawnStart}})
	if err != nil {
		return group{}, err
	}
	if err := p.Ready(ctx); err != nil {
		return group{}, errors.Join(err, p.Close())
	}
	starmap := &Probe{Measure: poolStarMap(p, poolSum, h.scaleRounds(200), withChunks)}
	alone := &Probe{Measure: sumChunks(h.scaleRounds(200))}
	return group{rounds: 21, close: p.Close, cases: []Case{
		{
			Name: "pool_map_1000_tiny", Unit: Nanoseconds,
			Ours:   &Probe{Measure: poolMap(p, tinyTasks, h.scaleRounds(20))},
			Target: timesPeer(10, atMost(1.54e6, "1.54 ms")),
			Peer:   &peerWork{op: "pool_map", Size: tinyTasks, Rounds: h.scaleRounds(20)},
		},
		{
			Name: "pool_starmap_4_chunks", Unit: Nanoseconds,
			Ours:   starmap,
			Floor:  alone,
			Target: timesPeer(8, atMost(81e3, "81 µs")),
			Peer:   &peerWork{op: "pool_starmap", Size: chunkedRows, Rounds: h.scaleRounds(50)},
		},
		{
			// The tensor is closed, but neither the caller nor the function closes the chunks, as
			// in typical programs.
			Name: "starmap_fresh", Unit: Nanoseconds,
			Ours:   &Probe{Measure: poolStarMap(p, poolSumForgotten, h.scaleRounds(200), withForgottenChunks)},
			Floor:  alone,
			Target: atMost(200e3, "200 µs"),
			Peer:   &peerWork{op: "pool_starmap", Size: chunkedRows, Rounds: h.scaleRounds(50)},
		},
		{
			// The same samples, compared with PyTorch's default settings.
			Name: "pool_starmap_default", Unit: Nanoseconds,
			Ours:   starmap,
			Floor:  alone,
			Target: timesPeer(15),
			Peer:   &peerWork{op: "pool_starmap_default", Size: chunkedRows, Rounds: h.scaleRounds(50)},
		},
	}}, nil
}

const tinyTasks = 1000

// poolMap returns a function that measures the mean nanoseconds of a Map call with values
// integers, over rounds calls.
func poolMap(p *pool.Pool, values, rounds int) func(ctx context.Context) (float64, error) {
	in := make([]int, values)
	for i := range in {
		in[i] = i
	}
	return perRound(rounds, func(ctx context.Context) error {
		out, err := poolSquare.Map(ctx, p, in)
		if err != nil {
			return err
		}
		return checkSquares(out)
	})
}

const (
	chunkedRows    = 1000
	chunkedColumns = 100
	chunks         = 4
)

// poolStarMap returns a function that measures the nanoseconds per round to create a tensor, sum
// its chunks in the pool, and check the total. with must create the tensor, call do with its
// chunks, and close the tensor; see [withChunks].
func poolStarMap(p *pool.Pool, sum *pool.Func2[int, *tensor.Tensor, float64], rounds int,
	with func(do func(parts []*tensor.Tensor) error) error) func(ctx context.Context) (float64, error) {
	return perRound(rounds, func(ctx context.Context) error {
		return with(func(parts []*tensor.Tensor) error {
			sums, err := sum.StarMap(ctx, p, slices.All(parts))
			return errors.Join(err, checkSum(sums))
		})
	})
}

// sumChunks returns a function that measures the nanoseconds to create a tensor and sum its chunks
// in the current process. It is the floor of poolStarMap.
func sumChunks(rounds int) func(ctx context.Context) (float64, error) {
	return perRound(rounds, func(context.Context) error {
		return withChunks(func(parts []*tensor.Tensor) error {
			var sums []float64
			for _, part := range parts {
				sums = append(sums, part.Sum())
			}
			return checkSum(sums)
		})
	})
}

var ones = sync.OnceValue(func() *tensor.Tensor { return tensor.Ones(tensor.Float32, chunkedRows, chunkedColumns) })

// withChunks calls do with the chunks of a new shared tensor of ones, as PyTorch creates one for
// each tensor passed to its pool. It closes the chunks and the tensor after do has returned.
func withChunks(do func(parts []*tensor.Tensor) error) error {
	return withForgottenChunks(func(parts []*tensor.Tensor) error {
		defer func() {
			for _, part := range parts {
				part.Close()
			}
		}()
		return do(parts)
	})
}

// withForgottenChunks is like withChunks, but leaves the chunks, though not the tensor, to the
// garbage collector.
func withForgottenChunks(do func(parts []*tensor.Tensor) error) error {
	whole, err := tensor.NewShared(tensor.Float32, chunkedRows, chunkedColumns)
	if err != nil {
		return err
	}
	defer whole.Close()
	return do(whole.CopyFrom(ones()).Chunk(chunks, 0))
}

func checkSum(sums []float64) error {
	total := 0.0
	for _, s := range sums {
		total += s
	}
	if len(sums) != chunks || total != chunkedRows*chunkedColumns {
		return fmt.Errorf("wrong total of %d sums: %v", len(sums), total)
	}
	return nil
}

// perRound returns a function that calls do rounds times and returns the mean nanoseconds of a
// call.
func perRound(rounds int, do func(ctx context.Context) error) func(ctx context.Context) (float64, error) {
	return func(ctx context.Context) (float64, error) {
		d, err := timeRounds(rounds, func() error { return do(ctx) })
		return float64(d) / float64(rounds), err
	}
}
