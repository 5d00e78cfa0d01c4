package autograd_test

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
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

// A twice is one line of testdata/gradgrad.jsonl.gz, which testdata/gradgrad.py has written. A nil
// is a derivative that is not there.
type twice struct {
	Torch string
	Cases int

	Op            string
	Args          []any
	In            []string
	Grad          []int
	DY            string
	DIn, DDIn, DD []*string
	DDY           *string
}

func recorded(t *testing.T) (head twice, rows []twice) {
	f, err := os.Open("testdata/gradgrad.jsonl.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	text, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	d := json.NewDecoder(text)
	if err := d.Decode(&head); err != nil {
		t.Fatal(err)
	}
	for d.More() {
		var r twice
		if err := d.Decode(&r); err != nil {
			t.Fatal(err)
		}
		rows = append(rows, r)
	}
	return head, rows
}

// written reads "dtype[shape] element element".
func written(s string) *tensor.Tensor {
	f := strings.Fields(s)
	name, rest, _ := strings.Cut(f[0], "[")
	dt, err := tensor.ParseDType(name)
	if err != nil {
		panic(err)
	}
	var shape []int
	for _, n := range strings.FieldsFunc(rest, func(r rune) bool { return r == ',' || r == ']' }) {
		shape = append(shape, testutil.Must(strconv.Atoi(n)))
	}
	v := make([]float64, len(f)-1)
	for i, e := range f[1:] {
		v[i] = testutil.Must(strconv.ParseFloat(e, 64))
	}
	return tensor.FromSlice(v, shape...).To(dt)
}

func TestRegression_S3_4_SecondDerivativesAreThoseOfPyTorch(t *testing.T) {
	head, rows := recorded(t)
	if len(rows) != head.Cases || len(rows) < 700 || head.Torch == "" {
		t.Fatalf("%d cases of %d, of PyTorch %q", len(rows), head.Cases, head.Torch)
	}
	seen := map[string]bool{}
	for i, r := range rows {
		f := twiceOps[r.Op]
		if f == nil {
			t.Fatalf("no operation for recorded %s", r.Op)
		}
		seen[r.Op] = true
		for name, s := range map[string]*autograd.Scope{"fresh": nil, "scope": autograd.NewScope()} {
			if why := r.differs(f, s); why != "" {
				t.Errorf("case %d, %s: %s%v of %s: %s", i+2, name, r.Op, r.Args, strings.Join(r.In, " and "), why)
			}
		}
	}
	for op := range twiceOps {
		if !seen[op] {
			t.Errorf("nothing is recorded of %s", op)
		}
	}
}

// differs says in what a case is another than PyTorch's, "" if in nothing.
func (r *twice) differs(f func(in vars, args []any) *autograd.Var, s *autograd.Scope) string {
	var in, wanted vars
	for i, text := range r.In {
		if slices.Contains(r.Grad, i) {
			in = append(in, s.Leaf(written(text)))
		} else {
			in = append(in, s.Const(written(text)))
		}
	}
	for _, i := range r.Grad {
		wanted = append(wanted, in[i])
	}
	dy := s.Leaf(written(r.DY))
	first := autograd.Grad(vars{f(in, r.Args)}, wanted,
		autograd.GradOptions{GradOutputs: vars{dy}, CreateGraph: true, AllowUnused: true})
	var total *autograd.Var
	for i, dx := range first {
		if why := unlike(dx, r.DIn[i]); why != "" {
			return fmt.Sprintf("derivative for input %d: %s", r.Grad[i], why)
		}
		if dx != nil {
			part := autograd.Sum(autograd.Mul(dx, s.Const(written(*r.DDIn[i]))))
			if total == nil {
				total = part
			} else {
				total = autograd.Add(total, part)
			}
		}
	}
	second := autograd.Grad(vars{total}, append(slices.Clone(wanted), dy), autograd.GradOptions{AllowUnused: true})
	for i, want := range append(slices.Clone(r.DD), r.DDY) {
		if why := unlike(second[i], want); why != "" {
			return fmt.Sprintf("second derivative %d of %d: %s", i, len(second), why)
		}
	}
	return ""
}

// unlike says in what a value differs from what is wanted. What does not depend on an input is as
// good as zeros.
func unlike(got *autograd.Var, want *string) string {
	if want == nil {
		if got != nil && got.T().Numel() > 0 && tensor.Abs(got.T()).Sum() != 0 {
			return fmt.Sprintf("%v, want none", got.T())
		}
		return ""
	}
	w := written(*want)
	if got == nil {
		got = autograd.Const(tensor.New(w.DType(), w.Shape()...))
	}
	if !slices.Equal(got.Shape(), w.Shape()) || got.T().DType() != w.DType() {
		return fmt.Sprintf("%v %v, want %v %v", got.T().DType(), got.Shape(), w.DType(), w.Shape())
	}
	g, e := tensor.Data[float64](got.T().Contiguous()), tensor.Data[float64](w)
	largest := 1.0
	for _, v := range e {
		largest = max(largest, math.Abs(v))
	}
	for i := range e {
		if !(math.Abs(g[i]-e[i]) <= 1e-10*largest) && (g[i] == g[i] || e[i] == e[i]) {
			return fmt.Sprintf("element %d is %v, want %v", i, g[i], e[i])
		}
	}
	return ""
}
