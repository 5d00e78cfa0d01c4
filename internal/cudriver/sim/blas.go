package sim

import (
	"encoding/binary"
	"math"
	"time"

	"github.com/shoal-mp/shoal/internal/cublas"
	"github.com/shoal-mp/shoal/internal/cudriver"
)

// BLAS is cuBLAS on the devices of a driver. It refuses what cuBLAS refuses.
type BLAS struct{ driver *Driver }

var _ cublas.BLAS = (*BLAS)(nil)

// products is what a handle has.
type products struct {
	stream cudriver.Stream
	seen   map[shape]bool // whose code is loaded
}

// A shape is what cuBLAS chooses its code by.
type shape struct {
	double, a, b bool
	m, n, k      int
}

// BLAS returns cuBLAS on the driver's devices.
func (d *Driver) BLAS() cublas.BLAS { return &BLAS{d} }

// Name is no library's.
func (b *BLAS) Name() string { return "simulated cuBLAS" }

// Create makes a handle, and takes memory to work in.
func (b *BLAS) Create() (h cublas.Handle, err error) {
	err = b.driver.doSettled("cublasCreate", inContext, func(c *context) cudriver.Result {
		time.Sleep(b.driver.times.Load)
		if r := c.takeOwn(blasTakes); r != cudriver.Success {
			return r
		}
		h = cublas.Handle(b.driver.number())
		b.driver.products[h] = &products{seen: map[shape]bool{}}
		return cudriver.Success
	})
	return h, err
}

// Destroy ends a handle.
func (b *BLAS) Destroy(h cublas.Handle) error {
	return b.driver.doSettled("cublasDestroy", inContext, func(*context) cudriver.Result {
		if b.driver.products[h] == nil {
			return cudriver.ErrorInvalidHandle
		}
		delete(b.driver.products, h)
		return cudriver.Success
	})
}

// SetStream says where products are queued.
func (b *BLAS) SetStream(h cublas.Handle, s cudriver.Stream) error {
	b.driver.mu.Lock()
	defer b.driver.mu.Unlock()
	p := b.driver.products[h]
	if p == nil || b.driver.streams[s] == nil {
		return cublas.Check("cublasSetStream", cublas.InvalidValue)
	}
	p.stream = s
	return nil
}

// gemmEntries is how many of a queue's entries a product takes: cuBLAS clears memory, multiplies in
// parts and adds them up.
const gemmEntries = 4

// GemmStridedBatched queues products. The first of a shape loads code, so it waits as that does.
func (b *BLAS) GemmStridedBatched(h cublas.Handle, g cublas.Gemm) error {
	const call = "cublasGemmStridedBatched"
	rows := func(m cublas.Matrix, rows, columns int) int {
		if m.Turned {
			return columns
		}
		return rows
	}
	if min(g.M, g.N, g.K, g.Batch) < 0 ||
		max(g.M, g.N, g.K, g.Batch, g.A.Leading, g.B.Leading, g.C.Leading) > math.MaxInt32 ||
		g.A.Leading < max(1, rows(g.A, g.M, g.K)) || g.B.Leading < max(1, rows(g.B, g.K, g.N)) ||
		g.C.Leading < max(1, g.M) {
		return cublas.Check(call, cublas.InvalidValue)
	}
	s := shape{g.Double, g.A.Turned, g.B.Turned, g.M, g.N, g.K}
	b.driver.mu.Lock()
	p := b.driver.products[h]
	fresh := p != nil && !p.seen[s]
	if fresh {
		p.seen[s] = true
	}
	b.driver.mu.Unlock()
	if p == nil {
		return cublas.Check(call, 1) // CUBLAS_STATUS_NOT_INITIALIZED
	}
	if fresh {
		b.driver.settle(call)
	}
	_, _, err := b.driver.give(call, p.stream, task{entries: gemmEntries,
		work: func(c *context) cudriver.Result { return b.driver.gemm(c, g) }})
	return err
}

// A matrix is the memory of one, and where its elements are.
type matrix struct {
	cublas.Matrix
	bytes []byte
	size  int
}

func (m matrix) at(i, j int) []byte {
	if m.Turned {
		i, j = j, i
	}
	return m.bytes[m.size*(j*m.Leading+i):][:m.size]
}

// see returns the matrix of a batch, of so many rows and columns; no bytes where the context may
// not.
func (d *Driver) see(c *context, m cublas.Matrix, size, batch, rows, columns int, flags int32) matrix {
	if m.Turned {
		rows, columns = columns, rows
	}
	n := size * ((columns-1)*m.Leading + rows)
	return matrix{m, d.reach(c, m.Ptr+cudriver.Ptr(size*batch*m.Stride), uint64(n), flags), size}
}

// gemm multiplies element by element.
func (d *Driver) gemm(c *context, g cublas.Gemm) cudriver.Result {
	size := 4
	if g.Double {
		size = 8
	}
	if min(g.M, g.N) == 0 {
		return cudriver.Success
	}
	row, column := make([]float64, g.K), make([]float64, g.K)
	for batch := range g.Batch {
		to := d.see(c, g.C, size, batch, g.M, g.N, cudriver.AccessReadWrite)
		if to.bytes == nil {
			return cudriver.ErrorIllegalAddress
		}
		var left, right matrix
		if g.K > 0 {
			left = d.see(c, g.A, size, batch, g.M, g.K, cudriver.AccessRead)
			right = d.see(c, g.B, size, batch, g.K, g.N, cudriver.AccessRead)
			if left.bytes == nil || right.bytes == nil {
				return cudriver.ErrorIllegalAddress
			}
		}
		for j := range g.N {
			for k := range g.K {
				column[k] = decode(right.at(k, j))
			}
			for i := range g.M {
				for k := range row {
					row[k] = decode(left.at(i, k))
				}
				sum := 0.
				if g.Beta != 0 {
					sum = g.Beta * decode(to.at(i, j))
				}
				for k := range row {
					sum += row[k] * column[k]
				}
				encode(to.at(i, j), sum)
			}
		}
	}
	return cudriver.Success
}

func decode(b []byte) float64 {
	if len(b) == 4 {
		return float64(math.Float32frombits(binary.NativeEndian.Uint32(b)))
	}
	return math.Float64frombits(binary.NativeEndian.Uint64(b))
}

func encode(b []byte, v float64) {
	if len(b) == 4 {
		binary.NativeEndian.PutUint32(b, math.Float32bits(float32(v)))
	} else {
		binary.NativeEndian.PutUint64(b, math.Float64bits(v))
	}
}
