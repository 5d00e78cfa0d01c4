// A driver that works, as far as processes share memory by handles: an allocation is memory of the host that another process can map, copies are done
// at once, and there are no kernels. It keeps the rules that a handle is not opened where it comes from, nor twice, as old drivers refuse; that it ends with
// its process; and that an event for others is made as one. standin.c says what it is given; this one does it.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

typedef unsigned long long u64;
typedef void *Obj;
typedef struct { int pid, fd; u64 inode, size; char rest[40]; } Handle64;
typedef struct { char *at; size_t size; int fd, opened; Handle64 handle; } Piece;
enum { MOST = 1024, UNIT = 2 << 20, VERSION = 13000 };
enum { INVALID_VALUE = 1, OUT_OF_MEMORY = 2, INVALID_DEVICE = 101, INVALID_CONTEXT = 201, ALREADY_MAPPED = 208, INVALID_HANDLE = 400, NOT_FOUND = 500, NOT_READY = 600 };
static const size_t total = 1ull << 36;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static Piece pieces[MOST];
static size_t used;
static int busy;
static __thread Obj current;

static int unlocked(int result) { pthread_mutex_unlock(&lock); return result; }
#define LOCKED(result) (pthread_mutex_lock(&lock), unlocked(result))

static Piece *around(u64 p) {
	for (Piece *q = pieces; q < pieces + MOST; q++)
		if (q->at && p - (u64)q->at < q->size) return q;
	return 0;
}

static Piece *map(int fd, size_t size) {
	Piece *q = pieces;
	while (q < pieces + MOST && q->at) q++;
	char *at = q == pieces + MOST ? MAP_FAILED : mmap(0, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED) return 0;
	*q = (Piece){at, size, fd};
	return q;
}

static int unmap(u64 p, int opened) {
	Piece *q = around(p);
	if (!q || (u64)q->at != p || q->opened != opened) return INVALID_VALUE;
	if (!opened) used -= q->size;
	munmap(q->at, q->size);
	close(q->fd);
	memset(q, 0, sizeof *q);
	return 0;
}

static int allocate(u64 *out, size_t n) {
	n = (n + UNIT - 1) / UNIT * UNIT;
	int fd = n ? memfd_create("a device", MFD_CLOEXEC) : -1;
	if (fd < 0) return INVALID_VALUE;
	Piece *q = ftruncate(fd, n) ? 0 : map(fd, n);
	if (!q) return close(fd), OUT_OF_MEMORY;
	used += n;
	*out = (u64)q->at;
	return 0;
}

static int export(Handle64 *out, u64 p) {
	Piece *q = around(p);
	struct stat s;
	if (!q || q->opened || (u64)q->at != p || fstat(q->fd, &s)) return INVALID_VALUE;
	*out = (Handle64){getpid(), q->fd, s.st_ino, q->size};
	return 0;
}

static int import(u64 *out, const Handle64 *h) {
	char name[64];
	struct stat s;
	if (h->pid == getpid()) return INVALID_CONTEXT;
	for (Piece *q = pieces; q < pieces + MOST; q++)
		if (q->opened && !memcmp(&q->handle, h, sizeof *h)) return ALREADY_MAPPED;
	snprintf(name, sizeof name, "/proc/%d/fd/%d", h->pid, h->fd);
	int fd = open(name, O_RDWR | O_CLOEXEC);
	if (fd < 0) return INVALID_HANDLE;
	Piece *q = fstat(fd, &s) || s.st_ino != h->inode ? 0 : map(fd, h->size);
	if (!q) return close(fd), INVALID_HANDLE;
	q->opened = 1;
	q->handle = *h;
	*out = (u64)q->at;
	return 0;
}

static int range(u64 *base, size_t *size, u64 p) {
	Piece *q = around(p);
	if (!q) return INVALID_VALUE;
	if (base) *base = (u64)q->at;
	if (size) *size = q->size;
	return 0;
}

int cuMemAlloc_v2(u64 *out, size_t n) { return LOCKED(allocate(out, n)); }
int cuMemFree_v2(u64 p) { return p ? LOCKED(unmap(p, 0)) : 0; }
int cuMemGetAddressRange_v2(u64 *base, size_t *size, u64 p) { return LOCKED(range(base, size, p)); }
int cuIpcGetMemHandle(Handle64 *out, u64 p) { return LOCKED(export(out, p)); }
int cuIpcOpenMemHandle_v2(u64 *out, Handle64 h, unsigned flags) { return flags == 1 ? LOCKED(import(out, &h)) : INVALID_VALUE; }
int cuIpcCloseMemHandle(u64 p) { return LOCKED(unmap(p, 1)); }
int cuMemGetInfo_v2(size_t *free, size_t *all) { *free = total - used, *all = total; return 0; }

int cuInit(unsigned flags) { return 0; }
int cuDriverGetVersion(int *out) { *out = VERSION; return 0; }
int cuDeviceGetCount(int *out) { *out = 1; return 0; }
int cuDeviceGet(int *out, int ordinal) { *out = ordinal; return ordinal ? INVALID_DEVICE : 0; }
int cuDeviceGetName(char *out, int n, int dev) { snprintf(out, n, "Stand-in"); return 0; }
int cuDeviceGetUuid_v2(char *out, int dev) { memset(out, 0xd1, 16); return 0; }
int cuDeviceTotalMem_v2(size_t *out, int dev) { *out = total; return 0; }
int cuDeviceGetAttribute(int *out, int a, int dev) { *out = a == 75 ? 8 : a == 76 || a == 20 ? 0 : 1; return 0; } // of 8.0, for all processes
int cuDevicePrimaryCtxGetState(int dev, unsigned *flags, int *active) { *flags = 0, *active = 1; return 0; }
int cuDevicePrimaryCtxRetain(Obj *out, int dev) { *out = pieces; return 0; }
int cuDevicePrimaryCtxRelease_v2(int dev) { return 0; }
int cuCtxSetCurrent(Obj c) { current = c; return 0; }
int cuCtxGetCurrent(Obj *out) { *out = current; return 0; }
int cuCtxPushCurrent_v2(Obj c) { current = c; return 0; }
int cuCtxPopCurrent_v2(Obj *out) { *out = current, current = 0; return 0; }
int cuCtxSynchronize(void) { busy = 0; return 0; }
int cuCtxGetDevice(int *dev) { *dev = 0; return current ? 0 : INVALID_CONTEXT; }

int cuMemcpyHtoD_v2(u64 d, const void *s, size_t n) { memcpy((void *)d, s, n); return 0; }
int cuMemcpyDtoH_v2(void *d, u64 s, size_t n) { memcpy(d, (void *)s, n); return 0; }
int cuMemcpyHtoDAsync_v2(u64 d, const void *s, size_t n, Obj stream) { busy = 1; return cuMemcpyHtoD_v2(d, s, n); }
int cuMemcpyDtoHAsync_v2(void *d, u64 s, size_t n, Obj stream) { busy = 1; return cuMemcpyDtoH_v2(d, s, n); }
int cuMemcpyAsync(u64 d, u64 s, size_t n, Obj stream) { busy = 1; memmove((void *)d, (void *)s, n); return 0; }
int cuMemsetD8Async(u64 d, unsigned char v, size_t n, Obj stream) { busy = 1; memset((void *)d, v, n); return 0; }
int cuMemsetD16Async(u64 d, unsigned short v, size_t n, Obj stream) { busy = 1; while (n--) ((unsigned short *)d)[n] = v; return 0; }
int cuMemsetD32Async(u64 d, unsigned v, size_t n, Obj stream) { busy = 1; while (n--) ((unsigned *)d)[n] = v; return 0; }
int cuMemGetAllocationGranularity(size_t *out, const void *prop, int option) { *out = UNIT; return 0; }
int cuStreamCreate(Obj *out, unsigned flags) { *out = (Obj)0x7c0000000001; return 0; }
int cuStreamDestroy_v2(Obj s) { return 0; }
int cuStreamWaitEvent(Obj s, Obj e, unsigned flags) { return 0; }
int cuStreamSynchronize(Obj s) { busy = 0; return 0; }
int cuStreamQuery(Obj s) { int was = busy; busy = 0; return was ? NOT_READY : 0; } // at the next question it has finished

// An event is its flags.
int cuEventCreate(Obj *out, unsigned flags) { *out = (Obj)(0x7d0000000000 + flags); return 0; }
int cuEventDestroy_v2(Obj e) { return 0; }
int cuEventRecord(Obj e, Obj s) { return 0; }
int cuEventQuery(Obj e) { return 0; }
int cuEventSynchronize(Obj e) { return 0; }
int cuIpcGetEventHandle(Handle64 *out, Obj e) {
	*out = (Handle64){getpid(), -1, (u64)e};
	return ((u64)e & 6) == 6 ? 0 : INVALID_VALUE;
}
int cuIpcOpenEventHandle(Obj *out, Handle64 h) {
	*out = (Obj)h.inode;
	return h.fd == -1 && h.inode >> 40 == 0x7d && h.pid != getpid() ? 0 : INVALID_HANDLE;
}

int cuGetErrorName(int e, const char **out) { *out = "CUDA_ERROR_OF_THE_STAND_IN"; return 0; }
int cuGetErrorString(int e, const char **out) { *out = "the stand-in refuses it"; return 0; }
int cuGetProcAddress_v2(const char *name, void **out, int version, u64 flags, int *status) {
	char newer[128];
	void *self = dlopen("libcuda.so.1", RTLD_NOW);
	snprintf(newer, sizeof newer, "%s_v2", name);
	if (!(*out = dlsym(self, newer))) *out = dlsym(self, name);
	if (status) *status = !*out;
	return *out ? 0 : NOT_FOUND;
}
