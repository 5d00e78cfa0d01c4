package pool

import (
	"context"
	"fmt"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/internal/registry"
	"github.com/shoal-mp/shoal/internal/wire"
)

// A Func is a function that workers run. It is made by Register and may be used by several
// goroutines, with any pool.
type Func[In, Out any] struct {
	name string
	in   *wire.Plan[In]
	out  *wire.Plan[Out]
	body func(ctx context.Context, in In) (Out, error)

	chunk int // 0: as the pool's options say
}

// Register makes fn runnable by workers. Keep the result in a package-level variable, as with
// shoal.Register, so that every process of the program has it under the same name. It panics if the
// name is taken, if In or Out cannot cross processes, and after shoal.Main has begun.
//
// What fn is given is its own: it closes what has to be closed, or leaves it to the garbage
// collector. The context ends with the pool, and when no call waits for the result any more; it is
// good until fn returns.
func Register[In, Out any](name string, fn func(ctx context.Context, in In) (Out, error)) *Func[In, Out] {
	if name == "" || fn == nil {
		panic(fmt.Sprintf("pool: Register(%q): a name and a function are needed", name))
	}
	f := &Func[In, Out]{name: name, body: fn}
	var err error
	if f.in, err = wire.PlanOf[In](); err == nil {
		f.out, err = wire.PlanOf[Out]()
	}
	if err != nil {
		panic(fmt.Sprintf("pool: Register(%q): %v", name, err))
	}
	functions.Add("pool: Register", name, f)
	return f
}

// ChunkSize returns the same function, of which a worker gets n values at once, whatever
// Options.ChunkSize says: Python's chunksize, for every call that takes several values.
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

// run does a call, in a worker. The first value that fails ends it.
func (f *Func[In, Out]) run(ctx context.Context, c call) (r reply) {
	r.err = c.args.unpack(func(d *wire.Decoder) (err error) {
		r.results, err = pack(func(e *wire.Encoder) error {
			for r.index = range c.n {
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
func (f *Func[In, Out]) one(ctx context.Context, d *wire.Decoder, e *wire.Encoder) error {
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

// RegisterInit makes fn usable as Options.Initializer: what it returns takes the argument of fn,
// which is captured by New. Keep it in a package-level variable:
//
//	var load = pool.RegisterInit("load", func(ctx context.Context, path string) error { … })
//
//	p, err := pool.New(ctx, pool.Options{Initializer: load("words.txt")})
//
// It shares its names with Register, and panics where Register does. fn keeps what it prepares in
// package-level variables, which workers on goroutines have in common.
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

// An Initializer is a function that each worker runs before its first task, with its argument: what
// a function of RegisterInit returns. The zero Initializer does nothing.
type Initializer struct{ capture func() (call, error) }
