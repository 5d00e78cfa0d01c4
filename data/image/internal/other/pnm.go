package other

import (
	"bufio"
	"errors"
	"fmt"
	"image"
	"image/color"
	"io"

	"github.com/shoal-mp/shoal/data/image/internal/pixel"
)

// isPNM reports whether b begins like a PPM or PGM file: a text header (P6 or P5, width, height and
// maximum value), followed by the bytes of the pixels. See
// https://netpbm.sourceforge.net/doc/ppm.html.

func isPNM(b []byte) bool {
	return len(b) > 2 && b[0] == 'P' && b[1] >= '1' && b[1] <= '6' && (isSpace(b[2]) || b[2] == '#')
}

func isSpace(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }

var errPNM = errors.New("malformed header")

// pnmHeader reads a header. kind is '5' for grey or '6' for color, and w and h are the size in
// pixels. The error wraps [pixel.ErrUnsupported] unless the pixels are binary bytes with values
// up to 255, or is one of pnmNumber.
func pnmHeader(in *bufio.Reader) (kind byte, w, h int, err error) {
	magic := make([]byte, 2)
	if _, err := io.ReadFull(in, magic); err != nil {
		return 0, 0, 0, err
	}
	var numbers [3]int
	for k := range numbers {
		if numbers[k], err = pnmNumber(in); err != nil {
			return 0, 0, 0, err
		}
	}
	kind, w, h = magic[1], numbers[0], numbers[1]
	if kind != '5' && kind != '6' || numbers[2] != 255 {
		return 0, 0, 0, fmt.Errorf("%w: P%c with numbers up to %d, want P5 or P6 with 255", pixel.ErrUnsupported, kind,
			numbers[2])
	}
	return kind, w, h, nil
}

// pnmNumber reads a number and the whitespace byte that follows it. It skips comments. The error
// is errPNM if the number is malformed or has more than nine digits, or is the error of in.
func pnmNumber(in *bufio.Reader) (n int, err error) {
	digits := 0
	for {
		c, err := in.ReadByte()
		switch {
		case err != nil:
			return 0, err
		case c >= '0' && c <= '9' && digits < 9:
			n, digits = 10*n+int(c-'0'), digits+1
		case isSpace(c) && digits > 0:
			return n, nil
		case c == '#' && digits == 0:
			if _, err := in.ReadString('\n'); err != nil {
				return 0, err
			}
		case !isSpace(c):
			return 0, errPNM
		}
	}
}

func pnmConfig(r io.Reader) (image.Config, error) {
	_, w, h, err := pnmHeader(bufio.NewReader(r))
	return image.Config{Width: w, Height: h, ColorModel: color.NRGBAModel}, err
}

func decodePNM(r io.Reader) (image.Image, error) {
	in := bufio.NewReader(r)
	kind, w, h, err := pnmHeader(in)
	if err != nil {
		return nil, err
	}
	if kind == '5' {
		m := image.NewGray(image.Rect(0, 0, w, h))
		_, err = io.ReadFull(in, m.Pix)
		return m, err
	}
	m := image.NewNRGBA(image.Rect(0, 0, w, h))
	row := make([]uint8, 3*w)
	for y := range h {
		if _, err := io.ReadFull(in, row); err != nil {
			return nil, err
		}
		for x := range w {
			copy(m.Pix[y*m.Stride+4*x:], row[3*x:3*x+3])
		}
	}
	return m, nil
}
