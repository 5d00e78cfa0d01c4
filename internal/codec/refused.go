package codec

import (
	"context"
	"os"
	"reflect"
	"sync"
	"sync/atomic"
)

const (
	useIPC   = "a lock works within one process: use a lock of package ipc"
	useValue = "an atomic works within one process: use an ipc.Value"
)

// refusedTypes maps common struct and interface types that cannot cross to the suggested
// substitute.
var refusedTypes = map[reflect.Type]string{
	reflect.TypeFor[context.Context](): "the function gets its own context",
	reflect.TypeFor[os.File]():         "send a file as an *os.File",
	reflect.TypeFor[sync.Mutex]():      useIPC,
	reflect.TypeFor[sync.RWMutex]():    useIPC,
	reflect.TypeFor[sync.Cond]():       useIPC,
	reflect.TypeFor[sync.Locker]():     useIPC,
	reflect.TypeFor[sync.WaitGroup]():  useIPC,
	reflect.TypeFor[sync.Once]():       useIPC,
	reflect.TypeFor[sync.Map]():        "use a manager",
	reflect.TypeFor[sync.Pool]():       "use a separate pool in each process",
	reflect.TypeFor[atomic.Bool]():     useValue,
	reflect.TypeFor[atomic.Int32]():    useValue,
	reflect.TypeFor[atomic.Int64]():    useValue,
	reflect.TypeFor[atomic.Uint32]():   useValue,
	reflect.TypeFor[atomic.Uint64]():   useValue,
	reflect.TypeFor[atomic.Uintptr]():  useValue,
	reflect.TypeFor[atomic.Value]():    useValue,
	reflect.TypeFor[reflect.Value]():   "pass the value itself",
	reflect.TypeFor[reflect.Type]():    "pass a name for the type",
	reflect.TypeFor[chan struct{}]():   "use an ipc.Event",
}

// refusedKinds maps kinds that cannot cross to the suggested substitute.
var refusedKinds = map[reflect.Kind]string{
	reflect.Func:          "pass a registered function by name, and its data as an argument",
	reflect.Chan:          "a channel works within one process: use an ipc.Queue",
	reflect.Interface:     "any and error are the only supported interfaces: give the field a concrete type",
	reflect.Uintptr:       "an address is invalid in other processes: use uint64 for a number",
	reflect.UnsafePointer: "an address is invalid in other processes",
}
