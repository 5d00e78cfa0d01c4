package cudriver

import (
	"unsafe"

	"github.com/shoal-mp/shoal/internal/dl"
)

// Symbols are the functions that are bound.
func Symbols() []string { return symbols[:] }

// Names are those of results.
func Names() map[Result]string { return names }

// Numbers are of enums and macros, by the names of cuda.h.
var Numbers = map[string]int{
	"CU_DEVICE_ATTRIBUTE_COMPUTE_MODE":                                int(AttributeComputeMode),
	"CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING":                          int(AttributeUnifiedAddressing),
	"CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR":                    int(AttributeComputeMajor),
	"CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR":                    int(AttributeComputeMinor),
	"CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED":         int(AttributeVirtualMemory),
	"CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED": int(AttributePosixFileDescriptors),
	"CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED":                         int(AttributeIPCEvents),
	"CU_STREAM_NON_BLOCKING":                                          int(StreamNonBlocking),
	"CU_STREAM_WAIT_VALUE_GEQ":                                        0,
	"CU_STREAM_WRITE_VALUE_DEFAULT":                                   0,
	"CU_EVENT_DISABLE_TIMING":                                         int(EventDisableTiming),
	"CU_EVENT_INTERPROCESS":                                           int(EventInterprocess),
	"CU_MEMHOSTREGISTER_PORTABLE":                                     int(HostPortable),
	"CU_MEMHOSTREGISTER_DEVICEMAP":                                    int(HostDeviceMap),
	"CU_MEM_ALLOC_GRANULARITY_MINIMUM":                                int(GranularityMinimum),
	"CU_MEM_ALLOC_GRANULARITY_RECOMMENDED":                            int(GranularityRecommended),
	"CU_MEM_ALLOCATION_TYPE_PINNED":                                   allocationPinned,
	"CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR":                        handlePosixFile,
	"CU_MEM_LOCATION_TYPE_DEVICE":                                     locationDevice,
	"CU_MEM_ACCESS_FLAGS_PROT_READ":                                   AccessRead,
	"CU_MEM_ACCESS_FLAGS_PROT_READWRITE":                              AccessReadWrite,
	"CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS":                              ipcLazyPeerAccess,
	"CU_JIT_ERROR_LOG_BUFFER":                                         jitErrorLog,
	"CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES":                              jitErrorLogSize,
	"CU_IPC_HANDLE_SIZE":                                              len(IPCHandle{}),
	"CU_COMPUTEMODE_DEFAULT":                                          0,
	"CU_COMPUTEMODE_EXCLUSIVE_PROCESS":                                3,
	"(size_t)CU_LAUNCH_PARAM_END":                                     0,
	"(size_t)CU_LAUNCH_PARAM_BUFFER_POINTER":                          1,
	"(size_t)CU_LAUNCH_PARAM_BUFFER_SIZE":                             2,
}

// Sizes are those of the structs that C sees.
func Sizes() [3]uintptr {
	return [...]uintptr{unsafe.Sizeof(Location{}), unsafe.Sizeof(AllocationProp{}), unsafe.Sizeof(AccessDesc{})}
}

// CString returns the text that a function of a library without arguments returns.
func CString(fn uintptr) string {
	p := dl.Call(fn)
	return stringAt(*(*unsafe.Pointer)(unsafe.Pointer(&p)))
}

func stringAt(p unsafe.Pointer) string {
	n := 0
	for *(*byte)(unsafe.Add(p, n)) != 0 {
		n++
	}
	return string(unsafe.Slice((*byte)(p), n))
}
