package datasets

import (
	"math/rand/v2"
	"runtime"
	"sync"

	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/tensor"
)

// side is the height and width of a digit's image in pixels, as in MNIST.
const side = 28

// Digits draws n images of digits that look handwritten, for training without files. The set has
// the format of [MNIST]: images are (n, 28, 28) Uint8, white on black, and labels are (n) Int64
// from 0 to 9, equally likely. The caller must close the set. Digits panics if n is negative.
//
// Image i depends only on the seed and i, not on n. Sets with different seeds have different
// images, so one can be used for training and another for testing. Digits uses all CPUs of the
// process.
func Digits(n int, seed uint64) *data.TensorDataset {
	if n < 0 {
		panic("data: Digits: got a negative number of images, want at least 0")
	}
	images, labels := make([]uint8, n*side*side), make([]int64, n)
	runRanges(n, func(from, to int) {
		var p digitRenderer
		for i := from; i < to; i++ {
			labels[i] = int64(p.drawDigit(images[i*side*side:(i+1)*side*side], seed, uint64(i)))
		}
	})
	return data.NewTensorDataset(tensor.FromSlice(images, n, side, side), tensor.FromSlice(labels, n))
}

// runRanges divides 0..n-1 into ranges and calls work for each in its own goroutine, at most one
// for each CPU. It returns when all have returned.
func runRanges(n int, work func(from, to int)) {
	var wg sync.WaitGroup
	parts := min(runtime.GOMAXPROCS(0), max(1, n/64))
	for k := range parts {
		wg.Go(func() { work(k*n/parts, (k+1)*n/parts) })
	}
	wg.Wait()
}

// drawDigit draws image i of seed into img, 28×28 pixels, and returns the digit.
func (p *digitRenderer) drawDigit(img []uint8, seed, i uint64) int {
	p.resetFor(seed, i)
	label := p.rng.IntN(len(digitStrokes))
	variants := digitStrokes[label]
	p.drawHandwriting()
	for _, s := range variants[p.rng.IntN(len(variants))] {
		p.draw(s)
	}
	if p.rng.IntN(12) == 0 {
		p.drawNoiseLine()
	}
	p.renderInk(img)
	return label
}

// resetFor resets the renderer for image i of seed.
func (p *digitRenderer) resetFor(seed, i uint64) {
	p.src.Seed(seed, i*0x9e3779b97f4a7c15+1) // the odd factor decorrelates the streams of neighbors
	if p.rng == nil {
		p.rng = rand.New(&p.src)
	}
	for k := range p.near {
		p.near[k] = far
	}
}
