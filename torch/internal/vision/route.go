package vision

import (
	"github.com/shoal-mp/shoal/data/image"
	"github.com/shoal-mp/shoal/internal/pickle/value"
)

// A stage is the form of an image between two transforms.
type stage uint8

const (
	picture stage = iota // an image of Pillow
	bytes                // a tensor of uint8
	numbers              // a tensor of float32
)

// A route has the steps for several transforms, one after the other. The last step makes numbers of
// bytes, and writes them to the row of the batch. So a step that torchvision applies to numbers is
// applied to bytes before, if the result is the same.
type route struct {
	steps    image.Pipeline
	now      stage
	channels int
	last     image.Normalize // makes the numbers
	made     bool            // last is among the steps
	depth    int
}

// Steps returns the steps of transform for images of channels planes. transform is None or an
// object or function of torchvision. ready says that the steps make tensors. The error wraps
// ErrUnsupported, and names the part that Go does not do and why.
func Steps(transform any, channels int) (steps image.Pipeline, ready bool, err error) {
	r := &route{channels: channels}
	if transform != nil {
		if err := r.add(transform); err != nil {
			return nil, false, err
		}
	}
	r.make()
	return r.steps, r.now != picture, nil
}

// add appends the steps of a transform.
func (r *route) add(transform any) error {
	if r.depth++; r.depth > mostNested {
		return value.Unsupported("transforms in transforms, %d deep", mostNested)
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
		return value.Unsupported("the transform %s", shown(t))
	}
	build := transforms[class.Name]
	if build == nil || !ours(class) {
		return value.Unsupported("the transform %s is not one of Go's, which are %s; %s", called(class),
			known(), remedy)
	}
	build(f, r)
	return f.err
}

// mostNested bounds the levels of transforms within transforms; mostSteps bounds their number.
const (
	mostNested = 16
	mostSteps  = 1024
)

// remedy says what to do about a transform that Go does not do.
const remedy = "leave it out and apply it to the batch"

// put appends a step that changes bytes, and numbers in the same way.
func (r *route) put(f *fields, s image.Step) {
	switch {
	case len(r.steps) >= mostSteps:
		f.refuse("it is one of more than %d", mostSteps)
	case r.made:
		f.refuse("it comes after RandomErasing, which Go does last; put it before")
	default:
		r.steps = append(r.steps, s)
	}
}

// blend appends a step that makes new colours. It differs for numbers and for bytes.
func (r *route) blend(f *fields, s image.Step) {
	if r.now == numbers {
		f.refuse("Go does this to bytes; put it before what makes float32 of them")
		return
	}
	r.put(f, s)
}

// paint appends a step that paints the part outside of the image. In numbers black is 0, and stays
// 0 unless a mean is subtracted.
func (r *route) paint(f *fields, s image.Step, black bool) {
	if r.now == numbers && (!black || len(r.last.Mean) > 0 || r.last.As == image.Fused) {
		f.refuse("Go paints bytes; put it before what makes float32 of them")
		return
	}
	r.put(f, s)
}

// make appends the step that makes the numbers.
func (r *route) make() {
	if r.now == numbers && !r.made {
		r.steps, r.made = append(r.steps, r.last), true
	}
}

// after appends a step that changes numbers.
func (r *route) after(f *fields, s image.Step) {
	r.make()
	if len(r.steps) >= mostSteps {
		f.refuse("it is one of more than %d", mostSteps)
	}
	r.steps = append(r.steps, s)
}

// convert makes numbers of the bytes from here on.
func (r *route) convert(as image.Arithmetic) {
	r.now, r.last = numbers, image.Normalize{As: as}
}
