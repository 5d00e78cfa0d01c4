// Package kernel implements the arithmetic of training on plain slices: matrix product,
// convolution, pooling, softmax, losses and the step of gradient descent, in float32 and float64.
//
// Kernels do not know tensors. A matrix is a row-major slice with its dimensions as separate
// arguments; a batch of images is (N, C, H, W). Kernels do not retain their arguments. The caller
// must allocate the outputs; temporary space comes from a [Scratch] that later calls reuse.
//
//	s := kernel.ConvShape{N: 64, C: 1, H: 28, W: 28, OutC: 10, KH: 5, KW: 5, StrideH: 1, StrideW: 1}
//	y := make([]float32, s.N*s.OutC*s.OutH()*s.OutW())
//	kernel.Conv2d(s, x, weight, bias, y, &scratch)
//
// A slice must have at least the size given by its dimensions; a shorter one is a programming error
// and panics. Elements beyond this size are ignored.
//
// The trap: some outputs are overwritten and others are added to, as documented for each function.
// Gradients of parameters (dw, db, [ColSum]) are added to, because gradients accumulate. Gradients
// of activations are overwritten.
package kernel
