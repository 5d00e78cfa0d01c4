//go:build !race

// The race detector makes sync.Pool drop values on purpose, so allocations are counted without it.

package codec_test

import (
	"testing"

	"github.com/shoal-mp/shoal/internal/codec"
)

func TestEncodingAllocatesNothing(t *testing.T) {
	v := &view{block: 7, length: 1}
	checkEncodeAllocs(t, v)
	checkEncodeAllocs(t, *v)
	checkEncodeAllocs(t, batch{v})
	checkEncodeAllocs(t, oneTask)
	checkEncodeAllocs(t, 5)
	checkEncodeAllocs(t, "text")
}

func checkEncodeAllocs[T any](t *testing.T, v T) {
	t.Helper()
	p := planOf[T](t)
	var e codec.Encoder
	buf := make([]byte, 0, 256)
	if n := testing.AllocsPerRun(100, func() {
		e.Reset(buf)
		if err := p.Encode(&e, v); err != nil {
			t.Fatal(err)
		}
		e.Done(true)
	}); n != 0 {
		t.Errorf("%T: %v allocations", v, n)
	}
}

func TestDecodingAllocatesOnlyTheValue(t *testing.T) {
	v := &view{block: 7, length: 1}
	checkDecodeAllocs(t, v, 1)
	checkDecodeAllocs(t, *v, 0)
	checkDecodeAllocs(t, batch{v}, 1)
	checkDecodeAllocs(t, oneTask, 2) // its string and its slice
	checkDecodeAllocs(t, 5, 0)
}

func checkDecodeAllocs[T any](t *testing.T, v T, want float64) {
	t.Helper()
	p, m := planOf[T](t), encode(t, v)
	var d codec.Decoder
	var blocks codec.Blocks = keeper{7}
	if n := testing.AllocsPerRun(100, func() {
		d.Reset(m, blocks)
		if _, err := p.Decode(&d); err != nil {
			t.Fatal(err)
		}
		d.Done(true)
	}); n > want {
		t.Errorf("%T: %v allocations, want %v", v, n, want)
	}
}
