package image

import (
	"fmt"
	"math/rand/v2"

	"github.com/shoal-mp/shoal/internal/wire"
)

// A Step changes an image. What is random in it comes from r alone. An error, where the image is
// not as the step needs it, wraps ErrSize.
//
// A Step of your own is a type that was given to wire.RegisterType, if it is to go to workers that
// are processes.
type Step interface {
	Apply(im *Image, r *rand.Rand) error
}

// A Pipeline is steps, one after the other. It is a Step itself.
type Pipeline []Step

// Apply applies all steps.
func (p Pipeline) Apply(im *Image, r *rand.Rand) error {
	last := im.last
	defer func() { im.last = last }()
	for i, s := range p {
		im.last = last && i == len(p)-1
		if err := s.Apply(im, r); err != nil {
			return fmt.Errorf("%T: %w", s, err)
		}
	}
	return nil
}

// Float reports whether the pipeline makes float32 of pixels.
func (p Pipeline) Float() bool {
	for _, s := range p {
		switch s := s.(type) {
		case Normalize:
			return true
		case Pipeline:
			if s.Float() {
				return true
			}
		case RandomApply:
			if s.Steps.Float() {
				return true
			}
		}
	}
	return false
}

// Make decodes data and applies the steps.
func (p Pipeline) Make(im *Image, data []byte, channels int, r *rand.Rand) error {
	im.row, im.numbers, im.last = nil, nil, false
	if err := p.decode(im, data, channels); err != nil {
		return err
	}
	return p.Apply(im, r)
}

// decode decodes an image as large as the first step needs it.
func (p Pipeline) decode(im *Image, data []byte, channels int) error {
	if len(p) == 0 {
		return im.Decode(data, channels)
	}
	switch s := p[0].(type) {
	case Pipeline:
		return s.decode(im, data, channels)
	case Resize:
		if s.Gap > 0 {
			return im.decode(data, channels, func(h, w int) int {
				im.wholeH, im.wholeW = h, w
				return s.draft(h, w)
			})
		}
	}
	return im.Decode(data, channels)
}

// Write does what Make does, and writes the pixels to a row of a batch: pixels, or numbers if the
// pipeline makes these; the other is nil. The last step writes there itself, unless it changes an
// image in its place.
func (p Pipeline) Write(pixels []uint8, numbers []float32, im *Image, data []byte, channels int, r *rand.Rand) error {
	return p.write(pixels, numbers, im, r, func() error { return p.decode(im, data, channels) })
}

// WritePacked does what Write does, with an image that is in memory: h×w pixels of c bytes each, as
// Packed writes them.
func (p Pipeline) WritePacked(pixels []uint8, numbers []float32, im *Image, src []uint8, c, h, w int,
	r *rand.Rand) error {
	return p.write(pixels, numbers, im, r, func() error { im.SetPacked(src, c, h, w); return nil })
}

// write applies the steps to what begin makes.
func (p Pipeline) write(pixels []uint8, numbers []float32, im *Image, r *rand.Rand, begin func() error) error {
	im.row, im.numbers, im.last = pixels, numbers, len(p) == 0
	defer func() { im.row, im.numbers, im.last = nil, nil, false }()
	if err := begin(); err != nil {
		return err
	}
	im.last = true
	if err := p.Apply(im, r); err != nil {
		return err
	}
	if err := settle(pixels, im.Pix); err != nil {
		return fmt.Errorf("%w of %d×%d×%d", err, im.C, im.H, im.W)
	}
	if err := settle(numbers, im.Numbers); err != nil {
		return fmt.Errorf("%w of %d×%d×%d", err, im.C, im.H, im.W)
	}
	im.Pix, im.Numbers = nil, nil // they are not ours
	return nil
}

// settle copies what is not yet in a row.
func settle[T any](row, made []T) error {
	if len(row) != len(made) {
		return fmt.Errorf("%w: %d numbers are wanted, and the image has %d", ErrSize, len(row), len(made))
	}
	if len(row) > 0 && &row[0] != &made[0] {
		copy(row, made)
	}
	return nil
}

// RandomApply applies Steps, with probability P.
type RandomApply struct {
	P     float64
	Steps Pipeline
}

// Apply applies the steps, or not.
func (s RandomApply) Apply(im *Image, r *rand.Rand) error {
	if r.Float64() >= s.P {
		return nil
	}
	return s.Steps.Apply(im, r)
}

// MarshalWire writes the steps, whose types are registered.
func (p *Pipeline) MarshalWire(e *wire.Encoder) error {
	plan, err := wire.PlanOf[[]any]()
	if err != nil {
		return err
	}
	steps := make([]any, len(*p))
	for i, s := range *p {
		steps[i] = s
	}
	return plan.Encode(e, steps)
}

// UnmarshalWire is the counterpart of MarshalWire.
func (p *Pipeline) UnmarshalWire(d *wire.Decoder) error {
	plan, err := wire.PlanOf[[]any]()
	if err != nil {
		return err
	}
	steps, err := plan.Decode(d)
	if err != nil {
		return err
	}
	*p = make(Pipeline, len(steps))
	for i, v := range steps {
		s, ok := v.(Step)
		if !ok {
			return fmt.Errorf("image: %T is no Step", v)
		}
		(*p)[i] = s
	}
	return nil
}

func init() {
	wire.RegisterType[Pipeline]("image.Pipeline")
	wire.RegisterType[Resize]("image.Resize")
	wire.RegisterType[CenterCrop]("image.CenterCrop")
	wire.RegisterType[RandomCrop]("image.RandomCrop")
	wire.RegisterType[RandomResizedCrop]("image.RandomResizedCrop")
	wire.RegisterType[RandomHorizontalFlip]("image.RandomHorizontalFlip")
	wire.RegisterType[RandomVerticalFlip]("image.RandomVerticalFlip")
	wire.RegisterType[RandomAffine]("image.RandomAffine")
	wire.RegisterType[ColorJitter]("image.ColorJitter")
	wire.RegisterType[Grayscale]("image.Grayscale")
	wire.RegisterType[Normalize]("image.Normalize")
	wire.RegisterType[RandomErasing]("image.RandomErasing")
	wire.RegisterType[Pad]("image.Pad")
	wire.RegisterType[RandomApply]("image.RandomApply")
}
