package tensor_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/cmplx"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal/tensor"
)

type (
	tt = tensor.Tensor
	ts = []*tt
)

// args are those of a recorded row that are no tensors.
type args []any

func (a args) n(i int) int      { return int(a[i].(float64)) }
func (a args) f(i int) float64  { return a[i].(float64) }
func (a args) b(i int) bool     { return a[i].(bool) }
func (a args) list(i int) []int { return toInts(a[i].([]any)) }
func (a args) dtype(i int) tensor.DType {
	dt, err := tensor.ParseDType(a[i].(string))
	if err != nil {
		panic(err)
	}
	return dt
}

func toInts(v []any) []int {
	out := make([]int, len(v))
	for i := range v {
		out[i] = int(v[i].(float64))
	}
	return out
}

type recordedOp = func(in ts, a args) ts

func one1(f func(*tt) *tt) recordedOp { return func(in ts, _ args) ts { return ts{f(in[0])} } }
func two2(f func(_, _ *tt) *tt) recordedOp {
	return func(in ts, _ args) ts { return ts{f(in[0], in[1])} }
}

func withNumber(f func(_, _ *tt) *tt) recordedOp {
	return func(in ts, a args) ts { return ts{f(in[0], in[0].Number(a.f(0)))} }
}

func reducing(f func(t *tt, dims ...int) *tt) recordedOp {
	return func(in ts, a args) ts {
		if a.b(1) {
			return ts{tensor.Keep(f, in[0], a.list(0)...)}
		}
		return ts{f(in[0], a.list(0)...)}
	}
}

func pair(a, b *tt) ts { return ts{a, b} }

func viewing(f func(t *tt, s []int) *tt) recordedOp {
	return func(in ts, a args) ts { return ts{f(in[0], a.list(0))} }
}

func indexing(f func(t *tt, dim int, idx, src *tt) *tt) recordedOp {
	return func(in ts, a args) ts { return ts{f(in[0], a.n(0), in[1], in[2])} }
}

func expanded(f func(t, o *tt) *tt) recordedOp {
	return func(in ts, _ args) ts { return ts{f(in[0].Expand(2, 3), in[1])} }
}

func itself(f func(t, o *tt) *tt) recordedOp {
	return func(in ts, _ args) ts { return ts{f(in[0], in[0])} }
}

var recordedOps = map[string]recordedOp{
	"Add": two2(tensor.Add), "Sub": two2(tensor.Sub), "Mul": two2(tensor.Mul), "Div": two2(tensor.Div), "Power": two2(tensor.Power),
	"Maximum": two2(tensor.Maximum), "Minimum": two2(tensor.Minimum), "Remainder": two2(tensor.Remainder), "FloorDivide": two2(tensor.FloorDivide),
	"Eq": two2(tensor.Eq), "Ne": two2(tensor.Ne), "Lt": two2(tensor.Lt), "Le": two2(tensor.Le), "Gt": two2(tensor.Gt), "Ge": two2(tensor.Ge),
	"And": two2(tensor.And), "Or": two2(tensor.Or), "Xor": two2(tensor.Xor), "Not": one1(tensor.Not),
	"AddNumber": withNumber(tensor.Add), "MulNumber": withNumber(tensor.Mul), "DivNumber": withNumber(tensor.Div), "GtNumber": withNumber(tensor.Gt),
	"PowNumber": func(in ts, a args) ts { return ts{tensor.Pow(in[0], a.f(0))} },

	"Neg": one1(tensor.Neg), "Abs": one1(tensor.Abs), "Relu": one1(tensor.Relu), "Sign": one1(tensor.Sign),
	"Floor": one1(tensor.Floor), "Ceil": one1(tensor.Ceil), "Round": one1(tensor.Round), "Trunc": one1(tensor.Trunc),
	"Exp": one1(tensor.Exp), "Expm1": one1(tensor.Expm1), "Log": one1(tensor.Log), "Log1p": one1(tensor.Log1p), "Sqrt": one1(tensor.Sqrt),
	"Rsqrt": one1(tensor.Rsqrt), "Reciprocal": one1(tensor.Reciprocal), "Sin": one1(tensor.Sin), "Cos": one1(tensor.Cos),
	"Tanh": one1(tensor.Tanh), "Sigmoid": one1(tensor.Sigmoid), "Erf": one1(tensor.Erf),
	"IsNaN": one1(tensor.IsNaN), "IsInf": one1(tensor.IsInf), "IsFinite": one1(tensor.IsFinite),
	"Clamp": func(in ts, a args) ts { return ts{tensor.Clamp(in[0], a.f(0), a.f(1))} },
	"Where": func(in ts, _ args) ts { return ts{tensor.Where(in[0], in[1], in[2])} },

	"AddTo": two2((*tt).Add), "SubTo": two2((*tt).Sub), "MulTo": two2((*tt).Mul), "DivTo": two2((*tt).Div), "FloorDivideTo": two2((*tt).FloorDivide),
	"RemainderTo": two2((*tt).Remainder), "CopyTo": two2((*tt).CopyFrom),
	"AddToExpanded": expanded((*tt).Add), "SubToExpanded": expanded((*tt).Sub), "MulToExpanded": expanded((*tt).Mul), "DivToExpanded": expanded((*tt).Div),
	"FloorDivideToExpanded": expanded((*tt).FloorDivide), "RemainderToExpanded": expanded((*tt).Remainder), "CopyToExpanded": expanded((*tt).CopyFrom),
	"AddToItself": itself((*tt).Add), "SubToItself": itself((*tt).Sub), "MulToItself": itself((*tt).Mul), "DivToItself": itself((*tt).Div),
	"FloorDivideToItself": itself((*tt).FloorDivide), "RemainderToItself": itself((*tt).Remainder), "CopyToItself": itself((*tt).CopyFrom),
	"ExpTo": one1((*tt).Exp), "LogTo": one1((*tt).Log), "SqrtTo": one1((*tt).Sqrt), "TanhTo": one1((*tt).Tanh), "SigmoidTo": one1((*tt).Sigmoid),
	"AbsTo": one1((*tt).Abs), "NegTo": one1((*tt).Neg), "ReluTo": one1((*tt).Relu),
	"AddNumberTo": func(in ts, a args) ts { return ts{in[0].AddScalar(a.f(0))} },
	"MulNumberTo": func(in ts, a args) ts { return ts{in[0].MulScalar(a.f(0))} },
	"PowTo":       func(in ts, a args) ts { return ts{in[0].Pow(a.f(0))} },
	"FillTo":      func(in ts, a args) ts { return ts{in[0].Fill(a.f(0))} },
	"AxpyTo":      func(in ts, a args) ts { return ts{in[0].Axpy(a.f(0), in[1])} },
	"MaskedFill":  func(in ts, a args) ts { return ts{in[0].MaskedFill(in[1], a.f(0))} },

	"Sum": reducing(tensor.Sum), "Mean": reducing(tensor.Mean), "Prod": reducing(tensor.Prod), "Amax": reducing(tensor.Amax), "Amin": reducing(tensor.Amin),
	"Argmax": reducing(tensor.Argmax), "Argmin": reducing(tensor.Argmin), "Var": reducing(tensor.Var), "Std": reducing(tensor.Std),
	"All": reducing(tensor.All), "Any": reducing(tensor.Any),
	"Max": func(in ts, a args) ts { return pair(tensor.Max(in[0], a.n(0))) },
	"Min": func(in ts, a args) ts { return pair(tensor.Min(in[0], a.n(0))) },

	"Sort":   func(in ts, a args) ts { return pair(tensor.Sort(in[0], a.n(0), a.b(1))) },
	"TopK":   func(in ts, a args) ts { return pair(tensor.TopK(in[0], a.n(0), a.n(1))) },
	"CumSum": func(in ts, a args) ts { return ts{tensor.CumSum(in[0], a.n(0))} },

	"Reshape":          viewing(func(t *tt, s []int) *tt { return t.Reshape(s...) }),
	"ViewOfTransposed": viewing(func(t *tt, s []int) *tt { return t.Clone().Transpose(0, 1).View(s...) }),
	"Permute":          viewing(func(t *tt, s []int) *tt { return t.Permute(s...) }),
	"Expand":           viewing(func(t *tt, s []int) *tt { return t.Expand(s...) }),
	"Transpose":        viewing(func(t *tt, s []int) *tt { return t.Transpose(s[0], s[1]) }),
	"Squeeze":          viewing(func(t *tt, s []int) *tt { return t.Squeeze(s...) }),
	"Unsqueeze":        viewing(func(t *tt, s []int) *tt { return t.Unsqueeze(s[0]) }),
	"Flatten":          viewing(func(t *tt, s []int) *tt { return t.Flatten(s[0], s[1]) }),
	"Narrow":           viewing(func(t *tt, s []int) *tt { return t.Narrow(s[0], s[1], s[2]) }),
	"Select":           viewing(func(t *tt, s []int) *tt { return t.Select(s[0], s[1]) }),
	"Slice":            viewing(func(t *tt, s []int) *tt { return t.Slice(1, s[0], s[1], s[2]) }),
	"Split":            func(in ts, a args) ts { s := a.list(0); return in[0].Split(s[0], s[1]) },
	"Chunk":            func(in ts, a args) ts { s := a.list(0); return in[0].Chunk(s[0], s[1]) },

	"Cat":          func(in ts, a args) ts { return ts{tensor.Cat(in, a.n(0))} },
	"Stack":        func(in ts, a args) ts { return ts{tensor.Stack(in, a.n(0))} },
	"Gather":       func(in ts, a args) ts { return ts{tensor.Gather(in[0], a.n(0), in[1])} },
	"IndexSelect":  func(in ts, a args) ts { return ts{tensor.IndexSelect(in[0], a.n(0), in[1])} },
	"Scatter":      indexing((*tt).Scatter),
	"ScatterAdd":   indexing((*tt).ScatterAdd),
	"IndexAdd":     indexing((*tt).IndexAdd),
	"IndexCopy":    indexing((*tt).IndexCopy),
	"Index":        func(in ts, _ args) ts { return ts{tensor.Index(in[0], in[1:]...)} },
	"MaskedSelect": two2(tensor.MaskedSelect),
	"Nonzero":      one1(tensor.Nonzero),
	"MatMul":       two2(tensor.MatMul),
	"BMM":          two2(tensor.BMM),

	"To":       func(in ts, a args) ts { return ts{in[0].To(a.dtype(0))} },
	"Arange":   func(_ ts, a args) ts { return ts{tensor.Arange(a.dtype(0), a.f(1), a.f(2), a.f(3))} },
	"Linspace": func(_ ts, a args) ts { return ts{tensor.Linspace(a.dtype(0), a.f(1), a.f(2), a.n(3))} },
	"Eye":      func(_ ts, a args) ts { return ts{tensor.Eye(a.dtype(0), a.n(1))} },
	"Full":     func(_ ts, a args) ts { return ts{tensor.Full(a.dtype(0), a.f(1), a.list(2)...)} },
}

// layouts are ways for a tensor to lie in memory. An operation must not depend on it.
var layouts = map[string]func(t *tt) *tt{
	"contiguous": (*tt).Clone,
	"transposed": func(t *tt) *tt {
		back := make([]int, t.Dims())
		for d := range back {
			back[d] = t.Dims() - 1 - d
		}
		return t.Permute(back...).Clone().Permute(back...)
	},
	"strided": func(t *tt) *tt {
		wide := make([]int, t.Dims())
		for d := range wide {
			wide[d] = 2*t.Dim(d) + 1
		}
		v := tensor.New(t.DType(), wide...)
		for d := range wide {
			v = v.Slice(d, 1, wide[d], 2)
		}
		return v.CopyFrom(t)
	},
	"shared": func(t *tt) *tt {
		s, err := tensor.NewShared(t.DType(), t.Shape()...)
		if err != nil {
			panic(err)
		}
		return s.CopyFrom(t)
	},
}

// A record is one line of testdata/ops.jsonl.
type record struct {
	Torch, Name, Value, Op, Error string
	In, Out                       []string
	Args                          args
}

// recorded returns the rows of what PyTorch made, and its inputs.
func recorded(t *testing.T) (rows []record, inputs map[string]*tt) {
	b, err := os.ReadFile("testdata/ops.jsonl")
	check(t, err)
	inputs = map[string]*tt{}
	for d := json.NewDecoder(bytes.NewReader(b)); d.More(); {
		var r record
		check(t, d.Decode(&r))
		switch {
		case r.Name != "":
			inputs[r.Name] = parse(t, r.Value)
		case r.Op != "":
			rows = append(rows, r)
		}
	}
	return rows, inputs
}

// parse reads "dtype[shape] element element".
func parse(t *testing.T, s string) *tt {
	t.Helper()
	f := strings.Fields(s)
	name, rest, _ := strings.Cut(f[0], "[")
	dt, err := tensor.ParseDType(name)
	check(t, err)
	var shape []int
	for _, n := range strings.FieldsFunc(rest, func(r rune) bool { return r == ',' || r == ']' }) {
		size, err := strconv.Atoi(n)
		check(t, err)
		shape = append(shape, size)
	}
	if dt == tensor.Int64 { // all bits
		v := make([]int64, len(f)-1)
		for i, e := range f[1:] {
			v[i], err = strconv.ParseInt(e, 10, 64)
			check(t, err)
		}
		return tensor.FromSlice(v, shape...)
	}
	v := make([]complex128, len(f)-1)
	for i, e := range f[1:] {
		re, im, _ := strings.Cut(e+",0", ",")
		x, err := strconv.ParseFloat(re, 64)
		check(t, err)
		y, err := strconv.ParseFloat(strings.TrimSuffix(im, ",0"), 64)
		check(t, err)
		v[i] = complex(x, y)
	}
	return tensor.FromSlice(v, shape...).To(dt)
}

func TestOperationsGiveWhatPyTorchDoes(t *testing.T) {
	d := local(t)
	rows, inputs := recorded(t)
	seen := map[string]bool{}
	for layout, lay := range layouts {
		for i, r := range rows {
			seen[r.Op] = true
			f := recordedOps[r.Op]
			if f == nil {
				t.Fatalf("no operation for recorded %s", r.Op)
			}
			what := fmt.Sprintf("%s row %d: %s%v of %s", layout, i, r.Op, r.Args, describe(r.In, inputs))
			var in ts
			before := d.Stats().Blocks
			for _, name := range r.In {
				in = append(in, lay(inputs[name]))
			}
			out, refused := attempt(func() ts { return f(in, r.Args) })
			switch {
			case r.Error != "" && refused == "":
				t.Errorf("%s: %v; PyTorch refuses it: %s", what, out, r.Error)
			case r.Error == "" && refused != "":
				t.Errorf("%s: %s; PyTorch makes %q", what, refused, r.Out)
			case r.Error == "":
				compareRecorded(t, what, out, r.Out)
			}
			closeAll(t, append(out, in...))
			if after := d.Stats().Blocks; after > before && refused == "" {
				t.Errorf("%s: a tensor in between holds shared memory", what)
			}
		}
	}
	collect(t, func() bool { return d.Stats().Blocks == 0 })
	if missing := slices.DeleteFunc(slices.Sorted(maps.Keys(recordedOps)), func(op string) bool { return seen[op] }); len(missing) > 0 {
		t.Errorf("nothing is recorded of %v", missing)
	}
}

func closeAll(t *testing.T, tensors ts) {
	for _, x := range tensors {
		check(t, x.Close())
	}
}

func describe(names []string, inputs map[string]*tt) string {
	var s []string
	for _, n := range names {
		s = append(s, fmt.Sprint(inputs[n].DType(), inputs[n].ToNested()))
	}
	return strings.Join(s, " and ")
}

// attempt returns what f returns, or the sentence of a misuse. Other panics go on.
func attempt(f func() ts) (out ts, refused string) {
	defer func() {
		if p := recover(); p != nil {
			s, ok := p.(string)
			if !ok || !strings.HasPrefix(s, "tensor: ") {
				panic(p)
			}
			refused = s
		}
	}()
	return f(), ""
}

func compareRecorded(t *testing.T, what string, got ts, want []string) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: %d tensors, want %d", what, len(got), len(want))
		return
	}
	for i, s := range want {
		w := parse(t, s)
		if got[i].DType() != w.DType() || !slices.Equal(got[i].Shape(), w.Shape()) {
			t.Errorf("%s: %v %v, want %v %v", what, got[i].DType(), got[i].Shape(), w.DType(), w.Shape())
			continue
		}
		if !closeEnough(got[i], w) {
			t.Errorf("%s: %v, want %v", what, got[i].ToNested(), w.ToNested())
		}
	}
}

// closeEnough compares whole numbers exactly and fractions to some units in the last place.
func closeEnough(got, want *tt) bool {
	tolerance := map[tensor.DType]float64{tensor.Float16: 2e-3, tensor.BFloat16: 1.6e-2, tensor.Float32: 1e-6, tensor.Complex64: 1e-6,
		tensor.Float64: 1e-14, tensor.Complex128: 1e-14}[want.DType()]
	if tolerance == 0 {
		return tensor.Equal(got, want)
	}
	g, w := tensor.Data[complex128](got.Clone().To(tensor.Complex128)), tensor.Data[complex128](want.To(tensor.Complex128))
	return slices.EqualFunc(g, w, func(a, b complex128) bool {
		if cmplx.Abs(b) < math.Inf(1) && cmplx.Abs(a-b) <= tolerance*cmplx.Abs(b) {
			return true
		}
		return sameFloat(real(a), real(b)) && sameFloat(imag(a), imag(b))
	})
}

func sameFloat(a, b float64) bool {
	return a != a && b != b || a == b && math.Signbit(a) == math.Signbit(b)
}
