package ipc

import "github.com/shoal-mp/shoal/internal/codec"

// A traveler is a type of this package that encodes and decodes itself.
type traveler interface {
	marshalWire(e *codec.Encoder) error
	unmarshalWire(d *codec.Decoder) error
}

func init() { codec.CustomMethods(traveler.marshalWire, traveler.unmarshalWire) }

// These types can be sent as an any. Queues, pipes and their ends are generic, so programs must
// register the instantiations that they send as an any.
func init() {
	codec.RegisterType[*Mutex]("ipc.Mutex")
	codec.RegisterType[*RWMutex]("ipc.RWMutex")
	codec.RegisterType[*RecursiveMutex]("ipc.RecursiveMutex")
	codec.RegisterType[*Semaphore]("ipc.Semaphore")
	codec.RegisterType[*Cond]("ipc.Cond")
	codec.RegisterType[*Event]("ipc.Event")
	codec.RegisterType[*Barrier]("ipc.Barrier")
	codec.RegisterType[*Once]("ipc.Once")
	codec.RegisterType[*Memory]("ipc.Memory")
	codec.RegisterType[*ShareableList]("ipc.ShareableList")
}
