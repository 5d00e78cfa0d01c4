package image

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/shoal-mp/shoal/data/image/internal/jpeg"
	"github.com/shoal-mp/shoal/data/image/internal/pixel"
)

// A Filter is the interpolation method of [Resize]. When an image is reduced, all filters except
// Nearest widen so that each pixel contributes (antialiasing).
type Filter uint8

const (
	Bilinear Filter = iota // torchvision's default
	Nearest
	Box
	Bicubic
	Lanczos
)

// filters holds the weight function of each filter, and its support.
var filters = map[Filter]struct {
	reach  float64
	weight func(x float64) float64
}{
	Bilinear: {1, func(x float64) float64 { return max(0, 1-math.Abs(x)) }},
	Box: {0.5, func(x float64) float64 {
		if x > -0.5 && x <= 0.5 {
			return 1
		}
		return 0
	}},
	Bicubic: {2, func(x float64) float64 {
		const a = -0.5
		switch x = math.Abs(x); {
		case x < 1:
			return ((a+2)*x-(a+3))*x*x + 1
		case x < 2:
			return (((x-5)*x+8)*x - 4) * a
		}
		return 0
	}},
	Lanczos: {3, func(x float64) float64 {
		if x < -3 || x >= 3 {
			return 0
		}
		return sinc(x) * sinc(x/3)
	}},
}

func sinc(x float64) float64 {
	if x == 0 {
		return 1
	}
	x *= math.Pi
	return math.Sin(x) / x
}

// weights are the weights for one direction. They are cached for the next image of the same size.
type weights struct {
	pixel.Weights
	from, to int
	filter   Filter
	floats   []float64
}

// set computes the weights for resampling a row of length from to length to, unless w has them
// already. filter must not be [Nearest].
func (w *weights) set(from, to int, filter Filter) {
	if w.from == from && w.to == to && w.filter == filter {
		return
	}
	w.from, w.to, w.filter = from, to, filter
	f := filters[filter]
	scale := float64(from) / float64(to)
	wide := max(scale, 1)
	reach := f.reach * wide
	most := 2*int(math.Ceil(reach)) + 1
	w.Taps = (most + 7) &^ 7
	w.First, w.Weight, w.floats = resizeSlice(w.First, to), resizeSlice(w.Weight, to*w.Taps),
		resizeSlice(w.floats, most)
	clear(w.Weight)
	for i := range to {
		center := (float64(i) + 0.5) * scale
		first, end := max(0, int(center-reach+0.5)), min(from, int(center+reach+0.5))
		sum := 0.0
		for k := range end - first {
			w.floats[k] = f.weight((float64(k+first) - center + 0.5) / wide)
			sum += w.floats[k]
		}
		w.First[i] = int32(first)
		for k, into := 0, w.At(i); k < end-first; k++ {
			into[k] = int32(math.Round(w.floats[k] / sum * pixel.One))
		}
	}
	w.Prepare()
}

// trimmedWeights returns the weights of pixel i without trailing zeros.
func (w *weights) trimmedWeights(i int) []int32 {
	all := w.At(i)
	for len(all) > 1 && all[len(all)-1] == 0 {
		all = all[:len(all)-1]
	}
	return all
}

// resizePart replaces the image by the fromH×fromW pixels that begin in row y and column x, resized
// to h×w. It ignores the pixels around them. It panics if they are not within the image, or if a
// size is not positive.
func (im *Image) resizePart(y, x, fromH, fromW, h, w int, filter Filter) {
	im.resizeWindow(y, x, fromH, fromW, h, w, filter, jpeg.Window{Y: 0, X: 0, H: h, W: w})
}

// resizeWindow is [Image.resizePart], but computes only a window of the result. The window must be
// within it, and the whole result if filter is [Nearest].
func (im *Image) resizeWindow(y, x, fromH, fromW, h, w int, filter Filter, part jpeg.Window) {
	if y < 0 || x < 0 || fromH < 1 || fromW < 1 || y > im.H-fromH || x > im.W-fromW || h < 1 || w < 1 {
		panic(fmt.Sprintf("image: resize %d×%d pixels at (%d, %d) of %d×%d to %d×%d", fromH, fromW, y, x,
			im.H, im.W, h, w))
	}
	switch {
	case fromH == h && fromW == w:
		im.Crop(y+part.Y, x+part.X, part.H, part.W)
		return
	case filter == Nearest:
		im.resizeNearest(y, x, fromH, fromW, h, w)
		return
	}
	im.across.set(fromW, w, filter)
	im.down.set(fromH, h, filter)
	rows := im.down.sources(fromH == h, part.Y, part.H)
	srcH, srcW := im.H, im.W
	before := im.setSize(im.C, part.H, part.W)
	for c := range im.C {
		src := before[c*srcH*srcW+(y+rows[0])*srcW+x:]
		stride := srcW
		if fromW != w { // resizeWidth returns only the columns that are needed
			src, stride = im.resizeWidth(src, srcW, rows[1]-rows[0], fromW, part.X, part.W), part.W
		} else {
			src = src[part.X:]
		}
		dst := im.plane(c)
		for i := range part.H {
			row := dst[i*part.W:][:part.W]
			if fromH == h {
				copy(row, src[i*stride:])
				continue
			}
			at := part.Y + i
			pixel.Column(row, src[(int(im.down.First[at])-rows[0])*stride:], stride, im.down.trimmedWeights(at))
		}
	}
}

// sources returns the first of the source pixels that n pixels of the result from at on depend
// on, and the one after the last. same means that source and result have the same size, so that
// w is not used.
func (w *weights) sources(same bool, at, n int) [2]int {
	if same {
		return [2]int{at, at + n}
	}
	end := 0
	for i := at; i < at+n; i++ {
		end = max(end, int(w.First[i])+len(w.trimmedWeights(i)))
	}
	return [2]int{int(w.First[at]), end}
}

// resizeWidth resizes h rows of fromW pixels, which begin every stride bytes in src, with the
// weights im.across. It computes n pixels of each row from column x on, and returns them without
// gaps. The result is valid until the next use of im.lines.
func (im *Image) resizeWidth(src []uint8, stride, h, fromW, x, n int) []uint8 {
	im.lines = resizeSlice(im.lines, h*n)
	part := im.across.Part(x, n)
	need := fromW + im.across.Taps
	im.padding = resizeSlice(im.padding, need)
	for i := range h {
		row := src[i*stride:]
		if len(row) < need { // weights of zero are read beyond the end of the image
			row = im.padding[:copy(im.padding, row[:fromW])]
			row = row[:need]
		}
		pixel.Row(im.lines[i*n:][:n], row, &part)
	}
	return im.lines
}

// resizeNearest is [Image.resizePart] with the nearest pixels.
func (im *Image) resizeNearest(y, x, fromH, fromW, h, w int) {
	srcH, srcW := im.H, im.W
	before := im.setSize(im.C, h, w)
	im.columns, im.rows = nearestSources(im.columns, fromW, w), nearestSources(im.rows, fromH, h)
	for c := range im.C {
		src, dst := before[c*srcH*srcW:], im.plane(c)
		for i, row := range im.rows {
			from, to := src[(y+int(row))*srcW+x:], dst[i*w:][:w]
			for j, column := range im.columns {
				to[j] = from[column]
			}
		}
	}
}

// nearestSources returns the source pixel of each of to pixels, in the memory of places if it
// suffices. from is the number of source pixels. Positions are accumulated, as in Pillow, so
// that rounding errors match for positions halfway between two pixels.
func nearestSources(places []int32, from, to int) []int32 {
	places = resizeSlice(places, to)
	step := float64(from) / float64(to)
	at := step * 0.5
	for i := range places {
		places[i] = int32(min(int(at), from-1))
		at = float64(at + step)
	}
	return places
}

// Resize resizes images to H×W pixels. With a W of 0 it keeps the aspect ratio.
//
// Gap applies if the Resize is the first step of a [Pipeline] and the image is a JPEG. The image is
// then decoded at an eighth, a quarter or half of its size, as long as it has at least Gap times
// the requested rows and columns. A Gap of 1 is fastest; a larger Gap is closer to the result
// without one.
type Resize struct {
	H, W   int // size in pixels; with a W of 0, H is the length of the shorter side
	Filter Filter
	Gap    float64 // Pillow's reducing_gap; 0: none
}

// Apply resizes im. The error wraps [ErrSize] if im has no pixels, or if the result would have
// none or too many.
func (s Resize) Apply(im *Image, _ *rand.Rand) error {
	h, w := s.result(im, im.H, im.W)
	if h < 1 || w < 1 || im.Pix == nil {
		return fmt.Errorf("%w: %d×%d pixels are to become %d×%d", ErrSize, im.H, im.W, h, w)
	}
	if err := checkPixelLimit(h, w); err != nil {
		return err
	}
	im.wholeH, im.wholeW = 0, 0
	im.resizePart(0, 0, im.H, im.W, h, w, s.Filter)
	return nil
}

// result returns the resulting height and width for an image im that was decoded to h×w pixels.
func (s Resize) result(im *Image, h, w int) (int, int) {
	if im.wholeH > 0 && s.Gap > 0 { // the decoded proportions may differ by a pixel
		h, w = im.wholeH, im.wholeW
	}
	return s.size(h, w)
}

// A croppedResize is a [Resize] and a center crop. It computes only the pixels that remain.
type croppedResize struct {
	Resize
	crop centerCrop
}

// fits reports whether the crop is within the resized image and im has pixels, so that Apply may
// be called.
func (s croppedResize) fits(im *Image) bool {
	_, ok := s.window(im, im.H, im.W)
	return ok && im.Pix != nil
}

// window returns the part of the resized image that remains. ok is false if it is not within the
// image, or if the image would be too large.
func (s croppedResize) window(im *Image, fromH, fromW int) (part jpeg.Window, ok bool) {
	h, w := s.result(im, fromH, fromW)
	if s.crop.H < 1 || s.crop.W < 1 || s.crop.H > h || s.crop.W > w || checkPixelLimit(h, w) != nil {
		return part, false
	}
	return jpeg.Window{Y: halfToEven(h - s.crop.H), X: halfToEven(w - s.crop.W), H: s.crop.H, W: s.crop.W}, true
}

// source returns the part of an image of fromH×fromW pixels that the remaining pixels depend on:
// the whole image if window reports false.
func (s croppedResize) source(im *Image, fromH, fromW int) jpeg.Window {
	part, ok := s.window(im, fromH, fromW)
	if !ok {
		return jpeg.Window{H: fromH, W: fromW}
	}
	h, w := s.result(im, fromH, fromW)
	im.across.set(fromW, w, s.Filter)
	im.down.set(fromH, h, s.Filter)
	rows, columns := im.down.sources(fromH == h, part.Y, part.H), im.across.sources(fromW == w, part.X, part.W)
	return jpeg.Window{Y: rows[0], X: columns[0], H: rows[1] - rows[0], W: columns[1] - columns[0]}
}

// Apply resizes and crops im. fits must be true. The error is always nil.
func (s croppedResize) Apply(im *Image, _ *rand.Rand) error {
	h, w := s.result(im, im.H, im.W)
	part, _ := s.window(im, im.H, im.W)
	im.wholeH, im.wholeW = 0, 0
	im.resizeWindow(0, 0, im.H, im.W, h, w, s.Filter, part)
	return nil
}

// size returns the resulting size for an image of fromH×fromW pixels.
func (s Resize) size(fromH, fromW int) (h, w int) {
	switch {
	case s.W != 0:
		return s.H, s.W
	case fromW <= fromH:
		return int(float64(s.H) * float64(fromH) / float64(fromW)), s.H
	}
	return s.H, int(float64(s.H) * float64(fromW) / float64(fromH))
}

// draftFactor returns the factor, 1, 2, 4 or 8, for reducing an image of fromH×fromW pixels
// during decoding.
func (s Resize) draftFactor(fromH, fromW int) int {
	h, w := s.size(fromH, fromW)
	return reductionFactor(fromH, fromW, s.Gap*float64(h), s.Gap*float64(w))
}
