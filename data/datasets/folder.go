package datasets

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/data/image"
	"github.com/shoal-mp/shoal/encoding"
	"github.com/shoal-mp/shoal/tensor"
)

// An ImageFolder is a data set of image files in one folder for each class, as torchvision's
// ImageFolder. A sample consists of an image, (C, H, W), and the index of its class, Int64. The
// image is Uint8, or Float32 if Steps contain a Normalize. The last step writes directly into the
// row of the batch.
//
// Random steps draw from a generator seeded with the sample's [data.SampleSeed]. All images of a
// batch must have the same size after the last step. For a file that is not an image, the error is
// an [*encoding.FileError] with the offset of the fault. It wraps an error of package image.
type ImageFolder struct {
	Root      string
	Classes   []string       // names of the folders, sorted
	Paths     *List          // paths of the files relative to Root, by class and by name
	Labels    *tensor.Tensor // (n) Int64, indices into Classes
	Channels  int            // 3, or 1 for grey; 0 means 3
	MaxPixels int            // limit for a file; 0 means image.DefaultMaxPixels
	Steps     image.Pipeline
}

var _ data.Gatherer = (*ImageFolder)(nil)

// ErrNoImages is wrapped if a folder has no classes, or a class has no images.
var ErrNoImages = errors.New("data: no images")

// NewImageFolder returns a data set of the images in root. The folders of root are the classes;
// images are files at any depth in them that end in .jpg, .jpeg, .png, .ppm, .bmp, .pgm, .tif,
// .tiff or .webp. The format of an image is detected from its content. Symbolic links are followed,
// as torchvision does, except links to a folder that contains the link. The caller must close the
// set. The error wraps [ErrNoImages], or is an error of reading the folders.
func NewImageFolder(root string, steps ...image.Step) (*ImageFolder, error) {
	d := &ImageFolder{Root: root, Steps: steps}
	entries, err := os.ReadDir(root) // sorted by name
	if err != nil {
		return nil, fmt.Errorf("image folder: %w", err)
	}
	var paths []string
	var labels []int64
	for _, e := range entries {
		if !isDir(root, e) {
			continue
		}
		files, err := listImages(root, e.Name())
		if err != nil {
			return nil, fmt.Errorf("image folder: %w", err)
		}
		if len(files) == 0 {
			return nil, fmt.Errorf("%w in %s: .%s", ErrNoImages, filepath.Join(root, e.Name()),
				strings.Join(imageKinds, ", ."))
		}
		paths = append(paths, files...)
		labels = append(labels, slices.Repeat([]int64{int64(len(d.Classes))}, len(files))...)
		d.Classes = append(d.Classes, e.Name())
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("%w in %s: want one subdirectory for each class", ErrNoImages, root)
	}
	d.Paths, d.Labels = NewList(paths), tensor.FromSlice(labels, len(labels))
	return d, nil
}

// Len returns the number of images.
func (d *ImageFolder) Len() int { return d.Paths.Len() }

// Path returns the path of image i. The error wraps [ErrRecords] if i is out of range.
func (d *ImageFolder) Path(i int) (string, error) {
	name, err := d.Paths.At(i)
	return filepath.Join(d.Root, string(name)), err
}

// read reads the file of image i into e.file and returns its path. The error wraps [ErrRecords]
// if i is out of range.
func (d *ImageFolder) read(e *imageScratch, i int) (path string, err error) {
	if path, err = d.Path(i); err != nil {
		return "", fmt.Errorf("image folder %s: %w", d.Root, err)
	}
	if err := e.read(path); err != nil {
		return "", fmt.Errorf("image: %w", err)
	}
	return path, nil
}

// Close closes the paths and labels in this process.
func (d *ImageFolder) Close() error { return errors.Join(d.Paths.Close(), d.Labels.Close()) }

// wrapError adds the path of the file to an error of decoding it. An [*encoding.FileError] keeps
// its offset.
func (d *ImageFolder) wrapError(path string, err error) error {
	if at := (*encoding.FileError)(nil); errors.As(err, &at) {
		return &encoding.FileError{Path: path, Offset: at.Offset, Err: at.Err}
	}
	return fmt.Errorf("image %s: %w", path, err)
}

// Get returns image i and its class. It returns an error if i is out of range, or if the image
// cannot be read.
func (d *ImageFolder) Get(ctx context.Context, i int) (data.Sample, error) {
	if i < 0 || i >= d.Len() {
		return nil, fmt.Errorf("image %d is out of range [0, %d)", i, d.Len())
	}
	e := imageScratches.Get().(*imageScratch)
	defer imageScratches.Put(e)
	path, err := d.read(e, i)
	if err != nil {
		return nil, err
	}
	e.image.MaxPixels = d.MaxPixels
	picture, err := e.decodeTensor(d.Steps, e.file, d.Channels, e.seedGenerator(data.SampleSeed(ctx, i)))
	if err != nil {
		return nil, d.wrapError(path, err)
	}
	return data.Sample{picture, labelTensor(d.labelOf(i))}, nil
}

func (d *ImageFolder) labelOf(i int) int64 {
	defer runtime.KeepAlive(d.Labels)
	return tensor.Data[int64](d.Labels)[i]
}

// Gather implements [data.Gatherer]. It decodes images into the rows of into[0] and writes their
// classes to into[1]. It returns an error if an index is out of range, if ctx ends, or if an image
// cannot be read or has another size than its row.
func (d *ImageFolder) Gather(ctx context.Context, indices []int, into data.Batch) error {
	e := imageScratches.Get().(*imageScratch)
	defer imageScratches.Put(e)
	e.image.MaxPixels = d.MaxPixels
	labels, n := tensor.Data[int64](into[1]), d.Len()
	for k, i := range indices {
		if i < 0 || i >= n {
			return fmt.Errorf("image %d is out of range [0, %d)", i, n)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		path, err := d.read(e, i)
		if err != nil {
			return err
		}
		if err := e.decodeRow(into[0], k, d.Steps, e.file, d.Channels,
			e.seedGenerator(data.SampleSeed(ctx, i))); err != nil {
			return d.wrapError(path, err)
		}
		labels[k] = d.labelOf(i)
	}
	into[0].Touch()
	into[1].Touch()
	return nil
}
