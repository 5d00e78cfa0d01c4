package codec_test

import (
	"bytes"
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/shamaton/msgpack/v3"
	"pgregory.net/rapid"
)

// A sample has one field for each form of MessagePack.
type sample struct {
	Bool    bool
	Int     int64
	Uint    uint64
	Float32 float32
	Float64 float64
	Text    string
	Bytes   []byte
	Ints    []int64
	Map     map[string]int64
	Time    time.Time
	Nested  []pairOf
}

type pairOf struct {
	Left  string
	Right *int32
}

func drawSample(t *rapid.T) sample {
	return sample{
		Bool:    rapid.Bool().Draw(t, "bool"),
		Int:     rapid.Int64().Draw(t, "int"),
		Uint:    rapid.Uint64().Draw(t, "uint"),
		Float32: rapid.Float32().Draw(t, "float32"),
		Float64: rapid.Float64().Draw(t, "float64"),
		Text:    rapid.String().Draw(t, "text"),
		Bytes:   rapid.SliceOf(rapid.Byte()).Draw(t, "bytes"),
		Ints:    rapid.SliceOf(rapid.Int64()).Draw(t, "ints"),
		Map:     rapid.MapOf(rapid.String(), rapid.Int64()).Draw(t, "map"),
		Time: time.Unix(rapid.Int64Range(-1<<40, 1<<40).Draw(t, "sec"),
			rapid.Int64Range(0, 999999999).Draw(t, "nsec")).UTC(),
		Nested: rapid.SliceOf(rapid.Custom(func(t *rapid.T) pairOf {
			return pairOf{Left: rapid.String().Draw(t, "left"), Right: rapid.Ptr(rapid.Int32(), true).Draw(t, "right")}
		})).Draw(t, "nested"),
	}
}

// A MessagePack library that is not ours reads what we write and gets the same value.
func TestAnotherLibraryReadsWhatWeWrite(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		in := drawSample(rt)
		var got sample
		if err := msgpack.UnmarshalAsArray(encode(t, in).Body, &got); err != nil {
			rt.Fatal(err)
		}
		got.Time = got.Time.UTC()
		if !reflect.DeepEqual(got, in) {
			rt.Fatalf("we wrote %+v, the library read %+v", in, got)
		}
	})
}

// It writes the very same bytes.
func TestAnotherLibraryWritesTheSameBytes(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		in := drawSample(rt)
		in.Map = nil // it does not sort the keys
		want, err := msgpack.MarshalAsArray(in)
		if err != nil {
			rt.Fatal(err)
		}
		if got := encode(t, in).Body; !bytes.Equal(got, want) {
			rt.Fatalf("%+v\nwe wrote %x\nlibrary  %x", in, got, want)
		}
	})
}

func TestWeReadWhatAnotherLibraryWrites(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		in := drawSample(rt)
		body, err := msgpack.MarshalAsArray(in)
		if err != nil {
			rt.Fatal(err)
		}
		got, err := decode[sample](t, messageOf(body), nil)
		if err != nil || !reflect.DeepEqual(got, in) {
			rt.Fatalf("the library wrote %+v, we read %+v, %v", in, got, err)
		}
	})
}

func TestDrawnValuesRoundTrip(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		in := drawSample(rt)
		if got := roundTrip(t, in); !reflect.DeepEqual(got, in) {
			rt.Fatalf("sent %+v, arrived %+v", in, got)
		}
	})
}

func FuzzRoundTrip(f *testing.F) {
	f.Add(int64(-1), uint64(1), 0.5, "text", []byte("bytes"), true)
	f.Add(int64(math.MinInt64), uint64(math.MaxUint64), math.Inf(1), "\xff", []byte{}, false)
	f.Fuzz(func(t *testing.T, i int64, u uint64, x float64, s string, b []byte, yes bool) {
		in := sample{Bool: yes, Int: i, Uint: u, Float32: float32(x), Float64: x, Text: s, Bytes: b,
			Ints: []int64{i, -i}, Map: map[string]int64{s: i, s + "x": -i}, Time: time.Unix(i>>8, int64(u%1e9)).UTC(),
			Nested: []pairOf{{Left: s, Right: new(int32(i))}, {}}}
		got := roundTrip(t, in) // compares the bytes, so NaN too
		if got.Text != s || got.Int != i || !got.Time.Equal(in.Time) {
			t.Errorf("sent %+v, arrived %+v", in, got)
		}
	})
}
