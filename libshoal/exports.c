//go:build linux

/*
 * exports.c defines the functions of shoal.h that call Go. In a forked child they must not touch Go,
 * so each checks that first.
 */
#include "_cgo_export.h"
#include "native.h"
#include "shoal.h"

int shoal_native_refuse(void);
int shoal_native_close_canceller(shoal_handle h);
int shoal_native_canceller_kind(shoal_handle h);

/* ARG removes the const of a pointer, which cgo does not know. Go only reads through it. */
#define ARG(pointer) ((void *)(pointer))

/* CALL defines a function of shoal.h by a call of Go. */
#define CALL(name, parameters, call) \
	int name parameters { return shoal_forked() ? shoal_native_refuse() : call; }

static int is_canceller(shoal_handle h) { return h >> 56 == SHOAL_KIND_CANCELLER; }

const char *shoal_version(void) {
	static char version[64];
	if (version[0] == 0 && !shoal_forked())
		goVersion(version, sizeof(version));
	return version;
}

int shoal_kind(shoal_handle h) {
	if (shoal_forked())
		return SHOAL_KIND_NONE;
	return is_canceller(h) ? shoal_native_canceller_kind(h) : goKind(h);
}

int shoal_joined(void) { return shoal_forked() ? 0 : goJoined(); }

int shoal_contains(const void *data) { return shoal_forked() ? 0 : goContains(ARG(data)); }

CALL(shoal_close, (shoal_handle h), is_canceller(h) ? shoal_native_close_canceller(h) : goClose(h))
CALL(shoal_dup, (shoal_handle h, shoal_handle *copy), goDup(h, copy))
CALL(shoal_create, (const shoal_options *options), goCreate(ARG(options)))
CALL(shoal_listen,
	(const char *address, const void *key, size_t key_length, shoal_handle *listener),
	goListen(ARG(address), ARG(key), key_length, listener))
CALL(shoal_join,
	(const char *address, const void *key, size_t key_length, double timeout),
	goJoin(ARG(address), ARG(key), key_length, timeout))
CALL(shoal_leave, (double timeout), goLeave(timeout))
CALL(shoal_set_process_name, (const char *name), goSetProcessName(ARG(name)))
CALL(shoal_get_stats, (shoal_stats *stats), goGetStats(stats))
CALL(shoal_tensor_empty,
	(shoal_dtype dtype, int ndim, const int64_t *shape, shoal_handle *tensor, void **data),
	goTensorEmpty(dtype, ndim, ARG(shape), 0, tensor, data))
CALL(shoal_tensor_zeros,
	(shoal_dtype dtype, int ndim, const int64_t *shape, shoal_handle *tensor, void **data),
	goTensorEmpty(dtype, ndim, ARG(shape), 1, tensor, data))
CALL(shoal_tensor_copy,
	(const shoal_view *view, shoal_handle *tensor, void **data),
	goTensorCopy(ARG(view), tensor, data))
CALL(shoal_tensor_wrap, (const shoal_view *view, shoal_handle *tensor), goTensorWrap(ARG(view), tensor))
CALL(shoal_tensor_view,
	(shoal_handle tensor, shoal_dtype dtype, int ndim, const int64_t *shape, const int64_t *strides, int64_t offset, shoal_handle *view),
	goTensorView(tensor, dtype, ndim, ARG(shape), ARG(strides), offset, view))
CALL(shoal_tensor_describe, (shoal_handle tensor, shoal_tensor_info *info), goTensorDescribe(tensor, info))
CALL(shoal_put,
	(shoal_handle to, const void *bytes, size_t length, const shoal_view *tensors, size_t tensor_count, double timeout),
	goPut(to, ARG(bytes), length, ARG(tensors), tensor_count, timeout))
CALL(shoal_get, (shoal_handle from, double timeout, shoal_handle *message), goGet(from, timeout, message))
CALL(shoal_get_into,
	(shoal_handle from, double timeout, shoal_buffer *buffer),
	goGetInto(from, timeout, buffer))
CALL(shoal_put_many,
	(shoal_handle to, const shoal_item *items, size_t count, double timeout, size_t *sent),
	goPutMany(to, ARG(items), count, timeout, sent))
CALL(shoal_get_many,
	(shoal_handle from, double timeout, shoal_handle *messages, size_t count, size_t *received),
	goGetMany(from, timeout, messages, count, received))
CALL(shoal_message_bytes,
	(shoal_handle message, const void **bytes, size_t *length),
	goMessageBytes(message, ARG(bytes), length))
CALL(shoal_message_tensor_count, (shoal_handle message, size_t *count), goMessageTensorCount(message, count))
CALL(shoal_message_tensor,
	(shoal_handle message, size_t i, shoal_tensor_info *info),
	goMessageTensor(message, i, info))
CALL(shoal_queue_new, (int64_t capacity, shoal_handle *queue), goQueueNew(capacity, 0, queue))
CALL(shoal_joinable_new, (int64_t capacity, shoal_handle *queue), goQueueNew(capacity, 1, queue))
CALL(shoal_task_done, (shoal_handle joinable), goTaskDone(joinable))
CALL(shoal_task_join, (shoal_handle joinable, double timeout), goTaskJoin(joinable, timeout))
CALL(shoal_pipe_new, (int duplex, shoal_handle *a, shoal_handle *b), goPipeNew(duplex, a, b))
CALL(shoal_end, (shoal_handle queue, int end, shoal_handle *result), goEnd(queue, end, result))
CALL(shoal_close_end, (shoal_handle queue, int ends), goCloseEnd(queue, ends))
CALL(shoal_finish, (shoal_handle queue), goFinish(queue))
CALL(shoal_length, (shoal_handle queue, int64_t *length), goLength(queue, length))
CALL(shoal_capacity, (shoal_handle queue, int64_t *capacity), goCapacity(queue, capacity))
CALL(shoal_poll, (shoal_handle from, double timeout), goPoll(from, timeout))
CALL(shoal_latest_new,
	(const void *bytes, size_t length, const shoal_view *tensors, size_t tensor_count, shoal_handle *latest),
	goLatestNew(ARG(bytes), length, ARG(tensors), tensor_count, latest))
CALL(shoal_latest_store,
	(shoal_handle latest, const void *bytes, size_t length, const shoal_view *tensors, size_t tensor_count, double timeout, uint64_t *version),
	goLatestStore(latest, ARG(bytes), length, ARG(tensors), tensor_count, timeout, version))
CALL(shoal_latest_load,
	(shoal_handle latest, shoal_handle *message, uint64_t *version),
	goLatestLoad(latest, message, version))
CALL(shoal_latest_version, (shoal_handle latest, uint64_t *version), goLatestVersion(latest, version))
CALL(shoal_latest_wait,
	(shoal_handle latest, uint64_t after, double timeout, shoal_handle *message, uint64_t *version),
	goLatestWait(latest, after, timeout, message, version))
CALL(shoal_bind, (const char *name, shoal_handle h, double timeout), goBind(ARG(name), h, timeout))
CALL(shoal_lookup, (const char *name, int kind, shoal_handle *h), goLookup(ARG(name), kind, h))
CALL(shoal_unlink, (const char *name), goUnlink(ARG(name)))
CALL(shoal_names,
	(char *buffer, size_t size, size_t *needed, size_t *count),
	goNames(buffer, size, needed, count))
CALL(shoal_mutex_new, (shoal_handle *mutex), goLockNew(SHOAL_KIND_MUTEX, 0, mutex))
CALL(shoal_rmutex_new, (shoal_handle *rmutex), goLockNew(SHOAL_KIND_RMUTEX, 0, rmutex))
CALL(shoal_lock, (shoal_handle lock, double timeout), goLock(lock, timeout))
CALL(shoal_unlock, (shoal_handle lock), goUnlock(lock))
CALL(shoal_mark_consistent, (shoal_handle lock), goMarkConsistent(lock))
CALL(shoal_lock_holder, (shoal_handle lock, int *process), goLockHolder(lock, process))
CALL(shoal_semaphore_new,
	(int permits, int bounded, shoal_handle *semaphore),
	bounded ? goBoundedNew(permits, semaphore) : goLockNew(SHOAL_KIND_SEMAPHORE, permits, semaphore))
CALL(shoal_acquire, (shoal_handle semaphore, double timeout), goAcquire(semaphore, timeout))
CALL(shoal_release, (shoal_handle semaphore), goRelease(semaphore))
CALL(shoal_permits, (shoal_handle semaphore, int *permits), goPermits(semaphore, permits))
CALL(shoal_cond_new, (shoal_handle mutex, shoal_handle *cond), goCondNew(mutex, cond))
CALL(shoal_cond_wait, (shoal_handle cond, double timeout), goCondWait(cond, timeout))
CALL(shoal_cond_notify, (shoal_handle cond, int n), goCondNotify(cond, n))
CALL(shoal_event_new, (shoal_handle *event), goLockNew(SHOAL_KIND_EVENT, 0, event))
CALL(shoal_event_set, (shoal_handle event), goEventSet(event, 1))
CALL(shoal_event_clear, (shoal_handle event), goEventSet(event, 0))
CALL(shoal_event_is_set, (shoal_handle event, int *set), goEventIsSet(event, set))
CALL(shoal_event_wait, (shoal_handle event, double timeout), goEventWait(event, timeout))
CALL(shoal_barrier_new, (int parties, shoal_handle *barrier), goLockNew(SHOAL_KIND_BARRIER, parties, barrier))
CALL(shoal_barrier_wait,
	(shoal_handle barrier, double timeout, int *index),
	goBarrierWait(barrier, timeout, index))
CALL(shoal_barrier_reset, (shoal_handle barrier), goBarrierReset(barrier, 0))
CALL(shoal_barrier_abort, (shoal_handle barrier), goBarrierReset(barrier, 1))
CALL(shoal_barrier_state,
	(shoal_handle barrier, int *parties, int *waiting, int *broken),
	goBarrierState(barrier, parties, waiting, broken))
CALL(shoal_memory_new,
	(const char *name, size_t size, shoal_handle *memory, void **data),
	goMemoryNew(ARG(name), size, memory, data))
CALL(shoal_memory_data, (shoal_handle memory, void **data, size_t *size), goMemoryData(memory, data, size))
CALL(shoal_wait_any,
	(const shoal_handle *objects, size_t count, double timeout, uint8_t *ready),
	goWaitAny(ARG(objects), count, timeout, ready))
CALL(shoal_ready_fd, (shoal_handle h, uint64_t after, int *fd), goReadyFD(h, after, fd))
CALL(shoal_set_spin, (double seconds), goSetSpin(seconds))
CALL(shoal_export,
	(shoal_handle h, int uses, double lifetime, void *buffer, size_t size, size_t *length),
	goExport(h, uses, lifetime, buffer, size, length))
CALL(shoal_import,
	(const void *token, size_t length, double timeout, shoal_handle *h),
	goImport(ARG(token), length, timeout, h))
CALL(shoal_fork_prepare, (shoal_fork_ticket *ticket), goForkPrepare(ticket))
CALL(shoal_fork_import,
	(const shoal_fork_ticket *ticket, shoal_handle old, double timeout, shoal_handle *h),
	goForkImport(ARG(ticket), old, timeout, h))
