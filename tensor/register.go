package tensor

import "github.com/shoal-mp/shoal/wire"

// What travels in an any, and the errors that are themselves in another process.
func init() {
	wire.RegisterType[*Tensor]("tensor.Tensor")
	wire.RegisterType[[]*Tensor]("[]tensor.Tensor")
	wire.RegisterType[map[string]*Tensor]("map[string]tensor.Tensor") // a state dict
	wire.RegisterType[DType]("tensor.DType")
	wire.RegisterType[*Generator]("tensor.Generator")
	wire.RegisterType[*FileError]("tensor.FileError")
	for name, err := range map[string]error{
		"ErrClosed": ErrClosed, "ErrDType": ErrDType, "ErrLayout": ErrLayout, "ErrAlign": ErrAlign, "ErrFile": ErrFile,
		"ErrDomain": ErrDomain, "ErrDevice": ErrDevice, "ErrNested": ErrNested, "ErrState": ErrState,
	} {
		wire.RegisterError("tensor."+name, err)
	}
}

// MarshalText returns the dtype's name.
func (d DType) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText is ParseDType.
func (d *DType) UnmarshalText(name []byte) (err error) {
	*d, err = ParseDType(string(name))
	return err
}
