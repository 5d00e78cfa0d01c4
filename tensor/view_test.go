package tensor_test

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
)

// numbers reads "2,3", and "-" for none.
func numbers(t *testing.T, s string) []int {
	list := []int{}
	if s == "-" {
		return list
	}
	for f := range strings.SplitSeq(s, ",") {
		n, err := strconv.Atoi(f)
		testutil.NoError(t, err)
		list = append(list, n)
	}
	return list
}

func TestTensorReshape_CopiesWherePyTorchDoes(t *testing.T) {
	b, err := os.ReadFile("testdata/view.txt") // shape, strides, offset, new shape, new strides of PyTorch 2.9.1
	testutil.NoError(t, err)
	storage := count(tensor.Int64, 4096)
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		offset := numbers(t, f[2])[0]
		x := storage.AsStrided(numbers(t, f[0]), numbers(t, f[1]), offset)
		shape := numbers(t, f[3])
		y := x.Reshape(shape...)
		if !slices.Equal(flat(y), flat(x)) || !slices.Equal(y.Shape(), shape) {
			t.Errorf("%s: elements are out of order", line)
		}
		if f[4] == "copy" {
			if y.SameStorage(x) {
				t.Errorf("%s: a view", line)
			}
			panics(t, func() { x.View(shape...) })
			continue
		}
		if want := numbers(t, f[4]); !y.SameStorage(x) || !slices.Equal(y.Strides(), want) || y.Offset() != offset {
			t.Errorf("%s: strides %v, offset %d", line, y.Strides(), y.Offset())
		}
	}
}

// flat returns the elements in the order of their indices, read one by one.
func flat(x *tensor.Tensor) []any {
	var out []any
	var walk func(v any)
	walk = func(v any) {
		if list, ok := v.([]any); ok {
			for _, e := range list {
				walk(e)
			}
			return
		}
		out = append(out, v)
	}
	walk(x.ToNested())
	return out
}

func TestTensorView_ShowsItsPartOfTheStorage(t *testing.T) {
	a := count(tensor.Int64, 3, 4)
	for _, c := range []struct {
		name string
		got  *tensor.Tensor
		want string
	}{
		{"narrow", a.Narrow(1, 1, 2), "[[1 2] [5 6] [9 10]]"},
		{"narrow from the end", a.Narrow(0, -1, 1), "[[8 9 10 11]]"},
		{"select", a.Select(1, -1), "[3 7 11]"},
		{"slice", a.Slice(1, 0, 4, 3), "[[0 3] [4 7] [8 11]]"},
		{"slice out of range", a.Slice(0, -9, 9, 2), "[[0 1 2 3] [8 9 10 11]]"},
		{"slice of nothing", a.Slice(0, 2, 1, 1), "[]"},
		{"t", a.T(), "[[0 4 8] [1 5 9] [2 6 10] [3 7 11]]"},
		{"transpose", a.Unsqueeze(0).Transpose(0, -1).Select(0, 1), "[[1] [5] [9]]"},
		{"permute", a.View(3, 2, 2).Permute(1, 2, 0).Select(0, 0), "[[0 4 8] [1 5 9]]"},
		{"view", a.View(2, -1), "[[0 1 2 3 4 5] [6 7 8 9 10 11]]"},
		{"flatten", a.View(3, 2, 2).Flatten(1, -1).Select(0, 2), "[8 9 10 11]"},
		{"flatten a scalar", a.Select(0, 0).Select(0, 3).Flatten(0, -1), "[3]"},
		{"squeeze", a.Narrow(0, 1, 1).Squeeze(), "[4 5 6 7]"},
		{"squeeze another", a.Narrow(0, 1, 1).Squeeze(1), "[[4 5 6 7]]"},
		{"unsqueeze", a.Select(0, 0).Unsqueeze(-1), "[[0] [1] [2] [3]]"},
		{"expand", a.Narrow(1, 1, 1).Expand(-1, 2), "[[1 1] [5 5] [9 9]]"},
		{"expand with a new dimension", a.Select(0, 2).Narrow(0, 0, 2).Expand(2, 2), "[[8 9] [8 9]]"},
	} {
		if got := fmt.Sprint(c.got.ToNested()); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
		if !c.got.SameStorage(a) {
			t.Errorf("%s: a copy", c.name)
		}
	}
}

func TestTensorSplit_CoversTheDimension(t *testing.T) {
	a := count(tensor.Int64, 2, 7)
	for name, c := range map[string]struct {
		parts []*tensor.Tensor
		want  []int
	}{
		"split":      {a.Split(3, 1), []int{3, 3, 1}},
		"split rows": {a.Split(5, 0), []int{7}},
		"chunk":      {a.Chunk(3, 1), []int{3, 3, 1}},
		"chunk 5":    {a.Chunk(5, -1), []int{2, 2, 2, 1}},
	} {
		var sizes []int
		for _, p := range c.parts {
			sizes = append(sizes, p.Dim(1))
		}
		if !slices.Equal(sizes, c.want) || !tensor.Equal(tensor.Cat(1, c.parts...), a) {
			t.Errorf("%s: parts of %v", name, sizes)
		}
	}
}

func TestTensorView_PanicsWhereItDoesNotFit(t *testing.T) {
	a := count(tensor.Float32, 2, 3)
	for _, f := range []func(){
		func() { a.Select(2, 0) }, func() { a.Select(0, 2) }, func() { a.Narrow(1, 2, 2) },
		func() { a.View(4, 2) }, func() { a.View(-1, -1) },
		func() { a.T().View(6) }, func() { a.Permute(0, 0) }, func() { a.Expand(2, 6) },
		func() { a.Slice(0, 0, 1, 0) }, func() { a.Split(0, 0) },
		func() { a.Unsqueeze(4) }, func() { tensor.Data[float32](a.T()) }, func() { tensor.Data[int32](a) },
		func() { tensor.At[float32](a, 1) },
		func() { a.Unsqueeze(0).Expand(2, 2, 3).Fill(1) }, func() { tensor.Add(a, a.T()) },
		func() { tensor.FromSlice([]int8{1}, 2) },
		func() { tensor.New(tensor.Float32, -1) }, func() { tensor.New(tensor.DType(99), 1) },
		func() { tensor.New(tensor.Float32, 1<<40, 1<<40) },
		func() { a.Item() }, func() { new(tensor.Tensor).Fill(1) }, func() { a.To(tensor.Int64).AddInPlace(a) },
		func() { tensor.MatMul(a, a) },
		func() { a.To(tensor.Int64).AddScalarInPlace(0.5) }, func() { tensor.Sum(a, 0, 0) },
		func() { tensor.Argmax(tensor.New(tensor.Int8, 0), 0) },
	} {
		panics(t, f)
	}
}

// A tensor has up to 64 dimensions, which all operations tell apart, and no more.
func TestTensor_HasUpTo64Dimensions(t *testing.T) {
	shape := make([]int, 64)
	for i := range shape {
		shape[i] = 1
	}
	shape[63] = 3
	x := tensor.Ones(tensor.Float32, shape...)
	if got := tensor.Sum(x, 63); got.Dims() != 63 || got.Item() != 3 {
		t.Errorf("the sum of the last dimension of 64 has %d, and is %v", got.Dims(), got)
	}
	if got := x.Squeeze(); got.Dims() != 1 || got.Numel() != 3 {
		t.Errorf("squeezed: %v", got.Shape())
	}
	panics(t, func() { x.Unsqueeze(0) })
	panics(t, func() { tensor.New(tensor.Float32, make([]int, 65)...) })
}
