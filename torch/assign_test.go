package torch

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/encoding/pt"
	"github.com/shoal-mp/shoal/encoding/python"
	"github.com/shoal-mp/shoal/internal/pickle/value"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
)

// A config is a struct for a dict.
type config struct {
	LR     float32 `torch:"lr"`
	Betas  betas   `torch:"betas"`
	Names  []string
	Depth  *int
	Hidden int `torch:"-"`
}

// betas are a struct for a tuple.
type betas struct {
	_    struct{} `torch:",tuple"`
	A, B float64
}

// TestAs_MakesStructs sends structs to Python and back, by their tags.
func TestAs_MakesStructs(t *testing.T) {
	three := 3
	want := config{LR: 0.5, Betas: betas{A: 0.9, B: 0.75}, Names: []string{"a", "b"}, Depth: &three, Hidden: 7}
	v, err := pt.Unmarshal(testutil.Value(pt.Marshal(&want, pt.MarshalOptions{}))(t))
	if err != nil {
		t.Fatal(err)
	}
	if keys := v.(*python.Dict); keys.Len() != 4 {
		t.Errorf("it has the keys %v", keys)
	}
	got := config{Hidden: 7}
	if err := assign(&got, v); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestAs_ConvertsWhatFits converts received values to types of the user's, or says why it cannot.
func TestAs_ConvertsWhatFits(t *testing.T) {
	x := tensor.New(tensor.Float32, 2)
	for _, c := range []struct {
		v    any
		want any    // a value of the type to convert to
		why  string // the text of the error, if there is no conversion
	}{
		{int64(200), uint8(200), ""}, {int64(300), uint8(0), "300 overflows uint8"},
		{int64(-1), uint(0), "overflows"}, {int64(128), int8(0), "overflows"},
		{int64(3), 3.0, ""}, {int64(1<<53 + 1), 0.0, "overflows"}, {1.5, float32(1.5), ""},
		{1.5, 0, "cannot convert float64 to int"}, {true, true, ""}, {int64(1), false, "to bool"},
		{bigOne(63), uint64(1 << 63), ""}, {bigOne(64), uint64(0), "overflows"},
		{bigOne(64), bigOne(64), ""}, {2i, complex64(2i), ""},
		{"x", "x", ""}, {"x", []byte(nil), "cannot convert"}, {[]byte("x"), []byte("x"), ""},
		{python.Device("cpu"), "cpu", ""}, {nil, (*int)(nil), ""}, {nil, 0, "cannot convert None to int"},
		{[]any{int64(1), int64(2)}, []int{1, 2}, ""}, {python.Tuple{int64(1), int64(2)}, [2]int{1, 2}, ""},
		{python.Tuple{int64(1)}, [2]int{}, "cannot convert 1 values to [2]int"}, {[]any{"x"}, []int(nil), "item 0"},
		{python.Size{2, 3}, []int{2, 3}, ""}, {testutil.Value(python.NewSet(false, int64(4)))(t), []int{4}, ""},
		{python.Tuple{0.5, 0.25}, betas{A: 0.5, B: 0.25}, ""}, {python.Tuple{0.5}, betas{}, "a tuple of 1"},
		{python.Tuple{"x", 0.5}, betas{}, "field A"},
		{python.Tuple{0.5}, config{}, "a tuple of 1"}, {python.NewDict("k", int64(1)), map[string]int{"k": 1}, ""},
		{python.NewDict("k", "x"), map[string]int(nil), "value of k"},
		{python.NewDict("k", int64(1)), map[int]int(nil), "key k"},
		{python.NewDict("lr", 0.5), config{LR: 0.5}, ""},
		{python.NewDict("lr", 0.5, "unknown", nil), config{}, "has no field"},
		{python.NewDict("lr", "x"), config{}, "field lr"}, {python.NewDict(), 0, "to int"},
		{x, x, ""}, {&autograd.Param{T: x}, x, ""},
		{&python.Array{DType: "<i8", Shape: []int{1}, Data: make([]byte, 8)}, tensor.New(tensor.Int64, 1), ""},
		{&python.Scalar{DType: "<i2", Data: []byte{7, 0}}, 7, ""},
		{&python.Scalar{DType: "<f2", Data: []byte{0, 0}}, 0.0, "numpy number has unsupported dtype"},
		{&CUDATensor{}, x, "in GPU memory"},
	} {
		got := reflect.New(reflect.TypeOf(c.want))
		err := assign(got.Interface(), c.v)
		switch {
		case c.why != "" && (!errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), c.why)):
			t.Errorf("%T %v as %T: %v, where %q is meant", c.v, c.v, c.want, err, c.why)
		case c.why == "" && (err != nil || !alike(got.Elem().Interface(), c.want)):
			t.Errorf("%T %v as %T: %v, %v", c.v, c.v, c.want, got.Elem(), err)
		}
	}
}

// alike compares tensors by dtype and shape.
func alike(got, want any) bool {
	if w, ok := want.(*tensor.Tensor); ok {
		g := got.(*tensor.Tensor)
		return g.DType() == w.DType() && reflect.DeepEqual(g.Shape(), w.Shape())
	}
	return reflect.DeepEqual(got, want)
}

// TestAs_TakesNumbersOfNumpy reads each kind of number, in either byte order.
func TestAs_TakesNumbersOfNumpy(t *testing.T) {
	for _, c := range []struct {
		dtype string
		data  string
		want  any
	}{
		{"|b1", "\x01", true}, {"|i1", "\xff", int64(-1)}, {"|u1", "\xff", int64(255)},
		{"<i2", "\xfe\xff", int64(-2)}, {">i2", "\xff\xfe", int64(-2)}, {"<u2", "\xfe\xff", int64(65534)},
		{"<i4", "\xfd\xff\xff\xff", int64(-3)}, {"<u4", "\xfd\xff\xff\xff", int64(1<<32 - 3)},
		{"<i8", "\xff\xff\xff\xff\xff\xff\xff\xff", int64(-1)}, {"<u8", "\x05\x00\x00\x00\x00\x00\x00\x00", int64(5)},
		{"<u8", "\xff\xff\xff\xff\xff\xff\xff\xff", nil}, {"<f4", "\x00\x00\xc0\x3f", 1.5},
		{">f8", "\x3f\xf8\x00\x00\x00\x00\x00\x00", 1.5}, {"<f2", "\x00\x00", nil},
	} {
		got, err := value.NumberOf(&python.Scalar{DType: c.dtype, Data: []byte(c.data)})
		if got != c.want || (c.want == nil) != errors.Is(err, ErrUnsupported) {
			t.Errorf("%s %x is %v, not %v; %v", c.dtype, c.data, got, c.want, err)
		}
	}
}

// TestAs_TakesArraysOfNumpy copies tensors to arrays and back, and refuses dtypes that either side
// lacks.
func TestAs_TakesArraysOfNumpy(t *testing.T) {
	x := tensor.FromSlice([]int16{1, 2, 3, 4, 5, 6}, 2, 3)
	a := testutil.Value(value.ArrayOf(x.T()))(t)
	if a.DType != "<i2" || !reflect.DeepEqual(a.Shape, []int{3, 2}) {
		t.Errorf("%+v", a)
	}
	tensor.Bytes(x)[0] = 9 // a copy does not see it
	if y := testutil.Value(value.TensorOf(a))(t); !reflect.DeepEqual(elements(y), []float64{1, 4, 2, 5, 3, 6}) {
		t.Errorf("%v", y)
	}
	turned := &python.Array{DType: "<i2", Shape: []int{3, 2}, Fortran: true,
		Data: []byte{1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0}}
	if y := testutil.Value(value.TensorOf(turned))(t); !reflect.DeepEqual(elements(y), []float64{1, 4, 2, 5, 3, 6}) {
		t.Errorf("in the order of Fortran: %v", y)
	}
	if a, err := value.ArrayOf(tensor.New(tensor.BFloat16, 1)); !errors.Is(err, ErrUnsupported) {
		t.Errorf("bfloat16: %v, %v", a, err)
	}
	for _, a := range []*python.Array{{DType: ">i2", Shape: []int{1}, Data: make([]byte, 2)},
		{DType: "<i2", Shape: []int{2}, Data: make([]byte, 2)}, {DType: "<q9", Shape: []int{0}}} {
		if y, err := value.TensorOf(a); !errors.Is(err, ErrUnsupported) {
			t.Errorf("%+v: %v, %v", a, y, err)
		}
	}
}
