package manager

import (
	"context"
	"fmt"
	"reflect"
	"runtime"
	"strings"

	"github.com/shoal-mp/shoal/internal/codec"
	"github.com/shoal-mp/shoal/internal/registry"
)

// A Type is a registered type of the program with objects in servers, which [Type.New] creates.
// It may be used from several goroutines. See [Register].
type Type struct {
	name    string
	kind    *kind
	make    *function
	methods map[string]*function
}

// A Saver can take part in transactions. It is implemented by an object of a registered type. The
// server calls Save before a transaction first uses the object. To roll back the transaction, it
// calls restore, which must restore the state at the time of Save.
type Saver interface{ Save() (restore func()) }

// types contains the registered types of this program.
var types registry.Table[*Type]

// Register registers a type for objects in servers. The result must be stored in a package-level
// variable. The server process runs the same program, and therefore registers the type too:
//
//	var counters = manager.Register("Counter", NewCounter, (*Counter).Add, (*Counter).Get)
//
// construct must be a function that returns a *T, or a *T and an error. methods must be method
// expressions of *T. Callers use their Go names. The server runs one method of an object at a time,
// so T needs no lock. Parameters and results must be of types that can be sent to other processes.
// If the first parameter is a context.Context, it has the deadline of the caller's context, and is
// canceled when the caller cancels the call or dies. If a method panics or calls runtime.Goexit,
// its caller gets a [*PanicError], and the server continues. A method must not call its own
// manager.
//
// Register panics if construct or a method has another form, if a parameter or a result cannot be
// sent to other processes, if the name is already taken, and after shoal.Main was called.
func Register(name string, construct any, methods ...any) *Type {
	t, err := newType(name, construct, methods)
	if err != nil {
		panic(fmt.Sprintf("manager: Register(%q): %v", name, err))
	}
	if name == "" || kinds[name] != nil {
		panic(fmt.Sprintf("manager: Register(%q): name is empty or already taken", name))
	}
	types.Add("manager: Register", name, t)
	t.defineKind()
	return t
}

func newType(name string, construct any, methods []any) (t *Type, err error) {
	t = &Type{name: name, methods: make(map[string]*function)}
	if t.make, err = newFunction(name, reflect.ValueOf(construct), nil); err != nil {
		return nil, err
	}
	if len(t.make.out) != 1 || t.make.out[0].typ.Kind() != reflect.Pointer {
		return nil, fmt.Errorf("constructor must return a pointer, or a pointer and an error")
	}
	self := t.make.out[0].typ
	for i, m := range methods {
		v := reflect.ValueOf(m)
		if v.Kind() != reflect.Func {
			return nil, fmt.Errorf("method %d has type %T, want a method expression such as (*T).Get", i, m)
		}
		method := methodName(v)
		if method == "" || v.Type().NumIn() == 0 || v.Type().In(0) != self {
			return nil, fmt.Errorf("method %d has type %s, want a method expression of %s", i, v.Type(), self)
		}
		if t.methods[method] != nil {
			return nil, fmt.Errorf("method %s is listed twice", method)
		}
		if t.methods[method], err = newFunction(name+"."+method, v, self); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// methodName returns the name of a method with a pointer receiver from its method expression v,
// such as "Get" for (*T).Get, or "" for another function. v must be a function.
func methodName(v reflect.Value) string {
	name := runtime.FuncForPC(v.Pointer()).Name()
	receiver, method, ok := strings.Cut(name[strings.LastIndex(name, "/")+1:], ").")
	if !ok || !strings.Contains(receiver, "(*") || strings.HasSuffix(method, "-fm") || strings.Contains(method, ".") {
		return ""
	}
	return method
}

// A parameter is a parameter or a result that is sent between processes.
type parameter struct {
	typ  reflect.Type
	plan *codec.TypePlan // nil for the pointer returned by a constructor
}

// A function is a constructor or a method that can be called from another process.
type function struct {
	name    string
	method  *method // nil for a constructor
	body    reflect.Value
	self    bool // the first parameter is the object
	context bool // the next parameter is a context
	in, out []parameter
	fails   bool // the last result is an error
}

// newFunction validates f and returns its description. name is its name in errors. self is the
// type of the object, which is then the type of f's first parameter, or nil for a constructor.
// It returns an error if f is variadic, or if a parameter, or a result of a method, cannot be
// sent to other processes.
func newFunction(name string, f reflect.Value, self reflect.Type) (*function, error) {
	if f.Kind() != reflect.Func || f.IsNil() {
		return nil, fmt.Errorf("%s is not a function", name)
	}
	t := f.Type()
	if t.IsVariadic() {
		return nil, fmt.Errorf("%s is variadic: use a slice parameter instead", name)
	}
	fn := &function{name: name, body: f, self: self != nil}
	i := 0
	if fn.self {
		i++
	}
	if i < t.NumIn() && t.In(i) == reflect.TypeFor[context.Context]() {
		fn.context = true
		i++
	}
	for n := 1; i < t.NumIn(); i, n = i+1, n+1 {
		plan, err := codec.PlanOfType(t.In(i))
		if err != nil {
			return nil, fmt.Errorf("%s, argument %d: %w", name, n, err)
		}
		fn.in = append(fn.in, parameter{t.In(i), plan})
	}
	for i := range t.NumOut() {
		typ := t.Out(i)
		if i == t.NumOut()-1 && typ == reflect.TypeFor[error]() {
			fn.fails = true
			break
		}
		p := parameter{typ: typ}
		if fn.self {
			var err error
			if p.plan, err = codec.PlanOfType(typ); err != nil {
				return nil, fmt.Errorf("%s, result %d: %w", name, i+1, err)
			}
		}
		fn.out = append(fn.out, p)
	}
	return fn, nil
}

// packArgs encodes the values vs as the arguments of f. The caller must release them. It returns
// [ErrArgument] unless they are assignable to the parameters.
func (f *function) packArgs(vs []any) ([]argument, error) {
	if len(vs) != len(f.in) {
		return nil, fmt.Errorf("%w: %s takes %d arguments, got %d", ErrArgument, f.name, len(f.in), len(vs))
	}
	args := make([]argument, len(vs))
	for i, v := range vs {
		want, x := f.in[i], reflect.ValueOf(v)
		if v == nil {
			x = reflect.Zero(want.typ)
		}
		if v == nil && !isNilable(want.typ) || !x.Type().AssignableTo(want.typ) {
			releaseArgs(args[:i])
			return nil, fmt.Errorf("%[1]w %[2]d of %[3]s: got %[5]T, want %[4]s", ErrArgument, i+1, f.name, want.typ, v)
		}
		var err error
		if args[i], err = packValue(want.plan, x); err != nil {
			releaseArgs(args[:i])
			return nil, fmt.Errorf("%w %d of %s: %w", ErrArgument, i+1, f.name, err)
		}
	}
	return args, nil
}

func isNilable(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map, reflect.Interface:
		return true
	}
	return false
}

// callFunc runs the function in the server with the arguments of call c, and returns its results
// without the error. self is the object, or nil for a constructor. It returns [ErrArgument] if
// the arguments do not match the parameters, and otherwise the error that the function returns.
func (f *function) callFunc(c *call, self any) ([]reflect.Value, error) {
	if len(c.Args) != len(f.in) {
		return nil, fmt.Errorf("%w: %s takes %d arguments, got %d", ErrArgument, f.name, len(f.in), len(c.Args))
	}
	var args []reflect.Value
	if f.self {
		args = append(args, reflect.ValueOf(self))
	}
	if f.context {
		args = append(args, reflect.ValueOf(c.callContext()))
	}
	for i, p := range f.in {
		it, err := c.takeArg(i)
		if err != nil {
			return nil, err
		}
		v, err := unpackValue(c.s.d, it, p.plan)
		if err != nil {
			return nil, fmt.Errorf("%w %d of %s: %w", ErrArgument, i+1, f.name, err)
		}
		args = append(args, v)
	}
	out := f.body.Call(args)
	if f.fails {
		last := len(out) - 1
		if err, _ := out[last].Interface().(error); err != nil {
			return nil, err
		}
		out = out[:last]
	}
	return out, nil
}

// defineKind adds the type's kind and methods to kinds, so that servers in this process can
// create objects of the type. It must be called once.
func (t *Type) defineKind() {
	t.kind = newKind(t.name, func(c *call) (any, error) {
		out, err := t.make.callFunc(c, nil)
		if err != nil {
			return nil, err
		}
		if out[0].IsNil() {
			return nil, fmt.Errorf("%w: the constructor of %s returned nil", ErrNoObject, t.name)
		}
		self := out[0].Interface()
		if s, ok := self.(Saver); ok {
			return savable{own{self}, s}, nil
		}
		return own{self}, nil
	})
	t.kind.create.timed = t.make.context
	for name, f := range t.methods {
		f.method = defineMethod(t.kind, name, func(state registered, c *call) error {
			return f.serveCall(c, state.object())
		})
		f.method.timed = f.context
	}
}

func (f *function) serveCall(c *call, self any) error {
	out, err := f.callFunc(c, self)
	if err != nil {
		return err
	}
	for i, v := range out {
		a, err := packValue(f.out[i].plan, v)
		if err != nil {
			return fmt.Errorf("result %d of %s: %w", i+1, f.name, err)
		}
		kept, err := a.item.clone(c.s.d)
		a.releaseArg(err == nil)
		if err != nil {
			return err
		}
		c.results = append(c.results, kept)
	}
	return nil
}

// registered is the state of an object of a registered type.
type registered interface{ object() any }

// own is the state of an object that cannot take part in transactions.
type own struct{ self any }

func (o own) object() any { return o.self }

// savable is the state of an object that can take part in transactions.
type savable struct {
	own
	saver Saver
}

func (s savable) saveState(keeper) undo { return undo{restore: s.saver.Save(), discard: func() {}} }
