package sys

// hugeFrom is how much memory is asked for in huge pages, as numpy does it.
const hugeFrom = 4 << 20

// HeapBytes returns n zeros on Go's heap. Where they are many they come in huge pages, which the heap does not ask for by itself: the
// faults of small ones cost more than filling them.
func HeapBytes(n int) []byte {
	b := make([]byte, n)
	if n >= hugeFrom {
		wantHugePages(b)
	}
	return b
}
