package pool

import (
	"context"
	"iter"
)

// A Pair is the two arguments of a Func2.
type Pair[A, B any] struct {
	First  A
	Second B
}

// A Func2 is a function of two arguments that workers run. Its Func takes the two as a Pair.
//
// A function of three arguments or more takes a struct of them, and StarMap is Map then: the fields
// have names, so that no call confuses two arguments of one type, which Python's tuples cannot say.
//
//	type box struct{ W, H, D float64 }
//
//	var volume = pool.Register("volume", func(ctx context.Context, b box) (float64, error) { … })
//
//	out, err := volume.Map(ctx, p, []box{{1, 2, 3}, {4, 5, 6}})
type Func2[A, B, Out any] struct{ Func *Func[Pair[A, B], Out] }

// Register2 makes a function of two arguments runnable by workers. It panics where Register does.
func Register2[A, B, Out any](name string, fn func(ctx context.Context, a A, b B) (Out, error)) *Func2[A, B, Out] {
	if fn == nil {
		panic("pool: Register2: a function is needed")
	}
	return &Func2[A, B, Out]{Register(name, func(ctx context.Context, in Pair[A, B]) (Out, error) {
		return fn(ctx, in.First, in.Second)
	})}
}

// ChunkSize returns the same function, of which a worker gets n pairs at once, whatever
// Options.ChunkSize says. It panics if n is below 1.
func (f *Func2[A, B, Out]) ChunkSize(n int) *Func2[A, B, Out] {
	return &Func2[A, B, Out]{f.Func.ChunkSize(n)}
}

// StarMap runs the function with each pair of arguments and returns the results in their order, as
// Map does. The pairs of slices.All(chunks) are an index and a chunk.
func (f *Func2[A, B, Out]) StarMap(ctx context.Context, p *Pool, in iter.Seq2[A, B]) ([]Out, error) {
	return f.Func.Map(ctx, p, pairs(in))
}

// StarMapAsync hands the pairs in and returns at once, when they are captured.
func (f *Func2[A, B, Out]) StarMapAsync(p *Pool, in iter.Seq2[A, B]) *Result[[]Out] {
	return f.Func.MapAsync(p, pairs(in))
}

// Apply runs the function with one pair of arguments and returns the result.
func (f *Func2[A, B, Out]) Apply(ctx context.Context, p *Pool, a A, b B) (Out, error) {
	return f.Func.Apply(ctx, p, Pair[A, B]{a, b})
}

// ApplyAsync hands one pair of arguments in and returns at once.
func (f *Func2[A, B, Out]) ApplyAsync(p *Pool, a A, b B) *Result[Out] {
	return f.Func.ApplyAsync(p, Pair[A, B]{a, b})
}

func pairs[A, B any](in iter.Seq2[A, B]) (all []Pair[A, B]) {
	for a, b := range in {
		all = append(all, Pair[A, B]{a, b})
	}
	return all
}
