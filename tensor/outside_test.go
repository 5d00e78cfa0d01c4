package tensor_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
)

// vast returns a view of 2^40 elements over the few elements of v.
func vast(v *tensor.Tensor) *tensor.Tensor { return v.Expand(1<<20, 1<<20) }

func TestTensorString_ReadsOnlyTheElementsThatItShows(t *testing.T) {
	row := func(v string) string {
		cols := "[" + v + ", " + v + ", " + v + ",  ..., " + v + ", " + v + ", " + v + "]"
		indent := ",\n        "
		return strings.Join([]string{cols, cols, cols, "...", cols, cols, cols}, indent)
	}
	for dt, suffix := range map[tensor.DType]string{
		tensor.Float32: "", tensor.Float16: ", dtype=torch.float16", tensor.Float64: ", dtype=torch.float64",
	} {
		if got, want := vast(tensor.Full(dt, 2, 1)).String(), "tensor(["+row("2.")+"]"+suffix+")"; got != want {
			t.Errorf("%v:\n%s\nwant:\n%s", dt, got, want)
		}
	}
	many := make([]int, 40)
	for i := range many {
		many[i] = 2
	}
	s := tensor.Ones(tensor.Int64, 1).Expand(many...).String() // PyTorch would show 2^40 elements
	if n := strings.Count(s, "1"); n == 0 || n > 1<<20 {
		t.Errorf("%d elements shown of 40 dimensions", n)
	}
	wide := count(tensor.Float32, 3, 1).Expand(3, 1<<50).String()
	if !strings.HasPrefix(wide, "tensor([[0., 0., 0.,  ..., 0., 0., 0.],\n        [1., ") {
		t.Errorf("%s", wide)
	}
}

func TestEqual_OfViewsLargerThanMemory(t *testing.T) {
	one, two := floats(1), floats(2)
	rows, cols := count(tensor.Float32, 1<<20, 1), count(tensor.Float32, 1, 1<<20)
	full := []int{1 << 20, 1 << 20}
	for name, c := range map[string]struct{ got, want bool }{
		"equal":     {tensor.Equal(vast(one), vast(floats(1))), true},
		"different": {tensor.Equal(vast(one), vast(two)), false},
		"NaN":       {tensor.Equal(vast(floats(nan)), vast(floats(nan))), false},
		"across":    {tensor.Equal(rows.Expand(full...), cols.Expand(full...)), false},
		"across, constant": {tensor.Equal(tensor.Ones(tensor.Float32, 1<<20, 1).Expand(full...),
			tensor.Ones(tensor.Float32, 1, 1<<20).Expand(full...)), true},
		"across, not constant": {tensor.Equal(tensor.Ones(tensor.Float32, 1<<20, 1).Expand(full...),
			tensor.Eq(cols, cols).To(tensor.Float32).SubInPlace(
				tensor.Eq(cols, tensor.Scalar(tensor.Float32, 1<<20-1)).To(tensor.Float32)).Expand(full...)), false},
		"itself":      {tensor.Equal(rows.Expand(full...), rows.Expand(full...)), true},
		"close":       {tensor.AllClose(vast(one), one, 0, 0), true},
		"not close":   {tensor.AllClose(vast(one), vast(two), 0, 0.5), false},
		"all":         {tensor.All(vast(one)).Item() == 1, true},
		"any":         {tensor.Any(vast(floats(0))).Item() == 1, false},
		"the maximum": {tensor.Equal(tensor.Amax(rows.Expand(full...), 1), rows.Select(1, 0)), true},
		"its place":   {tensor.Argmax(vast(two).Narrow(0, 0, 4), 1).Sum() == 0, true},
	} {
		if c.got != c.want {
			t.Errorf("%s: %v, want %v", name, c.got, c.want)
		}
	}
}

// What would need more memory than there is says so: package runtime would end the process.
func TestTensor_ResultsLargerThanMemoryAreAnError(t *testing.T) {
	x := vast(floats(1))
	for name, f := range map[string]func(){
		"Clone":      func() { x.Clone() },
		"Contiguous": func() { x.Contiguous() },
		"To":         func() { x.To(tensor.Float64) },
		"Add":        func() { tensor.Add(x, x) },
		"Eq":         func() { tensor.Eq(x, x) },
		"Sum":        func() { tensor.Sum(x) },
		"Var":        func() { tensor.Var(x) },
		"CumSum":     func() { tensor.CumSum(x, 1) },
		"Sort":       func() { tensor.Sort(x, 1, false) },
		"Reshape":    func() { count(tensor.Float32, 1<<20, 1).Expand(1<<20, 1<<20).Reshape(-1) },
		"New":        func() { tensor.New(tensor.Float32, 1<<44) },
		"Full":       func() { tensor.Full(tensor.Float64, 1, 1<<44) },
		"Arange":     func() { tensor.Arange(tensor.Float32, 0, 1<<44, 1) },
		"RandPerm":   func() { tensor.RandPerm(nil, 1<<44) },
		"ToNested":   func() { x.ToNested() },
	} {
		testutil.ErrorIs(t, tensor.Catch(f), tensor.ErrMemory)
		if t.Failed() {
			t.Fatal(name)
		}
	}
	if _, err := tensor.ToNested[[][]float32](x); !errors.Is(err, tensor.ErrMemory) {
		t.Errorf("ToNested: %v", err)
	}
	if _, err := tensor.ToNested[[][]float32](tensor.New(tensor.Float32, 1<<50, 0)); !errors.Is(err, tensor.ErrMemory) {
		t.Errorf("ToNested of nothing: %v", err)
	}
}

// A user who takes shapes from a request gets the mistakes of this package as errors.
func TestCatch_ReturnsMistakes(t *testing.T) {
	x, y := tensor.Ones(tensor.Float32, 2, 3), tensor.Ones(tensor.Float32, 4, 5)
	closed := tensor.Ones(tensor.Float32, 1)
	testutil.NoError(t, closed.Close())
	for name, c := range map[string]struct {
		want error
		f    func()
	}{
		"shapes that do not broadcast": {tensor.ErrShape, func() { tensor.Add(x, y) }},
		"a product":                    {tensor.ErrShape, func() { tensor.MatMul(x, y) }},
		"a view":                       {tensor.ErrShape, func() { x.View(7) }},
		"a negative size":              {tensor.ErrShape, func() { tensor.New(tensor.Float32, -1) }},
		"a dimension":                  {tensor.ErrIndex, func() { x.Select(2, 0) }},
		"an index":                     {tensor.ErrIndex, func() { x.Select(0, 2) }},
		"a dimension named twice":      {tensor.ErrIndex, func() { tensor.Sum(x, 0, -2) }},
		"a probability":                {tensor.ErrArgument, func() { x.FillBernoulli(nil, 2) }},
		"a dtype":                      {tensor.ErrOperand, func() { tensor.Neg(tensor.New(tensor.Bool, 1)) }},
		"a closed tensor":              {tensor.ErrClosed, func() { tensor.Neg(closed) }},
		"an expanded tensor":           {tensor.ErrMisuse, func() { floats(1).Expand(2).Zero() }},
	} {
		err := tensor.Catch(c.f)
		if !errors.Is(err, c.want) || c.want != tensor.ErrClosed && !errors.Is(err, tensor.ErrMisuse) {
			t.Errorf("%s: %v, want one that wraps %v", name, err, c.want)
		}
		if !strings.HasPrefix(fmt.Sprint(err), "tensor: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
