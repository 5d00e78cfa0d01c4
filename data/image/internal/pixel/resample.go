package pixel

import "slices"

// weightBits is the precision of weights, the same as Pillow's for images of bytes: 32 bits, minus
// 8 for a pixel and 2 as reserve.
const weightBits = 32 - 8 - 2

// One is the weight 1.0.
const One = 1 << weightBits

// Weights define each pixel of a resampled row as a weighted sum of source pixels. Prepare must be
// called before [Row].
type Weights struct {
	Taps   int     // weights per pixel; a multiple of 8, padded with zeros
	First  []int32 // first source pixel, for each pixel
	Weight []int32 // Taps for each pixel

	halves []int16 // eight weights at a time: their lower halfBits, and then the other bits
	last   int32   // the largest of First
}

// halfBits is the number of bits of the lower halves of weights.
const halfBits = 11

// Prepare computes the weights in the form used by [Row]. It must be called again after a change
// of w.
func (w *Weights) Prepare() {
	w.halves = slices.Grow(w.halves[:0], 2*len(w.Weight))[:2*len(w.Weight)]
	for i, v := range w.Weight {
		at := i&^7*2 + i&7
		w.halves[at], w.halves[at+8] = int16(v&(1<<halfBits-1)), int16(v>>halfBits)
	}
	w.last = 0
	for _, first := range w.First {
		w.last = max(w.last, first)
	}
}

// Part returns the weights of n pixels from pixel x on, which share the memory of w. The weights
// must be prepared.
func (w *Weights) Part(x, n int) Weights {
	from, to := x*w.Taps, (x+n)*w.Taps
	return Weights{w.Taps, w.First[x:][:n], w.Weight[from:to], w.halves[2*from : 2*to], w.last}
}

// At returns the w.Taps weights of pixel i, as a slice of w.Weight. After changing them, call
// Prepare.
func (w *Weights) At(i int) []int32 { return w.Weight[i*w.Taps:][:w.Taps] }

// Row writes a resampled row of len(w.First) pixels. src must contain w.Taps more bytes after
// the pixels of the source row, with any values. [Weights.Prepare] must be called on w before.
func Row(dst, src []uint8, w *Weights) {
	current.row(dst[:len(w.First)], src, w)
}

func rowPortable(dst, src []uint8, w *Weights) {
	for i, first := range w.First {
		sum := int32(One / 2)
		weights := w.At(i)
		for k, v := range src[first:][:len(weights)] {
			sum += int32(v) * weights[k]
		}
		dst[i] = clamp(sum >> weightBits)
	}
}

// Column writes the weighted sum of len(weights) rows of src with the given stride.
func Column(dst, src []uint8, stride int, weights []int32) {
	_ = src[stride*(len(weights)-1)+len(dst)-1]
	current.column(dst, src, stride, weights)
}

func columnPortable(dst, src []uint8, stride int, weights []int32) {
	for i := range dst {
		sum := int32(One / 2)
		for k, w := range weights {
			sum += int32(src[k*stride+i]) * w
		}
		dst[i] = clamp(sum >> weightBits)
	}
}
