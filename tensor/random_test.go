package tensor_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"

	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
)

func TestGenerator_OfOneSeedMakesTheSameNumbersEverywhere(t *testing.T) {
	g := tensor.NewGenerator(42)
	for name, c := range map[string]struct{ got, want string }{
		"bits": {fmt.Sprint(g.Fork(0).Uint64(), g.Fork(1).Uint64()), "13407177404076555889 9878911966128215847"},
		"uniform": {fmt.Sprint(tensor.Rand(tensor.Float64, g.Fork(2), 2).ToNested()),
			"[0.7852838666090148 0.4006307228603351]"},
		"normal": {fmt.Sprint(tensor.RandN(tensor.Float64, g.Fork(3), 3).ToNested()),
			"[-0.19216453849971535 -0.7648871276138549 -0.3881660823209511]"},
		"int":  {fmt.Sprint(tensor.RandInt(g.Fork(4), -5, 5, 6).ToNested()), "[4 -5 -5 3 -3 3]"},
		"perm": {fmt.Sprint(tensor.RandPerm(g.Fork(5), 8).ToNested()), "[5 3 2 1 7 4 0 6]"},
	} {
		if c.got != c.want {
			t.Errorf("%s: %s, want %s", name, c.got, c.want)
		}
	}
}

func TestGenerator_DistributionsHaveTheirMoments(t *testing.T) {
	const n = 200_000
	g := tensor.NewGenerator(7)
	for name, c := range map[string]struct {
		x              *tensor.Tensor
		mean, variance float64
	}{
		"uniform":   {tensor.New(tensor.Float32, n).FillUniform(g, -1, 3), 1, 16. / 12},
		"normal":    {tensor.New(tensor.Float64, n).FillNormal(g, 2, 0.5), 2, 0.25},
		"bernoulli": {tensor.New(tensor.Float32, n).FillBernoulli(g, 0.3), 0.3, 0.21},
		"integers":  {tensor.RandInt(g, 0, 10, n).To(tensor.Float64), 4.5, 8.25},
	} {
		deviation := math.Sqrt(c.variance / n)
		if m := c.x.Mean(); math.Abs(m-c.mean) > 5*deviation {
			t.Errorf("%s: mean %v", name, m)
		}
		if v := tensor.Var(c.x).Item(); math.Abs(v/c.variance-1) > 0.02 {
			t.Errorf("%s: variance %v", name, v)
		}
	}
	tail := tensor.Gt(tensor.Abs(tensor.RandN(tensor.Float64, g, n)), tensor.Scalar(tensor.Float64, 1.959964))
	if share := tail.Sum() / n; math.Abs(share-0.05) > 0.003 {
		t.Errorf("%v of the numbers are outside the 95%% interval", share)
	}
}

func TestTensorUniform_StaysBelowOne(t *testing.T) {
	for _, dt := range []tensor.DType{tensor.Float16, tensor.BFloat16, tensor.Float32} {
		x := tensor.Rand(dt, tensor.NewGenerator(1), 100_000)
		if values, _ := tensor.Max(x, 0); values.Item() >= 1 {
			t.Errorf("%v: %v", dt, values)
		}
	}
}

func TestGenerator_GoesOnFromItsState(t *testing.T) {
	g := tensor.NewGenerator(3)
	g.Uint64()
	h := tensor.NewGenerator(0)
	testutil.NoError(t, h.SetState(g.State()))
	for range 10 {
		if g.Uint64() != h.Uint64() {
			t.Fatal("the numbers differ")
		}
	}
	if g.Fork(9).Uint64() != h.Fork(9).Uint64() || g.Fork(9).Uint64() == g.Fork(10).Uint64() ||
		g.Fork(9).Fork(1).Uint64() == g.Fork(1).Uint64() {
		t.Error("forks are not what their numbers say")
	}
	for _, b := range [][]byte{nil, make([]byte, 48)} {
		if err := h.SetState(b); !errors.Is(err, tensor.ErrState) {
			t.Errorf("SetState of %d bytes: %v", len(b), err)
		}
	}
}

func TestDefaultGenerator_IsSeeded(t *testing.T) {
	tensor.ManualSeed(5)
	a := tensor.RandN(tensor.Float32, nil, 10)
	tensor.ManualSeed(5)
	if b := tensor.RandN(tensor.Float32, tensor.DefaultGenerator(), 10); !tensor.Equal(a, b) {
		t.Errorf("%v and %v", a, b)
	}
}

func TestGenerator_IsSharedByGoroutines(t *testing.T) {
	g := tensor.NewGenerator(11)
	var mu sync.Mutex
	var wg sync.WaitGroup
	seen := map[uint64]bool{}
	for range 4 {
		wg.Go(func() {
			for range 1000 {
				v := g.Uint64()
				mu.Lock()
				seen[v] = true
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if len(seen) != 4000 {
		t.Errorf("%d different numbers of 4000", len(seen))
	}
}

// Numbers that are drawn together are those that are drawn one by one, of any generator.
func TestGenerator_DrawsTogetherWhatItDrawsOneByOne(t *testing.T) {
	for _, stream := range []uint64{0, 1, 1 << 63, 12345} {
		for _, n := range []int{1, 7, 8, 63, 64, 65, 71, 72, 73, 511, 512, 513, 600, 3000} {
			a, b := tensor.NewGenerator(7).Fork(stream), tensor.NewGenerator(7).Fork(stream)
			for i, v := range tensor.Data[float64](tensor.Rand(tensor.Float64, a, n)) {
				if want := b.Float64(); v != want {
					t.Fatalf("number %d of %d in stream %d: %v, want %v", i, n, stream, v, want)
				}
			}
			if a.Uint64() != b.Uint64() {
				t.Fatalf("after %d numbers of stream %d it goes on elsewhere", n, stream)
			}
		}
	}
}

func TestRandPerm_IsComplete(t *testing.T) {
	p := slices.Clone(tensor.Data[int64](tensor.RandPerm(nil, 100)))
	slices.Sort(p)
	for i, v := range p {
		if v != int64(i) {
			t.Fatalf("number %d is %d", i, v)
		}
	}
}

// A seed means the same numbers for ever, on all machines.
func TestRandom_NumbersOfASeedStayTheSame(t *testing.T) {
	h, g := sha256.New(), tensor.NewGenerator(7)
	for _, n := range []int{1, 2, 3, 5, 7, 255, 256, 511, 512, 513, 1023, 1025, 100001} {
		for _, dt := range []tensor.DType{tensor.Float32, tensor.Float64, tensor.Float16, tensor.BFloat16} {
			x := tensor.RandN(dt, g, n)
			h.Write(tensor.Bytes(x))
			h.Write(tensor.Bytes(x.FillNormal(g, 3, 0.1)))
			h.Write(tensor.Bytes(tensor.Rand(dt, g, n)))
			h.Write(tensor.Bytes(x.FillUniform(g, -2, 5)))
			h.Write(tensor.Bytes(x.FillBernoulli(g, 0.3)))
			turned := tensor.New(dt, n, 2).T().FillNormal(g, 0, 1)
			h.Write(tensor.Bytes(turned.Contiguous()))
		}
		h.Write(tensor.Bytes(tensor.RandPerm(g, n)))
		h.Write(tensor.Bytes(tensor.RandInt(g, 0, 100, n)))
	}
	const want = "c3d5eebaa0b4d478e673796bcb561c759882edc3d07918d3424191b6443bb17d"
	if got := fmt.Sprintf("%x", h.Sum(nil)); got != want {
		t.Errorf("the numbers have the sum %s, want %s", got, want)
	}
}
