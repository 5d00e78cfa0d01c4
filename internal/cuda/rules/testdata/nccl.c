// A stand-in for NCCL: it notes what it is called with, and refuses two ranks on one device. The types of nccl.h are written out here, or those of the
// header itself, if VENDOR is defined.
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#ifdef VENDOR
#include <nccl.h>
_Static_assert(ncclFloat32 == 7 && ncclSum == 0 && ncclInvalidUsage == 5, "what is asked for, and what is refused");
#else
typedef void *ncclComm_t, *cudaStream_t;
typedef int ncclResult_t, ncclDataType_t, ncclRedOp_t;
#endif

static char notes[4096];
static size_t used;

static void note(const char *format, ...) {
	va_list args;
	va_start(args, format);
	used += vsnprintf(notes + used, sizeof notes - used, format, args);
	va_end(args);
}

int standin_note(char *out, size_t n);
int standin_note(char *out, size_t n) {
	snprintf(out, n, "%s", notes);
	return 0;
}

ncclResult_t ncclGetVersion(int *version) {
	*version = 22703;
	return 0;
}

ncclResult_t ncclCommInitAll(ncclComm_t *comms, int n, const int *devices) {
	if (n == 2 && devices[0] == devices[1])
		return 5;
	note("init %d:", n);
	for (int i = 0; i < n; i++) {
		note(" %d", devices[i]);
		comms[i] = (ncclComm_t)(0x7a0000000000 + i);
	}
	note("\n");
	return 0;
}

ncclResult_t ncclGroupStart(void) {
	note("start\n");
	return 0;
}

ncclResult_t ncclGroupEnd(void) {
	note("end\n");
	return 0;
}

ncclResult_t ncclAllReduce(const void *from, void *to, size_t count, ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
	note("reduce %zx %zx %zu %d %d %p %p\n", (size_t)from, (size_t)to, count, type, op, comm, stream);
	return 0;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
	note("destroy %p\n", comm);
	return 0;
}
