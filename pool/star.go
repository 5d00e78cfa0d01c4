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

// A Func2 is a registered function of two arguments that workers run. Its Func takes the two as a
// Pair.
//
// For three arguments or more, register a function of a struct with Register, and use Map in the
// place of StarMap. The fields of the struct have names, so a call cannot confuse two arguments of
// one type:
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

// ChunkSize returns the same function with another chunk size: a worker gets n pairs at once. It
// overrides Options.ChunkSize. It panics if n is below 1.
func (f *Func2[A, B, Out]) ChunkSize(n int) *Func2[A, B, Out] {
	return &Func2[A, B, Out]{f.Func.ChunkSize(n)}
}

// StarMap runs the function with each pair of arguments and returns the results in the order of the
// pairs, as [Func.Map] does. With slices.All(values) the pairs are an index and a value.
func (f *Func2[A, B, Out]) StarMap(ctx context.Context, p *Pool, in iter.Seq2[A, B]) ([]Out, error) {
	return f.Func.Map(ctx, p, pairs(in))
}

// StarMapAsync hands the pairs to the pool and returns at once, when the pairs are copied.
func (f *Func2[A, B, Out]) StarMapAsync(p *Pool, in iter.Seq2[A, B]) *Result[[]Out] {
	return f.Func.MapAsync(p, pairs(in))
}

// Apply runs the function with one pair of arguments and returns the result, as [Func.Apply] does.
func (f *Func2[A, B, Out]) Apply(ctx context.Context, p *Pool, a A, b B) (Out, error) {
	return f.Func.Apply(ctx, p, Pair[A, B]{a, b})
}

// ApplyAsync hands one pair of arguments to the pool and returns at once.
func (f *Func2[A, B, Out]) ApplyAsync(p *Pool, a A, b B) *Result[Out] {
	return f.Func.ApplyAsync(p, Pair[A, B]{a, b})
}

func pairs[A, B any](in iter.Seq2[A, B]) (all []Pair[A, B]) {
	for a, b := range in {
		all = append(all, Pair[A, B]{a, b})
	}
	return all
}
