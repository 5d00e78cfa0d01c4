package hdf5

import (
	"bytes"
	"testing"
)

// The hash of bytes by its author's own definition.
func TestLookup3_IsThatOfHDF5(t *testing.T) {
	count := make([]byte, 44)
	for i := range count {
		count[i] = byte(i)
	}
	for _, c := range []struct {
		b    []byte
		want uint32
	}{{nil, 0xdeadbeef}, {[]byte("Four score and seven years ago"), 0x17770551}, {[]byte("abc"), 0xe397631},
		{bytes.Repeat([]byte("x"), 12), 0x2e4ffe2b}, {count, 0x3a104df7}} {
		if got := lookup3(c.b); got != c.want {
			t.Errorf("%q: %#x, not %#x", c.b, got, c.want)
		}
	}
}
