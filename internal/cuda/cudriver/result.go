package cudriver

import "fmt"

// A Result is a CUresult. It implements error with CUDA's name for the result.
type Result int32

// The results that code of this module tests for. The map names has more.
const (
	Success                          Result = 0
	ErrorInvalidValue                Result = 1
	ErrorOutOfMemory                 Result = 2
	ErrorNotInitialized              Result = 3
	ErrorDeinitialized               Result = 4
	ErrorDeviceUnavailable           Result = 46
	ErrorNoDevice                    Result = 100
	ErrorInvalidDevice               Result = 101
	ErrorInvalidImage                Result = 200
	ErrorInvalidContext              Result = 201
	ErrorMapFailed                   Result = 205
	ErrorAlreadyMapped               Result = 208
	ErrorPeerUnsupported             Result = 217
	ErrorInvalidPTX                  Result = 218
	ErrorOperatingSystem             Result = 304
	ErrorInvalidHandle               Result = 400
	ErrorNotFound                    Result = 500
	ErrorNotReady                    Result = 600
	ErrorIllegalAddress              Result = 700
	ErrorPeerAlreadyEnabled          Result = 704
	ErrorContextIsDestroyed          Result = 709
	ErrorHostMemoryAlreadyRegistered Result = 712
	ErrorMisalignedAddress           Result = 716
	ErrorNotPermitted                Result = 800
	ErrorNotSupported                Result = 801
	ErrorSystemDriverMismatch        Result = 803
	ErrorUnknown                     Result = 999
)

var names = map[Result]string{
	Success: "CUDA_SUCCESS", ErrorInvalidValue: "CUDA_ERROR_INVALID_VALUE",
	ErrorOutOfMemory:    "CUDA_ERROR_OUT_OF_MEMORY",
	ErrorNotInitialized: "CUDA_ERROR_NOT_INITIALIZED", ErrorDeinitialized: "CUDA_ERROR_DEINITIALIZED",
	34:                     "CUDA_ERROR_STUB_LIBRARY",
	ErrorDeviceUnavailable: "CUDA_ERROR_DEVICE_UNAVAILABLE", ErrorNoDevice: "CUDA_ERROR_NO_DEVICE",
	ErrorInvalidDevice: "CUDA_ERROR_INVALID_DEVICE",
	ErrorInvalidImage:  "CUDA_ERROR_INVALID_IMAGE", ErrorInvalidContext: "CUDA_ERROR_INVALID_CONTEXT",
	ErrorMapFailed: "CUDA_ERROR_MAP_FAILED",
	206:            "CUDA_ERROR_UNMAP_FAILED", ErrorAlreadyMapped: "CUDA_ERROR_ALREADY_MAPPED",
	209: "CUDA_ERROR_NO_BINARY_FOR_GPU",
	211: "CUDA_ERROR_NOT_MAPPED", 214: "CUDA_ERROR_ECC_UNCORRECTABLE", 215: "CUDA_ERROR_UNSUPPORTED_LIMIT",
	216: "CUDA_ERROR_CONTEXT_ALREADY_IN_USE", ErrorPeerUnsupported: "CUDA_ERROR_PEER_ACCESS_UNSUPPORTED",
	ErrorInvalidPTX: "CUDA_ERROR_INVALID_PTX",
	220:             "CUDA_ERROR_NVLINK_UNCORRECTABLE", 222: "CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
	302: "CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND", 303: "CUDA_ERROR_SHARED_OBJECT_INIT_FAILED",
	ErrorOperatingSystem: "CUDA_ERROR_OPERATING_SYSTEM", ErrorInvalidHandle: "CUDA_ERROR_INVALID_HANDLE",
	401:           "CUDA_ERROR_ILLEGAL_STATE",
	ErrorNotFound: "CUDA_ERROR_NOT_FOUND", ErrorNotReady: "CUDA_ERROR_NOT_READY",
	ErrorIllegalAddress: "CUDA_ERROR_ILLEGAL_ADDRESS",
	701:                 "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", 702: "CUDA_ERROR_LAUNCH_TIMEOUT",
	ErrorPeerAlreadyEnabled: "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED",
	705:                     "CUDA_ERROR_PEER_ACCESS_NOT_ENABLED", 708: "CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE",
	ErrorContextIsDestroyed: "CUDA_ERROR_CONTEXT_IS_DESTROYED",
	710:                     "CUDA_ERROR_ASSERT", 711: "CUDA_ERROR_TOO_MANY_PEERS",
	ErrorHostMemoryAlreadyRegistered: "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED",
	713:                              "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED", 714: "CUDA_ERROR_HARDWARE_STACK_ERROR",
	715:                    "CUDA_ERROR_ILLEGAL_INSTRUCTION",
	ErrorMisalignedAddress: "CUDA_ERROR_MISALIGNED_ADDRESS", 719: "CUDA_ERROR_LAUNCH_FAILED",
	ErrorNotPermitted: "CUDA_ERROR_NOT_PERMITTED",
	ErrorNotSupported: "CUDA_ERROR_NOT_SUPPORTED", 802: "CUDA_ERROR_SYSTEM_NOT_READY",
	ErrorSystemDriverMismatch: "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH",
	804:                       "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE", 805: "CUDA_ERROR_MPS_CONNECTION_FAILED",
	900: "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", ErrorUnknown: "CUDA_ERROR_UNKNOWN",
}

// Error returns CUDA's name of the result, and its number.
func (r Result) Error() string {
	if name, ok := names[r]; ok {
		return fmt.Sprintf("%s (%d)", name, int32(r))
	}
	return fmt.Sprintf("CUDA error %d", int32(r))
}

// An Error is the error of a failed driver call. It wraps its [Result], which is never
// [Success], so [errors.Is] finds it.
type Error struct {
	Call string // the function's name in CUDA, such as cuMemCreate
	Result
	Log string // the PTX compiler's messages, if it failed
}

func (e *Error) Error() string {
	if e.Log != "" {
		return e.Call + ": " + e.Result.Error() + ": " + e.Log
	}
	return e.Call + ": " + e.Result.Error()
}

// Unwrap returns the Result.
func (e *Error) Unwrap() error { return e.Result }

// Check returns nil if r is [Success], and otherwise an *[Error]. call is the function's name
// in CUDA.
func Check(call string, r Result) error {
	if r == Success {
		return nil
	}
	return &Error{Call: call, Result: r}
}
