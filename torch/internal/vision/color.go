package vision

import (
	"math"

	"github.com/shoal-mp/shoal/data/image"
)

func grayscale(f *fields, r *route) {
	n := f.number("num_output_channels")
	if n != 1 && n != 3 {
		f.refuse("num_output_channels is %v, want 1 or 3", n)
	}
	r.blend(f, image.Grayscale(int(n)))
	r.channels = int(n)
}

// randomGrayscale converts to gray with a probability and keeps the number of channels.
func randomGrayscale(f *fields, r *route) {
	r.blend(f, image.RandomApply(f.probability("p"), image.Grayscale(r.channels)))
}

func colorJitter(f *fields, r *route) {
	s := image.ColorJitter{Brightness: f.around("brightness"), Contrast: f.around("contrast"),
		Saturation: f.around("saturation"), Hue: f.hue()}
	r.blend(f, s)
}

// around reads a range of factors that must be centered on 1: from 1-x to 1+x, with a lower limit
// of 0.
func (f *fields) around(name string) float64 {
	if f.maybe(name) == nil {
		return 0
	}
	r := f.pair(name)
	x := r[1] - 1
	if f.err == nil && (x < 0 || math.Abs(max(0, 1-x)-r[0]) > 1e-9) {
		f.refuse("%s is %v, Go supports only ranges around 1: use %s=x for 1-x to 1+x", name, r, name)
	}
	return x
}

// hue reads a range that must be centered on 0.
func (f *fields) hue() float64 {
	if f.maybe("hue") == nil {
		return 0
	}
	r := f.pair("hue")
	if f.err == nil && (r[0] != -r[1] || r[1] < 0 || r[1] > 0.5) {
		f.refuse("hue is %v, Go supports only ranges around 0, of at most 0.5", r)
	}
	return r[1]
}

// randomErasing overwrites a region of a float32 or uint8 tensor with a value.
func randomErasing(f *fields, r *route) {
	s := image.RandomErasing{P: f.probability("p"), Scale: f.pair("scale"), Ratio: f.pair("ratio")}
	x, ok := numbersOf(f.maybe("value"))
	if !ok || len(x) != 1 {
		f.refuse("value is %s, Go supports only one number", shown(f.maybe("value")))
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
		r.after(f, s)
		return
	}
	r.put(f, s)
}
