package kernel_test

import (
	"syscall"
	"testing"
	"unsafe"

	"github.com/shoal-mp/shoal/internal/kernel"
)

// guarded is noise between two pages that nobody may touch, as close to the second one, or to the
// first, as can be.
func guarded[F kernel.Float](t *testing.T, n int, atEnd bool) []F {
	page := syscall.Getpagesize()
	size := (n*int(unsafe.Sizeof(F(0))) + page - 1) / page * page
	all, err := syscall.Mmap(-1, 0, size+2*page, syscall.PROT_NONE, syscall.MAP_PRIVATE|syscall.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Munmap(all) })
	inside := all[page:][:size]
	if size == 0 {
		return nil
	}
	if err := syscall.Mprotect(inside, syscall.PROT_READ|syscall.PROT_WRITE); err != nil {
		t.Fatal(err)
	}
	x := unsafe.Slice((*F)(unsafe.Pointer(&inside[0])), size/int(unsafe.Sizeof(F(0))))
	if atEnd {
		x = x[len(x)-n:]
	}
	copy(x[:n], noise[F](1, n))
	return x[:n:n]
}

// A kernel that touches anything before or after its slices dies here of a segmentation fault.
func TestKernelsStayInsideTheirSlices(t *testing.T) {
	onEachLevel(t, func(t *testing.T) {
		t.Run("float32", checkInside[float32])
		t.Run("float64", checkInside[float64])
	})
}

func checkInside[F kernel.Float](t *testing.T) {
	for _, atEnd := range []bool{false, true} {
		make := func(n int) []F { return guarded[F](t, n, atEnd) }
		for n := 1; n <= 70; n++ {
			x, y, z := make(n), make(n), make(n)
			kernel.Stream(unsafe.Slice((*byte)(unsafe.Pointer(&x[0])), n), []byte{1})
			kernel.Relu(x, y)
			kernel.ReluBackward(x, y, z)
			kernel.Axpy(2, x, y)
			kernel.Sum(x)
			kernel.Sum64(x)
			kernel.RowSums(n, x, guarded[float64](t, 1, atEnd))
			kernel.RowSums(1, x, guarded[float64](t, n, atEnd))
			kernel.ColumnSums(1, n, x, n, guarded[float64](t, n, atEnd), false)
			kernel.ColumnSums(4, n, make(4*n), n, guarded[float64](t, n, atEnd), false)
			kernel.LargestColumns(1, n, x, n, y)
			kernel.SmallestColumns(4, n, make(4*n), n, y)
			kernel.Gather([]int{n - 1, 0, n - 1, 0, 0, 0, 0, 0}, memory(guarded[float32](t, n, atEnd)),
				memory(guarded[float32](t, 8, atEnd)))
			kernel.Product(x)
			randomInside(t, n, atEnd)
			for size := 1; size <= 8; size *= 2 {
				kernel.Reverse(size, memory(x), memory(y))
			}
			kernel.EveryOther(int(unsafe.Sizeof(F(0))), memory(guarded[F](t, (n+1)/2, atEnd)), memory(x))
			kernel.Hypot(guarded[float32](t, n, atEnd), guarded[float32](t, n, atEnd), guarded[float32](t, n, atEnd))
			kernel.Power(guarded[float32](t, n, atEnd), guarded[float32](t, n, atEnd), guarded[float32](t, n, atEnd))
			kernel.Atan2(guarded[float32](t, n, atEnd), guarded[float32](t, n, atEnd), guarded[float32](t, n, atEnd))
			for _, s := range []kernel.Short{kernel.Half, kernel.Brain} {
				s.Do(kernel.Products, memory(x), memory(y), memory(z))
				s.Relu(memory(x), memory(y))
				s.Sum(memory(x))
			}
			kernel.ScaleTo(2, x, y)
			kernel.Shift(2, x, y)
			kernel.Transpose(1, n, x, n, y, 1)
			kernel.Transpose(n, 1, x, 1, y, n)
			kernel.Transpose(16, n, make(16*n), n, make(16*n), 16)
			kernel.Dot(x, y)
			kernel.Add(x, y, z)
			kernel.Sub(x, y, z)
			kernel.Mul(x, y, z)
			kernel.Div(x, y, z)
			kernel.Max(x, y, z)
			kernel.Min(x, y, z)
			kernel.Largest(x)
			kernel.Smallest(x)
			kernel.Clamp(-1, 1, x, y)
			for c, size := range kernel.CastSizes {
				elems := n &^ 7 // which the kernel does
				kernel.Cast(c).Do(elems, memory(make(elems*size[1]/int(unsafe.Sizeof(F(0))))),
					memory(make(elems*size[0]/int(unsafe.Sizeof(F(0))))))
			}
			for f := range kernel.Functions {
				kernel.Map(f, x, y)
			}
			kernel.Exp(x, y)
			kernel.Sigmoid(x, y)
			kernel.Tanh(x, y)
			kernel.GELU(x, y)
			kernel.GELUBackward(x, y, z)
			kernel.Gated(kernel.GELUTanh, x, y)
			kernel.GatedBackward(kernel.SiLU, x, y, z)
			norm, at := kernel.Norm{Rows: 1, Groups: 1, Per: n, Run: 1, Eps: 1}, []float64{0}
			kernel.Normalize(norm, x, y, y, z, at, at)
			kernel.NormalizeBackward(norm, x, y, y, at, at, z, y, make(n), nil)
			r := kernel.Recurrence{L: 2, N: 1, H: n}
			gates, two, weights := make(8*n), make(2*n), make(4*n*n)
			kernel.LSTM(r, make(8*n), weights, x, y, gates, two, make(2*n), nil)
			kernel.LSTMBackward(r, weights, x, y, gates, two, make(2*n), two, z, make(n), make(8*n), weights, nil)
			kernel.GRU(r, make(6*n), make(3*n*n), make(3*n), x, gates[:6*n], make(2*n), two, nil)
			kernel.GRUBackward(r, make(3*n*n), x, gates[:6*n], make(2*n), two, two, z, make(6*n), make(3*n*n),
				make(3*n), nil)
			attention := kernel.Attention{Heads: 1, Q: n, K: n, D: 3, V: 2, Scale: 1, Causal: true}
			queries, outputs, logs := make(3*n), make(2*n), append([]float64{}, widen(x)...)
			kernel.Attend(attention, queries, queries, outputs, nil, outputs, logs)
			kernel.AttendBackward(attention, queries, queries, outputs, nil, outputs, logs, make(2*n),
				make(3*n), make(3*n), make(2*n), nil)
			kernel.Softmax(1, n, x, y)
			kernel.SoftmaxBackward(1, n, x, y, z)
			kernel.LogSoftmax(1, n, x, y)
			kernel.LogSoftmaxBackward(1, n, x, y, z)
			kernel.SGD(x, y, z, 0.1, 0.5, 0, 0, false, false)
			kernel.Adam(kernel.AdamStep{LR: 0.1, Beta1: 0.9, Beta2: 0.9, Eps: 1, N: 1}, x, y, z, make(n))
			kernel.RMSprop(kernel.RMSpropStep{LR: 0.1, Alpha: 0.9, Eps: 1}, x, y, z)
		}
		for _, s := range []struct{ m, n, k int }{{1, 1, 1}, {3, 5, 7}, {15, 33, 9}, {14, 32, 31},
			{7, 17, 300}, {29, 70, 5}, {40, 300, 260}} {
			for layout := range 4 {
				transA, transB := layout&1 == 1, layout&2 == 2
				lda, ldb := s.k, s.n
				if transA {
					lda = s.m
				}
				if transB {
					ldb = s.k
				}
				kernel.Gemm(transA, transB, s.m, s.n, s.k, 1, make(s.m*s.k), lda, make(s.k*s.n), ldb, 1,
					make(s.m*s.n), s.n)
			}
		}
		for _, s := range []kernel.ConvShape{
			{N: 2, C: 1, H: 9, W: 11, OutC: 3, KH: 5, KW: 5, StrideH: 1, StrideW: 1},
			{N: 2, C: 3, H: 8, W: 7, OutC: 4, KH: 3, KW: 2, StrideH: 2, StrideW: 1, PadH: 1, PadW: 1},
			{N: 1, C: 9, H: 6, W: 6, OutC: 17, KH: 1, KW: 1, StrideH: 1, StrideW: 2},
			{N: 2, C: 6, H: 9, W: 8, OutC: 9, KH: 3, KW: 3, StrideH: 1, StrideW: 1, PadH: 1, PadW: 1, Groups: 3},
			{N: 2, C: 4, H: 9, W: 8, OutC: 6, KH: 3, KW: 2, StrideH: 2, StrideW: 1, PadH: 1, PadW: 1,
				Groups: 2, DilationH: 2, DilationW: 3},
		} {
			area := s.OutH() * s.OutW()
			x, w, b, y := make(s.N*s.C*s.H*s.W), make(s.OutC*s.C/max(1, s.Groups)*s.KH*s.KW), make(s.OutC),
				make(s.N*s.OutC*area)
			kernel.Conv2d(s, x, w, b, y, nil)
			kernel.Conv2dBackward(s, x, w, y, make(len(x)), make(len(w)), make(len(b)), nil)
		}
		for _, side := range []int{2, 3, 8, 24, 33, 66} {
			x, y := make(2*side*side), make(2*(side/2)*(side/2))
			idx := guardedIndices(t, len(y), atEnd)
			kernel.MaxPool2d(2, 1, side, side, 2, 2, 2, 2, 0, 0, x, y, idx)
			kernel.MaxPool2dBackward(2, 1, side, side, 2, 2, 2, 2, 0, 0, y, idx, x)
		}
	}
}

// randomInside has what makes random numbers read and write guarded memory, of n points.
func randomInside(t *testing.T, n int, atEnd bool) {
	doubles := func(n int) []float64 { return guarded[float64](t, n, atEnd) }
	bits := func(n int) []uint64 {
		x := doubles(n)
		return unsafe.Slice((*uint64)(unsafe.Pointer(&x[0])), n)
	}
	kernel.Congruence(new([2 * kernel.States]uint64), new([4]uint64), bits(n))
	kernel.Fractions(bits(n), 24, 0, 1, doubles(n))
	x, y, s := doubles(n), doubles(n), doubles(n)
	kernel.Points(bits(2*n), x, y, s)
	kernel.Polar(s, s)
	kernel.Pairs(0, 1, x, y, s, doubles(2*n))
	kernel.Pairs(0, 1, x, y, s, doubles(2*n-1))
}

func guardedIndices(t *testing.T, n int, atEnd bool) []int32 {
	x := guarded[float32](t, n, atEnd)
	return unsafe.Slice((*int32)(unsafe.Pointer(unsafe.SliceData(x))), n)
}

// compareInside has each comparison read and write guarded memory.
func compareInside[T compared](t *testing.T, atEnd bool) {
	var size T
	for _, n := range []int{32, 64, 96} {
		numbers := func() []T {
			x := guarded[float32](t, n*int(unsafe.Sizeof(size))/4, atEnd)
			return unsafe.Slice((*T)(unsafe.Pointer(&x[0])), n)
		}
		z := guarded[float32](t, n/4, atEnd)
		for c := range relations {
			kernel.Compare(c, numbers(), numbers(), memory(z))
		}
	}
}

func TestCompare_StaysInsideItsSlices(t *testing.T) {
	onEachLevel(t, func(t *testing.T) {
		for _, atEnd := range []bool{false, true} {
			compareInside[uint8](t, atEnd)
			compareInside[int8](t, atEnd)
			compareInside[int16](t, atEnd)
			compareInside[int32](t, atEnd)
			compareInside[int64](t, atEnd)
			compareInside[float32](t, atEnd)
			compareInside[float64](t, atEnd)
		}
	})
}

// combineInside has each operation on integers read and write guarded memory.
func combineInside[T whole](t *testing.T, atEnd bool) {
	var size T
	for n := 1; n <= 70; n++ {
		numbers := func() []T {
			x := memory(guarded[float32](t, (n*int(unsafe.Sizeof(size))+3)/4, atEnd))
			at := 0
			if atEnd {
				at = len(x) - n*int(unsafe.Sizeof(size))
			}
			return unsafe.Slice((*T)(unsafe.Pointer(&x[at])), n)
		}
		for w := range combinations[T]() {
			kernel.Combine(w, numbers(), numbers(), numbers())
		}
	}
}

func TestCombine_StaysInsideItsSlices(t *testing.T) {
	onEachLevel(t, func(t *testing.T) {
		for _, atEnd := range []bool{false, true} {
			combineInside[uint8](t, atEnd)
			combineInside[int8](t, atEnd)
			combineInside[int16](t, atEnd)
			combineInside[int32](t, atEnd)
			combineInside[int64](t, atEnd)
		}
	})
}
