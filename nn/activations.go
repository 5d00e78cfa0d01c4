package nn

import (
	"iter"

	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/internal/wire"
)

// Fields of activations are taken as they are: PyTorch's defaults are in the comments.

// SELU is autograd.SELU as a layer.
type SELU struct{ NoParams }

// Forward returns the scaled ELU of x.
func (SELU) Forward(x *autograd.Var) *autograd.Var { return autograd.SELU(x) }

// LogSigmoid is autograd.LogSigmoid as a layer.
type LogSigmoid struct{ NoParams }

// Forward returns the logarithm of the sigmoid of x.
func (LogSigmoid) Forward(x *autograd.Var) *autograd.Var { return autograd.LogSigmoid(x) }

// Softsign is autograd.Softsign as a layer.
type Softsign struct{ NoParams }

// Forward returns x / (1 + |x|).
func (Softsign) Forward(x *autograd.Var) *autograd.Var { return autograd.Softsign(x) }

// Mish is autograd.Mish as a layer.
type Mish struct{ NoParams }

// Forward returns x · tanh(log(1 + e^x)).
func (Mish) Forward(x *autograd.Var) *autograd.Var { return autograd.Mish(x) }

// ReLU6 is autograd.ReLU6 as a layer.
type ReLU6 struct{ NoParams }

// Forward returns x between 0 and 6.
func (ReLU6) Forward(x *autograd.Var) *autograd.Var { return autograd.ReLU6(x) }

// Hardsigmoid is autograd.Hardsigmoid as a layer.
type Hardsigmoid struct{ NoParams }

// Forward returns x/6 + 1/2, between 0 and 1.
func (Hardsigmoid) Forward(x *autograd.Var) *autograd.Var { return autograd.Hardsigmoid(x) }

// Hardswish is autograd.Hardswish as a layer.
type Hardswish struct{ NoParams }

// Forward returns x · Hardsigmoid(x).
func (Hardswish) Forward(x *autograd.Var) *autograd.Var { return autograd.Hardswish(x) }

// Tanhshrink is autograd.Tanhshrink as a layer.
type Tanhshrink struct{ NoParams }

// Forward returns x - tanh(x).
func (Tanhshrink) Forward(x *autograd.Var) *autograd.Var { return autograd.Tanhshrink(x) }

// An ELU layer is autograd.ELU with its numbers.
type ELU struct {
	NoParams
	Alpha float64 // PyTorch's default is 1
}

// Forward returns x where it is positive, and Alpha · (e^x - 1) elsewhere.
func (e ELU) Forward(x *autograd.Var) *autograd.Var {
	return autograd.ELU(x, e.Alpha)
}

// A CELU layer is autograd.CELU with its numbers.
type CELU struct {
	NoParams
	Alpha float64 // PyTorch's default is 1
}

// Forward returns x where it is positive, and Alpha · (e^(x/Alpha) - 1) elsewhere.
func (c CELU) Forward(x *autograd.Var) *autograd.Var {
	return autograd.CELU(x, c.Alpha)
}

// A Softplus layer is autograd.Softplus with its numbers.
type Softplus struct {
	NoParams
	Beta      float64 // PyTorch's default is 1
	Threshold float64 // of Beta·x, from where on x is returned; PyTorch's default is 20
}

// Forward returns log(1 + e^(Beta·x)) / Beta.
func (s Softplus) Forward(x *autograd.Var) *autograd.Var {
	return autograd.Softplus(x, s.Beta, s.Threshold)
}

// A Hardtanh layer is autograd.Hardtanh with its numbers.
type Hardtanh struct {
	NoParams
	Min float64 // PyTorch's default is -1
	Max float64 // PyTorch's default is 1
}

// Forward returns x between Min and Max.
func (h Hardtanh) Forward(x *autograd.Var) *autograd.Var {
	return autograd.Hardtanh(x, h.Min, h.Max)
}

// A Softshrink layer is autograd.Softshrink with its numbers.
type Softshrink struct {
	NoParams
	Lambda float64 // PyTorch's default is 0.5
}

// Forward returns x moved towards 0 by Lambda, and 0 where it is no farther from it.
func (s Softshrink) Forward(x *autograd.Var) *autograd.Var {
	return autograd.Softshrink(x, s.Lambda)
}

// A Hardshrink layer is autograd.Hardshrink with its numbers.
type Hardshrink struct {
	NoParams
	Lambda float64 // PyTorch's default is 0.5
}

// Forward returns x, and 0 where it is no farther from 0 than Lambda.
func (h Hardshrink) Forward(x *autograd.Var) *autograd.Var {
	return autograd.Hardshrink(x, h.Lambda)
}

// A Threshold layer is autograd.Threshold with its numbers.
type Threshold struct {
	NoParams
	Above float64 // where x is passed on
	Value float64 // what stands elsewhere
}

// Forward returns x where it is above Above, and Value elsewhere.
func (t Threshold) Forward(x *autograd.Var) *autograd.Var {
	return autograd.Threshold(x, t.Above, t.Value)
}

// GLU is autograd.GLU as a layer.
type GLU struct {
	NoParams
	Dim int // along which x is divided; PyTorch's default is -1
}

// Forward returns the first half of x along Dim, times the sigmoid of the second.
func (g GLU) Forward(x *autograd.Var) *autograd.Var { return autograd.GLU(x, g.Dim) }

// Identity passes on what it gets.
type Identity struct{ NoParams }

// Forward returns x.
func (Identity) Forward(x *autograd.Var) *autograd.Var { return x }

// A PReLU layer is a leaky ReLU whose slope is learned.
type PReLU struct {
	Weight *autograd.Param // (1), or (channels)
}

// NewPReLU returns a float32 layer with a slope for all elements, or one for each channel, all 0.25
// at first, as PyTorch's.
func NewPReLU(slopes int) *PReLU {
	checkSizes("NewPReLU", slopes)
	return &PReLU{constant("weight", 0.25, slopes)}
}

// Params returns Weight.
func (p *PReLU) Params() iter.Seq[*autograd.Param] { return Params(p) }

// Forward takes x (N, channels, ...), or of any shape where there is one slope.
func (p *PReLU) Forward(x *autograd.Var) *autograd.Var { return autograd.PReLU(x, p.Weight.Var()) }

func init() {
	wire.RegisterType[SELU]("nn.SELU")
	wire.RegisterType[LogSigmoid]("nn.LogSigmoid")
	wire.RegisterType[Softsign]("nn.Softsign")
	wire.RegisterType[Mish]("nn.Mish")
	wire.RegisterType[ReLU6]("nn.ReLU6")
	wire.RegisterType[Hardsigmoid]("nn.Hardsigmoid")
	wire.RegisterType[Hardswish]("nn.Hardswish")
	wire.RegisterType[Tanhshrink]("nn.Tanhshrink")
	wire.RegisterType[ELU]("nn.ELU")
	wire.RegisterType[CELU]("nn.CELU")
	wire.RegisterType[Softplus]("nn.Softplus")
	wire.RegisterType[Hardtanh]("nn.Hardtanh")
	wire.RegisterType[Softshrink]("nn.Softshrink")
	wire.RegisterType[Hardshrink]("nn.Hardshrink")
	wire.RegisterType[Threshold]("nn.Threshold")
	wire.RegisterType[GLU]("nn.GLU")
	wire.RegisterType[Identity]("nn.Identity")
	wire.RegisterType[*PReLU]("nn.PReLU")
	wire.RegisterType[*GroupNorm]("nn.GroupNorm")
	wire.RegisterType[*BatchNorm1d]("nn.BatchNorm1d")
	wire.RegisterType[*Conv1d]("nn.Conv1d")
}
