/* The functions of libshoal, which is loaded at run time.
 *
 * This module does not link to the library, because a forked child must load a second copy of it: Go's
 * runtime does not survive fork. lib holds the functions of the copy that this process uses.
 */

#define FUNCTIONS(X) \
	X(abi) X(version) X(code_name) X(error_message) X(error_process) X(close) X(kind) X(create) X(listen) X(join) \
	X(joined) X(leave) X(set_process_name) X(get_stats) X(tensor_empty) X(tensor_zeros) X(tensor_wrap) \
	X(tensor_describe) X(contains) X(put) X(get) X(get_into) X(get_many) X(message_bytes) X(message_tensor_count) \
	X(message_tensor) 	X(queue_new) X(joinable_new) X(task_done) X(task_join) X(pipe_new) X(end) X(close_end) X(finish) X(length) \
	X(capacity) X(poll) X(latest_new) X(latest_store) X(latest_load) X(latest_version) X(latest_wait) X(bind) \
	X(lookup) X(unlink) X(names) X(mutex_new) X(lock) X(unlock) X(mark_consistent) X(lock_holder) X(semaphore_new) \
	X(acquire) X(release) X(permits) X(cond_new) X(cond_wait) X(cond_notify) X(event_new) X(event_set) X(event_clear) \
	X(event_is_set) X(event_wait) X(barrier_new) X(barrier_wait) X(barrier_reset) X(barrier_abort) X(barrier_state) \
	X(memory_new) X(memory_data) X(wait_any) X(ready_fd) X(export) X(import) X(fork_prepare) X(fork_parent) \
	X(fork_import) X(fork_done) X(set_spin)

typedef struct {
#define DECLARE(name) __typeof__(shoal_##name) *name;
	FUNCTIONS(DECLARE)
#undef DECLARE
} Library;

static Library lib;

/* epoch counts the forks that led to this process, and loaded is the epoch of lib, or -1. A handle of
 * an earlier epoch belongs to the parent's copy of the library. */
static int epoch = 0, loaded = -1;

/* hooks are functions and types of the Python side, which register sets. */
static struct {
	PyObject *reload;        /* reload() loads the library, and imports the objects of the parent */
	PyObject *error;         /* error(code, text, process) returns an exception */
	PyObject *empty, *full;  /* queue.Empty, queue.Full */
	PyObject *dumps, *loads; /* dumps(o, persistent_id), loads(bytes, persistent_load) */
	PyObject *refuse;        /* refuse(tensor) raises the error for a tensor that cannot be shared */
	PyObject *need;          /* need(kind) imports torch or numpy, and registers it */
	PyTypeObject *tensor, *array;
	PyObject *to_dlpack, *from_dlpack, *asarray;
} hooks;

/* load_library fills lib from a file. It returns 0, or -1 with an exception. */
static int load_library(const char *path) {
	Library l;
	void *at = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!at) {
		PyErr_Format(PyExc_ImportError, "cannot load %s: %s", path, dlerror());
		return -1;
	}
#define RESOLVE(name) \
	*(void **)&l.name = dlsym(at, "shoal_" #name); \
	if (!l.name) { \
		PyErr_Format(PyExc_ImportError, "%s has no function shoal_" #name ": install shoal again", path); \
		return -1; \
	}
	FUNCTIONS(RESOLVE)
#undef RESOLVE
	if (l.abi() != SHOAL_ABI) {
		PyErr_Format(PyExc_ImportError, "%s has ABI %d, want %d: install shoal again", path, l.abi(), SHOAL_ABI);
		return -1;
	}
	lib = l;
	loaded = epoch;
	return 0;
}

/* ready makes sure that lib works in this process. It returns 0, or -1 with an exception. */
static int ready(void) {
	PyObject *r;
	if (loaded == epoch)
		return 0;
	if (!hooks.reload) {
		PyErr_SetString(PyExc_RuntimeError, "shoal._native: import shoal.multiprocessing first");
		return -1;
	}
	r = PyObject_CallFunctionObjArgs(hooks.reload, NULL);
	Py_XDECREF(r);
	return r ? 0 : -1;
}

/* fail sets the exception for a code, from the text of the last error of this thread. */
static PyObject *fail(int code) {
	char text[2048];
	size_t n = lib.error_message(text, sizeof text);
	PyObject *message, *e;
	if (n >= sizeof text)
		n = sizeof text - 1;
	message = PyUnicode_DecodeUTF8(text, (Py_ssize_t)n, "replace");
	e = message ? PyObject_CallFunction(hooks.error, "iOi", code, message, lib.error_process()) : NULL;
	Py_XDECREF(message);
	if (e) {
		PyErr_SetObject((PyObject *)Py_TYPE(e), e);
		Py_DECREF(e);
	}
	return NULL;
}

/* done returns None, or sets the exception for a code. */
static PyObject *done(int code) {
	if (code)
		return fail(code);
	Py_INCREF(Py_None);
	return Py_None;
}

/* ---- Waiting ---- */

/* The library ends a wait with SHOAL_INTERRUPTED when a signal handler has run on its thread, and ten
 * times a second, because a signal may arrive just before a wait. */

static double now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* wait_again reports whether an interrupted wait goes on: 1, 0, or -1 with an exception of a signal
 * handler. left becomes the time until deadline. */
static int wait_again(int code, double deadline, double *left) {
	if (code != SHOAL_INTERRUPTED)
		return 0;
	if (PyErr_CheckSignals() < 0)
		return -1;
	if (*left > 0) {
		*left = deadline - now();
		if (*left < 0)
			*left = 0;
	}
	return 1;
}

/* WAIT calls the library without the GIL until it has a result, and stores it in code. The call has
 * the variable left as its timeout. */
#define WAIT(code, timeout, call) \
	do { \
		double left = timeout, deadline_ = left > 0 ? now() + left : 0; \
		int again_; \
		do { \
			Py_BEGIN_ALLOW_THREADS \
			code = call; \
			Py_END_ALLOW_THREADS \
			again_ = wait_again(code, deadline_, &left); \
			if (again_ < 0) \
				code = INTERRUPTED_BY_EXCEPTION; \
		} while (again_ > 0); \
	} while (0)

enum { INTERRUPTED_BY_EXCEPTION = -1 };

/* timeout_of converts None or a number of seconds. It returns 0, or -1 with an exception. */
static int timeout_of(PyObject *o, double *timeout) {
	if (o == Py_None) {
		*timeout = -1;
		return 0;
	}
	*timeout = PyFloat_AsDouble(o);
	if (*timeout == -1 && PyErr_Occurred())
		return -1;
	if (*timeout != *timeout) {
		PyErr_SetString(PyExc_ValueError, "timeout is NaN: want seconds or None");
		return -1;
	}
	if (*timeout < 0)
		*timeout = 0;
	return 0;
}
