/* peers.c tests libshoal between processes: joining, the death of a peer in each role, and handover.
 * The program executes itself as its peers. */
#include "check.h"

static char address[64];

/* peer joins the domain of the parent, says so by the event "ready", and acts its role. */
static int peer(const char *role, const char *argument) {
	shoal_handle h, ready, m;
	if (strcmp(role, "import") == 0) { /* the import joins the domain */
		unsigned char token[SHOAL_MAX_TOKEN];
		FILE *f = fopen(argument, "rb");
		size_t n = fread(token, 1, sizeof(token), f);
		fclose(f);
		OK(shoal_import(token, n, 10, &h));
		CHECK(shoal_joined() && shoal_kind(h) == SHOAL_KIND_QUEUE);
		float *x;
		shoal_tensor_info info;
		char space[16];
		shoal_buffer b = {.bytes = space, .capacity = 16, .tensors = &info, .tensor_capacity = 1};
		OK(shoal_get_into(h, 10, &b));
		x = info.data;
		x[1] = x[0] + 1;
		OK(shoal_close(info.handle));
		OK(shoal_put(h, "seen", 4, NULL, 0, 10));
		return 0;
	}
	if (strcmp(role, "other domain") == 0) {
		OK(shoal_queue_new(1, &h));
		WANT(SHOAL_DOMAIN, shoal_join(argument, KEY, sizeof(KEY), 10));
		return 0;
	}
	OK(shoal_join(argument, KEY, sizeof(KEY), 10));
	OK(shoal_lookup("ready", SHOAL_KIND_EVENT, &ready));
	if (strcmp(role, "sender") == 0) {
		OK(shoal_lookup("object", SHOAL_KIND_SENDER, &h));
		OK(shoal_put(h, "last", 4, NULL, 0, 10));
	} else if (strcmp(role, "mutex") == 0) {
		OK(shoal_lookup("object", SHOAL_KIND_NONE, &h));
		OK(shoal_lock(h, 10));
	} else if (strcmp(role, "task") == 0) {
		OK(shoal_lookup("object", SHOAL_KIND_JOINABLE, &h));
		OK(shoal_get(h, 10, &m));
	} else if (strcmp(role, "barrier") == 0) {
		OK(shoal_lookup("object", SHOAL_KIND_BARRIER, &h));
	} else if (strcmp(role, "permit") == 0) {
		OK(shoal_lookup("object", SHOAL_KIND_SEMAPHORE, &h));
		OK(shoal_acquire(h, 10));
	} else if (strcmp(role, "getter") == 0) {
		OK(shoal_lookup("object", SHOAL_KIND_QUEUE, &h));
		OK(shoal_event_set(ready));
		OK(shoal_get(h, -1, &m));
		return 1;
	} else if (strcmp(role, "holder") == 0) {
		int64_t shape[1] = {1 << 20};
		OK(shoal_tensor_zeros(FLOAT32, 1, shape, &h, NULL));
	} else if (strcmp(role, "storer") == 0) {
		OK(shoal_lookup("object", SHOAL_KIND_LATEST, &h));
		OK(shoal_latest_store(h, "new", 3, NULL, 0, 10, NULL));
	} else {
		return 2;
	}
	OK(shoal_event_set(ready));
	for (;;)
		pause();
}

/* play binds an object, starts a peer with the role, waits until it is ready, and returns it. */
static pid_t play(const char *role, shoal_handle object) {
	shoal_handle ready;
	OK(shoal_event_new(&ready));
	OK(shoal_bind("ready", ready, 10));
	if (object != 0)
		OK(shoal_bind("object", object, 10));
	pid_t pid = start(role, address, NULL);
	OK(shoal_event_wait(ready, 20));
	OK(shoal_close(ready));
	OK(shoal_unlink("ready"));
	if (object != 0)
		OK(shoal_unlink("object"));
	return pid;
}

static void kill_peer(pid_t pid) {
	kill(pid, SIGKILL);
	finish(pid, -SIGKILL);
}

static void test_sender(void) {
	shoal_handle q, s, r, m;
	OK(shoal_queue_new(4, &q));
	OK(shoal_end(q, SHOAL_SENDING, &s));
	OK(shoal_end(q, SHOAL_RECEIVING, &r));
	OK(shoal_close(q));
	pid_t pid = play("sender", s);
	OK(shoal_close(s));
	OK(shoal_get(r, 10, &m));
	OK(shoal_close(m));
	WANT(SHOAL_TIMEOUT, shoal_get(r, 0.05, &m));
	kill_peer(pid);
	WANT(SHOAL_CLOSED, shoal_get(r, 10, &m));
	CHECK(shoal_error_process() == pid);
	OK(shoal_close(r));
}

static void test_mutex(int recursive) {
	shoal_handle l;
	OK(recursive ? shoal_rmutex_new(&l) : shoal_mutex_new(&l));
	pid_t pid = play("mutex", l);
	int holder;
	OK(shoal_lock_holder(l, &holder));
	CHECK(holder == pid);
	WANT(SHOAL_LOCKED, shoal_lock(l, 0));
	kill_peer(pid);
	WANT(SHOAL_OWNER_DIED, shoal_lock(l, 10));
	CHECK(shoal_error_process() == pid);
	OK(shoal_mark_consistent(l));
	OK(shoal_unlock(l));
	OK(shoal_lock(l, 0));
	OK(shoal_unlock(l));
	pid = play("mutex", l);
	kill_peer(pid);
	WANT(SHOAL_OWNER_DIED, shoal_lock(l, 10));
	OK(shoal_unlock(l)); /* without shoal_mark_consistent */
	WANT(SHOAL_BROKEN, shoal_lock(l, 10));
	OK(shoal_close(l));
}

static void test_task(void) {
	shoal_handle j;
	OK(shoal_joinable_new(4, &j));
	OK(shoal_put(j, "task", 4, NULL, 0, 10));
	pid_t pid = play("task", j);
	WANT(SHOAL_TIMEOUT, shoal_task_join(j, 0.05));
	kill_peer(pid);
	WANT(SHOAL_PEER_DIED, shoal_task_join(j, 10));
	CHECK(shoal_error_process() == pid);
	OK(shoal_task_join(j, 10));
	OK(shoal_close(j));
}

static void test_barrier(void) {
	shoal_handle b;
	OK(shoal_barrier_new(2, &b));
	pid_t pid = play("barrier", b);
	pid_t killer = fork();
	if (killer == 0) {
		sleep_for(0.1);
		kill(pid, SIGKILL);
		_exit(0);
	}
	WANT(SHOAL_BROKEN, shoal_barrier_wait(b, 10, NULL));
	CHECK(shoal_error_process() == pid);
	finish(killer, 0);
	finish(pid, -SIGKILL);
	OK(shoal_close(b));
}

static void test_permit(void) {
	shoal_handle s;
	OK(shoal_semaphore_new(1, 0, &s));
	pid_t pid = play("permit", s);
	WANT(SHOAL_LOCKED, shoal_acquire(s, 0));
	kill_peer(pid);
	OK(shoal_acquire(s, 10));
	OK(shoal_close(s));
}

/* test_getter kills a peer in the middle of a wait: no message goes to the dead. */
static void test_getter(void) {
	shoal_handle q, m;
	OK(shoal_queue_new(4, &q));
	pid_t pid = play("getter", q);
	sleep_for(0.02);
	kill_peer(pid);
	OK(shoal_put(q, "x", 1, NULL, 0, 0));
	OK(shoal_get(q, 10, &m));
	OK(shoal_close(m));
	OK(shoal_close(q));
}

static void test_holder(void) {
	shoal_stats s = {.size = sizeof(s)};
	OK(shoal_get_stats(&s));
	int64_t before = s.bytes;
	pid_t pid = play("holder", 0);
	OK(shoal_get_stats(&s));
	CHECK(s.bytes >= before + (4 << 20) && s.processes == 2);
	kill_peer(pid);
	double until = seconds() + 10;
	do {
		sleep_for(0.01);
		OK(shoal_get_stats(&s));
	} while (s.bytes > before && seconds() < until);
	CHECK(s.bytes <= before);
}

static void test_storer(void) {
	shoal_handle l, m;
	uint64_t v;
	OK(shoal_latest_new("old", 3, NULL, 0, &l));
	pid_t pid = play("storer", l);
	kill_peer(pid);
	OK(shoal_latest_wait(l, 1, 10, &m, &v));
	CHECK(v == 2);
	OK(shoal_close(m));
	OK(shoal_close(l));
}

/* test_import hands a queue to a process that is in no domain. The exporter closes its handle before. */
static void test_import(void) {
	shoal_handle q, copy, t, m;
	int64_t shape[1] = {2};
	float *x;
	OK(shoal_queue_new(4, &q));
	OK(shoal_tensor_zeros(FLOAT32, 1, shape, &t, (void **)&x));
	x[0] = 41;
	OK(shoal_put(q, "x", 1, &(shoal_view){.handle = t}, 1, 0));
	unsigned char token[SHOAL_MAX_TOKEN];
	size_t n;
	OK(shoal_export(q, 1, -1, token, sizeof(token), &n));
	OK(shoal_dup(q, &copy));
	OK(shoal_close(q));
	char path[] = "/tmp/shoal-token-XXXXXX";
	int fd = mkstemp(path);
	CHECK(write(fd, token, n) == (ssize_t)n);
	close(fd);
	pid_t pid = start("import", path, NULL);
	finish(pid, 0);
	unlink(path);
	CHECK(x[1] == 42);
	OK(shoal_get(copy, 10, &m));
	OK(shoal_close(m));
	OK(shoal_close(copy));
	OK(shoal_close(t));
}

int main(int argc, char **argv) {
	if (argc > 2)
		return peer(argv[1], argv[2]);
	snprintf(address, sizeof(address), "@shoal-peers-%d", (int)getpid());
	shoal_handle l;
	OK(shoal_create(&(shoal_options){.size = sizeof(shoal_options), .budget = 64 << 20}));
	OK(shoal_listen(address, KEY, sizeof(KEY), &l));
	test_sender();
	test_mutex(0);
	test_mutex(1);
	test_task();
	test_barrier();
	test_permit();
	test_getter();
	test_holder();
	test_storer();
	test_import();
	pid_t pid = start("other domain", address, NULL);
	finish(pid, 0);
	OK(shoal_leave(0));
	puts("ok");
	return 0;
}
