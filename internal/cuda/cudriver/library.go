package cudriver

import (
	"bytes"
	"strings"
	"unsafe"

	"github.com/shoal-mp/shoal/internal/dl"
)

// library implements [Driver] with the functions of a shared library. [Load] makes it. An
// address of 0 means that the library lacks the function.
type library struct{ entries [entries]uintptr }

// Load binds the first of the named libraries that can be loaded. By default it tries libcuda.so.1,
// including its path on WSL. If an old library lacks a function, a call of that function returns
// [ErrorNotSupported]. The error of Load wraps [dl.ErrNotLoaded] if no library can be loaded.
func Load(names ...string) (Driver, error) {
	if len(names) == 0 {
		names = []string{"libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1"}
	}
	lib, err := dl.Open(names...)
	if err != nil {
		return nil, err
	}
	d := new(library)
	for i, name := range symbols {
		d.entries[i], _ = lib.Symbol(name) // 0 if the symbol is missing
	}
	if d.entries[cuDeviceGetUUID] == 0 { // older than CUDA 11.4, without MIG instances
		d.entries[cuDeviceGetUUID], _ = lib.Symbol("cuDeviceGetUuid")
	}
	return d, nil
}

// call calls a function of the driver. The error is an *[Error] with CUDA's result. The result is
// [ErrorNotSupported] if the library lacks the function. An argument may be narrower than a word,
// because the callee ignores the upper bits of the register.
//
//go:uintptrescapes
func (l *library) call(e entry, args ...uintptr) error {
	if l.entries[e] == 0 {
		return &Error{Call: symbols[e], Result: ErrorNotSupported}
	}
	return Check(symbols[e], Result(int32(dl.Call(l.entries[e], args...))))
}

// callForResult calls a function that stores its result through its first parameter, and
// returns the result. T must have the size of the C type. args are the other arguments, at most
// four integers. Passing more registers than the function has parameters is harmless.
func callForResult[T any](l *library, e entry, args ...uintptr) (T, error) {
	v, a := new(T), [4]uintptr{}
	copy(a[:], args)
	err := l.call(e, uintptr(unsafe.Pointer(v)), a[0], a[1], a[2], a[3])
	return *v, err
}

// dataPointer returns the address of the first element of b, or nil if b is nil.
func dataPointer[T any](b []T) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(b)) }

// Init initialises the driver. The library's initialisation may install signal handlers; [dl.Guard]
// protects the Go runtime's handlers.
func (l *library) Init() error {
	return dl.Guard(func() error { return l.call(cuInit, 0) })
}

func (l *library) DriverVersion() (int, error) {
	v, err := callForResult[int32](l, cuDriverGetVersion)
	return int(v), err
}

func (l *library) DeviceCount() (int, error) {
	n, err := callForResult[int32](l, cuDeviceGetCount)
	return int(n), err
}

func (l *library) DeviceGet(ordinal int) (Device, error) {
	return callForResult[Device](l, cuDeviceGet, uintptr(ordinal))
}

func (l *library) DeviceName(d Device) (string, error) {
	name := make([]byte, 256)
	err := l.call(cuDeviceGetName, uintptr(dataPointer(name)), uintptr(len(name)), uintptr(d))
	for i, c := range name {
		if c == 0 {
			return string(name[:i]), err
		}
	}
	return string(name), err
}

func (l *library) DeviceUUID(d Device) ([16]byte, error) {
	return callForResult[[16]byte](l, cuDeviceGetUUID, uintptr(d))
}

func (l *library) DeviceTotalMem(d Device) (uint64, error) {
	return callForResult[uint64](l, cuDeviceTotalMem, uintptr(d))
}

func (l *library) DeviceAttribute(a Attribute, d Device) (int, error) {
	v, err := callForResult[int32](l, cuDeviceGetAttribute, uintptr(a), uintptr(d))
	return int(v), err
}

func (l *library) DeviceCanAccessPeer(d, peer Device) (bool, error) {
	v, err := callForResult[int32](l, cuDeviceCanAccessPeer, uintptr(d), uintptr(peer))
	return v != 0, err
}

func (l *library) PrimaryCtxRetain(d Device) (Context, error) {
	var c Context
	err := dl.Guard(func() (err error) {
		c, err = callForResult[Context](l, cuDevicePrimaryCtxRetain, uintptr(d))
		return err
	})
	return c, err
}

func (l *library) PrimaryCtxRelease(d Device) error {
	return l.call(cuDevicePrimaryCtxRelease, uintptr(d))
}

func (l *library) CtxSetCurrent(c Context) error { return l.call(cuCtxSetCurrent, uintptr(c)) }

func (l *library) CtxGetCurrent() (Context, error) { return callForResult[Context](l, cuCtxGetCurrent) }

func (l *library) CtxSynchronize() error { return l.call(cuCtxSynchronize) }

func (l *library) StreamCreate(f StreamFlags) (Stream, error) {
	return callForResult[Stream](l, cuStreamCreate, uintptr(f))
}

func (l *library) StreamDestroy(s Stream) error { return l.call(cuStreamDestroy, uintptr(s)) }

func (l *library) StreamSynchronize(s Stream) error { return l.call(cuStreamSynchronize, uintptr(s)) }

func (l *library) StreamQuery(s Stream) error { return l.call(cuStreamQuery, uintptr(s)) }

func (l *library) StreamWaitEvent(s Stream, e Event) error {
	return l.call(cuStreamWaitEvent, uintptr(s), uintptr(e), 0)
}

func (l *library) StreamWriteValue32(s Stream, p Ptr, v uint32) error {
	return l.call(cuStreamWriteValue32, uintptr(s), uintptr(p), uintptr(v), 0)
}

func (l *library) StreamWaitValue32(s Stream, p Ptr, v uint32) error {
	return l.call(cuStreamWaitValue32, uintptr(s), uintptr(p), uintptr(v), 0)
}

func (l *library) EventCreate(f EventFlags) (Event, error) {
	return callForResult[Event](l, cuEventCreate, uintptr(f))
}

func (l *library) EventDestroy(e Event) error { return l.call(cuEventDestroy, uintptr(e)) }

func (l *library) EventRecord(e Event, s Stream) error {
	return l.call(cuEventRecord, uintptr(e), uintptr(s))
}

func (l *library) EventSynchronize(e Event) error { return l.call(cuEventSynchronize, uintptr(e)) }

func (l *library) EventQuery(e Event) error { return l.call(cuEventQuery, uintptr(e)) }

func (l *library) EventElapsedTime(start, end Event) (float32, error) {
	return callForResult[float32](l, cuEventElapsedTime, uintptr(start), uintptr(end))
}

// ModuleLoadData loads a module. image must end with a zero byte. If this fails, the error's
// Log is the error log of the driver's PTX compiler.
func (l *library) ModuleLoadData(image []byte) (Module, error) {
	m, log := new(Module), make([]byte, 4096)
	options := [...]int32{jitErrorLog, jitErrorLogSize}
	values := &struct { // C's void *[2]: a pointer and an integer
		log  unsafe.Pointer
		size uintptr
	}{dataPointer(log), uintptr(len(log))}
	err := l.call(cuModuleLoadDataEx, uintptr(unsafe.Pointer(m)), uintptr(dataPointer(image)), uintptr(len(options)),
		uintptr(unsafe.Pointer(&options)), uintptr(unsafe.Pointer(values)))
	if failed, ok := err.(*Error); ok {
		text, _, _ := bytes.Cut(log, []byte{0})
		failed.Log = strings.TrimSpace(string(text))
	}
	return *m, err
}

func (l *library) ModuleUnload(m Module) error { return l.call(cuModuleUnload, uintptr(m)) }

func (l *library) ModuleGetFunction(m Module, name string) (Function, error) {
	f, text := new(Function), append([]byte(name), 0)
	err := l.call(cuModuleGetFunction, uintptr(unsafe.Pointer(f)), uintptr(m), uintptr(dataPointer(text)))
	return *f, err
}

// launchArgs is the extra parameter of cuLaunchKernel: tagged values that pass all kernel arguments
// in one buffer.
type launchArgs struct {
	buffer uintptr // CU_LAUNCH_PARAM_BUFFER_POINTER = 1
	args   unsafe.Pointer
	length uintptr // CU_LAUNCH_PARAM_BUFFER_SIZE = 2
	size   *uint64
	end    uintptr // CU_LAUNCH_PARAM_END = 0
}

// LaunchKernel launches a kernel. It passes the arguments as one buffer: args must have the layout
// of a C struct of the kernel's parameters.
func (l *library) LaunchKernel(f Function, grid, block [3]uint32, shared uint32, s Stream, args []byte) error {
	size := uint64(len(args))
	extra := &launchArgs{buffer: 1, args: dataPointer(args), length: 2, size: &size}
	return l.call(cuLaunchKernel, uintptr(f), uintptr(grid[0]), uintptr(grid[1]), uintptr(grid[2]),
		uintptr(block[0]), uintptr(block[1]), uintptr(block[2]), uintptr(shared), uintptr(s), 0,
		uintptr(unsafe.Pointer(extra)))
}
