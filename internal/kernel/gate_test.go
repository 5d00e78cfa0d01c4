package kernel_test

import (
	"math"
	"testing"

	"github.com/shoal-mp/shoal/internal/kernel"
)

// An activation is a kernel, the kernel of its gradient, and what both are.
type activation[F kernel.Float] struct {
	name     string
	forward  func(x, y []F)
	backward func(x, dy, dx []F)
	y, slope func(x float64) float64
}

func phi(x float64) float64 { return math.Erfc(-x/math.Sqrt2) / 2 }

func activations[F kernel.Float]() []activation[F] {
	gated := func(name string, g kernel.Gate) activation[F] {
		sigma := func(x float64) float64 { return 1 / (1 + math.Exp(-(g.A*x + g.B*x*x*x))) }
		return activation[F]{name, func(x, y []F) { kernel.Gated(g, x, y) },
			func(x, dy, dx []F) { kernel.GatedBackward(g, x, dy, dx) },
			func(x float64) float64 { return x * sigma(x) },
			func(x float64) float64 { return sigma(x) + x*sigma(x)*(1-sigma(x))*(g.A+3*g.B*x*x) }}
	}
	return []activation[F]{
		{"GELU", kernel.GELU[F], kernel.GELUBackward[F], func(x float64) float64 { return x * phi(x) },
			func(x float64) float64 { return phi(x) + x*math.Exp(-x*x/2)/math.Sqrt(2*math.Pi) }},
		gated("SiLU", kernel.SiLU), gated("GELUTanh", kernel.GELUTanh),
	}
}

func checkActivations[F kernel.Float](t *testing.T) {
	var x []F
	for v := -16.0; v < 16; v += 1.0 / 64 {
		x = append(x, F(v))
	}
	x = append(x, 0, 1e-30, -1e-30, 1e-3, 300, -300, 1e30, -1e30)
	tolerance := 1e-14
	if !isDouble[F]() {
		tolerance = 4e-7
	}
	dy, y, dx := make([]F, len(x)), make([]F, len(x)), make([]F, len(x))
	for i := range dy {
		dy[i] = -2
	}
	for _, a := range activations[F]() {
		a.forward(x, y)
		a.backward(x, dy, dx)
		for i, v := range x {
			if math.Abs(float64(v)) > 1e9 { // where the formulas above have no number
				if y[i] != max(v, 0) || dx[i] != -2*F(number(v > 0)) {
					t.Errorf("%s of %v is %v, its slope %v", a.name, v, y[i], dx[i]/-2)
				}
				continue
			}
			size := math.Abs(float64(v))
			if want := a.y(float64(v)); !(math.Abs(float64(y[i])-want) <= tolerance*size) {
				t.Errorf("%s of %v is %v, want %v", a.name, v, y[i], want)
			}
			if want := a.slope(float64(v)); !(math.Abs(float64(dx[i])/-2-want) <= tolerance*(1+size)) {
				t.Errorf("the slope of %s at %v is %v, want %v", a.name, v, dx[i]/-2, want)
			}
		}
	}
}

func number(b bool) int {
	if b {
		return 1
	}
	return 0
}

func TestActivationsAreTheirFormulas(t *testing.T) {
	onEachLevel(t, func(t *testing.T) {
		t.Run("float32", checkActivations[float32])
		t.Run("float64", checkActivations[float64])
	})
}

// As in PyTorch: -∞ times 0 is no number.
func TestActivationsOfWhatIsNoNumber(t *testing.T) {
	onEachLevel(t, func(t *testing.T) {
		inf := float32(math.Inf(1))
		for _, a := range activations[float32]() {
			x, y := []float32{inf, -inf, -inf + inf}, make([]float32, 3)
			if a.forward(x, y); y[0] != inf || y[1] == y[1] || y[2] == y[2] {
				t.Errorf("%s of %v is %v", a.name, x, y)
			}
		}
	})
}
