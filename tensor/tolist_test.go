package tensor_test

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
)

// nests reports what a tensor becomes, and that it is of the wanted type and value.
func nests[T any](t *testing.T, from *tensor.Tensor, want T) {
	t.Helper()
	got, err := tensor.ToNested[T](from)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%#v, %v, want %#v", got, err, want)
	}
}

func refused[T any](t *testing.T, from *tensor.Tensor, says string) {
	t.Helper()
	got, err := tensor.ToNested[T](from)
	if !errors.Is(err, tensor.ErrNested) || !strings.Contains(err.Error(), says) {
		t.Errorf("%#v, %v, want %q", got, err, says)
	}
}

type meters float64

func TestRegression_S3_2_ATensorBecomesNestedSlicesOfAType(t *testing.T) {
	a := tensor.FromSlice([]float32{1, 2, 3, 4, 5, 6}, 2, 3)
	nests(t, a, [][]float32{{1, 2, 3}, {4, 5, 6}})
	nests(t, a, [][]float64{{1, 2, 3}, {4, 5, 6}})
	nests(t, a, [][]meters{{1, 2, 3}, {4, 5, 6}})
	nests(t, a, [2][3]float32{{1, 2, 3}, {4, 5, 6}})
	nests(t, a, [][3]complex64{{1, 2, 3}, {4, 5, 6}})
	nests(t, a, [][]any{{1.0, 2.0, 3.0}, {4.0, 5.0, 6.0}})
	nests(t, a.T(), [][]float32{{1, 4}, {2, 5}, {3, 6}})
	nests(t, a.Narrow(1, 1, 2), [][]float32{{2, 3}, {5, 6}})
	nests(t, a.Narrow(0, 0, 1).Expand(2, 3), [][]float32{{1, 2, 3}, {1, 2, 3}})
	nests(t, tensor.Scalar(tensor.Float64, 2.5), 2.5)
	nests(t, tensor.New(tensor.Float32, 2, 0), [][]float32{{}, {}})
	nests(t, tensor.New(tensor.Float32, 0, 2), [][]float32{})
	nests(t, tensor.FromSlice([]bool{true, false}, 2), []int{1, 0})
	nests(t, tensor.FromSlice([]bool{true, false}, 2), []bool{true, false})
	nests(t, tensor.FromSlice([]int64{-128, 127}, 2), []int8{-128, 127})
	nests(t, tensor.FromSlice([]uint64{math.MaxUint64, 1}, 2), []uint{math.MaxUint64, 1})
	nests(t, tensor.FromSlice([]uint8{255}, 1), []int{255})
	nests(t, tensor.FromSlice([]float32{0.5, -2}, 2).To(tensor.Float16), []float32{0.5, -2})
	nests(t, tensor.FromSlice([]float32{0.5, -2}, 2).To(tensor.BFloat16), []float64{0.5, -2})
}

func TestRegression_S3_2_WhatATensorCannotBecomeIsSaid(t *testing.T) {
	a := tensor.FromSlice([]float32{1, 2, 3, 4, 5, 6}, 2, 3)
	refused[[]float32](t, a, "convert a tensor of shape [2 3] to []float32: dimension 1 does not match float32")
	refused[[][][]float32](t, a, "[]float32 is not a number type")
	refused[[2][2]float32](t, a, "dimension 1 does not match [2]float32")
	refused[[][]string](t, a, "string is not a number type")
	refused[float32](t, a, "dimension 0 does not match float32")
	refused[any](t, a, "dimension 0")
	refused[[][]int](t, a, "conversion of float32 to [][]int would lose information: convert the tensor with To first")
	refused[[]bool](t, tensor.FromSlice([]int64{1}, 1), "int64 to []bool")
	refused[[]int8](t, tensor.FromSlice([]int64{127, 128}, 2), "element 128 does not fit int8")
	refused[[]uint64](t, tensor.FromSlice([]int32{1, -1}, 2), "element -1 does not fit uint64")
	refused[[]int64](t, tensor.FromSlice([]uint64{1, 1 << 63}, 2), "element 9223372036854775808 does not fit int64")
}

// What is made is a copy.
func TestToNested_SharesNothing(t *testing.T) {
	a := tensor.FromSlice([]float32{1, 2}, 2)
	rows, err := tensor.ToNested[[]float32](a)
	testutil.NoError(t, err)
	rows[0] = 9
	if got := tensor.At[float32](a, 0); got != 1 {
		t.Error(got)
	}
}

func ExampleToNested() {
	a := tensor.FromSlice([]float32{1, 2, 3, 4}, 2, 2)
	rows, err := tensor.ToNested[[][]float64](a)
	fmt.Println(rows[1][0], err)
	// Output: 3 <nil>
}
