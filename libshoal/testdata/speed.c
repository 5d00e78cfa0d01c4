/* speed.c measures libshoal, and a bare eventfd round trip beside it, by turns. Each line is a name, the
 * median in nanoseconds, and the voluntary context switches of this process per round. */
#include "check.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/resource.h>

enum { TURNS = 5 };

static long switches(void) {
	struct rusage u;
	getrusage(RUSAGE_SELF, &u);
	return u.ru_nvcsw;
}

static int compare(const void *a, const void *b) {
	double d = *(const double *)a - *(const double *)b;
	return (d > 0) - (d < 0);
}

static shoal_handle to, from, tensor;
static int there, back;
static char space[64];
static shoal_tensor_info info;
static shoal_buffer buffer = {.bytes = space, .capacity = 64, .tensors = &info, .tensor_capacity = 1};

/* get repeats a get that was interrupted. */
static int get(shoal_handle q) {
	int code;
	while ((code = shoal_get_into(q, 30, &buffer)) == SHOAL_INTERRUPTED)
		;
	return code;
}

static void put_get(void) {
	OK(shoal_put(to, "x", 1, NULL, 0, 0));
	OK(shoal_get_into(to, 0, &buffer));
}

static void put_get_tensor(void) {
	OK(shoal_put(to, "x", 1, &(shoal_view){.handle = tensor}, 1, 0));
	OK(shoal_get_into(to, 0, &buffer));
	OK(shoal_close(info.handle));
}

static void round_small(void) {
	OK(shoal_put(to, "x", 1, NULL, 0, -1));
	OK(get(from));
}

static void round_tensor(void) {
	OK(shoal_put(to, "x", 1, &(shoal_view){.handle = tensor}, 1, -1));
	OK(get(from));
	OK(shoal_close(info.handle));
}

static void round_eventfd(void) {
	uint64_t n = 1;
	CHECK(write(there, &n, 8) == 8);
	CHECK(read(back, &n, 8) == 8);
}

/* A measure is a call, how often it is called in a turn, and the pause before each call in seconds. */
static struct measure {
	const char *name;
	void (*call)(void);
	int count;
	double pause;
	double took[TURNS], switched[TURNS];
} measures[] = {
	{.name = "put_get", .call = put_get, .count = 100000},
	{.name = "put_get_tensor", .call = put_get_tensor, .count = 50000},
	{.name = "round_small", .call = round_small, .count = 10000},
	{.name = "round_tensor", .call = round_tensor, .count = 10000},
	{.name = "round_eventfd", .call = round_eventfd, .count = 10000},
	{.name = "parked_small", .call = round_small, .count = 100, .pause = 0.005},
	{.name = "parked_tensor", .call = round_tensor, .count = 100, .pause = 0.005},
	{.name = "parked_eventfd", .call = round_eventfd, .count = 100, .pause = 0.005},
};

/* run_turn measures the median of the calls of one turn. Calls without a pause are measured by tens. */
static void run_turn(struct measure *m, int turn) {
	int n = m->pause > 0 ? m->count : m->count / 10;
	double *took = malloc(sizeof(double) * (size_t)n);
	long before = switches();
	for (int i = 0; i < n; i++) {
		if (m->pause > 0)
			sleep_for(m->pause);
		double begun = seconds();
		for (int k = 0; k < (m->pause > 0 ? 1 : 10); k++)
			m->call();
		took[i] = (seconds() - begun) / (m->pause > 0 ? 1 : 10);
	}
	m->switched[turn] = (double)(switches() - before) / m->count - (m->pause > 0);
	qsort(took, (size_t)n, sizeof(double), compare);
	m->took[turn] = took[n / 2];
	free(took);
}

/* echo is the other process. */
static int echo(const char *address) {
	OK(shoal_join(address, KEY, sizeof(KEY), 10));
	OK(shoal_lookup("to", SHOAL_KIND_NONE, &to));
	OK(shoal_lookup("from", SHOAL_KIND_NONE, &from));
	for (;;) {
		int code = get(to);
		if (code == SHOAL_CLOSED)
			return 0;
		OK(code);
		if (buffer.tensor_count > 0) {
			OK(shoal_put(from, "x", 1, &(shoal_view){.handle = info.handle}, 1, -1));
			OK(shoal_close(info.handle));
		} else {
			OK(shoal_put(from, "x", 1, NULL, 0, -1));
		}
	}
}

int main(int argc, char **argv) {
	if (argc > 1)
		return echo(argv[1]);
	there = eventfd(0, 0);
	back = eventfd(0, 0);
	pid_t bare = fork();
	if (bare == 0)
		for (uint64_t n = 1;;)
			if (read(there, &n, 8) != 8 || write(back, &n, 8) != 8)
				_exit(1);
	char address[64];
	snprintf(address, sizeof(address), "@shoal-speed-%d", (int)getpid());
	shoal_handle l;
	OK(shoal_listen(address, KEY, sizeof(KEY), &l));
	OK(shoal_queue_new(8, &to));
	OK(shoal_queue_new(8, &from));
	OK(shoal_bind("to", to, 10));
	OK(shoal_bind("from", from, 10));
	int64_t shape[1] = {1 << 18}; /* 1 MiB */
	OK(shoal_tensor_zeros(FLOAT32, 1, shape, &tensor, NULL));
	size_t all = sizeof(measures) / sizeof(measures[0]);
	for (int turn = 0; turn < TURNS; turn++) {
		for (int i = 0; i < 2; i++) /* without the other process */
			run_turn(&measures[i], turn);
	}
	pid_t pid = start(address, NULL, NULL);
	OK(shoal_put(to, "x", 1, NULL, 0, -1));
	OK(get(from));
	for (int turn = 0; turn < TURNS; turn++)
		for (size_t i = 2; i < all; i++)
			run_turn(&measures[i], turn);
	for (size_t i = 0; i < all; i++) {
		struct measure *m = &measures[i];
		qsort(m->took, TURNS, sizeof(double), compare);
		qsort(m->switched, TURNS, sizeof(double), compare);
		printf("%s %.0f %.2f\n", m->name, m->took[TURNS / 2] * 1e9, m->switched[TURNS / 2]);
	}
	kill(bare, SIGKILL);
	finish(bare, -SIGKILL);
	OK(shoal_finish(to));
	finish(pid, 0);
	OK(shoal_leave(0));
	return 0;
}
