package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	stdimage "image"
	"image/jpeg"
	"image/png"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"sync"

	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/data/datasets"
	"github.com/shoal-mp/shoal/data/image"
	"github.com/shoal-mp/shoal/internal/sys"
)

const (
	imageFiles = 1000
	imageBatch = 32
	imageSide  = 224
	drawings   = 100 // distinct images
)

// imageRoot returns the directory for the files of all formats. The peer derives it from our
// process ID.
func imageRoot() string {
	return filepath.Join(os.TempDir(), fmt.Sprintf("shoal-bench-images-%d", os.Getpid()))
}

func imageDir(format string) string { return filepath.Join(imageRoot(), format) }

func imageRows(_ context.Context, h *environment) (g group, err error) {
	files := h.scaleRounds(imageFiles)
	g = group{rounds: 5, close: func() error { return os.RemoveAll(imageRoot()) }}
	defer func() {
		if err != nil {
			err = errors.Join(err, g.close())
		}
	}()
	for _, format := range []string{"jpeg", "png"} {
		times := 1.5
		if format == "png" {
			times = 2
		}
		if err := WriteImages(imageDir(format), format, files); err != nil {
			return g, err
		}
		set, err := datasets.NewImageFolder(imageDir(format))
		if err != nil {
			return g, err
		}
		c := Case{
			Name: "loader_" + format, Unit: PerSecond, Ours: imageEpoch(set), Target: timesPeer(times),
			Peer: &peerWork{op: format, Size: files, Rounds: imageBatch, Args: []int{os.Getpid()}},
		}
		g.cases = append(g.cases, c)
		if format == "jpeg" {
			g.cases = append(g.cases, Case{
				Name: "loader_first_jpegs", Unit: Nanoseconds, Ours: firstImages(set),
				Floor: &Probe{Measure: decodeBatch(set)}, Target: overFloor(1.5),
				Peer: &peerWork{op: "first_jpegs", Size: files, Rounds: imageBatch, Args: []int{os.Getpid()}},
			})
		}
	}
	return g, nil
}

func openImages(set *datasets.ImageFolder) *data.Loader {
	return data.NewLoader(set, data.Options{BatchSize: imageBatch, Shuffle: true, Seed: 1, Workers: sys.CPUs()})
}

// imageEpoch returns a probe of the images per second that a loader decodes in one epoch.
func imageEpoch(set *datasets.ImageFolder) *Probe {
	return &Probe{Measure: func(ctx context.Context) (float64, error) {
		l := openImages(set)
		defer l.Close()
		begin := sys.Monotonic()
		n, err := countSamples(l.Batches(ctx))
		return float64(n) / (sys.Monotonic() - begin).Seconds(), err
	}}
}

// firstImages returns a probe of the nanoseconds until a new loader returns its first batch.
func firstImages(set *datasets.ImageFolder) *Probe {
	return &Probe{Measure: func(ctx context.Context) (float64, error) {
		l := openImages(set)
		defer l.Close()
		begin := sys.Monotonic()
		for _, err := range l.Batches(ctx) {
			return float64(sys.Monotonic() - begin), err
		}
		return 0, errors.New("no batch")
	}}
}

// decodeBatch returns a function that measures the ideal parallel time of a batch in nanoseconds:
// the time to read and decode its files, divided by the number of processors.
func decodeBatch(set *datasets.ImageFolder) func(context.Context) (float64, error) {
	im := new(image.Image)
	return func(context.Context) (float64, error) {
		n := min(imageBatch, set.Len())
		begin := sys.Monotonic()
		for i := range n {
			path, err := set.Path(i)
			if err != nil {
				return 0, err
			}
			file, err := os.ReadFile(path)
			if err == nil {
				err = im.Decode(file, 3)
			}
			if err != nil {
				return 0, err
			}
		}
		return float64(sys.Monotonic()-begin) / float64(min(n, sys.CPUs())), nil
	}
}

// WriteImages writes files images of 224×224 pixels, similar to photographs, to a single class
// directory below dir. format must be "jpeg" or "png".
func WriteImages(dir, format string, files int) error {
	dir = filepath.Join(dir, "class")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	kinds := make([][]byte, min(files, drawings))
	var wg sync.WaitGroup
	for first := range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for k := first; k < len(kinds); k += runtime.GOMAXPROCS(0) {
				kinds[k] = encode(format, draw(uint64(k)))
			}
		})
	}
	wg.Wait()
	for i := range files {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%04d.%s", i, format)), kinds[i%len(kinds)],
			0o644); err != nil {
			return err
		}
	}
	return nil
}

// encode encodes an image: JPEG with quality 90 and 4:2:0 subsampling, about 25 kB, or PNG, about
// 100 kB.
func encode(format string, im stdimage.Image) []byte {
	var b bytes.Buffer
	if format == "png" {
		png.Encode(&b, im)
	} else {
		jpeg.Encode(&b, im, &jpeg.Options{Quality: 90})
	}
	return b.Bytes()
}

// draw generates an image from random gradients on five scales, like a photograph, with a little
// noise. Equal seeds result in equal images.
func draw(seed uint64) stdimage.Image {
	r := rand.New(rand.NewPCG(seed, 1))
	im := stdimage.NewRGBA(stdimage.Rect(0, 0, imageSide, imageSide))
	var planes [3][imageSide * imageSide]float64
	for c := range planes {
		for size, height := 2, 20.; size <= 32; size, height = size*2, height*1.62 {
			addNoise(planes[c][:], size, height, r)
		}
	}
	for i := range imageSide * imageSide {
		for c := range planes {
			im.Pix[4*i+c] = uint8(max(0, min(255, 127+planes[c][i]+3*r.NormFloat64())))
		}
		im.Pix[4*i+3] = 255
	}
	return im
}

// addNoise adds random slopes to an image plane of imageSide×imageSide values: the bilinear
// interpolation of normally distributed heights, with the standard deviation height, at the
// corners of cells of size×size pixels.
func addNoise(plane []float64, size int, height float64, r *rand.Rand) {
	n := imageSide/size + 2
	knots := make([]float64, n*n)
	for i := range knots {
		knots[i] = height * r.NormFloat64()
	}
	for y := range imageSide {
		for x := range imageSide {
			at, u, v := y/size*n+x/size, float64(x%size)/float64(size), float64(y%size)/float64(size)
			above := knots[at]*(1-u) + knots[at+1]*u
			below := knots[at+n]*(1-u) + knots[at+n+1]*u
			plane[y*imageSide+x] += above*(1-v) + below*v
		}
	}
}
