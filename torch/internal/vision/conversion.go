package vision

import (
	"slices"

	"github.com/shoal-mp/shoal/data/image"
	"github.com/shoal-mp/shoal/internal/pickle/value"
	"github.com/shoal-mp/shoal/tensor"
)

// divided is the arithmetic of transforms v1.
const divided = image.Divided

// toTensor is the builder of ToTensor, which converts a Pillow image to float32. ToTensor of
// transforms v2 leaves tensors unchanged; the one of v1 refuses them.
func toTensor(f *fields, r *route) {
	switch {
	case r.now == picture:
		r.convert(divided)
	case !f.isV2():
		f.refuse("input is already a tensor, which torchvision rejects")
	}
}

func pilToTensor(f *fields, r *route) {
	if r.now != picture && !f.isV2() {
		f.refuse("input is already a tensor, which torchvision rejects")
	}
	r.now = max(r.now, bytes)
}

func toImage(_ *fields, r *route) { r.now = max(r.now, bytes) }

func toPureTensor(*fields, *route) {}

// toDType is the builder of ToDtype, which converts uint8 tensors to float32, and to the range
// from 0 to 1 if the attribute scale is set. Pillow images, and tensors that have the dtype
// already, stay unchanged. It refuses other conversions: see [fields.refuse].
func toDType(f *fields, r *route) {
	scaled := f.readFlag("scale")
	dtype := f.get("dtype")
	if d, ok := dtype.(*value.Dict); ok {
		if dtype, ok = imageDType(d); !ok {
			f.refuse("dtype is given for some classes only: set one dtype, or one for tv_tensors.Image")
			return
		}
	}
	as := image.Unscaled
	if scaled {
		as = image.Scaled
	}
	r.setStage(f, dtype, as)
}

// imageDType returns the dtype that a ToDtype with the dict d assigns to images. The bool is
// false if d assigns none.
func imageDType(d *value.Dict) (any, bool) {
	for _, class := range []any{value.Named("torchvision.tv_tensors._image.Image"),
		value.Named("torch.Tensor"), "others"} {
		if v, ok := d.Get(class); ok {
			return v, v != nil
		}
	}
	return nil, false
}

// convertImageDType is the builder of ConvertImageDtype, which converts uint8 tensors to
// float32: by a division by 255 for v1 of torchvision's transforms, and a multiplication by
// 1/255 for v2. It refuses a Pillow image in v1, as torchvision does.
func convertImageDType(f *fields, r *route) {
	as := divided
	if f.isV2() {
		as = image.Scaled
	}
	if r.now == picture && !f.isV2() {
		f.refuse("input is a Pillow image, which torchvision rejects: put PILToTensor before it")
		return
	}
	r.setStage(f, f.get("dtype"), as)
}

func (r *route) setStage(f *fields, dtype any, as image.Arithmetic) {
	switch {
	case r.now == picture, r.now == bytes && dtype == tensor.Uint8, r.now == numbers && dtype == tensor.Float32:
	case r.now == bytes && dtype == tensor.Float32:
		r.convert(as)
	default:
		f.refuse("output dtype is %s, Go supports only float32, from bytes", showValue(dtype))
	}
}

// normalize is the builder of Normalize, which subtracts a mean and divides by a standard
// deviation, per channel. It refuses images that are not float32: see [fields.refuse].
func normalize(f *fields, r *route) {
	mean, std := r.readPlanes(f, "mean"), r.readPlanes(f, "std")
	if f.err != nil {
		return
	}
	s := image.Normalize{Mean: mean, Std: std, As: r.last.As}
	switch {
	case r.now != numbers:
		f.refuse("input is not float32: put ToTensor or ToDtype(torch.float32, scale=True) before it")
	case slices.Contains(std, 0):
		f.refuse("standard deviation is 0")
	case !r.made && len(r.last.Mean) == 0:
		r.last = s
	default: // not the first Normalize
		r.appendFloatStep(f, s)
	}
}

// readPlanes returns the numbers of an attribute: a single one for all channels, or one per
// channel. It refuses any other count: see [fields.refuse].
func (r *route) readPlanes(f *fields, name string) []float32 {
	var all []float32
	for _, x := range f.readNumbers(name) {
		all = append(all, float32(x))
	}
	if f.err == nil && len(all) != 1 && len(all) != r.channels {
		f.refuse("%s has %d numbers, want %d, one per channel of the images", name, len(all), r.channels)
	}
	return all
}

// equalConversion reports whether two conversions to float32 produce the same numbers from the
// same bytes.
func equalConversion(a, b image.Normalize) bool {
	return a.As == b.As && slices.Equal(a.Mean, b.Mean) && slices.Equal(a.Std, b.Std)
}
