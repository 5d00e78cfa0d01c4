// Package ptx generates the kernels of package cuda as PTX text, which the driver compiles:
//
//	k, ok := ptx.Map("Add", ptx.Float32, ptx.Operand{Type: ptx.Float32}, ptx.Operand{Type: ptx.Float32, Number: true})
//	text := k.Text() // a module with the entries "dense" and "strided"
//
// There is one generator for each pattern of memory access, and tables of the operations that it
// applies. A kernel is for one operation and one combination of dtypes. Kernels need PTX 6.3 and
// compute capability 7.0, and so a driver from 2018 or later.
//
// # Arguments
//
// A kernel's arguments are an array of 8-byte words: first the ones documented at its constructor,
// then its layouts. A layout consists of the number of dimensions, [Dims] sizes, [Dims] reciprocals
// of the sizes, and [Dims] strides in bytes for each operand in memory; the innermost dimension
// comes first. Numbers of elements must fit in 31 bits.
//
// # Numbers
//
// Float16 and BFloat16 are computed in float32. Functions without a GPU instruction are computed in
// float64 with an error of a few ULPs; the error of Power also grows with the logarithm of its
// result. Tests run the kernels with package [github.com/shoal-mp/shoal/internal/cuda/sim/vm].
package ptx
