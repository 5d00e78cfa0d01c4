package datasets_test

import (
	"bytes"
	"testing"

	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/data/datasets"
	"github.com/shoal-mp/shoal/tensor"
)

const pixels = 28 * 28

func TestDigits_DependOnSeedAndIndexAlone(t *testing.T) {
	long, short := datasets.Digits(1000, 3), datasets.Digits(10, 3)
	a, b := tensor.Data[uint8](long.Tensors[0]), tensor.Data[uint8](short.Tensors[0])
	if !bytes.Equal(a[:10*pixels], b) || !tensor.Equal(long.Tensors[1].Narrow(0, 0, 10), short.Tensors[1]) {
		t.Error("the first ten digits of a thousand are not those of ten")
	}
}

func TestDigits_NoImageComesTwice(t *testing.T) {
	seen := map[string]bool{}
	for seed := range uint64(3) {
		for img := range chunks(datasets.Digits(1000, seed)) {
			if seen[string(img)] {
				t.Fatalf("an image of seed %d has been seen before", seed)
			}
			seen[string(img)] = true
		}
	}
}

func TestDigits_AreEquallyLikely(t *testing.T) {
	var count [10]int
	for _, l := range tensor.Data[int64](datasets.Digits(10_000, 1).Tensors[1]) {
		count[l]++
	}
	for digit, n := range count {
		if n < 880 || n > 1120 { // four standard deviations
			t.Errorf("%d comes %d times in 10000", digit, n)
		}
	}
}

func TestDigits_HaveMNISTsBrightness(t *testing.T) {
	sum, n := 0, 0
	for img := range chunks(datasets.Digits(2000, 1)) {
		n++
		ink := 0
		for _, v := range img {
			sum += int(v)
			if v > 100 {
				ink++
			}
		}
		if ink < 10 {
			t.Errorf("image %d has %d pixels of ink", n-1, ink)
		}
	}
	if mean := float64(sum) / 255 / float64(n*pixels); mean < .1 || mean > .16 {
		t.Errorf("the mean is %.3f, MNIST's %.3f", mean, datasets.MNISTMean)
	}
}

// A digit is to be told from the others by its form: the mean of each digit's images is nearest to
// most of them.
func TestDigits_ResembleTheirKind(t *testing.T) {
	train, test := datasets.Digits(5000, 1), datasets.Digits(1000, 2)
	var mean [10][pixels]float64
	var count [10]float64
	labels := tensor.Data[int64](train.Tensors[1])
	i := 0
	for img := range chunks(train) {
		l := labels[i]
		for k, v := range img {
			mean[l][k] += float64(v)
		}
		count[l]++
		i++
	}
	right, i := 0, 0
	for img := range chunks(test) {
		best, at := 0., -1
		for l := range mean {
			d := 0.
			for k, v := range img {
				e := float64(v) - mean[l][k]/count[l]
				d += e * e
			}
			if at < 0 || d < best {
				best, at = d, l
			}
		}
		if int64(at) == tensor.Data[int64](test.Tensors[1])[i] {
			right++
		}
		i++
	}
	if right < 600 || right > 950 {
		t.Errorf("%d of 1000 are nearest to their kind's mean: too hard or too easy", right)
	}
	t.Logf("%d of 1000 are nearest to their kind's mean", right)
}

// chunks yields the images of a set.
func chunks(d *data.TensorDataset) func(yield func([]uint8) bool) {
	return func(yield func([]uint8) bool) {
		all := tensor.Data[uint8](d.Tensors[0])
		for i := range d.Len() {
			if !yield(all[i*pixels : (i+1)*pixels]) {
				return
			}
		}
	}
}

func BenchmarkDigits(b *testing.B) {
	for b.Loop() {
		datasets.Digits(1000, 1)
	}
	b.ReportMetric(float64(b.N)*1000/b.Elapsed().Seconds(), "images/s")
}
