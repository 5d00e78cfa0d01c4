package devicetest

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal/tensor"
)

// whole maps functions of package tensor, and methods with a leading dot, to a use with a Float64
// tensor of shape (3, 4) with distinct elements. It covers everything that singles and pairs do
// not. TestConform_LeavesNothingOfATensorOut finds missing entries.
var whole = map[string]func(x *tensor.Tensor) any{
	"ResultType":   func(x *tensor.Tensor) any { return tensor.ResultType(x, x.Number(0.5)).String() },
	"Keep":         func(x *tensor.Tensor) any { return tensor.Keep(tensor.Sum, x, 1) },
	"Sum":          func(x *tensor.Tensor) any { return tensor.Sum(x) },
	"Prod":         func(x *tensor.Tensor) any { return tensor.Prod(x, 0) },
	"Mean":         func(x *tensor.Tensor) any { return tensor.Mean(x, 0) },
	"Var":          func(x *tensor.Tensor) any { return tensor.Var(x) },
	"Std":          func(x *tensor.Tensor) any { return tensor.Std(x, 1) },
	"All":          func(x *tensor.Tensor) any { return tensor.All(x, 1) },
	"Any":          func(x *tensor.Tensor) any { return tensor.Any(x) },
	"Amax":         func(x *tensor.Tensor) any { return tensor.Amax(x, 0) },
	"Amin":         func(x *tensor.Tensor) any { return tensor.Amin(x, 0) },
	"Argmax":       func(x *tensor.Tensor) any { return tensor.Argmax(x, 1) },
	"Argmin":       func(x *tensor.Tensor) any { return tensor.Argmin(x.Reshape(-1), 0) },
	"Max":          func(x *tensor.Tensor) any { v, i := tensor.Max(x, 1); return all(v, i) },
	"Min":          func(x *tensor.Tensor) any { v, i := tensor.Min(x, 0); return all(v, i) },
	"Argsort":      func(x *tensor.Tensor) any { return tensor.Argsort(x, 1, false) },
	"Sort":         func(x *tensor.Tensor) any { v, i := tensor.Sort(x, 0, true); return all(v, i) },
	"TopK":         func(x *tensor.Tensor) any { v, i := tensor.TopK(x, 2, 1); return all(v, i) },
	"CumSum":       func(x *tensor.Tensor) any { return tensor.CumSum(x, 1) },
	"Gather":       func(x *tensor.Tensor) any { return tensor.Gather(x, 1, tensor.Argsort(x, 1, true)) },
	"IndexSelect":  func(x *tensor.Tensor) any { return tensor.IndexSelect(x, 1, tensor.Argmin(x, 1)) },
	"Index":        func(x *tensor.Tensor) any { return tensor.Index(x, tensor.Argmax(x, 0), tensor.Argmin(x, 0)) },
	"Cat":          func(x *tensor.Tensor) any { return tensor.Cat(0, all(x, x.Narrow(0, 1, 1))...) },
	"Stack":        func(x *tensor.Tensor) any { return tensor.Stack(2, all(x, x)...) },
	"Flip":         func(x *tensor.Tensor) any { return tensor.Flip(x, 0, 1) },
	"Nonzero":      func(x *tensor.Tensor) any { return tensor.Nonzero(tensor.ReLU(x)) },
	"MaskedSelect": func(x *tensor.Tensor) any { return tensor.MaskedSelect(x, tensor.Gt(x, x.Number(0))) },
	"MatMul":       func(x *tensor.Tensor) any { return tensor.MatMul(x, x.T()) },
	"BMM":          func(x *tensor.Tensor) any { return tensor.BMM(x.View(1, 3, 4), x.View(1, 4, 3)) },
	"Equal":        func(x *tensor.Tensor) any { return [2]bool{tensor.Equal(x, x), tensor.Equal(x, tensor.Neg(x))} },
	"AllClose": func(x *tensor.Tensor) any {
		return [2]bool{tensor.AllClose(x, tensor.Add(x, x.Number(1e-9)), 0, 1e-8),
			tensor.AllClose(x, tensor.Neg(x), 0, 1e-8)}
	},
	"At":    func(x *tensor.Tensor) any { return tensor.At[float64](x, 1, -1) },
	"SetAt": func(x *tensor.Tensor) any { tensor.SetAt(x, 9.5, 2, 1); return x },

	".AddInPlace":         func(x *tensor.Tensor) any { return x.AddInPlace(x.Select(0, 1).Clone()) },
	".SubInPlace":         func(x *tensor.Tensor) any { return x.SubInPlace(x.Number(2)) },
	".MulInPlace":         func(x *tensor.Tensor) any { return x.MulInPlace(x) },
	".DivInPlace":         func(x *tensor.Tensor) any { return x.DivInPlace(x.Number(3)) },
	".FloorDivideInPlace": func(x *tensor.Tensor) any { return x.FloorDivideInPlace(x.Number(0.4)) },
	".RemainderInPlace":   func(x *tensor.Tensor) any { return x.RemainderInPlace(x.Number(0.4)) },
	".AddScalarInPlace":   func(x *tensor.Tensor) any { return x.AddScalarInPlace(2) },
	".MulScalarInPlace":   func(x *tensor.Tensor) any { return x.MulScalarInPlace(2) },
	".AxpyInPlace":        func(x *tensor.Tensor) any { return x.AxpyInPlace(3, tensor.Exp(x)) },
	".AddMMInPlace": func(x *tensor.Tensor) any {
		y := x.Clone() // first with other factors, then with its own elements
		for _, of := range []*tensor.Tensor{x, y} {
			y.View(2, 6).AddMMInPlace(of.Narrow(1, 0, 2).T(), of.View(2, 6).Narrow(0, 0, 1).Expand(3, 6))
		}
		return y
	},
	".ClampInPlace":      func(x *tensor.Tensor) any { return x.ClampInPlace(-0.5, 0.5) },
	".PowInPlace":        func(x *tensor.Tensor) any { return x.PowInPlace(2) },
	".ReLUInPlace":       func(x *tensor.Tensor) any { return x.ReLUInPlace() },
	".NegInPlace":        func(x *tensor.Tensor) any { return x.NegInPlace() },
	".AbsInPlace":        func(x *tensor.Tensor) any { return x.AbsInPlace() },
	".ExpInPlace":        func(x *tensor.Tensor) any { return x.ExpInPlace() },
	".LogInPlace":        func(x *tensor.Tensor) any { return x.LogInPlace() },
	".SqrtInPlace":       func(x *tensor.Tensor) any { return x.SqrtInPlace() },
	".TanhInPlace":       func(x *tensor.Tensor) any { return x.TanhInPlace() },
	".SigmoidInPlace":    func(x *tensor.Tensor) any { return x.SigmoidInPlace() },
	".Fill":              func(x *tensor.Tensor) any { return x.Fill(4) },
	".Zero":              func(x *tensor.Tensor) any { return x.Zero() },
	".MaskedFillInPlace": func(x *tensor.Tensor) any { return x.MaskedFillInPlace(tensor.Lt(x, x.Number(0)), 7) },
	".AddAtomic":         func(x *tensor.Tensor) any { return x.AddAtomic(tensor.Neg(x)) },
	".AddScalarAtomic":   func(x *tensor.Tensor) any { return x.AddScalarAtomic(3) },
	".ScatterInPlace": func(x *tensor.Tensor) any {
		return x.ScatterInPlace(1, tensor.Argsort(x, 1, false), tensor.Exp(x))
	},
	".ScatterAddInPlace": func(x *tensor.Tensor) any {
		return x.ScatterAddInPlace(1, tensor.Argsort(x, 1, false), tensor.Exp(x))
	},
	".IndexCopyInPlace": func(x *tensor.Tensor) any {
		return x.IndexCopyInPlace(0, tensor.Argmax(x.Narrow(1, 0, 1), 0), tensor.Exp(x.Narrow(0, 0, 1)))
	},
	".IndexAddInPlace": func(x *tensor.Tensor) any { return x.IndexAddInPlace(1, tensor.Argmin(x, 0), tensor.Exp(x)) },
	".Sum":             func(x *tensor.Tensor) any { return fmt.Sprintf("%.9f", x.Sum()) },
	".Mean":            func(x *tensor.Tensor) any { return fmt.Sprintf("%.9f", x.Mean()) },
	".Item":            func(x *tensor.Tensor) any { return x.Select(0, 1).Select(0, 2).Item() },
	".ToNested":        func(x *tensor.Tensor) any { return x.T().ToNested() },
	"ToNested": func(x *tensor.Tensor) any {
		rows, err := tensor.ToNested[[][]float64](x.Select(0, 1))
		return fmt.Sprint(rows, err)
	},
	".String": func(x *tensor.Tensor) any { body, _, _ := strings.Cut(x.String(), "]]"); return body },

	".To":         func(x *tensor.Tensor) any { return x.To(tensor.Int16) },
	".CopyFrom":   func(x *tensor.Tensor) any { return x.CopyFrom(x.Select(0, 2).Clone()) },
	".Clone":      func(x *tensor.Tensor) any { return x.T().Clone() },
	".Contiguous": func(x *tensor.Tensor) any { return x.T().Contiguous() },
	".CPU":        func(x *tensor.Tensor) any { y, err := x.CPU(); return [2]any{err, fmt.Sprint(y)} },
	".ToDevice": func(x *tensor.Tensor) any {
		y, err := x.ToDevice(x.Device())
		return [2]any{err, y.SameStorage(x)}
	},
	".Number":       func(x *tensor.Tensor) any { return tensor.Add(x, x.Number(3)) },
	".NewEmpty":     func(x *tensor.Tensor) any { return x.NewEmpty(tensor.Int32, 2).Fill(3) },
	".NewZeros":     func(x *tensor.Tensor) any { return x.NewZeros(tensor.Bool, 3) },
	".Set":          func(x *tensor.Tensor) any { return x.Clone().Set(x.T()) },
	".Touch":        func(x *tensor.Tensor) any { return x.Touch() },
	".Version":      func(x *tensor.Tensor) any { before := x.Version(); x.Zero(); return x.Version() > before },
	".SameStorage":  func(x *tensor.Tensor) any { return x.T().SameStorage(x) },
	".Storage":      func(x *tensor.Tensor) any { return x.T().Storage() == x.Storage() },
	".Share":        func(x *tensor.Tensor) any { return x.Share() },
	".Close":        func(x *tensor.Tensor) any { return x.T().Close() },
	".Device":       func(x *tensor.Tensor) any { return x.Device() == x.T().Device() },
	".DType":        func(x *tensor.Tensor) any { return x.DType() },
	".Shape":        func(x *tensor.Tensor) any { return x.T().Shape() },
	".Strides":      func(x *tensor.Tensor) any { return x.T().Strides() },
	".Offset":       func(x *tensor.Tensor) any { return x.Select(0, 1).Offset() },
	".Dim":          func(x *tensor.Tensor) any { return x.Dim(-1) },
	".Dims":         func(x *tensor.Tensor) any { return x.Dims() },
	".Numel":        func(x *tensor.Tensor) any { return x.Numel() },
	".Nbytes":       func(x *tensor.Tensor) any { return x.Nbytes() },
	".IsContiguous": func(x *tensor.Tensor) any { return [2]bool{x.IsContiguous(), x.T().IsContiguous()} },

	".Narrow":    func(x *tensor.Tensor) any { return x.Narrow(1, 1, 2) },
	".Slice":     func(x *tensor.Tensor) any { return x.Slice(1, 0, 4, 2) },
	".Select":    func(x *tensor.Tensor) any { return x.Select(1, -1) },
	".Split":     func(x *tensor.Tensor) any { return x.Split(3, 1) },
	".Chunk":     func(x *tensor.Tensor) any { return x.Chunk(2, 0) },
	".Permute":   func(x *tensor.Tensor) any { return x.Permute(1, 0) },
	".Transpose": func(x *tensor.Tensor) any { return x.Transpose(0, 1) },
	".T":         func(x *tensor.Tensor) any { return x.T() },
	".View":      func(x *tensor.Tensor) any { return x.View(2, -1) },
	".Reshape":   func(x *tensor.Tensor) any { return x.T().Reshape(2, 6) },
	".Flatten":   func(x *tensor.Tensor) any { return x.T().Flatten(0, 1) },
	".Unsqueeze": func(x *tensor.Tensor) any { return x.Unsqueeze(0) },
	".Squeeze":   func(x *tensor.Tensor) any { return x.Narrow(0, 1, 1).Squeeze() },
	".Expand":    func(x *tensor.Tensor) any { return x.Expand(2, 3, 4) },
	".AsStrided": func(x *tensor.Tensor) any { return x.AsStrided([]int{2, 2}, []int{5, 2}, 1) },
}

// refused are functions that require host memory. They must return an error for other devices.
var refused = map[string]func(x *tensor.Tensor) any{
	"Data":  func(x *tensor.Tensor) any { return tensor.Data[float64](x) },
	"Bytes": func(x *tensor.Tensor) any { return tensor.Bytes(x) },
}

// elsewhere lists methods with their own tests: random numbers, which differ from the host's,
// sharing between processes, and pinned memory.
var elsewhere = []string{".FillUniform", ".FillNormal", ".FillBernoulli", ".IsShared", ".Give",
	".PinMemory"}

func all(ts ...*tensor.Tensor) []*tensor.Tensor { return ts }

func everything(t *testing.T, dev tensor.Device) {
	for name, f := range whole {
		t.Run(name, func(t *testing.T) {
			x := tensor.RandN(tensor.Float64, tensor.NewGenerator(11), 3, 4)
			there := On(t, dev, x)
			want := f(x)
			switch got := f(there).(type) {
			case *tensor.Tensor:
				on(t, dev, got)
				Same(t, got, want.(*tensor.Tensor), 1e-14)
			case []*tensor.Tensor:
				for i, y := range got {
					on(t, dev, y)
					Same(t, y, want.([]*tensor.Tensor)[i], 1e-14)
				}
			default:
				if !reflect.DeepEqual(got, want) {
					t.Errorf("%v, want %v", got, want)
				}
			}
			Same(t, there, x, 1e-14)
		})
	}
	for name, f := range refused {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if r := fmt.Sprint(recover()); !strings.Contains(r, "copy it to the host with CPU") {
					t.Error(r)
				}
			}()
			t.Error("it returned ", f(On(t, dev, tensor.Ones(tensor.Float64, 2))))
		})
	}
	if x := On(t, dev, tensor.Ones(tensor.Float64, 2)); x.PinMemory() == nil ||
		errors.Is(x.PinMemory(), tensor.ErrForeign) {
		t.Errorf("its pages are locked: %v", x.PinMemory())
	}
}

func on(t *testing.T, dev tensor.Device, x *tensor.Tensor) {
	t.Helper()
	if x.Device() != dev {
		t.Errorf("on %v", x.Device())
	}
}
