package sim

import (
	"encoding/binary"
	"math"

	"github.com/shoal-mp/shoal/internal/cublas"
	"github.com/shoal-mp/shoal/internal/cudriver"
)

// BLAS is cuBLAS on the devices of a driver. It refuses what cuBLAS refuses.
type BLAS struct {
	driver  *Driver
	streams map[cublas.Handle]cudriver.Stream // under the driver's lock
}

var _ cublas.BLAS = (*BLAS)(nil)

// BLAS returns cuBLAS on the driver's devices.
func (d *Driver) BLAS() cublas.BLAS { return &BLAS{d, map[cublas.Handle]cudriver.Stream{}} }

// Name is no library's.
func (b *BLAS) Name() string { return "simulated cuBLAS" }

// Create makes a handle.
func (b *BLAS) Create() (h cublas.Handle, err error) {
	err = b.driver.doSettled("cublasCreate", inContext, func(*context) cudriver.Result {
		h = cublas.Handle(b.driver.number())
		b.streams[h] = 0
		return cudriver.Success
	})
	return h, err
}

// Destroy ends a handle.
func (b *BLAS) Destroy(h cublas.Handle) error {
	return b.driver.doSettled("cublasDestroy", inContext, func(*context) cudriver.Result {
		if _, ok := b.streams[h]; !ok {
			return cudriver.ErrorInvalidHandle
		}
		delete(b.streams, h)
		return cudriver.Success
	})
}

// SetStream says where products are queued.
func (b *BLAS) SetStream(h cublas.Handle, s cudriver.Stream) error {
	b.driver.mu.Lock()
	defer b.driver.mu.Unlock()
	if _, ok := b.streams[h]; !ok || b.driver.streams[s] == nil {
		return cublas.Check("cublasSetStream", cublas.InvalidValue)
	}
	b.streams[h] = s
	return nil
}

// GemmStridedBatched queues products.
func (b *BLAS) GemmStridedBatched(h cublas.Handle, g cublas.Gemm) error {
	const call = "cublasGemmStridedBatched"
	b.driver.mu.Lock()
	s := b.streams[h]
	b.driver.mu.Unlock()
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
	return b.driver.queue(call, s, func(c *context) cudriver.Result { return b.driver.gemm(c, g) })
}

// gemm multiplies element by element.
func (d *Driver) gemm(c *context, g cublas.Gemm) (r cudriver.Result) {
	element := func(m cublas.Matrix, batch, i, j int, flags int32) []byte {
		if m.Turned {
			i, j = j, i
		}
		size := 4
		if g.Double {
			size = 8
		}
		b := d.reach(c, m.Ptr+cudriver.Ptr(size*(batch*m.Stride+j*m.Leading+i)), uint64(size), flags)
		if b == nil {
			r = cudriver.ErrorIllegalAddress
			b = make([]byte, size)
		}
		return b
	}
	for batch := range g.Batch {
		for i := range g.M {
			for j := range g.N {
				to, sum := element(g.C, batch, i, j, cudriver.AccessReadWrite), 0.
				if g.Beta != 0 {
					sum = g.Beta * decode(to)
				}
				for k := range g.K {
					sum += decode(element(g.A, batch, i, k, cudriver.AccessRead)) * decode(element(g.B, batch,
						k, j, cudriver.AccessRead))
				}
				encode(to, sum)
			}
		}
	}
	return r
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
