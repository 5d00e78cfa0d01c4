//go:build !race

package autograd_test

import (
	"go/ast"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/kernel"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
)

// operands are what the operations of the table take. They are in shared memory, as the parameters
// and batches of several processes are. Parameters are matrices a and b, (4, 6), a vector v, (6),
// images, filters and what a recurrence needs.
type operands struct {
	a, b, v, c, indices, images, filters, bias, queries, gates, weight, state *autograd.Var

	mask, classes, rows, places *tensor.Tensor
}

// row is a row of the table: an operation on parameters.
type row = func(x *operands) *autograd.Var

func row1(f func(x *autograd.Var) *autograd.Var) row {
	return func(x *operands) *autograd.Var { return f(x.a) }
}

func row2(f func(a, b *autograd.Var) *autograd.Var) row {
	return func(x *operands) *autograd.Var { return f(x.a, x.b) }
}

func rowBy(f func(x *autograd.Var, c float64) *autograd.Var) row {
	return func(x *operands) *autograd.Var { return f(x.a, 0.7) }
}

func rowDim(f func(x *autograd.Var, dim int) *autograd.Var) row {
	return func(x *operands) *autograd.Var { return f(x.a, 1) }
}

func rowAt(f func(x *autograd.Var, dim int) (*autograd.Var, *tensor.Tensor)) row {
	return func(x *operands) *autograd.Var { y, _ := f(x.a, 1); return y }
}

// table has a row for each differentiable function that the package exports.
var table = map[string]row{
	"Abs": row1(autograd.Abs), "Cos": row1(autograd.Cos), "Erf": row1(autograd.Erf), "Exp": row1(autograd.Exp),
	"Expm1": row1(autograd.Expm1), "Flatten": row1(autograd.Flatten), "GELU": row1(autograd.GELU),
	"GELUTanh": row1(autograd.GELUTanh), "Hardsigmoid": row1(autograd.Hardsigmoid),
	"Hardswish": row1(autograd.Hardswish), "Log": row1(autograd.Log), "Log1p": row1(autograd.Log1p),
	"LogSigmoid": row1(autograd.LogSigmoid), "Mish": row1(autograd.Mish), "Neg": row1(autograd.Neg),
	"ReLU": row1(autograd.ReLU), "ReLU6": row1(autograd.ReLU6), "Reciprocal": row1(autograd.Reciprocal),
	"Rsqrt": row1(autograd.Rsqrt), "SELU": row1(autograd.SELU), "SiLU": row1(autograd.SiLU),
	"Sigmoid": row1(autograd.Sigmoid), "Sin": row1(autograd.Sin), "Softsign": row1(autograd.Softsign),
	"Sqrt": row1(autograd.Sqrt), "Tanh": row1(autograd.Tanh), "Tanhshrink": row1(autograd.Tanhshrink),

	"Add": row2(autograd.Add), "Atan2": row2(autograd.Atan2), "Div": row2(autograd.Div),
	"Hypot": row2(autograd.Hypot), "Logaddexp": row2(autograd.Logaddexp), "Maximum": row2(autograd.Maximum),
	"Minimum": row2(autograd.Minimum), "Mul": row2(autograd.Mul), "Power": row2(autograd.Power),
	"Sub": row2(autograd.Sub),

	"AddScalar": rowBy(autograd.AddScalar), "CELU": rowBy(autograd.CELU), "ELU": rowBy(autograd.ELU),
	"Hardshrink": rowBy(autograd.Hardshrink), "LeakyReLU": rowBy(autograd.LeakyReLU),
	"MulScalar": rowBy(autograd.MulScalar), "Pow": rowBy(autograd.Pow), "Softshrink": rowBy(autograd.Softshrink),
	"Clamp":     func(x *operands) *autograd.Var { return autograd.Clamp(x.a, 0.6, 0.8) },
	"Hardtanh":  func(x *operands) *autograd.Var { return autograd.Hardtanh(x.a, 0.6, 0.8) },
	"Softplus":  func(x *operands) *autograd.Var { return autograd.Softplus(x.a, 1, 20) },
	"Threshold": func(x *operands) *autograd.Var { return autograd.Threshold(x.a, 0.7, 0.1) },
	"PReLU":     func(x *operands) *autograd.Var { return autograd.PReLU(x.a, x.v) },

	"MaskedFill":   func(x *operands) *autograd.Var { return autograd.MaskedFill(x.a, x.mask, 2) },
	"MaskedSelect": func(x *operands) *autograd.Var { return autograd.MaskedSelect(x.a, x.mask) },
	"Where":        func(x *operands) *autograd.Var { return autograd.Where(x.mask, x.a, x.b) },

	"Amax":      func(x *operands) *autograd.Var { return autograd.Amax(x.a, 1) },
	"Amin":      func(x *operands) *autograd.Var { return autograd.Amin(x.a, 1) },
	"LogSumExp": func(x *operands) *autograd.Var { return autograd.LogSumExp(x.a, 1) },
	"Mean":      func(x *operands) *autograd.Var { return autograd.Mean(x.a, 1) },
	"Norm":      func(x *operands) *autograd.Var { return autograd.Norm(x.a, 1) },
	"Prod":      func(x *operands) *autograd.Var { return autograd.Prod(x.a, 1) },
	"Std":       func(x *operands) *autograd.Var { return autograd.Std(x.a, 1) },
	"Sum":       func(x *operands) *autograd.Var { return autograd.Sum(x.a, 1) },
	"Variance":  func(x *operands) *autograd.Var { return autograd.Variance(x.a, 1) },
	"CumSum":    rowDim(autograd.CumSum), "LogSoftmax": rowDim(autograd.LogSoftmax),
	"Softmax": rowDim(autograd.Softmax),
	"Max":     rowAt(autograd.Max), "Min": rowAt(autograd.Min),
	"Keep": func(x *operands) *autograd.Var { return autograd.Keep(autograd.Sum, x.a, 1) },
	"Sort": func(x *operands) *autograd.Var { y, _ := autograd.Sort(x.a, 1, false); return y },
	"TopK": func(x *operands) *autograd.Var { y, _ := autograd.TopK(x.a, 2, 1); return y },

	"Expand":    func(x *operands) *autograd.Var { return autograd.Expand(x.v, 4, 6) },
	"Flip":      func(x *operands) *autograd.Var { return autograd.Flip(x.a, 1) },
	"GLU":       rowDim(autograd.GLU),
	"Narrow":    func(x *operands) *autograd.Var { return autograd.Narrow(x.a, 1, 1, 3) },
	"Permute":   func(x *operands) *autograd.Var { return autograd.Permute(x.a, 1, 0) },
	"Reshape":   func(x *operands) *autograd.Var { return autograd.Reshape(x.a, 3, 8) },
	"Select":    func(x *operands) *autograd.Var { return autograd.Select(x.a, 1, 2) },
	"Slice":     func(x *operands) *autograd.Var { return autograd.Slice(x.a, 1, 0, 6, 2) },
	"Split":     func(x *operands) *autograd.Var { return autograd.Split(x.a, 3, 1)[1] },
	"Squeeze":   func(x *operands) *autograd.Var { return autograd.Squeeze(autograd.Unsqueeze(x.a, 0), 0) },
	"Transpose": func(x *operands) *autograd.Var { return autograd.Transpose(x.a, 0, 1) },
	"Unsqueeze": rowDim(autograd.Unsqueeze),
	"Cat":       func(x *operands) *autograd.Var { return autograd.Cat(1, x.a, x.b) },
	"Stack":     func(x *operands) *autograd.Var { return autograd.Stack(1, x.a, x.b) },

	"Embedding":   func(x *operands) *autograd.Var { return autograd.Embedding(x.a, x.indices) },
	"Gather":      func(x *operands) *autograd.Var { return autograd.Gather(x.a, 1, x.places) },
	"Index":       func(x *operands) *autograd.Var { return autograd.Index(x.a, x.rows) },
	"IndexSelect": func(x *operands) *autograd.Var { return autograd.IndexSelect(x.a, 0, x.rows) },
	"ScatterAdd":  func(x *operands) *autograd.Var { return autograd.ScatterAdd(x.a, 1, x.places, x.b) },

	"BMM": func(x *operands) *autograd.Var {
		return autograd.BMM(x.queries, autograd.Transpose(x.queries, 1, 2))
	},
	"MatMul": func(x *operands) *autograd.Var { return autograd.MatMul(x.a, x.v) },
	"Linear": func(x *operands) *autograd.Var { return autograd.Linear(x.a, x.b, x.bias) },
	"Conv2d": func(x *operands) *autograd.Var {
		return autograd.Conv2d(x.images, x.filters, x.bias, autograd.Window{Padding: [2]int{1, 1}})
	},
	"Pad2d": func(x *operands) *autograd.Var {
		return autograd.Pad2d(x.images, [2][2]int{{1, 1}, {1, 1}}, autograd.PadReflect)
	},
	"AvgPool2d": func(x *operands) *autograd.Var {
		return autograd.AvgPool2d(x.images, autograd.Window{Size: [2]int{2, 2}})
	},
	"MaxPool2d": func(x *operands) *autograd.Var {
		return autograd.MaxPool2d(x.images, autograd.Window{Size: [2]int{2, 2}})
	},
	"Dropout":   func(x *operands) *autograd.Var { return autograd.Dropout(x.a, 0.5, nil, true) },
	"Dropout2d": func(x *operands) *autograd.Var { return autograd.Dropout2d(x.images, 0.5, nil, true) },
	"BatchNorm": func(x *operands) *autograd.Var {
		y, _, _ := autograd.BatchNorm(x.images, x.bias, x.bias, nil, nil, 1e-5)
		return y
	},
	"GroupNorm": func(x *operands) *autograd.Var { return autograd.GroupNorm(x.images, x.bias, x.bias, 2, 1e-5) },
	"LayerNorm": func(x *operands) *autograd.Var { return autograd.LayerNorm(x.a, x.v.Shape(), x.v, x.v, 1e-5) },

	"BCEWithLogitsLoss": func(x *operands) *autograd.Var {
		return autograd.BCEWithLogitsLoss(x.a, x.c, nil, autograd.ByMean)
	},
	"MSELoss":      func(x *operands) *autograd.Var { return autograd.MSELoss(x.a, x.c, autograd.ByMean) },
	"SmoothL1Loss": func(x *operands) *autograd.Var { return autograd.SmoothL1Loss(x.a, x.c, 1, autograd.ByMean) },
	"NLLLoss": func(x *operands) *autograd.Var {
		return autograd.NLLLoss(x.a, x.classes, autograd.Classification{})
	},
	"CrossEntropy": func(x *operands) *autograd.Var {
		return autograd.CrossEntropy(x.a, x.classes, autograd.Classification{})
	},

	"ScaledDotProductAttention": func(x *operands) *autograd.Var {
		return autograd.ScaledDotProductAttention(x.queries, x.queries, x.queries, autograd.Attention{Causal: true})
	},
	"AttentionWeights": func(x *operands) *autograd.Var {
		return autograd.AttentionWeights(x.queries, x.queries, autograd.Attention{Causal: true})
	},
	"LSTM": func(x *operands) *autograd.Var {
		y, _, _ := autograd.LSTM(x.gates, x.state, x.state, autograd.Recurrence{Weight: x.weight})
		return y
	},
	"GRU": func(x *operands) *autograd.Var {
		weight := autograd.Narrow(x.weight, 0, 0, 9)
		y, _ := autograd.GRU(autograd.Narrow(x.gates, 2, 0, 9), x.state, autograd.Recurrence{Weight: weight})
		return y
	},
	"Checkpoint": func(x *operands) *autograd.Var {
		return autograd.Checkpoint(func(in ...*autograd.Var) *autograd.Var { return autograd.Sin(in[0]) }, x.a)
	},
	"CheckpointWith": func(x *operands) *autograd.Var {
		return autograd.CheckpointWith(nil, func(in ...*autograd.Var) *autograd.Var { return autograd.Sin(in[0]) }, x.a)
	},
	"Grad": func(x *operands) *autograd.Var {
		y := autograd.Sum(autograd.Mul(x.a, x.a))
		return autograd.Add(y, autograd.Sum(autograd.Grad(vars{y}, vars{x.a}, again)[0]))
	},
}

// notOperations are functions that return values and compute none.
var notOperations = []string{"Const", "Leaf", "NoGrad"}

// more are operations of more inputs, and within each other.
var more = map[string]row{
	"Cat of 10":        func(x *operands) *autograd.Var { return autograd.Cat(0, x.ten()...) },
	"Stack of 10":      func(x *operands) *autograd.Var { return autograd.Stack(0, x.ten()...) },
	"Split in 6":       func(x *operands) *autograd.Var { return autograd.Cat(0, autograd.Split(x.a, 1, 1)...) },
	"Detach":           func(x *operands) *autograd.Var { return autograd.Mul(x.a, x.b.Detach()) },
	"Keep of two":      func(x *operands) *autograd.Var { return autograd.Keep(autograd.Mean, x.a, 0, 1) },
	"Checkpoint of 10": func(x *operands) *autograd.Var { return autograd.Checkpoint(allOf, x.ten()...) },
	"Checkpoint in one": func(x *operands) *autograd.Var {
		return autograd.Checkpoint(func(in ...*autograd.Var) *autograd.Var {
			return autograd.Checkpoint(allOf, autograd.Sin(in[0]), in[1])
		}, x.a, x.b)
	},
	"Grad, not derived": func(x *operands) *autograd.Var {
		y := autograd.Sum(autograd.Mul(x.a, x.b))
		dx := autograd.Grad(vars{y}, vars{x.a, x.b}, autograd.GradOptions{RetainGraph: true})
		return autograd.Add(y, autograd.Sum(autograd.Mul(dx[0], dx[1])))
	},
}

func allOf(in ...*autograd.Var) *autograd.Var { return autograd.Cat(0, in...) }

func (x *operands) ten() []*autograd.Var {
	return []*autograd.Var{x.a, x.b, x.c, x.a, x.b, x.c, x.a, x.b, x.c, x.a}
}

// stepOf returns a step of an operation in a scope, forwards and back, from parameters that grew by
// nothing there, and the parameters.
func stepOf(t *testing.T, s *autograd.Scope, f row) (step func(), params []*autograd.Param) {
	shared := func(x *tensor.Tensor) *tensor.Tensor {
		if err := x.Share(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { x.Close() })
		return x
	}
	param := func(seed int, shape ...int) func() *autograd.Var {
		x := tensor.Sigmoid(values(seed, 1, shape...)).To(tensor.Float32)
		p := autograd.NewParam("x", shared(x))
		params = append(params, p)
		return p.Var
	}
	a, b, v, images, filters := param(1, 4, 6), param(2, 4, 6), param(3, 6), param(4, 2, 4, 6, 6), param(5, 4, 4, 3, 3)
	bias, queries, gates := param(6, 4), param(7, 2, 5, 8), param(8, 3, 2, 12)
	weight, state := param(9, 12, 3), param(10, 2, 3)
	c, zero := shared(tensor.Full(tensor.Float32, 0.25, 4, 6)), shared(tensor.New(tensor.Float32))
	x := operands{
		mask:    shared(tensor.Gt(a().T(), b().T())),
		classes: shared(tensor.FromSlice([]int64{0, 5, 2, 3}, 4)),
		rows:    shared(tensor.FromSlice([]int64{3, 0, 0}, 3)),
		places:  shared(tensor.FromSlice([]int64{0, 1, 5, 5, 2, 2, 0, 1}, 4, 2)),
	}
	in := func(p func() *autograd.Var) *autograd.Var { return autograd.Add(p(), s.Const(zero)) }
	return func() {
		x.a, x.b, x.v, x.c, x.indices = in(a), in(b), in(v), s.Const(c), s.Const(x.rows)
		x.images, x.filters, x.bias, x.queries = in(images), in(filters), in(bias), in(queries)
		x.gates, x.weight, x.state = in(gates), in(weight), in(state)
		autograd.Sum(f(&x)).Backward()
		if s != nil {
			s.Reset()
		}
	}, params
}

// The race detector makes pools forget on purpose.
func TestScope_OperationsAllocateNothing(t *testing.T) {
	defer kernel.SetThreads(kernel.Threads())
	kernel.SetThreads(1)
	inDomain(t)
	all := maps.Clone(table)
	maps.Copy(all, more)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		step, _ := stepOf(t, autograd.NewScope(), all[name])
		for range 5 {
			step()
		}
		if n := testing.AllocsPerRun(50, step); n > 0 {
			t.Errorf("%s makes %v objects in a step, want none", name, n)
		}
	}
}

// derivedOnce are how many objects the second derivative of an operation may make in the steady
// state, where there are some: these rules are made of tensors that they move, or of many views.
var derivedOnce = map[string]float64{"Conv2d": 34, "MaxPool2d": 10, "Pad2d": 26, "Prod": 9, "Embedding": 1}

// derivedTwice returns a row of the squares of what f returns and of its derivative, to be derived
// again.
func derivedTwice(f row) row {
	return func(x *operands) *autograd.Var {
		y := f(x)
		y = autograd.Sum(autograd.Mul(y, y))
		for _, in := range []*autograd.Var{x.a, x.v, x.images, x.queries, x.gates} {
			o := autograd.GradOptions{AllowUnused: true, CreateGraph: true}
			dx := autograd.Grad(vars{y}, vars{in}, o)[0]
			if dx != nil && dx.RequiresGrad() {
				return autograd.Add(y, autograd.Sum(autograd.Mul(dx, dx)))
			}
		}
		return y
	}
}

func TestScope_SecondDerivativesAllocateNothing(t *testing.T) {
	defer kernel.SetThreads(kernel.Threads())
	kernel.SetThreads(1)
	inDomain(t)
	for _, name := range slices.Sorted(maps.Keys(table)) {
		step, _ := stepOf(t, autograd.NewScope(), derivedTwice(table[name]))
		for range 5 {
			step()
		}
		if n := testing.AllocsPerRun(50, step); n > derivedOnce[name] {
			t.Errorf("%s makes %v objects in a step, want at most %v", name, n, derivedOnce[name])
		}
	}
}

// inDomain makes a small domain the test's.
func inDomain(t *testing.T) {
	domain, err := arena.NewLocal(8 << 20)
	if err != nil {
		t.Fatal(err)
	}
	before := arena.Current()
	arena.SetDefault(domain)
	t.Cleanup(func() {
		arena.SetDefault(before)
		domain.Close()
	})
}

// Memory that is used again changes no gradient.
func TestScope_GradientsAreThoseOfFreshMemory(t *testing.T) {
	inDomain(t)
	for _, name := range slices.Sorted(maps.Keys(table)) {
		if strings.HasPrefix(name, "Dropout") { // each step draws other numbers
			continue
		}
		inScope, scoped := stepOf(t, autograd.NewScope(), table[name])
		alone, fresh := stepOf(t, nil, table[name])
		for i := range 4 {
			inScope()
			alone()
			for j, p := range scoped {
				if (p.Grad == nil) != (fresh[j].Grad == nil) || p.Grad != nil && !tensor.Equal(p.Grad, fresh[j].Grad) {
					t.Errorf("%s, step %d: gradient %v of parameter %d, want %v", name, i, p.Grad, j, fresh[j].Grad)
				}
			}
		}
	}
}

// A new operation has a row.
func TestScope_TableHasAllOperations(t *testing.T) {
	var want []string
	for _, file := range testutil.ParseDir(t, ".") {
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.IsExported() && returnsVar(f) {
				want = append(want, f.Name.Name)
			}
		}
	}
	have := append(slices.Collect(maps.Keys(table)), notOperations...)
	slices.Sort(have)
	slices.Sort(want)
	if !slices.Equal(have, want) {
		t.Errorf("rows of %v, want of %v", have, want)
	}
}

// returnsVar reports whether f returns a *Var, or several.
func returnsVar(f *ast.FuncDecl) bool {
	if f.Type.Results == nil {
		return false
	}
	return slices.ContainsFunc(f.Type.Results.List, func(r *ast.Field) bool {
		of := r.Type
		if list, ok := of.(*ast.ArrayType); ok {
			of = list.Elt
		}
		star, ok := of.(*ast.StarExpr)
		if !ok {
			return false
		}
		name, ok := star.X.(*ast.Ident)
		return ok && name.Name == "Var"
	})
}
