package vision

import (
	"math"

	"github.com/shoal-mp/shoal/data/image"
	"github.com/shoal-mp/shoal/internal/pickle/value"
)

// filters maps torchvision's InterpolationModes to filters. For Pillow images, both nearest modes
// are Pillow's NEAREST.
var filters = map[string]image.Filter{
	"nearest": image.Nearest, "nearest-exact": image.Nearest, "bilinear": image.Bilinear,
	"bicubic": image.Bicubic, "box": image.Box, "lanczos": image.Lanczos,
}

// readFilter reads the attribute interpolation, an InterpolationMode, which is an enum member or
// its text. It refuses filters that Go does not have, or not for tensors if r has reached that
// stage: see [fields.refuse].
func (f *fields) readFilter(r *route) image.Filter {
	v := f.get("interpolation")
	if e, ok := v.(*value.Record); ok &&
		e.Class == value.Named("torchvision.transforms.functional.InterpolationMode") && len(e.Args) == 1 {
		v = e.Args[0]
	}
	name, _ := v.(string)
	filter, ok := filters[name]
	switch {
	case f.err != nil:
	case !ok:
		f.refuse("interpolation=%s, Go supports only nearest, bilinear, bicubic, box and lanczos", showValue(v))
	case r.now == bytes && name == "nearest":
		f.refuse("Go samples tensors like NEAREST_EXACT: use that, or put the transform before the conversion to " +
			"a tensor")
	case r.now == bytes && f.optionalAttr("antialias") == false:
		f.refuse("antialias=False is not supported, Go always antialiases when it shrinks tensors: use " +
			"antialias=True, or put the transform before the conversion to a tensor")
	}
	return filter
}

func resize(f *fields, r *route) {
	f.requireUnset("max_size", "omit it")
	size := f.readIntegers("size", 1)
	s := image.Resize{Filter: f.readFilter(r)}
	switch len(size) {
	case 1:
		s.H = size[0]
	case 2:
		s.H, s.W = size[0], size[1]
	default:
		f.refuse("size has %d numbers, want 1 or 2", len(size))
	}
	r.appendColorStep(f, s)
}

func centerCrop(f *fields, r *route) {
	h, w := f.size()
	r.appendFillStep(f, image.CenterCrop(h, w), true)
}

func randomCrop(f *fields, r *route) {
	h, w := f.size()
	f.requireUnset("pad_if_needed", "put a Pad or a Resize before it")
	if f.optionalAttr("padding") != nil {
		pad(f, r)
	}
	r.appendStep(f, image.RandomCrop{H: h, W: w})
}

func pad(f *fields, r *route) {
	p := f.readPadding()
	r.appendFillStep(f, p, p.Mode != image.Constant || p.Fill == nil)
}

// padModes maps torchvision's padding modes.
var padModes = map[any]image.PadMode{"constant": image.Constant, "edge": image.Edge, "reflect": image.Reflect,
	"symmetric": image.Symmetric}

// readPadding reads the number of pixels to add: one number for all sides; left/right and
// top/bottom; or left, top, right and bottom. It also reads the padding mode and the fill. It
// refuses other values: see [fields.refuse].
func (f *fields) readPadding() (p image.Pad) {
	switch n := f.readIntegers("padding", 0); len(n) {
	case 1:
		p = image.Pad{Top: n[0], Left: n[0], Bottom: n[0], Right: n[0]}
	case 2:
		p = image.Pad{Left: n[0], Right: n[0], Top: n[1], Bottom: n[1]}
	case 4:
		p = image.Pad{Left: n[0], Top: n[1], Right: n[2], Bottom: n[3]}
	default:
		f.refuse("padding has %d numbers, want 1, 2 or 4", len(n))
	}
	mode, _ := f.get("padding_mode").(string)
	var ok bool
	if p.Mode, ok = padModes[mode]; !ok {
		f.refuse("padding_mode %q is unknown", mode)
	}
	p.Fill = f.fill()
	return p
}

// fill reads the attribute fill as a color of one or three bytes. It returns nil for black and
// for None. It refuses other values and returns nil: see [fields.refuse].
func (f *fields) fill() []uint8 {
	v := f.get("fill")
	if v == nil || f.err != nil {
		return nil
	}
	x, ok := numbersOf(v)
	if !ok || len(x) != 1 && len(x) != 3 {
		f.refuse("fill is %s, Go supports only one number or three", showValue(v))
		return nil
	}
	paint, black := make([]uint8, len(x)), true
	for i, v := range x {
		if v != math.Trunc(v) || v < 0 || v > 255 {
			f.refuse("fill is %v, want bytes", v)
			return nil
		}
		paint[i] = uint8(v)
		black = black && v == 0
	}
	if black {
		return nil
	}
	return paint
}

// readGrey reads the attribute fill as a number from 0 to 255. It returns 0 for None, and
// refuses a color with different channels: see [fields.refuse].
func (f *fields) readGrey() uint8 {
	paint := f.fill()
	if len(paint) > 1 && (paint[0] != paint[1] || paint[0] != paint[2]) {
		f.refuse("fill is a color, Go supports only one number here")
	}
	if len(paint) == 0 {
		return 0
	}
	return paint[0]
}

func randomResizedCrop(f *fields, r *route) {
	h, w := f.size()
	s := image.RandomResizedCrop{H: h, W: w, Scale: f.readPair("scale"), Ratio: f.readPair("ratio"),
		Filter: f.readFilter(r)}
	if f.err == nil && !(0 < s.Scale[0] && s.Scale[0] <= s.Scale[1] && 0 < s.Ratio[0] && s.Ratio[0] <= s.Ratio[1]) {
		f.refuse("scale %v or ratio %v is out of range", s.Scale, s.Ratio)
	}
	r.appendColorStep(f, s)
}

// flip returns the builder of a random flip, with the probability in the attribute p: left to
// right if horizontal, otherwise top to bottom.
func flip(horizontal bool) builder {
	return func(f *fields, r *route) { r.flip(f, horizontal, f.readProbability("p")) }
}

// alwaysFlip returns the builder of a flip of every image: left to right if horizontal,
// otherwise top to bottom.
func alwaysFlip(horizontal bool) builder {
	return func(f *fields, r *route) { r.flip(f, horizontal, 1) }
}

func (r *route) flip(f *fields, horizontal bool, p float64) {
	if horizontal {
		r.appendStep(f, image.RandomHorizontalFlip(p))
		return
	}
	r.appendStep(f, image.RandomVerticalFlip(p))
}

func randomRotation(f *fields, r *route) {
	f.requireUnset("expand", "a batch needs images of the same size")
	f.requireUnset("center", "Go rotates images around their center")
	r.appendColorStep(f, image.RandomAffine{Degrees: f.readDegrees("degrees"), Filter: f.readRotationFilter(r),
		Fill: f.readGrey()})
}

func randomAffine(f *fields, r *route) {
	f.requireUnset("center", "Go rotates images around their center")
	s := image.RandomAffine{Degrees: f.readDegrees("degrees"), Filter: f.readRotationFilter(r), Fill: f.readGrey()}
	if f.optionalAttr("translate") != nil {
		t := f.readPair("translate")
		s.Translate = [2]float64{t[1], t[0]} // height first
		if t[0] < 0 || t[0] > 1 || t[1] < 0 || t[1] > 1 {
			f.refuse("translate %v is out of range", t)
		}
	}
	if f.optionalAttr("scale") != nil {
		s.Scale = f.readPair("scale")
		if s.Scale[0] <= 0 || s.Scale[0] > s.Scale[1] {
			f.refuse("scale %v is out of range", s.Scale)
		}
	}
	s.Shear = f.readShear()
	r.appendColorStep(f, s)
}

// readRotationFilter reads the filter of a rotation, which must be nearest or bilinear; it
// refuses others: see [fields.refuse]. It does not use r, because these filters are the same for
// all kinds of image.
func (f *fields) readRotationFilter(r *route) image.Filter {
	filter := f.readFilter(&route{now: picture}) // nearest is the same for both kinds of image
	if filter != image.Nearest && filter != image.Bilinear {
		f.refuse("interpolation=%s, Go rotates only with nearest and bilinear",
			showValue(f.optionalAttr("interpolation")))
	}
	return filter
}

// readDegrees reads a range from -x to x degrees, and returns x. It refuses any other range, and
// an x above 360: see [fields.refuse].
func (f *fields) readDegrees(name string) float64 {
	x := f.readPair(name)
	if x[0] != -x[1] || x[1] < 0 || x[1] > 360 {
		f.refuse("%s is %v, Go supports only symmetric ranges", name, x)
	}
	return x[1]
}

// readShear reads the shear ranges along x and y, from -s[0] to s[0] and from -s[1] to s[1]
// degrees. It returns zeros if the attribute shear is missing, and refuses ranges that are not
// symmetric about 0: see [fields.refuse].
func (f *fields) readShear() (s [2]float64) {
	if f.optionalAttr("shear") == nil {
		return s
	}
	x := f.readNumbers("shear")
	if len(x) != 2 && len(x) != 4 {
		f.refuse("shear has %d numbers, want 2 or 4", len(x))
		return s
	}
	for i := 0; i < len(x); i += 2 {
		if x[i] != -x[i+1] || x[i+1] < 0 || x[i+1] >= 90 {
			f.refuse("shear is %v, Go supports only symmetric ranges", x)
		}
		s[i/2] = x[i+1]
	}
	return s
}
