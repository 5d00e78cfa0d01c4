package cublas

import (
	"fmt"

	"github.com/shoal-mp/shoal/internal/cuda/cudriver"
)

// A Handle is cuBLAS's state of one context.
type Handle uintptr

// A BLAS is what the library does. Every error is an *Error.
type BLAS interface {
	Name() string // of the library
	Create() (Handle, error)
	Destroy(h Handle) error
	SetStream(h Handle, s cudriver.Stream) error
	// GemmStridedBatched queues products.
	GemmStridedBatched(h Handle, g Gemm) error
}

// A Matrix is the first of a batch. Columns are Leading elements apart, and matrices Stride.
type Matrix struct {
	Ptr     cudriver.Ptr
	Leading int
	Stride  int
	Turned  bool // it is stored transposed
}

// A Type is a cudaDataType_t: the dtype of all three matrices.
type Type int32

// The types of products. Those of 16 bits are multiplied exactly and added up in float32.
const (
	Float32  Type = 0
	Float64  Type = 1
	Float16  Type = 2
	BFloat16 Type = 14
)

// A Gemm is C = A·B + Beta·C for each of a batch of matrices: A is M by K, B is K by N, and C is M
// by N and not Turned.
type Gemm struct {
	Type    Type
	M, N, K int
	A, B, C Matrix
	Beta    float64
	Batch   int
}

// A Status is a cublasStatus_t. As an error it has cuBLAS's name.
type Status int32

// The statuses that code decides by; names has more.
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

// An Error is a call of the library that failed. It wraps a Status.
type Error struct {
	Call string
	Status
}

func (e *Error) Error() string { return e.Call + ": " + e.Status.Error() }

// Unwrap returns the Status.
func (e *Error) Unwrap() error { return e.Status }

// Check makes an error of a status.
func Check(call string, s Status) error {
	if s == Success {
		return nil
	}
	return &Error{call, s}
}
