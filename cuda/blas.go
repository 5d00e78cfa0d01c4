package cuda

import (
	"errors"
	"fmt"
	"math"
	"os"
	"sync"

	"github.com/shoal-mp/shoal/internal/cuda/cublas"
	"github.com/shoal-mp/shoal/internal/cuda/cudriver"
	"github.com/shoal-mp/shoal/tensor"
)

// BLASKey is the environment variable that names the cuBLAS library. Set it if the dynamic loader
// does not find the library, as in a Python installation, or set it to "none" to multiply matrices
// with Shoal's own kernel. Simulated devices use a simulated cuBLAS, unless the variable is "none".
const BLASKey = "SHOAL_CUBLAS"

// products holds the cuBLAS library and its handle, for one device. The library is loaded on
// first use, see [Device.loadProducts].
type products struct {
	sync.Mutex // guards handle
	begun      bool
	lib        cublas.BLAS
	handle     cublas.Handle
	err        error // the reason why the library is not available
}

func loadBLAS(driver cudriver.Driver) (cublas.BLAS, error) {
	name := os.Getenv(BLASKey)
	simulator, simulated := driver.(interface{ BLAS() cublas.BLAS })
	switch {
	case name == "none":
		return nil, fmt.Errorf("%w: cuBLAS: %s is %q", ErrUnavailable, BLASKey, name)
	case simulated:
		return simulator.BLAS(), nil
	}
	var names []string
	if name != "" {
		names = []string{name}
	}
	lib, err := cublas.Load(names...)
	if err != nil {
		return nil, fmt.Errorf("%w: cuBLAS: %w", ErrUnavailable, err)
	}
	return lib, nil
}

// loadProducts loads the library and creates a handle, once. It stores an error in r.products.err.
// The caller must hold r.products.
func (d *Device) loadProducts(r *ready) {
	p := &r.products
	if p.begun {
		return
	}
	p.begun = true
	if p.lib, p.err = loadBLAS(d.driver); p.err != nil {
		return
	}
	p.err = d.callAfterJudging(r, func() (err error) {
		if p.handle, err = p.lib.Create(); err == nil {
			err = p.lib.SetStream(p.handle, r.stream)
		}
		return err
	})
}

// productLibrary returns the name of the library that multiplies matrices on this device. If there
// is none, a kernel multiplies them, and the error gives the reason.
func (d *Device) productLibrary() (name string, err error) {
	r, err := d.readyState()
	if err != nil {
		return "", err
	}
	p := &r.products
	p.Lock()
	defer p.Unlock()
	if d.loadProducts(r); p.err != nil {
		return "", p.err
	}
	return p.lib.Name(), nil
}

// queueProduct queues a matrix product on cuBLAS. done is false if cuBLAS is not available or
// does not support the operands; err is nil then, and the caller must use another
// implementation. The addresses of the matrices in g are taken from the operands.
func (d *Device) queueProduct(g cublas.Gemm, out, a, b tensorOperand) (done bool, err error) {
	r, err := d.readyState()
	if err != nil {
		return true, err
	}
	for _, o := range []struct {
		m *cublas.Matrix
		o tensorOperand
	}{{&g.C, out}, {&g.A, b}, {&g.B, a}} {
		seen, err := d.kernelOperand(o.o)
		if err != nil {
			return true, err
		}
		o.m.Ptr = cudriver.Ptr(seen.word)
	}
	p := &r.products
	p.Lock()
	defer p.Unlock()
	if d.loadProducts(r); p.err != nil {
		return false, nil
	}
	err = d.callAfterJudging(r, func() error { return p.lib.GemmStridedBatched(p.handle, g) })
	if errors.Is(err, cublas.NotSupported) || errors.Is(err, cublas.InvalidValue) {
		return false, nil
	}
	return true, err
}

// blasTypes maps the dtypes that cuBLAS can multiply to its data types.
var blasTypes = map[tensor.DType]cublas.Type{tensor.Float32: cublas.Float32, tensor.Float64: cublas.Float64,
	tensor.Float16: cublas.Float16, tensor.BFloat16: cublas.BFloat16}

// convertGemm converts a row-major product to a cuBLAS call, without the addresses of the
// matrices. cuBLAS is column-major: it sees each matrix transposed, so gemm swaps the operands
// to compute outᵀ = bᵀaᵀ. ok is false if cuBLAS cannot express the product.
func convertGemm(out, a, b tensorOperand, beta float64) (g cublas.Gemm, ok bool) {
	of, ok := blasTypes[out.DType]
	if !ok || a.Memory == nil || b.Memory == nil {
		return g, false
	}
	g = cublas.Gemm{Type: of, M: out.Shape[2], N: out.Shape[1], K: a.Shape[2],
		Beta: beta, Batch: out.Shape[0]}
	var fits [3]bool
	g.A, fits[0] = columnMajor(b)
	g.B, fits[1] = columnMajor(a)
	g.C, fits[2] = columnMajor(out)
	return g, fits == [3]bool{true, true, true} && !g.C.Turned && max(g.M, g.N, g.K, g.Batch) <= math.MaxInt32
}

// columnMajor describes a row-major matrix as a column-major cuBLAS matrix, without its
// address. ok is false if cuBLAS cannot read it: neither its rows nor its columns are
// contiguous, or the leading dimension is out of range. If the matrix has only one row or
// column, columnMajor replaces an arbitrary leading dimension by the smallest valid one.
func columnMajor(o tensorOperand) (m cublas.Matrix, ok bool) {
	rows, columns := o.Shape[1], o.Shape[2]
	m.Stride, m.Leading = o.Strides[0], o.Strides[1]
	inner, outer, step := columns, rows, o.Strides[2]
	if m.Turned = step != 1 && columns > 1; m.Turned {
		m.Leading, inner, outer, step = o.Strides[2], rows, columns, o.Strides[1]
	}
	if outer == 1 {
		m.Leading = max(m.Leading, inner)
	}
	return m, (step == 1 || inner <= 1) && m.Leading >= max(inner, 1) && m.Leading <= math.MaxInt32
}
