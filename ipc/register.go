package ipc

import "github.com/shoal-mp/shoal/internal/wire"

// A traveler is a type of this package with methods that write it to a message and read it.
type traveler interface {
	marshalWire(e *wire.Encoder) error
	unmarshalWire(d *wire.Decoder) error
}

func init() { wire.CustomMethods(traveler.marshalWire, traveler.unmarshalWire) }

// What travels in an any. Queues, pipes and their ends are registered by programs, which know the
// types of their values.
func init() {
	wire.RegisterType[*Mutex]("ipc.Mutex")
	wire.RegisterType[*RWMutex]("ipc.RWMutex")
	wire.RegisterType[*RecursiveMutex]("ipc.RecursiveMutex")
	wire.RegisterType[*Semaphore]("ipc.Semaphore")
	wire.RegisterType[*Cond]("ipc.Cond")
	wire.RegisterType[*Event]("ipc.Event")
	wire.RegisterType[*Barrier]("ipc.Barrier")
	wire.RegisterType[*Once]("ipc.Once")
	wire.RegisterType[*Memory]("ipc.Memory")
	wire.RegisterType[*ShareableList]("ipc.ShareableList")
}
