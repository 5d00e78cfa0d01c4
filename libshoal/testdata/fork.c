/* fork.c tests what a forked child may do: nothing with its copy of the library, and everything with a
 * second copy, which imports the parent's objects. */
#include "check.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>

#ifndef LIBRARY
#error "LIBRARY must be the path of libshoal.so"
#endif

/* A library is a second copy of libshoal, by its functions. */
static struct {
	int (*import)(const shoal_fork_ticket *, shoal_handle, double, shoal_handle *);
	int (*done)(shoal_fork_ticket *);
	int (*put)(shoal_handle, const void *, size_t, const shoal_view *, size_t, double);
	int (*get)(shoal_handle, double, shoal_handle *);
	int (*bytes)(shoal_handle, const void **, size_t *);
	int (*describe)(shoal_handle, shoal_tensor_info *);
	int (*close)(shoal_handle);
	int (*forked)(void);
	size_t (*message)(char *, size_t);
} copy;

/* load loads a second copy of the library from memory, because the loader knows the file already. */
static void load(void) {
	int from = open(LIBRARY, O_RDONLY | O_CLOEXEC), to = memfd_create("libshoal", MFD_CLOEXEC);
	CHECK(from >= 0 && to >= 0);
	char buffer[1 << 16];
	for (ssize_t n; (n = read(from, buffer, sizeof(buffer))) > 0;)
		CHECK(write(to, buffer, (size_t)n) == n);
	char path[64];
	snprintf(path, sizeof(path), "/proc/self/fd/%d", to);
	void *l = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (l == NULL)
		fprintf(stderr, "%s\n", dlerror());
	CHECK(l != NULL);
	*(void **)&copy.import = dlsym(l, "shoal_fork_import");
	*(void **)&copy.done = dlsym(l, "shoal_fork_done");
	*(void **)&copy.put = dlsym(l, "shoal_put");
	*(void **)&copy.get = dlsym(l, "shoal_get");
	*(void **)&copy.bytes = dlsym(l, "shoal_message_bytes");
	*(void **)&copy.describe = dlsym(l, "shoal_tensor_describe");
	*(void **)&copy.close = dlsym(l, "shoal_close");
	*(void **)&copy.forked = dlsym(l, "shoal_forked");
	*(void **)&copy.message = dlsym(l, "shoal_error_message");
	CHECK(copy.forked() == 0 && shoal_forked() == 1);
}

/* COPY_OK is OK for a function of the second copy. */
#define COPY_OK(call) COPY_WANT(SHOAL_OK, call)
#define COPY_WANT(code, call) \
	do { \
		int got = call; \
		if (got != code) { \
			char text[1000] = ""; \
			copy.message(text, sizeof(text)); \
			fprintf(stderr, "%d: %s: %s: %s\n", __LINE__, #call, shoal_code_name(got), text); \
			_exit(1); \
		} \
	} while (0)

/* refused checks that every function refuses a forked child, without touching Go. */
static void refused(shoal_handle q) {
	shoal_handle h = q;
	shoal_stats s = {.size = sizeof(s)};
	size_t n;
	int i;
	int64_t l, shape[1] = {1};
	uint64_t v;
	uint8_t ready;
	const void *p;
	void *data;
	char buffer[SHOAL_MAX_TOKEN];
	shoal_tensor_info info;
	shoal_fork_ticket ticket;
	CHECK(shoal_forked() == 1 && shoal_abi() == SHOAL_ABI && shoal_kind(q) == SHOAL_KIND_NONE);
	CHECK(shoal_joined() == 0 && shoal_contains(&h) == 0 && shoal_version() != NULL);
	int codes[] = {
		shoal_close(q), shoal_dup(q, &h), shoal_create(NULL), shoal_listen("@x", "k", 1, &h), shoal_join("@x", "k", 1, 1),
		shoal_leave(0), shoal_set_process_name("x"), shoal_get_stats(&s), shoal_tensor_empty(FLOAT32, 1, shape, &h, NULL),
		shoal_tensor_zeros(FLOAT32, 1, shape, &h, NULL), shoal_tensor_copy(NULL, &h, NULL), shoal_tensor_wrap(NULL, &h),
		shoal_tensor_view(q, FLOAT32, 1, shape, NULL, 0, &h), shoal_tensor_describe(q, &info), shoal_put(q, "", 0, NULL, 0, -1),
		shoal_get(q, -1, &h), shoal_get_into(q, -1, NULL), shoal_put_many(q, NULL, 0, -1, &n),
		shoal_get_many(q, -1, &h, 1, &n), shoal_message_bytes(q, &p, &n), shoal_message_tensor_count(q, &n),
		shoal_message_tensor(q, 0, &info), shoal_queue_new(1, &h), shoal_joinable_new(1, &h), shoal_task_done(q),
		shoal_task_join(q, -1), shoal_pipe_new(1, &h, &h), shoal_end(q, 1, &h), shoal_close_end(q, 1), shoal_finish(q),
		shoal_length(q, &l), shoal_capacity(q, &l), shoal_poll(q, -1), shoal_latest_new("", 0, NULL, 0, &h),
		shoal_latest_store(q, "", 0, NULL, 0, -1, NULL), shoal_latest_load(q, &h, NULL), shoal_latest_version(q, &v),
		shoal_latest_wait(q, 0, -1, &h, NULL), shoal_bind("x", q, -1), shoal_lookup("x", 0, &h), shoal_unlink("x"),
		shoal_names(NULL, 0, NULL, NULL), shoal_mutex_new(&h), shoal_rmutex_new(&h), shoal_lock(q, -1), shoal_unlock(q),
		shoal_mark_consistent(q), shoal_lock_holder(q, &i), shoal_semaphore_new(1, 0, &h), shoal_acquire(q, -1),
		shoal_release(q), shoal_permits(q, &i), shoal_cond_new(0, &h), shoal_cond_wait(q, -1), shoal_cond_notify(q, 1),
		shoal_event_new(&h), shoal_event_set(q), shoal_event_clear(q), shoal_event_is_set(q, &i), shoal_event_wait(q, -1),
		shoal_barrier_new(1, &h), shoal_barrier_wait(q, -1, NULL), shoal_barrier_reset(q), shoal_barrier_abort(q),
		shoal_barrier_state(q, NULL, NULL, NULL), shoal_memory_new(NULL, 1, &h, &data), shoal_memory_data(q, &data, &n),
		shoal_wait_any(&q, 1, -1, &ready), shoal_ready_fd(q, 0, &i), shoal_canceller_new(&h), shoal_cancel(q),
		shoal_canceller_reset(q), shoal_use_canceller(q), shoal_set_spin(0), shoal_export(q, 1, -1, buffer, sizeof(buffer), &n),
		shoal_import(buffer, 1, -1, &h), shoal_fork_prepare(&ticket), shoal_fork_import(&ticket, q, -1, &h)};
	for (size_t k = 0; k < sizeof(codes) / sizeof(codes[0]); k++) {
		if (codes[k] != SHOAL_FORKED)
			fprintf(stderr, "call %zu returned %s\n", k, shoal_code_name(codes[k]));
		CHECK(codes[k] == SHOAL_FORKED);
	}
	CHECK(says("shoal_fork_import"));
}

/* import_objects is a child that imports a queue and a tensor which the parent closes meanwhile. */
static void import_objects(shoal_fork_ticket *ticket, shoal_handle queue, shoal_handle tensor, float *memory, int go) {
	char b;
	CHECK(read(go, &b, 1) == 1); /* the parent has closed its handles */
	load();
	shoal_handle q, t, other;
	COPY_OK(copy.import(ticket, queue, 10, &q));
	COPY_OK(copy.import(ticket, tensor, 10, &t));
	COPY_OK(copy.import(ticket, tensor, 10, &other)); /* twice */
	COPY_OK(copy.close(other));
	COPY_WANT(SHOAL_NOT_FOUND, copy.import(ticket, queue ^ 1, 10, &other));
	COPY_OK(copy.done(ticket));
	shoal_tensor_info info;
	COPY_OK(copy.describe(t, &info));
	float *x = info.data;
	CHECK(x != memory && x[0] == 7 && memory[0] == 7);
	x[1] = 8;
	CHECK(memory[1] == 8); /* the parent's address is still of the same memory */
	COPY_OK(copy.put(q, "imported", 8, &(shoal_view){.handle = t}, 1, 10));
	_exit(0);
}

static void test_import(void) {
	shoal_handle queue, kept, tensor, m, late;
	int64_t shape[1] = {4};
	float *x;
	OK(shoal_queue_new(4, &queue));
	OK(shoal_dup(queue, &kept));
	OK(shoal_tensor_zeros(FLOAT32, 1, shape, &tensor, (void **)&x));
	x[0] = 7;
	int go[2];
	CHECK(pipe(go) == 0);
	shoal_fork_ticket ticket;
	OK(shoal_fork_prepare(&ticket));
	CHECK(ticket.length > 0 && ticket.lifeline >= 0);
	WANT(SHOAL_ARGUMENT, shoal_fork_import(&ticket, queue, 1, &m)); /* not in the parent */
	pid_t pid = fork();
	if (pid == 0)
		import_objects(&ticket, queue, tensor, x, go[0]);
	OK(shoal_fork_parent(&ticket));
	OK(shoal_close(queue));
	OK(shoal_close(tensor));
	OK(shoal_tensor_zeros(FLOAT32, 1, shape, &late, NULL)); /* made after the fork: not kept */
	OK(shoal_close(late));
	CHECK(write(go[1], "x", 1) == 1);
	OK(shoal_get(kept, 20, &m));
	shoal_tensor_info info;
	OK(shoal_message_tensor(m, 0, &info));
	CHECK(info.data == x && x[1] == 8);
	OK(shoal_close(info.handle));
	OK(shoal_close(m));
	finish(pid, 0);
	OK(shoal_close(kept));
	/* nothing is kept once the child is gone */
	shoal_stats s = {.size = sizeof(s)};
	double until = seconds() + 10;
	do {
		sleep_for(0.01);
		OK(shoal_get_stats(&s));
	} while ((s.handles > 0 || s.in_transit > 0) && seconds() < until);
	CHECK(s.handles == 0 && s.in_transit == 0);
}

/* test_exec checks that a child that executes another program ends its lifeline. */
static void test_exec(void) {
	shoal_handle q, m;
	shoal_fork_ticket ticket;
	OK(shoal_queue_new(4, &q));
	shoal_handle r;
	OK(shoal_end(q, SHOAL_RECEIVING, &r));
	OK(shoal_fork_prepare(&ticket));
	pid_t pid = fork();
	if (pid == 0) {
		execlp("sleep", "sleep", "100", (char *)NULL);
		_exit(127);
	}
	OK(shoal_fork_parent(&ticket));
	OK(shoal_close(q));
	WANT(SHOAL_CLOSED, shoal_get(r, 10, &m)); /* the kept sending end is closed with the lifeline */
	kill(pid, SIGKILL);
	finish(pid, -SIGKILL);
	OK(shoal_close(r));
}

int main(void) {
	shoal_fork_ticket ticket;
	OK(shoal_fork_prepare(&ticket)); /* before there is anything */
	CHECK(ticket.length == 0 && ticket.lifeline == -1);
	OK(shoal_fork_parent(&ticket));
	WANT(SHOAL_ARGUMENT, shoal_fork_prepare(NULL));
	shoal_handle q;
	OK(shoal_queue_new(1, &q));
	pid_t pid = fork();
	if (pid == 0) {
		refused(q);
		_exit(0);
	}
	finish(pid, 0);
	OK(shoal_close(q));
	test_import();
	test_exec();
	OK(shoal_leave(1));
	puts("ok");
	return 0;
}
