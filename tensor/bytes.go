package tensor

// Bytes returns the memory of the elements of a contiguous tensor of any dtype, in the order of the
// machine. It is borrowed, as [Data] is, and for what moves elements without computing with them:
// files and sockets. Bytes panics if t is not contiguous or is on a device. The bytes of a Bool
// tensor's elements are 0 or 1, and its writers keep them so.
func Bytes(t *Tensor) []byte {
	if !t.IsContiguous() {
		misuse("Bytes of a tensor that is not contiguous (strides %v): call Contiguous first", t.strides)
	}
	return t.span()
}
