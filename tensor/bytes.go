package tensor

// Bytes returns the memory of the elements of a contiguous tensor of any dtype, in the order of the
// machine. The slice is borrowed, as that of Data is. It is for code that moves elements and does
// not compute with them, such as files and sockets. Bytes panics if t is not contiguous or is on a
// device. The bytes of a Bool tensor are 0 or 1; write nothing else to them.
func Bytes(t *Tensor) []byte {
	if !t.IsContiguous() {
		misuse(ErrShape, "Bytes of a tensor that is not contiguous (strides %v): call Contiguous first", t.Strides())
	}
	return t.span()
}
