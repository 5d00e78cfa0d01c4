/*
 * shoal.h - tensors, queues, locks and names shared by processes, for C, C++, Rust and Python.
 *
 * A domain is a piece of memory that several processes of one user map. Tensors live in it, and
 * queues pass them from process to process without a copy. Everything survives the death of a
 * process: what a killed process held is released or handed on, and waits for it end with an error
 * that names it. Go programs that use github.com/shoal-mp/shoal are in the same domain: a queue
 * here is an ipc.Queue[pickle.Value] there.
 *
 * HANDLES. Every object is named by a shoal_handle, a number that is never reused for another
 * object soon. 0 is no handle. A handle must be closed with shoal_close(). A stale handle, or a
 * handle of another kind, makes a function return SHOAL_HANDLE; it never crashes.
 *
 * RESULTS. Every function that returns int returns SHOAL_OK (0) or one of the codes below, unless
 * its comment says otherwise. After an error, shoal_error_message() returns one line that says what
 * was attempted, what was found, and how to repair it. Out parameters are written only on
 * SHOAL_OK, unless the comment says otherwise. An out parameter may be NULL if its comment says
 * "optional".
 *
 * TIMEOUTS are seconds. A negative timeout waits forever, and 0 does not wait: the function then
 * returns SHOAL_EMPTY, SHOAL_FULL or SHOAL_LOCKED at once. A wait that lasted its timeout returns
 * SHOAL_TIMEOUT. NaN is SHOAL_ARGUMENT.
 *
 * SIGNALS. A wait returns SHOAL_INTERRUPTED if a signal handler ran on the waiting thread, or if
 * its canceller was fired. Nothing has happened then, and the caller may call again with the time
 * that is left. If the program has handlers of signals such as SIGINT, SHOAL_INTERRUPTED may also
 * be returned without a signal. Long waits other than shoal_barrier_wait then return it ten times
 * a second or more, because a handler may run just before the thread sleeps: what it has stored is
 * then seen. A program that has neither handlers nor cancellers never gets it. Loading the library changes no disposition but those of SIGSEGV, SIGBUS, SIGFPE
 * and SIGURG, and of SIGPIPE if it is not ignored. Go handles those that its own code causes, and
 * passes the faults of other code on to the handler that the program had before.
 *
 * THREADS. Every function may be called from any thread, unless its comment says otherwise. Closing
 * an object wakes the threads of this process that wait for it with SHOAL_CLOSED.
 *
 * FORK. The library does not survive fork() in the child: there every function returns SHOAL_FORKED
 * at once. The memory of tensors stays mapped. See "Fork" below for a child that goes on.
 *
 * MEMORY that a function returns a pointer to belongs to the library, and is valid until the handle
 * that it came from is closed.
 *
 * Link with -lshoal, or load libshoal.so with dlopen(). Never unload it: dlclose() has no effect.
 */
#ifndef SHOAL_H
#define SHOAL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* SHOAL_ABI is the number of this interface. It changes when a program must be compiled again. A
 * later library with the same number may have more functions, codes and kinds. */
#define SHOAL_ABI 1

#ifndef SHOAL_API
#define SHOAL_API
#endif

/* A shoal_handle names an object of this process. 0 is no object. */
typedef uint64_t shoal_handle;

/* ---- Results ---------------------------------------------------------------------------------- */

enum {
	SHOAL_OK = 0,
	SHOAL_CLOSED = 1,      /* the object is closed, or its other end: no value can follow */
	SHOAL_TIMEOUT = 2,     /* the timeout passed */
	SHOAL_EMPTY = 3,       /* no value, and timeout is 0 */
	SHOAL_FULL = 4,        /* no free slot, and timeout is 0 */
	SHOAL_LOCKED = 5,      /* the lock or permit is taken, and timeout is 0 */
	SHOAL_INTERRUPTED = 6, /* a signal handler ran on this thread, or the canceller was fired */
	SHOAL_OWNER_DIED = 7,  /* the lock IS held; its previous holder died: see shoal_lock */
	SHOAL_NOT_OWNER = 8,   /* the lock is not held by this process (or thread) */
	SHOAL_BROKEN = 9,      /* the barrier is broken, or the lock is not recoverable */
	SHOAL_RELEASED = 10,   /* released more often than acquired, or more tasks done than received */
	SHOAL_PEER_DIED = 11,  /* a process died before it completed its work: shoal_error_process() */
	SHOAL_TOO_LARGE = 12,  /* a size or count is out of range */
	SHOAL_NO_MEMORY = 13,  /* the domain is full; the message names the processes that hold it */
	SHOAL_VERSION = 14,    /* the peer or the domain has another version of Shoal */
	SHOAL_KEY = 15,        /* the key or the token is wrong */
	SHOAL_PERMISSION = 16, /* another user, or the system refuses it */
	SHOAL_NAME_TAKEN = 17, /* the name is bound already */
	SHOAL_NOT_FOUND = 18,  /* no such name, address, token or memory */
	SHOAL_ARGUMENT = 19,   /* an argument is invalid */
	SHOAL_HANDLE = 20,     /* not a handle, or of another kind, or closed before */
	SHOAL_FORKED = 21,     /* this process was forked after the library was loaded */
	SHOAL_TYPE = 22,       /* the name or message is of another type */
	SHOAL_DOMAIN = 23,     /* the object is in another domain, and this process has one already */
	SHOAL_SYSTEM = 24,     /* an error of the operating system; the message has its text */
	SHOAL_INTERNAL = 25,   /* a fault of the library; the message has details for a report */
	SHOAL_UNSUPPORTED = 26 /* the object has no such operation on this system */
};

/* shoal_abi returns the SHOAL_ABI of the library. A program must not go on if it differs from the
 * SHOAL_ABI that it was compiled with. It works in a forked child. */
SHOAL_API int shoal_abi(void);

/* shoal_version returns the version of the library, such as "v0.1.0", as a static string. It works
 * in a forked child. */
SHOAL_API const char *shoal_version(void);

/* shoal_code_name returns the name of a code, such as "SHOAL_EMPTY", as a static string; "SHOAL_?"
 * for a number that is no code. It works in a forked child. */
SHOAL_API const char *shoal_code_name(int code);

/* shoal_error_message copies the text of the last error of the calling thread to buffer, cut to
 * size bytes with the final 0, and returns the length of the whole text without the 0. buffer may
 * be NULL if size is 0. A call that returned SHOAL_OK leaves the text of an earlier error. It works
 * in a forked child. */
SHOAL_API size_t shoal_error_message(char *buffer, size_t size);

/* shoal_error_process returns the id of the process whose death is the cause of the last error of
 * the calling thread, or 0. */
SHOAL_API int shoal_error_process(void);

/* ---- Handles ---------------------------------------------------------------------------------- */

/* Kinds of objects. */
enum {
	SHOAL_KIND_NONE = 0,
	SHOAL_KIND_TENSOR = 1,
	SHOAL_KIND_MESSAGE = 2,
	SHOAL_KIND_QUEUE = 3,
	SHOAL_KIND_JOINABLE = 4,
	SHOAL_KIND_SENDER = 5,    /* the sending end of a queue or one-way pipe */
	SHOAL_KIND_RECEIVER = 6,  /* the receiving end */
	SHOAL_KIND_PIPE = 7,      /* one end of a two-way pipe */
	SHOAL_KIND_LATEST = 8,
	SHOAL_KIND_MUTEX = 9,
	SHOAL_KIND_RMUTEX = 10,
	SHOAL_KIND_SEMAPHORE = 11,
	SHOAL_KIND_COND = 12,
	SHOAL_KIND_EVENT = 13,
	SHOAL_KIND_BARRIER = 14,
	SHOAL_KIND_MEMORY = 15,
	SHOAL_KIND_LISTENER = 16,
	SHOAL_KIND_CANCELLER = 17
};

/* shoal_close closes a handle. The object is released when the last handle, message, name and
 * process that holds it is gone. Closing SHOAL_HANDLE twice returns SHOAL_HANDLE. */
SHOAL_API int shoal_close(shoal_handle h);

/* shoal_dup stores a second handle of the same object in *copy. Both must be closed. The ends of a
 * queue that shoal_close_end closes are closed for both. */
SHOAL_API int shoal_dup(shoal_handle h, shoal_handle *copy);

/* shoal_kind returns the kind of a handle, SHOAL_KIND_NONE if it is stale or no handle. */
SHOAL_API int shoal_kind(shoal_handle h);

/* ---- Domain ----------------------------------------------------------------------------------- */

/* shoal_options are the options of shoal_create. Set size to sizeof(shoal_options) and the rest to
 * 0 for the defaults. */
typedef struct shoal_options {
	size_t size;
	int64_t budget;  /* maximum of committed bytes; 0: the free memory of the machine */
	int64_t reserve; /* address space in bytes; 0: a multiple of the machine's memory */
} shoal_options;

/* shoal_create makes the domain of this process. options may be NULL. It need not be called: the
 * first object makes a domain with the defaults. It returns SHOAL_DOMAIN if this process has a
 * domain already. */
SHOAL_API int shoal_create(const shoal_options *options);

/* shoal_listen lets other processes of this user join the domain, at address with the key. address
 * is "@" and a name (it disappears with the process), or the path of a socket file. It stores a
 * handle of kind SHOAL_KIND_LISTENER; closing it refuses further processes. */
SHOAL_API int shoal_listen(const char *address, const void *key, size_t key_length, shoal_handle *listener);

/* shoal_join joins the domain of the process that listens at address. This process must not have a
 * domain yet, unless it is the same one. It may join a domain of a Go program that calls
 * ipc.Listen[int]. Errors: SHOAL_KEY, SHOAL_VERSION, SHOAL_PERMISSION (another user, or another PID
 * or network namespace), SHOAL_NOT_FOUND (no listener), SHOAL_DOMAIN, SHOAL_TIMEOUT. */
SHOAL_API int shoal_join(const char *address, const void *key, size_t key_length, double timeout);

/* shoal_joined reports whether this process has a domain: 1 or 0. */
SHOAL_API int shoal_joined(void);

/* shoal_leave closes all objects of this process and leaves the domain. The memory of its tensors
 * must not be used any more: another process may use it. Objects that were exported, or that a
 * forked child has not imported yet, are kept for up to timeout seconds first (negative: until they
 * are claimed). Every later call of a function that needs the domain returns SHOAL_CLOSED. A process
 * may also exit without it: then the other processes release what it held. */
SHOAL_API int shoal_leave(double timeout);

/* shoal_set_process_name sets the name under which `shoal ps`, `shoal top` and `shoal doctor` show
 * this process, 1 to 64 bytes of UTF-8 without control characters. The system keeps 15 bytes. The
 * default is the command. */
SHOAL_API int shoal_set_process_name(const char *name);

/* shoal_stats are figures of the domain. They are not read at one moment. */
typedef struct shoal_stats {
	size_t size;          /* set by the caller to sizeof(shoal_stats) */
	int32_t processes;    /* living processes of the domain */
	int32_t reaped;       /* processes that died and whose holdings were released */
	int64_t limit;        /* budget in bytes */
	int64_t committed;    /* bytes charged to the budget, used and idle */
	int64_t blocks;       /* blocks in use */
	int64_t bytes;        /* bytes of them */
	int64_t idle_bytes;   /* bytes kept for the next allocations */
	int64_t in_transit;   /* references held by unread messages */
	int64_t copied;       /* bytes that Shoal copied into or out of blocks */
	int64_t dropped;      /* messages lost with processes that died while they read them */
	int64_t handles;      /* open handles of this process */
} shoal_stats;

/* shoal_get_stats fills *stats. Figures are 0 if this process has no domain. */
SHOAL_API int shoal_get_stats(shoal_stats *stats);

/* ---- Tensors ---------------------------------------------------------------------------------- */

/* SHOAL_MAX_DIMS is the largest number of dimensions. */
#define SHOAL_MAX_DIMS 32

/* A shoal_dtype has the layout and numbers of DLPack's DLDataType. lanes is 1. The dtypes are: code
 * 0 (int) with 8, 16, 32, 64 bits; 1 (uint) with 8, 16, 32, 64; 2 (float) with 16, 32, 64; 4
 * (bfloat) with 16; 5 (complex) with 64, 128; 6 (bool) with 8; 10 (float8_e4m3fn) and 12
 * (float8_e5m2) with 8. */
typedef struct shoal_dtype {
	uint8_t code;
	uint8_t bits;
	uint16_t lanes;
} shoal_dtype;

/* A shoal_tensor_info describes a tensor. shape and strides have ndim valid elements; strides are in
 * elements. data is the address of the first element, already with the offset. */
typedef struct shoal_tensor_info {
	shoal_handle handle;
	void *data;
	int64_t offset;       /* of data in the tensor's storage, in elements */
	int64_t storage_size; /* of the storage in bytes */
	shoal_dtype dtype;
	int32_t ndim;
	int32_t shared;       /* 1: in shared memory */
	int32_t reserved;
	int64_t shape[SHOAL_MAX_DIMS];
	int64_t strides[SHOAL_MAX_DIMS];
} shoal_tensor_info;

/* A shoal_view names a tensor to send: by handle if handle is not 0 (the other fields are ignored),
 * or by memory. Memory within the domain, of a tensor of which this process has an open handle, is
 * sent without a copy; other memory is copied once into shared memory. strides are in elements and
 * must not be negative; NULL means row-major order. */
typedef struct shoal_view {
	shoal_handle handle;
	const void *data;
	const int64_t *shape;
	const int64_t *strides;
	shoal_dtype dtype;
	int32_t ndim;
} shoal_view;

/* shoal_tensor_empty makes a tensor with uninitialized elements in shared memory, in row-major
 * order. data is optional. The memory is aligned to 64 bytes. */
SHOAL_API int shoal_tensor_empty(shoal_dtype dtype, int ndim, const int64_t *shape, shoal_handle *tensor, void **data);

/* shoal_tensor_zeros is like shoal_tensor_empty with elements of 0. */
SHOAL_API int shoal_tensor_zeros(shoal_dtype dtype, int ndim, const int64_t *shape, shoal_handle *tensor, void **data);

/* shoal_tensor_copy copies the elements that view describes to a new tensor in row-major order in
 * shared memory. data is optional. */
SHOAL_API int shoal_tensor_copy(const shoal_view *view, shoal_handle *tensor, void **data);

/* shoal_tensor_wrap stores a handle of a tensor over the same memory as view, without a copy. It
 * returns SHOAL_NOT_FOUND if the memory is not within a tensor of this process in the domain. */
SHOAL_API int shoal_tensor_wrap(const shoal_view *view, shoal_handle *tensor);

/* shoal_tensor_view stores a handle of another view of a tensor's storage. offset and strides are in
 * elements of dtype, and offset counts from the start of the storage. strides may be NULL for
 * row-major order. It returns SHOAL_ARGUMENT if the view exceeds the storage. */
SHOAL_API int shoal_tensor_view(shoal_handle tensor, shoal_dtype dtype, int ndim, const int64_t *shape,
	const int64_t *strides, int64_t offset, shoal_handle *view);

/* shoal_tensor_describe fills *info. */
SHOAL_API int shoal_tensor_describe(shoal_handle tensor, shoal_tensor_info *info);

/* shoal_contains reports whether data is an address within the domain's memory: 1 or 0. It is
 * cheap. Only shoal_tensor_wrap tells whether this process holds it. */
SHOAL_API int shoal_contains(const void *data);

/* ---- Messages --------------------------------------------------------------------------------- */

/* A message is a sequence of bytes, usually a pickle of protocol 5, with tensors: a persistent id i
 * (an int) in the pickle is tensor i. The functions of this section work with every object that has
 * the end in question: queues, joinable queues, senders, receivers and pipes. */

/* shoal_put sends a message, and waits while the queue is full. The bytes are copied. The message
 * holds its own references to the tensors, and the caller must still close its handles. It returns
 * SHOAL_CLOSED if nothing can receive the message any more. */
SHOAL_API int shoal_put(shoal_handle to, const void *bytes, size_t length, const shoal_view *tensors,
	size_t tensor_count, double timeout);

/* shoal_get waits for a message and stores its handle. It returns SHOAL_CLOSED if there is none and
 * none can follow; then shoal_error_process() names the last sender if it died. */
SHOAL_API int shoal_get(shoal_handle from, double timeout, shoal_handle *message);

/* A shoal_buffer receives a message without a handle for it. The caller sets bytes, capacity,
 * tensors and tensor_capacity; the call sets the rest. */
typedef struct shoal_buffer {
	void *bytes;
	size_t capacity;             /* bytes that fit */
	shoal_tensor_info *tensors;
	size_t tensor_capacity;      /* tensors that fit */
	size_t length;               /* out: bytes of the message */
	size_t tensor_count;         /* out: tensors of the message */
	shoal_handle message;        /* out: 0, or the message if it did not fit */
} shoal_buffer;

/* shoal_get_into waits for a message and copies it to buffer: the bytes, and for each tensor its
 * description with a new handle, which the caller must close. If the bytes or the tensors do not
 * fit, nothing is copied: buffer->message is a handle of the message, as from shoal_get, and length
 * and tensor_count say what it needs. This is the fastest way to receive. */
SHOAL_API int shoal_get_into(shoal_handle from, double timeout, shoal_buffer *buffer);

/* A shoal_item is one message of shoal_put_many. */
typedef struct shoal_item {
	const void *bytes;
	size_t length;
	const shoal_view *tensors;
	size_t tensor_count;
} shoal_item;

/* shoal_put_many sends messages in order and stores in *sent how many were sent, also after an
 * error. */
SHOAL_API int shoal_put_many(shoal_handle to, const shoal_item *items, size_t count, double timeout, size_t *sent);

/* shoal_get_many waits for a message, and stores the handles of up to count available ones. *received
 * is at least 1 after SHOAL_OK if count is. */
SHOAL_API int shoal_get_many(shoal_handle from, double timeout, shoal_handle *messages, size_t count, size_t *received);

/* shoal_message_bytes stores the address and length of a message's bytes. */
SHOAL_API int shoal_message_bytes(shoal_handle message, const void **bytes, size_t *length);

/* shoal_message_tensor_count stores the number of a message's tensors. */
SHOAL_API int shoal_message_tensor_count(shoal_handle message, size_t *count);

/* shoal_message_tensor fills *info with tensor i of a message and a new handle of it. The caller must
 * close that handle; it outlives the message. */
SHOAL_API int shoal_message_tensor(shoal_handle message, size_t i, shoal_tensor_info *info);

/* ---- Queues and pipes ------------------------------------------------------------------------- */

/* SHOAL_UNBOUNDED is the capacity of a queue that grows. */
#define SHOAL_UNBOUNDED ((int64_t)-1)

/* shoal_queue_new makes a queue with room for capacity messages, 1 to 2^30, or SHOAL_UNBOUNDED. A
 * queue has both ends. */
SHOAL_API int shoal_queue_new(int64_t capacity, shoal_handle *queue);

/* shoal_joinable_new makes a queue that counts the tasks that are not done. */
SHOAL_API int shoal_joinable_new(int64_t capacity, shoal_handle *queue);

/* shoal_task_done marks one received task of a joinable queue as done. It returns SHOAL_RELEASED if
 * none is outstanding. */
SHOAL_API int shoal_task_done(shoal_handle joinable);

/* shoal_task_join waits until every task that was put is done. It returns SHOAL_PEER_DIED, after all
 * other tasks are done, if a process died before its tasks were done. */
SHOAL_API int shoal_task_join(shoal_handle joinable, double timeout);

/* shoal_pipe_new makes a pipe. If duplex is not 0, both ends have kind SHOAL_KIND_PIPE, and send and
 * receive. Otherwise *a is a SHOAL_KIND_RECEIVER and *b a SHOAL_KIND_SENDER, as Python's
 * Pipe(duplex=False). */
SHOAL_API int shoal_pipe_new(int duplex, shoal_handle *a, shoal_handle *b);

/* Ends of a queue or pipe, for shoal_close_end and shoal_end. */
enum {
	SHOAL_SENDING = 1,
	SHOAL_RECEIVING = 2
};

/* shoal_end stores a handle of only one end of a queue: SHOAL_KIND_SENDER or SHOAL_KIND_RECEIVER. A
 * process that has only the end that it uses lets the others notice its death or its close. */
SHOAL_API int shoal_end(shoal_handle queue, int end, shoal_handle *result);

/* shoal_close_end closes the given ends (SHOAL_SENDING | SHOAL_RECEIVING) of a queue, joinable queue
 * or pipe in this process. When the last sending end of all processes is closed, receivers drain
 * the queue and then get SHOAL_CLOSED. */
SHOAL_API int shoal_close_end(shoal_handle queue, int ends);

/* shoal_finish closes the sending side for all processes: a put returns SHOAL_CLOSED, and a get once
 * the queue is empty. */
SHOAL_API int shoal_finish(shoal_handle queue);

/* shoal_length stores the number of queued messages that can be received here, or that were sent here
 * if the object has only a sending end. */
SHOAL_API int shoal_length(shoal_handle queue, int64_t *length);

/* shoal_capacity stores the number of messages that fit. */
SHOAL_API int shoal_capacity(shoal_handle queue, int64_t *capacity);

/* shoal_poll waits until a get would not wait: a message is queued, or none can follow. */
SHOAL_API int shoal_poll(shoal_handle from, double timeout);

/* ---- Latest ----------------------------------------------------------------------------------- */

/* shoal_latest_new makes a Latest with a first value of version 1. A Latest has one value, which any
 * process may replace while others still use the previous one. */
SHOAL_API int shoal_latest_new(const void *bytes, size_t length, const shoal_view *tensors, size_t tensor_count,
	shoal_handle *latest);

/* shoal_latest_store replaces the value. version is optional. */
SHOAL_API int shoal_latest_store(shoal_handle latest, const void *bytes, size_t length, const shoal_view *tensors,
	size_t tensor_count, double timeout, uint64_t *version);

/* shoal_latest_load stores a handle of the newest value, as a message. version is optional. */
SHOAL_API int shoal_latest_load(shoal_handle latest, shoal_handle *message, uint64_t *version);

/* shoal_latest_version stores the version of the newest value. */
SHOAL_API int shoal_latest_version(shoal_handle latest, uint64_t *version);

/* shoal_latest_wait waits for a value with a version greater than after and loads it. version is
 * optional. With timeout 0 it returns SHOAL_EMPTY if there is none. */
SHOAL_API int shoal_latest_wait(shoal_handle latest, uint64_t after, double timeout, shoal_handle *message,
	uint64_t *version);

/* ---- Names ------------------------------------------------------------------------------------ */

/* shoal_bind binds a name, 1 to 192 bytes of UTF-8, to an object, for all processes of the domain.
 * Kinds: tensor, message, queue, joinable, sender, receiver, pipe, Latest, mutex, rmutex, semaphore,
 * cond, event, barrier, memory. The name holds the object until shoal_unlink. It returns
 * SHOAL_NAME_TAKEN if it is bound. */
SHOAL_API int shoal_bind(const char *name, shoal_handle h, double timeout);

/* shoal_lookup stores a new handle of the object with that name. kind is its SHOAL_KIND, or
 * SHOAL_KIND_NONE for any. It returns SHOAL_NOT_FOUND or SHOAL_TYPE. */
SHOAL_API int shoal_lookup(const char *name, int kind, shoal_handle *h);

/* shoal_unlink removes a name. Handles of the object remain valid. */
SHOAL_API int shoal_unlink(const char *name);

/* shoal_names copies the bound names, sorted and each followed by a 0, to buffer, as many as fit into
 * size bytes, and stores in *needed the bytes of all of them and in *count their number; both are
 * optional. buffer may be NULL if size is 0. */
SHOAL_API int shoal_names(char *buffer, size_t size, size_t *needed, size_t *count);

/* ---- Locks ------------------------------------------------------------------------------------ */

/* shoal_mutex_new makes a lock. Its holder is a process: any thread of it may unlock. */
SHOAL_API int shoal_mutex_new(shoal_handle *mutex);

/* shoal_rmutex_new makes a lock that its holder, a thread, may lock repeatedly. */
SHOAL_API int shoal_rmutex_new(shoal_handle *rmutex);

/* shoal_lock acquires a mutex, an rmutex, or the mutex of a cond. SHOAL_OWNER_DIED means that the
 * caller HOLDS the lock, that the previous holder died (shoal_error_process()), and that the data it
 * guarded may be inconsistent. The caller should repair it and call shoal_mark_consistent before
 * shoal_unlock; otherwise every later lock returns SHOAL_BROKEN. A locked lock is SHOAL_LOCKED with
 * timeout 0, and the message of SHOAL_TIMEOUT and SHOAL_LOCKED names the holder. */
SHOAL_API int shoal_lock(shoal_handle lock, double timeout);

/* shoal_unlock releases a lock once. It returns SHOAL_NOT_OWNER if the process (rmutex: the thread)
 * does not hold it. */
SHOAL_API int shoal_unlock(shoal_handle lock);

/* shoal_mark_consistent declares that the data of a lock was repaired after SHOAL_OWNER_DIED. */
SHOAL_API int shoal_mark_consistent(shoal_handle lock);

/* shoal_lock_holder stores the id of the process that holds a lock, or 0. */
SHOAL_API int shoal_lock_holder(shoal_handle lock, int *process);

/* shoal_semaphore_new makes a semaphore with permits, 0 to 1048575. If bounded is not 0, a release
 * beyond that number returns SHOAL_RELEASED. The permits of a process that dies are returned. */
SHOAL_API int shoal_semaphore_new(int permits, int bounded, shoal_handle *semaphore);

/* shoal_acquire takes a permit. */
SHOAL_API int shoal_acquire(shoal_handle semaphore, double timeout);

/* shoal_release returns a permit; any process may. */
SHOAL_API int shoal_release(shoal_handle semaphore);

/* shoal_permits stores the number of available permits. */
SHOAL_API int shoal_permits(shoal_handle semaphore, int *permits);

/* shoal_cond_new makes a condition with its own mutex, or with the given mutex if it is not 0. An
 * rmutex is not possible: a waiter must release the lock by one unlock. */
SHOAL_API int shoal_cond_new(shoal_handle mutex, shoal_handle *cond);

/* shoal_cond_wait releases the mutex, which the caller must hold, waits for a notification, and
 * acquires the mutex again. The caller holds the mutex after SHOAL_OK, SHOAL_TIMEOUT,
 * SHOAL_INTERRUPTED and SHOAL_OWNER_DIED, and does not after SHOAL_CLOSED, SHOAL_BROKEN and
 * SHOAL_LOCKED. It may return SHOAL_OK without a notification. */
SHOAL_API int shoal_cond_wait(shoal_handle cond, double timeout);

/* shoal_cond_notify wakes up to n waiters; a negative n wakes all. The caller should hold the mutex. */
SHOAL_API int shoal_cond_notify(shoal_handle cond, int n);

/* shoal_event_new makes a flag that is not set. */
SHOAL_API int shoal_event_new(shoal_handle *event);

/* shoal_event_set sets the flag and wakes all waiters. */
SHOAL_API int shoal_event_set(shoal_handle event);

/* shoal_event_clear clears the flag. */
SHOAL_API int shoal_event_clear(shoal_handle event);

/* shoal_event_is_set stores 1 or 0. */
SHOAL_API int shoal_event_is_set(shoal_handle event, int *set);

/* shoal_event_wait waits until the flag is set. With timeout 0 it returns SHOAL_TIMEOUT if it is not. */
SHOAL_API int shoal_event_wait(shoal_handle event, double timeout);

/* shoal_barrier_new makes a barrier for a number of parties, 1 to 1048575. Every process with a
 * handle is a member: its death breaks the barrier. */
SHOAL_API int shoal_barrier_new(int parties, shoal_handle *barrier);

/* shoal_barrier_wait waits for the other parties. index, optional, is the number of parties that
 * arrived earlier, from 0; exactly one caller of a round gets 0. A timeout, a signal or a canceller
 * during the wait breaks the barrier. It returns SHOAL_BROKEN if the barrier is broken, also by its
 * own timeout (SHOAL_TIMEOUT) or interruption (SHOAL_INTERRUPTED). */
SHOAL_API int shoal_barrier_wait(shoal_handle barrier, double timeout, int *index);

/* shoal_barrier_reset restores the initial state; waiters get SHOAL_BROKEN. */
SHOAL_API int shoal_barrier_reset(shoal_handle barrier);

/* shoal_barrier_abort breaks the barrier. */
SHOAL_API int shoal_barrier_abort(shoal_handle barrier);

/* shoal_barrier_state stores the number of parties, of waiting parties, and whether the barrier is
 * broken (1 or 0). Each is optional. */
SHOAL_API int shoal_barrier_state(shoal_handle barrier, int *parties, int *waiting, int *broken);

/* ---- Plain memory ----------------------------------------------------------------------------- */

/* shoal_memory_new makes a block of size zero bytes. data is optional. The name, if not NULL, is
 * bound to it. */
SHOAL_API int shoal_memory_new(const char *name, size_t size, shoal_handle *memory, void **data);

/* shoal_memory_data stores the address and size of a block. Each is optional. */
SHOAL_API int shoal_memory_data(shoal_handle memory, void **data, size_t *size);

/* ---- Waiting ---------------------------------------------------------------------------------- */

/* shoal_wait_any waits until at least one of count objects is ready, and sets ready[i] to 1 for each
 * that is and to 0 for the others. An object is ready if a get would not wait (queue, joinable,
 * receiver, pipe), or if the event is set. A closed object is ready. */
SHOAL_API int shoal_wait_any(const shoal_handle *objects, size_t count, double timeout, uint8_t *ready);

/* shoal_ready_fd stores a descriptor of the object that poll(), epoll or asyncio can wait for: it is
 * readable while the object is ready, in the meaning of shoal_wait_any; for a Latest, while its
 * version is greater than after (0 for other kinds). Each call checks the object and arms the
 * descriptor, so that a program must call it again, before it waits, after a descriptor was readable
 * and the object was not ready any more. The descriptor belongs to the handle: the caller must
 * neither read nor close it. It is always the same one for a handle. */
SHOAL_API int shoal_ready_fd(shoal_handle h, uint64_t after, int *fd);

/* shoal_canceller_new makes a canceller, which ends waits of other threads. */
SHOAL_API int shoal_canceller_new(shoal_handle *canceller);

/* shoal_cancel fires a canceller: each wait that uses it returns SHOAL_INTERRUPTED, and further waits
 * return it at once, until shoal_canceller_reset. It is async-signal-safe. */
SHOAL_API int shoal_cancel(shoal_handle canceller);

/* shoal_canceller_reset makes a canceller usable again. */
SHOAL_API int shoal_canceller_reset(shoal_handle canceller);

/* shoal_use_canceller makes the waits of the calling thread use a canceller, or none if it is 0. */
SHOAL_API int shoal_use_canceller(shoal_handle canceller);

/* shoal_set_spin sets how long the waits of this process poll in addition to the default before they
 * sleep, in seconds: 0 to 0.01, or negative for the default, 0. By default a wait polls for about 20
 * microseconds if polling has paid off lately and a CPU is free. */
SHOAL_API int shoal_set_spin(double seconds);

/* ---- Handover --------------------------------------------------------------------------------- */

/* SHOAL_MAX_TOKEN is the largest length of a token. */
#define SHOAL_MAX_TOKEN 256

/* shoal_export writes a token to buffer, of at least SHOAL_MAX_TOKEN bytes, and stores its length. A
 * process of this user, not necessarily a child, gets a handle of the same object by shoal_import.
 * The token is a secret. It can be imported `uses` times (1 to 65535), until lifetime seconds have
 * passed (negative: an hour) or this process has ended; until then it holds the object, even if all
 * handles are closed. At most 65536 tokens are outstanding: SHOAL_TOO_LARGE. All kinds that
 * shoal_bind accepts can be exported. */
SHOAL_API int shoal_export(shoal_handle h, int uses, double lifetime, void *buffer, size_t size, size_t *length);

/* shoal_import stores a handle of the object of a token. If this process has no domain yet, it joins
 * the exporter's. Errors: SHOAL_NOT_FOUND (the exporter has ended, or the token was used or has
 * expired), SHOAL_KEY, SHOAL_VERSION, SHOAL_PERMISSION, SHOAL_DOMAIN, SHOAL_TIMEOUT, SHOAL_ARGUMENT
 * (no token). */
SHOAL_API int shoal_import(const void *token, size_t length, double timeout, shoal_handle *h);

/* ---- Fork ------------------------------------------------------------------------------------- */

/* After fork(), the child's copy of the library is dead: SHOAL_FORKED. The child may load a second
 * copy of libshoal.so (under another file name or from a memfd, with RTLD_LOCAL) and import the
 * parent's objects into it with a ticket that the parent made before the fork:
 *
 *	parent: shoal_fork_prepare(&ticket); pid = fork(); shoal_fork_parent(&ticket);
 *	child:  new = dlopen(copy); new.shoal_fork_import(&ticket, old_handle, timeout, &handle);
 *	        ...; new.shoal_fork_done(&ticket);
 *
 * The parent keeps the objects that were open at the fork, even if it closes them, until the child
 * calls shoal_fork_done, executes another program, or ends. If the parent is killed before, objects
 * that were not imported are lost to the child. */

/* A shoal_fork_ticket is plain memory, so that a child can read it. */
typedef struct shoal_fork_ticket {
	uint32_t length;     /* of token; 0 if the parent had no domain and no object */
	int32_t lifeline;    /* a descriptor that the child inherits, close-on-exec; or -1 */
	int32_t process;     /* id of the parent */
	int32_t reserved;
	uint64_t fork;       /* number of the fork in the parent */
	uint8_t token[SHOAL_MAX_TOKEN];
} shoal_fork_ticket;

/* shoal_fork_prepare fills *ticket. It must be called before fork(), in the parent. */
SHOAL_API int shoal_fork_prepare(shoal_fork_ticket *ticket);

/* shoal_fork_parent must be called in the parent after fork(), also if that failed. It closes the
 * parent's copy of the lifeline. */
SHOAL_API int shoal_fork_parent(shoal_fork_ticket *ticket);

/* shoal_fork_import stores a handle of the object that had the handle `old` in the parent at the
 * fork. It must be called in the child, on a library that was loaded after the fork. The errors are
 * those of shoal_import. Memory of a tensor at its address in the parent stays valid in the child
 * while the child has a handle of it. */
SHOAL_API int shoal_fork_import(const shoal_fork_ticket *ticket, shoal_handle old, double timeout, shoal_handle *h);

/* shoal_fork_done closes the child's lifeline: the parent may release the objects. */
SHOAL_API int shoal_fork_done(shoal_fork_ticket *ticket);

/* shoal_forked returns 1 in a child that was forked after the library was loaded, otherwise 0. */
SHOAL_API int shoal_forked(void);

#ifdef __cplusplus
}
#endif

#endif /* SHOAL_H */
