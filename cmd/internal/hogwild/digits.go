package hogwild

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/data/datasets"
	"github.com/shoal-mp/shoal/tensor"
)

// digits are what a run is about: images to train on, and others for the test.
type digits struct {
	name        string
	train, test *data.TensorDataset // images (n, 28, 28) of uint8 and labels (n) of int64
}

// to moves them to a device.
func (d *digits) to(dev tensor.Device) error { return errors.Join(d.train.To(dev), d.test.To(dev)) }

// How many digits are rendered where there are no files: enough to learn from in one pass, few
// enough for a moment on any machine.
const (
	renderTrain = 12000
	renderTest  = 2000
)

// digits reads the files, or renders digits. The test's seed is none that a user's would be.
func (o *Options) digits(ctx context.Context) (*digits, error) {
	if o.Data == "" {
		return &digits{"digits", datasets.Digits(renderTrain, o.Seed), datasets.Digits(renderTest, ^o.Seed)}, nil
	}
	if o.Download {
		if err := o.download(ctx); err != nil {
			return nil, err
		}
	}
	train, err := datasets.MNIST(o.Data, true)
	if err != nil {
		return nil, o.advise(err)
	}
	test, err := datasets.MNIST(o.Data, false)
	if err != nil {
		return nil, o.advise(err)
	}
	if train.Len() == 0 || test.Len() == 0 {
		return nil, fmt.Errorf("%s: %w: %d images to train on and %d to test; both are needed", o.Data,
			data.ErrShape, train.Len(), test.Len())
	}
	return &digits{"mnist", train, test}, nil
}

// advise says what to do about a file that is not there.
func (o *Options) advise(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w; --download fetches what is missing, and without --data digits are rendered", err)
	}
	return err
}
