/* calls.c tests each function of libshoal within one process: results, wrong arguments, wrong handles,
 * timeouts, and closed ends. */
#include "check.h"

#include <poll.h>
#include <pthread.h>

static shoal_handle queue, mutex, event, tensor;

static void test_version(void) {
	CHECK(shoal_abi() == SHOAL_ABI);
	CHECK(shoal_version()[0] != 0);
	CHECK(strcmp(shoal_code_name(SHOAL_OK), "SHOAL_OK") == 0);
	CHECK(strcmp(shoal_code_name(SHOAL_UNSUPPORTED), "SHOAL_UNSUPPORTED") == 0);
	CHECK(strcmp(shoal_code_name(-1), "SHOAL_?") == 0 && strcmp(shoal_code_name(1000), "SHOAL_?") == 0);
	CHECK(shoal_forked() == 0);
	char small[5];
	WANT(SHOAL_HANDLE, shoal_close(0));
	CHECK(shoal_error_message(small, sizeof(small)) > 5 && strlen(small) == 4);
	CHECK(shoal_error_message(NULL, 0) > 5);
	CHECK(shoal_error_process() == 0);
}

static void test_domain(void) {
	CHECK(shoal_joined() == 0);
	shoal_stats s = {.size = sizeof(s)};
	OK(shoal_get_stats(&s));
	CHECK(s.processes == 0 && s.handles == 0);
	WANT(SHOAL_ARGUMENT, shoal_create(&(shoal_options){0}));
	WANT(SHOAL_ARGUMENT, shoal_create(&(shoal_options){.size = sizeof(shoal_options), .budget = -1}));
	OK(shoal_create(&(shoal_options){.size = sizeof(shoal_options), .budget = 64 << 20}));
	WANT(SHOAL_DOMAIN, shoal_create(NULL));
	CHECK(shoal_joined() == 1);
	OK(shoal_get_stats(&s));
	CHECK(s.processes == 1 && s.limit == 64 << 20);
	s.size = 1;
	WANT(SHOAL_ARGUMENT, shoal_get_stats(&s));
	WANT(SHOAL_ARGUMENT, shoal_get_stats(NULL));
	OK(shoal_set_process_name("tester"));
	char comm[32] = "";
	FILE *f = fopen("/proc/self/comm", "r");
	CHECK(fgets(comm, sizeof(comm), f) != NULL && strcmp(comm, "tester\n") == 0);
	fclose(f);
	WANT(SHOAL_ARGUMENT, shoal_set_process_name(""));
	WANT(SHOAL_ARGUMENT, shoal_set_process_name("a\nb"));
	WANT(SHOAL_ARGUMENT, shoal_set_process_name(NULL));
	shoal_handle l;
	WANT(SHOAL_ARGUMENT, shoal_listen("@x", "", 0, &l));
	WANT(SHOAL_ARGUMENT, shoal_listen(NULL, KEY, sizeof(KEY), &l));
	WANT(SHOAL_ARGUMENT, shoal_listen("@x", KEY, sizeof(KEY), NULL));
	char address[64];
	snprintf(address, sizeof(address), "@shoal-test-%d", (int)getpid());
	OK(shoal_listen(address, KEY, sizeof(KEY), &l));
	CHECK(shoal_kind(l) == SHOAL_KIND_LISTENER);
	shoal_handle other;
	WANT(SHOAL_NAME_TAKEN, shoal_listen(address, KEY, sizeof(KEY), &other));
	WANT(SHOAL_UNSUPPORTED, shoal_dup(l, &other));
	OK(shoal_join(address, KEY, sizeof(KEY), 5)); /* the domain that it is in */
	WANT(SHOAL_KEY, shoal_join(address, "wrong", 5, 5));
	WANT(SHOAL_NOT_FOUND, shoal_join("@shoal-test-nobody", KEY, sizeof(KEY), 5));
	OK(shoal_close(l));
	WANT(SHOAL_NOT_FOUND, shoal_join(address, KEY, sizeof(KEY), 5));
}

static void test_handles(void) {
	OK(shoal_queue_new(4, &queue));
	OK(shoal_mutex_new(&mutex));
	OK(shoal_event_new(&event));
	CHECK(shoal_kind(queue) == SHOAL_KIND_QUEUE && shoal_kind(mutex) == SHOAL_KIND_MUTEX);
	CHECK(shoal_kind(0) == SHOAL_KIND_NONE && shoal_kind(~(shoal_handle)0) == SHOAL_KIND_NONE);
	CHECK(shoal_kind(queue ^ (shoal_handle)1 << 40) == SHOAL_KIND_NONE);
	shoal_handle copy, e;
	OK(shoal_dup(queue, &copy));
	CHECK(copy != queue);
	OK(shoal_close(copy));
	WANT(SHOAL_HANDLE, shoal_close(copy));
	WANT(SHOAL_HANDLE, shoal_dup(copy, &e));
	WANT(SHOAL_ARGUMENT, shoal_dup(queue, NULL));
	OK(shoal_put(queue, "x", 1, NULL, 0, 0)); /* the copy shares the queue */
	shoal_handle m;
	OK(shoal_get(queue, 0, &m));
	WANT(SHOAL_HANDLE, shoal_put(copy, "x", 1, NULL, 0, 0));
	CHECK(says("not an open handle"));
	/* each index is reused under another generation */
	OK(shoal_event_new(&e));
	shoal_handle stale = e;
	OK(shoal_close(e));
	OK(shoal_event_new(&e));
	CHECK((uint32_t)e == (uint32_t)stale && e != stale);
	WANT(SHOAL_HANDLE, shoal_event_set(stale));
	OK(shoal_close(e));
	OK(shoal_close(m));
}

static void test_wrong_kinds(void) {
	shoal_handle h;
	int n;
	int64_t length;
	uint64_t version;
	size_t size;
	const void *bytes;
	shoal_tensor_info info;
	shoal_buffer buffer = {0};
	WANT(SHOAL_HANDLE, shoal_put(mutex, "", 0, NULL, 0, 0));
	WANT(SHOAL_HANDLE, shoal_get(mutex, 0, &h));
	CHECK(says("nothing can be received from a mutex"));
	WANT(SHOAL_HANDLE, shoal_get_into(mutex, 0, &buffer));
	WANT(SHOAL_HANDLE, shoal_put_many(mutex, NULL, 0, 0, &size));
	WANT(SHOAL_HANDLE, shoal_get_many(mutex, 0, &h, 1, &size));
	WANT(SHOAL_HANDLE, shoal_poll(mutex, 0));
	WANT(SHOAL_HANDLE, shoal_message_bytes(queue, &bytes, &size));
	WANT(SHOAL_HANDLE, shoal_message_tensor(queue, 0, &info));
	WANT(SHOAL_HANDLE, shoal_message_tensor_count(queue, &size));
	WANT(SHOAL_HANDLE, shoal_task_done(queue));
	WANT(SHOAL_HANDLE, shoal_task_join(queue, 0));
	WANT(SHOAL_HANDLE, shoal_end(mutex, SHOAL_SENDING, &h));
	WANT(SHOAL_HANDLE, shoal_close_end(mutex, SHOAL_SENDING));
	WANT(SHOAL_HANDLE, shoal_finish(mutex));
	WANT(SHOAL_HANDLE, shoal_length(mutex, &length));
	WANT(SHOAL_HANDLE, shoal_capacity(mutex, &length));
	WANT(SHOAL_HANDLE, shoal_latest_store(queue, "", 0, NULL, 0, 0, NULL));
	WANT(SHOAL_HANDLE, shoal_latest_load(queue, &h, NULL));
	WANT(SHOAL_HANDLE, shoal_latest_version(queue, &version));
	WANT(SHOAL_HANDLE, shoal_latest_wait(queue, 0, 0, &h, NULL));
	WANT(SHOAL_HANDLE, shoal_lock(queue, 0));
	WANT(SHOAL_HANDLE, shoal_unlock(queue));
	WANT(SHOAL_HANDLE, shoal_mark_consistent(queue));
	WANT(SHOAL_HANDLE, shoal_lock_holder(queue, &n));
	WANT(SHOAL_HANDLE, shoal_acquire(mutex, 0));
	WANT(SHOAL_HANDLE, shoal_release(mutex));
	WANT(SHOAL_HANDLE, shoal_permits(mutex, &n));
	WANT(SHOAL_HANDLE, shoal_cond_new(queue, &h));
	WANT(SHOAL_HANDLE, shoal_cond_wait(mutex, 0));
	WANT(SHOAL_HANDLE, shoal_cond_notify(mutex, 1));
	WANT(SHOAL_HANDLE, shoal_event_set(mutex));
	WANT(SHOAL_HANDLE, shoal_event_clear(mutex));
	WANT(SHOAL_HANDLE, shoal_event_is_set(mutex, &n));
	WANT(SHOAL_HANDLE, shoal_event_wait(mutex, 0));
	WANT(SHOAL_HANDLE, shoal_barrier_wait(mutex, 0, NULL));
	WANT(SHOAL_HANDLE, shoal_barrier_reset(mutex));
	WANT(SHOAL_HANDLE, shoal_barrier_abort(mutex));
	WANT(SHOAL_HANDLE, shoal_barrier_state(mutex, NULL, NULL, NULL));
	WANT(SHOAL_HANDLE, shoal_memory_data(mutex, NULL, &size));
	WANT(SHOAL_HANDLE, shoal_tensor_describe(mutex, &info));
	WANT(SHOAL_HANDLE, shoal_tensor_view(mutex, FLOAT32, 0, NULL, NULL, 0, &h));
	WANT(SHOAL_HANDLE, shoal_put(queue, "", 0, &(shoal_view){.handle = mutex}, 1, 0));
	WANT(SHOAL_UNSUPPORTED, shoal_ready_fd(mutex, 0, &n));
	uint8_t ready;
	WANT(SHOAL_UNSUPPORTED, shoal_wait_any(&mutex, 1, 0, &ready));
	WANT(SHOAL_HANDLE, shoal_cancel(mutex));
	WANT(SHOAL_HANDLE, shoal_use_canceller(mutex));
	WANT(SHOAL_HANDLE, shoal_canceller_reset(mutex));
}

static void test_tensors(void) {
	int64_t shape[2] = {3, 4};
	void *data;
	OK(shoal_tensor_zeros(FLOAT32, 2, shape, &tensor, &data));
	CHECK(shoal_contains(data) == 1 && shoal_contains(&data) == 0 && (uintptr_t)data % 64 == 0);
	float *x = data;
	for (int i = 0; i < 12; i++) {
		CHECK(x[i] == 0);
		x[i] = (float)i;
	}
	shoal_tensor_info info;
	OK(shoal_tensor_describe(tensor, &info));
	CHECK(info.handle == tensor && info.data == data && info.offset == 0 && info.storage_size == 48 && info.ndim == 2);
	CHECK(info.shared == 1 && info.dtype.code == 2 && info.dtype.bits == 32 && info.dtype.lanes == 1);
	CHECK(info.shape[0] == 3 && info.shape[1] == 4 && info.strides[0] == 4 && info.strides[1] == 1);
	/* a view of the second column, by handle and by memory */
	shoal_handle column, wrapped;
	int64_t rows = 3, step = 4;
	OK(shoal_tensor_view(tensor, FLOAT32, 1, &rows, &step, 1, &column));
	OK(shoal_tensor_describe(column, &info));
	CHECK(info.data == x + 1 && info.offset == 1 && info.strides[0] == 4);
	shoal_view by_memory = {.data = x + 1, .shape = &rows, .strides = &step, .dtype = FLOAT32, .ndim = 1};
	OK(shoal_tensor_wrap(&by_memory, &wrapped));
	OK(shoal_tensor_describe(wrapped, &info));
	CHECK(info.data == x + 1 && info.storage_size == 48);
	/* copies: of a view of the domain, of foreign memory, of memory that is not aligned */
	shoal_handle copy;
	float *y;
	OK(shoal_tensor_copy(&by_memory, &copy, (void **)&y));
	CHECK(y[0] == 1 && y[1] == 5 && y[2] == 9);
	OK(shoal_close(copy));
	OK(shoal_tensor_copy(&(shoal_view){.handle = column}, &copy, (void **)&y));
	CHECK(y[0] == 1 && y[1] == 5 && y[2] == 9);
	OK(shoal_close(copy));
	char raw[64];
	for (int offset = 0; offset < 4; offset++) {
		for (int i = 0; i < 12; i++) {
			float v = (float)(100 + i);
			memcpy(raw + offset + 4 * i, &v, 4);
		}
		int64_t transposed[2] = {4, 3}, steps[2] = {1, 4};
		OK(shoal_tensor_copy(&(shoal_view){.data = raw + offset, .shape = transposed, .strides = steps, .dtype = FLOAT32,
			.ndim = 2}, &copy, (void **)&y));
		for (int i = 0; i < 12; i++)
			CHECK(y[i] == (float)(100 + i / 3 + i % 3 * 4));
		OK(shoal_close(copy));
	}
	WANT(SHOAL_NOT_FOUND, shoal_tensor_wrap(&(shoal_view){.data = raw, .shape = &rows, .dtype = FLOAT32, .ndim = 1}, &copy));
	/* the storage lives as long as one of its views */
	OK(shoal_close(tensor));
	CHECK(x[5] == 5);
	OK(shoal_close(column));
	OK(shoal_tensor_wrap(&by_memory, &column));
	OK(shoal_close(column));
	OK(shoal_close(wrapped));
	WANT(SHOAL_NOT_FOUND, shoal_tensor_wrap(&by_memory, &wrapped));
	/* dtypes */
	shoal_dtype all[] = {{0, 8, 1}, {0, 16, 1}, {0, 32, 1}, {0, 64, 1}, {1, 8, 1}, {1, 16, 1}, {1, 32, 1}, {1, 64, 1},
		{2, 16, 1}, {2, 32, 1}, {2, 64, 1}, {4, 16, 1}, {5, 64, 1}, {5, 128, 1}, {6, 8, 1}, {10, 8, 1}, {12, 8, 1}};
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		OK(shoal_tensor_empty(all[i], 2, shape, &tensor, NULL));
		OK(shoal_tensor_describe(tensor, &info));
		CHECK(memcmp(&info.dtype, &all[i], sizeof(all[i])) == 0 && info.storage_size == 12 * all[i].bits / 8);
		OK(shoal_close(tensor));
	}
	/* scalars, and tensors without elements */
	OK(shoal_tensor_zeros(FLOAT32, 0, NULL, &tensor, &data));
	CHECK(*(float *)data == 0);
	OK(shoal_close(tensor));
	int64_t none[2] = {0, 5};
	OK(shoal_tensor_zeros(FLOAT32, 2, none, &tensor, NULL));
	OK(shoal_tensor_describe(tensor, &info));
	CHECK(info.shape[0] == 0 && info.shape[1] == 5);
	OK(shoal_close(tensor));
}

static void test_wrong_tensors(void) {
	int64_t shape[1] = {4}, negative[1] = {-1}, huge[3] = {1 << 20, 1 << 20, 1 << 20};
	int64_t many[64] = {1};
	shoal_handle h;
	WANT(SHOAL_ARGUMENT, shoal_tensor_empty((shoal_dtype){2, 33, 1}, 1, shape, &h, NULL));
	WANT(SHOAL_ARGUMENT, shoal_tensor_empty((shoal_dtype){2, 32, 2}, 1, shape, &h, NULL));
	WANT(SHOAL_ARGUMENT, shoal_tensor_empty(FLOAT32, -1, shape, &h, NULL));
	WANT(SHOAL_ARGUMENT, shoal_tensor_empty(FLOAT32, 64, many, &h, NULL));
	WANT(SHOAL_ARGUMENT, shoal_tensor_empty(FLOAT32, 1, NULL, &h, NULL));
	WANT(SHOAL_ARGUMENT, shoal_tensor_empty(FLOAT32, 1, negative, &h, NULL));
	WANT(SHOAL_ARGUMENT, shoal_tensor_empty(FLOAT32, 3, huge, &h, NULL));
	WANT(SHOAL_ARGUMENT, shoal_tensor_empty(FLOAT32, 1, shape, NULL, NULL));
	WANT(SHOAL_ARGUMENT, shoal_tensor_copy(NULL, &h, NULL));
	WANT(SHOAL_ARGUMENT, shoal_tensor_copy(&(shoal_view){.shape = shape, .dtype = FLOAT32, .ndim = 1}, &h, NULL));
	float x[4] = {0};
	WANT(SHOAL_ARGUMENT, shoal_tensor_copy(&(shoal_view){.data = x, .shape = shape, .strides = negative, .dtype = FLOAT32,
		.ndim = 1}, &h, NULL));
	int64_t far[1] = {INT64_MAX};
	WANT(SHOAL_ARGUMENT, shoal_tensor_copy(&(shoal_view){.data = x, .shape = shape, .strides = far, .dtype = FLOAT32,
		.ndim = 1}, &h, NULL));
	OK(shoal_tensor_empty(FLOAT32, 1, shape, &tensor, NULL));
	WANT(SHOAL_ARGUMENT, shoal_tensor_view(tensor, FLOAT32, 1, shape, NULL, 1, &h));
	WANT(SHOAL_ARGUMENT, shoal_tensor_view(tensor, FLOAT32, 1, shape, NULL, -1, &h));
	OK(shoal_close(tensor));
	/* a full domain: the message names the holders */
	int64_t most[1] = {32 << 20};
	WANT(SHOAL_NO_MEMORY, shoal_tensor_empty(FLOAT32, 1, most, &h, NULL));
	int64_t half[1] = {10 << 20};
	OK(shoal_tensor_empty(FLOAT32, 1, half, &tensor, NULL));
	WANT(SHOAL_NO_MEMORY, shoal_tensor_empty(FLOAT32, 1, half, &h, NULL));
	char holder[64];
	snprintf(holder, sizeof(holder), "pid %d holds", (int)getpid());
	CHECK(says(holder));
	OK(shoal_close(tensor));
	OK(shoal_tensor_empty(FLOAT32, 1, half, &tensor, NULL));
	OK(shoal_close(tensor));
}

/* zeros returns 100 MiB of zeros, more than the domain has. */
static void *zeros(void) {
	static void *all;
	if (all == NULL)
		all = calloc(100, 1 << 20);
	return all;
}

static void test_messages(void) {
	shoal_handle m;
	const void *bytes;
	size_t n;
	int64_t length, shape[1] = {8};
	WANT(SHOAL_EMPTY, shoal_get(queue, 0, &m));
	double begun = seconds();
	WANT(SHOAL_TIMEOUT, shoal_get(queue, 0.02, &m));
	CHECK(seconds() - begun >= 0.02);
	WANT(SHOAL_ARGUMENT, shoal_get(queue, __builtin_nan(""), &m));
	WANT(SHOAL_ARGUMENT, shoal_get(queue, 0, NULL));
	WANT(SHOAL_ARGUMENT, shoal_put(queue, NULL, 1, NULL, 0, 0));
	WANT(SHOAL_ARGUMENT, shoal_put(queue, "", 0, NULL, 1, 0));
	WANT(SHOAL_ARGUMENT, shoal_get_into(queue, 0, NULL));
	/* bytes, and tensors by handle, by memory of the domain and by other memory */
	float *shared;
	OK(shoal_tensor_zeros(FLOAT32, 1, shape, &tensor, (void **)&shared));
	shared[7] = 7;
	float own[8] = {0, 1, 2, 3, 4, 5, 6, 7};
	int64_t two[1] = {2};
	shoal_view views[3] = {{.handle = tensor}, {.data = shared + 6, .shape = two, .dtype = FLOAT32, .ndim = 1},
		{.data = own, .shape = shape, .dtype = FLOAT32, .ndim = 1}};
	OK(shoal_put(queue, "hello", 5, views, 3, 0));
	OK(shoal_length(queue, &length));
	CHECK(length == 1);
	OK(shoal_poll(queue, 0));
	OK(shoal_get(queue, 1, &m));
	OK(shoal_message_bytes(m, &bytes, &n));
	CHECK(n == 5 && memcmp(bytes, "hello", 5) == 0);
	OK(shoal_message_tensor_count(m, &n));
	CHECK(n == 3);
	shoal_tensor_info info[3];
	for (size_t i = 0; i < 3; i++)
		OK(shoal_message_tensor(m, i, &info[i]));
	WANT(SHOAL_ARGUMENT, shoal_message_tensor(m, 3, &info[0]));
	CHECK(info[0].data == shared && info[1].data == shared + 6 && info[2].data != own);
	OK(shoal_close(m));
	CHECK(((float *)info[2].data)[3] == 3 && shoal_contains(info[2].data));
	shared[0] = 42;
	CHECK(((float *)info[0].data)[0] == 42);
	for (size_t i = 0; i < 3; i++)
		OK(shoal_close(info[i].handle));
	/* into a buffer; and one that is too small */
	char space[8];
	shoal_buffer b = {.bytes = space, .capacity = sizeof(space), .tensors = info, .tensor_capacity = 2};
	OK(shoal_put(queue, "hello", 5, views, 2, 0));
	OK(shoal_get_into(queue, 0, &b));
	CHECK(b.message == 0 && b.length == 5 && memcmp(space, "hello", 5) == 0 && b.tensor_count == 2);
	CHECK(info[0].data == shared && info[1].data == shared + 6);
	OK(shoal_close(info[0].handle));
	OK(shoal_close(info[1].handle));
	OK(shoal_put(queue, "hello", 5, views, 3, 0));
	OK(shoal_get_into(queue, 0, &b));
	CHECK(b.message != 0 && b.length == 5 && b.tensor_count == 3);
	OK(shoal_close(b.message));
	char large[100000];
	memset(large, 'z', sizeof(large));
	OK(shoal_put(queue, large, sizeof(large), NULL, 0, 0));
	OK(shoal_get_into(queue, 0, &b));
	CHECK(b.message != 0 && b.length == sizeof(large));
	OK(shoal_message_bytes(b.message, &bytes, &n));
	CHECK(n == sizeof(large) && memcmp(bytes, large, n) == 0);
	OK(shoal_close(b.message));
	/* a pickle of some megabytes, by a handle and into a buffer */
	size_t huge = 3 << 20;
	char *out = malloc(huge), *in = malloc(huge);
	for (size_t i = 0; i < huge; i++)
		out[i] = (char)(i * 7);
	OK(shoal_put(queue, out, huge, views, 1, 0));
	OK(shoal_put(queue, out, huge, views, 1, 0));
	OK(shoal_get_into(queue, 0, &b));
	CHECK(b.message != 0 && b.length == huge && b.tensor_count == 1);
	OK(shoal_message_bytes(b.message, &bytes, &n));
	CHECK(n == huge && memcmp(bytes, out, n) == 0);
	OK(shoal_close(b.message));
	b.bytes = in;
	b.capacity = huge;
	OK(shoal_get_into(queue, 0, &b));
	CHECK(b.message == 0 && b.length == huge && memcmp(in, out, huge) == 0 && info[0].data == shared);
	OK(shoal_close(info[0].handle));
	WANT(SHOAL_NO_MEMORY, shoal_put(queue, zeros(), (size_t)100 << 20, NULL, 0, 0));
	free(out);
	free(in);
	b.bytes = space;
	b.capacity = sizeof(space);
	/* several at once; a full queue */
	shoal_item items[6] = {{"a", 1, NULL, 0}, {"b", 1, views, 1}, {"c", 1, NULL, 0}, {"d", 1, NULL, 0}, {"e", 1, NULL, 0},
		{"f", 1, NULL, 0}};
	WANT(SHOAL_FULL, shoal_put_many(queue, items, 6, 0, &n));
	CHECK(n == 4);
	WANT(SHOAL_FULL, shoal_put(queue, "", 0, NULL, 0, 0));
	WANT(SHOAL_TIMEOUT, shoal_put(queue, "", 0, NULL, 0, 0.01));
	shoal_handle messages[6];
	OK(shoal_get_many(queue, 1, messages, 6, &n));
	CHECK(n == 4);
	for (size_t i = 0; i < n; i++) {
		size_t have;
		OK(shoal_message_bytes(messages[i], &bytes, &have));
		CHECK(have == 1 && *(const char *)bytes == 'a' + (char)i);
		OK(shoal_close(messages[i]));
	}
	WANT(SHOAL_EMPTY, shoal_get_many(queue, 0, messages, 6, &n));
	CHECK(n == 0);
	WANT(SHOAL_EMPTY, shoal_poll(queue, 0));
	WANT(SHOAL_TIMEOUT, shoal_poll(queue, 0.01));
	OK(shoal_close(tensor));
}

static void test_ends(void) {
	shoal_handle q, s, r, m;
	int64_t n;
	WANT(SHOAL_TOO_LARGE, shoal_queue_new(0, &q));
	WANT(SHOAL_TOO_LARGE, shoal_queue_new(-2, &q));
	WANT(SHOAL_ARGUMENT, shoal_queue_new(1, NULL));
	OK(shoal_queue_new(SHOAL_UNBOUNDED, &q));
	for (int i = 0; i < 10000; i++)
		OK(shoal_put(q, "x", 1, NULL, 0, 0));
	OK(shoal_length(q, &n));
	CHECK(n == 10000);
	OK(shoal_close(q));
	OK(shoal_queue_new(3, &q));
	OK(shoal_capacity(q, &n));
	CHECK(n == 3);
	OK(shoal_end(q, SHOAL_SENDING, &s));
	OK(shoal_end(q, SHOAL_RECEIVING, &r));
	WANT(SHOAL_ARGUMENT, shoal_end(q, 3, &r));
	CHECK(shoal_kind(s) == SHOAL_KIND_SENDER && shoal_kind(r) == SHOAL_KIND_RECEIVER);
	OK(shoal_close(q));
	WANT(SHOAL_HANDLE, shoal_get(s, 0, &m));
	WANT(SHOAL_HANDLE, shoal_put(r, "", 0, NULL, 0, 0));
	OK(shoal_put(s, "x", 1, NULL, 0, 0));
	OK(shoal_close(s));
	OK(shoal_get(r, 0, &m));
	OK(shoal_close(m));
	WANT(SHOAL_CLOSED, shoal_get(r, 0, &m));
	WANT(SHOAL_CLOSED, shoal_get(r, -1, &m));
	OK(shoal_poll(r, -1));
	OK(shoal_close(r));
	/* ends closed by name */
	OK(shoal_queue_new(3, &q));
	WANT(SHOAL_ARGUMENT, shoal_close_end(q, 0));
	WANT(SHOAL_ARGUMENT, shoal_close_end(q, 4));
	OK(shoal_close_end(q, SHOAL_RECEIVING));
	WANT(SHOAL_CLOSED, shoal_get(q, 0, &m));
	WANT(SHOAL_CLOSED, shoal_put(q, "", 0, NULL, 0, -1)); /* no receiver is left */
	OK(shoal_close(q));
	OK(shoal_queue_new(3, &q));
	OK(shoal_put(q, "x", 1, NULL, 0, 0));
	OK(shoal_finish(q));
	WANT(SHOAL_CLOSED, shoal_put(q, "", 0, NULL, 0, -1));
	OK(shoal_get(q, -1, &m));
	OK(shoal_close(m));
	WANT(SHOAL_CLOSED, shoal_get(q, -1, &m));
	OK(shoal_close(q));
	/* pipes */
	shoal_handle a, b;
	OK(shoal_pipe_new(1, &a, &b));
	CHECK(shoal_kind(a) == SHOAL_KIND_PIPE && shoal_kind(b) == SHOAL_KIND_PIPE);
	OK(shoal_put(a, "to b", 4, NULL, 0, 0));
	OK(shoal_put(b, "to a", 4, NULL, 0, 0));
	OK(shoal_length(a, &n));
	CHECK(n == 1);
	OK(shoal_capacity(a, &n));
	CHECK(n == 64);
	OK(shoal_get(a, 0, &m));
	const void *bytes;
	size_t size;
	OK(shoal_message_bytes(m, &bytes, &size));
	CHECK(size == 4 && memcmp(bytes, "to a", 4) == 0);
	OK(shoal_close(m));
	OK(shoal_close(a));
	OK(shoal_get(b, 0, &m));
	OK(shoal_close(m));
	WANT(SHOAL_CLOSED, shoal_get(b, -1, &m));
	WANT(SHOAL_CLOSED, shoal_put(b, "", 0, NULL, 0, -1));
	OK(shoal_close(b));
	OK(shoal_pipe_new(0, &a, &b));
	CHECK(shoal_kind(a) == SHOAL_KIND_RECEIVER && shoal_kind(b) == SHOAL_KIND_SENDER);
	OK(shoal_put(b, "x", 1, NULL, 0, 0));
	OK(shoal_get(a, 0, &m));
	OK(shoal_close(m));
	OK(shoal_close(b));
	WANT(SHOAL_CLOSED, shoal_get(a, -1, &m));
	OK(shoal_close(a));
	/* tasks */
	OK(shoal_joinable_new(8, &q));
	OK(shoal_task_join(q, 0));
	OK(shoal_put(q, "task", 4, NULL, 0, 0));
	WANT(SHOAL_TIMEOUT, shoal_task_join(q, 0));
	WANT(SHOAL_TIMEOUT, shoal_task_join(q, 0.01));
	OK(shoal_get(q, 0, &m));
	WANT(SHOAL_TIMEOUT, shoal_task_join(q, 0.01));
	OK(shoal_task_done(q));
	OK(shoal_task_join(q, -1));
	WANT(SHOAL_RELEASED, shoal_task_done(q));
	OK(shoal_close(m));
	OK(shoal_close_end(q, SHOAL_SENDING));
	WANT(SHOAL_CLOSED, shoal_put(q, "", 0, NULL, 0, 0));
	OK(shoal_close(q));
}

static void test_latest(void) {
	shoal_handle l, m;
	uint64_t v;
	const void *bytes;
	size_t n;
	OK(shoal_latest_new("one", 3, NULL, 0, &l));
	OK(shoal_latest_version(l, &v));
	CHECK(v == 1);
	OK(shoal_latest_store(l, "two", 3, NULL, 0, -1, &v));
	CHECK(v == 2);
	OK(shoal_latest_load(l, &m, &v));
	OK(shoal_message_bytes(m, &bytes, &n));
	CHECK(v == 2 && n == 3 && memcmp(bytes, "two", 3) == 0);
	OK(shoal_close(m));
	OK(shoal_latest_wait(l, 1, 0, &m, &v));
	OK(shoal_close(m));
	WANT(SHOAL_EMPTY, shoal_latest_wait(l, 2, 0, &m, &v));
	WANT(SHOAL_TIMEOUT, shoal_latest_wait(l, 2, 0.02, &m, &v));
	int fd;
	struct pollfd p = {.events = POLLIN};
	OK(shoal_ready_fd(l, 1, &fd));
	p.fd = fd;
	CHECK(poll(&p, 1, 0) == 1);
	OK(shoal_ready_fd(l, 2, &fd));
	CHECK(poll(&p, 1, 10) == 0);
	OK(shoal_latest_store(l, "three", 5, NULL, 0, 0, NULL));
	CHECK(poll(&p, 1, 5000) == 1);
	OK(shoal_close(l));
	WANT(SHOAL_HANDLE, shoal_latest_load(l, &m, &v));
}

static void test_names(void) {
	shoal_handle h, all[16];
	int n = 0;
	OK(shoal_queue_new(1, &all[n++]));
	OK(shoal_joinable_new(1, &all[n++]));
	OK(shoal_end(all[0], SHOAL_SENDING, &all[n++]));
	OK(shoal_end(all[0], SHOAL_RECEIVING, &all[n++]));
	OK(shoal_pipe_new(1, &all[n], &all[n + 1]));
	n += 2;
	OK(shoal_latest_new("", 0, NULL, 0, &all[n++]));
	OK(shoal_mutex_new(&all[n++]));
	OK(shoal_rmutex_new(&all[n++]));
	OK(shoal_semaphore_new(1, 0, &all[n++]));
	OK(shoal_cond_new(0, &all[n++]));
	OK(shoal_event_new(&all[n++]));
	OK(shoal_barrier_new(1, &all[n++]));
	OK(shoal_memory_new(NULL, 100, &all[n++], NULL));
	int64_t one[1] = {1};
	OK(shoal_tensor_zeros(FLOAT32, 1, one, &all[n++], NULL));
	char name[16][16];
	for (int i = 0; i < n; i++) {
		snprintf(name[i], sizeof(name[i]), "name %02d", i);
		OK(shoal_bind(name[i], all[i], 1));
		WANT(SHOAL_NAME_TAKEN, shoal_bind(name[i], all[i], 1));
		OK(shoal_lookup(name[i], SHOAL_KIND_NONE, &h));
		CHECK(shoal_kind(h) == shoal_kind(all[i]) && h != all[i]);
		OK(shoal_close(h));
		OK(shoal_lookup(name[i], shoal_kind(all[i]), &h));
		OK(shoal_close(h));
		int other = shoal_kind(all[i]) == SHOAL_KIND_EVENT ? SHOAL_KIND_QUEUE : SHOAL_KIND_EVENT;
		WANT(SHOAL_TYPE, shoal_lookup(name[i], other, &h));
	}
	char list[4096];
	size_t needed, count;
	OK(shoal_names(list, sizeof(list), &needed, &count));
	CHECK(count == (size_t)n && needed == 8 * (size_t)n && strcmp(list, "name 00") == 0 && strcmp(list + 8, "name 01") == 0);
	memset(list, 'x', sizeof(list));
	OK(shoal_names(list, 20, &needed, NULL));
	CHECK(needed == 8 * (size_t)n && strcmp(list + 8, "name 01") == 0 && list[16] == 'x');
	OK(shoal_names(NULL, 0, NULL, &count));
	for (int i = 0; i < n; i++) {
		OK(shoal_unlink(name[i]));
		OK(shoal_close(all[i]));
	}
	WANT(SHOAL_NOT_FOUND, shoal_unlink("name 00"));
	WANT(SHOAL_NOT_FOUND, shoal_lookup("name 00", SHOAL_KIND_NONE, &h));
	WANT(SHOAL_ARGUMENT, shoal_lookup("name 00", SHOAL_KIND_LISTENER, &h));
	WANT(SHOAL_ARGUMENT, shoal_lookup("name 00", 1000, &h));
	WANT(SHOAL_ARGUMENT, shoal_bind("", queue, 1));
	WANT(SHOAL_ARGUMENT, shoal_bind(NULL, queue, 1));
	WANT(SHOAL_HANDLE, shoal_bind("stale", all[0], 1));
}

static void test_memory(void) {
	shoal_handle m, other;
	char *a, *b;
	size_t n;
	OK(shoal_memory_new("block", 1000, &m, (void **)&a));
	CHECK(a[999] == 0);
	WANT(SHOAL_NAME_TAKEN, shoal_memory_new("block", 1000, &other, NULL));
	OK(shoal_lookup("block", SHOAL_KIND_MEMORY, &other));
	OK(shoal_memory_data(other, (void **)&b, &n));
	CHECK(n == 1000);
	a[5] = 'q';
	CHECK(b[5] == 'q');
	OK(shoal_close(m));
	CHECK(b[5] == 'q');
	OK(shoal_close(other));
	OK(shoal_unlink("block"));
	WANT(SHOAL_ARGUMENT, shoal_memory_new("", 1, &m, NULL));
	WANT(SHOAL_NO_MEMORY, shoal_memory_new(NULL, (size_t)1 << 30, &m, NULL));
	WANT(SHOAL_TOO_LARGE, shoal_memory_new(NULL, (size_t)1 << 50, &m, NULL));
}

static void *lock_in_thread(void *result) {
	*(int *)result = shoal_lock(*(shoal_handle *)((int *)result + 2), 0);
	return NULL;
}

static void test_locks(void) {
	shoal_handle r, s, c, b, e;
	int n;
	OK(shoal_lock_holder(mutex, &n));
	CHECK(n == 0);
	OK(shoal_lock(mutex, 0));
	OK(shoal_lock_holder(mutex, &n));
	CHECK(n == getpid());
	WANT(SHOAL_LOCKED, shoal_lock(mutex, 0));
	WANT(SHOAL_TIMEOUT, shoal_lock(mutex, 0.02));
	char holder[32];
	snprintf(holder, sizeof(holder), "by process %d", (int)getpid());
	CHECK(says(holder));
	WANT(SHOAL_NOT_OWNER, shoal_mark_consistent(mutex));
	OK(shoal_unlock(mutex));
	WANT(SHOAL_NOT_OWNER, shoal_unlock(mutex));
	/* an rmutex belongs to a thread */
	OK(shoal_rmutex_new(&r));
	OK(shoal_lock(r, 0));
	OK(shoal_lock(r, -1));
	struct {
		int code, space;
		shoal_handle h;
	} other = {0, 0, r};
	pthread_t thread;
	pthread_create(&thread, NULL, lock_in_thread, &other);
	pthread_join(thread, NULL);
	CHECK(other.code == SHOAL_LOCKED);
	OK(shoal_unlock(r));
	OK(shoal_lock_holder(r, &n));
	CHECK(n == getpid());
	OK(shoal_unlock(r));
	WANT(SHOAL_NOT_OWNER, shoal_unlock(r));
	pthread_create(&thread, NULL, lock_in_thread, &other);
	pthread_join(thread, NULL);
	CHECK(other.code == SHOAL_OK);
	WANT(SHOAL_NOT_OWNER, shoal_unlock(r));
	OK(shoal_close(r));
	/* semaphores */
	WANT(SHOAL_TOO_LARGE, shoal_semaphore_new(-1, 0, &s));
	OK(shoal_semaphore_new(2, 1, &s));
	WANT(SHOAL_RELEASED, shoal_release(s));
	OK(shoal_acquire(s, 0));
	OK(shoal_acquire(s, -1));
	OK(shoal_permits(s, &n));
	CHECK(n == 0);
	WANT(SHOAL_LOCKED, shoal_acquire(s, 0));
	WANT(SHOAL_TIMEOUT, shoal_acquire(s, 0.02));
	OK(shoal_release(s));
	OK(shoal_acquire(s, 1));
	OK(shoal_close(s));
	OK(shoal_semaphore_new(0, 0, &s));
	OK(shoal_release(s));
	OK(shoal_permits(s, &n));
	CHECK(n == 1);
	OK(shoal_close(s));
	/* conditions */
	OK(shoal_cond_new(mutex, &c));
	WANT(SHOAL_NOT_OWNER, shoal_cond_wait(c, 0));
	OK(shoal_lock(c, 0));
	WANT(SHOAL_LOCKED, shoal_lock(mutex, 0));
	WANT(SHOAL_TIMEOUT, shoal_cond_wait(c, 0.02));
	OK(shoal_cond_notify(c, 1));
	OK(shoal_cond_notify(c, -1));
	OK(shoal_unlock(c));
	OK(shoal_close(c));
	/* events */
	OK(shoal_event_is_set(event, &n));
	CHECK(n == 0);
	WANT(SHOAL_TIMEOUT, shoal_event_wait(event, 0));
	WANT(SHOAL_TIMEOUT, shoal_event_wait(event, 0.02));
	OK(shoal_event_set(event));
	OK(shoal_event_wait(event, 0));
	OK(shoal_event_wait(event, -1));
	OK(shoal_event_is_set(event, &n));
	CHECK(n == 1);
	OK(shoal_event_clear(event));
	WANT(SHOAL_TIMEOUT, shoal_event_wait(event, 0));
	/* barriers */
	int parties, waiting, broken, index = -1;
	WANT(SHOAL_TOO_LARGE, shoal_barrier_new(0, &b));
	OK(shoal_barrier_new(1, &b));
	OK(shoal_barrier_wait(b, -1, &index));
	CHECK(index == 0);
	OK(shoal_close(b));
	OK(shoal_barrier_new(2, &b));
	OK(shoal_barrier_state(b, &parties, &waiting, &broken));
	CHECK(parties == 2 && waiting == 0 && broken == 0);
	WANT(SHOAL_TIMEOUT, shoal_barrier_wait(b, 0.02, NULL));
	WANT(SHOAL_BROKEN, shoal_barrier_wait(b, 1, NULL));
	OK(shoal_barrier_state(b, NULL, NULL, &broken));
	CHECK(broken == 1);
	OK(shoal_barrier_reset(b));
	OK(shoal_barrier_abort(b));
	WANT(SHOAL_BROKEN, shoal_barrier_wait(b, 1, NULL));
	OK(shoal_close(b));
	OK(shoal_event_new(&e));
	OK(shoal_close(e));
	WANT(SHOAL_HANDLE, shoal_event_wait(e, 0));
}

static void test_readiness(void) {
	struct pollfd p = {.events = POLLIN};
	shoal_handle m, objects[2] = {queue, event};
	uint8_t ready[2];
	int fd;
	OK(shoal_ready_fd(queue, 0, &p.fd));
	CHECK(poll(&p, 1, 10) == 0);
	OK(shoal_put(queue, "x", 1, NULL, 0, 0));
	CHECK(poll(&p, 1, 5000) == 1);
	OK(shoal_ready_fd(queue, 0, &fd));
	CHECK(fd == p.fd && poll(&p, 1, 0) == 1);
	OK(shoal_wait_any(objects, 2, 1, ready));
	CHECK(ready[0] == 1 && ready[1] == 0);
	OK(shoal_get(queue, 0, &m));
	OK(shoal_close(m));
	OK(shoal_ready_fd(queue, 0, &fd));
	CHECK(poll(&p, 1, 10) == 0);
	WANT(SHOAL_EMPTY, shoal_wait_any(objects, 2, 0, ready));
	WANT(SHOAL_TIMEOUT, shoal_wait_any(objects, 2, 0.02, ready));
	WANT(SHOAL_ARGUMENT, shoal_wait_any(objects, 0, 0, ready));
	OK(shoal_put(queue, "x", 1, NULL, 0, 0)); /* the goroutine of the last arm */
	CHECK(poll(&p, 1, 5000) == 1);
	OK(shoal_get(queue, 0, &m));
	OK(shoal_close(m));
	struct pollfd q = {.events = POLLIN};
	OK(shoal_ready_fd(event, 0, &q.fd));
	CHECK(poll(&q, 1, 10) == 0);
	OK(shoal_event_set(event));
	CHECK(poll(&q, 1, 5000) == 1);
	OK(shoal_wait_any(objects, 2, -1, ready));
	CHECK(ready[0] == 0 && ready[1] == 1);
	OK(shoal_event_clear(event));
	OK(shoal_ready_fd(event, 0, &fd));
	CHECK(poll(&q, 1, 10) == 0);
	/* a closed end is ready */
	shoal_handle a, b;
	OK(shoal_pipe_new(0, &a, &b));
	OK(shoal_ready_fd(a, 0, &p.fd));
	CHECK(poll(&p, 1, 0) == 0);
	OK(shoal_close(b));
	CHECK(poll(&p, 1, 5000) == 1);
	OK(shoal_close(a));
}

static shoal_handle waited;

static void *get_forever(void *code) {
	shoal_handle m;
	*(int *)code = shoal_get(waited, -1, &m);
	return NULL;
}

/* test_close_wakes checks that closing an object ends a wait of another thread, napping or parked. */
static void test_close_wakes(void) {
	for (int i = 0; i < 4; i++) {
		OK(shoal_queue_new(1, &waited));
		pthread_t threads[3];
		int codes[3];
		for (int j = 0; j < 3; j++)
			pthread_create(&threads[j], NULL, get_forever, &codes[j]);
		sleep_for(i == 0 ? 0 : 0.03);
		OK(shoal_close(waited));
		for (int j = 0; j < 3; j++) {
			pthread_join(threads[j], NULL);
			CHECK(codes[j] == SHOAL_CLOSED || codes[j] == SHOAL_HANDLE);
		}
	}
}

static void test_export_arguments(void) {
	unsigned char token[SHOAL_MAX_TOKEN];
	size_t n;
	shoal_handle h;
	WANT(SHOAL_ARGUMENT, shoal_export(queue, 1, -1, token, 10, &n));
	WANT(SHOAL_ARGUMENT, shoal_export(queue, 0, -1, token, sizeof(token), &n));
	WANT(SHOAL_ARGUMENT, shoal_export(queue, 1, -1, NULL, sizeof(token), &n));
	WANT(SHOAL_HANDLE, shoal_export(0, 1, -1, token, sizeof(token), &n));
	OK(shoal_export(queue, 2, -1, token, sizeof(token), &n));
	CHECK(n > 80 && n <= SHOAL_MAX_TOKEN);
	OK(shoal_import(token, n, 5, &h)); /* by its own process */
	CHECK(shoal_kind(h) == SHOAL_KIND_QUEUE && h != queue);
	OK(shoal_put(queue, "x", 1, NULL, 0, 0));
	shoal_handle m;
	OK(shoal_get(h, 0, &m));
	OK(shoal_close(m));
	OK(shoal_close(h));
	OK(shoal_import(token, n, 5, &h));
	OK(shoal_close(h));
	WANT(SHOAL_NOT_FOUND, shoal_import(token, n, 5, &h)); /* used up */
	WANT(SHOAL_ARGUMENT, shoal_import("nonsense", 8, 5, &h));
	WANT(SHOAL_ARGUMENT, shoal_import(NULL, 8, 5, &h));
	WANT(SHOAL_ARGUMENT, shoal_import(token, n - 1, 5, &h));
	OK(shoal_export(queue, 1, -1, token, sizeof(token), &n));
	token[4]++;
	WANT(SHOAL_VERSION, shoal_import(token, n, 5, &h));
	token[4]--;
	token[20] ^= 1; /* the nonce */
	WANT(SHOAL_NOT_FOUND, shoal_import(token, n, 5, &h));
	token[20] ^= 1;
	token[60] ^= 1; /* the key */
	WANT(SHOAL_KEY, shoal_import(token, n, 5, &h));
	token[60] ^= 1;
	OK(shoal_import(token, n, 5, &h));
	OK(shoal_close(h));
	OK(shoal_export(queue, 1, 0.01, token, sizeof(token), &n));
	sleep_for(0.05);
	WANT(SHOAL_NOT_FOUND, shoal_import(token, n, 5, &h)); /* expired */
}

/* test_leave checks that nothing is left. */
static void test_leave(void) {
	OK(shoal_close(queue));
	OK(shoal_close(mutex));
	OK(shoal_close(event));
	shoal_stats s = {.size = sizeof(s)};
	OK(shoal_get_stats(&s));
	CHECK(s.handles == 0);
	if (s.bytes > 4 << 20 || s.in_transit != 0)
		fprintf(stderr, "%ld bytes in %ld blocks, %ld in transit\n", (long)s.bytes, (long)s.blocks, (long)s.in_transit);
	CHECK(s.bytes <= 4 << 20 && s.in_transit == 0);
	OK(shoal_leave(1));
	shoal_handle h;
	WANT(SHOAL_CLOSED, shoal_queue_new(1, &h));
	OK(shoal_leave(0));
}

int main(void) {
	test_version();
	test_domain();
	test_handles();
	test_wrong_kinds();
	test_tensors();
	test_wrong_tensors();
	test_messages();
	test_ends();
	test_latest();
	test_names();
	test_memory();
	test_locks();
	test_readiness();
	test_close_wakes();
	test_export_arguments();
	test_leave();
	puts("ok");
	return 0;
}
