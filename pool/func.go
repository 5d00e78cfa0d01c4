package pool

import (
	"context"
	"fmt"
	"sync"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/internal/codec"
	"github.com/shoal-mp/shoal/internal/registry"
)

// A Func is a registered function that workers can run. See [Register]. All methods may be called
// from several goroutines, with any pool.
type Func[In, Out any] struct {
	name  string
	in    *codec.Plan[In]
	out   *codec.Plan[Out]
	forms func() forms[In, Out]
	body  func(ctx context.Context, in In) (Out, error)

	chunk int // 0 means Options.ChunkSize
	pace  *pace
}

// Register registers fn under a name so that workers can run it. The result must be stored in a
// package-level variable, as with shoal.Register, so that every process of the program registers
// the same function. Register panics if the name is already taken, if values of type In or Out
// cannot be sent to other processes, and after shoal.Main was called.
//
// fn owns its argument: it should close the argument's shared memory, or leave that to the garbage
// collector. The context passed to fn is canceled when the pool ends and when no caller waits for
// the result any more. Its deadline is the earlier of the deadlines of the call's context and of
// the context passed to [New]. fn must not use the context after it returns.
func Register[In, Out any](name string, fn func(ctx context.Context, in In) (Out, error)) *Func[In, Out] {
	if name == "" || fn == nil {
		panic(fmt.Sprintf("pool: Register(%q): want a nonempty name and a non-nil function", name))
	}
	f := &Func[In, Out]{name: name, body: fn, pace: new(pace)}
	var err error
	if f.in, err = codec.PlanOf[In](); err == nil {
		f.out, err = codec.PlanOf[Out]()
	}
	if err != nil {
		panic(fmt.Sprintf("pool: Register(%q): %v", name, err))
	}
	f.forms = sync.OnceValue(func() forms[In, Out] { return forms[In, Out]{newForm(f.in), newForm(f.out)} })
	functions.Add("pool: Register", name, f)
	return f
}

// ChunkSize returns a copy of f with another chunk size: calls with several values send n values to
// a worker at once. It overrides Options.ChunkSize, like Python's chunksize argument.
//
//	out, err := square.ChunkSize(100).Map(ctx, p, numbers)
//
// ChunkSize panics if n is less than 1.
func (f *Func[In, Out]) ChunkSize(n int) *Func[In, Out] {
	if n < 1 {
		panic(fmt.Sprintf("pool: %s.ChunkSize(%d): want at least 1 value", f.name, n))
	}
	g := *f
	g.chunk = n
	return &g
}

// A form describes how a chunk of arguments or results of type T is sent.
type form[T any] struct {
	plan   *codec.Plan[T]
	plain  bool // see [codec.Plan.Plain]
	copied bool // see [codec.Plan.Copied]
}

func newForm[T any](plan *codec.Plan[T]) form[T] { return form[T]{plan, plan.Plain(), plan.Copied()} }

// A forms contains the forms of a function. They are determined at its first call, because that
// builds the plans.
type forms[In, Out any] struct {
	in  form[In]
	out form[Out]
}

// runCall executes the call c in a worker and returns the reply, without its id and duration.
// The error of the call is in reply.err, and the caller must release reply.results. It stops at
// the first value that fails, or when ctx is done. The results of earlier values are then
// discarded, and given tensors among them are closed.
func (f *Func[In, Out]) runCall(ctx context.Context, c call) (r reply) {
	if vs, ok := c.args.values.([]In); ok {
		r.err = f.runArguments(ctx, arguments[In]{n: len(vs), values: vs}, c.local, &r)
		return r
	}
	r.err = c.args.decodeValues(func(d *codec.Decoder) error {
		args, err := f.readArguments(d, c.n)
		if err != nil {
			return err
		}
		return f.runArguments(ctx, args, c.local, &r)
	})
	return r
}

// runArguments runs the function on all arguments in order, and stores the results in r.results.
// At the first value that fails it stops, stores the index of the value in r.index, and returns
// the error. local is true if the worker is a goroutine of the pool's process.
func (f *Func[In, Out]) runArguments(ctx context.Context, args arguments[In], local bool, r *reply) (err error) {
	if f.forms().out.plain {
		return f.runPlain(ctx, args, local, r)
	}
	r.results, err = packPayload(true, func(e *codec.Encoder) error {
		for r.index = range args.n {
			out, err := f.runValue(ctx, args, r.index)
			if err != nil {
				return err
			}
			if err := f.out.Encode(e, out); err != nil {
				return fmt.Errorf("encode result: %w", err)
			}
		}
		return nil
	})
	return err
}

// runPlain is [Func.runArguments] for results without shared memory. It packs them together.
func (f *Func[In, Out]) runPlain(ctx context.Context, args arguments[In], local bool, r *reply) (err error) {
	out := make([]Out, args.n)
	if r.index, err = f.runAll(ctx, args, out); err != nil {
		return err
	}
	if local && f.forms().out.copied {
		r.results = payload{values: out}
		return nil
	}
	if r.results, err = packValues(f.out, out); err != nil {
		return fmt.Errorf("encode result: %w", err)
	}
	return nil
}

// runAll runs the function on all arguments in order, and stores the results in out, which must
// have args.n elements. It stops at the first value that fails or when ctx is done, and returns
// the index of that value and the error; i is 0 if err is nil.
func (f *Func[In, Out]) runAll(ctx context.Context, args arguments[In], out []Out) (i int, err error) {
	if args.values == nil {
		for i = range out {
			if out[i], err = f.runValue(ctx, args, i); err != nil {
				return i, err
			}
		}
		return 0, nil
	}
	done := ctx.Done() // a receive is cheaper than ctx.Err
	for i, in := range args.values {
		select {
		case <-done:
			return i, context.Cause(ctx)
		default:
		}
		if out[i], err = f.body(ctx, in); err != nil {
			return i, err
		}
	}
	return 0, nil
}

// An arguments contains the arguments of a call. Arguments with shared memory are decoded one at a
// time, so that the function owns each before a later one can fail.
type arguments[In any] struct {
	n      int
	values []In           // nil if the arguments are decoded one at a time
	from   *codec.Decoder // contains the next argument
}

// readArguments returns the arguments of a call with n values. The error wraps [shoal.ErrArgument].
func (f *Func[In, Out]) readArguments(d *codec.Decoder, n int) (args arguments[In], err error) {
	if !f.forms().in.plain {
		if err := d.CheckCount(n); err != nil {
			return args, fmt.Errorf("%w: %w", shoal.ErrArgument, err)
		}
		return arguments[In]{n: n, from: d}, nil
	}
	vs, err := f.in.DecodeN(d, n)
	if err != nil {
		return args, fmt.Errorf("%w: %w", shoal.ErrArgument, err)
	}
	return arguments[In]{n: n, values: vs}, nil
}

// runValue runs the function on the i-th argument and returns its result. If ctx is done before,
// it returns the cause. The error wraps [shoal.ErrArgument] if the argument cannot be decoded.
// It must be called for the arguments in their order.
func (f *Func[In, Out]) runValue(ctx context.Context, args arguments[In], i int) (out Out, err error) {
	if ctx.Err() != nil {
		return out, context.Cause(ctx)
	}
	if args.values != nil {
		return f.body(ctx, args.values[i])
	}
	in, err := decodeNext(f.in, args.from)
	if err != nil {
		return out, fmt.Errorf("%w: %w", shoal.ErrArgument, err)
	}
	return f.body(ctx, in)
}

// A function is the type-erased interface of a Func for workers.
type function interface {
	runCall(ctx context.Context, c call) reply
}

// functions contains the registered functions of this program.
var functions registry.Table[function]

// performCall executes a call by the name of its function, and returns the reply of runCall. The
// reply's error wraps [shoal.ErrNotRegistered] if there is no function of that name.
func performCall(ctx context.Context, c call) reply {
	f, ok := functions.Get(c.fn)
	if !ok {
		return reply{err: fmt.Errorf("%w: %s", shoal.ErrNotRegistered, c.fn)}
	}
	return f.runCall(ctx, c)
}

// RegisterInit registers fn so that it can be used as Options.Initializer. It returns a function
// that binds an argument for fn; [New] copies the argument. The result must be stored in a
// package-level variable:
//
//	var load = pool.RegisterInit("load", func(ctx context.Context, path string) error { … })
//
//	p, err := pool.New(ctx, pool.Options{Initializer: load("words.txt")})
//
// Names must be unique across [Register] and RegisterInit. RegisterInit panics in the same cases as
// Register. fn should keep its results in package-level variables; workers on goroutines share
// them.
func RegisterInit[In any](name string, fn func(ctx context.Context, in In) error) func(In) Initializer {
	if fn == nil {
		panic(fmt.Sprintf("pool: RegisterInit(%q): want a non-nil function", name))
	}
	f := Register(name, func(ctx context.Context, in In) (struct{}, error) { return struct{}{}, fn(ctx, in) })
	return func(in In) Initializer {
		return Initializer{func() (call, error) {
			args, err := packValues(f.in, []In{in})
			return call{fn: f.name, n: 1, args: args}, err
		}}
	}
}

// An Initializer is a function, with its argument, that each worker runs before its first task.
// See [RegisterInit]. It may be used for several pools; each [New] encodes the argument anew.
// The zero Initializer does nothing.
type Initializer struct{ capture func() (call, error) }
