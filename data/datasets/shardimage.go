package datasets

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/data/image"
	"github.com/shoal-mp/shoal/tensor"
)

// An ImageDecoder decodes Records that contain an image (jpg, jpeg, png, ppm, bmp, pgm, tif, tiff
// or webp) and the index of its class as text (cls). The samples are the same as in an
// [ImageFolder]. [NewShards] skips records that contain neither, such as dataset_info.json. A
// record that contains only one of them is an error.
type ImageDecoder struct {
	Channels  int // 3, or 1 for grey; 0 means 3
	MaxPixels int // 0 means image.DefaultMaxPixels
	Steps     image.Pipeline

	// Row, if not nil, returns the batch and the row reserved for the next image. The
	// image of the sample is then a view of that row of the first tensor, if it fits. The batch may
	// be nil. Row does not go to other processes.
	Row func() (into data.Batch, row int) `wire:"-"`
}

// imageKinds lists the extensions of image files.
var imageKinds = []string{"jpg", "jpeg", "png", "ppm", "bmp", "pgm", "tif", "tiff", "webp"} // torchvision's

// wantsRecord reports whether a record contains an image or a class. Other records describe the
// data set.
func (ImageDecoder) wantsRecord(r Record) bool {
	_, ok := r.Files["cls"]
	return ok || slices.ContainsFunc(imageKinds, func(kind string) bool { _, ok := r.Files[kind]; return ok })
}

// Decode decodes the image and the class. The error wraps [data.ErrShape] if either is missing
// or the class is not a number, or is one of package image.
func (d ImageDecoder) Decode(ctx context.Context, r Record) (data.Sample, error) {
	var file []byte
	for _, kind := range imageKinds {
		if f, ok := r.Files[kind]; ok {
			file = f
		}
	}
	if file == nil {
		return nil, fmt.Errorf("%w: no image (.%s)", data.ErrShape, strings.Join(imageKinds, ", ."))
	}
	class, err := strconv.ParseInt(strings.TrimSpace(string(r.Files["cls"])), 10, 64)
	if err != nil {
		return nil, fmt.Errorf("%w: .cls: got %q, want a number", data.ErrShape, r.Files["cls"])
	}
	e := imageScratches.Get().(*imageScratch)
	defer imageScratches.Put(e)
	e.image.MaxPixels = d.MaxPixels
	var picture *tensor.Tensor
	if into, k := d.nextRow(); len(into) > 0 {
		picture, err = e.decodeNear(into[0], k, d.Steps, file, d.Channels, data.Rand(ctx))
	} else {
		picture, err = e.decodeTensor(d.Steps, file, d.Channels, data.Rand(ctx))
	}
	if err != nil {
		return nil, err
	}
	return data.Sample{picture, labelTensor(class)}, nil
}

// nextRow returns the batch and the row in it for the next image. The batch is nil if none is
// reserved.
func (d ImageDecoder) nextRow() (into data.Batch, row int) {
	if d.Row == nil {
		return nil, 0
	}
	return d.Row()
}
