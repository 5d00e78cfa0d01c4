package cudriver

import "unsafe"

func (l *library) MemGetInfo() (free, total uint64, err error) {
	v := new([2]uint64)
	err = l.call(cuMemGetInfo, uintptr(unsafe.Pointer(&v[0])), uintptr(unsafe.Pointer(&v[1])))
	return v[0], v[1], err
}

func (l *library) MemAlloc(n uint64) (Ptr, error) {
	return callForResult[Ptr](l, cuMemAlloc, uintptr(n))
}

func (l *library) MemFree(p Ptr) error { return l.call(cuMemFree, uintptr(p)) }

func (l *library) MemGetAddressRange(p Ptr) (base Ptr, size uint64, err error) {
	b, n := new(Ptr), new(uint64)
	err = l.call(cuMemGetAddressRange, uintptr(unsafe.Pointer(b)), uintptr(unsafe.Pointer(n)), uintptr(p))
	return *b, *n, err
}

func (l *library) MemHostRegister(host []byte, f HostFlags) error {
	return l.call(cuMemHostRegister, uintptr(dataPointer(host)), uintptr(len(host)), uintptr(f))
}

func (l *library) MemHostUnregister(host []byte) error {
	return l.call(cuMemHostUnregister, uintptr(dataPointer(host)))
}

func (l *library) MemHostGetDevicePointer(host []byte) (Ptr, error) {
	p := new(Ptr)
	err := l.call(cuMemHostGetDevicePointer, uintptr(unsafe.Pointer(p)), uintptr(dataPointer(host)), 0)
	return *p, err
}

func (l *library) MemcpyHtoDAsync(dst Ptr, src []byte, s Stream) error {
	return l.call(cuMemcpyHtoDAsync, uintptr(dst), uintptr(dataPointer(src)), uintptr(len(src)), uintptr(s))
}

func (l *library) MemcpyDtoHAsync(dst []byte, src Ptr, s Stream) error {
	return l.call(cuMemcpyDtoHAsync, uintptr(dataPointer(dst)), uintptr(src), uintptr(len(dst)), uintptr(s))
}

func (l *library) MemcpyAsync(dst, src Ptr, n uint64, s Stream) error {
	return l.call(cuMemcpyAsync, uintptr(dst), uintptr(src), uintptr(n), uintptr(s))
}

func (l *library) MemcpyPeerAsync(dst Ptr, dstCtx Context, src Ptr, srcCtx Context, n uint64, s Stream) error {
	return l.call(cuMemcpyPeerAsync, uintptr(dst), uintptr(dstCtx), uintptr(src), uintptr(srcCtx), uintptr(n),
		uintptr(s))
}

func (l *library) MemsetD8Async(dst Ptr, v uint8, n uint64, s Stream) error {
	return l.call(cuMemsetD8Async, uintptr(dst), uintptr(v), uintptr(n), uintptr(s))
}

func (l *library) MemsetD16Async(dst Ptr, v uint16, n uint64, s Stream) error {
	return l.call(cuMemsetD16Async, uintptr(dst), uintptr(v), uintptr(n), uintptr(s))
}

func (l *library) MemsetD32Async(dst Ptr, v uint32, n uint64, s Stream) error {
	return l.call(cuMemsetD32Async, uintptr(dst), uintptr(v), uintptr(n), uintptr(s))
}

func (l *library) MemGetAllocationGranularity(p AllocationProp, g Granularity) (uint64, error) {
	n := new(uint64)
	err := l.call(cuMemGetAllocationGranularity, uintptr(unsafe.Pointer(n)), uintptr(unsafe.Pointer(&p)), uintptr(g))
	return *n, err
}

func (l *library) MemCreate(n uint64, p AllocationProp) (MemHandle, error) {
	h := new(MemHandle)
	err := l.call(cuMemCreate, uintptr(unsafe.Pointer(h)), uintptr(n), uintptr(unsafe.Pointer(&p)), 0)
	return *h, err
}

func (l *library) MemRelease(h MemHandle) error { return l.call(cuMemRelease, uintptr(h)) }

func (l *library) MemExport(h MemHandle) (fd int, err error) {
	v, err := callForResult[int32](l, cuMemExport, uintptr(h), handlePosixFile, 0)
	return int(v), err
}

// MemImport imports the memory of a file descriptor. The caller must close fd. As CUDA requires,
// the parameter of type void * is the descriptor itself, not its address.
func (l *library) MemImport(fd int) (MemHandle, error) {
	return callForResult[MemHandle](l, cuMemImport, uintptr(fd), handlePosixFile)
}

func (l *library) MemAddressReserve(n, align uint64) (Ptr, error) {
	return callForResult[Ptr](l, cuMemAddressReserve, uintptr(n), uintptr(align), 0, 0)
}

func (l *library) MemAddressFree(p Ptr, n uint64) error {
	return l.call(cuMemAddressFree, uintptr(p), uintptr(n))
}

func (l *library) MemMap(p Ptr, n uint64, h MemHandle) error {
	return l.call(cuMemMap, uintptr(p), uintptr(n), 0, uintptr(h), 0)
}

func (l *library) MemUnmap(p Ptr, n uint64) error { return l.call(cuMemUnmap, uintptr(p), uintptr(n)) }

func (l *library) MemSetAccess(p Ptr, n uint64, access []AccessDesc) error {
	return l.call(cuMemSetAccess, uintptr(p), uintptr(n), uintptr(dataPointer(access)), uintptr(len(access)))
}

func (l *library) IPCGetMemHandle(p Ptr) (IPCHandle, error) {
	return callForResult[IPCHandle](l, cuIPCGetMemHandle, uintptr(p))
}

func (l *library) IPCOpenMemHandle(h IPCHandle) (Ptr, error) {
	p := new(Ptr)
	err := l.openIPC(cuIPCOpenMemHandle, unsafe.Pointer(p), &h, ipcLazyPeerAccess)
	return *p, err
}

func (l *library) IPCCloseMemHandle(p Ptr) error { return l.call(cuIPCCloseMemHandle, uintptr(p)) }

func (l *library) IPCGetEventHandle(e Event) (IPCHandle, error) {
	return callForResult[IPCHandle](l, cuIPCGetEventHandle, uintptr(e))
}

func (l *library) IPCOpenEventHandle(h IPCHandle) (Event, error) {
	e := new(Event)
	err := l.openIPC(cuIPCOpenEventHandle, unsafe.Pointer(e), &h, 0)
	return *e, err
}
