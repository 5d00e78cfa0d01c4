package cudriver

// What the driver hands out. None of it means anything in another process but IPCHandle.
type (
	Device    int32
	Context   uintptr
	Stream    uintptr
	Event     uintptr
	Module    uintptr
	Function  uintptr
	Ptr       uint64 // an address on a device
	MemHandle uint64 // memory without an address
	IPCHandle [64]byte
)

// An Attribute is a CUdevice_attribute.
type Attribute int32

// The attributes that Shoal asks for.
const (
	AttributeComputeMode          Attribute = 20
	AttributeUnifiedAddressing    Attribute = 41
	AttributeComputeMajor         Attribute = 75
	AttributeComputeMinor         Attribute = 76
	AttributeVirtualMemory        Attribute = 102
	AttributePosixFileDescriptors Attribute = 103
	AttributeIPCEvents            Attribute = 125
)

// StreamFlags are of CUstream_flags.
type StreamFlags uint32

// StreamNonBlocking makes a stream that does not wait for the one without a number.
const StreamNonBlocking StreamFlags = 1

// EventFlags are of CUevent_flags.
type EventFlags uint32

// An event that other processes open has no times.
const (
	EventDisableTiming EventFlags = 2
	EventInterprocess  EventFlags = 4
)

// HostFlags are of CU_MEMHOSTREGISTER.
type HostFlags uint32

// Memory of the host that all contexts may use, and that has an address on the device.
const (
	HostPortable  HostFlags = 1
	HostDeviceMap HostFlags = 2
)

// A Granularity is a CUmemAllocationGranularity_flags.
type Granularity int32

// GranularityMinimum is the unit of the sizes that are permitted, and GranularityRecommended of
// those that are quick.
const (
	GranularityMinimum     Granularity = 0
	GranularityRecommended Granularity = 1
)

// Of CUmemAllocationType, CUmemAllocationHandleType, CUmemLocationType and CUmemAccess_flags.
const (
	allocationPinned  = 1
	handlePosixFile   = 1
	locationDevice    = 1
	AccessRead        = 1
	AccessReadWrite   = 3
	ipcLazyPeerAccess = 1
)

// Of CUjit_option: a buffer for errors, and its size.
const (
	jitErrorLog     = 5
	jitErrorLogSize = 6
)

// Location is a CUmemLocation, 8 bytes.
type Location struct {
	kind int32
	ID   Device
}

// AllocationProp is a CUmemAllocationProp, 32 bytes.
type AllocationProp struct {
	kind     int32
	handles  int32
	Location Location
	_        uintptr
	_        [8]byte // compression, RDMA, usage
}

// AccessDesc is a CUmemAccessDesc, 12 bytes.
type AccessDesc struct {
	Location Location
	Flags    int32
}

// Pinned returns the properties of memory of a device, which may be exported as a file descriptor
// or not.
func Pinned(d Device, shareable bool) AllocationProp {
	p := AllocationProp{kind: allocationPinned, Location: Location{locationDevice, d}}
	if shareable {
		p.handles = handlePosixFile
	}
	return p
}

// Shareable reports whether the memory can be exported.
func (p AllocationProp) Shareable() bool { return p.handles == handlePosixFile }

// Valid reports whether Pinned made p.
func (p AllocationProp) Valid() bool {
	return p.kind == allocationPinned && p.Location.kind == locationDevice &&
		p.handles|handlePosixFile == handlePosixFile
}

// Access returns what a device may do with memory, by the flags.
func Access(d Device, flags int32) AccessDesc {
	return AccessDesc{Location{locationDevice, d}, flags}
}
