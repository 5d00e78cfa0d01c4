// Package pixel contains the inner loops over pixels of image decoders and resampling. An image is
// a sequence of planes of bytes; a row is a slice.
//
// All loops use exact integer arithmetic, so every processor computes the same pixels as libjpeg's
// default decoding and Pillow's resampling. SHOAL_KERNELS=portable disables the assembly, as in
// package kernel.
//
// The functions panic if a slice is shorter than the other arguments require.
package pixel
