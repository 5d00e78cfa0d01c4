package datasets

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/encoding"
	"github.com/shoal-mp/shoal/tensor"
)

// MNISTMean and MNISTStd are the mean and standard deviation of MNIST's pixels scaled to [0, 1],
// for [data.Normalize].
const (
	MNISTMean = 0.1307
	MNISTStd  = 0.3081
)

// MNIST reads the training set, or the test set if train is false, of MNIST or of a set in the
// same format such as Fashion-MNIST. Images are (n, 28, 28) Uint8 and labels (n) Int64 from 0 to
// 9. The files must be in dir or in dir/MNIST/raw, as torchvision places them. They must have
// their original names or the variant with a dot (train-images.idx3-ubyte), and may be gzipped.
// Package data/download fetches them. The caller must close the set. The error wraps
// [fs.ErrNotExist] for a missing file, and is an [*encoding.FileError] for a malformed one,
// which wraps [data.ErrShape] for images of another size and labels above 9.
func MNIST(dir string, train bool) (*data.TensorDataset, error) {
	set := "t10k"
	if train {
		set = "train"
	}
	imagesPath, err := find(dir, set+"-images", "idx3-ubyte")
	if err != nil {
		return nil, err
	}
	labelsPath, err := find(dir, set+"-labels", "idx1-ubyte")
	if err != nil {
		return nil, err
	}
	images, err := OpenIDX(imagesPath)
	if err != nil {
		return nil, err
	}
	labels, err := OpenIDX(labelsPath)
	if err != nil {
		return nil, err
	}
	if images.DType() != tensor.Uint8 || images.Dims() != 3 || images.Dim(1) != side || images.Dim(2) != side {
		return nil, &encoding.FileError{Path: imagesPath,
			Err: fmt.Errorf("%w: got images %v of %v, want (n, 28, 28) of uint8", data.ErrShape,
				images.Shape(), images.DType())}
	}
	if err := checkLabels(labels, images.Dim(0)); err != nil {
		return nil, &encoding.FileError{Path: labelsPath, Err: err}
	}
	return data.NewTensorDataset(images, labels.To(tensor.Int64)), nil
}

// checkLabels returns an error that wraps [data.ErrShape] unless labels consist of n digits.
func checkLabels(labels *tensor.Tensor, n int) error {
	if labels.DType() != tensor.Uint8 || labels.Dims() != 1 || labels.Dim(0) != n {
		return fmt.Errorf("%w: got labels %v of %v, want (%d) of uint8", data.ErrShape, labels.Shape(),
			labels.DType(), n)
	}
	if i := slices.IndexFunc(tensor.Data[uint8](labels), func(l uint8) bool { return l > 9 }); i >= 0 {
		return fmt.Errorf("%w: label of image %d is %d, want at most 9", data.ErrShape, i,
			tensor.Data[uint8](labels)[i])
	}
	return nil
}

// find returns the path of the file stem-ending or stem.ending, with or without .gz, in dir or in
// dir/MNIST/raw. The error wraps [fs.ErrNotExist] if there is no such file.
func find(dir, stem, ending string) (string, error) {
	for _, d := range []string{dir, filepath.Join(dir, "MNIST", "raw")} {
		for _, name := range []string{stem + "-" + ending, stem + "." + ending} {
			for _, gz := range []string{"", ".gz"} {
				path := filepath.Join(d, name+gz)
				if _, err := os.Stat(path); err == nil {
					return path, nil
				} else if errors.Is(err, syscall.ENOTDIR) {
					return "", fmt.Errorf("find %s-%s: %s is not a directory, want the directory with the files: %w",
						stem, ending, d, err)
				} else if !errors.Is(err, fs.ErrNotExist) {
					return "", fmt.Errorf("find %s-%s: %w", stem, ending, err)
				}
			}
		}
	}
	return "", fmt.Errorf(
		"%w: %s-%s or %[2]s.%[3]s, with or without .gz, in %s or its MNIST/raw; download it, or pass the "+
			"directory that has it",
		fs.ErrNotExist, stem, ending, dir)
}
