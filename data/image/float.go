package image

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/shoal-mp/shoal/data/image/internal/pixel"
)

// Mean and standard deviation of ImageNet's pixels scaled to [0, 1], for [Normalize].
var (
	MeanOfImageNet = []float32{0.485, 0.456, 0.406}
	StdOfImageNet  = []float32{0.229, 0.224, 0.225}
)

// ToTensor converts pixels to float32 from 0 to 1.
var ToTensor = Normalize{}

// An Arithmetic is the order of the operations in [Normalize], which determines the last bit of the
// result.
type Arithmetic uint8

const (
	Fused Arithmetic = iota // one multiplication and one addition per pixel, the fastest
	// x/255, then minus Mean, then divided by Std: torchvision's ToTensor or ConvertImageDtype,
	// followed by Normalize
	Divided
	// x·(1/255), then as above: torchvision's v2.ToDtype(torch.float32, scale=True) and Normalize
	Scaled
	Unscaled // x from 0 to 255, then as above: v2.ToDtype(torch.float32) and Normalize
)

// Normalize converts pixels to float32: (x/255 - Mean) / Std. Mean and Std must have one number for
// each plane, or one for all; nil means 0 and 1, as in [ToTensor]. Afterwards the image has Numbers
// instead of Pix. Only [RandomErasing], and a Normalize with a Mean or Std, can follow; the latter
// computes (x - Mean) / Std.
//
// With an Arithmetic other than [Fused] the results equal PyTorch's bit for bit.
type Normalize struct {
	Mean, Std []float32
	As        Arithmetic
}

// Apply converts the pixels of im to im.Numbers. The error wraps [ErrSize] if im has no pixels,
// or if the length of Mean or Std does not fit its planes.
func (s Normalize) Apply(im *Image, _ *rand.Rand) error {
	again := im.Pix == nil && im.Numbers != nil && len(s.Mean)+len(s.Std) > 0
	if !again {
		if err := checkCropSize(im, 1, 1); err != nil {
			return err
		}
		im.makeNumbers()
	}
	for c := range im.C {
		mean, err := planeNumber(s.Mean, c, im.C, 0)
		if err != nil {
			return err
		}
		std, err := planeNumber(s.Std, c, im.C, 1)
		if err != nil {
			return err
		}
		numbers := im.Numbers[c*im.H*im.W:][:im.H*im.W]
		switch {
		case again:
			for i, x := range numbers {
				numbers[i] = (x - mean) / std
			}
		case s.As == Fused:
			pixel.Float(numbers, im.plane(c), 1/(255*std), -mean/std)
		default:
			convertBytes(numbers, im.plane(c), im.conversionTable(c, rounding{s.As, mean, std}))
		}
	}
	im.Pix = nil
	return nil
}

// makeNumbers sets im.Numbers to C·H·W undefined numbers: the row of the batch if it fits, and
// otherwise memory of im.
func (im *Image) makeNumbers() {
	n := im.C * im.H * im.W
	if len(im.numbers) == n {
		im.Numbers = im.numbers
		return
	}
	im.floats = resizeSlice(im.floats, n)
	im.Numbers = im.floats
}

// A rounding holds the parameters of the conversion from bytes.
type rounding struct {
	as        Arithmetic
	mean, std float32
}

// A table maps each byte to its converted value.
type table struct {
	rounding
	of [256]float32
}

// conversionTable returns the value of each byte in plane c under r. It is valid until the next
// call for that plane with other parameters, and cached for the next image.
func (im *Image) conversionTable(c int, r rounding) *[256]float32 {
	for len(im.tables) <= c {
		im.tables = append(im.tables, table{})
	}
	t := &im.tables[c]
	if t.rounding == r {
		return &t.of
	}
	t.rounding = r
	for i := range t.of {
		x := float32(i)
		switch r.as {
		case Divided:
			x /= 255
		case Scaled:
			x = float32(x * (1. / 255))
		}
		t.of[i] = float32(x-r.mean) / r.std
	}
	return &t.of
}

// convertBytes sets dst[i] to the table's value for src[i]. dst must be at least as long as src.
func convertBytes(dst []float32, src []uint8, table *[256]float32) {
	dst = dst[:len(src)]
	for i, v := range src {
		dst[i] = table[v]
	}
}

// planeNumber returns the number for plane c, or none if there are no numbers. A single number
// applies to all planes. Otherwise there must be one for each plane, or the error wraps
// [ErrSize].
func planeNumber(numbers []float32, c, planes int, none float32) (float32, error) {
	switch len(numbers) {
	case 0:
		return none, nil
	case 1:
		return numbers[0], nil
	case planes:
		return numbers[c], nil
	}
	return 0, fmt.Errorf("%w: got %d numbers for %d planes", ErrSize, len(numbers), planes)
}

// RandomErasing sets a random rectangle of the image to Value, with probability P. Zero values of
// Scale and Ratio mean torchvision's defaults, 0.02 to 0.33 and 0.3 to 3.3. Value is a float32
// after [Normalize], and is converted to a byte before.
type RandomErasing struct {
	P            float64    // probability
	Scale, Ratio [2]float64 // ranges of the area as a fraction of the image, and of height/width
	Value        float32    // value of the erased pixels
}

// Apply erases a rectangle of im with probability s.P. If ten rectangles drawn from r do not
// fit, it leaves im unchanged. The error is always nil.
func (s RandomErasing) Apply(im *Image, r *rand.Rand) error {
	if r.Float64() >= s.P {
		return nil
	}
	scale, ratio := s.Scale, s.Ratio
	if scale == [2]float64{} {
		scale = [2]float64{0.02, 0.33}
	}
	if ratio == [2]float64{} {
		ratio = [2]float64{0.3, 3.3}
	}
	for range 10 {
		area := float64(im.H*im.W) * drawUniform(r, scale[0], scale[1])
		aspect := math.Exp(drawUniform(r, math.Log(ratio[0]), math.Log(ratio[1])))
		h, w := int(math.RoundToEven(math.Sqrt(area*aspect))), int(math.RoundToEven(math.Sqrt(area/aspect)))
		if h < im.H && w < im.W {
			im.eraseRect(r.IntN(im.H-h+1), r.IntN(im.W-w+1), h, w, s.Value)
			return nil
		}
	}
	return nil
}

// eraseRect sets the h×w pixels that begin in row y and column x to value in all channels. They
// must be within the image. If the image has bytes instead of float numbers, the fraction of value
// is dropped, and value must be from 0 to 255.
func (im *Image) eraseRect(y, x, h, w int, value float32) {
	for c := range im.C {
		for i := range h {
			from := (c*im.H+y+i)*im.W + x
			if im.Numbers != nil {
				fill(im.Numbers[from:][:w], value)
			} else {
				fill(im.Pix[from:][:w], uint8(value))
			}
		}
	}
}

func fill[T any](s []T, v T) {
	for i := range s {
		s[i] = v
	}
}
