package image

import (
	"fmt"
	"math/rand/v2"

	"github.com/shoal-mp/shoal/data/image/internal/jpeg"
	"github.com/shoal-mp/shoal/internal/codec"
)

// A Step changes an image. Apply must draw all random numbers from r. The error should wrap
// [ErrSize] if the image does not have a size that the step requires.
//
// To use a Step in worker processes, register its type with wire.RegisterType.
type Step interface {
	Apply(im *Image, r *rand.Rand) error
}

// A Pipeline applies steps in order. It is itself a [Step].
type Pipeline []Step

// Apply applies all steps to im. It stops at the first error, to which it adds the type of the
// step.
func (p Pipeline) Apply(im *Image, r *rand.Rand) error {
	last := im.last
	defer func() { im.last = last }()
	for i := 0; i < len(p); i++ {
		s := p[i]
		if both, ok := p[i:].resizeAndCrop(); ok && both.fits(im) {
			s = both
			i++
		}
		im.last = last && i == len(p)-1
		if err := s.Apply(im, r); err != nil {
			return fmt.Errorf("%T: %w", s, err)
		}
	}
	return nil
}

// resizeAndCrop returns the first two steps of p as one. ok is false unless they are a [Resize]
// with a filter other than [Nearest] and a center crop.
func (p Pipeline) resizeAndCrop() (both croppedResize, ok bool) {
	if len(p) < 2 {
		return both, false
	}
	resize, ok1 := p[0].(Resize)
	crop, ok2 := p[1].(centerCrop)
	return croppedResize{resize, crop}, ok1 && ok2 && resize.Filter != Nearest
}

// Make decodes data into im, as [Image.Decode] does, and applies the steps with random numbers
// from r. It returns the error of Decode or of a step.
func (p Pipeline) Make(im *Image, data []byte, channels int, r *rand.Rand) error {
	im.row, im.numbers, im.last = nil, nil, false
	if err := p.decode(im, data, channels); err != nil {
		return err
	}
	return p.Apply(im, r)
}

// decode decodes an image. If the first step is a [Resize] with a Gap, a JPEG may be decoded at a
// reduced size. If a center crop follows the Resize, only the pixels that it needs are decoded. The
// caller must still apply all steps: the Resize scales from the original size. decode returns the
// same errors as [Image.Decode].
func (p Pipeline) decode(im *Image, data []byte, channels int) error {
	if len(p) == 0 {
		return im.Decode(data, channels)
	}
	switch s := p[0].(type) {
	case Pipeline:
		return s.decode(im, data, channels)
	case Resize:
		var window func(h, w int) jpeg.Window
		if both, ok := p.resizeAndCrop(); ok {
			window = func(h, w int) jpeg.Window { return both.source(im, h, w) }
		}
		if s.Gap > 0 {
			return im.decode(data, channels, window, func(h, w int) int {
				im.wholeH, im.wholeW = h, w
				return s.draftFactor(h, w)
			})
		}
		if im.DraftH <= 0 || im.DraftW <= 0 {
			return im.decode(data, channels, window, nil)
		}
	}
	return im.Decode(data, channels)
}

// Write is [Pipeline.Make] with the result in a row of a batch. The row must be passed as
// numbers if the pipeline contains a [Normalize], and as pixels otherwise; the other must be
// nil. If the last step does not work in place, it writes to the row directly. If data is nil,
// the steps start with the current image of im, such as one from [Image.SetPacked]. The error
// wraps [ErrSize] if the row has another length than the image, which im then has. Otherwise the
// result is only in the row, and im has no pixels.
func (p Pipeline) Write(pixels []uint8, numbers []float32, im *Image, data []byte, channels int, r *rand.Rand) error {
	im.row, im.numbers, im.last, im.Finished = pixels, numbers, len(p) == 0, false
	defer func() { im.row, im.numbers, im.last = nil, nil, false }()
	if data != nil {
		if err := p.decode(im, data, channels); err != nil {
			return err
		}
	}
	im.last = true
	if err := p.Apply(im, r); err != nil {
		return err
	}
	im.Finished = true
	if err := copyResult(pixels, im.Pix); err != nil {
		return fmt.Errorf("%w of %d×%d×%d", err, im.C, im.H, im.W)
	}
	if err := copyResult(numbers, im.Numbers); err != nil {
		return fmt.Errorf("%w of %d×%d×%d", err, im.C, im.H, im.W)
	}
	im.Pix, im.Numbers = nil, nil // they may alias the row of the batch
	return nil
}

// copyResult copies the result to the row, unless it is there already. The error wraps [ErrSize]
// if their lengths differ.
func copyResult[T any](row, made []T) error {
	if len(row) != len(made) {
		return fmt.Errorf("%w: %d numbers are wanted, and the image has %d", ErrSize, len(row), len(made))
	}
	if len(row) > 0 && &row[0] != &made[0] {
		copy(row, made)
	}
	return nil
}

// RandomApply returns a [Step] that applies all of steps with probability p, and none otherwise.
func RandomApply(p float64, steps ...Step) Step { return randomApply{p, steps} }

type randomApply struct {
	P     float64
	Steps Pipeline
}

// Apply applies the steps with probability s.P.
func (s randomApply) Apply(im *Image, r *rand.Rand) error {
	if r.Float64() >= s.P {
		return nil
	}
	return s.Steps.Apply(im, r)
}

// marshal encodes the steps. Their types must be registered.
func (p *Pipeline) marshal(e *codec.Encoder) error {
	plan, err := codec.PlanOf[[]any]()
	if err != nil {
		return err
	}
	steps := make([]any, len(*p))
	for i, s := range *p {
		steps[i] = s
	}
	return plan.Encode(e, steps)
}

// unmarshal decodes steps written by marshal.
func (p *Pipeline) unmarshal(d *codec.Decoder) error {
	plan, err := codec.PlanOf[[]any]()
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
	codec.Custom((*Pipeline).marshal, (*Pipeline).unmarshal)
	codec.RegisterType[Pipeline]("image.Pipeline")
	codec.RegisterType[Resize]("image.Resize")
	codec.RegisterType[centerCrop]("image.CenterCrop")
	codec.RegisterType[RandomCrop]("image.RandomCrop")
	codec.RegisterType[RandomResizedCrop]("image.RandomResizedCrop")
	codec.RegisterType[randomHorizontalFlip]("image.RandomHorizontalFlip")
	codec.RegisterType[randomVerticalFlip]("image.RandomVerticalFlip")
	codec.RegisterType[RandomAffine]("image.RandomAffine")
	codec.RegisterType[ColorJitter]("image.ColorJitter")
	codec.RegisterType[grayscale]("image.Grayscale")
	codec.RegisterType[Normalize]("image.Normalize")
	codec.RegisterType[RandomErasing]("image.RandomErasing")
	codec.RegisterType[Pad]("image.Pad")
	codec.RegisterType[randomApply]("image.RandomApply")
}
