/* The pickles of simple values, written and read without the pickle module.
 *
 * Most messages are numbers, strings, and small containers of them with a few tensors. encode writes
 * such a value as a pickle of protocol 5, and decode reads one. Both return "not simple" for
 * everything else, and the caller then uses pickle.Pickler and pickle.Unpickler, so a message has the
 * same meaning whichever side wrote it.
 *
 * A tensor is a persistent id: an int i for a torch.Tensor, ("n", i) for a numpy.ndarray. i is the
 * index of the tensor among the tensors of the message.
 */

enum { NOT_SIMPLE = 0, DONE = 1, FAILED = -1 };

enum {
	MAX_DEPTH = 8,        /* nested containers of a simple value */
	MAX_SEEN = 64,        /* containers and tensors of a simple value */
	MAX_ITEMS = 256,      /* items of a simple container */
	MAX_STACK = 1 << 20,  /* items on the stack of the decoder */
	SMALL = 4096,         /* bytes of a pickle that need no allocation */
};

typedef struct {
	uint8_t *at;
	size_t length, capacity;
	uint8_t small[SMALL];
} Buffer;

static void buffer_init(Buffer *b) {
	b->at = b->small;
	b->length = 0;
	b->capacity = SMALL;
}

static void buffer_free(Buffer *b) {
	if (b->at != b->small)
		free(b->at);
}

/* buffer_reserve makes room for n more bytes. It returns NULL with MemoryError if there is none. */
static uint8_t *buffer_reserve(Buffer *b, size_t n) {
	if (n > b->capacity - b->length) {
		size_t capacity = b->capacity * 2;
		uint8_t *at;
		while (capacity - b->length < n)
			capacity *= 2;
		at = b->at == b->small ? malloc(capacity) : realloc(b->at, capacity);
		if (!at) {
			PyErr_NoMemory();
			return NULL;
		}
		if (b->at == b->small)
			memcpy(at, b->small, b->length);
		b->at = at;
		b->capacity = capacity;
	}
	return b->at + b->length;
}

static int buffer_write(Buffer *b, const void *data, size_t n) {
	uint8_t *to = buffer_reserve(b, n);
	if (!to)
		return FAILED;
	memcpy(to, data, n);
	b->length += n;
	return DONE;
}

static int buffer_byte(Buffer *b, uint8_t c) { return buffer_write(b, &c, 1); }

/* An Encoder writes one value. The views of its tensors borrow memory from the objects in keep. */
typedef struct {
	Buffer out;
	shoal_view *views;
	void **dims;     /* strides that the encoder owns, or NULL, for each view */
	PyObject **keep; /* an owner of the memory and the tensor itself, for each view */
	size_t count, capacity;
	PyObject *seen[MAX_SEEN];
	int nseen;
} Encoder;

static void encoder_init(Encoder *e) {
	buffer_init(&e->out);
	e->views = NULL;
	e->dims = NULL;
	e->keep = NULL;
	e->count = e->capacity = 0;
	e->nseen = 0;
}

/* encoder_drop releases the views and the bytes from an earlier attempt. */
static void encoder_drop(Encoder *e) {
	while (e->count) {
		e->count--;
		free(e->dims[e->count]);
		Py_XDECREF(e->keep[2 * e->count]);
		Py_XDECREF(e->keep[2 * e->count + 1]);
	}
	e->out.length = 0;
	e->nseen = 0;
}

static void encoder_free(Encoder *e) {
	encoder_drop(e);
	free(e->views);
	free(e->dims);
	free(e->keep);
	buffer_free(&e->out);
}

/* encoder_view adds a view, which the caller fills. It returns NULL with MemoryError. */
static shoal_view *encoder_view(Encoder *e) {
	if (e->count == e->capacity) {
		size_t capacity = e->capacity ? e->capacity * 2 : 4;
		void *views = realloc(e->views, capacity * sizeof *e->views), *dims, *keep;
		if (views)
			e->views = views;
		dims = realloc(e->dims, capacity * sizeof *e->dims);
		if (dims)
			e->dims = dims;
		keep = realloc(e->keep, 2 * capacity * sizeof *e->keep);
		if (keep)
			e->keep = keep;
		if (!views || !dims || !keep) {
			PyErr_NoMemory();
			return NULL;
		}
		e->capacity = capacity;
	}
	memset(&e->views[e->count], 0, sizeof *e->views);
	e->dims[e->count] = NULL;
	e->keep[2 * e->count] = e->keep[2 * e->count + 1] = NULL;
	return &e->views[e->count++];
}

/* encode_tensor writes the persistent id of a tensor or an array. It is defined in tensors.h. */
static int encode_tensor(Encoder *e, PyObject *o);

/* little_endian writes n bytes of v. */
static void little_endian(uint8_t *to, uint64_t v, int n) {
	int i;
	for (i = 0; i < n; i++)
		to[i] = (uint8_t)(v >> (8 * i));
}

static int encode_int(Encoder *e, int64_t v) {
	uint8_t c[10];
	int n = 8;
	if (v >= 0 && v < 256) {
		c[0] = 'K';
		c[1] = (uint8_t)v;
		return buffer_write(&e->out, c, 2);
	}
	if (v >= 0 && v < 65536) {
		c[0] = 'M';
		little_endian(c + 1, (uint64_t)v, 2);
		return buffer_write(&e->out, c, 3);
	}
	if (v >= INT32_MIN && v <= INT32_MAX) {
		c[0] = 'J';
		little_endian(c + 1, (uint64_t)v, 4);
		return buffer_write(&e->out, c, 5);
	}
	c[0] = 0x8a; /* LONG1, in as few bytes as keep the sign */
	while (n > 1 && (v >> (8 * n - 9) == 0 || v >> (8 * n - 9) == -1))
		n--;
	c[1] = (uint8_t)n;
	little_endian(c + 2, (uint64_t)v, n);
	return buffer_write(&e->out, c, 2 + n);
}

/* encode_counted writes bytes after an opcode and their length. */
static int encode_counted(Encoder *e, const char *p, size_t n, uint8_t op1, uint8_t op4, uint8_t op8) {
	uint8_t head[9];
	size_t length;
	if (n < 256) {
		head[0] = op1;
		little_endian(head + 1, n, 1);
		length = 2;
	} else if (n <= UINT32_MAX) {
		head[0] = op4;
		little_endian(head + 1, n, 4);
		length = 5;
	} else {
		head[0] = op8;
		little_endian(head + 1, n, 8);
		length = 9;
	}
	if (buffer_write(&e->out, head, length) < 0)
		return FAILED;
	return buffer_write(&e->out, p, n);
}

static int encode_float(Encoder *e, double v) {
	uint8_t c[9];
	uint64_t bits;
	int i;
	memcpy(&bits, &v, 8);
	c[0] = 'G';
	for (i = 0; i < 8; i++)
		c[1 + i] = (uint8_t)(bits >> (56 - 8 * i));
	return buffer_write(&e->out, c, 9);
}

static int encode_string(Encoder *e, PyObject *o) {
	Py_ssize_t n;
	const char *p = as_utf8(o, &n);
	if (!p) {
		PyErr_Clear(); /* a surrogate, which pickle writes in its own way */
		return NOT_SIMPLE;
	}
	return encode_counted(e, p, (size_t)n, 0x8c, 'X', 0x8d);
}

static int encode_bytes(Encoder *e, PyObject *o) {
	char *p;
	Py_ssize_t n;
	if (PyBytes_AsStringAndSize(o, &p, &n) < 0)
		return FAILED;
	return encode_counted(e, p, (size_t)n, 'C', 'B', 0x8e);
}

/* remember notes an object whose identity a pickle keeps. It returns NOT_SIMPLE if it occurs again. */
static int remember(Encoder *e, PyObject *o) {
	int i;
	for (i = 0; i < e->nseen; i++)
		if (e->seen[i] == o)
			return NOT_SIMPLE;
	if (e->nseen == MAX_SEEN)
		return NOT_SIMPLE;
	e->seen[e->nseen++] = o;
	return DONE;
}

static int encode(Encoder *e, PyObject *o, int depth);

static int encode_tuple(Encoder *e, PyObject *o, int depth) {
	static const uint8_t closing[] = {')', 0x85, 0x86, 0x87};
	Py_ssize_t n = PyTuple_Size(o), i;
	int r;
	if (n > MAX_ITEMS)
		return NOT_SIMPLE;
	if (n && (r = remember(e, o)) != DONE)
		return r;
	if (n > 3 && buffer_byte(&e->out, '(') < 0)
		return FAILED;
	for (i = 0; i < n; i++)
		if ((r = encode(e, PyTuple_GetItem(o, i), depth + 1)) != DONE)
			return r;
	return buffer_byte(&e->out, n > 3 ? 't' : closing[n]);
}

static int encode_list(Encoder *e, PyObject *o, int depth) {
	Py_ssize_t n = PyList_Size(o), i;
	int r;
	if (n > MAX_ITEMS)
		return NOT_SIMPLE;
	if ((r = remember(e, o)) != DONE)
		return r;
	if (buffer_byte(&e->out, ']') < 0)
		return FAILED;
	if (n == 0)
		return DONE;
	if (buffer_byte(&e->out, '(') < 0)
		return FAILED;
	for (i = 0; i < n; i++) {
		PyObject *item;
		if (i >= PyList_Size(o)) /* another thread has shortened the list */
			return NOT_SIMPLE;
		item = PyList_GetItem(o, i);
		Py_INCREF(item);
		r = encode(e, item, depth + 1);
		Py_DECREF(item);
		if (r != DONE)
			return r;
	}
	return buffer_byte(&e->out, 'e');
}

static int encode_dict(Encoder *e, PyObject *o, int depth) {
	PyObject *items;
	Py_ssize_t n = PyDict_Size(o), i;
	int r;
	if (n > MAX_ITEMS)
		return NOT_SIMPLE;
	if ((r = remember(e, o)) != DONE)
		return r;
	if (buffer_byte(&e->out, '}') < 0)
		return FAILED;
	if (n == 0)
		return DONE;
	if (buffer_byte(&e->out, '(') < 0 || !(items = PyDict_Items(o)))
		return FAILED;
	r = DONE;
	for (i = 0; r == DONE && i < PyList_Size(items); i++) {
		PyObject *pair = PyList_GetItem(items, i);
		r = encode(e, PyTuple_GetItem(pair, 0), depth + 1);
		if (r == DONE)
			r = encode(e, PyTuple_GetItem(pair, 1), depth + 1);
	}
	Py_DECREF(items);
	return r == DONE ? buffer_byte(&e->out, 'u') : r;
}

/* encode writes a value without the first and the last opcode of a pickle. */
static int encode(Encoder *e, PyObject *o, int depth) {
	PyTypeObject *type = Py_TYPE(o);
	if (depth > MAX_DEPTH)
		return NOT_SIMPLE;
	if (type == &PyLong_Type) {
		int overflow;
		int64_t v = PyLong_AsLongLongAndOverflow(o, &overflow);
		return overflow ? NOT_SIMPLE : encode_int(e, v);
	}
	if (type == &PyUnicode_Type)
		return encode_string(e, o);
	if (type == &PyFloat_Type)
		return encode_float(e, PyFloat_AsDouble(o));
	if (type == &PyTuple_Type)
		return encode_tuple(e, o, depth);
	if (type == &PyList_Type)
		return encode_list(e, o, depth);
	if (type == &PyDict_Type)
		return encode_dict(e, o, depth);
	if (type == &PyBytes_Type)
		return encode_bytes(e, o);
	if (o == Py_None)
		return buffer_byte(&e->out, 'N');
	if (o == Py_True || o == Py_False)
		return buffer_byte(&e->out, o == Py_True ? 0x88 : 0x89);
	return encode_tensor(e, o);
}

/* encode_pickle writes a whole pickle. */
static int encode_pickle(Encoder *e, PyObject *o) {
	int r;
	if (buffer_write(&e->out, "\x80\x05", 2) < 0)
		return FAILED;
	if ((r = encode(e, o, 0)) != DONE)
		return r;
	return buffer_byte(&e->out, '.');
}

/* load_tensor returns the object of a persistent id. It is defined in tensors.h. */
typedef struct Loader Loader;
static PyObject *load_tensor(Loader *l, PyObject *id);

/* A Decoder reads one pickle. Objects on the stack and in the memo are owned by it. */
typedef struct {
	const uint8_t *at, *end;
	PyObject **stack, **memo;
	Py_ssize_t depth, capacity, nmemo, memocap;
	Py_ssize_t marks[64];
	int nmarks;
	Loader *loader; /* returns the objects of persistent ids */
} Decoder;

static int push(Decoder *d, PyObject *o) {
	if (!o)
		return FAILED;
	if (d->depth == d->capacity) {
		Py_ssize_t capacity = d->capacity ? d->capacity * 2 : 64;
		PyObject **stack = capacity > MAX_STACK ? NULL : realloc(d->stack, capacity * sizeof *stack);
		if (!stack) {
			Py_DECREF(o);
			PyErr_NoMemory();
			return FAILED;
		}
		d->stack = stack;
		d->capacity = capacity;
	}
	d->stack[d->depth++] = o;
	return DONE;
}

/* floor_of returns the lowest position of the stack that an opcode may pop. */
static Py_ssize_t floor_of(Decoder *d) { return d->nmarks ? d->marks[d->nmarks - 1] : 0; }

static int has(Decoder *d, Py_ssize_t n) { return d->depth - floor_of(d) >= n; }

static int decode_string(Decoder *d, size_t n, int text) {
	const char *p = (const char *)d->at;
	if ((size_t)(d->end - d->at) < n)
		return NOT_SIMPLE;
	d->at += n;
	return push(d, text ? PyUnicode_DecodeUTF8(p, (Py_ssize_t)n, "surrogatepass")
	                    : PyBytes_FromStringAndSize(p, (Py_ssize_t)n));
}

/* decode_count reads a length of n bytes. */
static int decode_count(Decoder *d, int n, uint64_t *v) {
	int i;
	if (d->end - d->at < n)
		return NOT_SIMPLE;
	*v = 0;
	for (i = 0; i < n; i++)
		*v |= (uint64_t)d->at[i] << (8 * i);
	d->at += n;
	return DONE;
}

static int decode_tuple(Decoder *d, Py_ssize_t n) {
	PyObject *t;
	Py_ssize_t i;
	if (!has(d, n))
		return NOT_SIMPLE;
	if (!(t = PyTuple_New(n)))
		return FAILED;
	d->depth -= n;
	for (i = 0; i < n; i++)
		PyTuple_SetItem(t, i, d->stack[d->depth + i]);
	return push(d, t);
}

/* decode_items adds the objects above position first to the list or the dict below them. */
static int decode_items(Decoder *d, Py_ssize_t first, int dict) {
	PyObject *to;
	Py_ssize_t i, step = dict ? 2 : 1;
	int r = DONE;
	if (first - 1 < floor_of(d) || (d->depth - first) % step)
		return NOT_SIMPLE;
	to = d->stack[first - 1];
	if (Py_TYPE(to) != (dict ? &PyDict_Type : &PyList_Type))
		return NOT_SIMPLE;
	for (i = first; r == DONE && i < d->depth; i += step)
		if ((dict ? PyDict_SetItem(to, d->stack[i], d->stack[i + 1]) : PyList_Append(to, d->stack[i])) < 0)
			r = FAILED;
	while (d->depth > first)
		Py_DECREF(d->stack[--d->depth]);
	return r;
}

static int pop_mark(Decoder *d, Py_ssize_t *first) {
	if (!d->nmarks)
		return NOT_SIMPLE;
	*first = d->marks[--d->nmarks];
	return DONE;
}

static int decode_long(Decoder *d, uint64_t n) {
	uint64_t v;
	if (n == 0)
		return push(d, PyLong_FromLong(0));
	if (n > 8)
		return NOT_SIMPLE;
	if (decode_count(d, (int)n, &v) != DONE)
		return NOT_SIMPLE;
	if (n < 8 && v >> (8 * n - 1))
		v |= ~(uint64_t)0 << (8 * n);
	return push(d, PyLong_FromLongLong((int64_t)v));
}

static int decode_float(Decoder *d) {
	uint64_t bits = 0;
	double v;
	int i;
	if (d->end - d->at < 8)
		return NOT_SIMPLE;
	for (i = 0; i < 8; i++)
		bits = bits << 8 | d->at[i];
	d->at += 8;
	memcpy(&v, &bits, 8);
	return push(d, PyFloat_FromDouble(v));
}

static int decode_memoize(Decoder *d) {
	if (!has(d, 1))
		return NOT_SIMPLE;
	if (d->nmemo == d->memocap) {
		Py_ssize_t capacity = d->memocap ? d->memocap * 2 : 64;
		PyObject **memo = capacity > MAX_STACK ? NULL : realloc(d->memo, capacity * sizeof *memo);
		if (!memo) {
			PyErr_NoMemory();
			return FAILED;
		}
		d->memo = memo;
		d->memocap = capacity;
	}
	Py_INCREF(d->stack[d->depth - 1]);
	d->memo[d->nmemo++] = d->stack[d->depth - 1];
	return DONE;
}

static int decode_memo(Decoder *d, uint64_t i) {
	if (i >= (uint64_t)d->nmemo)
		return NOT_SIMPLE;
	Py_INCREF(d->memo[i]);
	return push(d, d->memo[i]);
}

static int decode_persistent(Decoder *d) {
	PyObject *id, *o;
	if (!has(d, 1))
		return NOT_SIMPLE;
	id = d->stack[--d->depth];
	o = load_tensor(d->loader, id);
	Py_DECREF(id);
	return push(d, o);
}

/* decode_op reads one opcode. It sets *stop for the last one. */
static int decode_op(Decoder *d, int *stop) {
	uint64_t v = 0;
	Py_ssize_t first;
	switch (*d->at++) {
	case '.': *stop = 1; return DONE;
	case 'N': Py_INCREF(Py_None); return push(d, Py_None);
	case 0x88: Py_INCREF(Py_True); return push(d, Py_True);
	case 0x89: Py_INCREF(Py_False); return push(d, Py_False);
	case 'K': return decode_count(d, 1, &v) == DONE ? push(d, PyLong_FromLong((long)v)) : NOT_SIMPLE;
	case 'M': return decode_count(d, 2, &v) == DONE ? push(d, PyLong_FromLong((long)v)) : NOT_SIMPLE;
	case 'J': return decode_count(d, 4, &v) == DONE ? push(d, PyLong_FromLong((int32_t)v)) : NOT_SIMPLE;
	case 0x8a: return decode_count(d, 1, &v) == DONE ? decode_long(d, v) : NOT_SIMPLE;
	case 'G': return decode_float(d);
	case 0x8c: return decode_count(d, 1, &v) == DONE ? decode_string(d, v, 1) : NOT_SIMPLE;
	case 'X': return decode_count(d, 4, &v) == DONE ? decode_string(d, v, 1) : NOT_SIMPLE;
	case 0x8d: return decode_count(d, 8, &v) == DONE ? decode_string(d, v, 1) : NOT_SIMPLE;
	case 'C': return decode_count(d, 1, &v) == DONE ? decode_string(d, v, 0) : NOT_SIMPLE;
	case 'B': return decode_count(d, 4, &v) == DONE ? decode_string(d, v, 0) : NOT_SIMPLE;
	case 0x8e: return decode_count(d, 8, &v) == DONE ? decode_string(d, v, 0) : NOT_SIMPLE;
	case 0x95: return decode_count(d, 8, &v); /* FRAME */
	case 0x94: return decode_memoize(d);
	case 'h': return decode_count(d, 1, &v) == DONE ? decode_memo(d, v) : NOT_SIMPLE;
	case 'j': return decode_count(d, 4, &v) == DONE ? decode_memo(d, v) : NOT_SIMPLE;
	case ']': return push(d, PyList_New(0));
	case '}': return push(d, PyDict_New());
	case ')': return push(d, PyTuple_New(0));
	case 0x85: return decode_tuple(d, 1);
	case 0x86: return decode_tuple(d, 2);
	case 0x87: return decode_tuple(d, 3);
	case 'Q': return decode_persistent(d);
	case 'a': return has(d, 2) ? decode_items(d, d->depth - 1, 0) : NOT_SIMPLE;
	case 's': return has(d, 3) ? decode_items(d, d->depth - 2, 1) : NOT_SIMPLE;
	case '(':
		if (d->nmarks == 64)
			return NOT_SIMPLE;
		d->marks[d->nmarks++] = d->depth;
		return DONE;
	case 't': return pop_mark(d, &first) == DONE ? decode_tuple(d, d->depth - first) : NOT_SIMPLE;
	case 'e': return pop_mark(d, &first) == DONE ? decode_items(d, first, 0) : NOT_SIMPLE;
	case 'u': return pop_mark(d, &first) == DONE ? decode_items(d, first, 1) : NOT_SIMPLE;
	}
	return NOT_SIMPLE;
}

/* decode reads a pickle into *value. The caller owns the value if it returns DONE. */
static int decode(const void *pickle, size_t n, Loader *loader, PyObject **value) {
	Decoder d = {0};
	int r = NOT_SIMPLE, stop = 0;
	d.at = pickle;
	d.end = d.at + n;
	d.loader = loader;
	if (n >= 3 && d.at[0] == 0x80 && d.at[1] <= 5) {
		d.at += 2;
		r = DONE;
	}
	while (r == DONE && !stop)
		r = d.at < d.end ? decode_op(&d, &stop) : NOT_SIMPLE;
	if (r == DONE && (d.depth != 1 || d.nmarks || d.at != d.end))
		r = NOT_SIMPLE;
	if (r == DONE)
		*value = d.stack[--d.depth];
	while (d.depth)
		Py_DECREF(d.stack[--d.depth]);
	while (d.nmemo)
		Py_DECREF(d.memo[--d.nmemo]);
	free(d.stack);
	free(d.memo);
	return r;
}
