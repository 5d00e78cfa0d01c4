package kernel_test

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/shoal-mp/shoal/internal/kernel"
)

// brain rounds to BFloat16, halves to even.
func brain(v float64) uint16 {
	bits := math.Float32bits(float32(v))
	return uint16((bits + 0x7fff + bits>>16&1) >> 16)
}

func ofBrain(b []byte, i int) float64 {
	return float64(math.Float32frombits(uint32(binary.LittleEndian.Uint16(b[2*i:])) << 16))
}

// The products of the matrix unit are those of float64, in all layouts, and nothing beside them is
// written.
func TestBrainProduct(t *testing.T) {
	if !kernel.HasBrainProduct(16, 16, 16) {
		t.Skip("this processor has no matrix unit for BFloat16, or the system does not let us have it")
	}
	r := rand.New(rand.NewPCG(1, 2))
	sizes := []int{16, 17, 31, 32, 33, 47, 64, 100, 300}
	for trial := range 200 {
		m, n, k := sizes[r.IntN(len(sizes))], sizes[r.IntN(len(sizes))], sizes[r.IntN(len(sizes))]
		transA, transB := trial&1 != 0, trial&2 != 0
		wide := func(rows, cols, more int) (b []byte, ld int) {
			b, ld = make([]byte, 2*rows*(cols+more)), cols+more
			for i := range len(b) / 2 {
				binary.LittleEndian.PutUint16(b[2*i:], brain(r.NormFloat64()))
			}
			return b, ld
		}
		am, ak, bk, bn := m, k, k, n
		if transA {
			am, ak = k, m
		}
		if transB {
			bk, bn = n, k
		}
		a, lda := wide(am, ak, r.IntN(4))
		b, ldb := wide(bk, bn, r.IntN(4))
		c, ldc := wide(m, n, r.IntN(4))
		before := append([]byte{}, c...)
		if !kernel.HasBrainProduct(m, n, k) {
			t.Fatal(m, n, k)
		}
		kernel.SetThreads(1 + trial%3)
		kernel.BrainProduct(transA, transB, m, n, k, a[:2*((am-1)*lda+ak)], lda, b[:2*((bk-1)*ldb+bn)], ldb,
			c[:2*((m-1)*ldc+n)], ldc)
		at := func(x []byte, ld, i, j int, trans bool) float64 {
			if trans {
				i, j = j, i
			}
			return ofBrain(x, i*ld+j)
		}
		for i := range m {
			for j := range ldc {
				if j >= n {
					if i < m-1 && c[2*(i*ldc+j)] != before[2*(i*ldc+j)] {
						t.Fatalf("what is behind row %d was written", i)
					}
					continue
				}
				sum, size := 0., 0.
				for l := range k {
					p := at(a, lda, i, l, transA) * at(b, ldb, l, j, transB)
					sum, size = sum+p, size+math.Abs(p)
				}
				if got := ofBrain(c, i*ldc+j); !(math.Abs(got-sum) <= math.Abs(sum)/200+size*1e-6) {
					t.Fatalf("%d·%d·%d %v %v: [%d, %d] is %v, want %v", m, n, k, transA, transB, i, j, got, sum)
				}
			}
		}
	}
}

func BenchmarkBrainProduct(b *testing.B) {
	for _, n := range []int{64, 512, 2048} {
		if !kernel.HasBrainProduct(n, n, n) {
			b.Skip("no matrix unit")
		}
		x, y := make([]byte, 2*n*n), make([]byte, 2*n*n)
		b.Run(map[bool]string{}[false]+string(rune('0'+n/512)), func(b *testing.B) {
			kernel.SetThreads(1)
			for b.Loop() {
				kernel.BrainProduct(false, false, n, n, n, x, n, x, n, y, n)
			}
			b.ReportMetric(2*float64(n)*float64(n)*float64(n)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
		})
	}
}
