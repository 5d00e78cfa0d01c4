// A stand-in for libcuda: the functions with the types of cuda.h. Each notes what it was given, as C sees it, and gives known results. So a
// wrong order, width or size on the other side cannot go unseen. The types are written out here, where VENDOR is not defined; where it is, they are
// those of NVIDIA's header, which then has to declare every function as it is here.
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#ifdef VENDOR
#include <cuda.h>
#ifdef cuEventElapsedTime // CUDA 13 means a newer one by this name, which drivers of CUDA 12 lack; its driver has both
#undef cuEventElapsedTime
CUresult cuEventElapsedTime(float *, CUevent, CUevent);
#endif
#else
typedef unsigned long long CUdeviceptr, CUmemGenericAllocationHandle, cuuint64_t;
typedef unsigned cuuint32_t;
typedef int CUresult, CUdevice, CUjit_option, CUdevice_attribute, CUmemAllocationGranularity_flags, CUmemAllocationHandleType;
typedef void *CUcontext, *CUstream, *CUevent, *CUmodule, *CUfunction;
typedef struct { char bytes[16]; } CUuuid;
typedef struct { char reserved[64]; } CUipcMemHandle, CUipcEventHandle;
typedef struct { int type, id; } CUmemLocation;
typedef struct {
	int type, requestedHandleTypes;
	CUmemLocation location;
	void *win32HandleMetaData;
	struct { unsigned char compressionType, gpuDirectRDMACapable; unsigned short usage; unsigned char reserved[4]; } allocFlags;
} CUmemAllocationProp;
typedef struct { CUmemLocation location; int flags; } CUmemAccessDesc;
#endif

static char note[4096];
static CUresult result;

const char *standin_note(void);
void standin_fail(int r);
const char *standin_note(void) { return note; }
void standin_fail(int r) { result = r; }

static CUresult say(const char *format, ...) {
	va_list a;
	va_start(a, format);
	vsnprintf(note, sizeof note, format, a);
	va_end(a);
	return result;
}

static const char *hex(const char *h) {
	static char text[129];
	for (int i = 0; i < 64; i++) sprintf(text + 2 * i, "%02x", (unsigned char)h[i]);
	return text;
}

static void ramp(char *out, int from) {
	for (int i = 0; i < 64; i++) out[i] = (char)(from + i);
}

CUresult cuInit(unsigned flags) { return say("cuInit %u", flags); }
CUresult cuDriverGetVersion(int *out) { *out = 12080; return say("cuDriverGetVersion"); }
CUresult cuDeviceGetCount(int *out) { *out = 3; return say("cuDeviceGetCount"); }
CUresult cuDeviceGet(CUdevice *out, int ordinal) { *out = 17; return say("cuDeviceGet %d", ordinal); }
CUresult cuDeviceGetName(char *out, int n, CUdevice dev) { snprintf(out, n, "Stand-in"); return say("cuDeviceGetName %d %d", n, dev); }
#ifdef BEFORE_11_4
#define cuDeviceGetUuid_v2 cuDeviceGetUuid
#endif
CUresult cuDeviceGetUuid_v2(CUuuid *out, CUdevice dev) { for (int i = 0; i < 16; i++) out->bytes[i] = (char)(0xf0 + i); return say("cuDeviceGetUuid_v2 %d", dev); }
CUresult cuDeviceTotalMem_v2(size_t *out, CUdevice dev) { *out = 150754820096ull; return say("cuDeviceTotalMem_v2 %d", dev); }
CUresult cuDeviceGetAttribute(int *out, CUdevice_attribute a, CUdevice dev) { *out = -5; return say("cuDeviceGetAttribute %d %d", a, dev); }
CUresult cuDeviceCanAccessPeer(int *out, CUdevice dev, CUdevice peer) { *out = 1; return say("cuDeviceCanAccessPeer %d %d", dev, peer); }
CUresult cuDevicePrimaryCtxRetain(CUcontext *out, CUdevice dev) { *out = (CUcontext)0x7a0000000001ull; return say("cuDevicePrimaryCtxRetain %d", dev); }
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice dev) { return say("cuDevicePrimaryCtxRelease_v2 %d", dev); }
CUresult cuCtxSetCurrent(CUcontext c) { return say("cuCtxSetCurrent %p", c); }
CUresult cuCtxGetCurrent(CUcontext *out) { *out = (CUcontext)0x7a0000000002ull; return say("cuCtxGetCurrent"); }
CUresult cuCtxSynchronize(void) { return say("cuCtxSynchronize"); }
CUresult cuMemGetInfo_v2(size_t *free, size_t *total) { *free = 111; *total = 222; return say("cuMemGetInfo_v2"); }
CUresult cuMemAlloc_v2(CUdeviceptr *out, size_t n) { *out = 0x7b0000000001ull; return say("cuMemAlloc_v2 %zu", n); }
CUresult cuMemFree_v2(CUdeviceptr p) { return say("cuMemFree_v2 %llx", p); }
CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *size, CUdeviceptr p) { *base = 0x7b0000000002ull; *size = 333; return say("cuMemGetAddressRange_v2 %llx", p); }
CUresult cuMemHostRegister_v2(void *p, size_t n, unsigned flags) { return say("cuMemHostRegister_v2 %c %zu %u", *(char *)p, n, flags); }
CUresult cuMemHostUnregister(void *p) { return say("cuMemHostUnregister %c", *(char *)p); }
CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *out, void *p, unsigned flags) { *out = 0x7b0000000003ull; return say("cuMemHostGetDevicePointer_v2 %c %u", *(char *)p, flags); }
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr d, const void *s, size_t n, CUstream stream) { return say("cuMemcpyHtoDAsync_v2 %llx %.*s %zu %p", d, (int)n, (const char *)s, n, stream); }
CUresult cuMemcpyDtoHAsync_v2(void *d, CUdeviceptr s, size_t n, CUstream stream) { memset(d, 'x', n); return say("cuMemcpyDtoHAsync_v2 %llx %zu %p", s, n, stream); }
CUresult cuMemcpyAsync(CUdeviceptr d, CUdeviceptr s, size_t n, CUstream stream) { return say("cuMemcpyAsync %llx %llx %zu %p", d, s, n, stream); }
CUresult cuMemcpyPeerAsync(CUdeviceptr d, CUcontext dc, CUdeviceptr s, CUcontext sc, size_t n, CUstream stream) { return say("cuMemcpyPeerAsync %llx %p %llx %p %zu %p", d, dc, s, sc, n, stream); }
CUresult cuMemsetD8Async(CUdeviceptr d, unsigned char v, size_t n, CUstream stream) { return say("cuMemsetD8Async %llx %u %zu %p", d, v, n, stream); }
CUresult cuMemsetD16Async(CUdeviceptr d, unsigned short v, size_t n, CUstream stream) { return say("cuMemsetD16Async %llx %u %zu %p", d, v, n, stream); }
CUresult cuMemsetD32Async(CUdeviceptr d, unsigned v, size_t n, CUstream stream) { return say("cuMemsetD32Async %llx %u %zu %p", d, v, n, stream); }
CUresult cuStreamCreate(CUstream *out, unsigned flags) { *out = (CUstream)0x7c0000000001ull; return say("cuStreamCreate %u", flags); }
CUresult cuStreamDestroy_v2(CUstream s) { return say("cuStreamDestroy_v2 %p", s); }
CUresult cuStreamSynchronize(CUstream s) { return say("cuStreamSynchronize %p", s); }
CUresult cuStreamQuery(CUstream s) { return say("cuStreamQuery %p", s); }
CUresult cuStreamWaitEvent(CUstream s, CUevent e, unsigned flags) { return say("cuStreamWaitEvent %p %p %u", s, e, flags); }
CUresult cuStreamWriteValue32_v2(CUstream s, CUdeviceptr p, cuuint32_t v, unsigned flags) { return say("cuStreamWriteValue32_v2 %p %llx %u %u", s, p, v, flags); }
CUresult cuStreamWaitValue32_v2(CUstream s, CUdeviceptr p, cuuint32_t v, unsigned flags) { return say("cuStreamWaitValue32_v2 %p %llx %u %u", s, p, v, flags); }
CUresult cuEventCreate(CUevent *out, unsigned flags) { *out = (CUevent)0x7d0000000001ull; return say("cuEventCreate %u", flags); }
CUresult cuEventDestroy_v2(CUevent e) { return say("cuEventDestroy_v2 %p", e); }
CUresult cuEventRecord(CUevent e, CUstream s) { return say("cuEventRecord %p %p", e, s); }
CUresult cuEventSynchronize(CUevent e) { return say("cuEventSynchronize %p", e); }
CUresult cuEventQuery(CUevent e) { return say("cuEventQuery %p", e); }
CUresult cuEventElapsedTime(float *out, CUevent a, CUevent b) { *out = 1.5f; return say("cuEventElapsedTime %p %p", a, b); }

static const char *prop(const CUmemAllocationProp *p) {
	static char text[200];
	snprintf(text, sizeof text, "{%d %d %d %d %d %d%d%d}", p->type, p->requestedHandleTypes, p->location.type, p->location.id, p->win32HandleMetaData != 0,
		p->allocFlags.compressionType, p->allocFlags.gpuDirectRDMACapable, p->allocFlags.usage);
	return text;
}

CUresult cuMemGetAllocationGranularity(size_t *out, const CUmemAllocationProp *p, CUmemAllocationGranularity_flags option) { *out = 2 << 20; return say("cuMemGetAllocationGranularity %s %d", prop(p), option); }
CUresult cuMemCreate(CUmemGenericAllocationHandle *out, size_t n, const CUmemAllocationProp *p, unsigned long long flags) { *out = 0x7e0000000001ull; return say("cuMemCreate %zu %s %llu", n, prop(p), flags); }
CUresult cuMemRelease(CUmemGenericAllocationHandle h) { return say("cuMemRelease %llx", h); }
CUresult cuMemExportToShareableHandle(void *out, CUmemGenericAllocationHandle h, CUmemAllocationHandleType type, unsigned long long flags) { *(int *)out = 42; return say("cuMemExportToShareableHandle %llx %d %llu", h, type, flags); }
CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *out, void *os, CUmemAllocationHandleType type) { *out = 0x7e0000000002ull; return say("cuMemImportFromShareableHandle %d %d", (int)(size_t)os, type); }
CUresult cuMemAddressReserve(CUdeviceptr *out, size_t n, size_t align, CUdeviceptr addr, unsigned long long flags) { *out = 0x7e0000000003ull; return say("cuMemAddressReserve %zu %zu %llu %llu", n, align, addr, flags); }
CUresult cuMemAddressFree(CUdeviceptr p, size_t n) { return say("cuMemAddressFree %llx %zu", p, n); }
CUresult cuMemMap(CUdeviceptr p, size_t n, size_t offset, CUmemGenericAllocationHandle h, unsigned long long flags) { return say("cuMemMap %llx %zu %zu %llx %llu", p, n, offset, h, flags); }
CUresult cuMemUnmap(CUdeviceptr p, size_t n) { return say("cuMemUnmap %llx %zu", p, n); }
CUresult cuMemSetAccess(CUdeviceptr p, size_t n, const CUmemAccessDesc *a, size_t count) {
	const CUmemAccessDesc *last = a + count - 1;
	return say("cuMemSetAccess %llx %zu %zu {%d %d %d} {%d %d %d}", p, n, count, a->location.type, a->location.id, a->flags,
		last->location.type, last->location.id, last->flags);
}
CUresult cuIpcGetMemHandle(CUipcMemHandle *out, CUdeviceptr p) { ramp(out->reserved, 1); return say("cuIpcGetMemHandle %llx", p); }
CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *out, CUipcMemHandle h, unsigned flags) { *out = 0x7f0000000001ull; return say("cuIpcOpenMemHandle_v2 %s %u", hex(h.reserved), flags); }
CUresult cuIpcCloseMemHandle(CUdeviceptr p) { return say("cuIpcCloseMemHandle %llx", p); }
CUresult cuIpcGetEventHandle(CUipcEventHandle *out, CUevent e) { ramp(out->reserved, 101); return say("cuIpcGetEventHandle %p", e); }
CUresult cuIpcOpenEventHandle(CUevent *out, CUipcEventHandle h) { *out = (CUevent)0x7f0000000002ull; return say("cuIpcOpenEventHandle %s", hex(h.reserved)); }
CUresult cuModuleLoadDataEx(CUmodule *out, const void *image, unsigned n, CUjit_option *options, void **values) {
	*out = (CUmodule)0x6f0000000001ull;
	if (result && n == 2) snprintf(values[0], (unsigned)(size_t)values[1], "ptxas: line 3; unknown word\n");
	return say("cuModuleLoadDataEx %s %u %d %d %u", (const char *)image, n, options[0], options[1], (unsigned)(size_t)values[1]);
}
CUresult cuModuleUnload(CUmodule m) { return say("cuModuleUnload %p", m); }
CUresult cuModuleGetFunction(CUfunction *out, CUmodule m, const char *name) { *out = (CUfunction)0x6f0000000002ull; return say("cuModuleGetFunction %p %s", m, name); }
CUresult cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, CUstream stream, void **params, void **extra) {
	return say("cuLaunchKernel %p %u %u %u %u %u %u %u %p %d %zu %.*s %zu %zu", f, gx, gy, gz, bx, by, bz, shared, stream, params != 0,
		(size_t)extra[0], (int)*(size_t *)extra[3], (const char *)extra[1], (size_t)extra[2], (size_t)extra[4]);
}
