package pool

import (
	"context"
	"fmt"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/internal/codec"
	"github.com/shoal-mp/shoal/internal/registry"
)

// A Func is a registered function that workers run. Register makes it. Several goroutines may call
// its methods, with any pool.
type Func[In, Out any] struct {
	name string
	in   *codec.Plan[In]
	out  *codec.Plan[Out]
	body func(ctx context.Context, in In) (Out, error)

	chunk int // 0: as the pool's options say
}

// Register makes fn runnable by workers. Keep the result in a package-level variable, as with
// shoal.Register, so that every process of the program has it under the same name. It panics if the
// name is taken, if In or Out cannot cross processes, and after shoal.Main has begun.
//
// fn owns its argument: it closes what the argument holds of shared memory, or leaves it to the
// garbage collector. The context of fn ends with the pool, and when no call waits for the result.
// It has the deadline of the context of the call, or that of New if it is earlier. fn must not use
// it after it returns.
func Register[In, Out any](name string, fn func(ctx context.Context, in In) (Out, error)) *Func[In, Out] {
	if name == "" || fn == nil {
		panic(fmt.Sprintf("pool: Register(%q): a name and a function are needed", name))
	}
	f := &Func[In, Out]{name: name, body: fn}
	var err error
	if f.in, err = codec.PlanOf[In](); err == nil {
		f.out, err = codec.PlanOf[Out]()
	}
	if err != nil {
		panic(fmt.Sprintf("pool: Register(%q): %v", name, err))
	}
	functions.Add("pool: Register", name, f)
	return f
}

// ChunkSize returns the same function with another chunk size: in calls with several values, a
// worker gets n values at once. It overrides Options.ChunkSize, as Python's argument chunksize.
//
//	out, err := square.ChunkSize(100).Map(ctx, p, numbers)
//
// It panics if n is below 1.
func (f *Func[In, Out]) ChunkSize(n int) *Func[In, Out] {
	if n < 1 {
		panic(fmt.Sprintf("pool: %s.ChunkSize(%d): at least 1 value is needed", f.name, n))
	}
	g := *f
	g.chunk = n
	return &g
}

// run does a call, in a worker. The first value that fails ends it, and so does the end of ctx: the
// results of the values before go unseen, and those that the function has given are closed.
func (f *Func[In, Out]) run(ctx context.Context, c call) (r reply) {
	r.err = c.args.unpack(func(d *codec.Decoder) (err error) {
		r.results, err = pack(true, func(e *codec.Encoder) error {
			for r.index = range c.n {
				if ctx.Err() != nil {
					return context.Cause(ctx)
				}
				if err := f.one(ctx, d, e); err != nil {
					return err
				}
			}
			return nil
		})
		return err
	})
	return r
}

// one reads a value, runs the function with it and writes the result.
func (f *Func[In, Out]) one(ctx context.Context, d *codec.Decoder, e *codec.Encoder) error {
	in, err := next(f.in, d)
	if err != nil {
		return fmt.Errorf("%w: %w", shoal.ErrArgument, err)
	}
	out, err := f.body(ctx, in)
	if err != nil {
		return err
	}
	if err := f.out.Encode(e, out); err != nil {
		return fmt.Errorf("the result cannot cross: %w", err)
	}
	return nil
}

// A function is what a worker needs of a Func.
type function interface {
	run(ctx context.Context, c call) reply
}

// functions are those of this program.
var functions registry.Table[function]

// perform does a call by name.
func perform(ctx context.Context, c call) reply {
	f, ok := functions.Get(c.fn)
	if !ok {
		return reply{err: fmt.Errorf("%w: %s", shoal.ErrNotRegistered, c.fn)}
	}
	return f.run(ctx, c)
}

// RegisterInit makes fn usable as Options.Initializer. It returns a function that takes the
// argument of fn, which New copies. Keep this function in a package-level variable:
//
//	var load = pool.RegisterInit("load", func(ctx context.Context, path string) error { … })
//
//	p, err := pool.New(ctx, pool.Options{Initializer: load("words.txt")})
//
// The name must differ from those of Register and RegisterInit. RegisterInit panics where
// [Register] does. fn keeps its results in package-level variables; workers on goroutines share
// these.
func RegisterInit[In any](name string, fn func(ctx context.Context, in In) error) func(In) Initializer {
	if fn == nil {
		panic(fmt.Sprintf("pool: RegisterInit(%q): a function is needed", name))
	}
	f := Register(name, func(ctx context.Context, in In) (struct{}, error) { return struct{}{}, fn(ctx, in) })
	return func(in In) Initializer {
		return Initializer{func() (call, error) {
			args, err := packAll(f.in, []In{in})
			return call{fn: f.name, n: 1, args: args}, err
		}}
	}
}

// An Initializer is a function, with its argument, that each worker runs before its first task. A
// function of RegisterInit makes it. The zero Initializer does nothing.
type Initializer struct{ capture func() (call, error) }
