package vision

import (
	"github.com/shoal-mp/shoal/data/image"
	"github.com/shoal-mp/shoal/internal/pickle/value"
)

// A stage is the representation of an image between two transforms.
type stage uint8

const (
	picture stage = iota // a Pillow image
	bytes                // a tensor of uint8
	numbers              // a tensor of float32
)

// A route converts a sequence of transforms to an image pipeline. The last step of the pipeline
// converts bytes to float32 and writes them directly to the row of a batch. A step that
// torchvision applies to float32 is therefore moved before the conversion if the result is the
// same, and refused otherwise. [Steps] makes a route. One goroutine may use it.
type route struct {
	steps    image.Pipeline
	now      stage
	channels int
	last     image.Normalize // the conversion to float32
	made     bool            // last has been appended to steps
	depth    int
}

// Steps converts a transform for images with the given number of channels. The transform must be
// nil (None in Python), or an object or function of torchvision. steps may be nil if there are
// none. ready reports whether the result is a tensor rather than a Pillow image. The error wraps
// [value.ErrUnsupported], and names the part that Go does not support.
func Steps(transform any, channels int) (steps image.Pipeline, ready bool, err error) {
	r := &route{channels: channels}
	if transform != nil {
		if err := r.add(transform); err != nil {
			return nil, false, err
		}
	}
	r.appendConversion()
	return r.steps, r.now != picture, nil
}

// add appends the steps of a transform. The error wraps [value.ErrUnsupported] if Go does not
// support it.
func (r *route) add(transform any) error {
	if r.depth++; r.depth > mostNested {
		return value.Unsupported("transforms are nested more than %d deep", mostNested)
	}
	defer func() { r.depth-- }()
	var class value.Global
	f := new(fields)
	switch t := transform.(type) {
	case *value.Record:
		class, f.of = t.Class, t
	case value.Global: // a function
		class, f.of = t, &value.Record{Class: t}
	default:
		return value.Unsupported("transform is %s, want an object or a function", showValue(t))
	}
	build := transforms[class.Name]
	if build == nil || !isTorchvision(class) {
		return value.Unsupported("transform %s is not supported by Go, which supports %s: %s", shortName(class),
			knownNames(), remedy)
	}
	build(f, r)
	return f.err
}

// mostNested limits the nesting of transforms, and mostSteps the number of steps.
const (
	mostNested = 16
	mostSteps  = 1024
)

// remedy is the advice for a transform that Go does not support.
const remedy = "omit it and apply it to the batch"

// appendStep appends a step that commutes with the conversion to float32. It refuses a step
// after RandomErasing, and more than 1024 steps: see [fields.refuse].
func (r *route) appendStep(f *fields, s image.Step) {
	switch {
	case len(r.steps) >= mostSteps:
		f.refuse("there are too many transforms, want at most %d", mostSteps)
	case r.made:
		f.refuse("it comes after RandomErasing, which Go applies last: put it before RandomErasing")
	default:
		r.steps = append(r.steps, s)
	}
}

// appendColorStep appends a step that computes new colors. It refuses a step after the
// conversion to float32, because the results on bytes and on float32 differ: see
// [fields.refuse].
func (r *route) appendColorStep(f *fields, s image.Step) {
	if r.now == numbers {
		f.refuse("Go applies it to bytes only: put it before the conversion to float32")
		return
	}
	r.appendStep(f, s)
}

// appendFillStep appends a step that fills pixels outside of the image; black reports that it
// fills them with 0. After the conversion to float32 it refuses the step, unless the fill is
// black and the conversion maps 0 to 0: only then do the two commute.
func (r *route) appendFillStep(f *fields, s image.Step, black bool) {
	if r.now == numbers && (!black || len(r.last.Mean) > 0 || r.last.As == image.Fused) {
		f.refuse("Go draws on bytes only: put it before the conversion to float32")
		return
	}
	r.appendStep(f, s)
}

// appendConversion appends the conversion to float32, unless it has been appended already or the
// images are not float32.
func (r *route) appendConversion() {
	if r.now == numbers && !r.made {
		r.steps, r.made = append(r.steps, r.last), true
	}
}

// appendFloatStep appends a step that operates on float32, after the conversion. The images must
// be float32 already.
func (r *route) appendFloatStep(f *fields, s image.Step) {
	r.appendConversion()
	if len(r.steps) >= mostSteps {
		f.refuse("there are too many transforms, want at most %d", mostSteps)
	}
	r.steps = append(r.steps, s)
}

// convert starts the float32 stage: the conversion uses the given arithmetic, and
// appendConversion appends it later.
func (r *route) convert(as image.Arithmetic) {
	r.now, r.last = numbers, image.Normalize{As: as}
}
