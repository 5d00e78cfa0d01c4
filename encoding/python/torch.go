package python

// Size is a torch.Size: the number of elements in each dimension.
type Size []int

// Device is a torch.device by its name, such as "cpu" or "cuda:0".
type Device string

// Array is a numpy.ndarray. Data contains the bytes of its elements in row-major order, or in
// column-major order if Fortran is set. Its size must match DType and Shape.
type Array struct {
	DType   string // numpy's dtype.str: byte order, kind and size, such as "<f4" or "|b1"
	Shape   []int
	Fortran bool
	Data    []byte
}

// Scalar is a numpy scalar, such as numpy.float32(1). Data contains the bytes of its value.
type Scalar struct {
	DType string // as in Array
	Data  []byte
}
