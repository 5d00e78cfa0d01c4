package main

import (
	"context"
	"fmt"
	"iter"
	"log/slog"

	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/encoding/python"
	"github.com/shoal-mp/shoal/torch"
)

// Options that every data set accepts.
const (
	skipOption    = "skip"
	retriesOption = "retries"
)

// tolerateErrors wraps a constructor of a data set so that it accepts the options skip and retries.
func tolerateErrors(open torch.OpenDataset) torch.OpenDataset {
	return func(ctx context.Context, w torch.Worker) (data.Dataset, error) {
		rest, skip, retries, err := splitTolerance(w.Args)
		if err != nil {
			return nil, err
		}
		w.Args = rest
		ds, err := open(ctx, w)
		if err != nil || !skip && retries == 0 {
			return ds, err
		}
		t := &torch.Tolerant{Dataset: ds, Retries: retries}
		if skip {
			t.Skip = newSkips(w).logSample
		}
		return t, nil
	}
}

// splitTolerance splits args into the options skip and retries and the remaining options. It does
// not change args. The error wraps [errOption].
func splitTolerance(args *python.Dict) (rest *python.Dict, skip bool, retries int, err error) {
	rest = new(python.Dict)
	for k, v := range args.All() {
		switch k {
		case skipOption:
			ok := false
			if skip, ok = v.(bool); !ok {
				return nil, false, 0, fmt.Errorf("%w skip: got %v, want a bool", errOption, v)
			}
		case retriesOption:
			n, ok := v.(int64)
			if !ok || n < 0 || n > 1<<20 {
				return nil, false, 0, fmt.Errorf("%w retries: got %v, want a number of at least 0", errOption, v)
			}
			retries = int(n)
		default:
			rest.Set(k, v)
		}
	}
	return rest, skip, retries, nil
}

// skips counts and logs the samples that a worker skipped.
type skips struct {
	worker int
	n      int
}

func newSkips(w torch.Worker) *skips { return &skips{worker: w.ID} }

// logSample counts and logs the skipped sample i. It always returns true, for use as a skip
// function. It must not be called concurrently; loaders serialize their calls.
func (s *skips) logSample(i int, err error) bool {
	s.logReport("sample", i, "error", err)
	return true
}

func (s *skips) logReport(what ...any) {
	s.n++
	slog.Warn("shoal-loader: sample skipped", append(what, "worker", s.worker, "skipped", s.n)...)
}

// withoutFailed yields the samples of a stream that have no error and logs the others. The errors
// that it yields are always nil.
func (s *skips) withoutFailed(all iter.Seq2[data.Sample, error]) iter.Seq2[data.Sample, error] {
	return func(yield func(data.Sample, error) bool) {
		for v, err := range all {
			if err != nil {
				s.logReport("error", err)
			} else if !yield(v, nil) {
				return
			}
		}
	}
}
