package kernel_test

import (
	"fmt"
	"math"
	"os"
	"strconv"
	"unsafe"

	"github.com/shoal-mp/shoal/internal/kernel"
)

// countRow is a kernel of which scripts/arm64-counts counts the instructions for each of n
// elements.
type countRow struct {
	name string
	n    int
	run  func()
}

// countN is the number of elements of most rows: several pieces, which fit into a cache.
const countN = 4096

// countRows returns the rows for float32, and those for float64 with "64" behind their names.
func countRows() []countRow {
	rows := append(floatRows[float32](""), floatRows[float64]("64")...)
	return append(append(rows, castRows()...), compareRows()...)
}

func floatRows[F kernel.Float](suffix string) []countRow {
	const side = 128
	a, b, c := noise[F](1, side*side), noise[F](2, side*side), make([]F, side*side)
	x, y, z, w := noise[F](1, countN), noise[F](2, countN), make([]F, countN), noise[F](3, countN)
	positive := make([]F, countN)
	for i, v := range x {
		positive[i] = F(math.Abs(float64(v))) + 0.01
	}
	rows := []countRow{
		{"product", side * side * side, func() {
			kernel.Gemm(false, false, side, side, side, 1, a, side, b, side, 0, c, side)
		}},
		{"add", countN, func() { kernel.Add(x, y, z) }},
		{"mul", countN, func() { kernel.Mul(x, y, z) }},
		{"div", countN, func() { kernel.Div(x, y, z) }},
		{"max", countN, func() { kernel.Max(x, y, z) }},
		{"clamp", countN, func() { kernel.Clamp(-0.5, 0.5, x, z) }},
		{"axpy", countN, func() { kernel.Axpy(0.001, x, z) }},
		{"scale", countN, func() { kernel.ScaleTo(2, x, z) }},
		{"relu", countN, func() { kernel.Relu(x, z) }},
		{"relu_backward", countN, func() { kernel.ReluBackward(x, y, z) }},
		{"exp", countN, func() { kernel.Exp(x, z) }},
		{"sigmoid", countN, func() { kernel.Sigmoid(x, z) }},
		{"tanh", countN, func() { kernel.Tanh(x, z) }},
		{"sum", countN, func() { kernel.Sum(x) }},
		{"sum_double", countN, func() { kernel.Sum64(x) }},
		{"dot", countN, func() { kernel.Dot(x, y) }},
		{"largest", countN, func() { kernel.Largest(x) }},
		{"product_of_all", countN, func() { kernel.Product(positive) }},
		{"softmax", countN, func() { kernel.Softmax(64, countN/64, x, z) }},
		{"log_softmax", countN, func() { kernel.LogSoftmax(64, countN/64, x, z) }},
		{"layer_norm", countN, func() {
			var means, scales [8]float64
			norm := kernel.Norm{Rows: 8, Groups: 1, Per: countN / 8, Run: 1, Eps: 1e-5}
			kernel.Normalize(norm, x, y, w, z, means[:], scales[:])
		}},
		{"sgd", countN, func() { kernel.SGD(w, y, z, 0.001, 0.9, 0, 0, false, false) }},
		{"adam", countN, func() {
			kernel.Adam(kernel.AdamStep{LR: 1e-6, Beta1: 0.9, Beta2: 0.9, Eps: 1, N: 1}, w, y, z, positive)
		}},
		{"rmsprop", countN, func() {
			kernel.RMSprop(kernel.RMSpropStep{LR: 1e-6, Alpha: 0.9, Eps: 1}, w, y, positive)
		}},
		{"transpose", side * side, func() { kernel.Transpose(side, side, a, side, c, side) }},
		{"sqrt", countN, func() { kernel.Map(kernel.Sqrt, positive, z) }},
		{"log", countN, func() { kernel.Map(kernel.Log, positive, z) }},
		{"log1p", countN, func() { kernel.Map(kernel.Log1p, positive, z) }},
		{"expm1", countN, func() { kernel.Map(kernel.Expm1, x, z) }},
		{"sin", countN, func() { kernel.Map(kernel.Sin, x, z) }},
		{"floor", countN, func() { kernel.Map(kernel.Floor, x, z) }},
	}
	if suffix == "" {
		rows = append(rows, singleRows(x, y, z, positive)...)
	}
	for i := range rows {
		rows[i].name += suffix
	}
	return rows
}

// singleRows returns the rows of kernels in float32, and of random numbers.
func singleRows[F kernel.Float](x, y, z, positive []F) []countRow {
	single := func(x []F) []float32 { return any(x).([]float32) }
	doubles, bits := make([]float64, countN), make([]uint64, 2*countN)
	states, rule := new([2 * kernel.States]uint64), [4]uint64{1, 2, 3, 4}
	kernel.Congruence(states, &rule, bits)
	fractions := widen(positive)
	image, pooled, places := noise[F](1, 4*countN), make([]F, countN), make([]int32, countN)
	return []countRow{
		{"gelu", countN, func() { kernel.GELU(x, z) }},
		{"erf", countN, func() { kernel.Map(kernel.Erf, x, z) }},
		{"atan", countN, func() { kernel.Map(kernel.Atan, x, z) }},
		{"power", countN, func() { kernel.Power(single(positive), single(y), single(z)) }},
		{"hypot", countN, func() { kernel.Hypot(single(x), single(y), single(z)) }},
		{"max_pool", countN, func() { kernel.MaxPool2d(1, 1, 128, 128, 2, 2, 2, 2, 0, 0, image, pooled, places) }},
		{"column_sums", countN, func() { kernel.ColumnSums(64, countN/64, x, countN/64, doubles[:countN/64], false) }},
		{"fractions", countN, func() { kernel.Fractions(bits[:countN], 24, 0, 1, doubles) }},
		{"polar64", countN, func() { kernel.Polar(fractions, doubles) }},
	}
}

// castRows returns the casts. Where a level has no loop for a cast, the loop is the one of a
// caller.
func castRows() (rows []countRow) {
	plain := map[kernel.Cast]func(dst, src []byte){
		kernel.Float32ToBrain:   roundEach,
		kernel.BrainToFloat32:   widenEach,
		kernel.Uint8ToFloat32:   castEach[uint8, float32],
		kernel.Int32ToFloat32:   castEach[int32, float32],
		kernel.Float32ToFloat64: castEach[float32, float64],
		kernel.Float64ToFloat32: castEach[float64, float32],
		kernel.Float32ToInt64:   castEach[float32, int64],
		kernel.Int64ToFloat32:   castEach[int64, float32],
	}
	names := map[kernel.Cast]string{kernel.Float32ToBrain: "to_bfloat16", kernel.BrainToFloat32: "from_bfloat16",
		kernel.Uint8ToFloat32: "from_uint8", kernel.Int32ToFloat32: "from_int32", kernel.Float32ToFloat64: "to_float64",
		kernel.Float64ToFloat32: "from_float64", kernel.Float32ToInt64: "to_int64", kernel.Int64ToFloat32: "from_int64"}
	for cast := range kernel.Cast(len(kernel.CastSizes)) {
		if plain[cast] == nil {
			continue // halves: a function with many branches
		}
		src, dst := memory(noise[float64](1, countN)), make([]byte, 8*countN)
		rows = append(rows, countRow{names[cast], countN, func() {
			if cast.Do(countN, dst, src) == 0 {
				plain[cast](dst, src)
			}
		}})
	}
	return rows
}

// elementsOf returns b as elements of type A.
func elementsOf[A any](b []byte) []A { return unsafe.Slice((*A)(unsafe.Pointer(&b[0])), countN) }

func castEach[A, B uint8 | int32 | int64 | float32 | float64](dst, src []byte) {
	y := elementsOf[B](dst)
	for i, v := range elementsOf[A](src) {
		y[i] = B(v)
	}
}

func roundEach(dst, src []byte) {
	y := elementsOf[uint16](dst)
	for i, v := range elementsOf[float32](src) {
		if b := math.Float32bits(v); v == v {
			y[i] = uint16((b + 0x7fff + b>>16&1) >> 16)
		} else {
			y[i] = 0x7fc0
		}
	}
}

func widenEach(dst, src []byte) {
	y := elementsOf[float32](dst)
	for i, v := range elementsOf[uint16](src) {
		y[i] = math.Float32frombits(uint32(v) << 16)
	}
}

func compareRows() []countRow {
	x, y, z := noise[float32](1, countN), noise[float32](2, countN), make([]uint8, countN)
	longs, others := make([]int64, countN), make([]int64, countN)
	return []countRow{
		{"less", countN, func() {
			if kernel.Compare(kernel.Less, x, y, z) == 0 {
				compareEach(x, y, z)
			}
		}},
		{"less_int64", countN, func() {
			if kernel.Compare(kernel.Less, longs, others, z) == 0 {
				compareEach(longs, others, z)
			}
		}},
	}
}

func compareEach[T float32 | int64](x, y []T, z []uint8) {
	for i := range z {
		less := uint8(0)
		if x[i] < y[i] {
			less = 1
		}
		z[i] = less
	}
}

// runCounted runs the row of a command, as often as it says: "name times". It prints the number of
// elements, or without a name the names of all rows.
func runCounted(command string) error {
	kernel.SetThreads(1)
	var name, times string
	fmt.Sscan(command, &name, &times)
	for _, row := range countRows() {
		if name == "names" {
			fmt.Println(row.name)
			continue
		}
		if row.name != name {
			continue
		}
		n, err := strconv.Atoi(times)
		if err != nil {
			return err
		}
		for range n {
			row.run()
		}
		fmt.Println("elements", row.n)
		return nil
	}
	if name != "names" {
		return fmt.Errorf("kernel: no row %q to count, want one of those that names prints", name)
	}
	os.Stdout.Sync()
	return nil
}
