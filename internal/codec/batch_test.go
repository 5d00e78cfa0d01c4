package codec_test

import (
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/shoal-mp/shoal/internal/codec"
)

type point struct {
	X, Y float32
	N    int64
}

type padded struct {
	Small int8
	Wide  int64
}

type named struct {
	Name string
	On   bool
}

type partial struct {
	N    int64
	Here int64 `wire:"-"`
}

type outer struct {
	P    point
	Part partial
}

func encodeBatch[T any](t testing.TB, limits codec.Limits, vs []T) ([]byte, error) {
	t.Helper()
	plan, err := codec.PlanOf[T]()
	if err != nil {
		t.Fatal(err)
	}
	e := codec.Encoder{Limits: limits}
	e.Reset(nil)
	err = plan.EncodeAll(&e, vs)
	e.Done(err == nil)
	return e.Message().Body, err
}

func decodeBatch[T any](t testing.TB, body []byte, n int) ([]T, error) {
	t.Helper()
	plan, err := codec.PlanOf[T]()
	if err != nil {
		t.Fatal(err)
	}
	var d codec.Decoder
	d.Reset(codec.Message{Body: body}, nil)
	vs, err := plan.DecodeN(&d, n)
	if err == nil {
		err = d.Finish()
	}
	d.Done(err == nil)
	return vs, err
}

// testBatch sends a batch, with the given number of bytes if that is not 0.
func testBatch[T any](t *testing.T, bytes int, in ...T) {
	t.Helper()
	body, err := encodeBatch(t, codec.Limits{}, in)
	if err != nil {
		t.Fatal(err)
	}
	if bytes != 0 && len(body) != bytes {
		t.Errorf("%d %Ts are %d bytes, want %d", len(in), in, len(body), bytes)
	}
	out, err := decodeBatch[T](t, body, len(in))
	if err != nil || !reflect.DeepEqual(out, in) {
		t.Errorf("%v came back as %v, %v", in, out, err)
	}
	for _, n := range []int{-1, len(in) - 1, len(in) + 1, math.MaxInt} {
		if _, err := decodeBatch[T](t, body, n); !errors.Is(err, codec.ErrFormat) {
			t.Errorf("%d values read as %d: %v", len(in), n, err)
		}
	}
	for cut := range body {
		if _, err := decodeBatch[T](t, body[:cut], len(in)); !errors.Is(err, codec.ErrFormat) {
			t.Errorf("%d of %d bytes: %v", cut, len(body), err)
		}
	}
}

func TestEncodeAll_ComesBack(t *testing.T) {
	testBatch(t, 2+3*8, 1, -2, math.MaxInt)
	testBatch(t, 2+2*16, point{1, 2, 3}, point{-1, float32(math.Inf(1)), math.MinInt64})
	testBatch(t, 2+2*16, complex(1, 2), complex(3, 4))
	testBatch(t, 2+3, uint8(0), uint8(7), uint8(255))
	testBatch(t, 0, padded{1, 2}, padded{-3, 4})
	testBatch(t, 0, named{"a", true}, named{"ü", false})
	testBatch(t, 0, partial{N: 1}, partial{N: 2})
	testBatch(t, 0, true, false)
	testBatch(t, 0, struct{}{}, struct{}{}, struct{}{})
	testBatch(t, 0, time.Unix(1, 2).UTC(), time.Unix(3, 4).UTC())
	testBatch(t, 0, []int{1, 2}, []int{}, nil)
	testBatch(t, 0, map[string]int{"a": 1})
}

// What is not sent is not in a batch either.
func TestEncodeAll_LeavesFieldsOut(t *testing.T) {
	body, err := encodeBatch(t, codec.Limits{}, []partial{{1, 2}, {3, 4}})
	if err != nil {
		t.Fatal(err)
	}
	out, err := decodeBatch[partial](t, body, 2)
	if want := []partial{{N: 1}, {N: 3}}; err != nil || !reflect.DeepEqual(out, want) {
		t.Errorf("got %v, %v, want %v", out, err, want)
	}
}

// A batch that would exceed the limit as memory is written in the shorter form, which may fit.
func TestEncodeAll_KeepsTheLimit(t *testing.T) {
	small := make([]int, 100)
	body, err := encodeBatch(t, codec.Limits{Bytes: 200}, small)
	if err != nil || len(body) != len(small) {
		t.Fatalf("%d zeros are %d bytes, %v", len(small), len(body), err)
	}
	if out, err := decodeBatch[int](t, body, len(small)); err != nil || !reflect.DeepEqual(out, small) {
		t.Errorf("got %v, %v", out, err)
	}
	if _, err := encodeBatch(t, codec.Limits{Bytes: 99}, small); !errors.Is(err, codec.ErrTooLong) {
		t.Errorf("%d zeros in 99 bytes: %v", len(small), err)
	}
	long := []string{strings.Repeat("x", 60), strings.Repeat("y", 60)}
	if _, err := encodeBatch(t, codec.Limits{Bytes: 100}, long); !errors.Is(err, codec.ErrTooLong) {
		t.Errorf("120 letters in 100 bytes: %v", err)
	}
}

func TestPlan_Copied(t *testing.T) {
	for _, c := range []struct {
		name string
		got  bool
		want bool
	}{
		{"int", copied[int](t), true},
		{"string", copied[string](t), true},
		{"struct", copied[named](t), true},
		{"struct with padding", copied[padded](t), true},
		{"field left out", copied[partial](t), false},
		{"field of a field left out", copied[outer](t), false},
		{"time", copied[time.Time](t), false},
		{"slice", copied[[]int](t), false},
		{"pointer", copied[*int](t), false},
		{"map", copied[map[string]int](t), false},
		{"interface", copied[any](t), false},
		{"custom pointer", copied[*ticket](t), false},
		{"error", copied[error](t), false},
	} {
		if c.got != c.want {
			t.Errorf("%s: copied is %v, want %v", c.name, c.got, c.want)
		}
	}
}

func copied[T any](t *testing.T) bool {
	t.Helper()
	plan, err := codec.PlanOf[T]()
	if err != nil {
		t.Fatal(err)
	}
	return plan.Copied()
}

// FuzzDecodeN feeds hostile bytes to the reader of batches.
func FuzzDecodeN(f *testing.F) {
	ints, _ := encodeBatch(f, codec.Limits{}, []int{1, -2, 300})
	points, _ := encodeBatch(f, codec.Limits{}, []point{{1, 2, 3}})
	names, _ := encodeBatch(f, codec.Limits{}, []named{{"a", true}})
	f.Add(ints, 3)
	f.Add([]byte{1, 2, 3}, 3)
	f.Add(points, 1)
	f.Add(names, 1)
	f.Fuzz(func(t *testing.T, body []byte, n int) {
		checkBatch[int](t, body, n)
		checkBatch[point](t, body, n)
		checkBatch[padded](t, body, n)
		checkBatch[named](t, body, n)
	})
}

// checkBatch decodes a batch, and if it is well-formed, encodes and decodes it again.
func checkBatch[T any](t *testing.T, body []byte, n int) {
	vs, err := decodeBatch[T](t, body, n)
	if err != nil {
		return
	}
	if len(vs) != n || n > len(body) {
		t.Fatalf("%d values of %T in %d bytes, want %d", len(vs), vs, len(body), n)
	}
	again, err := encodeBatch(t, codec.Limits{}, vs)
	if err != nil {
		t.Fatal(err)
	}
	twice, err := decodeBatch[T](t, again, n)
	if err != nil || len(twice) != n {
		t.Errorf("%v came back as %v, %v", vs, twice, err)
	}
}
