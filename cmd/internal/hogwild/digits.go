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

// digits holds the training set and the test set.
type digits struct {
	name        string
	train, test *data.TensorDataset // images (n, 28, 28) uint8 and labels (n) int64
}

// moveTo moves both sets to a device.
func (d *digits) moveTo(dev tensor.Device) error { return errors.Join(d.train.To(dev), d.test.To(dev)) }

// Numbers of rendered digits. They suffice for learning in one epoch, and rendering is fast on any
// machine.
const (
	renderTrain = 12000
	renderTest  = 2000
)

// openDigits reads the MNIST files in the directory Data, or renders digits if Data is "". If
// Download is set, it downloads missing files first. The rendered test set uses the complement of
// the seed, so that it does not contain training images. The error wraps [ErrDownload] if a
// download fails, and [data.ErrShape] if a file contains no images.
func (o *Options) openDigits(ctx context.Context) (*digits, error) {
	if o.Data == "" {
		return &digits{"digits", datasets.Digits(renderTrain, o.Seed), datasets.Digits(renderTest, ^o.Seed)}, nil
	}
	if o.Download {
		if err := o.downloadFiles(ctx); err != nil {
			return nil, err
		}
	}
	train, err := datasets.MNIST(o.Data, true)
	if err != nil {
		return nil, o.adviseFiles(err)
	}
	test, err := datasets.MNIST(o.Data, false)
	if err != nil {
		return nil, o.adviseFiles(err)
	}
	if train.Len() == 0 || test.Len() == 0 {
		return nil, fmt.Errorf("%s: %w: got %d training images and %d test images, want at least 1 of each", o.Data,
			data.ErrShape, train.Len(), test.Len())
	}
	return &digits{"mnist", train, test}, nil
}

// adviseFiles returns err, with the remedy added if it is about a missing file.
func (o *Options) adviseFiles(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w; download missing files with --download, or leave out --data to render digits", err)
	}
	return err
}
