// Package ptx writes the text of the kernels by which package cuda computes, for the driver to
// translate:
//
//	k, ok := ptx.Map("Add", ptx.Float32, ptx.Operand{Type: ptx.Float32}, ptx.Operand{Type: ptx.Float32, Number: true})
//	text := k.Text() // a module with the entries "dense" and "strided"
//
// There is one mechanism for each way of going through memory, and tables of what is done on the
// way. A text is for one operation and one combination of dtypes. It asks for PTX 6.3 and compute
// capability 7.0, and so for a driver of 2018.
//
// # Arguments
//
// Those of a kernel are one array of words of 8 bytes. First come those that its constructor names,
// then those of its layouts: the number of dimensions, [Dims] sizes and as many of their
// reciprocals, and [Dims] strides in bytes for each operand in memory; the innermost dimension
// first. Numbers of elements fit into 31 bits.
//
// # Numbers
//
// Float16 and BFloat16 are computed in float32. Functions that a processor has no instruction for
// are computed in float64, with an error of a few units in its last place, and as many times as
// many as the logarithm of what Power returns. Package
// [github.com/shoal-mp/shoal/internal/cuda/sim/vm] runs the texts in tests.
package ptx
