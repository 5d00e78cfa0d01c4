package nn_test

import (
	"testing"

	"github.com/shoal-mp/shoal/autograd"
)

func TestRegression_S3_4_LayersAreThoseOfPyTorch(t *testing.T) {
	compareAll(t, "testdata/differential_layers.jsonl.gz", 1500, layerOps)
}

// by2 is an operation with two numbers.
func by2(f func(x *autograd.Var, a, b float64) *autograd.Var) differentialOp {
	return func(in []*autograd.Var, a []any) []*autograd.Var {
		return just(f(in[0], a[0].(float64), a[1].(float64)))
	}
}

// params returns the second and the third input, or nil.
func params(in []*autograd.Var) (w, b *autograd.Var) {
	if len(in) < 2 {
		return nil, nil
	}
	return in[1], third(in)
}

var layerOps = map[string]differentialOp{
	"GELUTanh": of1(autograd.GELUTanh), "ELU": by(autograd.ELU), "SELU": of1(autograd.SELU), "CELU": by(autograd.CELU),
	"Softplus":   by(func(x *autograd.Var, beta float64) *autograd.Var { return autograd.Softplus(x, beta, 20) }),
	"LogSigmoid": of1(autograd.LogSigmoid), "Softsign": of1(autograd.Softsign), "Mish": of1(autograd.Mish),
	"ReLU6":       of1(autograd.ReLU6),
	"Hardsigmoid": of1(autograd.Hardsigmoid), "Hardswish": of1(autograd.Hardswish),
	"Softshrink": by(autograd.Softshrink),
	"Hardshrink": by(autograd.Hardshrink), "Tanhshrink": of1(autograd.Tanhshrink), "Hardtanh": by2(autograd.Hardtanh),
	"Threshold": by2(autograd.Threshold), "PReLU": of2(autograd.PReLU),
	"GLU": func(in []*autograd.Var, a []any) []*autograd.Var { return just(autograd.GLU(in[0], whole(a[0]))) },

	"Conv2d": func(in []*autograd.Var, a []any) []*autograd.Var {
		return just(autograd.Conv2d(in[0], in[1], third(in),
			autograd.Window{Stride: square(a[0]), Padding: square(a[1]), Dilation: square(a[2]), Groups: whole(a[3])}))
	},
	"Pad2d": func(in []*autograd.Var, a []any) []*autograd.Var {
		p := wholes(a[0])
		return just(autograd.Pad2d(in[0], [2][2]int{{p[0], p[1]}, {p[2], p[3]}}, padModes[a[1].(string)]))
	},
	"MaxPool2d": func(in []*autograd.Var, a []any) []*autograd.Var {
		return just(autograd.MaxPool2d(in[0],
			autograd.Window{Size: square(a[0]), Stride: square(a[1]), Padding: square(a[2]), Ceil: true}))
	},
	"AvgPool2d": func(in []*autograd.Var, a []any) []*autograd.Var {
		return just(autograd.AvgPool2d(in[0],
			autograd.Window{Size: square(a[0]), Stride: square(a[1]), Padding: square(a[2]),
				Ceil: a[3].(bool), InsideOnly: a[4].(bool)}))
	},

	"NLLLoss": differentialOps["NLLLoss"], "CrossEntropy": differentialOps["CrossEntropy"],

	"Attention": func(in []*autograd.Var, a []any) []*autograd.Var {
		o := autograd.Attention{Causal: a[0].(bool), Scale: a[1].(float64)}
		if len(in) > 3 {
			o.Mask = in[3]
		}
		return just(autograd.ScaledDotProductAttention(in[0], in[1], in[2], o))
	},

	"LayerNormOver": func(in []*autograd.Var, a []any) []*autograd.Var {
		return just(autograd.LayerNorm(in[0], wholes(a[0]), nil, nil, 1e-5))
	},
	"GroupNorm": func(in []*autograd.Var, a []any) []*autograd.Var {
		w, b := params(in)
		return just(autograd.GroupNorm(in[0], w, b, whole(a[0]), 1e-5))
	},
	"BatchNorm": func(in []*autograd.Var, _ []any) []*autograd.Var {
		y, _, _ := autograd.BatchNorm(in[0], in[1], in[2], nil, nil, 1e-5)
		return just(y)
	},
	"BatchNormBy": func(in []*autograd.Var, _ []any) []*autograd.Var {
		return just(normedBy(in[3].T(), in[4].T(), in[0], in[1], in[2], 1e-5))
	},
}

var padModes = map[string]autograd.PadMode{"constant": autograd.PadZeros, "reflect": autograd.PadReflect,
	"replicate": autograd.PadReplicate,
	"circular":  autograd.PadCircular}
