// Package png decodes PNG images into planes: all variants of the standard, 1 to 16 bits, with
// palettes, interlaced or not. Alpha is ignored, and 16-bit samples are truncated to their upper
// eight bits.
//
// The package has its own inflater, because the whole file is in memory and the size of the pixels
// is known before decompression: it needs no window, and reads and writes words. Checksums of
// chunks are verified, but not the checksum in the compressed stream.
package png
