package pixel

// weightBits is the precision of weights, that of Pillow for images of bytes: 32 bits less those of
// a pixel and two to spare.
const weightBits = 32 - 8 - 2

// One is the weight of a pixel that is taken as it is.
const One = 1 << weightBits

// Weights say of which pixels each pixel of a resampled row is the sum.
type Weights struct {
	Taps   int     // weights for each place; a multiple of 8, the rest zeros
	First  []int32 // of the pixels, for each place
	Weight []int32 // Taps for each place
}

// At returns the weights of place i.
func (w *Weights) At(i int) []int32 { return w.Weight[i*w.Taps:][:w.Taps] }

// Row writes a resampled row of len(w.First) pixels. src has w.Taps pixels of any value behind its
// last one.
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

// Column writes a row that is the weighted sum of len(weights) rows of src, stride apart.
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
