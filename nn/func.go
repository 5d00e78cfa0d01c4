package nn

import (
	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/internal/codec"
	"github.com/shoal-mp/shoal/tensor"
)

// Func is a layer without parameters: the function of package autograd with the same name. It may
// be used concurrently. Two Funcs are equal if they compute the same function.
type Func struct {
	Name string     // name of a variable or function of this package; empty for Identity
	Args [2]float64 // arguments of the function after x
}

// Activations and other layers that have neither parameters nor arguments.
var (
	Identity    = Func{}                    // x itself
	ReLU        = Func{Name: "ReLU"}        // max(x, 0)
	ReLU6       = Func{Name: "ReLU6"}       // x clamped to [0, 6]
	SELU        = Func{Name: "SELU"}        // scaled ELU
	GELU        = Func{Name: "GELU"}        // x · Φ(x)
	GELUTanh    = Func{Name: "GELUTanh"}    // GELU by the tanh approximation: approximate="tanh"
	SiLU        = Func{Name: "SiLU"}        // x · sigmoid(x)
	Mish        = Func{Name: "Mish"}        // x · tanh(log(1 + e^x))
	Sigmoid     = Func{Name: "Sigmoid"}     // 1 / (1 + e^-x)
	LogSigmoid  = Func{Name: "LogSigmoid"}  // the logarithm of Sigmoid
	Hardsigmoid = Func{Name: "Hardsigmoid"} // x/6 + 1/2, clamped to [0, 1]
	Hardswish   = Func{Name: "Hardswish"}   // x · Hardsigmoid(x)
	Tanh        = Func{Name: "Tanh"}        // the hyperbolic tangent of x
	Tanhshrink  = Func{Name: "Tanhshrink"}  // x - tanh(x)
	Softsign    = Func{Name: "Softsign"}    // x / (1 + |x|)
	Softmax     = Func{Name: "Softmax"}     // over the last dimension of x (..., classes)
	LogSoftmax  = Func{Name: "LogSoftmax"}  // the logarithm of Softmax
	Flatten     = Func{Name: "Flatten"}     // x (N, ...) reshaped to (N, features)
)

// LeakyReLU returns the function x if x is positive, and slope · x otherwise. PyTorch's default
// slope is 0.01.
func LeakyReLU(slope float64) Func { return Func{"LeakyReLU", [2]float64{slope}} }

// ELU returns the function x if x is positive, and alpha · (e^x - 1) otherwise. PyTorch's default
// alpha is 1.
func ELU(alpha float64) Func { return Func{"ELU", [2]float64{alpha}} }

// CELU returns the function x if x is positive, and alpha · (e^(x/alpha) - 1) otherwise. PyTorch's
// default alpha is 1. The function panics with an error that wraps [tensor.ErrArgument] if alpha is
// 0.
func CELU(alpha float64) Func { return Func{"CELU", [2]float64{alpha}} }

// Softplus returns the function log(1 + e^(beta·x)) / beta, or x if beta·x exceeds threshold.
// PyTorch's defaults are 1 and 20.
func Softplus(beta, threshold float64) Func { return Func{"Softplus", [2]float64{beta, threshold}} }

// Hardtanh returns the function that clamps x to [lo, hi]. PyTorch's defaults are -1 and 1.
func Hardtanh(lo, hi float64) Func { return Func{"Hardtanh", [2]float64{lo, hi}} }

// Softshrink returns the function 0 if |x| <= lambda, and x moved towards 0 by lambda otherwise.
// PyTorch's default lambda is 0.5.
func Softshrink(lambda float64) Func { return Func{"Softshrink", [2]float64{lambda}} }

// Hardshrink returns the function 0 if |x| <= lambda, and x otherwise. PyTorch's default lambda is
// 0.5.
func Hardshrink(lambda float64) Func { return Func{"Hardshrink", [2]float64{lambda}} }

// Threshold returns the function x if x exceeds threshold, and value otherwise.
func Threshold(threshold, value float64) Func {
	return Func{"Threshold", [2]float64{threshold, value}}
}

// GLU returns the function that multiplies the first half of x along dim by the sigmoid of the
// second half. PyTorch's default dim is -1.
func GLU(dim int) Func { return Func{"GLU", [2]float64{float64(dim)}} }

// Forward applies the function to x. It panics with an error that wraps [tensor.ErrMisuse] if
// f.Name is unknown.
func (f Func) Forward(x *autograd.Var) *autograd.Var {
	apply, ok := functions[f.Name]
	if !ok {
		misuse(tensor.ErrMisuse, "unknown Func %q", f.Name)
	}
	return apply(x, f.Args)
}

var functions = map[string]func(x *autograd.Var, args [2]float64) *autograd.Var{
	"":            func(x *autograd.Var, _ [2]float64) *autograd.Var { return x },
	"ReLU":        ignoreParams(autograd.ReLU),
	"ReLU6":       ignoreParams(autograd.ReLU6),
	"SELU":        ignoreParams(autograd.SELU),
	"GELU":        ignoreParams(autograd.GELU),
	"GELUTanh":    ignoreParams(autograd.GELUTanh),
	"SiLU":        ignoreParams(autograd.SiLU),
	"Mish":        ignoreParams(autograd.Mish),
	"Sigmoid":     ignoreParams(autograd.Sigmoid),
	"LogSigmoid":  ignoreParams(autograd.LogSigmoid),
	"Hardsigmoid": ignoreParams(autograd.Hardsigmoid),
	"Hardswish":   ignoreParams(autograd.Hardswish),
	"Tanh":        ignoreParams(autograd.Tanh),
	"Tanhshrink":  ignoreParams(autograd.Tanhshrink),
	"Softsign":    ignoreParams(autograd.Softsign),
	"Softmax":     withDim(autograd.Softmax),
	"LogSoftmax":  withDim(autograd.LogSoftmax),
	"Flatten":     ignoreParams(autograd.Flatten),
	"LeakyReLU":   adaptOneArg(autograd.LeakyReLU),
	"ELU":         adaptOneArg(autograd.ELU),
	"CELU":        adaptOneArg(autograd.CELU),
	"Softshrink":  adaptOneArg(autograd.Softshrink),
	"Hardshrink":  adaptOneArg(autograd.Hardshrink),
	"Softplus":    adaptTwoArgs(autograd.Softplus),
	"Hardtanh":    adaptTwoArgs(autograd.Hardtanh),
	"Threshold":   adaptTwoArgs(autograd.Threshold),
	"GLU": func(x *autograd.Var, args [2]float64) *autograd.Var {
		return autograd.GLU(x, int(args[0]))
	},
}

// Adapters from functions of package autograd, by signature: x alone (ignoreParams), x and the last
// dimension (withDim), one argument (adaptOneArg), two arguments (adaptTwoArgs).

// ignoreParams adapts a function without parameters to the table of functions.
func ignoreParams(f func(x *autograd.Var) *autograd.Var) func(*autograd.Var, [2]float64) *autograd.Var {
	return func(x *autograd.Var, _ [2]float64) *autograd.Var { return f(x) }
}

func withDim(f func(x *autograd.Var, dim int) *autograd.Var) func(*autograd.Var, [2]float64) *autograd.Var {
	return func(x *autograd.Var, _ [2]float64) *autograd.Var { return f(x, -1) }
}

func adaptOneArg(f func(x *autograd.Var, a float64) *autograd.Var) func(*autograd.Var, [2]float64) *autograd.Var {
	return func(x *autograd.Var, args [2]float64) *autograd.Var { return f(x, args[0]) }
}

func adaptTwoArgs(f func(x *autograd.Var, a, b float64) *autograd.Var) func(*autograd.Var, [2]float64) *autograd.Var {
	return func(x *autograd.Var, args [2]float64) *autograd.Var { return f(x, args[0], args[1]) }
}

func init() { codec.RegisterType[Func]("nn.Func") }
