// What PyTorch asks of libcudart.so.13 to share tensors, by the driver of works.c. It is preloaded, and comes before the one that PyTorch brings, which needs
// more of a driver than its documented functions. What is not here is that one's.
#include <stdlib.h>
#include <string.h>

typedef unsigned long long u64;
typedef void *Obj;
typedef struct { char reserved[64]; } Handle64;

int cuMemAlloc_v2(u64 *, size_t), cuMemFree_v2(u64), cuMemGetInfo_v2(size_t *, size_t *);
int cuIpcGetMemHandle(Handle64 *, u64), cuIpcOpenMemHandle_v2(u64 *, Handle64, unsigned), cuIpcCloseMemHandle(u64);
int cuEventCreate(Obj *, unsigned), cuIpcGetEventHandle(Handle64 *, Obj), cuIpcOpenEventHandle(Obj *, Handle64);
int cuDriverGetVersion(int *), cuGetProcAddress_v2(const char *, void **, int, u64, int *);

int cudaDriverGetVersion(int *out) { return cuDriverGetVersion(out); }
int cudaRuntimeGetVersion(int *out) { return cuDriverGetVersion(out); }
int cudaGetDeviceCount(int *out) { *out = 1; return 0; }
int cudaGetDevice(int *out) { *out = 0; return 0; }
int cudaSetDevice(int dev) { return dev ? 101 : 0; }
int cudaGetDeviceProperties(char *p, int dev) { // cudaDeviceProp of CUDA 13
	size_t free;
	memset(p, 0, 1008);
	strcpy(p, "Stand-in");
	cuMemGetInfo_v2(&free, (size_t *)(p + 288));
	*(int *)(p + 308) = 32;   // warpSize
	*(int *)(p + 320) = 1024; // maxThreadsPerBlock
	*(int *)(p + 360) = 8;    // major
	*(int *)(p + 384) = 1;    // multiProcessorCount
	return 0;
}
int cudaDeviceCanAccessPeer(int *out, int a, int b) { *out = 0; return 0; }
int cudaDeviceGetStreamPriorityRange(int *least, int *greatest) { *least = *greatest = 0; return 0; }
int cudaDeviceSynchronize(void) { return 0; }
int cudaGetLastError(void) { return 0; }
int cudaPeekAtLastError(void) { return 0; }
int cudaGetDriverEntryPointByVersion(const char *name, void **out, unsigned version, u64 flags, int *found) {
	int missing = 0, result = cuGetProcAddress_v2(name, out, version, flags, &missing);
	if (found) *found = missing;
	return result;
}

int cudaMalloc(u64 *out, size_t n) { return cuMemAlloc_v2(out, n); }
int cudaFree(u64 p) { return cuMemFree_v2(p); }
int cudaHostAlloc(void **out, size_t n, unsigned flags) { return (*out = malloc(n)) ? 0 : 2; }
int cudaFreeHost(void *p) { free(p); return 0; }
int cudaPointerGetAttributes(void *out, const void *p) { memset(out, 0, 24); return 0; } // the host's, that CUDA does not know
int cudaMemGetInfo(size_t *free, size_t *total) { return cuMemGetInfo_v2(free, total); }
int cudaMemcpy(void *d, const void *s, size_t n, int kind) { memmove(d, s, n); return 0; }
int cudaMemcpyAsync(void *d, const void *s, size_t n, int kind, Obj stream) { memmove(d, s, n); return 0; }

int cudaStreamCreateWithPriority(Obj *out, unsigned flags, int priority) { *out = (Obj)1; return 0; }
int cudaStreamSynchronize(Obj s) { return 0; }
int cudaStreamQuery(Obj s) { return 0; }
int cudaStreamWaitEvent(Obj s, Obj e, unsigned flags) { return 0; }
int cudaStreamIsCapturing(Obj s, int *out) { *out = 0; return 0; }
int cudaStreamGetCaptureInfo(Obj s, int *out, u64 *id, void *graph, void *deps, void *edges, void *n) { *out = 0; return 0; }
int cudaThreadExchangeStreamCaptureMode(int *mode) { return 0; }
int cudaEventCreateWithFlags(Obj *out, unsigned flags) { return cuEventCreate(out, flags); }
int cudaEventRecord(Obj e, Obj s) { return 0; }
int cudaEventQuery(Obj e) { return 0; }
int cudaEventSynchronize(Obj e) { return 0; }
int cudaEventDestroy(Obj e) { return 0; }

int cudaIpcGetMemHandle(Handle64 *out, u64 p) { return cuIpcGetMemHandle(out, p); }
int cudaIpcOpenMemHandle(u64 *out, Handle64 h, unsigned flags) { return cuIpcOpenMemHandle_v2(out, h, flags); }
int cudaIpcCloseMemHandle(u64 p) { return cuIpcCloseMemHandle(p); }
int cudaIpcGetEventHandle(Handle64 *out, Obj e) { return cuIpcGetEventHandle(out, e); }
int cudaIpcOpenEventHandle(Obj *out, Handle64 h) { return cuIpcOpenEventHandle(out, h); }
