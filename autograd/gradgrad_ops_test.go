package autograd_test

import (
	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/tensor"
)

type twiceOp = func(in vars, args []any) *autograd.Var

func integer(v any) int { return int(v.(float64)) }

func pair(v any) [2]int { return [2]int{integer(v.([]any)[0]), integer(v.([]any)[1])} }

func mask(v any) *tensor.Tensor { return written(v.(string)).To(tensor.Bool) }

func twice1(f func(x *autograd.Var) *autograd.Var) twiceOp {
	return func(in vars, _ []any) *autograd.Var { return f(in[0]) }
}

func twice2(f func(a, b *autograd.Var) *autograd.Var) twiceOp {
	return func(in vars, _ []any) *autograd.Var { return f(in[0], in[1]) }
}

// twiceBy is an operation with a number.
func twiceBy(f func(x *autograd.Var, c float64) *autograd.Var) twiceOp {
	return func(in vars, a []any) *autograd.Var { return f(in[0], a[0].(float64)) }
}

// twiceOver is an operation over one dimension.
func twiceOver(f func(x *autograd.Var, dim int) *autograd.Var) twiceOp {
	return func(in vars, a []any) *autograd.Var { return f(in[0], integer(a[0])) }
}

// twiceDims is an operation over dimensions.
func twiceDims(f func(x *autograd.Var, dims ...int) *autograd.Var) twiceOp {
	return twiceOver(func(x *autograd.Var, dim int) *autograd.Var { return f(x, dim) })
}

func twiceLoss(f func(x, y *autograd.Var, r autograd.Reduction) *autograd.Var) twiceOp {
	return func(in vars, a []any) *autograd.Var { return f(in[0], in[1], reductions[a[0].(string)]) }
}

var reductions = map[string]autograd.Reduction{"mean": autograd.ByMean, "sum": autograd.BySum,
	"none": autograd.Unreduced}

func bias(in vars) *autograd.Var {
	if len(in) > 2 {
		return in[2]
	}
	return nil
}

// given is what a sequence gives to gates, by weights and perhaps biases in PyTorch's order, and
// what a state does.
func given(x *autograd.Var, w vars, a []any) (*autograd.Var, autograd.Recurrence) {
	r := autograd.Recurrence{Weight: w[1], Backwards: a[0].(bool)}
	if len(w) < 4 {
		return autograd.Linear(x, w[0], nil), r
	}
	r.Bias = w[3]
	return autograd.Linear(x, w[0], w[2]), r
}

var twiceOps = map[string]twiceOp{
	"Neg": twice1(autograd.Neg), "Exp": twice1(autograd.Exp), "Abs": twice1(autograd.Abs),
	"Tanh":    twice1(autograd.Tanh),
	"Sigmoid": twice1(autograd.Sigmoid), "ReLU": twice1(autograd.ReLU), "Expm1": twice1(autograd.Expm1),
	"Sin": twice1(autograd.Sin),
	"Cos": twice1(autograd.Cos), "Erf": twice1(autograd.Erf), "GELU": twice1(autograd.GELU),
	"SiLU":       twice1(autograd.SiLU),
	"Reciprocal": twice1(autograd.Reciprocal), "Log": twice1(autograd.Log), "Sqrt": twice1(autograd.Sqrt),
	"Log1p": twice1(autograd.Log1p),
	"Rsqrt": twice1(autograd.Rsqrt),
	"Add":   twice2(autograd.Add), "Sub": twice2(autograd.Sub), "Mul": twice2(autograd.Mul),
	"Div":     twice2(autograd.Div),
	"Maximum": twice2(autograd.Maximum), "Minimum": twice2(autograd.Minimum), "Power": twice2(autograd.Power),
	"Hypot": twice2(autograd.Hypot), "Atan2": twice2(autograd.Atan2), "Logaddexp": twice2(autograd.Logaddexp),
	"Pow": twiceBy(autograd.Pow), "AddScalar": twiceBy(autograd.AddScalar), "MulScalar": twiceBy(autograd.MulScalar),
	"LeakyReLU":  twiceBy(autograd.LeakyReLU),
	"Clamp":      func(in vars, a []any) *autograd.Var { return autograd.Clamp(in[0], a[0].(float64), a[1].(float64)) },
	"MaskedFill": func(in vars, a []any) *autograd.Var { return autograd.MaskedFill(in[0], mask(a[0]), 2) },
	"Where":      func(in vars, a []any) *autograd.Var { return autograd.Where(mask(a[0]), in[0], in[1]) },

	"Softmax": twiceOver(autograd.Softmax), "LogSoftmax": twiceOver(autograd.LogSoftmax),
	"LogSumExp": twiceDims(autograd.LogSumExp),
	"CumSum":    twiceOver(autograd.CumSum), "Sum": twiceDims(autograd.Sum), "Mean": twiceDims(autograd.Mean),
	"Prod": twiceDims(autograd.Prod),
	"Amax": twiceDims(autograd.Amax), "Amin": twiceDims(autograd.Amin), "Norm": twiceDims(autograd.Norm),
	"Variance": twiceDims(autograd.Variance),
	"Std":      twiceDims(autograd.Std),
	"Max":      twiceOver(func(x *autograd.Var, dim int) *autograd.Var { v, _ := autograd.Max(x, dim); return v }),
	"Sort": twiceOver(
		func(x *autograd.Var, dim int) *autograd.Var { v, _ := autograd.Sort(x, dim, false); return v }),

	"Flip": twiceDims(autograd.Flip), "Reshape": twiceDims(autograd.Reshape),
	"Select": func(in vars, a []any) *autograd.Var { return autograd.Select(in[0], integer(a[0]), integer(a[1])) },
	"Narrow": func(in vars, a []any) *autograd.Var {
		return autograd.Narrow(in[0], integer(a[0]), integer(a[1]), integer(a[2]))
	},
	"Transpose": func(in vars, a []any) *autograd.Var {
		return autograd.Transpose(in[0], integer(a[0]), integer(a[1]))
	},
	"Cat":   func(in vars, a []any) *autograd.Var { return autograd.Cat(integer(a[0]), in...) },
	"Stack": func(in vars, a []any) *autograd.Var { return autograd.Stack(integer(a[0]), in...) },

	"Gather": func(in vars, a []any) *autograd.Var { return autograd.Gather(in[0], integer(a[0]), in[1].T()) },
	"IndexSelect": func(in vars, a []any) *autograd.Var {
		return autograd.IndexSelect(in[0], integer(a[0]), in[1].T())
	},
	"ScatterAdd": func(in vars, a []any) *autograd.Var {
		return autograd.ScatterAdd(in[0], integer(a[0]), in[1].T(), in[2])
	},
	"Index":     func(in vars, _ []any) *autograd.Var { return autograd.Index(in[0], in[1].T()) },
	"Embedding": func(in vars, _ []any) *autograd.Var { return autograd.Embedding(in[0], in[1]) },

	"MatMul": twice2(autograd.MatMul),
	"Linear": func(in vars, _ []any) *autograd.Var { return autograd.Linear(in[0], in[1], bias(in)) },
	"Conv2d": func(in vars, a []any) *autograd.Var {
		return autograd.Conv2d(in[0], in[1], bias(in), autograd.Window{Stride: pair(a[0]), Padding: pair(a[1])})
	},
	"MaxPool2d": func(in vars, a []any) *autograd.Var {
		return autograd.MaxPool2d(in[0], autograd.Window{Size: [2]int{2, 2}, Stride: pair(a[0]),
			Padding: pair(a[1])})
	},
	"AvgPool2d": func(in vars, a []any) *autograd.Var {
		return autograd.AvgPool2d(in[0], autograd.Window{Size: [2]int{2, 2}, Stride: pair(a[0]),
			Padding: pair(a[1])})
	},
	"BatchNorm2d": func(in vars, _ []any) *autograd.Var {
		y, _, _ := autograd.BatchNorm(in[0], in[1], in[2], nil, nil, 1e-5)
		return y
	},
	"BatchNorm2dBy": func(in vars, _ []any) *autograd.Var {
		return normedBy(in[3].T(), in[4].T(), in[0], in[1], in[2], 1e-5)
	},
	"LayerNorm": func(in vars, _ []any) *autograd.Var {
		return autograd.LayerNorm(in[0], in[1].Shape(), in[1], in[2], 1e-5)
	},

	"MSELoss": twiceLoss(autograd.MSELoss), "BCEWithLogitsLoss": twiceLoss(bceLoss),
	"SmoothL1Loss": func(in vars, a []any) *autograd.Var {
		return autograd.SmoothL1Loss(in[0], in[1], a[1].(float64), reductions[a[0].(string)])
	},
	"NLLLoss": func(in vars, a []any) *autograd.Var {
		return autograd.NLLLoss(in[0], in[1].T(), autograd.Classification{Reduction: reductions[a[0].(string)]})
	},
	"CrossEntropy": func(in vars, a []any) *autograd.Var {
		return autograd.CrossEntropy(in[0], in[1].T(), autograd.Classification{Smoothing: a[1].(float64),
			Reduction: reductions[a[0].(string)]})
	},

	"ScaledDotProductAttention": func(in vars, a []any) *autograd.Var {
		o := autograd.Attention{Scale: a[0].(float64), Causal: a[1].(bool)}
		if len(in) > 3 {
			o.Mask = in[3]
		}
		return autograd.ScaledDotProductAttention(in[0], in[1], in[2], o)
	},
	"LSTM": func(in vars, a []any) *autograd.Var {
		gates, r := given(in[0], in[3:], a)
		if len(in) > 5 {
			gates, r.Bias = autograd.Add(gates, in[6]), nil
		}
		y, h, c := autograd.LSTM(gates, in[1], in[2], r)
		return joined(y, h, c)
	},
	"GRU": func(in vars, a []any) *autograd.Var {
		gates, r := given(in[0], in[2:], a)
		y, h := autograd.GRU(gates, in[1], r)
		return joined(y, h)
	},

	"GradientPenalty": func(in vars, _ []any) *autograd.Var { // x, w1, b1, w2
		y := autograd.Sum(autograd.Linear(autograd.Tanh(autograd.Linear(in[0], in[1], in[2])), in[3], nil))
		dx := autograd.Grad(vars{y}, in[:1], again)[0]
		return autograd.Mean(autograd.Pow(autograd.AddScalar(autograd.Norm(dx, 1), -1), 2))
	},
	"MetaStep": func(in vars, _ []any) *autograd.Var { // x, w, targets
		loss := func(w *autograd.Var) *autograd.Var {
			return autograd.CrossEntropy(autograd.Linear(in[0], w, nil), in[2].T(), autograd.Classification{})
		}
		dw := autograd.Grad(vars{loss(in[1])}, in[1:2], again)[0]
		return loss(autograd.Sub(in[1], autograd.MulScalar(dw, 0.5)))
	},
}

func bceLoss(x, y *autograd.Var, r autograd.Reduction) *autograd.Var {
	return autograd.BCEWithLogitsLoss(x, y, nil, r)
}
