package pool_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/pool"
	"github.com/shoal-mp/shoal/test/testutil"
)

// BenchmarkMap is a thousand tiny tasks by four workers.
func BenchmarkMap(b *testing.B) {
	for _, m := range []shoal.StartMethod{shoal.SpawnStart, shoal.WarmStart, shoal.GoroutineStart} {
		for _, c := range []struct {
			name  string
			chunk int
		}{{"chunk=1", 1}, {"chunk=auto", 0}} {
			b.Run(m.String()+"/"+c.name, func(b *testing.B) {
				p := open(b, pool.Options{Workers: 4, ChunkSize: c.chunk, Process: shoal.Options{Start: m}})
				in := upTo(1000)
				testutil.Value(square.Map(b.Context(), p, in))(b)
				for b.Loop() {
					testutil.Value(square.Map(b.Context(), p, in))(b)
				}
			})
		}
	}
}

// BenchmarkBurst is four tiny tasks, that come when the workers sleep.
func BenchmarkBurst(b *testing.B) {
	p := open(b, pool.Options{Workers: 4, ChunkSize: 1})
	in := upTo(4)
	for b.Loop() {
		testutil.Value(square.Map(b.Context(), p, in))(b)
		b.StopTimer()
		time.Sleep(200 * time.Microsecond)
		b.StartTimer()
	}
}

// BenchmarkApply is one call and its answer.
func BenchmarkApply(b *testing.B) {
	p := open(b, pool.Options{Workers: 1})
	for b.Loop() {
		testutil.Value(square.Apply(b.Context(), p, 3))(b)
	}
}

// BenchmarkReady is from nothing to four workers, each of which could answer.
func BenchmarkReady(b *testing.B) {
	for _, m := range []shoal.StartMethod{shoal.SpawnStart, shoal.WarmStart, shoal.GoroutineStart} {
		b.Run(m.String(), func(b *testing.B) {
			for b.Loop() {
				p, err := pool.New(b.Context(), pool.Options{Workers: 4, Process: shoal.Options{Start: m}})
				if err != nil {
					b.Fatal(err)
				}
				if err := p.Ready(b.Context()); err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				p.Close()
				b.StartTimer()
			}
		})
	}
}

// BenchmarkMapInts is a call with 10,000 numbers and the default chunk size.
func BenchmarkMapInts(b *testing.B) {
	for _, m := range []shoal.StartMethod{shoal.SpawnStart, shoal.GoroutineStart} {
		for _, workers := range []int{2, 4} {
			b.Run(fmt.Sprintf("%v/workers=%d", m, workers), func(b *testing.B) {
				p := open(b, pool.Options{Workers: workers, Process: shoal.Options{Start: m}})
				in := upTo(10_000)
				testutil.Value(square.Map(b.Context(), p, in))(b)
				for b.Loop() {
					testutil.Value(square.Map(b.Context(), p, in))(b)
				}
			})
		}
	}
}

// BenchmarkMapLocal is a thousand numbers, one at a time, by goroutines of a pool, and by
// goroutines that read one channel and write another.
func BenchmarkMapLocal(b *testing.B) {
	const workers, values = 4, 1000
	b.Run("pool", func(b *testing.B) {
		p, err := pool.New(b.Context(), pool.Options{Workers: workers, ChunkSize: 1,
			Process: shoal.Options{Start: shoal.GoroutineStart}})
		testutil.NoError(b, err)
		defer p.Close()
		in := upTo(values)
		testutil.Value(square.Map(b.Context(), p, in))(b)
		for b.Loop() {
			testutil.Value(square.Map(b.Context(), p, in))(b)
		}
	})
	b.Run("channel", func(b *testing.B) {
		type item struct{ at, value int }
		in, out := make(chan item), make(chan item)
		defer close(in)
		for range workers {
			go func() {
				for v := range in {
					out <- item{v.at, v.value * v.value}
				}
			}()
		}
		for b.Loop() {
			go func() {
				for i := range values {
					in <- item{i, i}
				}
			}()
			got := make([]int, values)
			for range values {
				v := <-out
				got[v.at] = v.value
			}
		}
	})
}
