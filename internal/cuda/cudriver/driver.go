package cudriver

// A Driver is the CUDA driver. Each method is the function of the same name with the prefix cu;
// see NVIDIA's documentation. Sizes are in bytes. Every error is an *[Error]. Methods may be
// called concurrently; most need a context that is current on the calling OS thread. Methods
// with a [Stream] parameter only queue work: the caller must keep their memory arguments valid
// and unmodified until the work is done.
type Driver interface {
	Init() error
	DriverVersion() (int, error) // 1000 × major + 10 × minor
	DeviceCount() (int, error)
	DeviceGet(ordinal int) (Device, error)
	DeviceName(d Device) (string, error)
	DeviceUUID(d Device) ([16]byte, error)
	DeviceTotalMem(d Device) (uint64, error)
	DeviceAttribute(a Attribute, d Device) (int, error)
	DeviceCanAccessPeer(d, peer Device) (bool, error)

	PrimaryCtxRetain(d Device) (Context, error)
	PrimaryCtxRelease(d Device) error
	CtxSetCurrent(c Context) error // for this OS thread
	CtxGetCurrent() (Context, error)
	CtxSynchronize() error

	MemGetInfo() (free, total uint64, err error)
	MemAlloc(n uint64) (Ptr, error)
	MemFree(p Ptr) error
	MemGetAddressRange(p Ptr) (base Ptr, size uint64, err error)
	MemHostRegister(host []byte, f HostFlags) error
	MemHostUnregister(host []byte) error
	MemHostGetDevicePointer(host []byte) (Ptr, error)
	MemcpyHtoDAsync(dst Ptr, src []byte, s Stream) error
	MemcpyDtoHAsync(dst []byte, src Ptr, s Stream) error
	MemcpyAsync(dst, src Ptr, n uint64, s Stream) error // device memory, or registered host memory
	MemcpyPeerAsync(dst Ptr, dstCtx Context, src Ptr, srcCtx Context, n uint64, s Stream) error
	MemsetD8Async(dst Ptr, v uint8, n uint64, s Stream) error
	MemsetD16Async(dst Ptr, v uint16, n uint64, s Stream) error
	MemsetD32Async(dst Ptr, v uint32, n uint64, s Stream) error

	StreamCreate(f StreamFlags) (Stream, error)
	StreamDestroy(s Stream) error
	StreamSynchronize(s Stream) error
	StreamQuery(s Stream) error // ErrorNotReady while work is pending
	StreamWaitEvent(s Stream, e Event) error
	StreamWriteValue32(s Stream, p Ptr, v uint32) error // after all work queued before
	StreamWaitValue32(s Stream, p Ptr, v uint32) error  // until int32(value at p - v) >= 0
	EventCreate(f EventFlags) (Event, error)
	EventDestroy(e Event) error
	EventRecord(e Event, s Stream) error
	EventSynchronize(e Event) error
	EventQuery(e Event) error // ErrorNotReady while the recorded work is pending
	EventElapsedTime(start, end Event) (ms float32, err error)

	MemGetAllocationGranularity(p AllocationProp, g Granularity) (uint64, error)
	MemCreate(n uint64, p AllocationProp) (MemHandle, error)
	MemRelease(h MemHandle) error
	MemExport(h MemHandle) (fd int, err error) // cuMemExportToShareableHandle
	// cuMemImportFromShareableHandle; the caller must close fd
	MemImport(fd int) (MemHandle, error)
	MemAddressReserve(n, align uint64) (Ptr, error)
	MemAddressFree(p Ptr, n uint64) error
	MemMap(p Ptr, n uint64, h MemHandle) error
	MemUnmap(p Ptr, n uint64) error
	MemSetAccess(p Ptr, n uint64, access []AccessDesc) error

	IPCGetMemHandle(p Ptr) (IPCHandle, error)
	IPCOpenMemHandle(h IPCHandle) (Ptr, error)
	IPCCloseMemHandle(p Ptr) error
	IPCGetEventHandle(e Event) (IPCHandle, error)
	IPCOpenEventHandle(h IPCHandle) (Event, error)

	// cuModuleLoadDataEx; text must end with a zero byte
	ModuleLoadData(image []byte) (Module, error)
	ModuleUnload(m Module) error
	ModuleGetFunction(m Module, name string) (Function, error)
	LaunchKernel(f Function, grid, block [3]uint32, shared uint32, s Stream, args []byte) error
}
