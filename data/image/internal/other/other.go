package other

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/color"
	"io"
	"runtime/debug"

	"golang.org/x/image/bmp"
	"golang.org/x/image/tiff"
	"golang.org/x/image/webp"

	"github.com/shoal-mp/shoal/data/image/internal/pixel"
)

// A format is a file format for images.
type format struct {
	name   string
	is     func(data []byte) bool
	config func(r io.Reader) (image.Config, error)
	decode func(r io.Reader) (image.Image, error)
}

var formats = []format{
	{"webp", isWebP, webp.DecodeConfig, webp.Decode},
	{"tiff", isTIFF, tiff.DecodeConfig, tiff.Decode},
	{"bmp", func(b []byte) bool { return bytes.HasPrefix(b, []byte("BM")) }, bmp.DecodeConfig, bmp.Decode},
	{"ppm", isPNM, pnmConfig, decodePNM},
}

func isWebP(b []byte) bool {
	return len(b) >= 12 && string(b[:4]) == "RIFF" && string(b[8:12]) == "WEBP"
}

func isTIFF(b []byte) bool {
	return bytes.HasPrefix(b, []byte("II*\x00")) || bytes.HasPrefix(b, []byte("MM\x00*"))
}

// unread maps the magic numbers of formats that are recognized but not supported to their names.
var unread = map[string]string{
	"GIF8": "GIF", "\x00\x00\x00\x0cJXL ": "JPEG XL", "\xff\x0a": "JPEG XL", "\x00\x00\x00\x0cjP  ": "JPEG 2000",
	"8BPS": "a file of Photoshop", "II+\x00": "BigTIFF", "MM\x00+": "BigTIFF",
}

// Knows reports whether Decode must be used for a file. This includes recognized formats that
// Decode rejects.
func Knows(data []byte) bool { return find(data) != nil || unreadName(data) != "" }

func find(data []byte) *format {
	for i := range formats {
		if formats[i].is(data) {
			return &formats[i]
		}
	}
	return nil
}

func unreadName(data []byte) string {
	for magic, name := range unread {
		if bytes.HasPrefix(data, []byte(magic)) {
			return name
		}
	}
	if len(data) >= 12 && string(data[4:8]) == "ftyp" {
		return "HEIF, AVIF or a video"
	}
	return ""
}

// Decode decodes a file into channels planes, 1 or 3, in the memory that place returns. The error
// is an [*encoding.FileError] that wraps an error of package pixel, or the error of place.
func Decode(data []byte, channels int, place pixel.Place) (err error) {
	f := find(data)
	if f == nil {
		return pixel.Decoding("image", 0, fmt.Errorf("%w: %s; save it as PNG, JPEG or WEBP", pixel.ErrUnsupported,
			unreadName(data)))
	}
	defer func() {
		if p := recover(); p != nil { // third-party decoders may panic
			err = fmt.Errorf("%w: %v\n%s", pixel.ErrCorrupt, p, debug.Stack())
		}
		if err != nil {
			err = pixel.Decoding(f.name, 0, err)
		}
	}()
	c, err := f.config(bytes.NewReader(data))
	if err != nil {
		return kindOf(err)
	}
	if c.Width < 1 || c.Height < 1 {
		return fmt.Errorf("%w: %d×%d pixels", pixel.ErrCorrupt, c.Height, c.Width)
	}
	dst, err := place(channels, c.Height, c.Width)
	if err != nil {
		return err
	}
	m, err := f.decode(bytes.NewReader(data))
	if err != nil {
		return kindOf(err)
	}
	if b := m.Bounds(); b.Dx() != c.Width || b.Dy() != c.Height {
		return fmt.Errorf("%w: its parts have different sizes", pixel.ErrCorrupt)
	}
	write(dst, m, channels)
	return nil
}

// kindOf wraps the error of a decoder in [pixel.ErrTruncated], [pixel.ErrUnsupported] or, if
// neither applies, [pixel.ErrCorrupt]. err must not be nil.
func kindOf(err error) error {
	var unsupported tiff.UnsupportedError
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("%w: %w", pixel.ErrTruncated, err)
	case errors.As(err, &unsupported), errors.Is(err, bmp.ErrUnsupported), errors.Is(err, pixel.ErrUnsupported):
		return fmt.Errorf("%w: %w", pixel.ErrUnsupported, err)
	}
	return fmt.Errorf("%w: %w", pixel.ErrCorrupt, err)
}

// write writes an image to channels planes, 1 or 3, of dst, and ignores its alpha channel. dst
// must have a byte for each pixel of each plane.
func write(dst []uint8, m image.Image, channels int) {
	b := m.Bounds()
	n := b.Dx() * b.Dy()
	if g, ok := m.(*image.Gray); ok {
		for y := range b.Dy() {
			copy(dst[y*b.Dx():][:b.Dx()], g.Pix[y*g.Stride:])
		}
		for c := 1; c < channels; c++ {
			copy(dst[c*n:][:n], dst[:n])
		}
		return
	}
	planes := dst
	if channels == 1 {
		planes = make([]uint8, 3*n)
	}
	splitImage(planes[:n], planes[n:2*n], planes[2*n:3*n], m)
	if channels == 1 {
		pixel.Gray(dst[:n], planes[:n], planes[n:2*n], planes[2*n:3*n])
	}
}

// splitImage writes an image to three planes of its size, and ignores its alpha channel.
func splitImage(r, g, b []uint8, m image.Image) {
	w, h := m.Bounds().Dx(), m.Bounds().Dy()
	switch m := m.(type) {
	case *image.NRGBA:
		for y := range h {
			splitPixels(r[y*w:], g[y*w:], b[y*w:], m.Pix[y*m.Stride:][:4*w])
		}
	case *image.YCbCr:
		webpColors(r, g, b, m)
	case *image.NYCbCrA:
		webpColors(r, g, b, &m.YCbCr)
	case *image.RGBA:
		if m.Opaque() {
			for y := range h {
				splitPixels(r[y*w:], g[y*w:], b[y*w:], m.Pix[y*m.Stride:][:4*w])
			}
			return
		}
		convert(r, g, b, m)
	default:
		convert(r, g, b, m)
	}
}

// splitPixels writes the first three bytes of each pixel of four bytes to r, g and b, and drops the
// alpha.
func splitPixels(r, g, b, pix []uint8) {
	for x := range len(pix) / 4 {
		r[x], g[x], b[x] = pix[4*x], pix[4*x+1], pix[4*x+2]
	}
}

// convert writes an image of any type to three planes, pixel by pixel.
func convert(r, g, b []uint8, m image.Image) {
	at, box := 0, m.Bounds()
	for y := box.Min.Y; y < box.Max.Y; y++ {
		for x := box.Min.X; x < box.Max.X; x++ {
			c := color.NRGBAModel.Convert(m.At(x, y)).(color.NRGBA)
			r[at], g[at], b[at] = c.R, c.G, c.B
			at++
		}
	}
}
