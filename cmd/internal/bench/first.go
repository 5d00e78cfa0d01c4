package bench

import (
	"context"
	"errors"
	"fmt"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/internal/sys"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/pool"
	"github.com/shoal-mp/shoal/tensor"
)

var first = Suite{
	Name:   "first",
	Doc:    "programs as one first writes them, beside the fastest way to write them",
	peer:   "torch_core.py",
	groups: []func(context.Context, *environment) (group, error){firstTensorRows, firstPoolRows, firstLoaderRows},
}

// firstTensorRows returns rows of a new tensor that is sent and received in one process.
func firstTensorRows(_ context.Context, h *environment) (group, error) {
	q, err := ipc.NewQueue[*tensor.Tensor](4)
	if err != nil {
		return group{}, err
	}
	rounds := h.scaleRounds(300)
	probe := func(make func() (*tensor.Tensor, error), drop bool) *Probe {
		return &Probe{Measure: perRound(rounds, func(ctx context.Context) error {
			t, err := make()
			if err != nil {
				return err
			}
			return passTensor(ctx, q, t.Fill(1), drop)
		})}
	}
	given := probe(func() (*tensor.Tensor, error) {
		t, err := tensor.EmptyShared(tensor.Float32, mib/4)
		if err != nil {
			return nil, err
		}
		return t.Give(), nil
	}, false)
	empty := func() (*tensor.Tensor, error) { return tensor.Empty(tensor.Float32, mib/4), nil }
	peer := &peerWork{op: "empty_put", Size: mib, Rounds: h.scaleRounds(30)}
	return group{rounds: 11, close: q.Close, cases: []Case{
		{
			Name: "empty_put_close", Unit: Nanoseconds,
			Ours: probe(empty, false), Floor: given, Target: overFloor(1.5), Peer: peer,
		},
		{
			Name: "empty_put_drop", Unit: Nanoseconds,
			Ours: probe(empty, true), Floor: given, Target: timesPeer(1 / 1.2), Peer: peer,
		},
	}}, nil
}

// passTensor puts t into q, gets it out again, and closes both tensors. If drop is set, it
// leaves them to the garbage collector instead.
func passTensor(ctx context.Context, q *ipc.Queue[*tensor.Tensor], t *tensor.Tensor, drop bool) error {
	if err := q.Put(ctx, t); err != nil {
		return err
	}
	got, err := q.Get(ctx)
	if err != nil || drop {
		return err
	}
	return errors.Join(t.Close(), got.Close())
}

const firstInts = 10_000

// firstPoolRows returns rows of pool calls with many small values, on processes and on
// goroutines.
func firstPoolRows(ctx context.Context, h *environment) (_ group, err error) {
	var pools []*pool.Pool
	closeAll := func() error {
		for _, p := range pools {
			p.Close()
		}
		return nil
	}
	for _, opts := range []pool.Options{
		{Workers: poolWorkers, Process: shoal.Options{Start: shoal.SpawnStart}},
		{Workers: poolWorkers, ChunkSize: 1, Process: shoal.Options{Start: shoal.GoroutineStart}},
	} {
		p, err := pool.New(ctx, opts)
		if err != nil {
			return group{}, errors.Join(err, closeAll())
		}
		pools = append(pools, p)
		if err := p.Ready(ctx); err != nil {
			return group{}, errors.Join(err, closeAll())
		}
	}
	rounds := h.scaleRounds(20)
	return group{rounds: 11, close: closeAll, cases: []Case{
		{
			Name: "pool_map_ints", Unit: Nanoseconds,
			Ours:   &Probe{Measure: poolMap(pools[0], firstInts, rounds)},
			Target: timesPeer(10, atMost(0.5e6, "0.5 ms")),
			Peer:   &peerWork{op: "pool_map_ints", Size: firstInts, Rounds: rounds},
		},
		{
			Name: "pool_map_goroutines", Unit: Nanoseconds,
			Ours:   &Probe{Measure: poolMap(pools[1], tinyTasks, rounds)},
			Target: timesPeer(1. / 3),
			Rival:  &Rival{"channels", &Probe{Measure: mapChannels(tinyTasks, rounds)}},
		},
	}}, nil
}

// mapChannels returns a function that measures the mean nanoseconds of a round, in which
// poolWorkers goroutines square the integers below values. They read one channel and write
// another.
func mapChannels(values, rounds int) func(ctx context.Context) (float64, error) {
	type item struct{ at, value int }
	return func(ctx context.Context) (float64, error) {
		in, out := make(chan item), make(chan item)
		defer close(in)
		for range poolWorkers {
			go func() {
				for v := range in {
					out <- item{v.at, v.value * v.value}
				}
			}()
		}
		return perRound(rounds, func(context.Context) error {
			go func() {
				for i := range values {
					in <- item{i, i}
				}
			}()
			squares := make([]int, values)
			for range values {
				v := <-out
				squares[v.at] = v.value
			}
			return checkSquares(squares)
		})(ctx)
	}
}

func checkSquares(squares []int) error {
	if last := len(squares) - 1; squares[last] != last*last {
		return fmt.Errorf("wrong last square %d", squares[last])
	}
	return nil
}

// A plainSet is an in-memory image data set that implements only Len and Get.
type plainSet struct {
	images []float32
	labels []int64
}

const (
	plainSide   = 28
	plainPixels = plainSide * plainSide
	plainBatch  = 64
)

func (s *plainSet) Len() int { return len(s.labels) }

func (s *plainSet) Get(_ context.Context, i int) (data.Sample, error) {
	image := s.images[i*plainPixels : (i+1)*plainPixels]
	return data.Sample{tensor.FromSlice(image, plainSide, plainSide), tensor.FromSlice(s.labels[i : i+1])}, nil
}

// firstLoaderRows returns a row of the samples per second in an epoch of a data set without
// workers.
func firstLoaderRows(_ context.Context, h *environment) (group, error) {
	items := max(h.scaleRounds(lightItems), 2*plainBatch)
	set := &plainSet{make([]float32, items*plainPixels), make([]int64, items)}
	return group{rounds: 9, cases: []Case{{
		Name: "loader_get", Unit: PerSecond, Target: timesPeer(1.5),
		Ours: &Probe{Measure: func(ctx context.Context) (float64, error) {
			l := data.NewLoader(set, data.Options{BatchSize: plainBatch, Shuffle: true, Seed: 1})
			defer l.Close()
			begin := sys.Monotonic()
			n, err := countSamples(l.Batches(ctx))
			return float64(n) / (sys.Monotonic() - begin).Seconds(), err
		}},
		Peer: &peerWork{op: "loader_get", Size: items, Rounds: plainBatch},
	}}}, nil
}
