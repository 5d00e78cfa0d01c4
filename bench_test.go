package shoal_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/shoal-mp/shoal"
)

// started prints when the function began, on the clock that all processes share.
var started = shoal.Register("started", func(_ context.Context, _ int, out string) error {
	return stamp(out)
})

var nothing = shoal.Register("nothing", func(context.Context, int, struct{}) error { return nil })

// BenchmarkSpawn is one process from the call to its end, seen by the caller.
func BenchmarkSpawn(b *testing.B) {
	for b.Loop() {
		if err := nothing.Spawn(b.Context(), 1, struct{}{}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkFirstStatement is the time from the call to the first statement of the function.
func BenchmarkFirstStatement(b *testing.B) {
	for _, n := range []int{1, 64} {
		b.Run(fmt.Sprintf("workers=%d", n), func(b *testing.B) {
			firstStatements(b, n, shoal.Options{Start: shoal.SpawnStart}, func() {})
		})
	}
}

// BenchmarkWarmFirstStatement is the same with a process that waits for its job.
func BenchmarkWarmFirstStatement(b *testing.B) {
	opts := shoal.Options{Start: shoal.WarmStart}
	firstStatements(b, 1, opts, func() {
		if err := shoal.Warm(b.Context(), 2, opts); err != nil {
			b.Fatal(err)
		}
	})
	if err := shoal.Warm(b.Context(), 0, opts); err != nil {
		b.Fatal(err)
	}
}

func firstStatements(b *testing.B, n int, opts shoal.Options, prepare func()) {
	var all []time.Duration
	for b.Loop() {
		dir := b.TempDir()
		prepare()
		begin := time.Now()
		g, err := started.Start(b.Context(), n, dir, opts)
		if err != nil {
			b.Fatal(err)
		}
		if err := g.Wait(); err != nil {
			b.Fatal(err)
		}
		last := begin
		for _, at := range stamps(b, dir) {
			if at.After(last) {
				last = at
			}
		}
		all = append(all, last.Sub(begin))
	}
	slices.Sort(all)
	b.ReportMetric(float64(all[len(all)/2].Microseconds()), "µs-median")
	b.ReportMetric(float64(all[0].Microseconds()), "µs-min")
	b.ReportMetric(float64(all[len(all)-1].Microseconds()), "µs-max")
}
