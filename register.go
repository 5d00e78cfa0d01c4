package shoal

import (
	"context"
	"fmt"

	"github.com/shoal-mp/shoal/internal/registry"
)

// A Func is a function that can run in another process. It is created by [Register]. Its methods
// may be called concurrently.
type Func[In any] struct {
	name string
	arg  argument[In]
	body func(ctx context.Context, rank int, in In) error
}

// Register makes fn runnable in another process. The result should be assigned to a package-level
// variable:
//
//	var train = shoal.Register("train", func(ctx context.Context, rank int, j job) error { … })
//
// All processes of the program run the same binary, so each has registered the same functions under
// the same names before Main runs. The name appears in ps and in errors. fn must get all of its
// data through its argument: variables that it captures are not the parent's, because the variables
// of another process are initialized anew. See package wire for the values that In may contain.
//
// Register panics if the name is taken, if In cannot be encoded (with the path to the unsupported
// part), and after Main has been called. A function that starts itself is an initialization cycle
// for the compiler: declare its variable without a value and assign it in init.
func Register[In any](name string, fn func(ctx context.Context, rank int, in In) error) *Func[In] {
	if name == "" || fn == nil {
		panic(fmt.Sprintf("shoal: Register(%q): want a nonempty name and a non-nil function", name))
	}
	f := &Func[In]{name: name, body: fn}
	if self == nil { // the parent is the same program and has checked this
		if err := f.arg.checkType(); err != nil {
			panic(fmt.Sprintf("shoal: Register(%q): %v", name, err))
		}
	}
	functions.Add("shoal: Register", name, f)
	return f
}

// prepareTask decodes the argument in the new process. The returned task runs the registered
// function with it and must be called once; it closes the files and the ends of queues in the
// argument afterwards.
func (f *Func[In]) prepareTask(m parcel) (run task, err error) {
	in, files, held, err := f.arg.decode(m)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, rank int) error {
		defer closeAll(files)
		defer held.close()
		return f.body(context.WithValue(ctx, filesKey{}, files), rank, in)
	}, nil
}

// A task is a registered function bound to its decoded argument.
type task func(ctx context.Context, rank int) error

// compilePlans compiles the codec of the argument ahead of its first use. Errors are ignored
// here and returned by prepareTask.
func (f *Func[In]) compilePlans() { f.arg.checkType() }

// runnable is a [Func] without its type parameter, as the new process finds it by name.
type runnable interface {
	compilePlans()
	prepareTask(m parcel) (task, error)
}

// functions contains the registered functions.
var functions registry.Table[runnable]
