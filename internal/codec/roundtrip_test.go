package codec_test

import (
	"math"
	"math/big"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/shoal-mp/shoal/internal/codec"
)

type (
	level   int8
	label   string
	blob    []byte
	colour  uint8
	weights []float64

	layer struct {
		Name    label
		Weights weights
		Rate    float32
		Frozen  bool
	}
	tree struct {
		Value       int
		Left, Right *tree
	}
	forest []forest
	job    struct {
		Net    *layer
		Layers []layer
		Tags   map[string]int
		Grid   [2][3]int16
		Extra  any
		Cause  error
		Pause  time.Duration
		Start  time.Time
		Peer   netip.Addr
	}
	homebody struct {
		Sent  int
		Stays func() `wire:"-"`
		//lint:ignore U1000 a field that cannot cross is what is tested
		cache map[string]int
		_     int
	}
)

func checkRoundTrip[T any](t *testing.T, values ...T) {
	t.Helper()
	for _, v := range values {
		if got := roundTrip(t, v); !reflect.DeepEqual(got, v) {
			t.Errorf("%T: sent %#v, arrived %#v", v, v, got)
		}
	}
}

func TestEveryKindRoundTrips(t *testing.T) {
	checkRoundTrip(t, true, false)
	checkRoundTrip[int64](t, 0, 1, 127, 128, 255, 256, 65535, 65536, math.MaxInt32, math.MaxUint32,
		math.MaxUint32+1, math.MaxInt64)
	checkRoundTrip[int64](t, -1, -32, -33, -128, -129, -32768, -32769, math.MinInt32, math.MinInt32-1, math.MinInt64)
	checkRoundTrip[int8](t, math.MinInt8, math.MaxInt8)
	checkRoundTrip[int16](t, math.MinInt16, math.MaxInt16)
	checkRoundTrip[int32](t, math.MinInt32, math.MaxInt32)
	checkRoundTrip[int64](t, math.MinInt64, math.MaxInt64)
	checkRoundTrip[uint](t, 0, math.MaxUint)
	checkRoundTrip[uint8](t, 0, math.MaxUint8)
	checkRoundTrip[uint16](t, 0, math.MaxUint16)
	checkRoundTrip[uint32](t, 0, math.MaxUint32)
	checkRoundTrip[uint64](t, 0, math.MaxUint64)
	checkRoundTrip[float32](t, 0, -1.5, math.MaxFloat32, math.SmallestNonzeroFloat32, float32(math.Inf(1)))
	checkRoundTrip[float64](t, 0, -1.5, math.MaxFloat64, math.SmallestNonzeroFloat64, math.Inf(-1))
	checkRoundTrip[complex64](t, 0, 1+2i)
	checkRoundTrip[complex128](t, 0, -1.5+2.25i)
	checkRoundTrip(t, "", "shoal", strings.Repeat("x", 31), strings.Repeat("x", 32), strings.Repeat("x", 256),
		strings.Repeat("é", 40000), "\xff\xfe not UTF-8")
	checkRoundTrip(t, []byte(nil), []byte{}, []byte{0, 255}, make([]byte, 256), make([]byte, 1<<16))
	checkRoundTrip(t, []int(nil), []int{}, []int{1, -2, 3}, make([]int, 16), make([]int, 1<<16))
	checkRoundTrip(t, [3]string{"a", "", "c"})
	checkRoundTrip(t, [4]byte{1, 2, 3, 4})
	checkRoundTrip(t, [0]int{})
	checkRoundTrip(t, []struct{}{{}, {}})
	checkRoundTrip(t, map[string]int(nil), map[string]int{}, map[string]int{"b": 1, "a": 2, "aa": 3})
	checkRoundTrip(t, map[int][]string{-1: {"x"}, 0: nil, 70000: {}})
	checkRoundTrip(t, map[[2]int8]bool{{1, 2}: true, {-1, 0}: false})
	checkRoundTrip(t, map[netip.Addr]int{netip.MustParseAddr("10.0.0.1"): 1, netip.MustParseAddr("::1"): 2})
}

func TestNamedTypesRoundTrip(t *testing.T) {
	checkRoundTrip[level](t, -3)
	checkRoundTrip[label](t, "fc1")
	checkRoundTrip(t, blob("bytes"), blob(nil))
	checkRoundTrip(t, []colour{1, 2, 3})
	checkRoundTrip(t, weights{0.5, -0.25})
}

func TestStructsAndPointersRoundTrip(t *testing.T) {
	one, nothing := 1, (*int)(nil)
	checkRoundTrip(t, &one, nil)
	pp := &nothing
	checkRoundTrip(t, pp, nil, new(&one)) // a nil pointer and a pointer to one differ
	checkRoundTrip(t, new([]int(nil)), new([]int{}))
	checkRoundTrip(t, layer{"fc1", weights{1, 2}, 0.1, true})
	checkRoundTrip(t, tree{1, &tree{2, nil, &tree{Value: 3}}, nil})
	checkRoundTrip(t, forest{{}, {{}, nil}})
	checkRoundTrip(t, job{
		Net:    &layer{Name: "a"},
		Layers: []layer{{Name: "b"}, {Rate: 1}},
		Tags:   map[string]int{"x": 1},
		Grid:   [2][3]int16{{1, 2, 3}, {-1, -2, -3}},
		Extra:  []any{1, "two", 3.0, nil, map[string]any{"four": uint8(4)}},
		Pause:  time.Second,
		Start:  time.Date(2025, 2, 3, 4, 5, 6, 7, time.UTC),
		Peer:   netip.MustParseAddr("192.0.2.1"),
	})
}

func TestTaggedFieldsStayAtHome(t *testing.T) {
	type outer struct {
		Sent  int
		Stays func()         `wire:"-"`
		cache map[string]int `wire:"-"`
	}
	got := roundTrip(t, outer{Sent: 7, Stays: func() {}, cache: map[string]int{"x": 1}})
	if got.Sent != 7 || got.Stays != nil || got.cache != nil {
		t.Errorf("arrived %+v", got)
	}
	if err := codec.Check[homebody](); err == nil {
		t.Error("an unexported field without the tag was accepted")
	}
}

func TestTimesKeepTheInstant(t *testing.T) {
	zone := time.FixedZone("", 3600)
	for _, at := range []time.Time{
		{}, time.Unix(0, 0), time.Unix(1<<32-1, 0), time.Unix(1<<32, 0), time.Unix(1<<34-1, 999999999),
		time.Unix(1<<34, 1),
		time.Unix(-1, 5), time.Date(2025, 1, 2, 3, 4, 5, 6, zone), time.Now(),
	} {
		got := roundTrip(t, at)
		if !got.Equal(at) || got.Location() != time.UTC {
			t.Errorf("%v arrived as %v", at, got)
		}
	}
	if !roundTrip(t, time.Time{}).IsZero() {
		t.Error("the zero time arrived as another")
	}
}

func TestNaNKeepsItsBits(t *testing.T) {
	const signalling32, signalling64 = 0x7fa00001, 0x7ff4000000000001
	type reading float32
	if got := math.Float32bits(roundTrip(t, math.Float32frombits(signalling32))); got != signalling32 {
		t.Errorf("float32 %x", got)
	}
	if got := math.Float32bits(float32(roundTrip(t,
		[]reading{reading(math.Float32frombits(signalling32))})[0])); got != signalling32 {
		t.Errorf("reading %x", got)
	}
	if got := math.Float64bits(roundTrip(t, math.Float64frombits(signalling64))); got != signalling64 {
		t.Errorf("float64 %x", got)
	}
	c := roundTrip(t, complex(math.Float32frombits(signalling32), 1))
	if got := math.Float32bits(real(c)); got != signalling32 {
		t.Errorf("complex64 %x", got)
	}
	if got := math.Float64bits(roundTrip(t, math.Copysign(0, -1))); got != 1<<63 {
		t.Errorf("minus zero %x", got)
	}
	if n := len(roundTrip(t, map[float64]int{math.NaN(): 1, math.Float64frombits(signalling64): 2})); n != 2 {
		t.Errorf("a map with two NaN arrived with %d entries", n)
	}
}

func TestTypesThatMarshalThemselvesRoundTrip(t *testing.T) {
	n, _ := new(big.Int).SetString("123456789012345678901234567890", 10)
	if got := roundTrip(t, n); got.Cmp(n) != 0 {
		t.Errorf("big.Int arrived as %v", got)
	}
	if got := roundTrip(t, []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}); got[0].String() != "10.0.0.0/8" {
		t.Errorf("netip.Prefix arrived as %v", got)
	}
}

func TestEqualMapsAreEqualBytes(t *testing.T) {
	m := make(map[string][]*buffer)
	for i := range 50 {
		m[strings.Repeat("k", i)] = []*buffer{{block: 100 - 1, length: i}, {block: 200 + 1, length: i}}
	}
	first := encode(t, m)
	for range 20 {
		if again := encode(t, m); !reflect.DeepEqual(again, first) {
			t.Fatal("the same map was written in two ways")
		}
	}
}

func TestLargeElementsArriveInGrowingSlices(t *testing.T) {
	type wide struct {
		A     *int
		B     [0]int
		Bulk  *[1000]int
		Lists [40][]int
	}
	in := make([]wide, 300)
	for i := range in {
		in[i].A = new(i)
		in[i].Lists[39] = []int{i}
	}
	checkRoundTrip(t, in)
}
