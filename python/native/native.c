/* shoal._native: libshoal for Python.
 *
 * The module is built against the limited API of Python 3.9, and loads libshoal.so at run time. It has
 * the type Handle, an object of the library, and functions that make handles. Values become pickles in
 * codec.h, and tensors in tensors.h. The classes of shoal.multiprocessing have the names and
 * exceptions of multiprocessing; they are written in Python over this module.
 */
#ifndef Py_LIMITED_API
#define Py_LIMITED_API 0x03090000
#endif
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "../../libshoal/shoal.h"

/* as_utf8 is PyUnicode_AsUTF8AndSize, which all versions of CPython have, but the limited API only
 * since 3.10: https://docs.python.org/3/c-api/unicode.html#c.PyUnicode_AsUTF8AndSize */
static const char *(*as_utf8)(PyObject *, Py_ssize_t *);

#include "library.h"
#include "reference.h"
#include "codec.h"
#include "tensors.h"
#include "handle.h"

/* ---- Functions that make handles ---- */

static PyObject *queue_new(PyObject *self, PyObject *args) {
	long long capacity;
	int joinable = 0, code;
	shoal_handle h;
	(void)self;
	if (!PyArg_ParseTuple(args, "L|p", &capacity, &joinable) || ready() < 0)
		return NULL;
	code = joinable ? lib.joinable_new(capacity, &h) : lib.queue_new(capacity, &h);
	return code ? fail(code) : handle_new(h);
}

static PyObject *pipe_new(PyObject *self, PyObject *args) {
	int duplex, code;
	shoal_handle a, b;
	PyObject *x, *y;
	(void)self;
	if (!PyArg_ParseTuple(args, "p", &duplex) || ready() < 0)
		return NULL;
	if ((code = lib.pipe_new(duplex, &a, &b)) != SHOAL_OK)
		return fail(code);
	x = handle_new(a);
	y = handle_new(b);
	return x && y ? Py_BuildValue("NN", x, y) : NULL;
}

static PyObject *latest_new(PyObject *self, PyObject *value) {
	Encoder e;
	const void *bytes;
	size_t length;
	shoal_handle h;
	PyObject *owner, *result = NULL;
	int code;
	(void)self;
	if (ready() < 0)
		return NULL;
	encoder_init(&e);
	if (encode_any(&e, value, &bytes, &length, &owner) == 0) {
		code = lib.latest_new(bytes, length, e.views, e.count, &h);
		result = code ? fail(code) : handle_new(h);
		Py_XDECREF(owner);
	}
	encoder_free(&e);
	return result;
}

/* SIMPLE defines a function without arguments that makes a handle. */
#define SIMPLE(name) \
	static PyObject *name(PyObject *self, PyObject *args) { \
		shoal_handle h; \
		int code; \
		(void)self, (void)args; \
		if (ready() < 0) \
			return NULL; \
		code = lib.name(&h); \
		return code ? fail(code) : handle_new(h); \
	}

SIMPLE(mutex_new)
SIMPLE(event_new)

static PyObject *semaphore_new(PyObject *self, PyObject *args) {
	int permits, bounded, code;
	shoal_handle h;
	(void)self;
	if (!PyArg_ParseTuple(args, "ip", &permits, &bounded) || ready() < 0)
		return NULL;
	code = lib.semaphore_new(permits, bounded, &h);
	return code ? fail(code) : handle_new(h);
}

static PyObject *cond_new(PyObject *self, PyObject *mutex) {
	shoal_handle h;
	int code;
	(void)self;
	if (ready() < 0 || handle_check(mutex) < 0)
		return NULL;
	code = lib.cond_new(((Handle *)mutex)->reference.handle, &h);
	return code ? fail(code) : handle_new(h);
}

static PyObject *barrier_new(PyObject *self, PyObject *args) {
	int parties, code;
	shoal_handle h;
	(void)self;
	if (!PyArg_ParseTuple(args, "i", &parties) || ready() < 0)
		return NULL;
	code = lib.barrier_new(parties, &h);
	return code ? fail(code) : handle_new(h);
}

static PyObject *memory_new(PyObject *self, PyObject *args) {
	const char *name;
	Py_ssize_t size;
	shoal_handle h;
	int code;
	(void)self;
	if (!PyArg_ParseTuple(args, "zn", &name, &size) || ready() < 0)
		return NULL;
	code = lib.memory_new(name, (size_t)size, &h, NULL);
	return code ? fail(code) : handle_new(h);
}

/* empty(kind, code, bits, shape, zeros) returns a torch.Tensor ("t") or a numpy.ndarray ("n"). */
static PyObject *empty(PyObject *self, PyObject *args) {
	const char *kind;
	int dcode, bits, zeros, code;
	PyObject *shape;
	int64_t dims[SHOAL_MAX_DIMS];
	shoal_dtype dtype;
	shoal_tensor_info info;
	shoal_handle h;
	Py_ssize_t i, n;
	(void)self;
	if (!PyArg_ParseTuple(args, "siiO!p", &kind, &dcode, &bits, &PyTuple_Type, &shape, &zeros) || ready() < 0)
		return NULL;
	n = PyTuple_Size(shape);
	if (n > SHOAL_MAX_DIMS)
		return PyErr_Format(PyExc_ValueError, "a shape of %zd dimensions: want at most %d", n, SHOAL_MAX_DIMS);
	for (i = 0; i < n; i++) {
		dims[i] = PyLong_AsLongLong(PyTuple_GetItem(shape, i));
		if (dims[i] < 0)
			return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_ValueError, "dimension %zd is %lld: want at least 0", i,
				(long long)dims[i]);
	}
	dtype.code = (uint8_t)dcode;
	dtype.bits = (uint8_t)bits;
	dtype.lanes = 1;
	code = (zeros ? lib.tensor_zeros : lib.tensor_empty)(dtype, (int)n, dims, &h, NULL);
	if (code || (code = lib.tensor_describe(h, &info)) != SHOAL_OK)
		return fail(code);
	info.handle = h;
	return kind[0] == 't' ? make_tensor(&info) : make_array(&info);
}

/* view_handle stores a handle of a tensor or array in shared memory. It returns 0, 1 if the memory is
 * not shared, or -1 with an exception. */
static int view_handle(PyObject *o, shoal_handle *h) {
	Encoder e;
	char kind;
	int code, r;
	encoder_init(&e);
	r = view(&e, o, &kind);
	if (r == NOT_SIMPLE) {
		r = 1;
	} else if (r == DONE) {
		code = lib.tensor_wrap(&e.views[0], h);
		r = code == SHOAL_OK ? 0 : code == SHOAL_NOT_FOUND ? 1 : -1;
		if (r < 0)
			fail(code);
	}
	encoder_free(&e);
	return r;
}

/* export_tensor(o, uses, lifetime) returns a token, or None for memory that is not shared. */
static PyObject *export_tensor(PyObject *self, PyObject *args) {
	PyObject *o, *token;
	int uses, r;
	double lifetime;
	shoal_handle h;
	(void)self;
	if (!PyArg_ParseTuple(args, "Oid", &o, &uses, &lifetime))
		return NULL;
	if (loaded != epoch && references.next == &references) {
		Py_INCREF(Py_None);
		return Py_None;
	}
	if (ready() < 0 || (r = view_handle(o, &h)) < 0)
		return NULL;
	if (r) {
		Py_INCREF(Py_None);
		return Py_None;
	}
	token = export_handle(h, uses, lifetime);
	lib.close(h);
	return token;
}

/* import_tensor(kind, token, timeout) returns the tensor or array of a token. */
static PyObject *import_tensor(PyObject *self, PyObject *args) {
	const char *kind, *token;
	Py_ssize_t n;
	double timeout;
	shoal_handle h;
	shoal_tensor_info info;
	int code;
	(void)self;
	if (!PyArg_ParseTuple(args, "sy#d", &kind, &token, &n, &timeout) || ready() < 0)
		return NULL;
	WAIT(code, timeout, lib.import(token, (size_t)n, left, &h));
	if (code == INTERRUPTED_BY_EXCEPTION)
		return NULL;
	if (code || (code = lib.tensor_describe(h, &info)) != SHOAL_OK)
		return fail(code);
	info.handle = h;
	return kind[0] == 't' ? make_tensor(&info) : make_array(&info);
}

static PyObject *contains(PyObject *self, PyObject *address) {
	void *p = PyLong_AsVoidPtr(address);
	(void)self;
	if (!p && PyErr_Occurred())
		return NULL;
	return PyBool_FromLong(loaded >= 0 && lib.contains(p));
}

/* raise_code(code) raises the exception for the last error of this thread. */
static PyObject *raise_code(PyObject *self, PyObject *code) {
	long c = PyLong_AsLong(code);
	(void)self;
	if (c == -1 && PyErr_Occurred())
		return NULL;
	return ready() < 0 ? NULL : fail((int)c);
}

/* bind_value(name, value) binds a name to a message. */
static PyObject *bind_value(PyObject *self, PyObject *args) {
	const char *name;
	PyObject *value, *r;
	shoal_handle q, m;
	PyObject *queue;
	int code;
	(void)self;
	if (!PyArg_ParseTuple(args, "sO", &name, &value) || ready() < 0)
		return NULL;
	if ((code = lib.queue_new(1, &q)) != SHOAL_OK)
		return fail(code);
	if (!(queue = handle_new(q)))
		return NULL;
	if ((r = put_value(queue, value, 0)) != NULL) {
		Py_DECREF(r);
		code = lib.get(q, 0, &m);
		if (code == SHOAL_OK) {
			code = lib.bind(name, m, 10);
			r = done(code);
			lib.close(m);
		} else {
			r = fail(code);
		}
	}
	Py_DECREF(queue);
	return r;
}

/* ---- The domain ---- */

/* check_interpreter raises ImportError in a sub-interpreter: handles and hooks are global. */
static PyObject *check_interpreter(PyObject *self, PyObject *args) {
	(void)self, (void)args;
	if (PyInterpreterState_GetID(PyInterpreterState_Get()) == 0)
		Py_RETURN_NONE;
	PyErr_SetString(PyExc_ImportError, "shoal.multiprocessing does not work in a sub-interpreter: import it in the "
		"main interpreter, or start a process");
	return NULL;
}

static PyObject *load(PyObject *self, PyObject *args) {
	const char *path;
	(void)self;
	if (!PyArg_ParseTuple(args, "s", &path) || load_library(path) < 0)
		return NULL;
	Py_RETURN_NONE;
}

static PyObject *create(PyObject *self, PyObject *args) {
	shoal_options o = {sizeof o, 0, 0};
	long long budget = 0, reserve = 0;
	(void)self;
	if (!PyArg_ParseTuple(args, "|LL", &budget, &reserve) || ready() < 0)
		return NULL;
	o.budget = budget;
	o.reserve = reserve;
	return done(lib.create(&o));
}

static PyObject *join(PyObject *self, PyObject *args) {
	const char *address, *key;
	Py_ssize_t n;
	double timeout;
	int code;
	(void)self;
	if (!PyArg_ParseTuple(args, "sy#d", &address, &key, &n, &timeout) || ready() < 0)
		return NULL;
	Py_BEGIN_ALLOW_THREADS
	code = lib.join(address, key, (size_t)n, timeout);
	Py_END_ALLOW_THREADS
	return done(code);
}

static PyObject *listen_at(PyObject *self, PyObject *args) {
	const char *address, *key;
	Py_ssize_t n;
	shoal_handle h;
	int code;
	(void)self;
	if (!PyArg_ParseTuple(args, "sy#", &address, &key, &n) || ready() < 0)
		return NULL;
	code = lib.listen(address, key, (size_t)n, &h);
	return code ? fail(code) : handle_new(h);
}

static PyObject *joined(PyObject *self, PyObject *args) {
	(void)self, (void)args;
	return PyBool_FromLong(loaded == epoch && lib.joined());
}

static PyObject *set_process_name(PyObject *self, PyObject *args) {
	const char *name;
	(void)self;
	if (!PyArg_ParseTuple(args, "s", &name) || ready() < 0)
		return NULL;
	return done(lib.set_process_name(name));
}

/* leave_domain closes the objects of this process. It runs after the interpreter has ended. */
static void leave_domain(void) {
	if (loaded == epoch && lib.joined())
		lib.leave(0);
}

static PyObject *leave(PyObject *self, PyObject *args) {
	double timeout = 0;
	int code = SHOAL_OK;
	(void)self;
	if (!PyArg_ParseTuple(args, "|d", &timeout))
		return NULL;
	if (loaded == epoch && lib.joined()) {
		Py_BEGIN_ALLOW_THREADS
		code = lib.leave(timeout);
		Py_END_ALLOW_THREADS
	}
	return done(code);
}

static PyObject *stats(PyObject *self, PyObject *args) {
	shoal_stats s = {0};
	int code;
	(void)self, (void)args;
	if (ready() < 0)
		return NULL;
	s.size = sizeof s;
	if ((code = lib.get_stats(&s)) != SHOAL_OK)
		return fail(code);
	return Py_BuildValue("{sisisLsLsLsLsLsLsLsLsL}", "processes", s.processes, "reaped", s.reaped, "limit",
		(long long)s.limit, "committed", (long long)s.committed, "blocks", (long long)s.blocks, "bytes",
		(long long)s.bytes, "idle_bytes", (long long)s.idle_bytes, "in_transit", (long long)s.in_transit, "copied",
		(long long)s.copied, "dropped", (long long)s.dropped, "handles", (long long)s.handles);
}

static PyObject *version(PyObject *self, PyObject *args) {
	(void)self, (void)args;
	return ready() < 0 ? NULL : PyUnicode_FromString(lib.version());
}

static PyObject *set_spin(PyObject *self, PyObject *args) {
	double seconds;
	(void)self;
	if (!PyArg_ParseTuple(args, "d", &seconds) || ready() < 0)
		return NULL;
	return done(lib.set_spin(seconds));
}

/* ---- Names and tokens ---- */

static PyObject *lookup(PyObject *self, PyObject *args) {
	const char *name;
	int kind, code;
	shoal_handle h;
	shoal_tensor_info info;
	(void)self;
	if (!PyArg_ParseTuple(args, "si", &name, &kind) || ready() < 0)
		return NULL;
	code = lib.lookup(name, kind, &h);
	if (code)
		return fail(code);
	if (lib.kind(h) == SHOAL_KIND_MESSAGE)
		return message_value(h);
	if (lib.kind(h) != SHOAL_KIND_TENSOR)
		return handle_new(h);
	if ((code = lib.tensor_describe(h, &info)) != SHOAL_OK)
		return fail(code);
	info.handle = h;
	return make_tensor(&info);
}

static PyObject *unlink_name(PyObject *self, PyObject *args) {
	const char *name;
	(void)self;
	if (!PyArg_ParseTuple(args, "s", &name) || ready() < 0)
		return NULL;
	return done(lib.unlink(name));
}

static PyObject *names(PyObject *self, PyObject *args) {
	size_t needed = 0, count, at, size;
	char *buffer = NULL;
	PyObject *list = NULL;
	int code;
	(void)self, (void)args;
	if (ready() < 0)
		return NULL;
	do { /* names may be added between two calls */
		size = needed;
		free(buffer);
		if (!(buffer = malloc(size + 1)))
			return PyErr_NoMemory();
		code = lib.names(buffer, size, &needed, &count);
	} while (code == SHOAL_OK && needed > size);
	if (code)
		fail(code);
	else
		list = PyList_New(0);
	for (at = 0; list && at < needed; at += strlen(buffer + at) + 1) {
		PyObject *name = PyUnicode_FromString(buffer + at);
		if (!name || PyList_Append(list, name) < 0)
			Py_CLEAR(list);
		Py_XDECREF(name);
	}
	free(buffer);
	return list;
}

static PyObject *import_token(PyObject *self, PyObject *args) {
	const char *token;
	Py_ssize_t n;
	double timeout;
	shoal_handle h;
	int code;
	(void)self;
	if (!PyArg_ParseTuple(args, "y#d", &token, &n, &timeout) || ready() < 0)
		return NULL;
	WAIT(code, timeout, lib.import(token, (size_t)n, left, &h));
	if (code == INTERRUPTED_BY_EXCEPTION)
		return NULL;
	return code ? fail(code) : handle_new(h);
}

/* wait_any(handles, timeout) returns the indices of the handles that are ready. */
static PyObject *wait_any(PyObject *self, PyObject *args) {
	PyObject *list, *found = NULL, *t;
	shoal_handle *handles;
	uint8_t *marks;
	Py_ssize_t n, i;
	double timeout;
	int code;
	(void)self;
	if (!PyArg_ParseTuple(args, "O!O", &PyList_Type, &list, &t) || timeout_of(t, &timeout) < 0 || ready() < 0)
		return NULL;
	n = PyList_Size(list);
	handles = malloc((size_t)n * sizeof *handles + 1);
	marks = calloc((size_t)n + 1, 1);
	if (!handles || !marks)
		PyErr_NoMemory();
	for (i = 0; !PyErr_Occurred() && i < n; i++)
		if (handle_check(PyList_GetItem(list, i)) == 0)
			handles[i] = ((Handle *)PyList_GetItem(list, i))->reference.handle;
	if (!PyErr_Occurred()) {
		WAIT(code, timeout, lib.wait_any(handles, (size_t)n, left, marks));
		if (code == SHOAL_TIMEOUT || code == SHOAL_EMPTY)
			code = SHOAL_OK;
		if (code > 0)
			fail(code);
	}
	if (!PyErr_Occurred())
		found = PyList_New(0);
	for (i = 0; found && i < n; i++) {
		PyObject *index = marks[i] ? PyLong_FromSsize_t(i) : NULL;
		if (marks[i] && (!index || PyList_Append(found, index) < 0))
			Py_CLEAR(found);
		Py_XDECREF(index);
	}
	free(handles);
	free(marks);
	return found;
}

/* ---- Fork ---- */

static shoal_fork_ticket ticket = {0, -1, 0, 0, 0, {0}};
static int ticket_epoch = -1;

/* fork_before makes a ticket for the objects of this process. */
static PyObject *fork_before(PyObject *self, PyObject *args) {
	int code;
	(void)self, (void)args;
	if (loaded != epoch || references.next == &references)
		Py_RETURN_NONE; /* a ticket of an earlier fork is still good for the objects of that one */
	code = lib.fork_prepare(&ticket);
	if (code) {
		ticket.length = 0;
		ticket.lifeline = -1;
		return fail(code);
	}
	ticket_epoch = epoch;
	Py_RETURN_NONE;
}

static PyObject *fork_parent(PyObject *self, PyObject *args) {
	(void)self, (void)args;
	if (loaded == epoch && ticket_epoch == epoch) {
		lib.fork_parent(&ticket);
		ticket.length = 0;
		ticket_epoch = -1;
	}
	Py_RETURN_NONE;
}

/* is_listener reports whether a descriptor is a listening socket of libshoal, which has an abstract
 * address that begins with "shoal". */
static int is_listener(int fd) {
	struct sockaddr_un a;
	socklen_t length = sizeof a, flag = sizeof(int);
	int listens = 0;
	return getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &flag) == 0 && listens &&
		getsockname(fd, (struct sockaddr *)&a, &length) == 0 && a.sun_family == AF_UNIX &&
		length >= offsetof(struct sockaddr_un, sun_path) + 6 && memcmp(a.sun_path, "\0shoal", 6) == 0;
}

/* close_listeners closes the listening sockets that a forked child has inherited. As long as the child
 * held them, a process that connects to a parent that has died would wait for an answer. */
static void close_listeners(void) {
	DIR *all = opendir("/proc/self/fd");
	struct dirent *e;
	while (all && (e = readdir(all)) != NULL) {
		int fd = atoi(e->d_name); /* 0 for . and .. */
		if (fd > 2 && fd != dirfd(all) && is_listener(fd))
			close(fd);
	}
	if (all)
		closedir(all);
}

/* fork_child makes every handle belong to an earlier epoch. It does not touch the library. */
static PyObject *fork_child(PyObject *self, PyObject *args) {
	(void)self, (void)args;
	if (loaded == epoch)
		close_listeners();
	epoch++;
	Py_RETURN_NONE;
}

/* fork_import(timeout) imports the objects of the parent after load, and returns their number. */
static PyObject *fork_import(PyObject *self, PyObject *args) {
	double timeout;
	int n;
	(void)self;
	if (!PyArg_ParseTuple(args, "d", &timeout))
		return NULL;
	if (loaded != epoch) {
		PyErr_SetString(PyExc_RuntimeError, "shoal._native: load the library before fork_import");
		return NULL;
	}
	n = references_import(&ticket, ticket_epoch, timeout);
	if (ticket.lifeline >= 0)
		lib.fork_done(&ticket);
	ticket.length = 0;
	ticket.lifeline = -1;
	return PyLong_FromLong(n);
}

/* register(**hooks) sets functions and types of the Python side. */
static PyObject *register_hooks(PyObject *self, PyObject *args, PyObject *kwargs) {
	static const struct {
		const char *name;
		PyObject **hook;
	} all[] = {{"reload", &hooks.reload}, {"error", &hooks.error}, {"empty", &hooks.empty}, {"full", &hooks.full},
		{"dumps", &hooks.dumps}, {"loads", &hooks.loads}, {"refuse", &hooks.refuse}, {"need", &hooks.need},
		{"tensor", (PyObject **)&hooks.tensor}, {"array", (PyObject **)&hooks.array}, {"to_dlpack", &hooks.to_dlpack},
		{"from_dlpack", &hooks.from_dlpack}, {"asarray", &hooks.asarray}};
	PyObject *key, *value, *old;
	Py_ssize_t at = 0;
	size_t i;
	(void)self, (void)args;
	while (kwargs && PyDict_Next(kwargs, &at, &key, &value))
		for (i = 0; i < sizeof all / sizeof *all; i++)
			if (PyUnicode_CompareWithASCIIString(key, all[i].name) == 0) {
				old = *all[i].hook;
				Py_INCREF(value);
				*all[i].hook = value;
				Py_XDECREF(old);
			}
	Py_RETURN_NONE;
}

#define FUNCTION(name, f, flags, doc) {name, (PyCFunction)(void (*)(void))f, flags, doc}

static PyMethodDef functions[] = {
	FUNCTION("load", load, METH_VARARGS, "load(path): loads libshoal.so."),
	FUNCTION("check_interpreter", check_interpreter, METH_NOARGS, "check_interpreter()"),
	FUNCTION("register", register_hooks, METH_VARARGS | METH_KEYWORDS, "register(**hooks): sets hooks."),
	FUNCTION("version", version, METH_NOARGS, "version(): the version of the library."),
	FUNCTION("create", create, METH_VARARGS, "create(budget, reserve): makes the domain."),
	FUNCTION("join", join, METH_VARARGS, "join(address, key, timeout): joins a domain."),
	FUNCTION("listen", listen_at, METH_VARARGS, "listen(address, key): lets processes join."),
	FUNCTION("joined", joined, METH_NOARGS, "joined(): whether there is a domain."),
	FUNCTION("leave", leave, METH_VARARGS, "leave(timeout): leaves the domain."),
	FUNCTION("set_process_name", set_process_name, METH_VARARGS, "set_process_name(name)"),
	FUNCTION("set_spin", set_spin, METH_VARARGS, "set_spin(seconds): how long waits poll."),
	FUNCTION("stats", stats, METH_NOARGS, "stats(): figures of the domain."),
	FUNCTION("queue_new", queue_new, METH_VARARGS, "queue_new(capacity, joinable)"),
	FUNCTION("pipe_new", pipe_new, METH_VARARGS, "pipe_new(duplex): two handles."),
	FUNCTION("latest_new", latest_new, METH_O, "latest_new(value)"),
	FUNCTION("mutex_new", mutex_new, METH_NOARGS, "mutex_new()"),
	FUNCTION("event_new", event_new, METH_NOARGS, "event_new()"),
	FUNCTION("semaphore_new", semaphore_new, METH_VARARGS, "semaphore_new(permits, bounded)"),
	FUNCTION("cond_new", cond_new, METH_O, "cond_new(mutex)"),
	FUNCTION("barrier_new", barrier_new, METH_VARARGS, "barrier_new(parties)"),
	FUNCTION("memory_new", memory_new, METH_VARARGS, "memory_new(name, size)"),
	FUNCTION("empty", empty, METH_VARARGS, "empty(kind, code, bits, shape, zeros): a tensor or an array."),
	FUNCTION("export_tensor", export_tensor, METH_VARARGS, "export_tensor(o, uses, lifetime): a token or None."),
	FUNCTION("import_tensor", import_tensor, METH_VARARGS, "import_tensor(kind, token, timeout)"),
	FUNCTION("raise_code", raise_code, METH_O, "raise_code(code): raises the last error."),
	FUNCTION("bind_value", bind_value, METH_VARARGS, "bind_value(name, value)"),
	FUNCTION("contains", contains, METH_O, "contains(address): whether it is in shared memory."),
	FUNCTION("lookup", lookup, METH_VARARGS, "lookup(name, kind): a handle, or the value of a message."),
	FUNCTION("unlink", unlink_name, METH_VARARGS, "unlink(name)"),
	FUNCTION("names", names, METH_NOARGS, "names(): a sorted list."),
	FUNCTION("import_token", import_token, METH_VARARGS, "import_token(token, timeout): a handle."),
	FUNCTION("wait_any", wait_any, METH_VARARGS, "wait_any(handles, timeout): the indices that are ready."),
	FUNCTION("fork_before", fork_before, METH_NOARGS, "fork_before()"),
	FUNCTION("fork_parent", fork_parent, METH_NOARGS, "fork_parent()"),
	FUNCTION("fork_child", fork_child, METH_NOARGS, "fork_child()"),
	FUNCTION("fork_import", fork_import, METH_VARARGS, "fork_import(timeout)"),
	{NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "shoal._native", "libshoal for Python.", -1, functions,
	NULL, NULL, NULL, NULL};

static int add_type(PyObject *m, const char *name, PyType_Spec *spec, PyTypeObject **type) {
	*type = (PyTypeObject *)PyType_FromSpec(spec);
	if (!*type)
		return -1;
	Py_INCREF(*type);
	return PyModule_AddObject(m, name, (PyObject *)*type);
}

PyMODINIT_FUNC PyInit__native(void) {
	PyObject *m;
	*(void **)&as_utf8 = dlsym(RTLD_DEFAULT, "PyUnicode_AsUTF8AndSize");
	if (!as_utf8) {
		PyErr_SetString(PyExc_ImportError, "this Python has no PyUnicode_AsUTF8AndSize: want CPython 3.9 or later");
		return NULL;
	}
	if (attributes_init() < 0 || !(m = PyModule_Create(&module)))
		return NULL;
	if (add_type(m, "Handle", &handle_spec, &handle_type) < 0 || add_type(m, "Block", &block_spec, &block_type) < 0 ||
		pthread_atfork(lock_references, unlock_references, unlock_references) != 0 || Py_AtExit(leave_domain) < 0) {
		Py_DECREF(m);
		return NULL;
	}
	return m;
}
