package kernel_test

import (
	"testing"

	"github.com/shoal-mp/shoal/internal/kernel"
	"pgregory.net/rapid"
)

// drawShape draws the geometry of a convolution, sizes of images up to the given one.
func drawShape(t *rapid.T, images, largest int) kernel.ConvShape {
	small := rapid.IntRange(1, 4)
	s := kernel.ConvShape{
		N: rapid.IntRange(0, images).Draw(t, "n"), C: small.Draw(t, "c"), OutC: small.Draw(t, "filters"),
		KH: rapid.IntRange(1, 5).Draw(t, "kh"), KW: rapid.IntRange(1, 5).Draw(t, "kw"),
		StrideH: rapid.IntRange(1, 3).Draw(t, "sh"), StrideW: rapid.IntRange(1, 3).Draw(t, "sw"),
		PadH: rapid.IntRange(0, 6).Draw(t, "ph"), PadW: rapid.IntRange(0, 6).Draw(t, "pw"),
	}
	high, wide := s.KH, s.KW // what a filter covers
	switch rapid.IntRange(0, 3).Draw(t, "kind") {
	case 0:
		s.Groups = rapid.IntRange(1, 3).Draw(t, "groups")
		s.C, s.OutC = s.C*s.Groups, s.OutC*s.Groups
	case 1:
		s.Groups = rapid.IntRange(1, 2).Draw(t, "groups")
		s.C, s.OutC = s.C*s.Groups, s.OutC*s.Groups
		s.DilationH, s.DilationW = rapid.IntRange(1, 3).Draw(t, "dh"), rapid.IntRange(1, 3).Draw(t, "dw")
		high, wide = (high-1)*s.DilationH+1, (wide-1)*s.DilationW+1
	}
	s.H = rapid.IntRange(max(1, high-2*s.PadH), max(largest, high)).Draw(t, "h")
	s.W = rapid.IntRange(max(1, wide-2*s.PadW), max(largest, wide)).Draw(t, "w")
	return s
}

// taps calls do with the places in x, w and y of every product of a convolution.
func taps(s kernel.ConvShape, do func(x, w, y int)) {
	groups := max(1, s.Groups)
	each := s.C / groups
	for n := range s.N {
		for o := range s.OutC {
			first := o / (s.OutC / groups) * each // channel of its group
			for oh := range s.OutH() {
				for ow := range s.OutW() {
					y := ((n*s.OutC+o)*s.OutH()+oh)*s.OutW() + ow
					for c := range each {
						for kh := range s.KH {
							for kw := range s.KW {
								h, w := oh*s.StrideH-s.PadH+kh*max(1, s.DilationH),
									ow*s.StrideW-s.PadW+kw*max(1, s.DilationW)
								if h >= 0 && h < s.H && w >= 0 && w < s.W {
									do(((n*s.C+first+c)*s.H+h)*s.W+w, ((o*each+c)*s.KH+kh)*s.KW+kw, y)
								}
							}
						}
					}
				}
			}
		}
	}
}

// layer is a convolution with data.
type layer[F kernel.Float] struct {
	s                kernel.ConvShape
	x, w, b, y       []F
	dy, dx, dw, db   []F
	area, parameters int
}

func newLayer[F kernel.Float](s kernel.ConvShape) layer[F] {
	l := layer[F]{s: s, area: s.OutH() * s.OutW(), parameters: s.OutC * s.C / max(1, s.Groups) * s.KH * s.KW}
	l.x, l.w, l.b = noise[F](1, s.N*s.C*s.H*s.W), noise[F](2, l.parameters), noise[F](3, s.OutC)
	l.y, l.dy = noise[F](4, s.N*s.OutC*l.area), noise[F](5, s.N*s.OutC*l.area)
	l.dx, l.dw, l.db = noise[F](6, len(l.x)), noise[F](7, len(l.w)), noise[F](8, len(l.b))
	return l
}

func checkConv2d[F kernel.Float](t *rapid.T) {
	onSomeMachine(t)
	var scratch kernel.Scratch
	for range 2 { // the second call finds the scratch of the first
		l := newLayer[F](drawShape(t, 4, 16))
		if rapid.Bool().Draw(t, "no bias") {
			l.b = nil
		}
		want := make([]float64, len(l.y))
		for i := range want {
			if l.b != nil {
				want[i] = float64(l.b[i/l.area%l.s.OutC])
			}
		}
		taps(l.s, func(x, w, y int) { want[y] += float64(l.x[x]) * float64(l.w[w]) })
		kernel.Conv2d(l.s, l.x, l.w, l.b, l.y, &scratch)
		near(t, "y", l.y, want, 10)
	}
}

func TestConv2dIsTheSumOverItsWindows(t *testing.T) {
	t.Run("float32", rapid.MakeCheck(checkConv2d[float32]))
	t.Run("float64", rapid.MakeCheck(checkConv2d[float64]))
}

func checkConv2dBackward[F kernel.Float](t *rapid.T) {
	onSomeMachine(t)
	var scratch kernel.Scratch
	for range 2 {
		l := newLayer[F](drawShape(t, 4, 16))
		wx, ww, wb := make([]float64, len(l.dx)), widen(l.dw), widen(l.db)
		taps(l.s, func(x, w, y int) {
			wx[x] += float64(l.dy[y]) * float64(l.w[w])
			ww[w] += float64(l.dy[y]) * float64(l.x[x])
		})
		for i, v := range l.dy {
			wb[i/l.area%l.s.OutC] += float64(v)
		}
		wanted := rapid.IntRange(0, 7).Draw(t, "wanted gradients")
		for i, want := range []*[]float64{&wx, &ww, &wb} {
			if wanted>>i&1 == 0 {
				*want = nil
			}
		}
		l.dx, l.dw, l.db = onlyIf(wx, l.dx), onlyIf(ww, l.dw), onlyIf(wb, l.db)
		kernel.Conv2dBackward(l.s, l.x, l.w, l.dy, l.dx, l.dw, l.db, &scratch)
		near(t, "dx", l.dx, wx, 10)
		near(t, "dw", l.dw, ww, 40)
		near(t, "db", l.db, wb, 40)
	}
}

// onlyIf is x where it is wanted.
func onlyIf[F kernel.Float](want []float64, x []F) []F {
	if want == nil {
		return nil
	}
	return x
}

func TestConv2dBackwardOverwritesDxAndAddsToTheParameters(t *testing.T) {
	t.Run("float32", rapid.MakeCheck(checkConv2dBackward[float32]))
	t.Run("float64", rapid.MakeCheck(checkConv2dBackward[float64]))
}

func TestConv2dBackwardIsTheSlopeOfConv2d(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := newLayer[float64](drawShape(t, 2, 5))
		clear(l.dw)
		clear(l.db)
		kernel.Conv2dBackward(l.s, l.x, l.w, l.dy, l.dx, l.dw, l.db, nil)
		loss := func() float64 {
			kernel.Conv2d(l.s, l.x, l.w, l.b, l.y, nil)
			return dot(l.y, l.dy)
		}
		slope(t, "x", l.x, l.dx, loss)
		slope(t, "w", l.w, l.dw, loss)
		slope(t, "b", l.b, l.db, loss)
	})
}

// The layers of the MNIST net, on every way through the kernels.
func TestTheLayersOfTheMNISTNetAreRight(t *testing.T) { onEachLevel(t, checkLayers) }

func checkLayers(t *testing.T) {
	// sums longer than a tile adds at once
	wide := kernel.ConvShape{N: 1, C: 2, H: 70, W: 70, OutC: 3, KH: 1, KW: 1, StrideH: 1, StrideW: 1}
	for _, s := range []kernel.ConvShape{conv1, conv2, wide} {
		for _, threads := range []int{1, 3} {
			before := kernel.Threads()
			kernel.SetThreads(threads)
			s.N = 5
			l := newLayer[float32](s)
			y, dx, dw := make([]float64, len(l.y)), make([]float64, len(l.dx)), widen(l.dw)
			for i := range y {
				y[i] = float64(l.b[i/l.area%s.OutC])
			}
			taps(s, func(xi, wi, yi int) {
				y[yi] += float64(l.x[xi]) * float64(l.w[wi])
				dx[xi] += float64(l.dy[yi]) * float64(l.w[wi])
				dw[wi] += float64(l.dy[yi]) * float64(l.x[xi])
			})
			kernel.Conv2d(s, l.x, l.w, l.b, l.y, nil)
			kernel.Conv2dBackward(s, l.x, l.w, l.dy, l.dx, l.dw, l.db, nil)
			kernel.SetThreads(before)
			near(t, "y", l.y, y, 40)
			near(t, "dx", l.dx, dx, 40)
			near(t, "dw", l.dw, dw, 400)
		}
	}
}

func TestConv2dAllocatesNothingWithScratchAndOneThread(t *testing.T) {
	oneThread(t)
	s := conv2
	s.N = 4
	l, scratch := newLayer[float32](s), new(kernel.Scratch)
	kernel.Conv2dBackward(s, l.x, l.w, l.dy, l.dx, l.dw, l.db, scratch)
	if n := testing.AllocsPerRun(10, func() {
		kernel.Conv2d(s, l.x, l.w, l.b, l.y, scratch)
		kernel.Conv2dBackward(s, l.x, l.w, l.dy, l.dx, l.dw, l.db, scratch)
	}); n != 0 {
		t.Fatalf("a step allocates %v times, want 0", n)
	}
}

func TestAnImpossibleConvolutionPanics(t *testing.T) {
	for name, s := range map[string]kernel.ConvShape{
		"filter larger than image": {N: 1, C: 1, H: 2, W: 2, OutC: 1, KH: 3, KW: 1, StrideH: 1, StrideW: 1},
		"no stride":                {N: 1, C: 1, H: 2, W: 2, OutC: 1, KH: 1, KW: 1, StrideH: 1},
		"no channels":              {N: 1, H: 2, W: 2, OutC: 1, KH: 1, KW: 1, StrideH: 1, StrideW: 1},
		"negative padding":         {N: 1, C: 1, H: 4, W: 4, OutC: 1, KH: 1, KW: 1, StrideH: 1, StrideW: 1, PadH: -1},
	} {
		t.Run(name, func(t *testing.T) {
			if panics(func() {
				kernel.Conv2d(s, make([]float32, 99), make([]float32, 99), nil, make([]float32, 99), nil)
			}) == nil {
				t.Fatal("accepted")
			}
		})
	}
}
