// Package kernel is the arithmetic of training on plain slices: matrix product, convolution,
// pooling, softmax, losses and the step of gradient descent, in float32 and float64.
//
// A kernel knows no tensor: a matrix is a slice in row-major order with its dimensions beside it,
// an image batch is (N, C, H, W). It neither keeps nor allocates what it is given: outputs belong
// to the caller, temporary space comes from a [Scratch] that is used again by the next call.
//
//	s := kernel.ConvShape{N: 64, C: 1, H: 28, W: 28, OutC: 10, KH: 5, KW: 5, StrideH: 1, StrideW: 1}
//	y := make([]float32, s.N*s.OutC*s.OutH()*s.OutW())
//	kernel.Conv2d(s, x, weight, bias, y, &scratch)
//
// A slice that is shorter than its dimensions say is a programmer's mistake and panics; a longer
// one is used up to its length by those dimensions.
//
// The trap: whether an output is overwritten or added to differs, as each comment says. What
// belongs to a parameter (dw, db, [ColSum]) is added to, since gradients accumulate; what belongs
// to an activation is overwritten.
package kernel
