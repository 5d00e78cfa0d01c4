package nn_test

import (
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
)

// A difference is one line of testdata/differential.jsonl.gz, which testdata/differential.py has
// written.
type difference struct {
	Torch string
	Cases int

	Op    string
	In    []string
	Grad  []int
	Args  []any
	Out   []string
	DY    string
	DIn   []string
	Error string
}

// differences returns the version of PyTorch and what it made.
func differences(t *testing.T, path string) (head difference, rows []difference) {
	f, err := os.Open(path)
	testutil.NoError(t, err)
	defer f.Close()
	text, err := gzip.NewReader(f)
	testutil.NoError(t, err)
	d := json.NewDecoder(text)
	testutil.NoError(t, d.Decode(&head))
	for d.More() {
		var r difference
		testutil.NoError(t, d.Decode(&r))
		rows = append(rows, r)
	}
	return head, rows
}

// written reads "dtype[shape] element element".
func written(t *testing.T, s string) *tensor.Tensor {
	t.Helper()
	f := strings.Fields(s)
	name, rest, _ := strings.Cut(f[0], "[")
	dt, err := tensor.ParseDType(name)
	testutil.NoError(t, err)
	var shape []int
	for _, n := range strings.FieldsFunc(rest, func(r rune) bool { return r == ',' || r == ']' }) {
		size, err := strconv.Atoi(n)
		testutil.NoError(t, err)
		shape = append(shape, size)
	}
	v := make([]float64, len(f)-1)
	for i, e := range f[1:] {
		v[i], err = strconv.ParseFloat(e, 64)
		testutil.NoError(t, err)
	}
	return tensor.FromSlice(v, shape...).To(dt)
}

// lays are ways for an input to lie in memory. What is computed must not depend on it.
var lays = []func(t *tensor.Tensor) *tensor.Tensor{
	(*tensor.Tensor).Clone,
	func(t *tensor.Tensor) *tensor.Tensor { // columns first
		back := make([]int, t.Dims())
		for d := range back {
			back[d] = t.Dims() - 1 - d
		}
		return t.Permute(back...).Clone().Permute(back...)
	},
	func(t *tensor.Tensor) *tensor.Tensor { // every second element
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
}

func TestRegression_S1_7_RandomCasesAreThoseOfPyTorch(t *testing.T) {
	compareAll(t, "testdata/differential.jsonl.gz", 5000, differentialOps)
}

// compareAll compares each case of a file, of which there are at least so many, with what one of
// ops makes of it.
func compareAll(t *testing.T, path string, least int, ops map[string]differentialOp) {
	head, rows := differences(t, path)
	if len(rows) != head.Cases || len(rows) < least || head.Torch == "" {
		t.Fatalf("%d cases of %d, of PyTorch %q", len(rows), head.Cases, head.Torch)
	}
	bad, seen := map[string]int{}, map[string]bool{}
	for i, r := range rows {
		seen[r.Op] = true
		f := ops[r.Op]
		if f == nil {
			t.Fatalf("no operation for recorded %s", r.Op)
		}
		for lay := range lays {
			if lay != 0 && (i+lay)%3 != 0 { // the others in turns
				continue
			}
			if why := r.differs(t, f, lay); why != "" {
				if bad[r.Op]++; bad[r.Op] <= 3 {
					t.Errorf("case %d, layout %d: %s%v of %s: %s", i+2, lay, r.Op, r.Args,
						strings.Join(r.In, " and "), why)
				}
				break
			}
		}
	}
	for _, op := range slices.Sorted(maps.Keys(bad)) {
		t.Errorf("%s: %d cases differ from PyTorch %s", op, bad[op], head.Torch)
	}
	for op := range ops {
		if !seen[op] {
			t.Errorf("nothing is recorded of %s", op)
		}
	}
}

// differs says in what a case is another than PyTorch's, "" if in nothing.
func (r *difference) differs(t *testing.T, f differentialOp, lay int) (why string) {
	ins, params := make([]*autograd.Var, len(r.In)), map[int]*autograd.Param{}
	for i, s := range r.In {
		x := lays[lay](written(t, s))
		if slices.Contains(r.Grad, i) {
			params[i] = autograd.NewParam(fmt.Sprint("in", i), x)
			ins[i] = params[i].Var()
		} else {
			ins[i] = autograd.Const(x)
		}
	}
	var out []*autograd.Var
	refused := refusal(func() { out = f(ins, r.Args) })
	switch {
	case strings.HasPrefix(refused, "panic: "):
		return refused
	case r.Error != "" && refused == "":
		return fmt.Sprintf("no error, where PyTorch says %q", r.Error)
	case r.Error != "":
		return ""
	case refused != "":
		return fmt.Sprintf("%s, where PyTorch makes %s", refused, r.Out)
	case len(out) != len(r.Out):
		return fmt.Sprintf("%d results, want %d", len(out), len(r.Out))
	}
	for i, y := range out {
		if why := another(y.T(), written(t, r.Out[i])); why != "" {
			return fmt.Sprintf("result %d: %s", i, why)
		}
	}
	if r.DY == "" {
		return ""
	}
	if refused := refusal(
		func() {
			out[0].BackwardWith(autograd.BackwardOptions{Gradient: lays[lay](written(t, r.DY))})
		}); refused != "" {
		return "backward: " + refused
	}
	for k, i := range r.Grad {
		want := written(t, r.DIn[k])
		got := params[i].Grad
		if got == nil {
			got = tensor.New(want.DType(), want.Shape()...)
		}
		if why := another(got, want); why != "" {
			return fmt.Sprintf("gradient of input %d for %s: %s", i, r.DY, why)
		}
	}
	return ""
}

// refusal returns the text of a misuse, or of any other panic.
func refusal(f func()) (text string) {
	defer func() {
		if p := recover(); p != nil {
			text = fmt.Sprint(p)
			if err, ok := p.(error); !ok || !errors.Is(err, tensor.ErrMisuse) {
				text = "panic: " + text // which is a mistake of ours
			}
		}
	}()
	f()
	return ""
}

// another says in what a tensor differs from what is wanted: whole numbers exactly, and fractions
// by a rounding or so.
func another(got, want *tensor.Tensor) string {
	if got.DType() != want.DType() || !slices.Equal(got.Shape(), want.Shape()) {
		return fmt.Sprintf("%v %v, want %v %v", got.DType(), got.Shape(), want.DType(), want.Shape())
	}
	tolerance := map[tensor.DType]float64{tensor.Float32: 4e-6, tensor.Float64: 1e-11}[want.DType()]
	g, w := tensor.Data[float64](got.Clone().To(tensor.Float64)), tensor.Data[float64](want.To(tensor.Float64))
	largest := 1.0
	for _, v := range w {
		if !math.IsInf(v, 0) && v == v {
			largest = max(largest, min(math.Abs(v), 1e3))
		}
	}
	for i := range w {
		same := g[i] == w[i] || g[i] != g[i] && w[i] != w[i]
		if !same && !(math.Abs(g[i]-w[i]) <= tolerance*max(largest, math.Abs(w[i]))) {
			return fmt.Sprintf("element %d is %v, want %v", i, g[i], w[i])
		}
	}
	return ""
}
