package data

import "testing"

func TestLending_HasFewSizes(t *testing.T) {
	sizes := map[int]bool{}
	for n := 0; n < 1<<24; n += 1009 {
		size := lentSize(n)
		if size < max(1, n) || size > n+n/8+4096 {
			t.Fatalf("%d bytes are lent as %d", n, size)
		}
		sizes[size] = true
	}
	if len(sizes) > 100 {
		t.Errorf("%d sizes", len(sizes))
	}
}
