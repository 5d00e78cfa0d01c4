/* Tensors of PyTorch, by DLPack, and arrays of numpy, by their array interface.
 *
 * The structures are those of DLPack 0.x, https://dmlc.github.io/dlpack/latest/c_api.html, and of
 * https://numpy.org/doc/stable/reference/arrays.interface.html#c-struct-access. A received tensor
 * has the library's handle, and closes it when its last Python reference is gone.
 */

typedef struct {
	int32_t type, id;
} DLDevice;

typedef struct {
	void *data;
	DLDevice device;
	int32_t ndim;
	shoal_dtype dtype;
	int64_t *shape, *strides;
	uint64_t byte_offset;
} DLTensor;

typedef struct DLManaged {
	DLTensor tensor;
	void *context;
	void (*deleter)(struct DLManaged *);
} DLManaged;

enum { DEVICE_CPU = 1 };

typedef struct {
	int two, nd;
	char typekind;
	int itemsize, flags;
	Py_ssize_t *shape, *strides;
	void *data;
	PyObject *descr;
} ArrayInterface;

enum { ARRAY_ALIGNED = 0x100, ARRAY_NATIVE = 0x200, ARRAY_WRITEABLE = 0x400 };

/* attributes are names of attributes and methods, interned, since a tensor needs some of them each time. */
static struct {
	PyObject *requires_grad, *is_leaf, *is_neg, *is_conj, *array_struct;
} attributes;

static int attributes_init(void) {
	attributes.requires_grad = PyUnicode_InternFromString("requires_grad");
	attributes.is_leaf = PyUnicode_InternFromString("is_leaf");
	attributes.is_neg = PyUnicode_InternFromString("is_neg");
	attributes.is_conj = PyUnicode_InternFromString("is_conj");
	attributes.array_struct = PyUnicode_InternFromString("__array_struct__");
	return PyErr_Occurred() ? -1 : 0;
}

/* attribute_is_true returns the truth of an attribute, or of the result of a method, or -1 with an
 * exception. */
static int attribute_is_true(PyObject *o, PyObject *name, int call) {
	PyObject *v = call ? PyObject_CallMethodObjArgs(o, name, NULL) : PyObject_GetAttr(o, name);
	int r = v ? PyObject_IsTrue(v) : -1;
	Py_XDECREF(v);
	return r;
}

/* refuse_tensor raises the error for a tensor that cannot be shared. It returns NOT_SIMPLE for one that
 * has a pickle without memory. */
static int refuse_tensor(PyObject *o) {
	PyObject *r = PyObject_CallFunctionObjArgs(hooks.refuse, o, NULL);
	int pickled = r == Py_True;
	Py_XDECREF(r);
	return pickled ? NOT_SIMPLE : FAILED;
}

/* view_tensor adds a torch.Tensor to the views. kind becomes 't', or 'g' for a leaf that requires grad.
 * It returns NOT_SIMPLE for a conjugated or negated view. */
static int view_tensor(Encoder *e, PyObject *o, char *kind) {
	PyObject *capsule;
	DLManaged *m;
	shoal_view *v;
	int grad = attribute_is_true(o, attributes.requires_grad, 0);
	if (grad < 0)
		return FAILED;
	if (grad) {
		int leaf = attribute_is_true(o, attributes.is_leaf, 0);
		if (leaf <= 0)
			return leaf < 0 ? FAILED : refuse_tensor(o);
	}
	*kind = grad ? 'g' : 't';
	capsule = PyObject_CallFunctionObjArgs(hooks.to_dlpack, o, NULL);
	m = capsule ? PyCapsule_GetPointer(capsule, "dltensor") : NULL;
	if (!m || m->tensor.device.type != DEVICE_CPU || m->tensor.ndim > SHOAL_MAX_DIMS) {
		PyErr_Clear();
		Py_XDECREF(capsule);
		return refuse_tensor(o);
	}
	if (attribute_is_true(o, attributes.is_neg, 1) ||
		(m->tensor.dtype.code == 5 && attribute_is_true(o, attributes.is_conj, 1))) {
		Py_DECREF(capsule);
		return PyErr_Occurred() ? FAILED : NOT_SIMPLE;
	}
	if (!(v = encoder_view(e))) {
		Py_DECREF(capsule);
		return FAILED;
	}
	v->data = (char *)m->tensor.data + m->tensor.byte_offset;
	v->shape = m->tensor.shape;
	v->strides = m->tensor.strides;
	v->dtype = m->tensor.dtype;
	v->ndim = m->tensor.ndim;
	Py_INCREF(o);
	e->keep[2 * e->count - 2] = capsule;
	e->keep[2 * e->count - 1] = o;
	return DONE;
}

/* array_dtype converts a type of the array interface. It returns 0 for one that tensors lack. */
static int array_dtype(const ArrayInterface *a, shoal_dtype *d) {
	int size = a->itemsize;
	d->lanes = 1;
	d->bits = (uint8_t)(8 * size);
	switch (a->typekind) {
	case 'b': d->code = 6; return size == 1;
	case 'i': d->code = 0; return size == 1 || size == 2 || size == 4 || size == 8;
	case 'u': d->code = 1; return size == 1 || size == 2 || size == 4 || size == 8;
	case 'f': d->code = 2; return size == 2 || size == 4 || size == 8;
	case 'c': d->code = 5; return size == 8 || size == 16;
	}
	return 0;
}

/* view_array adds a numpy.ndarray to the views, or a copy of it if its strides do not suit. It returns
 * NOT_SIMPLE for a dtype that tensors lack. */
static int view_array(Encoder *e, PyObject *o, PyObject *memory, int copied) {
	PyObject *capsule = PyObject_GetAttr(memory, attributes.array_struct), *copy;
	ArrayInterface *a = capsule ? PyCapsule_GetPointer(capsule, NULL) : NULL;
	shoal_dtype dtype;
	shoal_view *v;
	int64_t *strides = NULL, dense = 1;
	int i, suits = 1, contiguous = 1, r;
	if (!a) {
		Py_XDECREF(capsule);
		return FAILED;
	}
	if (a->two != 2 || !(a->flags & ARRAY_NATIVE) || a->nd > SHOAL_MAX_DIMS || !array_dtype(a, &dtype)) {
		Py_DECREF(capsule);
		return NOT_SIMPLE;
	}
	suits = (a->flags & ARRAY_ALIGNED) != 0;
	for (i = a->nd - 1; i >= 0; i--) {
		if (a->strides[i] < 0 || a->strides[i] % a->itemsize)
			suits = 0;
		if (a->shape[i] != 1 && a->strides[i] != dense * a->itemsize)
			contiguous = 0;
		dense *= a->shape[i];
	}
	if (!suits) {
		Py_DECREF(capsule);
		copy = copied ? NULL : PyObject_CallMethod(memory, "copy", NULL);
		if (!copy)
			return copied ? NOT_SIMPLE : FAILED;
		r = view_array(e, o, copy, 1);
		Py_DECREF(copy); /* the view keeps its capsule, and the capsule the array */
		return r;
	}
	if (!contiguous && !(strides = malloc((size_t)a->nd * sizeof *strides))) {
		Py_DECREF(capsule);
		PyErr_NoMemory();
		return FAILED;
	}
	for (i = 0; strides && i < a->nd; i++)
		strides[i] = a->strides[i] / a->itemsize;
	if (!(v = encoder_view(e))) {
		free(strides);
		Py_DECREF(capsule);
		return FAILED;
	}
	v->data = a->data;
	v->shape = (const int64_t *)a->shape;
	v->strides = strides;
	v->dtype = dtype;
	v->ndim = a->nd;
	Py_INCREF(o);
	e->dims[e->count - 1] = strides;
	e->keep[2 * e->count - 2] = capsule;
	e->keep[2 * e->count - 1] = o;
	return DONE;
}

/* view adds a tensor or an array to the views. kind becomes 't', 'g' or 'n'. It returns NOT_SIMPLE for
 * every other object. */
static int view(Encoder *e, PyObject *o, char *kind) {
	PyTypeObject *type = Py_TYPE(o);
	if (type == hooks.tensor)
		return view_tensor(e, o, kind);
	if (type == hooks.array) {
		*kind = 'n';
		return view_array(e, o, o, 0);
	}
	return NOT_SIMPLE;
}

static int encode_tensor(Encoder *e, PyObject *o) {
	char kind;
	int r = remember(e, o);
	if (r != DONE || (r = view(e, o, &kind)) != DONE)
		return r;
	if (kind == 't') {
		r = encode_int(e, (int64_t)e->count - 1);
		return r == DONE ? buffer_byte(&e->out, 'Q') : r;
	}
	r = buffer_write(&e->out, kind == 'g' ? "\x8c\x01g" : "\x8c\x01n", 3);
	if (r == DONE)
		r = encode_int(e, (int64_t)e->count - 1);
	return r == DONE ? buffer_write(&e->out, "\x86Q", 2) : r;
}

/* persistent_id(o) is the method of that name of a Pickler. self is a capsule of the Encoder. */
static PyObject *persistent_id(PyObject *self, PyObject *o) {
	Encoder *e;
	char kind = 'n';
	size_t i;
	int r = DONE;
	if (Py_TYPE(o) != hooks.tensor && Py_TYPE(o) != hooks.array)
		Py_RETURN_NONE;
	if (!(e = PyCapsule_GetPointer(self, "shoal.encoder")))
		return NULL;
	for (i = 0; i < e->count && e->keep[2 * i + 1] != o; i++)
		;
	if (i == e->count)
		r = view(e, o, &kind);
	else if (Py_TYPE(o) == hooks.tensor)
		kind = (r = attribute_is_true(o, attributes.requires_grad, 0)) > 0 ? 'g' : 't';
	if (r < 0)
		return NULL;
	if (i == e->count) /* neither found nor added */
		Py_RETURN_NONE;
	return kind == 't' ? PyLong_FromSize_t(i) : Py_BuildValue("sn", kind == 'g' ? "g" : "n", (Py_ssize_t)i);
}

static PyMethodDef persistent_id_method = {"persistent_id", persistent_id, METH_O, NULL};

/* encode_any encodes a value, with the pickle module if it is not simple. It returns 0, or -1 with an
 * exception. The bytes are in *bytes and *length; *owner, if not NULL, owns them. */
static int encode_any(Encoder *e, PyObject *o, const void **bytes, size_t *length, PyObject **owner) {
	PyObject *capsule, *method;
	char *at;
	Py_ssize_t n;
	int r = encode_pickle(e, o);
	*owner = NULL;
	if (r < 0)
		return -1;
	if (r == DONE) {
		*bytes = e->out.at;
		*length = e->out.length;
		return 0;
	}
	encoder_drop(e);
	capsule = PyCapsule_New(e, "shoal.encoder", NULL);
	method = capsule ? PyCFunction_New(&persistent_id_method, capsule) : NULL;
	if (method)
		*owner = PyObject_CallFunctionObjArgs(hooks.dumps, o, method, NULL);
	if (capsule)
		PyCapsule_SetName(capsule, "shoal.encoder of an earlier call");
	Py_XDECREF(method);
	Py_XDECREF(capsule);
	if (!*owner || PyBytes_AsStringAndSize(*owner, &at, &n) < 0) {
		Py_CLEAR(*owner);
		return -1;
	}
	*bytes = at;
	*length = (size_t)n;
	return 0;
}

/* ---- Received tensors ---- */

typedef struct {
	DLManaged managed;
	Reference reference;
	int64_t dims[];
} Received;

static void received_delete(DLManaged *m) {
	Received *r = m->context;
	reference_close(&r->reference);
	free(r);
}

static void capsule_delete(PyObject *capsule) {
	DLManaged *m;
	if (!PyCapsule_IsValid(capsule, "dltensor")) /* it was consumed */
		return;
	m = PyCapsule_GetPointer(capsule, "dltensor");
	m->deleter(m);
}

/* need imports torch ("t") or numpy ("n"), if it is not registered yet. */
static int need(const char *kind) {
	PyObject *r = PyObject_CallFunction(hooks.need, "s", kind);
	Py_XDECREF(r);
	return r ? 0 : -1;
}

/* make_tensor returns a torch.Tensor that owns the handle of info. It closes the handle if it fails. */
static PyObject *make_tensor(const shoal_tensor_info *info) {
	int n = info->ndim;
	PyObject *capsule, *t;
	Received *r = hooks.from_dlpack || need("t") == 0 ? calloc(1, sizeof *r + 2 * (size_t)n * sizeof *r->dims) : NULL;
	if (!r) {
		lib.close(info->handle);
		return PyErr_Occurred() ? NULL : PyErr_NoMemory();
	}
	memcpy(r->dims, info->shape, (size_t)n * sizeof *r->dims);
	memcpy(r->dims + n, info->strides, (size_t)n * sizeof *r->dims);
	r->managed.tensor.data = info->data;
	r->managed.tensor.device.type = DEVICE_CPU;
	r->managed.tensor.ndim = n;
	r->managed.tensor.dtype = info->dtype;
	r->managed.tensor.shape = r->dims;
	r->managed.tensor.strides = r->dims + n;
	r->managed.context = r;
	r->managed.deleter = received_delete;
	reference_add(&r->reference, info->handle);
	if (!(capsule = PyCapsule_New(&r->managed, "dltensor", capsule_delete))) {
		received_delete(&r->managed);
		return NULL;
	}
	t = PyObject_CallFunctionObjArgs(hooks.from_dlpack, capsule, NULL);
	Py_DECREF(capsule);
	return t;
}

/* A Block is the owner of the memory of a numpy array. */
typedef struct {
	PyObject_HEAD
	Reference reference;
	ArrayInterface interface;
	Py_ssize_t dims[2 * SHOAL_MAX_DIMS];
} Block;

static PyTypeObject *block_type;

static void block_dealloc(PyObject *self) {
	PyTypeObject *type = Py_TYPE(self);
	freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
	reference_close(&((Block *)self)->reference);
	release(self);
	Py_DECREF(type);
}

static PyObject *block_interface(PyObject *self, void *closure) {
	(void)closure;
	return PyCapsule_New(&((Block *)self)->interface, NULL, NULL);
}

static PyGetSetDef block_getset[] = {{"__array_struct__", block_interface, NULL, "The array interface.", NULL}, {0}};
static PyType_Slot block_slots[] = {{Py_tp_dealloc, block_dealloc}, {Py_tp_getset, block_getset}, {0, NULL}};
static PyType_Spec block_spec = {"shoal._native.Block", sizeof(Block), 0, Py_TPFLAGS_DEFAULT, block_slots};

/* array_kind converts a dtype to a type of the array interface. It returns 0 if numpy lacks it. */
static char array_kind(shoal_dtype d) {
	switch (d.code) {
	case 0: return 'i';
	case 1: return 'u';
	case 2: return 'f';
	case 5: return 'c';
	case 6: return 'b';
	}
	return 0;
}

/* make_array returns a numpy.ndarray that owns the handle of info. It closes the handle if it fails. */
static PyObject *make_array(const shoal_tensor_info *info) {
	allocfunc allocate = (allocfunc)PyType_GetSlot(block_type, Py_tp_alloc);
	Block *b = NULL;
	PyObject *array;
	int i;
	if (!array_kind(info->dtype))
		PyErr_Format(PyExc_TypeError, "cannot make a numpy array of DLPack dtype %d with %d bits: "
			"send a tensor in place of an array", info->dtype.code, info->dtype.bits);
	else if (hooks.asarray || need("n") == 0)
		b = (Block *)allocate(block_type, 0);
	if (!b) {
		lib.close(info->handle);
		return NULL;
	}
	reference_add(&b->reference, info->handle);
	b->interface.two = 2;
	b->interface.nd = info->ndim;
	b->interface.typekind = array_kind(info->dtype);
	b->interface.itemsize = info->dtype.bits / 8;
	b->interface.flags = ARRAY_ALIGNED | ARRAY_NATIVE | ARRAY_WRITEABLE;
	b->interface.shape = b->dims;
	b->interface.strides = b->dims + SHOAL_MAX_DIMS;
	b->interface.data = info->data;
	for (i = 0; i < info->ndim; i++) {
		b->interface.shape[i] = (Py_ssize_t)info->shape[i];
		b->interface.strides[i] = (Py_ssize_t)info->strides[i] * b->interface.itemsize;
	}
	array = PyObject_CallFunctionObjArgs(hooks.asarray, (PyObject *)b, NULL);
	Py_DECREF(b);
	return array;
}

/* A Loader has the tensors of one message. It closes those that the pickle does not mention. */
struct Loader {
	shoal_handle message;      /* 0 if infos has the tensors */
	shoal_tensor_info *infos;
	size_t count;
	PyObject **made[3];           /* tensors, leaves and arrays made so far; NULL until the first is */
};

/* loader_info returns the description of tensor i with a handle that the caller must close. */
static int loader_info(Loader *l, size_t i, shoal_tensor_info *info) {
	int code;
	if (!l->message && l->infos[i].handle) {
		*info = l->infos[i];
		l->infos[i].handle = 0;
		return 0;
	}
	if (!l->message) {
		PyErr_SetString(PyExc_ValueError, "the message refers to one tensor in two ways, want one");
		return -1;
	}
	if ((code = lib.message_tensor(l->message, i, info)) != SHOAL_OK) {
		fail(code);
		return -1;
	}
	return 0;
}

/* load_form returns the form of a persistent id: 0 for a tensor, 1 for a leaf that requires grad, 2 for
 * an array, or -1. index becomes its number, or NULL. */
static int load_form(PyObject *id, PyObject **index) {
	*index = id;
	if (Py_TYPE(id) == &PyTuple_Type && PyTuple_Size(id) == 2) {
		PyObject *form = PyTuple_GetItem(id, 0);
		*index = PyTuple_GetItem(id, 1);
		if (Py_TYPE(form) != &PyUnicode_Type)
			return -1;
		if (PyUnicode_CompareWithASCIIString(form, "g") == 0)
			return 1;
		return PyUnicode_CompareWithASCIIString(form, "n") == 0 ? 2 : -1;
	}
	return 0;
}

/* make_leaf returns a tensor that requires grad. */
static PyObject *make_leaf(const shoal_tensor_info *info) {
	PyObject *t = make_tensor(info), *leaf = t ? PyObject_CallMethod(t, "requires_grad_", NULL) : NULL;
	Py_XDECREF(t);
	return leaf;
}

static PyObject *load_tensor(Loader *l, PyObject *id) {
	shoal_tensor_info info;
	PyObject *index, *o;
	int form = load_form(id, &index);
	size_t i = form >= 0 && Py_TYPE(index) == &PyLong_Type ? PyLong_AsSize_t(index) : (size_t)-1;
	if (i >= l->count) {
		PyErr_Clear();
		PyErr_Format(PyExc_ValueError, "the message refers to tensor %R, but has %zu tensors", id, l->count);
		return NULL;
	}
	if (!l->made[form] && !(l->made[form] = calloc(l->count, sizeof(PyObject *))))
		return PyErr_NoMemory();
	if (!l->made[form][i]) {
		if (loader_info(l, i, &info) < 0)
			return NULL;
		l->made[form][i] = form == 0 ? make_tensor(&info) : form == 1 ? make_leaf(&info) : make_array(&info);
	}
	o = l->made[form][i];
	Py_XINCREF(o);
	return o;
}

static void loader_free(Loader *l) {
	size_t i;
	int form;
	for (i = 0; !l->message && i < l->count; i++)
		if (l->infos[i].handle)
			lib.close(l->infos[i].handle);
	for (form = 0; form < 3; form++) {
		for (i = 0; l->made[form] && i < l->count; i++)
			Py_XDECREF(l->made[form][i]);
		free(l->made[form]);
	}
	if (l->message)
		lib.close(l->message);
}

static PyObject *persistent_load(PyObject *self, PyObject *id) {
	Loader *l = PyCapsule_GetPointer(self, "shoal.loader");
	return l ? load_tensor(l, id) : NULL;
}

static PyMethodDef persistent_load_method = {"persistent_load", persistent_load, METH_O, NULL};

/* decode_any decodes a message, with the pickle module if it is not simple. */
static PyObject *decode_any(Loader *l, const void *bytes, size_t length) {
	PyObject *value = NULL, *capsule, *method, *copy;
	int r = decode(bytes, length, l, &value);
	if (r == DONE)
		return value;
	if (r < 0)
		return NULL;
	capsule = PyCapsule_New(l, "shoal.loader", NULL);
	method = capsule ? PyCFunction_New(&persistent_load_method, capsule) : NULL;
	copy = method ? PyBytes_FromStringAndSize(bytes, (Py_ssize_t)length) : NULL;
	if (copy)
		value = PyObject_CallFunctionObjArgs(hooks.loads, copy, method, NULL);
	if (capsule)
		PyCapsule_SetName(capsule, "shoal.loader of an earlier call");
	Py_XDECREF(copy);
	Py_XDECREF(method);
	Py_XDECREF(capsule);
	return value;
}
