//go:build amd64 || arm64

package cudriver_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal/internal/cuda/cudriver"
	"github.com/shoal-mp/shoal/internal/dl"
	"github.com/shoal-mp/shoal/test/standin"
)

// load compiles the stand-in, with flags of the compiler, and loads it, and returns what notes its
// last call and what makes its next ones fail.
func load(t *testing.T, flags ...string) (d cudriver.Driver, note func() string, fail func(cudriver.Result)) {
	t.Helper()
	so := standin.Compile(t, "testdata/standin.c", flags...)
	d, err := cudriver.Load(so)
	if err != nil {
		t.Fatal(err)
	}
	lib, err := dl.Open(so)
	if err != nil {
		t.Fatal(err)
	}
	read, err := lib.Symbol("standin_note")
	if err != nil {
		t.Fatal(err)
	}
	set, err := lib.Symbol("standin_fail")
	if err != nil {
		t.Fatal(err)
	}
	return d, func() string { return cudriver.CString(read) }, func(r cudriver.Result) { dl.Call(set, uintptr(r)) }
}

func ramp(from int) (h cudriver.IPCHandle) {
	for i := range h {
		h[i] = byte(from + i)
	}
	return h
}

func TestDriver_EachCallReachesCAsItWasMeant(t *testing.T) { callEach(t) }

// callEach calls each binding, and compares what C saw with what was meant.
func callEach(t *testing.T, flags ...string) {
	const p, q, big = cudriver.Ptr(0xfedcba9876543210), cudriver.Ptr(0xf123456789abcdef), uint64(1<<40 + 5)
	const ctx, peer = cudriver.Context(0x1a0000000001), cudriver.Context(0x1a0000000002)
	const stream, event, end = cudriver.Stream(0x1b0000000002), cudriver.Event(0x1c0000000003),
		cudriver.Event(0x1c0000000004)
	d, note, fail := load(t, flags...)
	host, prop := []byte("host"), cudriver.Pinned(6, true)
	both := []cudriver.AccessDesc{cudriver.Access(6, cudriver.AccessReadWrite), cudriver.Access(7, cudriver.AccessRead)}
	hex := func(from int) string { h := ramp(from); return fmt.Sprintf("%x", h[:]) }
	seen := map[string]bool{}
	check := func(got any, err error, sees string, want any) {
		t.Helper()
		name, _, _ := strings.Cut(sees, " ")
		seen[name] = true
		if n := note(); n != sees || err != nil {
			t.Errorf("C saw %q, %v; want %q", n, err, sees)
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s gave %v, want %v", name, got, want)
		}
	}
	call := func(err error, sees string) { t.Helper(); check(nil, err, sees, nil) }

	call(d.Init(), "cuInit 0")
	v, err := d.DriverVersion()
	check(v, err, "cuDriverGetVersion", 12080)
	v, err = d.DeviceCount()
	check(v, err, "cuDeviceGetCount", 3)
	dev, err := d.DeviceGet(5)
	check(dev, err, "cuDeviceGet 5", 17)
	name, err := d.DeviceName(6)
	check(name, err, "cuDeviceGetName 256 6", "Stand-in")
	uuid, err := d.DeviceUUID(6)
	check(fmt.Sprintf("%x", uuid), err, "cuDeviceGetUuid_v2 6", "f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff")
	n, err := d.DeviceTotalMem(6)
	check(n, err, "cuDeviceTotalMem_v2 6", 150754820096)
	v, err = d.DeviceAttribute(cudriver.AttributeVirtualMemory, 6)
	check(v, err, "cuDeviceGetAttribute 102 6", -5)
	can, err := d.DeviceCanAccessPeer(6, 7)
	check(can, err, "cuDeviceCanAccessPeer 6 7", true)

	c, err := d.PrimaryCtxRetain(6)
	check(c, err, "cuDevicePrimaryCtxRetain 6", 0x7a0000000001)
	call(d.PrimaryCtxRelease(6), "cuDevicePrimaryCtxRelease_v2 6")
	call(d.CtxSetCurrent(ctx), "cuCtxSetCurrent 0x1a0000000001")
	c, err = d.CtxGetCurrent()
	check(c, err, "cuCtxGetCurrent", 0x7a0000000002)
	call(d.CtxSynchronize(), "cuCtxSynchronize")

	free, total, err := d.MemGetInfo()
	check([]uint64{free, total}, err, "cuMemGetInfo_v2", "[111 222]")
	a, err := d.MemAlloc(big)
	check(a, err, "cuMemAlloc_v2 1099511627781", 0x7b0000000001)
	call(d.MemFree(p), "cuMemFree_v2 fedcba9876543210")
	base, size, err := d.MemGetAddressRange(p)
	check([]uint64{uint64(base), size}, err, "cuMemGetAddressRange_v2 fedcba9876543210", []uint64{0x7b0000000002, 333})
	call(d.MemHostRegister(host, cudriver.HostPortable|cudriver.HostDeviceMap), "cuMemHostRegister_v2 h 4 3")
	call(d.MemHostUnregister(host), "cuMemHostUnregister h")
	a, err = d.MemHostGetDevicePointer(host)
	check(a, err, "cuMemHostGetDevicePointer_v2 h 0", 0x7b0000000003)
	call(d.MemcpyHtoDAsync(p, host, stream), "cuMemcpyHtoDAsync_v2 fedcba9876543210 host 4 0x1b0000000002")
	call(d.MemcpyDtoHAsync(host, p, stream), "cuMemcpyDtoHAsync_v2 fedcba9876543210 4 0x1b0000000002")
	if string(host) != "xxxx" {
		t.Errorf("copied to the host: %q", host)
	}
	call(d.MemcpyAsync(p, q, big, stream),
		"cuMemcpyAsync fedcba9876543210 f123456789abcdef 1099511627781 0x1b0000000002")
	call(d.MemcpyPeerAsync(p, ctx, q, peer, big, stream),
		"cuMemcpyPeerAsync fedcba9876543210 0x1a0000000001 f123456789abcdef 0x1a0000000002 1099511627781 "+
			"0x1b0000000002")
	call(d.MemsetD8Async(p, 0xfe, big, stream), "cuMemsetD8Async fedcba9876543210 254 1099511627781 0x1b0000000002")
	call(d.MemsetD16Async(p, 0xfedc, big, stream),
		"cuMemsetD16Async fedcba9876543210 65244 1099511627781 0x1b0000000002")
	call(d.MemsetD32Async(p, 0xfedcba98, big, stream),
		"cuMemsetD32Async fedcba9876543210 4275878552 1099511627781 0x1b0000000002")

	s, err := d.StreamCreate(cudriver.StreamNonBlocking)
	check(s, err, "cuStreamCreate 1", 0x7c0000000001)
	call(d.StreamDestroy(stream), "cuStreamDestroy_v2 0x1b0000000002")
	call(d.StreamSynchronize(stream), "cuStreamSynchronize 0x1b0000000002")
	call(d.StreamQuery(stream), "cuStreamQuery 0x1b0000000002")
	call(d.StreamWaitEvent(stream, event), "cuStreamWaitEvent 0x1b0000000002 0x1c0000000003 0")
	call(d.StreamWriteValue32(stream, p, 0xfedcba98),
		"cuStreamWriteValue32_v2 0x1b0000000002 fedcba9876543210 4275878552 0")
	call(d.StreamWaitValue32(stream, p, 0xfedcba98),
		"cuStreamWaitValue32_v2 0x1b0000000002 fedcba9876543210 4275878552 0")
	e, err := d.EventCreate(cudriver.EventInterprocess | cudriver.EventDisableTiming)
	check(e, err, "cuEventCreate 6", 0x7d0000000001)
	call(d.EventDestroy(event), "cuEventDestroy_v2 0x1c0000000003")
	call(d.EventRecord(event, stream), "cuEventRecord 0x1c0000000003 0x1b0000000002")
	call(d.EventSynchronize(event), "cuEventSynchronize 0x1c0000000003")
	call(d.EventQuery(event), "cuEventQuery 0x1c0000000003")
	ms, err := d.EventElapsedTime(event, end)
	check(ms, err, "cuEventElapsedTime 0x1c0000000003 0x1c0000000004", 1.5)

	n, err = d.MemGetAllocationGranularity(prop, cudriver.GranularityRecommended)
	check(n, err, "cuMemGetAllocationGranularity {1 1 1 6 0 000} 1", 2<<20)
	h, err := d.MemCreate(big, prop)
	check(h, err, "cuMemCreate 1099511627781 {1 1 1 6 0 000} 0", 0x7e0000000001)
	call(d.MemRelease(0x1122334455667788), "cuMemRelease 1122334455667788")
	fd, err := d.MemExport(0x1122334455667788)
	check(fd, err, "cuMemExportToShareableHandle 1122334455667788 1 0", 42)
	h, err = d.MemImport(42)
	check(h, err, "cuMemImportFromShareableHandle 42 1", 0x7e0000000002)
	a, err = d.MemAddressReserve(big, 2<<20)
	check(a, err, "cuMemAddressReserve 1099511627781 2097152 0 0", 0x7e0000000003)
	call(d.MemAddressFree(p, big), "cuMemAddressFree fedcba9876543210 1099511627781")
	call(d.MemMap(p, big, 0x1122334455667788), "cuMemMap fedcba9876543210 1099511627781 0 1122334455667788 0")
	call(d.MemUnmap(p, big), "cuMemUnmap fedcba9876543210 1099511627781")
	call(d.MemSetAccess(p, big, both), "cuMemSetAccess fedcba9876543210 1099511627781 2 {1 6 3} {1 7 1}")

	ipc, err := d.IPCGetMemHandle(p)
	check(ipc == ramp(1), err, "cuIpcGetMemHandle fedcba9876543210", true)
	a, err = d.IPCOpenMemHandle(ramp(70))
	check(a, err, "cuIpcOpenMemHandle_v2 "+hex(70)+" 1", 0x7f0000000001)
	call(d.IPCCloseMemHandle(p), "cuIpcCloseMemHandle fedcba9876543210")
	ipc, err = d.IPCGetEventHandle(event)
	check(ipc == ramp(101), err, "cuIpcGetEventHandle 0x1c0000000003", true)
	e, err = d.IPCOpenEventHandle(ramp(80))
	check(e, err, "cuIpcOpenEventHandle "+hex(80), 0x7f0000000002)

	m, err := d.ModuleLoadData([]byte("code\x00"))
	check(m, err, "cuModuleLoadDataEx code 2 5 6 4096", 0x6f0000000001)
	call(d.ModuleUnload(0x1d0000000001), "cuModuleUnload 0x1d0000000001")
	f, err := d.ModuleGetFunction(0x1d0000000001, "fill")
	check(f, err, "cuModuleGetFunction 0x1d0000000001 fill", 0x6f0000000002)
	call(d.LaunchKernel(0x1e0000000001, [3]uint32{1, 2, 3}, [3]uint32{4, 5, 6}, 7, stream, []byte("arguments")),
		"cuLaunchKernel 0x1e0000000001 1 2 3 4 5 6 7 0x1b0000000002 0 1 arguments 2 0")

	for _, name := range cudriver.Symbols() {
		if !seen[name] {
			t.Errorf("%s is bound, and nobody looks at how", name)
		}
	}

	fail(cudriver.ErrorNotPermitted)
	_, err = d.MemCreate(1, prop)
	if failed, ok := errors.AsType[*cudriver.Error](err); !ok || failed.Call != "cuMemCreate" ||
		!errors.Is(err, cudriver.ErrorNotPermitted) {
		t.Errorf("a call that fails: %v", err)
	}
	if _, err = d.ModuleLoadData([]byte("code\x00")); !errors.Is(err, cudriver.ErrorNotPermitted) ||
		!strings.HasSuffix(err.Error(), ": ptxas: line 3; unknown word") {
		t.Errorf("a text that is refused: %v", err)
	}
}

func TestDriver_StructsHaveTheSizesOfC(t *testing.T) {
	if got, want := cudriver.Sizes(), [...]uintptr{8, 32, 12}; got != want {
		t.Errorf("location, properties, access: %v bytes, want %v", got, want)
	}
}

func TestDriver_AnOldOneHasTheOldUUID(t *testing.T) {
	d, note, _ := load(t, "-DBEFORE_11_4")
	if id, err := d.DeviceUUID(6); id[15] != 0xff || err != nil || note() != "cuDeviceGetUuid_v2 6" {
		t.Errorf("%x, %v: %s", id, err, note())
	}
}

func TestLoad_NamesAFunctionThatIsMissing(t *testing.T) {
	d, err := cudriver.Load("libc.so.6")
	if err != nil {
		t.Skip(err)
	}
	if err := d.Init(); !errors.Is(err, cudriver.ErrorNotSupported) ||
		!strings.Contains(err.Error(), "cuInit: CUDA_ERROR_NOT_SUPPORTED") {
		t.Errorf("%v", err)
	}
}
