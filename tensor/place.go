package tensor

import (
	"fmt"
	"strings"

	"github.com/shoal-mp/shoal/internal/device"
	"github.com/shoal-mp/shoal/internal/wire"
)

// A Place is a Device that travels in arguments and messages: by its name, which means one of the
// receiver's own devices, as torch.device does; and where tensors are made, see On. The zero value
// is the host, cpu.
type Place struct{ Device }

// String returns the name of the device: cpu, cuda:0.
func (p Place) String() string { return deviceName(p.Device) }

// MarshalText returns the name.
func (p Place) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText finds the device of a name. The error wraps ErrDevice where this program does not
// know the kind, or is that of the package that has it.
func (p *Place) UnmarshalText(name []byte) (err error) {
	p.Device, err = ParseDevice(string(name))
	return err
}

// ParseDevice returns the device of a name, as PyTorch writes it: cpu, which is nil, or cuda and
// cuda:1 in a program that imports package cuda. The error wraps ErrDevice, or says why there is
// none.
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

func init() { wire.RegisterType[Place]("tensor.Place") }
