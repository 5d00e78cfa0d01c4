// The structs of dlpack.h 1.1, as a library in C sees and makes them. They are written out here, or those of the header itself, if VENDOR is defined.
#include <stdint.h>
#include <stdio.h>
#include <stddef.h>

#ifdef VENDOR
#include <dlpack.h>
_Static_assert(kDLCUDA == 2 && DLPACK_MAJOR_VERSION == 1 && DLPACK_FLAG_BITMASK_READ_ONLY == 1, "numbers");
_Static_assert(kDLInt == 0 && kDLUInt == 1 && kDLFloat == 2 && kDLBfloat == 4 && kDLComplex == 5 && kDLBool == 6, "types of elements");
#pragma GCC diagnostic ignored "-Wmissing-declarations" // the functions below are not the header's
#else
typedef struct { uint32_t major, minor; } DLPackVersion;
typedef struct { int32_t device_type; int32_t device_id; } DLDevice;
typedef struct { uint8_t code, bits; uint16_t lanes; } DLDataType;
typedef struct {
	void *data;
	DLDevice device;
	int32_t ndim;
	DLDataType dtype;
	int64_t *shape, *strides;
	uint64_t byte_offset;
} DLTensor;
typedef struct DLManagedTensor {
	DLTensor dl_tensor;
	void *manager_ctx;
	void (*deleter)(struct DLManagedTensor *);
} DLManagedTensor;
typedef struct DLManagedTensorVersioned {
	DLPackVersion version;
	void *manager_ctx;
	void (*deleter)(struct DLManagedTensorVersioned *);
	uint64_t flags;
	DLTensor dl_tensor;
} DLManagedTensorVersioned;
#endif

static char text[1024];
static int deleted;
static int64_t shape[2] = {2, 3}, strides[2] = {1, 2};

// describe says what a consumer sees.
const char *describe(DLManagedTensorVersioned *m) {
	DLTensor *t = &m->dl_tensor;
	int n = snprintf(text, sizeof text, "%u flags %llu device %d:%d type %u/%u/%u at %llx+%llu:", m->version.major, (unsigned long long)m->flags,
		t->device.device_type, t->device.device_id, t->dtype.code, t->dtype.bits, t->dtype.lanes,
		(unsigned long long)(uintptr_t)t->data, (unsigned long long)t->byte_offset);
	for (int i = 0; i < t->ndim; i++) n += snprintf(text + n, sizeof text - n, " %lld by %lld", (long long)t->shape[i], (long long)t->strides[i]);
	return text;
}

void finish(DLManagedTensorVersioned *m) { m->deleter(m); }

static void drop(DLManagedTensor *m) { deleted++; }
static void drop_versioned(DLManagedTensorVersioned *m) { deleted += 100; }
int deletions(void) { return deleted; }

static DLTensor columns(void *data) {
	DLTensor t = {(char *)data, {2, 0}, 2, {2, 32, 1}, shape, strides, 8};
	return t;
}

static DLManagedTensor plain;
static DLManagedTensorVersioned versioned;

// What a producer makes: 2×3 float32, in the order of columns, from byte 8 on.
DLManagedTensor *produce(void *data) {
	plain = (DLManagedTensor){columns(data), 0, drop};
	return &plain;
}
DLManagedTensorVersioned *produce_versioned(void *data, unsigned major, unsigned long long flags) {
	versioned = (DLManagedTensorVersioned){{major, 7}, 0, drop_versioned, flags, columns(data)};
	return &versioned;
}
