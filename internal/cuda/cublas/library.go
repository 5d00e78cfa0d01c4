package cublas

import (
	"unsafe"

	"github.com/shoal-mp/shoal/internal/cuda/cudriver"
	"github.com/shoal-mp/shoal/internal/dl"
)

// library implements [BLAS] with the functions of a shared library. Its fields are the
// addresses of the functions.
type library struct {
	name                             string
	create, destroy, setStream, gemm uintptr
}

// Load binds the first library in names that can be loaded. Without names it tries the libraries of
// CUDA 13, 12 and 11 in the loader's search path. The error wraps dl.ErrNotLoaded or
// dl.ErrNoSymbol.
func Load(names ...string) (BLAS, error) {
	if len(names) == 0 {
		names = []string{"libcublas.so.13", "libcublas.so.12", "libcublas.so.11"}
	}
	lib, err := dl.Open(names...)
	if err != nil {
		return nil, err
	}
	l := &library{name: lib.Name()}
	for name, fn := range map[string]*uintptr{"cublasCreate_v2": &l.create,
		"cublasDestroy_v2": &l.destroy, "cublasSetStream_v2": &l.setStream,
		"cublasGemmStridedBatchedEx": &l.gemm} {
		if *fn, err = lib.Symbol(name); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// Name returns the file name of the library.
func (l *library) Name() string { return l.name }

// Create creates a handle in the current context. The caller must destroy it. It runs the
// library's initialization within [dl.Guard], because the initialization may install signal
// handlers.
func (l *library) Create() (Handle, error) {
	h := new(Handle)
	err := dl.Guard(func() error {
		return Check("cublasCreate", Status(int32(dl.Call(l.create, uintptr(unsafe.Pointer(h))))))
	})
	return *h, err
}

// Destroy destroys a handle, with its context current. It may wait for the device.
func (l *library) Destroy(h Handle) error {
	return Check("cublasDestroy", Status(int32(dl.Call(l.destroy, uintptr(h)))))
}

func (l *library) SetStream(h Handle, s cudriver.Stream) error {
	return Check("cublasSetStream", Status(int32(dl.Call(l.setStream, uintptr(h), uintptr(s)))))
}

// transposeFlag returns the cublasOperation_t of a matrix: 1, transposed, if m.Turned is set,
// and otherwise 0.
func transposeFlag(m Matrix) uintptr {
	if m.Turned {
		return 1
	}
	return 0
}

// Values of cublasComputeType_t and cublasGemmAlgo_t. TF32 is not used, as in PyTorch by default.
const (
	computeFloat32 = 68
	computeFloat64 = 70
	anyAlgorithm   = -1
)

// GemmStridedBatched queues a batch of matrix products on the stream of h. The context of h must be
// current on the calling thread. It calls cublasGemmStridedBatchedEx, which exists since CUDA 8 and
// has this signature since CUDA 11.
func (l *library) GemmStridedBatched(h Handle, g Gemm) error {
	compute := uintptr(computeFloat32)
	alpha, beta := new([8]byte), new([8]byte) // host memory, read before the call returns
	if g.Type == Float64 {
		compute = computeFloat64
		*(*float64)(unsafe.Pointer(alpha)), *(*float64)(unsafe.Pointer(beta)) = 1, g.Beta
	} else {
		*(*float32)(unsafe.Pointer(alpha)), *(*float32)(unsafe.Pointer(beta)) = 1, float32(g.Beta)
	}
	of, algorithm := uintptr(g.Type), anyAlgorithm
	r := dl.Call(l.gemm, uintptr(h), transposeFlag(g.A), transposeFlag(g.B), uintptr(g.M), uintptr(g.N), uintptr(g.K),
		uintptr(unsafe.Pointer(alpha)),
		uintptr(g.A.Ptr), of, uintptr(g.A.Leading), uintptr(g.A.Stride),
		uintptr(g.B.Ptr), of, uintptr(g.B.Leading), uintptr(g.B.Stride),
		uintptr(unsafe.Pointer(beta)),
		uintptr(g.C.Ptr), of, uintptr(g.C.Leading), uintptr(g.C.Stride), uintptr(g.Batch),
		compute, uintptr(algorithm))
	return Check("cublasGemmStridedBatchedEx", Status(int32(r)))
}
