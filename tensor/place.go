package tensor

import (
	"fmt"
	"strings"

	"github.com/shoal-mp/shoal/internal/codec"
	"github.com/shoal-mp/shoal/internal/device"
)

// A Place is a [Device] with additional methods. It creates tensors on the device: see [On]. It can
// also be sent in arguments and messages by its name, like a torch.device: the receiver gets its
// own device with this name. The zero value is the host, cpu.
type Place struct{ Device }

// String returns the name of the device, such as cpu or cuda:0.
func (p Place) String() string { return deviceName(p.Device) }

// MarshalText returns the name of the device, such as cpu or cuda:0.
func (p Place) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText sets p to the device with the given name. It returns the errors of [ParseDevice].
func (p *Place) UnmarshalText(name []byte) (err error) {
	p.Device, err = ParseDevice(string(name))
	return err
}

// ParseDevice returns the device with the given name in PyTorch's form: cpu, which is nil, or cuda
// and cuda:1 in a program that imports package cuda. The error wraps [ErrDevice] if the kind is
// unknown, or describes why the device cannot be used.
func ParseDevice(name string) (Device, error) {
	kind, _, _ := strings.Cut(name, ":")
	if kind == "cpu" {
		return nil, nil
	}
	backend, ok := device.Find(kind)
	if !ok || backend.Parse == nil {
		return nil, fmt.Errorf("%w: %q: import the package that provides it", ErrDevice, name)
	}
	return backend.Parse(name)
}

func init() { codec.RegisterType[Place]("tensor.Place") }
