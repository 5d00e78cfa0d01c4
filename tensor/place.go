package tensor

import (
	"fmt"
	"strings"

	"github.com/shoal-mp/shoal/internal/codec"
	"github.com/shoal-mp/shoal/internal/device"
)

// A Place is a Device with two more uses. It makes tensors on the device: see [On]. And it travels
// in arguments and messages by its name, as a torch.device does, so the receiver gets its own
// device of this name. The zero value is the host, cpu.
type Place struct{ Device }

// String returns the name of the device: cpu, cuda:0.
func (p Place) String() string { return deviceName(p.Device) }

// MarshalText returns the name of the device: cpu, cuda:0.
func (p Place) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText sets p to the device of a name. The error is that of [ParseDevice].
func (p *Place) UnmarshalText(name []byte) (err error) {
	p.Device, err = ParseDevice(string(name))
	return err
}

// ParseDevice returns the device of a name in PyTorch's form: cpu, which is nil, or cuda and cuda:1
// in a program that imports package cuda. The error wraps ErrDevice for a name of no known kind, or
// says why the device cannot be used.
func ParseDevice(name string) (Device, error) {
	kind, _, _ := strings.Cut(name, ":")
	if kind == "cpu" {
		return nil, nil
	}
	backend, ok := device.Find(kind)
	if !ok || backend.Parse == nil {
		return nil, fmt.Errorf("%w: %q: does this program import the package that has it?", ErrDevice, name)
	}
	return backend.Parse(name)
}

func init() { codec.RegisterType[Place]("tensor.Place") }
