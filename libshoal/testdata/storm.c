/* storm.c kills the receivers of a queue at random while they work, as often as the argument says. It
 * keeps a ledger: each message is answered once, or was in the hands of a receiver that was killed. At
 * the end nothing is left: no bytes, no messages in transit, no participants. */
#include "check.h"

enum { WORKERS = 3, WINDOW = 32 };

static char address[64];

/* work answers tasks with their number, and holds a lock meanwhile, until it is killed. */
static int work(const char *at) {
	shoal_handle tasks, answers, lock;
	OK(shoal_join(at, KEY, sizeof(KEY), 30));
	OK(shoal_lookup("tasks", SHOAL_KIND_RECEIVER, &tasks));
	OK(shoal_lookup("answers", SHOAL_KIND_SENDER, &answers));
	OK(shoal_lookup("lock", SHOAL_KIND_MUTEX, &lock));
	for (;;) {
		uint64_t number;
		shoal_tensor_info info;
		shoal_buffer b = {.bytes = &number, .capacity = sizeof(number), .tensors = &info, .tensor_capacity = 1};
		int code = shoal_get_into(tasks, -1, &b);
		if (code == SHOAL_CLOSED)
			return 0;
		OK(code);
		CHECK(b.length == sizeof(number) && b.tensor_count == 1 && ((uint64_t *)info.data)[1000] == number);
		code = shoal_lock(lock, 30);
		if (code == SHOAL_OWNER_DIED)
			code = shoal_mark_consistent(lock);
		OK(code);
		OK(shoal_put(answers, &number, sizeof(number), &(shoal_view){.handle = info.handle}, 1, 30));
		OK(shoal_unlock(lock));
		OK(shoal_close(info.handle));
	}
}

static shoal_handle tasks, answers;
static uint64_t sent, answered, doubled;
static unsigned char *ledger;

/* send sends the next task if there is room. */
static void send(void) {
	shoal_handle t;
	uint64_t *x;
	int64_t shape[1] = {2048};
	OK(shoal_tensor_empty((shoal_dtype){1, 64, 1}, 1, shape, &t, (void **)&x));
	x[1000] = sent;
	int code = shoal_put(tasks, &sent, sizeof(sent), &(shoal_view){.handle = t}, 1, 0);
	OK(shoal_close(t));
	if (code == SHOAL_FULL)
		return;
	OK(code);
	sent++;
}

/* receive takes the answers that there are. */
static void receive(double timeout) {
	for (;; timeout = 0) {
		uint64_t number;
		shoal_tensor_info info;
		shoal_buffer b = {.bytes = &number, .capacity = sizeof(number), .tensors = &info, .tensor_capacity = 1};
		int code = shoal_get_into(answers, timeout, &b);
		if (code == SHOAL_EMPTY || code == SHOAL_TIMEOUT)
			return;
		OK(code);
		CHECK(((uint64_t *)info.data)[1000] == number && number < sent);
		doubled += ledger[number];
		ledger[number] = 1;
		answered++;
		OK(shoal_close(info.handle));
	}
}

int main(int argc, char **argv) {
	if (argc > 2)
		return work(argv[2]);
	int kills = argc > 1 ? atoi(argv[1]) : 20;
	size_t most = 1 << 22;
	ledger = calloc(most, 1);
	srand(1);
	snprintf(address, sizeof(address), "@shoal-storm-%d", (int)getpid());
	shoal_handle l, q, r, s, lock;
	OK(shoal_create(&(shoal_options){.size = sizeof(shoal_options), .budget = 256 << 20}));
	OK(shoal_listen(address, KEY, sizeof(KEY), &l));
	OK(shoal_queue_new(WINDOW, &q));
	OK(shoal_end(q, SHOAL_SENDING, &tasks));
	OK(shoal_end(q, SHOAL_RECEIVING, &r));
	OK(shoal_close(q));
	OK(shoal_queue_new(WINDOW, &q));
	OK(shoal_end(q, SHOAL_RECEIVING, &answers));
	OK(shoal_end(q, SHOAL_SENDING, &s));
	OK(shoal_close(q));
	OK(shoal_mutex_new(&lock));
	OK(shoal_bind("tasks", r, 10));
	OK(shoal_bind("answers", s, 10));
	OK(shoal_bind("lock", lock, 10));
	pid_t workers[WORKERS];
	for (int i = 0; i < WORKERS; i++)
		workers[i] = start("work", address, NULL);
	for (int k = 0; k < kills; k++) {
		double until = seconds() + (rand() % 100) / 1000.0;
		while (seconds() < until && sent < most) {
			send();
			receive(rand() % 4 == 0 ? 0.001 : 0);
		}
		int victim = rand() % WORKERS;
		kill(workers[victim], SIGKILL);
		finish(workers[victim], -SIGKILL);
		workers[victim] = start("work", address, NULL);
	}
	/* the rest: all that can still be answered is answered */
	double until = seconds() + 60;
	int64_t left = 1;
	for (uint64_t before = answered; seconds() < until && (left > 0 || before != answered);) {
		before = answered;
		receive(0.5);
		OK(shoal_length(tasks, &left));
	}
	OK(shoal_finish(tasks));
	for (int i = 0; i < WORKERS; i++)
		finish(workers[i], 0);
	receive(0.2);
	printf("%d kills, %llu sent, %llu answered, %llu twice\n", kills, (unsigned long long)sent,
		(unsigned long long)answered, (unsigned long long)doubled);
	CHECK(doubled == 0);
	CHECK(answered > 0 && sent - answered <= (uint64_t)kills);
	OK(shoal_unlink("tasks"));
	OK(shoal_unlink("answers"));
	OK(shoal_unlink("lock"));
	shoal_handle all[] = {tasks, answers, r, s, lock, l};
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		OK(shoal_close(all[i]));
	shoal_stats stats = {.size = sizeof(stats)};
	until = seconds() + 20;
	do {
		sleep_for(0.02);
		OK(shoal_get_stats(&stats));
	} while ((stats.processes > 1 || stats.in_transit > 0 || stats.blocks > 1) && seconds() < until);
	if (stats.blocks > 1)
		fprintf(stderr, "%lld blocks of %lld bytes, %lld in transit, %d processes\n", (long long)stats.blocks,
			(long long)stats.bytes, (long long)stats.in_transit, stats.processes);
	CHECK(stats.processes == 1 && stats.in_transit == 0 && stats.handles == 0 && stats.blocks <= 1);
	OK(shoal_leave(0));
	return 0;
}
