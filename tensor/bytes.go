package tensor

// Bytes returns the memory of a contiguous tensor of any dtype, in the byte order of the machine.
// The slice is borrowed under the same conditions as the slice of [Data]. Bytes is for code that
// moves elements without computing, such as files and sockets. It panics if t is not contiguous or
// is on a device. The bytes of a Bool tensor must be 0 or 1; the caller must not write other
// values.
func Bytes(t *Tensor) []byte {
	if !t.IsContiguous() {
		misuse(ErrShape, "Bytes: tensor with strides %v is not contiguous: call Contiguous first", t.Strides())
	}
	return t.contiguousBytes()
}
