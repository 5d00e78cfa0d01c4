package codec

import (
	"context"
	"os"
	"reflect"
	"sync"
	"sync/atomic"
)

const (
	useIPC   = "a lock is memory of one process; package ipc has locks for several"
	useValue = "an atomic is memory of one process; use an ipc.Value"
)

// refusedTypes maps common struct and interface types that cannot cross to the suggested
// substitute.
var refusedTypes = map[reflect.Type]string{
	reflect.TypeFor[context.Context](): "the function gets a context of its own",
	reflect.TypeFor[os.File]():         "a file travels as an *os.File",
	reflect.TypeFor[sync.Mutex]():      useIPC,
	reflect.TypeFor[sync.RWMutex]():    useIPC,
	reflect.TypeFor[sync.Cond]():       useIPC,
	reflect.TypeFor[sync.Locker]():     useIPC,
	reflect.TypeFor[sync.WaitGroup]():  useIPC,
	reflect.TypeFor[sync.Once]():       useIPC,
	reflect.TypeFor[sync.Map]():        "use a manager",
	reflect.TypeFor[sync.Pool]():       "each process has a pool of its own",
	reflect.TypeFor[atomic.Bool]():     useValue,
	reflect.TypeFor[atomic.Int32]():    useValue,
	reflect.TypeFor[atomic.Int64]():    useValue,
	reflect.TypeFor[atomic.Uint32]():   useValue,
	reflect.TypeFor[atomic.Uint64]():   useValue,
	reflect.TypeFor[atomic.Uintptr]():  useValue,
	reflect.TypeFor[atomic.Value]():    useValue,
	reflect.TypeFor[reflect.Value]():   "pass the value itself",
	reflect.TypeFor[reflect.Type]():    "pass a name of your own for the type",
	reflect.TypeFor[chan struct{}]():   "use an ipc.Event",
}

// refusedKinds maps kinds that cannot cross to the suggested substitute.
var refusedKinds = map[reflect.Kind]string{
	reflect.Func:          "a function crosses by its registered name, its data as an argument",
	reflect.Chan:          "a channel is memory of one process; use an ipc.Queue",
	reflect.Interface:     "of interfaces only any and error do; give the field its concrete type",
	reflect.Uintptr:       "an address means nothing elsewhere; for a number use uint64",
	reflect.UnsafePointer: "an address means nothing elsewhere",
}
