package vision

import (
	"math"

	"github.com/shoal-mp/shoal/data/image"
)

func grayscale(f *fields, r *route) {
	n := f.readNumber("num_output_channels")
	if n != 1 && n != 3 {
		f.refuse("num_output_channels is %v, want 1 or 3", n)
	}
	r.appendColorStep(f, image.Grayscale(int(n)))
	r.channels = int(n)
}

// randomGrayscale is the builder of RandomGrayscale, which converts to gray with a probability
// and keeps the number of channels.
func randomGrayscale(f *fields, r *route) {
	r.appendColorStep(f, image.RandomApply(f.readProbability("p"), image.Grayscale(r.channels)))
}

func colorJitter(f *fields, r *route) {
	s := image.ColorJitter{Brightness: f.readFactor("brightness"), Contrast: f.readFactor("contrast"),
		Saturation: f.readFactor("saturation"), Hue: f.readHue()}
	r.appendColorStep(f, s)
}

// readFactor reads a range of factors from 1-x to 1+x, with a lower limit of 0, and returns x.
// It returns 0 if the attribute is missing or None, and refuses a range that is not centered on
// 1: see [fields.refuse].
func (f *fields) readFactor(name string) float64 {
	if f.optionalAttr(name) == nil {
		return 0
	}
	r := f.readPair(name)
	x := r[1] - 1
	if f.err == nil && (x < 0 || math.Abs(max(0, 1-x)-r[0]) > 1e-9) {
		f.refuse("%s is %v, Go supports only ranges around 1: use %s=x for 1-x to 1+x", name, r, name)
	}
	return x
}

// readHue reads the attribute hue, a range from -x to x, and returns x. It returns 0 if the
// attribute is missing or None, and refuses a range that is not centered on 0 or where x exceeds
// 0.5: see [fields.refuse].
func (f *fields) readHue() float64 {
	if f.optionalAttr("hue") == nil {
		return 0
	}
	r := f.readPair("hue")
	if f.err == nil && (r[0] != -r[1] || r[1] < 0 || r[1] > 0.5) {
		f.refuse("hue is %v, Go supports only ranges around 0, of at most 0.5", r)
	}
	return r[1]
}

// randomErasing is the builder of RandomErasing, which overwrites a region of a float32 or uint8
// tensor with a value.
func randomErasing(f *fields, r *route) {
	s := image.RandomErasing{P: f.readProbability("p"), Scale: f.readPair("scale"), Ratio: f.readPair("ratio")}
	x, ok := numbersOf(f.optionalAttr("value"))
	if !ok || len(x) != 1 {
		f.refuse("value is %s, Go supports only one number", showValue(f.optionalAttr("value")))
		return
	}
	s.Value = float32(x[0])
	if f.err == nil && !(0 <= s.Scale[0] && s.Scale[0] <= s.Scale[1] && s.Scale[1] <= 1 && 0 < s.Ratio[0] &&
		s.Ratio[0] <= s.Ratio[1]) {
		f.refuse("scale %v or ratio %v is out of range", s.Scale, s.Ratio)
	}
	switch {
	case r.now == picture:
		f.refuse("input is not a tensor: put ToTensor or ToImage before it")
	case r.now == bytes && (s.Value < 0 || s.Value > 255 || x[0] != math.Trunc(x[0])):
		f.refuse("value is %v, want a byte", x[0])
	}
	if r.now == numbers {
		r.appendFloatStep(f, s)
		return
	}
	r.appendStep(f, s)
}
