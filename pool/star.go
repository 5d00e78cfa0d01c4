package pool

import (
	"context"
	"fmt"
	"iter"
)

// A Pair contains the two arguments of a [Func2].
type Pair[A, B any] struct {
	First  A
	Second B
}

// A Func2 is a registered function with two arguments that workers can run. Its Func takes the
// arguments as a [Pair].
//
// For three or more arguments, register a function of a struct with [Register], and use Map instead
// of StarMap. Because the fields have names, a call cannot confuse two arguments of the same type:
//
//	type box struct{ W, H, D float64 }
//
//	var volume = pool.Register("volume", func(ctx context.Context, b box) (float64, error) { … })
//
//	out, err := volume.Map(ctx, p, []box{{1, 2, 3}, {4, 5, 6}})
type Func2[A, B, Out any] struct{ Func *Func[Pair[A, B], Out] }

// Register2 registers a function with two arguments so that workers can run it. It panics in the
// same cases as [Register]. The result must be stored in a package-level variable.
func Register2[A, B, Out any](name string, fn func(ctx context.Context, a A, b B) (Out, error)) *Func2[A, B, Out] {
	if fn == nil {
		panic(fmt.Sprintf("pool: Register2(%q): want a non-nil function", name))
	}
	return &Func2[A, B, Out]{Register(name, func(ctx context.Context, in Pair[A, B]) (Out, error) {
		return fn(ctx, in.First, in.Second)
	})}
}

// ChunkSize returns a copy of f with another chunk size: n pairs are sent to a worker at once. It
// overrides Options.ChunkSize. It panics if n is less than 1.
func (f *Func2[A, B, Out]) ChunkSize(n int) *Func2[A, B, Out] {
	return &Func2[A, B, Out]{f.Func.ChunkSize(n)}
}

// StarMap runs the function with each pair of arguments and returns the results in the order of the
// pairs, like [Func.Map]. With slices.All(values), the pairs consist of an index and a value.
func (f *Func2[A, B, Out]) StarMap(ctx context.Context, p *Pool, in iter.Seq2[A, B]) ([]Out, error) {
	return f.Func.Map(ctx, p, collectPairs(in))
}

// StarMapAsync submits the pairs to the pool and returns as soon as they are copied, like
// [Func.MapAsync].
func (f *Func2[A, B, Out]) StarMapAsync(p *Pool, in iter.Seq2[A, B]) *Result[[]Out] {
	return f.Func.MapAsync(p, collectPairs(in))
}

// Apply runs the function with one pair of arguments and returns the result, like [Func.Apply].
func (f *Func2[A, B, Out]) Apply(ctx context.Context, p *Pool, a A, b B) (Out, error) {
	return f.Func.Apply(ctx, p, Pair[A, B]{a, b})
}

// ApplyAsync submits one pair of arguments to the pool and returns as soon as it is copied, like
// [Func.ApplyAsync].
func (f *Func2[A, B, Out]) ApplyAsync(p *Pool, a A, b B) *Result[Out] {
	return f.Func.ApplyAsync(p, Pair[A, B]{a, b})
}

func collectPairs[A, B any](in iter.Seq2[A, B]) (all []Pair[A, B]) {
	for a, b := range in {
		all = append(all, Pair[A, B]{a, b})
	}
	return all
}
