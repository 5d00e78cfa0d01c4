package tensor_test

import (
	"github.com/shoal-mp/shoal/internal/device"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/devicetest"
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

// placing is f along one dimension, or of all elements.
func placing(f func(t *tt, dim int) *tt) func(t *tt, dims ...int) *tt {
	return func(t *tt, dims ...int) *tt {
		if len(dims) > 0 {
			return f(t, dims[0])
		}
		flat := t.Reshape(-1)
		defer flat.Close()
		return f(flat, 0)
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

// A recorded operation is one of the table, or of these.
var recordedOps = map[string]recordedOp{
	"And": two2(tensor.And), "Or": two2(tensor.Or), "Xor": two2(tensor.Xor), "Not": one1(tensor.Not),
	"AddNumber": withNumber(tensor.Add), "MulNumber": withNumber(tensor.Mul),
	"DivNumber": withNumber(tensor.Div), "GtNumber": withNumber(tensor.Gt),
	"PowNumber": func(in ts, a args) ts { return ts{tensor.Pow(in[0], a.f(0))} },

	"Clamp": func(in ts, a args) ts { return ts{tensor.Clamp(in[0], a.f(0), a.f(1))} },
	"Where": func(in ts, _ args) ts { return ts{tensor.Where(in[0], in[1], in[2])} },

	"AddTo": two2((*tt).AddInPlace), "SubTo": two2((*tt).SubInPlace), "MulTo": two2((*tt).MulInPlace),
	"DivTo":         two2((*tt).DivInPlace),
	"FloorDivideTo": two2((*tt).FloorDivideInPlace),
	"RemainderTo":   two2((*tt).RemainderInPlace), "CopyTo": two2((*tt).CopyFrom),
	"AddToExpanded": expanded((*tt).AddInPlace), "SubToExpanded": expanded((*tt).SubInPlace),
	"MulToExpanded": expanded((*tt).MulInPlace), "DivToExpanded": expanded((*tt).DivInPlace),
	"FloorDivideToExpanded": expanded((*tt).FloorDivideInPlace),
	"RemainderToExpanded":   expanded((*tt).RemainderInPlace),
	"CopyToExpanded":        expanded((*tt).CopyFrom),
	"AddToItself":           itself((*tt).AddInPlace), "SubToItself": itself((*tt).SubInPlace),
	"MulToItself":         itself((*tt).MulInPlace),
	"DivToItself":         itself((*tt).DivInPlace),
	"FloorDivideToItself": itself((*tt).FloorDivideInPlace), "RemainderToItself": itself((*tt).RemainderInPlace),
	"CopyToItself": itself((*tt).CopyFrom),
	"ExpTo":        one1((*tt).ExpInPlace), "LogTo": one1((*tt).LogInPlace), "SqrtTo": one1((*tt).SqrtInPlace),
	"TanhTo": one1((*tt).TanhInPlace), "SigmoidTo": one1((*tt).SigmoidInPlace),
	"AbsTo": one1((*tt).AbsInPlace), "NegTo": one1((*tt).NegInPlace), "ReLUTo": one1((*tt).ReLUInPlace),
	"AddNumberTo": func(in ts, a args) ts { return ts{in[0].AddScalarInPlace(a.f(0))} },
	"MulNumberTo": func(in ts, a args) ts { return ts{in[0].MulScalarInPlace(a.f(0))} },
	"PowTo":       func(in ts, a args) ts { return ts{in[0].PowInPlace(a.f(0))} },
	"FillTo":      func(in ts, a args) ts { return ts{in[0].Fill(a.f(0))} },
	"AxpyTo":      func(in ts, a args) ts { return ts{in[0].AxpyInPlace(a.f(0), in[1])} },
	"MaskedFill":  func(in ts, a args) ts { return ts{in[0].MaskedFillInPlace(in[1], a.f(0))} },

	"Sum": reducing(tensor.Sum), "Mean": reducing(tensor.Mean), "Prod": reducing(tensor.Prod),
	"Amax": reducing(tensor.Amax), "Amin": reducing(tensor.Amin),
	"Argmax": reducing(placing(tensor.Argmax)), "Argmin": reducing(placing(tensor.Argmin)), "Var": reducing(tensor.Var),
	"Std": reducing(tensor.Std),
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

	"Cat":          func(in ts, a args) ts { return ts{tensor.Cat(a.n(0), in...)} },
	"Stack":        func(in ts, a args) ts { return ts{tensor.Stack(a.n(0), in...)} },
	"Gather":       func(in ts, a args) ts { return ts{tensor.Gather(in[0], a.n(0), in[1])} },
	"IndexSelect":  func(in ts, a args) ts { return ts{tensor.IndexSelect(in[0], a.n(0), in[1])} },
	"Scatter":      indexing((*tt).ScatterInPlace),
	"ScatterAdd":   indexing((*tt).ScatterAddInPlace),
	"IndexAdd":     indexing((*tt).IndexAddInPlace),
	"IndexCopy":    indexing((*tt).IndexCopyInPlace),
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

func init() {
	for _, o := range device.Ops() {
		f := devicetest.Apply(o)
		recordedOps[o.Name] = func(in ts, _ args) ts { return ts{f(in...)} }
	}
}
