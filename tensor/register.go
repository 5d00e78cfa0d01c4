package tensor

import (
	"github.com/shoal-mp/shoal/encoding"
	"github.com/shoal-mp/shoal/internal/codec"
)

// Register the types that can be sent as an any, and the errors that keep their identity in other
// processes.
func init() {
	codec.Custom((*Tensor).marshal, (*Tensor).unmarshal)
	codec.Custom((*Generator).marshal, (*Generator).unmarshal)
	codec.RegisterType[*Tensor]("tensor.Tensor")
	codec.RegisterType[[]*Tensor]("[]tensor.Tensor")
	codec.RegisterType[map[string]*Tensor]("map[string]tensor.Tensor") // state dicts
	codec.RegisterType[DType]("tensor.DType")
	codec.RegisterType[*Generator]("tensor.Generator")
	codec.RegisterType[*encoding.FileError]("encoding.FileError")
	codec.RegisterError("tensor.ErrMisuse", ErrMisuse)
	codec.RegisterError("tensor.ErrShape", ErrShape)
	codec.RegisterError("tensor.ErrIndex", ErrIndex)
	codec.RegisterError("tensor.ErrArgument", ErrArgument)
	codec.RegisterError("tensor.ErrOperand", ErrOperand)
	codec.RegisterError("tensor.ErrMemory", ErrMemory)
	codec.RegisterError("tensor.ErrClosed", ErrClosed)
	codec.RegisterError("tensor.ErrDType", ErrDType)
	codec.RegisterError("tensor.ErrLayout", ErrLayout)
	codec.RegisterError("tensor.ErrAlign", ErrAlign)
	codec.RegisterError("tensor.ErrFile", ErrFile)
	codec.RegisterError("tensor.ErrDomain", ErrDomain)
	codec.RegisterError("tensor.ErrDevice", ErrDevice)
	codec.RegisterError("tensor.ErrNested", ErrNested)
	codec.RegisterError("tensor.ErrState", ErrState)
	codec.RegisterError("tensor.ErrForeign", ErrForeign)
	codec.RegisterError("tensor.ErrUnsupported", ErrUnsupported)
	codec.RegisterError("tensor.ErrDevices", ErrDevices)
}

// MarshalText returns the dtype's name.
func (d DType) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText sets d to the dtype with the given name, such as float32 or torch.float32. The
// error wraps [ErrDType].
func (d *DType) UnmarshalText(name []byte) (err error) {
	*d, err = ParseDType(string(name))
	return err
}
