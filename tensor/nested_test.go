package tensor_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
)

func TestFromNested_MakesTensors(t *testing.T) {
	for _, c := range []struct {
		dt   tensor.DType
		in   any
		want string
	}{
		{tensor.Float32, [][]float64{{1, 2.5}, {3, 4}}, "[[1 2.5] [3 4]]"},
		{tensor.Int64, []any{1, int8(2), uint16(3)}, "[1 2 3]"},
		{tensor.Int64, [2]int64{1<<62 + 1, -7}, "[4611686018427387905 -7]"},
		{tensor.Bool, [][]bool{{true}, {false}}, "[[true] [false]]"},
		{tensor.Complex64, []complex128{1 + 2i}, "[(1+2i)]"},
		{tensor.Float16, 0.5, "0.5"},
		{tensor.Float32, [][]float32{{}, {}}, "[[] []]"},
	} {
		got, err := tensor.FromNested(c.dt, c.in)
		testutil.NoError(t, err)
		if s := fmt.Sprint(got.ToNested()); s != c.want || got.DType() != c.dt {
			t.Errorf("%v became %v %s", c.in, got.DType(), s)
		}
	}
	for _, in := range []any{[][]int{{1}, {2, 3}}, []string{"1"}, nil, []any{1, []int{2}}, map[int]int{}, []any{nil}} {
		if got, err := tensor.FromNested(tensor.Float32, in); !errors.Is(err, tensor.ErrNested) {
			t.Errorf("%v became %v, %v", in, got, err)
		}
	}
}

func TestDType_HasItsName(t *testing.T) {
	for _, dt := range allDTypes {
		for _, s := range []string{dt.String(), "torch." + dt.String()} {
			if got, err := tensor.ParseDType(s); got != dt || err != nil {
				t.Errorf("%s is %v, %v", s, got, err)
			}
		}
	}
	if _, err := tensor.ParseDType("float128"); !errors.Is(err, tensor.ErrDType) {
		t.Errorf("float128: %v", err)
	}
}

func TestFromSlice_IsTheStorage(t *testing.T) {
	s := []float32{1, 2, 3}
	a := tensor.FromSlice(s, 3)
	a.MulScalarInPlace(2)
	s[0] = 7
	if got := fmt.Sprint(s, a.ToNested()); got != "[7 4 6] [7 4 6]" {
		t.Error(got)
	}
}
