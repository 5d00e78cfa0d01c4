// Package jpeg decodes JPEG images into planes: baseline and progressive, of eight bits, in grey,
// YCbCr, RGB, CMYK and YCCK, with any subsampling. The pixels are those of libjpeg's default
// decoding, to the last bit; CMYK becomes RGB as Pillow makes it.
//
//	var d jpeg.Decoder // keeps its buffers for the next image
//	err := d.Decode(data, 3, func(c, h, w int) ([]uint8, error) { return make([]uint8, c*h*w), nil })
//
// The trap: a file that ends early is an error, not half a picture.
package jpeg
