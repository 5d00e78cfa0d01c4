package tensor_test

import (
	"bytes"
	"encoding/json"
	"errors"
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
	"github.com/shoal-mp/shoal/test/testutil"
)

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
	testutil.NoError(t, err)
	inputs = map[string]*tt{}
	for d := json.NewDecoder(bytes.NewReader(b)); d.More(); {
		var r record
		testutil.NoError(t, d.Decode(&r))
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
	testutil.NoError(t, err)
	var shape []int
	for _, n := range strings.FieldsFunc(rest, func(r rune) bool { return r == ',' || r == ']' }) {
		size, err := strconv.Atoi(n)
		testutil.NoError(t, err)
		shape = append(shape, size)
	}
	if dt == tensor.Int64 { // all bits
		v := make([]int64, len(f)-1)
		for i, e := range f[1:] {
			v[i], err = strconv.ParseInt(e, 10, 64)
			testutil.NoError(t, err)
		}
		return tensor.FromSlice(v, shape...)
	}
	v := make([]complex128, len(f)-1)
	for i, e := range f[1:] {
		re, im, _ := strings.Cut(e+",0", ",")
		x, err := strconv.ParseFloat(re, 64)
		testutil.NoError(t, err)
		y, err := strconv.ParseFloat(strings.TrimSuffix(im, ",0"), 64)
		testutil.NoError(t, err)
		v[i] = complex(x, y)
	}
	return tensor.FromSlice(v, shape...).To(dt)
}

func TestOp_GivesWhatPyTorchDoes(t *testing.T) {
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
			what := func() string {
				return fmt.Sprintf("%s row %d: %s%v of %s", layout, i, r.Op, r.Args, describe(r.In, inputs))
			}
			var in ts
			before := d.Stats().Blocks
			for _, name := range r.In {
				in = append(in, lay(inputs[name]))
			}
			out, refused := attempt(func() ts { return f(in, r.Args) })
			switch {
			case r.Error != "" && refused == "":
				t.Errorf("%s: %v; PyTorch refuses it: %s", what(), out, r.Error)
			case r.Error == "" && refused != "":
				t.Errorf("%s: %s; PyTorch makes %q", what(), refused, r.Out)
			case r.Error == "":
				compareRecorded(t, what, out, r.Out)
			}
			closeAll(t, append(out, in...))
			if after := d.Stats().Blocks; after > before && refused == "" {
				t.Errorf("%s: a tensor in between holds shared memory", what())
			}
		}
	}
	collect(t, func() bool { return d.Stats().Blocks == 0 })
	if missing := slices.DeleteFunc(slices.Sorted(maps.Keys(recordedOps)),
		func(op string) bool { return seen[op] }); len(missing) > 0 {
		t.Errorf("nothing is recorded of %v", missing)
	}
}

func closeAll(t *testing.T, tensors ts) {
	for _, x := range tensors {
		testutil.NoError(t, x.Close())
	}
}

func describe(names []string, inputs map[string]*tt) string {
	var s []string
	for _, n := range names {
		s = append(s, fmt.Sprint(inputs[n].DType(), inputs[n].ToNested()))
	}
	return strings.Join(s, " and ")
}

// attempt returns the result of f, or the text of a misuse. Other panics go on.
func attempt(f func() ts) (out ts, refused string) {
	defer func() {
		if p := recover(); p != nil {
			err, ok := p.(error)
			if !ok || !errors.Is(err, tensor.ErrMisuse) {
				panic(p)
			}
			refused = err.Error()
		}
	}()
	return f(), ""
}

func compareRecorded(t *testing.T, what func() string, got ts, want []string) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: %d tensors, want %d", what(), len(got), len(want))
		return
	}
	for i, s := range want {
		w := parse(t, s)
		if got[i].DType() != w.DType() || !slices.Equal(got[i].Shape(), w.Shape()) {
			t.Errorf("%s: %v %v, want %v %v", what(), got[i].DType(), got[i].Shape(), w.DType(), w.Shape())
			continue
		}
		if !closeEnough(got[i], w) {
			t.Errorf("%s: %v, want %v", what(), got[i].ToNested(), w.ToNested())
		}
	}
}

// closeEnough compares whole numbers exactly and fractions to some units in the last place.
func closeEnough(got, want *tt) bool {
	tolerance := map[tensor.DType]float64{tensor.Float16: 2e-3, tensor.BFloat16: 1.6e-2, tensor.Float32: 1e-6,
		tensor.Complex64: 1e-6,
		tensor.Float64:   1e-14, tensor.Complex128: 1e-14}[want.DType()]
	if tolerance == 0 {
		return tensor.Equal(got, want)
	}
	g, w := tensor.Data[complex128](got.Clone().To(tensor.Complex128)),
		tensor.Data[complex128](want.To(tensor.Complex128))
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
