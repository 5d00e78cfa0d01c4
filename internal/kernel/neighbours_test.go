package kernel_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/shoal-mp/shoal/internal/kernel"
)

// An element's bits depend on itself alone: not on its place, nor on its neighbours, of which some
// are those for which loops have no instructions.
func TestElementwiseKernelsIgnoreNeighbours(t *testing.T) {
	onEachLevel(t, func(t *testing.T) {
		testNeighbours[float32](t)
		testNeighbours[float64](t)
	})
}

func testNeighbours[F kernel.Float](t *testing.T) {
	ones := map[string]func(x, y []F){
		"Exp": kernel.Exp[F], "Sigmoid": kernel.Sigmoid[F], "Tanh": kernel.Tanh[F], "Relu": kernel.Relu[F],
		"GELU":     kernel.GELU[F],
		"SiLU":     func(x, y []F) { kernel.Gated(kernel.SiLU, x, y) },
		"GELUTanh": func(x, y []F) { kernel.Gated(kernel.GELUTanh, x, y) },
		"Clamp":    func(x, y []F) { kernel.Clamp(-1, 2, x, y) },
		"Shift":    func(x, y []F) { kernel.Shift(3, x, y) },
		"Scale":    func(x, y []F) { kernel.ScaleTo(3, x, y) },
	}
	for f := range kernel.Functions {
		ones[fmt.Sprint("Function ", f)] = mapped[F](f)
	}
	twos := map[string]func(x, y, z []F){
		"Add": kernel.Add[F], "Sub": kernel.Sub[F], "Mul": kernel.Mul[F], "Div": kernel.Div[F], "Max": kernel.Max[F],
		"Min": kernel.Min[F],
	}
	for name, f := range map[string]func(x, y, z []float32){
		"Power": kernel.Power, "Hypot": kernel.Hypot, "Atan2": kernel.Atan2, "Remainder": kernel.Remainder,
		"FloorDivide": kernel.FloorDivide, "LogAddExp": kernel.LogAddExp,
	} {
		if f, ok := any(f).(func(x, y, z []F)); ok {
			twos[name] = f
		}
	}
	r := rand.New(rand.NewPCG(39, 5))
	numbers := append(special[F](), F(1e22), F(-1e22), 32768.5, 1<<20+1, -1<<20-1)
	draw := func(n int) []F {
		x := make([]F, n)
		for i := range x {
			switch x[i] = F(r.NormFloat64()); r.IntN(3) {
			case 0:
				x[i] = numbers[r.IntN(len(numbers))]
			case 1:
				x[i] *= 1000
			}
		}
		return x
	}
	for _, n := range []int{1, 2, 3, 7, 8, 15, 17, 33, 100, 600, 5000} {
		x, y := draw(n), draw(n)
		for name, f := range ones {
			z := make([]F, n)
			f(x, z)
			for i := range x {
				one := make([]F, 1)
				if f(x[i:i+1], one); !sameBits(one[0], z[i]) {
					t.Errorf("%s of %v is %v alone, and %v as element %d of %d", name, x[i], one[0], z[i], i, n)
				}
			}
		}
		for name, f := range twos {
			z := make([]F, n)
			f(x, y, z)
			for i := range x {
				one := make([]F, 1)
				if f(x[i:i+1], y[i:i+1], one); !sameBits(one[0], z[i]) {
					t.Errorf("%s of %v and %v is %v alone, and %v as element %d of %d", name, x[i], y[i], one[0],
						z[i], i, n)
				}
			}
		}
	}
	for _, f := range []kernel.Function{kernel.Sin, kernel.Cos} { // in place, beside large numbers
		x := draw(5000)
		z, own := make([]F, len(x)), append([]F(nil), x...)
		kernel.Map(f, x, z)
		kernel.Map(f, own, own)
		for i := range z {
			if !sameBits(z[i], own[i]) {
				t.Fatalf("function %d of %v is %v, and %v in place", f, x[i], z[i], own[i])
			}
		}
	}
}

// sameBits reports whether a and b are the same number, zeros with their signs, or both NaN.
func sameBits[F kernel.Float](a, b F) bool {
	return a == b && 1/a == 1/b || a != a && b != b
}
