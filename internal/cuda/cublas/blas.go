package cublas

import (
	"fmt"

	"github.com/shoal-mp/shoal/internal/cuda/cudriver"
)

// A Handle is a cublasHandle_t: the state of cuBLAS in one context. [BLAS.Create] makes it. It
// must not be used by several goroutines at once.
type Handle uintptr

// A BLAS provides the functions of cuBLAS that are used here. [Load] returns one. The context
// of the handle must be current on the calling OS thread. All errors are of type [*Error].
type BLAS interface {
	Name() string // file name of the library
	Create() (Handle, error)
	Destroy(h Handle) error
	SetStream(h Handle, s cudriver.Stream) error
	// GemmStridedBatched queues a batch of matrix products on the stream of h.
	GemmStridedBatched(h Handle, g Gemm) error
}

// A Matrix is the first matrix of a batch, stored column by column at Ptr. Leading is the
// distance between columns, and Stride the distance between matrices, in elements.
type Matrix struct {
	Ptr     cudriver.Ptr
	Leading int
	Stride  int
	Turned  bool // stored transposed
}

// A Type is a cudaDataType_t: the dtype of all three matrices.
type Type int32

// Types of products. 16-bit products are exact and accumulated in float32.
const (
	Float32  Type = 0
	Float64  Type = 1
	Float16  Type = 2
	BFloat16 Type = 14
)

// A Gemm is C = A·B + Beta·C for each matrix of a batch. A is M by K, B is K by N, and C is M by N.
// C must not be Turned.
type Gemm struct {
	Type    Type
	M, N, K int
	A, B, C Matrix
	Beta    float64
	Batch   int
}

// A Status is a cublasStatus_t. Its Error method returns cuBLAS's name.
type Status int32

// Statuses that are handled specially; names has more.
const (
	Success         Status = 0
	InvalidValue    Status = 7
	ExecutionFailed Status = 13
	NotSupported    Status = 15
)

var names = map[Status]string{
	Success: "CUBLAS_STATUS_SUCCESS", 1: "CUBLAS_STATUS_NOT_INITIALIZED", 3: "CUBLAS_STATUS_ALLOC_FAILED",
	InvalidValue: "CUBLAS_STATUS_INVALID_VALUE",
	8:            "CUBLAS_STATUS_ARCH_MISMATCH", 11: "CUBLAS_STATUS_MAPPING_ERROR",
	ExecutionFailed: "CUBLAS_STATUS_EXECUTION_FAILED",
	14:              "CUBLAS_STATUS_INTERNAL_ERROR", NotSupported: "CUBLAS_STATUS_NOT_SUPPORTED",
	16: "CUBLAS_STATUS_LICENSE_ERROR",
}

// Error returns cuBLAS's name of the status, and its number.
func (s Status) Error() string {
	if name, ok := names[s]; ok {
		return fmt.Sprintf("%s (%d)", name, int32(s))
	}
	return fmt.Sprintf("cuBLAS status %d", int32(s))
}

// An Error is a failed call of the library. It wraps a [Status], which is never [Success], so
// [errors.Is] finds it. Call is the function's name in cuBLAS.
type Error struct {
	Call string
	Status
}

func (e *Error) Error() string { return e.Call + ": " + e.Status.Error() }

// Unwrap returns e.Status.
func (e *Error) Unwrap() error { return e.Status }

// Check returns an [*Error] unless s is [Success].
func Check(call string, s Status) error {
	if s == Success {
		return nil
	}
	return &Error{call, s}
}
