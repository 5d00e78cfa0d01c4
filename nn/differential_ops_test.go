package nn_test

import (
	"slices"

	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/optim"
	"github.com/shoal-mp/shoal/tensor"
)

type (
	differentialOp func(in []*autograd.Var, args []any) []*autograd.Var
	varOp          = func(x *autograd.Var) *autograd.Var
)

func whole(v any) int { return int(v.(float64)) }

func wholes(v any) []int {
	all := make([]int, len(v.([]any)))
	for i, x := range v.([]any) {
		all[i] = whole(x)
	}
	return all
}

func square(v any) [2]int { return [2]int(wholes(v)) }

func just(v *autograd.Var) []*autograd.Var { return []*autograd.Var{v} }

func consts(ts ...*tensor.Tensor) (all []*autograd.Var) {
	for _, t := range ts {
		all = append(all, autograd.Const(t))
	}
	return all
}

func of1(f varOp) differentialOp {
	return func(in []*autograd.Var, _ []any) []*autograd.Var { return just(f(in[0])) }
}

func of2(f func(a, b *autograd.Var) *autograd.Var) differentialOp {
	return func(in []*autograd.Var, _ []any) []*autograd.Var { return just(f(in[0], in[1])) }
}

// plain is an operation of tensors alone.
func plain1(f func(t *tensor.Tensor) *tensor.Tensor) differentialOp {
	return func(in []*autograd.Var, _ []any) []*autograd.Var { return consts(f(in[0].T())) }
}

func plain2(f func(a, b *tensor.Tensor) *tensor.Tensor) differentialOp {
	return func(in []*autograd.Var, _ []any) []*autograd.Var { return consts(f(in[0].T(), in[1].T())) }
}

// by is an operation with a number.
func by(f func(x *autograd.Var, c float64) *autograd.Var) differentialOp {
	return func(in []*autograd.Var, a []any) []*autograd.Var { return just(f(in[0], a[0].(float64))) }
}

// along is an operation with a list of numbers.
func along(f func(x *autograd.Var, n ...int) *autograd.Var) differentialOp {
	return func(in []*autograd.Var, a []any) []*autograd.Var { return just(f(in[0], wholes(a[0])...)) }
}

func reduced(f func(x *autograd.Var, dims ...int) *autograd.Var) differentialOp {
	return func(in []*autograd.Var, a []any) []*autograd.Var {
		if a[1].(bool) {
			return just(autograd.Keep(f, in[0], wholes(a[0])...))
		}
		return just(f(in[0], wholes(a[0])...))
	}
}

func reducedPlain(f func(x *tensor.Tensor, dims ...int) *tensor.Tensor) differentialOp {
	return func(in []*autograd.Var, a []any) []*autograd.Var {
		if a[1].(bool) {
			return consts(tensor.Keep(f, in[0].T(), wholes(a[0])...))
		}
		return consts(f(in[0].T(), wholes(a[0])...))
	}
}

// found is an operation that also returns where.
func found(f func(x *autograd.Var, dim int) (*autograd.Var, *tensor.Tensor)) differentialOp {
	return func(in []*autograd.Var, a []any) []*autograd.Var {
		v, at := f(in[0], whole(a[0]))
		return append(just(v), autograd.Const(at))
	}
}

var reductions = map[string]autograd.Reduction{"mean": autograd.ByMean, "sum": autograd.BySum,
	"none": autograd.Unreduced}

// weights returns the third input of a loss.
func weights(in []*autograd.Var) *tensor.Tensor {
	if len(in) < 3 {
		return nil
	}
	return in[2].T()
}

func third(in []*autograd.Var) *autograd.Var {
	if len(in) < 3 {
		return nil
	}
	return in[2]
}

// stepped returns a parameter after the steps of an optimizer.
func stepped(with func(p []*autograd.Param, o map[string]any) optim.Optimizer) differentialOp {
	return func(in []*autograd.Var, a []any) []*autograd.Var {
		p := autograd.NewParam("p", in[0].T())
		o := with([]*autograd.Param{p}, a[0].(map[string]any))
		for _, g := range in[1:] {
			p.Grad = g.T()
			o.Step()
		}
		return consts(p.T)
	}
}

// option is a number of an optimizer, 0 if it was not recorded.
func option(o map[string]any, name string) *float64 {
	v, _ := o[name].(float64)
	return &v
}

func adam(o map[string]any) optim.AdamOptions {
	betas := o["betas"].([]any)
	return optim.AdamOptions{LR: o["lr"].(float64), Betas: &[2]float64{betas[0].(float64), betas[1].(float64)},
		Eps:         option(o, "eps"),
		WeightDecay: o["weight_decay"].(float64)}
}

var differentialOps = map[string]differentialOp{
	"Neg": of1(autograd.Neg), "Exp": of1(autograd.Exp), "Log": of1(autograd.Log), "Sqrt": of1(autograd.Sqrt),
	"Abs":  of1(autograd.Abs),
	"Tanh": of1(autograd.Tanh), "Sigmoid": of1(autograd.Sigmoid), "ReLU": of1(autograd.ReLU),
	"Log1p": of1(autograd.Log1p),
	"Expm1": of1(autograd.Expm1), "Rsqrt": of1(autograd.Rsqrt), "Reciprocal": of1(autograd.Reciprocal),
	"Sin": of1(autograd.Sin),
	"Cos": of1(autograd.Cos), "Erf": of1(autograd.Erf), "GELU": of1(autograd.GELU), "SiLU": of1(autograd.SiLU),
	"Add": of2(autograd.Add), "Sub": of2(autograd.Sub), "Mul": of2(autograd.Mul), "Div": of2(autograd.Div),
	"Power":   of2(autograd.Power),
	"Maximum": of2(autograd.Maximum), "Minimum": of2(autograd.Minimum), "Pow": by(autograd.Pow),
	"AddScalar": by(autograd.AddScalar),
	"MulScalar": by(autograd.MulScalar), "LeakyReLU": by(autograd.LeakyReLU),
	"Clamp": func(in []*autograd.Var, a []any) []*autograd.Var {
		return just(autograd.Clamp(in[0], a[0].(float64), a[1].(float64)))
	},
	"Where": func(in []*autograd.Var, _ []any) []*autograd.Var {
		return just(autograd.Where(in[0].T(), in[1], in[2]))
	},
	"MaskedFill": func(in []*autograd.Var, a []any) []*autograd.Var {
		return just(autograd.MaskedFill(in[0], in[1].T(), a[0].(float64)))
	},
	"MaskedSelect": func(in []*autograd.Var, _ []any) []*autograd.Var {
		return just(autograd.MaskedSelect(in[0], in[1].T()))
	},

	"Eq": plain2(tensor.Eq), "Ne": plain2(tensor.Ne), "Lt": plain2(tensor.Lt), "Le": plain2(tensor.Le),
	"Gt": plain2(tensor.Gt),
	"Ge": plain2(tensor.Ge), "And": plain2(tensor.And), "Or": plain2(tensor.Or), "Xor": plain2(tensor.Xor),
	"Remainder": plain2(tensor.Remainder), "FloorDivide": plain2(tensor.FloorDivide),
	"Sign": plain1(tensor.Sign), "Floor": plain1(tensor.Floor), "Ceil": plain1(tensor.Ceil),
	"Round": plain1(tensor.Round),
	"Trunc": plain1(tensor.Trunc), "IsNaN": plain1(tensor.IsNaN), "IsInf": plain1(tensor.IsInf),
	"IsFinite": plain1(tensor.IsFinite),
	"Not":      plain1(tensor.Not),

	"Sum": reduced(autograd.Sum), "Mean": reduced(autograd.Mean), "Amax": reduced(autograd.Amax),
	"Amin":     reduced(autograd.Amin),
	"Variance": reduced(autograd.Variance), "Std": reduced(autograd.Std), "Prod": reduced(autograd.Prod),
	"All": reducedPlain(tensor.All), "Any": reducedPlain(tensor.Any),
	"Max": found(autograd.Max), "Min": found(autograd.Min),
	"Sort": func(in []*autograd.Var, a []any) []*autograd.Var {
		v, at := autograd.Sort(in[0], whole(a[0]), a[1].(bool))
		return append(just(v), autograd.Const(at))
	},
	"TopK": func(in []*autograd.Var, a []any) []*autograd.Var {
		v, at := autograd.TopK(in[0], whole(a[0]), whole(a[1]))
		return append(just(v), autograd.Const(at))
	},
	"CumSum": func(in []*autograd.Var, a []any) []*autograd.Var { return just(autograd.CumSum(in[0], whole(a[0]))) },
	"Argmax": func(in []*autograd.Var, a []any) []*autograd.Var {
		return consts(tensor.Argmax(in[0].T(), whole(a[0])))
	},
	"Argmin": func(in []*autograd.Var, a []any) []*autograd.Var {
		return consts(tensor.Argmin(in[0].T(), whole(a[0])))
	},

	"Reshape": along(autograd.Reshape), "Permute": along(autograd.Permute), "Flip": along(autograd.Flip),
	"Squeeze": along(autograd.Squeeze),
	"Expand":  along(autograd.Expand), "Flatten": of1(autograd.Flatten),
	"Transpose": func(in []*autograd.Var, a []any) []*autograd.Var {
		return just(autograd.Transpose(in[0], whole(a[0]), whole(a[1])))
	},
	"Unsqueeze": func(in []*autograd.Var, a []any) []*autograd.Var {
		return just(autograd.Unsqueeze(in[0], whole(a[0])))
	},
	"Select": func(in []*autograd.Var, a []any) []*autograd.Var {
		return just(autograd.Select(in[0], whole(a[0]), whole(a[1])))
	},
	"Narrow": func(in []*autograd.Var, a []any) []*autograd.Var {
		return just(autograd.Narrow(in[0], whole(a[0]), whole(a[1]), whole(a[2])))
	},
	"Slice": func(in []*autograd.Var, a []any) []*autograd.Var {
		return just(autograd.Slice(in[0], whole(a[0]), whole(a[1]), whole(a[2]), whole(a[3])))
	},
	"Split": func(in []*autograd.Var, a []any) []*autograd.Var {
		return autograd.Split(in[0], whole(a[0]), whole(a[1]))
	},
	"Chunk": func(in []*autograd.Var, a []any) []*autograd.Var {
		return consts(in[0].T().Chunk(whole(a[0]), whole(a[1]))...)
	},
	"Cat":   func(in []*autograd.Var, a []any) []*autograd.Var { return just(autograd.Cat(whole(a[0]), in...)) },
	"Stack": func(in []*autograd.Var, a []any) []*autograd.Var { return just(autograd.Stack(whole(a[0]), in...)) },

	"Gather": func(in []*autograd.Var, a []any) []*autograd.Var {
		return just(autograd.Gather(in[0], whole(a[0]), in[1].T()))
	},
	"ScatterAdd": func(in []*autograd.Var, a []any) []*autograd.Var {
		return just(autograd.ScatterAdd(in[0], whole(a[0]), in[1].T(), in[2]))
	},
	"IndexSelect": func(in []*autograd.Var, a []any) []*autograd.Var {
		return just(autograd.IndexSelect(in[0], whole(a[0]), in[1].T()))
	},
	"Index": func(in []*autograd.Var, _ []any) []*autograd.Var {
		var at []*tensor.Tensor
		for _, v := range in[1:] {
			at = append(at, v.T())
		}
		return just(autograd.Index(in[0], at...))
	},
	"Embedding": func(in []*autograd.Var, a []any) []*autograd.Var {
		var padding []int64
		for _, v := range a {
			padding = append(padding, int64(whole(v)))
		}
		return just(autograd.Embedding(in[0], in[1], padding...))
	},
	"MatMul": of2(autograd.MatMul), "BMM": of2(autograd.BMM),
	"Linear": func(in []*autograd.Var, _ []any) []*autograd.Var {
		return just(autograd.Linear(in[0], in[1], third(in)))
	},

	"Softmax": of1(last(autograd.Softmax)), "LogSoftmax": of1(last(autograd.LogSoftmax)),
	"LayerNorm": func(in []*autograd.Var, _ []any) []*autograd.Var {
		return just(autograd.LayerNorm(in[0], in[1].Shape(), in[1], in[2], 1e-5))
	},
	"BatchNorm2d": func(in []*autograd.Var, _ []any) []*autograd.Var {
		if len(in) == 1 {
			in = []*autograd.Var{in[0], nil, nil}
		}
		y, _, _ := autograd.BatchNorm(in[0], in[1], in[2], nil, nil, 1e-5)
		return just(y)
	},
	"BatchNorm2dBy": func(in []*autograd.Var, _ []any) []*autograd.Var {
		return just(normedBy(in[3].T(), in[4].T(), in[0], in[1], in[2], 1e-5))
	},
	"MaxPool2d": func(in []*autograd.Var, a []any) []*autograd.Var {
		return just(autograd.MaxPool2d(in[0],
			autograd.Window{Size: square(a[0]), Stride: square(a[1]), Padding: square(a[2])}))
	},
	"AvgPool2d": func(in []*autograd.Var, a []any) []*autograd.Var {
		return just(autograd.AvgPool2d(in[0],
			autograd.Window{Size: square(a[0]), Stride: square(a[1]), Padding: square(a[2])}))
	},
	"Conv2d": func(in []*autograd.Var, a []any) []*autograd.Var {
		return just(autograd.Conv2d(in[0], in[1], third(in),
			autograd.Window{Stride: square(a[0]), Padding: square(a[1])}))
	},

	"MSELoss": func(in []*autograd.Var, a []any) []*autograd.Var {
		return just(autograd.MSELoss(in[0], in[1], reductions[a[0].(string)]))
	},
	"SmoothL1Loss": func(in []*autograd.Var, a []any) []*autograd.Var {
		return just(autograd.SmoothL1Loss(in[0], in[1], a[1].(float64), reductions[a[0].(string)]))
	},
	"BCEWithLogitsLoss": func(in []*autograd.Var, a []any) []*autograd.Var {
		return just(autograd.BCEWithLogitsLoss(in[0], in[1], nil, reductions[a[0].(string)]))
	},
	"WeightedBCEWithLogitsLoss": func(in []*autograd.Var, a []any) []*autograd.Var {
		return just(autograd.BCEWithLogitsLoss(in[0], in[1], in[2].T(), reductions[a[0].(string)]))
	},
	"NLLLoss": func(in []*autograd.Var, a []any) []*autograd.Var {
		return just(autograd.NLLLoss(in[0], in[1].T(), autograd.Classification{Weight: weights(in),
			Reduction: reductions[a[0].(string)]}))
	},
	"CrossEntropy": func(in []*autograd.Var, a []any) []*autograd.Var {
		c := autograd.Classification{Weight: weights(in), Reduction: reductions[a[0].(string)],
			Smoothing: a[1].(float64)}
		return just(autograd.CrossEntropy(in[0], in[1].T(), c))
	},
	"Linspace": func(_ []*autograd.Var, a []any) []*autograd.Var {
		dt, err := tensor.ParseDType(a[0].(string))
		if err != nil {
			panic(err)
		}
		return consts(tensor.Linspace(dt, a[1].(float64), a[2].(float64), whole(a[3])))
	},

	"SGD": stepped(func(p []*autograd.Param, o map[string]any) optim.Optimizer {
		damp, _ := o["dampening"].(float64)
		return optim.NewSGD(slices.Values(p),
			optim.SGDOptions{LR: o["lr"].(float64), Momentum: o["momentum"].(float64), Dampening: damp,
				WeightDecay: o["weight_decay"].(float64), Nesterov: o["nesterov"].(bool)})
	}),
	"Adam": stepped(func(p []*autograd.Param, o map[string]any) optim.Optimizer {
		return optim.NewAdam(slices.Values(p), adam(o))
	}),
	"AdamW": stepped(func(p []*autograd.Param, o map[string]any) optim.Optimizer {
		return optim.NewAdamW(slices.Values(p), adam(o))
	}),
	"RMSprop": stepped(func(p []*autograd.Param, o map[string]any) optim.Optimizer {
		return optim.NewRMSprop(slices.Values(p),
			optim.RMSpropOptions{LR: o["lr"].(float64), Alpha: option(o, "alpha"), Eps: option(o, "eps"),
				WeightDecay: o["weight_decay"].(float64), Momentum: o["momentum"].(float64),
				Centered: o["centered"].(bool)})
	}),
}

// last is an operation over the last dimension.
func last(f func(x *autograd.Var, dim int) *autograd.Var) func(x *autograd.Var) *autograd.Var {
	return func(x *autograd.Var) *autograd.Var { return f(x, -1) }
}

// normedBy is BatchNorm outside of training.
func normedBy(mean, variance *tensor.Tensor, x, w, b *autograd.Var, eps float64) *autograd.Var {
	y, _, _ := autograd.BatchNorm(x, w, b, mean, variance, eps)
	return y
}
