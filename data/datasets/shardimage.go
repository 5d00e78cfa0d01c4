package datasets

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/data/image"
)

// An ImageDecoder makes samples of Records that have an image (jpg, jpeg or png) and the number of
// its class as text (cls). The samples are those of an ImageFolder.
type ImageDecoder struct {
	Channels  int // 3, or 1 for grey; 0 means 3
	MaxPixels int // 0 means image.DefaultMaxPixels
	Steps     image.Pipeline
}

// Decode makes a sample.
func (d ImageDecoder) Decode(ctx context.Context, r Record) (data.Sample, error) {
	var file []byte
	for _, kind := range []string{"jpg", "jpeg", "png"} {
		if f, ok := r.Files[kind]; ok {
			file = f
		}
	}
	if file == nil {
		return nil, fmt.Errorf("%w: no .jpg, .jpeg or .png", data.ErrShape)
	}
	class, err := strconv.ParseInt(strings.TrimSpace(string(r.Files["cls"])), 10, 64)
	if err != nil {
		return nil, fmt.Errorf("%w: .cls is %q", data.ErrShape, r.Files["cls"])
	}
	e := imageScratches.Get().(*imageScratch)
	defer imageScratches.Put(e)
	e.image.MaxPixels = d.MaxPixels
	picture, err := e.tensor(d.Steps, file, d.Channels, data.Rand(ctx))
	if err != nil {
		return nil, err
	}
	return data.Sample{picture, scalar(class)}, nil
}
