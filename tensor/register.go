package tensor

import (
	"github.com/shoal-mp/shoal/encoding"
	"github.com/shoal-mp/shoal/internal/wire"
)

// What travels in an any, and the errors that are themselves in another process.
func init() {
	wire.Custom((*Tensor).marshal, (*Tensor).unmarshal)
	wire.Custom((*Generator).marshal, (*Generator).unmarshal)
	wire.RegisterType[*Tensor]("tensor.Tensor")
	wire.RegisterType[[]*Tensor]("[]tensor.Tensor")
	wire.RegisterType[map[string]*Tensor]("map[string]tensor.Tensor") // a state dict
	wire.RegisterType[DType]("tensor.DType")
	wire.RegisterType[*Generator]("tensor.Generator")
	wire.RegisterType[*encoding.FileError]("encoding.FileError")
	wire.RegisterError("tensor.ErrMisuse", ErrMisuse)
	wire.RegisterError("tensor.ErrShape", ErrShape)
	wire.RegisterError("tensor.ErrIndex", ErrIndex)
	wire.RegisterError("tensor.ErrArgument", ErrArgument)
	wire.RegisterError("tensor.ErrOperand", ErrOperand)
	wire.RegisterError("tensor.ErrMemory", ErrMemory)
	wire.RegisterError("tensor.ErrClosed", ErrClosed)
	wire.RegisterError("tensor.ErrDType", ErrDType)
	wire.RegisterError("tensor.ErrLayout", ErrLayout)
	wire.RegisterError("tensor.ErrAlign", ErrAlign)
	wire.RegisterError("tensor.ErrFile", ErrFile)
	wire.RegisterError("tensor.ErrDomain", ErrDomain)
	wire.RegisterError("tensor.ErrDevice", ErrDevice)
	wire.RegisterError("tensor.ErrNested", ErrNested)
	wire.RegisterError("tensor.ErrState", ErrState)
	wire.RegisterError("tensor.ErrForeign", ErrForeign)
	wire.RegisterError("tensor.ErrUnsupported", ErrUnsupported)
	wire.RegisterError("tensor.ErrDevices", ErrDevices)
}

// MarshalText returns the dtype's name.
func (d DType) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText sets d to the dtype of a name, such as float32 or torch.float32. The error wraps
// ErrDType.
func (d *DType) UnmarshalText(name []byte) (err error) {
	*d, err = ParseDType(string(name))
	return err
}
