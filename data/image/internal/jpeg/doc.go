// Package jpeg decodes JPEG images into planes: baseline and progressive, 8 bits per sample, in
// grey, YCbCr, RGB, CMYK and YCCK, with any subsampling. The pixels equal libjpeg's default output
// bit for bit. CMYK is converted to RGB as in Pillow.
//
//	var d jpeg.Decoder // keeps its buffers for the next image
//	err := d.Decode(data, 3, func(c, h, w int) ([]uint8, error) { return make([]uint8, c*h*w), nil })
//
// A truncated file is an error; no partial image is returned.
package jpeg
