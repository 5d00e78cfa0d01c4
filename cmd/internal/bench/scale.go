package bench

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/internal/sys"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/manager"
	"github.com/shoal-mp/shoal/tensor"
)

var scale = Suite{
	Name: "scale",
	Doc:  "the same work at small and large scale: names, dict entries, samples, processes",
	peer: "torch_core.py",
	groups: []func(context.Context, *environment) (group, error){
		nameRows("names_lookup_16", 16, nil),
		nameRows("names_lookup_2k", 2000, atMostTimes("names_lookup_16", 1.5)),
		dictRows, firstBatchRows,
		barrierRow(8), barrierRow(32), barrierRow(64),
		producersRow(1, nil), producersRow(2, keepsShare(0.7, "producers_1")),
		producersRow(4, keepsShare(0.7, "producers_1")), producersRow(8, keepsShare(0.7, "producers_1")),
	},
}

// An amount is a problem size with its name.
type amount struct {
	name string
	n    int
}

// comparedRows returns a row in ns for each amount, measured by probe. The target of all rows
// but the first is at most flat times the first row's value.
func comparedRows(name string, flat float64, amounts []amount, probe func(n int) *Probe) (cases []Case) {
	for i, a := range amounts {
		c := Case{Name: name + "_" + a.name, Unit: Nanoseconds, Ours: probe(a.n)}
		if i > 0 {
			c.Target = atMostTimes(cases[0].Name, flat)
		}
		cases = append(cases, c)
	}
	return cases
}

// stride is coprime to all amounts, so that repeated steps visit every element.
const stride = 7919

// nameRows returns a constructor of the row name: lookups of names while n names are bound.
func nameRows(name string, n int, target Target) func(context.Context, *environment) (group, error) {
	return func(_ context.Context, h *environment) (group, error) {
		for i := range n {
			if err := ipc.Bind(context.Background(), benchName(i), i); err != nil {
				return group{}, errors.Join(err, unlinkNames(i))
			}
		}
		i := 0
		return group{rounds: 11, close: func() error { return unlinkNames(n) }, cases: []Case{{
			Name: name, Unit: Nanoseconds, Target: target,
			Ours: &Probe{Measure: perRound(h.scaleRounds(20_000), func(context.Context) error {
				i = (i + stride) % n
				v, err := ipc.Lookup[int](benchName(i))
				if err == nil && v != i {
					err = fmt.Errorf("name %d: got value %d", i, v)
				}
				return err
			})},
		}}}, nil
	}
}

func benchName(i int) string { return "shoal bench " + strconv.Itoa(i) }

// unlinkNames unlinks the first n names.
func unlinkNames(n int) (err error) {
	for i := range n {
		err = errors.Join(err, ipc.Unlink(benchName(i)))
	}
	return err
}

// dictRows returns rows of calls to a manager's dict with few and with many entries.
func dictRows(ctx context.Context, h *environment) (_ group, err error) {
	m, err := manager.Start(ctx)
	if err != nil {
		return group{}, err
	}
	amounts := []amount{{"1k", 1000}, {"1M", max(h.scaleRounds(1_000_000), 1000)}}
	dicts := make(map[int]*manager.Dict[int, int])
	end := func() (err error) {
		for _, d := range dicts {
			err = errors.Join(err, d.Close())
		}
		return errors.Join(err, m.Close())
	}
	for _, a := range amounts {
		if dicts[a.n], err = filledDict(ctx, m, a.n); err != nil {
			return group{}, errors.Join(err, end())
		}
	}
	get := comparedRows("dict_get", 1.5, amounts, func(n int) *Probe {
		k := 0
		return &Probe{Measure: perRound(h.spinRounds(5000), func(ctx context.Context) error {
			k = (k + stride) % n
			v, err := dicts[n].Get(ctx, k)
			if err == nil && v != k {
				err = fmt.Errorf("entry %d: got %d", k, v)
			}
			return err
		})}
	})
	pop := comparedRows("dict_popitem", 1.5, amounts, func(n int) *Probe {
		return &Probe{Measure: perRound(h.spinRounds(500), func(ctx context.Context) error {
			k, v, err := dicts[n].PopItem(ctx)
			if err != nil {
				return err
			}
			return dicts[n].Set(ctx, k, v)
		})}
	})
	return group{rounds: 7, close: end, cases: append(get, pop...)}, nil
}

// filledDict creates a dict that maps each number below n to itself. The caller must close it.
func filledDict(ctx context.Context, m *manager.Manager, n int) (*manager.Dict[int, int], error) {
	d, err := manager.NewDict[int, int](ctx, m)
	if err != nil {
		return nil, err
	}
	const atOnce = 50_000
	for from := 0; from < n; from += atOnce {
		entries := make(map[int]int)
		for k := from; k < min(n, from+atOnce); k++ {
			entries[k] = k
		}
		if err := d.Update(ctx, entries); err != nil {
			return nil, errors.Join(err, d.Close())
		}
	}
	return d, nil
}

// firstBatchRows returns rows of the time from the start of the loop to the first batch of a
// shuffled data set.
func firstBatchRows(_ context.Context, h *environment) (group, error) {
	amounts := []amount{{"1k", 1000}, {"1M", max(h.scaleRounds(1_000_000), 1000)}}
	return group{rounds: 21, cases: comparedRows("first_batch", 1.5, amounts, func(n int) *Probe {
		set := data.NewTensorDataset(tensor.Arange(tensor.Int64, 0, float64(n), 1))
		return &Probe{Measure: func(ctx context.Context) (float64, error) {
			l := data.NewLoader(set, data.Options{BatchSize: 32, Shuffle: true})
			defer l.Close()
			begin := sys.Monotonic()
			for b, err := range l.Batches(ctx) {
				took := sys.Monotonic() - begin
				if err != nil {
					return 0, err
				}
				return float64(took), b.Close()
			}
			return 0, errors.New("no batch")
		}}
	})}, nil
}
