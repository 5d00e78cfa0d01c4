package shoal

import (
	"context"
	"fmt"

	"github.com/shoal-mp/shoal/internal/registry"
)

// A Func is a function that runs in a process of its own. Register makes it. Several goroutines may
// use it.
type Func[In any] struct {
	name string
	arg  argument[In]
	body func(ctx context.Context, rank int, in In) error
}

// Register makes fn runnable in another process. Keep the result in a package-level variable:
//
//	var train = shoal.Register("train", func(ctx context.Context, rank int, j job) error { … })
//
// Every process of the program is the same binary. So each has registered the same functions under
// the same names when Main takes over. ps and every error show name. All values that fn needs come
// in its argument. Variables that fn captures are not the starter's, because the variables of the
// other process start anew. See package wire for the values that In may hold.
//
// Register panics if the name is taken, if In cannot cross processes (with the path to the part
// that cannot), and after Main has begun. A function that starts itself is an initialisation cycle
// for the compiler: declare its variable without a value and assign it in init.
func Register[In any](name string, fn func(ctx context.Context, rank int, in In) error) *Func[In] {
	if name == "" || fn == nil {
		panic(fmt.Sprintf("shoal: Register(%q): a name and a function are needed", name))
	}
	f := &Func[In]{name: name, body: fn}
	if self == nil { // the starter of a worker is the same program, and has checked this
		if err := f.arg.check(); err != nil {
			panic(fmt.Sprintf("shoal: Register(%q): %v", name, err))
		}
	}
	functions.Add("shoal: Register", name, f)
	return f
}

// prepare decodes the argument in the new process. The returned function runs fn.
func (f *Func[In]) prepare(m parcel) (run task, err error) {
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

// A task is a function with its argument bound.
type task func(ctx context.Context, rank int) error

// practise has the plan of the argument built. An error of the plan shows up when it is used.
func (f *Func[In]) practise() { f.arg.check() }

// runnable is the part of a Func that the new process needs.
type runnable interface {
	practise()
	prepare(m parcel) (task, error)
}

// functions are the functions of this program.
var functions registry.Table[runnable]
