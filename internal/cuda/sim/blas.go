package sim

import (
	"encoding/binary"
	"math"
	"time"

	"github.com/shoal-mp/shoal/internal/cuda/cublas"
	"github.com/shoal-mp/shoal/internal/cuda/cudriver"
	"github.com/shoal-mp/shoal/internal/cuda/sim/vm"
)

// BLAS simulates cuBLAS on the devices of a [Driver]. It returns an error wherever cuBLAS does.
// [Driver.BLAS] makes it. Methods may be called concurrently.
type BLAS struct{ driver *Driver }

var _ cublas.BLAS = (*BLAS)(nil)

// products is the state of a cuBLAS handle. The driver's lock guards it.
type products struct {
	stream cudriver.Stream
	seen   map[shape]bool // shapes with loaded code
}

// A shape holds the properties of a product that cuBLAS selects a kernel by.
type shape struct {
	of      cublas.Type
	a, b    bool
	m, n, k int
}

// BLAS returns a simulated cuBLAS for the driver's devices.
func (d *Driver) BLAS() cublas.BLAS { return &BLAS{d} }

// Name returns a name that no real library has.
func (b *BLAS) Name() string { return "simulated cuBLAS" }

// Create creates a handle and allocates its workspace on the device of the current context. The
// caller must destroy it. The error wraps [cudriver.ErrorOutOfMemory] if the device has too
// little free memory.
func (b *BLAS) Create() (h cublas.Handle, err error) {
	err = b.driver.runBlockingCall("cublasCreate", inContext, func(c *context) cudriver.Result {
		time.Sleep(b.driver.times.Load)
		if r := c.allocateOwn(blasTakes); r != cudriver.Success {
			return r
		}
		h = cublas.Handle(b.driver.nextHandle())
		b.driver.products[h] = &products{seen: map[shape]bool{}}
		return cudriver.Success
	})
	return h, err
}

// Destroy destroys a handle. The error is ErrorInvalidHandle if there is no such handle. It
// waits like [Driver.awaitContext].
func (b *BLAS) Destroy(h cublas.Handle) error {
	return b.driver.runBlockingCall("cublasDestroy", inContext, func(*context) cudriver.Result {
		if b.driver.products[h] == nil {
			return cudriver.ErrorInvalidHandle
		}
		delete(b.driver.products, h)
		return cudriver.Success
	})
}

// SetStream sets the stream that products are queued on. The error wraps [cublas.InvalidValue]
// if there is no such handle or stream.
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

// gemmEntries is the number of queue entries that a product takes: cuBLAS clears memory, multiplies
// in parts, and adds them up.
const gemmEntries = 4

// GemmStridedBatched queues a product. The first product of a shape loads code, so it blocks as
// loading a module does. The error wraps [cublas.InvalidValue] if a size, a type or a leading
// dimension is invalid. Illegal addresses are errors of the context.
func (b *BLAS) GemmStridedBatched(h cublas.Handle, g cublas.Gemm) error {
	const call = "cublasGemmStridedBatched"
	rows := func(m cublas.Matrix, rows, columns int) int {
		if m.Turned {
			return columns
		}
		return rows
	}
	if sizes[g.Type] == 0 || min(g.M, g.N, g.K, g.Batch) < 0 ||
		max(g.M, g.N, g.K, g.Batch, g.A.Leading, g.B.Leading, g.C.Leading) > math.MaxInt32 ||
		g.A.Leading < max(1, rows(g.A, g.M, g.K)) || g.B.Leading < max(1, rows(g.B, g.K, g.N)) ||
		g.C.Leading < max(1, g.M) {
		return cublas.Check(call, cublas.InvalidValue)
	}
	s := shape{g.Type, g.A.Turned, g.B.Turned, g.M, g.N, g.K}
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
		b.driver.awaitContext(call)
	}
	_, _, err := b.driver.appendTask(call, p.stream, task{entries: gemmEntries,
		work: func(c *context) cudriver.Result { return b.driver.gemm(c, g) }})
	return err
}

// A matrix is a cublas.Matrix with its bytes.
type matrix struct {
	cublas.Matrix
	bytes []byte
	size  int
}

// sizes maps types to the size of an element in bytes.
var sizes = map[cublas.Type]int{cublas.Float32: 4, cublas.Float64: 8, cublas.Float16: 2, cublas.BFloat16: 2}

func (m matrix) at(i, j int) []byte {
	if m.Turned {
		i, j = j, i
	}
	return m.bytes[m.size*(j*m.Leading+i):][:m.size]
}

// matrixAt returns one matrix of a batch, with elements of size bytes. Its bytes are nil if the
// context must not access them with the given flags. The caller must hold d.mu.
func (d *Driver) matrixAt(c *context, m cublas.Matrix, size, batch, rows, columns int, flags int32) matrix {
	if m.Turned {
		rows, columns = columns, rows
	}
	n := size * ((columns-1)*m.Leading + rows)
	return matrix{m, d.bytesAt(c, m.Ptr+cudriver.Ptr(size*batch*m.Stride), uint64(n), flags), size}
}

// gemm computes a product element by element. It returns ErrorIllegalAddress if the context
// must not access an operand. The caller must hold d.mu.
func (d *Driver) gemm(c *context, g cublas.Gemm) cudriver.Result {
	size := sizes[g.Type]
	if min(g.M, g.N) == 0 {
		return cudriver.Success
	}
	row, column := make([]float64, g.K), make([]float64, g.K)
	for batch := range g.Batch {
		to := d.matrixAt(c, g.C, size, batch, g.M, g.N, cudriver.AccessReadWrite)
		if to.bytes == nil {
			return cudriver.ErrorIllegalAddress
		}
		var left, right matrix
		if g.K > 0 {
			left = d.matrixAt(c, g.A, size, batch, g.M, g.K, cudriver.AccessRead)
			right = d.matrixAt(c, g.B, size, batch, g.K, g.N, cudriver.AccessRead)
			if left.bytes == nil || right.bytes == nil {
				return cudriver.ErrorIllegalAddress
			}
		}
		for j := range g.N {
			for k := range g.K {
				column[k] = decode(g.Type, right.at(k, j))
			}
			for i := range g.M {
				for k := range row {
					row[k] = decode(g.Type, left.at(i, k))
				}
				sum := 0.
				if g.Beta != 0 {
					sum = g.Beta * decode(g.Type, to.at(i, j))
				}
				for k := range row {
					sum += row[k] * column[k]
				}
				encode(g.Type, to.at(i, j), sum)
			}
		}
	}
	return cudriver.Success
}

func decode(t cublas.Type, b []byte) float64 {
	switch t {
	case cublas.Float64:
		return math.Float64frombits(binary.NativeEndian.Uint64(b))
	case cublas.Float16:
		return vm.ReadFloat16(uint64(binary.NativeEndian.Uint16(b)))
	case cublas.BFloat16:
		return float64(math.Float32frombits(uint32(binary.NativeEndian.Uint16(b)) << 16))
	}
	return float64(math.Float32frombits(binary.NativeEndian.Uint32(b)))
}

func encode(t cublas.Type, b []byte, v float64) {
	single := math.Float32bits(float32(v))
	switch t {
	case cublas.Float64:
		binary.NativeEndian.PutUint64(b, math.Float64bits(v))
	case cublas.Float16:
		binary.NativeEndian.PutUint16(b, uint16(vm.WriteFloat16(float64(float32(v)))))
	case cublas.BFloat16: // round to nearest even, and keep NaN
		if v == v {
			single += 0x7fff + single>>16&1
		}
		binary.NativeEndian.PutUint16(b, uint16(single>>16))
	default:
		binary.NativeEndian.PutUint32(b, single)
	}
}
