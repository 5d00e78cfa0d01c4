package autograd_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/internal/device"
	"github.com/shoal-mp/shoal/tensor"
)

// values returns numbers in [-scale, scale) that stand well apart from each other and from zero.
func values(seed int, scale float64, shape ...int) *tensor.Tensor {
	t := tensor.New(tensor.Float64, shape...)
	for i, d := 0, tensor.Data[float64](t); i < len(d); i++ {
		d[i] = scale * (float64((i*7919+seed*104729)%1009)/504.5 - 1 + 1e-3)
	}
	return t
}

// positive is values without zeros and negative ones.
func positive(seed int, shape ...int) *tensor.Tensor {
	return values(seed, 1, shape...).AddScalarInPlace(1.5)
}

// checkGradient compares the gradients of f at the inputs with central differences. The output is
// weighted with different numbers, so that no element's gradient can stand in for another's.
func checkGradient(t *testing.T, f func(in []*autograd.Var) *autograd.Var, inputs ...*tensor.Tensor) {
	t.Helper()
	params := make([]*autograd.Param, len(inputs))
	for i, in := range inputs {
		params[i] = autograd.NewParam("input", in)
	}
	loss := func() *autograd.Var {
		vars := make([]*autograd.Var, len(params))
		for i, p := range params {
			vars[i] = p.Var()
		}
		y := f(vars)
		return autograd.Sum(autograd.Mul(y, autograd.Const(values(77, 1, y.Shape()...))))
	}
	loss().Backward()
	const step = 1e-6
	for i, p := range params {
		if p.Grad == nil { // the output does not depend on it
			p.Grad = tensor.New(tensor.Float64, p.T.Shape()...)
		}
		at, grad := tensor.Data[float64](p.T), tensor.Data[float64](p.Grad)
		for j := range at {
			was := at[j]
			at[j] = was + step
			up := loss().Item()
			at[j] = was - step
			down := loss().Item()
			at[j] = was
			want := (up - down) / (2 * step)
			if !(math.Abs(grad[j]-want) <= 1e-6*(1+math.Abs(want))) {
				t.Fatalf("input %d, element %d: gradient %v, differences %v", i, j, grad[j], want)
			}
		}
	}
}

type vars = []*autograd.Var

type gradient struct {
	f      func(in vars) *autograd.Var
	inputs []*tensor.Tensor
}

func here(t *tensor.Tensor) *tensor.Tensor { return t }

func TestBackward_IsThatOfDifferences(t *testing.T) {
	for name, c := range gradients(here) {
		t.Run(name, func(t *testing.T) { checkGradient(t, c.f, c.inputs...) })
	}
}

// TestBackward_IsTestedOfEveryOperation reads the package's source for functions from Vars to Vars.
func TestBackward_IsTestedOfEveryOperation(t *testing.T) {
	covered := map[string]bool{"Grad": true}
	for name := range gradients(here) {
		covered[strings.Fields(name)[0]] = true
	}
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	found := 0
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Recv != nil || !f.Name.IsExported() || !mentionsVar(f.Type.Params) ||
				!mentionsVar(f.Type.Results) {
				continue
			}
			found++
			if !covered[f.Name.Name] {
				t.Errorf("%s in %s has no row in gradients", f.Name, name)
			}
		}
	}
	if found < len(covered) {
		t.Errorf("%d operations found, rows for %d", found, len(covered))
	}
}

func TestOp_HasAGradientOrAReason(t *testing.T) {
	rows := gradients(here)
	for _, o := range device.Ops() {
		_, ok := rows[o.Name]
		if ok == (o.NoGradient != "") {
			t.Errorf("%v: a gradient %v, and the reason for none is %q", o, ok, o.NoGradient)
		}
	}
}

func mentionsVar(l *ast.FieldList) (yes bool) {
	if l == nil {
		return false
	}
	ast.Inspect(l, func(n ast.Node) bool {
		s, ok := n.(*ast.StarExpr)
		if ok {
			id, isName := s.X.(*ast.Ident)
			yes = yes || isName && id.Name == "Var"
		}
		return true
	})
	return yes
}

func one(a *tensor.Tensor) []*tensor.Tensor    { return []*tensor.Tensor{a} }
func two(a, b *tensor.Tensor) []*tensor.Tensor { return []*tensor.Tensor{a, b} }

func TestBackward_InFloat32IsThatInFloat64(t *testing.T) {
	run := func(dt tensor.DType) []float64 {
		var params []*autograd.Param
		param := func(seed int, shape ...int) *autograd.Var {
			p := autograd.NewParam("p", values(seed, 0.5, shape...).To(dt))
			params = append(params, p)
			return p.Var()
		}
		x := autograd.Conv2d(param(1, 2, 2, 6, 6), param(2, 3, 2, 3, 3), param(3, 3),
			autograd.Window{Padding: [2]int{1, 1}})
		x = autograd.MaxPool2d(autograd.ReLU(x), autograd.Window{Size: [2]int{2, 2}})
		x = autograd.Dropout2d(x, 0.3, tensor.NewGenerator(1), true)
		x = autograd.LogSoftmax(autograd.Linear(autograd.Flatten(x), param(4, 5, 27), param(5, 5)), -1)
		loss := autograd.NLLLoss(x, tensor.FromSlice([]int32{4, 1}, 2), autograd.Classification{})
		loss = autograd.Add(loss, autograd.MSELoss(x, autograd.Const(values(8, 1, 2, 5).To(dt)), autograd.ByMean))
		loss.Backward()
		out := []float64{loss.Item()}
		for _, p := range params {
			out = append(out, tensor.Data[float64](p.Grad.To(tensor.Float64))...)
		}
		return out
	}
	single, double := run(tensor.Float32), run(tensor.Float64)
	if !slices.EqualFunc(single, double, func(a, b float64) bool { return math.Abs(a-b) < 1e-5 }) {
		t.Errorf("float32 %v\nfloat64 %v", single, double)
	}
}
