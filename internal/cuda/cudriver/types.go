package cudriver

// These are the driver's handles and addresses. They are valid in this process only, except for
// IPCHandle.
type (
	Device    int32
	Context   uintptr
	Stream    uintptr
	Event     uintptr
	Module    uintptr
	Function  uintptr
	Ptr       uint64 // a device address
	MemHandle uint64 // physical memory, not mapped to an address
	IPCHandle [64]byte
)

// An Attribute is a CUdevice_attribute.
type Attribute int32

// The attributes that Shoal queries.
const (
	AttributeComputeMode          Attribute = 20
	AttributeUnifiedAddressing    Attribute = 41
	AttributeComputeMajor         Attribute = 75
	AttributeComputeMinor         Attribute = 76
	AttributeVirtualMemory        Attribute = 102
	AttributePosixFileDescriptors Attribute = 103
	AttributeIPCEvents            Attribute = 125
)

// StreamFlags is a CUstream_flags.
type StreamFlags uint32

// StreamNonBlocking creates a stream that does not synchronize with the legacy default stream.
const StreamNonBlocking StreamFlags = 1

// EventFlags is a CUevent_flags.
type EventFlags uint32

// An event with EventInterprocess must also have EventDisableTiming.
const (
	EventDisableTiming EventFlags = 2
	EventInterprocess  EventFlags = 4
)

// HostFlags is a set of CU_MEMHOSTREGISTER flags.
type HostFlags uint32

// HostPortable registers host memory for all contexts, and HostDeviceMap maps it to a device
// address.
const (
	HostPortable  HostFlags = 1
	HostDeviceMap HostFlags = 2
)

// A Granularity is a CUmemAllocationGranularity_flags.
type Granularity int32

// GranularityMinimum selects the smallest permitted unit of sizes, and GranularityRecommended the
// unit with the best performance.
const (
	GranularityMinimum     Granularity = 0
	GranularityRecommended Granularity = 1
)

// Values of CUmemAllocationType, CUmemAllocationHandleType, CUmemLocationType, CUmemAccess_flags
// and CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS.
const (
	allocationPinned  = 1
	handlePosixFile   = 1
	locationDevice    = 1
	AccessRead        = 1
	AccessReadWrite   = 3
	ipcLazyPeerAccess = 1
)

// Values of CUjit_option: the error log buffer, and its size.
const (
	jitErrorLog     = 5
	jitErrorLogSize = 6
)

// Location is a CUmemLocation, 8 bytes: the device ID, if it was made by [Pinned] or [Access].
type Location struct {
	kind int32
	ID   Device
}

// AllocationProp is a CUmemAllocationProp, 32 bytes: the properties of memory for MemCreate.
// [Pinned] makes it.
type AllocationProp struct {
	kind     int32
	handles  int32
	Location Location
	_        uintptr
	_        [8]byte // compression, RDMA, usage
}

// AccessDesc is a CUmemAccessDesc, 12 bytes: the access of a device to a mapping. [Access]
// makes it.
type AccessDesc struct {
	Location Location
	Flags    int32
}

// Pinned returns the properties of device memory. If shareable is set, the memory can be exported
// as a file descriptor.
func Pinned(d Device, shareable bool) AllocationProp {
	p := AllocationProp{kind: allocationPinned, Location: Location{locationDevice, d}}
	if shareable {
		p.handles = handlePosixFile
	}
	return p
}

// Shareable reports whether memory with these properties can be exported.
func (p AllocationProp) Shareable() bool { return p.handles == handlePosixFile }

// Valid reports whether p could be a result of [Pinned].
func (p AllocationProp) Valid() bool {
	return p.kind == allocationPinned && p.Location.kind == locationDevice &&
		p.handles|handlePosixFile == handlePosixFile
}

// Access returns a descriptor that grants a device access to memory. flags should be AccessRead or
// AccessReadWrite.
func Access(d Device, flags int32) AccessDesc {
	return AccessDesc{Location{locationDevice, d}, flags}
}
