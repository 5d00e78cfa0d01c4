package cudriver

// An entry identifies a function of the library.
type entry int

const (
	cuInit entry = iota
	cuDriverGetVersion
	cuDeviceGetCount
	cuDeviceGet
	cuDeviceGetName
	cuDeviceGetUUID
	cuDeviceTotalMem
	cuDeviceGetAttribute
	cuDeviceCanAccessPeer
	cuDevicePrimaryCtxRetain
	cuDevicePrimaryCtxRelease
	cuCtxSetCurrent
	cuCtxGetCurrent
	cuCtxSynchronize
	cuMemGetInfo
	cuMemAlloc
	cuMemFree
	cuMemGetAddressRange
	cuMemHostRegister
	cuMemHostUnregister
	cuMemHostGetDevicePointer
	cuMemcpyHtoDAsync
	cuMemcpyDtoHAsync
	cuMemcpyAsync
	cuMemcpyPeerAsync
	cuMemsetD8Async
	cuMemsetD16Async
	cuMemsetD32Async
	cuStreamCreate
	cuStreamDestroy
	cuStreamSynchronize
	cuStreamQuery
	cuStreamWaitEvent
	cuStreamWriteValue32
	cuStreamWaitValue32
	cuEventCreate
	cuEventDestroy
	cuEventRecord
	cuEventSynchronize
	cuEventQuery
	cuEventElapsedTime
	cuMemGetAllocationGranularity
	cuMemCreate
	cuMemRelease
	cuMemExport
	cuMemImport
	cuMemAddressReserve
	cuMemAddressFree
	cuMemMap
	cuMemUnmap
	cuMemSetAccess
	cuIPCGetMemHandle
	cuIPCOpenMemHandle
	cuIPCCloseMemHandle
	cuIPCGetEventHandle
	cuIPCOpenEventHandle
	cuModuleLoadDataEx
	cuModuleUnload
	cuModuleGetFunction
	cuLaunchKernel
	entries = iota
)

// symbols maps entries to symbols. If a function has a symbol with the suffix _v2, cuda.h defines
// the plain name as a macro for it. The symbol without the suffix is an older version, in most
// cases the one of 2008 with 32-bit addresses. The older cuDeviceGetUuid returns the same UUID for
// all MIG instances of a device.
var symbols = [entries]string{
	cuInit:                        "cuInit",
	cuDriverGetVersion:            "cuDriverGetVersion",
	cuDeviceGetCount:              "cuDeviceGetCount",
	cuDeviceGet:                   "cuDeviceGet",
	cuDeviceGetName:               "cuDeviceGetName",
	cuDeviceGetUUID:               "cuDeviceGetUuid_v2",
	cuDeviceTotalMem:              "cuDeviceTotalMem_v2",
	cuDeviceGetAttribute:          "cuDeviceGetAttribute",
	cuDeviceCanAccessPeer:         "cuDeviceCanAccessPeer",
	cuDevicePrimaryCtxRetain:      "cuDevicePrimaryCtxRetain",
	cuDevicePrimaryCtxRelease:     "cuDevicePrimaryCtxRelease_v2",
	cuCtxSetCurrent:               "cuCtxSetCurrent",
	cuCtxGetCurrent:               "cuCtxGetCurrent",
	cuCtxSynchronize:              "cuCtxSynchronize",
	cuMemGetInfo:                  "cuMemGetInfo_v2",
	cuMemAlloc:                    "cuMemAlloc_v2",
	cuMemFree:                     "cuMemFree_v2",
	cuMemGetAddressRange:          "cuMemGetAddressRange_v2",
	cuMemHostRegister:             "cuMemHostRegister_v2",
	cuMemHostUnregister:           "cuMemHostUnregister",
	cuMemHostGetDevicePointer:     "cuMemHostGetDevicePointer_v2",
	cuMemcpyHtoDAsync:             "cuMemcpyHtoDAsync_v2",
	cuMemcpyDtoHAsync:             "cuMemcpyDtoHAsync_v2",
	cuMemcpyAsync:                 "cuMemcpyAsync",
	cuMemcpyPeerAsync:             "cuMemcpyPeerAsync",
	cuMemsetD8Async:               "cuMemsetD8Async",
	cuMemsetD16Async:              "cuMemsetD16Async",
	cuMemsetD32Async:              "cuMemsetD32Async",
	cuStreamCreate:                "cuStreamCreate",
	cuStreamDestroy:               "cuStreamDestroy_v2",
	cuStreamSynchronize:           "cuStreamSynchronize",
	cuStreamQuery:                 "cuStreamQuery",
	cuStreamWaitEvent:             "cuStreamWaitEvent",
	cuStreamWriteValue32:          "cuStreamWriteValue32_v2",
	cuStreamWaitValue32:           "cuStreamWaitValue32_v2",
	cuEventCreate:                 "cuEventCreate",
	cuEventDestroy:                "cuEventDestroy_v2",
	cuEventRecord:                 "cuEventRecord",
	cuEventSynchronize:            "cuEventSynchronize",
	cuEventQuery:                  "cuEventQuery",
	cuEventElapsedTime:            "cuEventElapsedTime",
	cuMemGetAllocationGranularity: "cuMemGetAllocationGranularity",
	cuMemCreate:                   "cuMemCreate",
	cuMemRelease:                  "cuMemRelease",
	cuMemExport:                   "cuMemExportToShareableHandle",
	cuMemImport:                   "cuMemImportFromShareableHandle",
	cuMemAddressReserve:           "cuMemAddressReserve",
	cuMemAddressFree:              "cuMemAddressFree",
	cuMemMap:                      "cuMemMap",
	cuMemUnmap:                    "cuMemUnmap",
	cuMemSetAccess:                "cuMemSetAccess",
	cuIPCGetMemHandle:             "cuIpcGetMemHandle",
	cuIPCOpenMemHandle:            "cuIpcOpenMemHandle_v2",
	cuIPCCloseMemHandle:           "cuIpcCloseMemHandle",
	cuIPCGetEventHandle:           "cuIpcGetEventHandle",
	cuIPCOpenEventHandle:          "cuIpcOpenEventHandle",
	cuModuleLoadDataEx:            "cuModuleLoadDataEx",
	cuModuleUnload:                "cuModuleUnload",
	cuModuleGetFunction:           "cuModuleGetFunction",
	cuLaunchKernel:                "cuLaunchKernel",
}
