// A stand-in for libcuda: the functions with the types of cuda.h, written out here. Each notes what it was given, as C sees it, and gives known
// results. So a wrong order, width or size on the other side cannot go unseen.
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

typedef unsigned long long u64;
typedef struct { char reserved[64]; } Handle64;
typedef struct { char bytes[16]; } UUID;
typedef struct { int type, id; } Location;
typedef struct {
	int type, handles;
	Location location;
	void *win32;
	struct { unsigned char compression, rdma; unsigned short usage; unsigned char reserved[4]; } flags;
} Prop;
typedef struct { Location location; int flags; } Access;
typedef void *Obj;

static char note[4096];
static int result;

const char *standin_note(void) { return note; }
void standin_fail(int r) { result = r; }

static int say(const char *format, ...) {
	va_list a;
	va_start(a, format);
	vsnprintf(note, sizeof note, format, a);
	va_end(a);
	return result;
}

static const char *hex(const Handle64 *h) {
	static char text[129];
	for (int i = 0; i < 64; i++) sprintf(text + 2 * i, "%02x", (unsigned char)h->reserved[i]);
	return text;
}

static Handle64 ramp(int from) {
	Handle64 h;
	for (int i = 0; i < 64; i++) h.reserved[i] = (char)(from + i);
	return h;
}

#define OUT(T, v) (*out = (T)(v))

int cuInit(unsigned flags) { return say("cuInit %u", flags); }
int cuDriverGetVersion(int *out) { OUT(int, 12080); return say("cuDriverGetVersion"); }
int cuDeviceGetCount(int *out) { OUT(int, 3); return say("cuDeviceGetCount"); }
int cuDeviceGet(int *out, int ordinal) { OUT(int, 17); return say("cuDeviceGet %d", ordinal); }
int cuDeviceGetName(char *out, int n, int dev) { snprintf(out, n, "Stand-in"); return say("cuDeviceGetName %d %d", n, dev); }
#ifdef BEFORE_11_4
#define cuDeviceGetUuid_v2 cuDeviceGetUuid
#endif
int cuDeviceGetUuid_v2(UUID *out, int dev) { for (int i = 0; i < 16; i++) out->bytes[i] = (char)(0xf0 + i); return say("cuDeviceGetUuid_v2 %d", dev); }
int cuDeviceTotalMem_v2(size_t *out, int dev) { OUT(size_t, 150754820096ull); return say("cuDeviceTotalMem_v2 %d", dev); }
int cuDeviceGetAttribute(int *out, int a, int dev) { OUT(int, -5); return say("cuDeviceGetAttribute %d %d", a, dev); }
int cuDeviceCanAccessPeer(int *out, int dev, int peer) { OUT(int, 1); return say("cuDeviceCanAccessPeer %d %d", dev, peer); }
int cuDevicePrimaryCtxRetain(Obj *out, int dev) { OUT(Obj, 0x7a0000000001ull); return say("cuDevicePrimaryCtxRetain %d", dev); }
int cuDevicePrimaryCtxRelease_v2(int dev) { return say("cuDevicePrimaryCtxRelease_v2 %d", dev); }
int cuCtxSetCurrent(Obj c) { return say("cuCtxSetCurrent %p", c); }
int cuCtxGetCurrent(Obj *out) { OUT(Obj, 0x7a0000000002ull); return say("cuCtxGetCurrent"); }
int cuCtxSynchronize(void) { return say("cuCtxSynchronize"); }
int cuCtxEnablePeerAccess(Obj c, unsigned flags) { return say("cuCtxEnablePeerAccess %p %u", c, flags); }
int cuMemGetInfo_v2(size_t *free, size_t *total) { *free = 111; *total = 222; return say("cuMemGetInfo_v2"); }
int cuMemAlloc_v2(u64 *out, size_t n) { OUT(u64, 0x7b0000000001ull); return say("cuMemAlloc_v2 %zu", n); }
int cuMemFree_v2(u64 p) { return say("cuMemFree_v2 %llx", p); }
int cuMemGetAddressRange_v2(u64 *base, size_t *size, u64 p) { *base = 0x7b0000000002ull; *size = 333; return say("cuMemGetAddressRange_v2 %llx", p); }
int cuMemHostRegister_v2(void *p, size_t n, unsigned flags) { return say("cuMemHostRegister_v2 %c %zu %u", *(char *)p, n, flags); }
int cuMemHostUnregister(void *p) { return say("cuMemHostUnregister %c", *(char *)p); }
int cuMemHostGetDevicePointer_v2(u64 *out, void *p, unsigned flags) { OUT(u64, 0x7b0000000003ull); return say("cuMemHostGetDevicePointer_v2 %c %u", *(char *)p, flags); }
int cuMemcpyHtoDAsync_v2(u64 d, const void *s, size_t n, Obj stream) { return say("cuMemcpyHtoDAsync_v2 %llx %.*s %zu %p", d, (int)n, (const char *)s, n, stream); }
int cuMemcpyDtoHAsync_v2(void *d, u64 s, size_t n, Obj stream) { memset(d, 'x', n); return say("cuMemcpyDtoHAsync_v2 %llx %zu %p", s, n, stream); }
int cuMemcpyDtoDAsync_v2(u64 d, u64 s, size_t n, Obj stream) { return say("cuMemcpyDtoDAsync_v2 %llx %llx %zu %p", d, s, n, stream); }
int cuMemcpyPeerAsync(u64 d, Obj dc, u64 s, Obj sc, size_t n, Obj stream) { return say("cuMemcpyPeerAsync %llx %p %llx %p %zu %p", d, dc, s, sc, n, stream); }
int cuMemsetD8Async(u64 d, unsigned char v, size_t n, Obj stream) { return say("cuMemsetD8Async %llx %u %zu %p", d, v, n, stream); }
int cuMemsetD16Async(u64 d, unsigned short v, size_t n, Obj stream) { return say("cuMemsetD16Async %llx %u %zu %p", d, v, n, stream); }
int cuMemsetD32Async(u64 d, unsigned v, size_t n, Obj stream) { return say("cuMemsetD32Async %llx %u %zu %p", d, v, n, stream); }
int cuStreamCreate(Obj *out, unsigned flags) { OUT(Obj, 0x7c0000000001ull); return say("cuStreamCreate %u", flags); }
int cuStreamDestroy_v2(Obj s) { return say("cuStreamDestroy_v2 %p", s); }
int cuStreamSynchronize(Obj s) { return say("cuStreamSynchronize %p", s); }
int cuStreamQuery(Obj s) { return say("cuStreamQuery %p", s); }
int cuStreamWaitEvent(Obj s, Obj e, unsigned flags) { return say("cuStreamWaitEvent %p %p %u", s, e, flags); }
int cuStreamWriteValue32_v2(Obj s, u64 p, unsigned v, unsigned flags) { return say("cuStreamWriteValue32_v2 %p %llx %u %u", s, p, v, flags); }
int cuStreamWaitValue32_v2(Obj s, u64 p, unsigned v, unsigned flags) { return say("cuStreamWaitValue32_v2 %p %llx %u %u", s, p, v, flags); }
int cuEventCreate(Obj *out, unsigned flags) { OUT(Obj, 0x7d0000000001ull); return say("cuEventCreate %u", flags); }
int cuEventDestroy_v2(Obj e) { return say("cuEventDestroy_v2 %p", e); }
int cuEventRecord(Obj e, Obj s) { return say("cuEventRecord %p %p", e, s); }
int cuEventSynchronize(Obj e) { return say("cuEventSynchronize %p", e); }
int cuEventQuery(Obj e) { return say("cuEventQuery %p", e); }
int cuEventElapsedTime(float *out, Obj a, Obj b) { OUT(float, 1.5f); return say("cuEventElapsedTime %p %p", a, b); }

static const char *prop(const Prop *p) {
	static char text[200];
	snprintf(text, sizeof text, "{%d %d %d %d %d %d%d%d}", p->type, p->handles, p->location.type, p->location.id, p->win32 != 0,
		p->flags.compression, p->flags.rdma, p->flags.usage);
	return text;
}

int cuMemGetAllocationGranularity(size_t *out, const Prop *p, int option) { OUT(size_t, 2 << 20); return say("cuMemGetAllocationGranularity %s %d", prop(p), option); }
int cuMemCreate(u64 *out, size_t n, const Prop *p, u64 flags) { OUT(u64, 0x7e0000000001ull); return say("cuMemCreate %zu %s %llu", n, prop(p), flags); }
int cuMemRelease(u64 h) { return say("cuMemRelease %llx", h); }
int cuMemExportToShareableHandle(void *out, u64 h, int type, u64 flags) { *(int *)out = 42; return say("cuMemExportToShareableHandle %llx %d %llu", h, type, flags); }
int cuMemImportFromShareableHandle(u64 *out, void *os, int type) { OUT(u64, 0x7e0000000002ull); return say("cuMemImportFromShareableHandle %d %d", (int)(size_t)os, type); }
int cuMemAddressReserve(u64 *out, size_t n, size_t align, u64 addr, u64 flags) { OUT(u64, 0x7e0000000003ull); return say("cuMemAddressReserve %zu %zu %llu %llu", n, align, addr, flags); }
int cuMemAddressFree(u64 p, size_t n) { return say("cuMemAddressFree %llx %zu", p, n); }
int cuMemMap(u64 p, size_t n, size_t offset, u64 h, u64 flags) { return say("cuMemMap %llx %zu %zu %llx %llu", p, n, offset, h, flags); }
int cuMemUnmap(u64 p, size_t n) { return say("cuMemUnmap %llx %zu", p, n); }
int cuMemSetAccess(u64 p, size_t n, const Access *a, size_t count) {
	const Access *last = a + count - 1;
	return say("cuMemSetAccess %llx %zu %zu {%d %d %d} {%d %d %d}", p, n, count, a->location.type, a->location.id, a->flags,
		last->location.type, last->location.id, last->flags);
}
int cuIpcGetMemHandle(Handle64 *out, u64 p) { *out = ramp(1); return say("cuIpcGetMemHandle %llx", p); }
int cuIpcOpenMemHandle_v2(u64 *out, Handle64 h, unsigned flags) { OUT(u64, 0x7f0000000001ull); return say("cuIpcOpenMemHandle_v2 %s %u", hex(&h), flags); }
int cuIpcCloseMemHandle(u64 p) { return say("cuIpcCloseMemHandle %llx", p); }
int cuIpcGetEventHandle(Handle64 *out, Obj e) { *out = ramp(101); return say("cuIpcGetEventHandle %p", e); }
int cuIpcOpenEventHandle(Obj *out, Handle64 h) { OUT(Obj, 0x7f0000000002ull); return say("cuIpcOpenEventHandle %s", hex(&h)); }
int cuModuleLoadData(Obj *out, const void *image) { OUT(Obj, 0x6f0000000001ull); return say("cuModuleLoadData %s", (const char *)image); }
int cuModuleUnload(Obj m) { return say("cuModuleUnload %p", m); }
int cuModuleGetFunction(Obj *out, Obj m, const char *name) { OUT(Obj, 0x6f0000000002ull); return say("cuModuleGetFunction %p %s", m, name); }
int cuLaunchKernel(Obj f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, Obj stream, void **params, void **extra) {
	return say("cuLaunchKernel %p %u %u %u %u %u %u %u %p %d %zu %.*s %zu %zu", f, gx, gy, gz, bx, by, bz, shared, stream, params != 0,
		(size_t)extra[0], (int)*(size_t *)extra[3], (const char *)extra[1], (size_t)extra[2], (size_t)extra[4]);
}
