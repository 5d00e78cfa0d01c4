//go:build !race

package tensor_test

import (
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/shoal-mp/shoal/internal/kernel"
	. "github.com/shoal-mp/shoal/tensor"
)

// operationsOf are operations of x and y, which have 16 rows at least. They return what is to be
// closed.
func operationsOf(g *Generator) map[string]func(x, y *Tensor) []*Tensor {
	rows := RandInt(g, 0, 16, 16)
	all := map[string]func(x, y *Tensor) []*Tensor{
		"Max":        func(x, _ *Tensor) []*Tensor { v, i := Max(x, 0); return []*Tensor{v, i} },
		"Min":        func(x, _ *Tensor) []*Tensor { v, i := Min(x, -1); return []*Tensor{v, i} },
		"Sort":       func(x, _ *Tensor) []*Tensor { v, i := Sort(x, 0, true); return []*Tensor{v, i} },
		"TopK":       func(x, _ *Tensor) []*Tensor { v, i := TopK(x, 3, 0); return []*Tensor{v, i} },
		"TopKOfMany": func(x, _ *Tensor) []*Tensor { v, i := TopK(x, 12, -1); return []*Tensor{v, i} },
	}
	for name, f := range map[string]func(x, y *Tensor) *Tensor{
		"Add": Add, "Sub": Sub, "Mul": Mul, "Div": Div, "Maximum": Maximum, "Minimum": Minimum, "Power": Power,
		"Remainder": Remainder, "FloorDivide": FloorDivide, "Hypot": Hypot, "Atan2": Atan2, "Logaddexp": Logaddexp,
		"Eq": Eq, "Lt": Lt, "Ge": Ge, "And": And, "Or": Or, "Xor": Xor,
		"Cat":   func(x, y *Tensor) *Tensor { return Cat(0, x, y) },
		"Stack": func(x, y *Tensor) *Tensor { return Stack(1, x, y) },
		"Where": func(x, y *Tensor) *Tensor { m := Gt(x, y); defer m.Close(); return Where(m, x, y) },
		"MaskedSelect": func(x, y *Tensor) *Tensor {
			m := Gt(x, y)
			defer m.Close()
			return MaskedSelect(x, m)
		},
	} {
		all[name] = func(x, y *Tensor) []*Tensor { return []*Tensor{f(x, y)} }
	}
	for name, f := range map[string]func(x *Tensor) *Tensor{
		"Not": Not, "Neg": Neg, "Abs": Abs, "ReLU": ReLU, "Exp": Exp, "Sqrt": Sqrt, "Log": Log, "Tanh": Tanh,
		"Sigmoid": Sigmoid, "Erf": Erf, "IsNaN": IsNaN, "Nonzero": Nonzero,
		"Cube":        func(x *Tensor) *Tensor { return Pow(x, 3) },
		"Pow":         func(x *Tensor) *Tensor { return Pow(x, 2.5) },
		"Clamp":       func(x *Tensor) *Tensor { return Clamp(x, 1, 2) },
		"Argmax":      func(x *Tensor) *Tensor { return Argmax(x, 0) },
		"Argmin":      func(x *Tensor) *Tensor { return Argmin(x, -1) },
		"CumSum":      func(x *Tensor) *Tensor { return CumSum(x, 0) },
		"Flip":        func(x *Tensor) *Tensor { return Flip(x, 0, 1) },
		"Index":       func(x *Tensor) *Tensor { return Index(x, rows) },
		"IndexSelect": func(x *Tensor) *Tensor { return IndexSelect(x, 1, rows) },
		"MatMul":      func(x *Tensor) *Tensor { return MatMul(x, x.Transpose(-1, -2)) },
		"Clone":       func(x *Tensor) *Tensor { return x.Clone() },
		"Contiguous":  func(x *Tensor) *Tensor { return x.T().Contiguous() },
		"To Int32":    func(x *Tensor) *Tensor { return x.To(Int32) },
		"To Float16":  func(x *Tensor) *Tensor { return x.To(Float16) },
		"To Float64":  func(x *Tensor) *Tensor { return x.To(Float64) },
	} {
		all[name] = func(x, _ *Tensor) []*Tensor { return []*Tensor{f(x)} }
	}
	for name, f := range map[string]func(x *Tensor, dims ...int) *Tensor{"Sum": Sum, "Mean": Mean, "Std": Std,
		"Var": Var, "Prod": Prod, "Amax": Amax, "Amin": Amin, "All": All, "Any": Any} {
		all[name] = func(x, _ *Tensor) []*Tensor { return []*Tensor{f(x), f(x, 0), f(x, -1)} }
	}
	for name, f := range map[string]func(x, y *Tensor){
		"Equal":        func(x, y *Tensor) { Equal(x, y) },
		"AllClose":     func(x, y *Tensor) { AllClose(x, y, 1e-5, 1e-8) },
		"Sum of all":   func(x, _ *Tensor) { x.Sum() },
		"Add in place": func(x, y *Tensor) { x.AddInPlace(y) },
		"Add of the same elements in another order": func(x, _ *Tensor) { x.AddInPlace(x.Transpose(-1, -2)) },
		"Axpy":                       func(x, y *Tensor) { x.AxpyInPlace(1, y) },
		"AddMM":                      func(x, y *Tensor) { x.AddMMInPlace(y, y) },
		"AddAtomic":                  func(x, y *Tensor) { x.AddAtomic(y) },
		"CopyFrom rows that overlap": func(x, _ *Tensor) { x.Narrow(0, 1, 15).CopyFrom(x.Narrow(0, 0, 15)) },
		"Clamp in place":             func(x, _ *Tensor) { x.ClampInPlace(0, 1) },
		"IndexAdd":                   func(x, y *Tensor) { x.IndexAddInPlace(0, rows, y.Narrow(0, 0, 16)) },
		"IndexCopy":                  func(x, y *Tensor) { x.IndexCopyInPlace(1, rows, y.Narrow(1, 0, 16)) },
		"MaskedFill":                 func(x, y *Tensor) { m := Gt(x, y); defer m.Close(); x.MaskedFillInPlace(m, 1) },
		"Bernoulli":                  func(x, _ *Tensor) { x.FillBernoulli(g, .5) },
		"Uniform":                    func(x, _ *Tensor) { x.FillUniform(g, 0, 1) },
		"Normal":                     func(x, _ *Tensor) { x.FillNormal(g, 0, 1) },
	} {
		all[name] = func(x, y *Tensor) []*Tensor { f(x, y); return nil }
	}
	return all
}

// TestOperations_LeaveNoMemory: an operation whose results are closed takes no memory of tensors
// from Go's heap, whatever the dtype and the layout of its operands: what lies between is used
// again. Operations that do not take a dtype or a layout are left out.
func TestOperations_LeaveNoMemory(t *testing.T) {
	defer kernel.SetThreads(kernel.Threads())
	kernel.SetThreads(1)
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // pools keep what they have
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))  // and have one of each
	const side, most = 128, 6 << 10
	g := NewGenerator(1)
	dense := func(dt DType) *Tensor {
		return Rand(Float32, g, side, side).MulScalarInPlace(4).AddScalarInPlace(1).To(dt)
	}
	layouts := map[string]func(dt DType) *Tensor{
		"contiguous": dense,
		"transposed": func(dt DType) *Tensor { return dense(dt).T() },
		"every other column": func(dt DType) *Tensor {
			return Cat(1, dense(dt), dense(dt)).Slice(1, 0, 2*side, 2)
		},
		"three dimensions": func(dt DType) *Tensor { return dense(dt).View(16, side/16, side).Transpose(0, 1) },
		"expanded":         func(dt DType) *Tensor { return dense(dt).Narrow(0, 0, 1).Expand(side, side) },
	}
	done := make(map[string]int)
	for _, dt := range []DType{Float32, Float64, Float16, BFloat16, Int64, Int32, Uint8, Bool, Complex64} {
		for layout, operand := range layouts {
			x, y := operand(dt), operand(dt)
			for name, f := range operationsOf(g) {
				takes := func() (ok bool) {
					defer func() { ok = recover() == nil }()
					for _, result := range f(x, y) {
						result.Close()
					}
					return
				}
				if !takes() {
					continue
				}
				done[name]++
				takes()
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				const calls = 4
				for range calls {
					takes()
				}
				runtime.ReadMemStats(&after)
				if n := (after.TotalAlloc - before.TotalAlloc) / calls; n > most {
					t.Errorf("%s of %v, %s: %d bytes a call", name, dt, layout, n)
				}
			}
		}
		runtime.GC()
	}
	for name := range operationsOf(g) {
		if done[name] < 10 {
			t.Errorf("%s was done for %d dtypes and layouts", name, done[name])
		}
	}
}
