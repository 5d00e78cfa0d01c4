// Package png decodes PNG images into planes: all kinds of the standard, of 1 to 16 bits, with
// palettes, interlaced or not. What is transparent keeps its colour, and of 16 bits the upper eight
// remain.
//
// The whole file is in memory, and how many bytes its pixels have is known before they are
// decompressed: so package png has an inflater of its own, which needs no window and reads and
// writes words. Checksums of chunks are checked, the one of the compressed stream inside them is
// not.
package png
