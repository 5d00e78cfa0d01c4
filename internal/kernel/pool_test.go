package kernel_test

import (
	"math"
	"testing"

	"github.com/shoal-mp/shoal/internal/kernel"
	"pgregory.net/rapid"
)

// window is a pooling of n×c planes.
type window struct{ n, c, h, w, kh, kw, sh, sw, ph, pw int }

func (p window) outH() int { return (p.h+2*p.ph-p.kh)/p.sh + 1 }
func (p window) outW() int { return (p.w+2*p.pw-p.kw)/p.sw + 1 }

func drawWindow(t *rapid.T) window {
	size := rapid.IntRange(1, 4)
	p := window{n: rapid.IntRange(0, 4).Draw(t, "n"), c: size.Draw(t, "c"), kh: 2, kw: 2, sh: 2, sw: 2}
	if rapid.Bool().Draw(t, "any window") {
		p.kh, p.kw, p.sh, p.sw = size.Draw(t, "kh"), size.Draw(t, "kw"), size.Draw(t, "sh"), size.Draw(t, "sw")
		p.ph, p.pw = rapid.IntRange(0, p.kh/2).Draw(t, "ph"), rapid.IntRange(0, p.kw/2).Draw(t, "pw")
	}
	p.h, p.w = rapid.IntRange(p.kh, 24).Draw(t, "h"), rapid.IntRange(p.kw, 24).Draw(t, "w")
	return p
}

// largest is where the window of output pixel (oh, ow) has its first largest value or its last NaN,
// as PyTorch looks for it.
func (p window) largest(plane []float32, oh, ow int) (at int) {
	at = -1
	for kh := range p.kh {
		for kw := range p.kw {
			h, w := oh*p.sh-p.ph+kh, ow*p.sw-p.pw+kw
			if h < 0 || h >= p.h || w < 0 || w >= p.w {
				continue
			}
			if v := plane[h*p.w+w]; at < 0 || v > plane[at] || math.IsNaN(float64(v)) {
				at = h*p.w + w
			}
		}
	}
	return at
}

func TestMaxPool2dFindsTheLargestOfEveryWindow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		onSomeMachine(t)
		p := drawWindow(t)
		in, out := p.h*p.w, p.outH()*p.outW()
		x := noise[float32](rapid.Uint64().Draw(t, "x"), p.n*p.c*in)
		special := []float32{0, 1, float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1))}
		for range rapid.IntRange(0, 9).Draw(t, "special values") * len(x) / 20 {
			x[rapid.IntRange(0, len(x)-1).Draw(t, "at")] = rapid.SampledFrom(special).Draw(t, "value")
		}
		y, idx := make([]float32, p.n*p.c*out), make([]int32, p.n*p.c*out)
		kernel.MaxPool2d(p.n, p.c, p.h, p.w, p.kh, p.kw, p.sh, p.sw, p.ph, p.pw, x, y, idx)
		dy, dx := noise[float32](1, len(y)), noise[float32](2, len(x))
		wantDx := make([]float64, len(x))
		for i := range y {
			plane := x[i/out*in:][:in]
			want := p.largest(plane, i%out/p.outW(), i%p.outW())
			if int(idx[i]) != want || math.Float32bits(y[i]) != math.Float32bits(plane[want]) {
				t.Fatalf("output %d is %v of %d, want %v of %d", i, y[i], idx[i], plane[want], want)
			}
			wantDx[i/out*in+want] += float64(dy[i])
		}
		kernel.MaxPool2dBackward(p.n, p.c, p.h, p.w, p.kh, p.kw, p.sh, p.sw, p.ph, p.pw, dy, idx, dx)
		near(t, "dx", dx, wantDx, 1)
	})
}

func TestAnImpossiblePoolingPanics(t *testing.T) {
	for name, p := range map[string]window{
		"window larger than plane": {1, 1, 2, 2, 3, 1, 1, 1, 0, 0},
		"too much padding":         {1, 1, 4, 4, 2, 2, 1, 1, 2, 0},
		"no stride":                {1, 1, 4, 4, 2, 2, 0, 1, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if panics(func() {
				kernel.MaxPool2d(p.n, p.c, p.h, p.w, p.kh, p.kw, p.sh, p.sw, p.ph, p.pw, make([]float64, 16),
					make([]float64, 99), make([]int32, 99))
			}) == nil {
				t.Fatal("accepted")
			}
		})
	}
}
