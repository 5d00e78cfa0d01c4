// Package pixel is the inner loops over pixels: what a decoder of images and a resampler spend
// their time in. An image is planes of bytes, one after the other; a row is a slice.
//
// Everything is exact arithmetic on integers, so every processor makes the same pixels: those of
// libjpeg's default decoding and of Pillow's resampling. SHOAL_KERNELS=portable turns the assembly
// off, as it does for package kernel.
//
// A slice that is shorter than the others say is a programmer's mistake and panics.
package pixel
