/* The type Handle: an object of the library. */

typedef struct {
	PyObject_HEAD
	Reference reference;
} Handle;

static PyTypeObject *handle_type;

/* handle_new returns a Handle that owns h. It closes h if it fails. */
static PyObject *handle_new(shoal_handle h) {
	allocfunc allocate = (allocfunc)PyType_GetSlot(handle_type, Py_tp_alloc);
	Handle *o = (Handle *)allocate(handle_type, 0);
	if (!o) {
		lib.close(h);
		return NULL;
	}
	reference_add(&o->reference, h);
	return (PyObject *)o;
}

static void handle_dealloc(PyObject *self) {
	PyTypeObject *type = Py_TYPE(self);
	freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
	reference_close(&((Handle *)self)->reference);
	release(self);
	Py_DECREF(type);
}

/* handle_ready makes sure that a handle belongs to the library of this process. */
static int handle_ready(Handle *h) {
	if (loaded != epoch && ready() < 0)
		return -1;
	if (h->reference.handle)
		return 0;
	if (h->reference.next)
		PyErr_SetString(PyExc_RuntimeError, "the object was lost with the process that this one was forked from: "
			"keep the parent alive until the child has used its objects");
	else
		PyErr_SetString(PyExc_ValueError, "the object is closed");
	return -1;
}

static int handle_check(PyObject *o) {
	if (Py_TYPE(o) != handle_type) {
		PyErr_Format(PyExc_TypeError, "got %R, want a Handle", o);
		return -1;
	}
	return handle_ready((Handle *)o);
}

#define SELF(self) (((Handle *)(self))->reference.handle)

/* ---- Messages ---- */

/* put_fail sets the exception for the result of a put. */
static PyObject *put_fail(int code) {
	if (code == INTERRUPTED_BY_EXCEPTION)
		return NULL;
	if (code == SHOAL_FULL || code == SHOAL_TIMEOUT) {
		PyErr_SetNone(hooks.full);
		return NULL;
	}
	return fail(code);
}

static PyObject *get_fail(int code) {
	if (code == INTERRUPTED_BY_EXCEPTION)
		return NULL;
	if (code == SHOAL_EMPTY || code == SHOAL_TIMEOUT) {
		PyErr_SetNone(hooks.empty);
		return NULL;
	}
	return fail(code);
}

static PyObject *put_value(PyObject *self, PyObject *value, double timeout) {
	Encoder e;
	const void *bytes;
	size_t length;
	PyObject *owner, *result = NULL;
	int code;
	if (handle_ready((Handle *)self) < 0)
		return NULL;
	encoder_init(&e);
	if (encode_any(&e, value, &bytes, &length, &owner) == 0) {
		WAIT(code, timeout, lib.put(SELF(self), bytes, length, e.views, e.count, left));
		if (code) {
			put_fail(code);
		} else {
			Py_INCREF(Py_None);
			result = Py_None;
		}
		Py_XDECREF(owner);
	}
	encoder_free(&e);
	return result;
}

/* put(value) waits while the queue is full. */
static PyObject *handle_put(PyObject *self, PyObject *value) { return put_value(self, value, -1); }

/* put_within(value, timeout) raises queue.Full. */
static PyObject *handle_put_within(PyObject *self, PyObject *args) {
	PyObject *value, *t;
	double timeout;
	if (!PyArg_ParseTuple(args, "OO", &value, &t) || timeout_of(t, &timeout) < 0)
		return NULL;
	return put_value(self, value, timeout);
}

/* put_bytes(bytes, timeout) sends bytes that are no pickle. */
static PyObject *handle_put_bytes(PyObject *self, PyObject *args) {
	const char *bytes;
	Py_ssize_t n;
	PyObject *t;
	double timeout;
	int code;
	if (!PyArg_ParseTuple(args, "y#O", &bytes, &n, &t) || timeout_of(t, &timeout) < 0 || handle_ready((Handle *)self) < 0)
		return NULL;
	WAIT(code, timeout, lib.put(SELF(self), bytes, (size_t)n, NULL, 0, left));
	if (code)
		return put_fail(code);
	Py_RETURN_NONE;
}

enum { INFOS = 4 };

/* message_load decodes a message and closes its handle. */
static PyObject *message_load(shoal_handle message, int raw) {
	Loader l = {0};
	const void *bytes;
	size_t length;
	PyObject *value = NULL;
	int code;
	l.message = message;
	code = lib.message_bytes(message, &bytes, &length);
	if (code == SHOAL_OK)
		code = lib.message_tensor_count(message, &l.count);
	if (code)
		fail(code);
	else if (raw)
		value = PyBytes_FromStringAndSize(bytes, (Py_ssize_t)length);
	else
		value = decode_any(&l, bytes, length);
	loader_free(&l);
	return value;
}

static PyObject *message_value(shoal_handle message) { return message_load(message, 0); }

static PyObject *get_value(PyObject *self, double timeout, int raw) {
	uint8_t small[SMALL];
	shoal_tensor_info infos[INFOS];
	shoal_buffer b;
	Loader l = {0};
	PyObject *value;
	int code;
	if (handle_ready((Handle *)self) < 0)
		return NULL;
	b.bytes = small;
	b.capacity = sizeof small;
	b.tensors = infos;
	b.tensor_capacity = INFOS;
	b.message = 0;
	WAIT(code, timeout, lib.get_into(SELF(self), left, &b));
	if (code)
		return get_fail(code);
	if (b.message)
		return message_load(b.message, raw);
	l.infos = infos;
	l.count = b.tensor_count;
	value = raw ? PyBytes_FromStringAndSize((char *)small, (Py_ssize_t)b.length) : decode_any(&l, small, b.length);
	loader_free(&l);
	return value;
}

/* get() waits for a value. */
static PyObject *handle_get(PyObject *self, PyObject *args) {
	(void)args;
	return get_value(self, -1, 0);
}

/* get_within(timeout) raises queue.Empty. */
static PyObject *handle_get_within(PyObject *self, PyObject *t) {
	double timeout;
	return timeout_of(t, &timeout) < 0 ? NULL : get_value(self, timeout, 0);
}

static PyObject *handle_get_bytes(PyObject *self, PyObject *t) {
	double timeout;
	return timeout_of(t, &timeout) < 0 ? NULL : get_value(self, timeout, 1);
}

enum { MANY = 256 };

/* get_many(n, timeout) returns a list of 1 to n values. */
static PyObject *handle_get_many(PyObject *self, PyObject *args) {
	shoal_handle messages[MANY];
	size_t received = 0, i;
	Py_ssize_t n;
	PyObject *list, *t;
	double timeout;
	int code;
	if (!PyArg_ParseTuple(args, "nO", &n, &t) || timeout_of(t, &timeout) < 0 || handle_ready((Handle *)self) < 0)
		return NULL;
	if (n < 1)
		return PyErr_Format(PyExc_ValueError, "get_many of %zd values: want at least 1", n);
	if (n > MANY)
		n = MANY;
	WAIT(code, timeout, lib.get_many(SELF(self), left, messages, (size_t)n, &received));
	if (code)
		return get_fail(code);
	list = PyList_New(0);
	for (i = 0; i < received; i++) {
		PyObject *value = list ? message_load(messages[i], 0) : NULL;
		if (!list)
			lib.close(messages[i]);
		else if (!value || PyList_Append(list, value) < 0)
			Py_CLEAR(list);
		Py_XDECREF(value);
	}
	return list;
}

static PyObject *handle_store(PyObject *self, PyObject *args) {
	Encoder e;
	const void *bytes;
	size_t length;
	uint64_t version;
	PyObject *value, *t, *owner, *result = NULL;
	double timeout;
	int code;
	if (!PyArg_ParseTuple(args, "OO", &value, &t) || timeout_of(t, &timeout) < 0 || handle_ready((Handle *)self) < 0)
		return NULL;
	encoder_init(&e);
	if (encode_any(&e, value, &bytes, &length, &owner) == 0) {
		WAIT(code, timeout, lib.latest_store(SELF(self), bytes, length, e.views, e.count, left, &version));
		result = code == INTERRUPTED_BY_EXCEPTION ? NULL : code ? fail(code) : PyLong_FromUnsignedLongLong(version);
		Py_XDECREF(owner);
	}
	encoder_free(&e);
	return result;
}

/* versioned returns (value, version) of a message. */
static PyObject *versioned(shoal_handle message, uint64_t v) {
	PyObject *value = message_load(message, 0);
	return value ? Py_BuildValue("NK", value, (unsigned long long)v) : NULL;
}

static PyObject *handle_load(PyObject *self, PyObject *args) {
	shoal_handle message;
	uint64_t v;
	int code;
	(void)args;
	if (handle_ready((Handle *)self) < 0)
		return NULL;
	code = lib.latest_load(SELF(self), &message, &v);
	return code ? fail(code) : versioned(message, v);
}

/* wait_newer(after, timeout) raises queue.Empty. */
static PyObject *handle_wait_newer(PyObject *self, PyObject *args) {
	unsigned long long after;
	shoal_handle message;
	uint64_t v;
	PyObject *t;
	double timeout;
	int code;
	if (!PyArg_ParseTuple(args, "KO", &after, &t) || timeout_of(t, &timeout) < 0 || handle_ready((Handle *)self) < 0)
		return NULL;
	WAIT(code, timeout, lib.latest_wait(SELF(self), after, left, &message, &v));
	return code ? get_fail(code) : versioned(message, v);
}

static PyObject *handle_version(PyObject *self, PyObject *args) {
	uint64_t v;
	int code;
	(void)args;
	if (handle_ready((Handle *)self) < 0)
		return NULL;
	code = lib.latest_version(SELF(self), &v);
	return code ? fail(code) : PyLong_FromUnsignedLongLong(v);
}

/* ---- Methods that call one function ---- */

/* WAITING defines a method with a timeout that returns the code. */
#define WAITING(method, function) \
	static PyObject *method(PyObject *self, PyObject *t) { \
		double timeout; \
		int code; \
		if (timeout_of(t, &timeout) < 0 || handle_ready((Handle *)self) < 0) \
			return NULL; \
		WAIT(code, timeout, lib.function(SELF(self), left)); \
		return code == INTERRUPTED_BY_EXCEPTION ? NULL : PyLong_FromLong(code); \
	}

/* CALL defines a method without arguments that returns the code. */
#define CALL(method, function) \
	static PyObject *method(PyObject *self, PyObject *args) { \
		(void)args; \
		return handle_ready((Handle *)self) < 0 ? NULL : PyLong_FromLong(lib.function(SELF(self))); \
	}

/* READ defines a method that returns a number. */
#define READ(method, function, type) \
	static PyObject *method(PyObject *self, PyObject *args) { \
		type v; \
		int code; \
		(void)args; \
		if (handle_ready((Handle *)self) < 0) \
			return NULL; \
		code = lib.function(SELF(self), &v); \
		return code ? fail(code) : PyLong_FromLongLong((long long)v); \
	}

WAITING(handle_poll, poll)
WAITING(handle_task_join, task_join)
WAITING(handle_lock, lock)
WAITING(handle_acquire, acquire)
WAITING(handle_event_wait, event_wait)
CALL(handle_task_done, task_done)
CALL(handle_finish, finish)
CALL(handle_unlock, unlock)
CALL(handle_mark_consistent, mark_consistent)
CALL(handle_release, release)
CALL(handle_set, event_set)
CALL(handle_clear, event_clear)
CALL(handle_reset, barrier_reset)
CALL(handle_abort, barrier_abort)
READ(handle_length, length, int64_t)
READ(handle_capacity, capacity, int64_t)
READ(handle_holder, lock_holder, int)
READ(handle_permits, permits, int)
READ(handle_is_set, event_is_set, int)

/* cond_wait(timeout) returns the code. */
static PyObject *handle_cond_wait(PyObject *self, PyObject *t) {
	double timeout;
	int code;
	if (timeout_of(t, &timeout) < 0 || handle_ready((Handle *)self) < 0)
		return NULL;
	WAIT(code, timeout, lib.cond_wait(SELF(self), left));
	return code == INTERRUPTED_BY_EXCEPTION ? NULL : PyLong_FromLong(code);
}

static PyObject *handle_notify(PyObject *self, PyObject *args) {
	int n;
	if (!PyArg_ParseTuple(args, "i", &n) || handle_ready((Handle *)self) < 0)
		return NULL;
	return PyLong_FromLong(lib.cond_notify(SELF(self), n));
}

/* block_signals blocks the signals of this thread that seldom end a program, and stores the mask of
 * before. Their handlers then run on other threads. */
static void block_signals(sigset_t *before) {
	static const int open[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP,
		SIGABRT, SIGSYS};
	sigset_t all;
	size_t i;
	sigfillset(&all);
	for (i = 0; i < sizeof open / sizeof *open; i++)
		sigdelset(&all, open[i]);
	pthread_sigmask(SIG_BLOCK, &all, before);
}

/* barrier_wait(timeout) returns (code, index). A barrier breaks when the wait of one party ends early,
 * so a signal such as SIGCHLD must not end it. */
static PyObject *handle_barrier_wait(PyObject *self, PyObject *t) {
	double timeout;
	int code, index = -1;
	sigset_t before;
	if (timeout_of(t, &timeout) < 0 || handle_ready((Handle *)self) < 0 || PyErr_CheckSignals() < 0)
		return NULL;
	Py_BEGIN_ALLOW_THREADS
	block_signals(&before);
	code = lib.barrier_wait(SELF(self), timeout, &index);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	Py_END_ALLOW_THREADS
	if (code == SHOAL_INTERRUPTED && PyErr_CheckSignals() < 0)
		return NULL;
	return Py_BuildValue("ii", code, index);
}

static PyObject *handle_barrier_state(PyObject *self, PyObject *args) {
	int parties, waiting, broken, code;
	(void)args;
	if (handle_ready((Handle *)self) < 0)
		return NULL;
	code = lib.barrier_state(SELF(self), &parties, &waiting, &broken);
	return code ? fail(code) : Py_BuildValue("iii", parties, waiting, broken);
}

static PyObject *handle_memory(PyObject *self, PyObject *args) {
	void *data;
	size_t size;
	int code;
	(void)args;
	if (handle_ready((Handle *)self) < 0)
		return NULL;
	code = lib.memory_data(SELF(self), &data, &size);
	return code ? fail(code) : Py_BuildValue("Kn", (unsigned long long)(uintptr_t)data, (Py_ssize_t)size);
}

static PyObject *handle_close_end(PyObject *self, PyObject *args) {
	int ends;
	if (!PyArg_ParseTuple(args, "i", &ends) || handle_ready((Handle *)self) < 0)
		return NULL;
	return done(lib.close_end(SELF(self), ends));
}

static PyObject *handle_end(PyObject *self, PyObject *args) {
	int which, code;
	shoal_handle h;
	if (!PyArg_ParseTuple(args, "i", &which) || handle_ready((Handle *)self) < 0)
		return NULL;
	code = lib.end(SELF(self), which, &h);
	return code ? fail(code) : handle_new(h);
}

static PyObject *handle_ready_fd(PyObject *self, PyObject *args) {
	unsigned long long after = 0;
	int fd, code;
	if (!PyArg_ParseTuple(args, "|K", &after) || handle_ready((Handle *)self) < 0)
		return NULL;
	code = lib.ready_fd(SELF(self), after, &fd);
	return code ? fail(code) : PyLong_FromLong(fd);
}

static PyObject *export_handle(shoal_handle h, int uses, double lifetime) {
	char token[SHOAL_MAX_TOKEN];
	size_t n;
	int code = lib.export(h, uses, lifetime, token, sizeof token, &n);
	return code ? fail(code) : PyBytes_FromStringAndSize(token, (Py_ssize_t)n);
}

static PyObject *handle_export(PyObject *self, PyObject *args) {
	int uses;
	double lifetime;
	if (!PyArg_ParseTuple(args, "id", &uses, &lifetime) || handle_ready((Handle *)self) < 0)
		return NULL;
	return export_handle(SELF(self), uses, lifetime);
}

static PyObject *handle_bind(PyObject *self, PyObject *args) {
	const char *name;
	PyObject *t;
	double timeout;
	int code;
	if (!PyArg_ParseTuple(args, "sO", &name, &t) || timeout_of(t, &timeout) < 0 || handle_ready((Handle *)self) < 0)
		return NULL;
	WAIT(code, timeout, lib.bind(name, SELF(self), left));
	return code == INTERRUPTED_BY_EXCEPTION ? NULL : done(code);
}

static PyObject *handle_close(PyObject *self, PyObject *args) {
	(void)args;
	reference_close(&((Handle *)self)->reference);
	Py_RETURN_NONE;
}

static PyObject *handle_get_kind(PyObject *self, void *closure) {
	(void)closure;
	return handle_ready((Handle *)self) < 0 ? NULL : PyLong_FromLong(lib.kind(SELF(self)));
}

static PyObject *handle_get_closed(PyObject *self, void *closure) {
	(void)closure;
	return PyBool_FromLong(((Handle *)self)->reference.next == NULL);
}

static PyMethodDef handle_methods[] = {
	{"put", handle_put, METH_O, "put(value)"},
	{"put_within", handle_put_within, METH_VARARGS, "put_within(value, timeout)"},
	{"put_bytes", handle_put_bytes, METH_VARARGS, "put_bytes(bytes, timeout)"},
	{"get", handle_get, METH_NOARGS, "get()"},
	{"get_within", handle_get_within, METH_O, "get_within(timeout)"},
	{"get_bytes", handle_get_bytes, METH_O, "get_bytes(timeout)"},
	{"get_many", handle_get_many, METH_VARARGS, "get_many(n, timeout)"},
	{"store", handle_store, METH_VARARGS, "store(value, timeout): the version."},
	{"load", handle_load, METH_NOARGS, "load(): the value and its version."},
	{"wait_newer", handle_wait_newer, METH_VARARGS, "wait_newer(after, timeout): the value and its version."},
	{"version", handle_version, METH_NOARGS, "version()"},
	{"poll", handle_poll, METH_O, "poll(timeout): a code."},
	{"task_done", handle_task_done, METH_NOARGS, "task_done(): a code."},
	{"task_join", handle_task_join, METH_O, "task_join(timeout): a code."},
	{"finish", handle_finish, METH_NOARGS, "finish(): a code."},
	{"length", handle_length, METH_NOARGS, "length()"},
	{"capacity", handle_capacity, METH_NOARGS, "capacity()"},
	{"close_end", handle_close_end, METH_VARARGS, "close_end(ends)"},
	{"end", handle_end, METH_VARARGS, "end(which): a handle."},
	{"lock", handle_lock, METH_O, "lock(timeout): a code."},
	{"unlock", handle_unlock, METH_NOARGS, "unlock(): a code."},
	{"mark_consistent", handle_mark_consistent, METH_NOARGS, "mark_consistent(): a code."},
	{"holder", handle_holder, METH_NOARGS, "holder(): a process id or 0."},
	{"acquire", handle_acquire, METH_O, "acquire(timeout): a code."},
	{"release", handle_release, METH_NOARGS, "release(): a code."},
	{"permits", handle_permits, METH_NOARGS, "permits()"},
	{"cond_wait", handle_cond_wait, METH_O, "cond_wait(timeout): a code."},
	{"notify", handle_notify, METH_VARARGS, "notify(n): a code."},
	{"set", handle_set, METH_NOARGS, "set(): a code."},
	{"clear", handle_clear, METH_NOARGS, "clear(): a code."},
	{"is_set", handle_is_set, METH_NOARGS, "is_set(): 1 or 0."},
	{"event_wait", handle_event_wait, METH_O, "event_wait(timeout): a code."},
	{"barrier_wait", handle_barrier_wait, METH_O, "barrier_wait(timeout): a code and an index."},
	{"barrier_state", handle_barrier_state, METH_NOARGS, "barrier_state(): parties, waiting, broken."},
	{"reset", handle_reset, METH_NOARGS, "reset(): a code."},
	{"abort", handle_abort, METH_NOARGS, "abort(): a code."},
	{"memory", handle_memory, METH_NOARGS, "memory(): address and size."},
	{"ready_fd", handle_ready_fd, METH_VARARGS, "ready_fd(after): a descriptor."},
	{"export", handle_export, METH_VARARGS, "export(uses, lifetime): a token."},
	{"bind", handle_bind, METH_VARARGS, "bind(name, timeout)"},
	{"close", handle_close, METH_NOARGS, "close(): idempotent."},
	{NULL, NULL, 0, NULL},
};

static PyGetSetDef handle_getset[] = {
	{"kind", handle_get_kind, NULL, "The kind of the object.", NULL},
	{"closed", handle_get_closed, NULL, "Whether close was called.", NULL},
	{0},
};

static PyType_Slot handle_slots[] = {
	{Py_tp_dealloc, handle_dealloc},
	{Py_tp_methods, handle_methods},
	{Py_tp_getset, handle_getset},
	{0, NULL},
};

static PyType_Spec handle_spec = {"shoal._native.Handle", sizeof(Handle), 0, Py_TPFLAGS_DEFAULT, handle_slots};
