package hdf5

import (
	"bytes"
	"testing"
)

// Shuffled is what the format says, for elements of any size, and what is not a whole one stays at
// the end.
func TestShuffle_IsUndone(t *testing.T) {
	for element := 1; element <= 17; element++ {
		for _, n := range []int{0, 1, 2, 7, 64} {
			b := make([]byte, n*element+element/2)
			for i := range b {
				b[i] = byte(i)
			}
			there := shuffle(b, element, true)
			for i, v := range b[:n*element] {
				if got := there[i%element*n+i/element]; got != v {
					t.Fatalf("byte %d of elements of %d became %d", i, element, got)
				}
			}
			if !bytes.Equal(shuffle(there, element, false), b) {
				t.Errorf("%d elements of %d bytes do not come back", n, element)
			}
		}
	}
}
