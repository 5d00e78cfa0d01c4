/* urgent.c tests that SIGURG, which Go's runtime sends to threads that run its code, ends no wait of a
 * program without signal handlers, and that a handler of any other signal ends waits. */
#include "check.h"

#include <pthread.h>
#include <stdatomic.h>

static volatile sig_atomic_t handled;

static void handle(int signal) { handled = signal; }

static pthread_t waiter;
static atomic_int over, sent;

static void *urge(void *unused) {
	(void)unused;
	while (!atomic_load(&over)) {
		pthread_kill(waiter, SIGURG);
		atomic_fetch_add(&sent, 1);
		sleep_for(0.001);
	}
	return NULL;
}

/* LASTS checks that a wait of 0.1 seconds ends with SHOAL_TIMEOUT, after that time and several signals. */
#define LASTS(call) \
	do { \
		double begun = seconds(); \
		int before = atomic_load(&sent); \
		WANT(SHOAL_TIMEOUT, call); \
		CHECK(seconds() - begun >= 0.1 && atomic_load(&sent) - before > 2); \
	} while (0)

static void *signal_soon(void *unused) {
	(void)unused;
	sleep_for(0.05);
	pthread_kill(waiter, SIGRTMIN);
	return NULL;
}

int main(void) {
	shoal_handle q, m, mutex, cond, event, barrier;
	pthread_t thread;
	uint8_t ready;
	int index;
	OK(shoal_queue_new(1, &q));
	OK(shoal_mutex_new(&mutex));
	OK(shoal_cond_new(mutex, &cond));
	OK(shoal_event_new(&event));
	OK(shoal_barrier_new(2, &barrier));
	waiter = pthread_self();
	CHECK(pthread_create(&thread, NULL, urge, NULL) == 0);
	LASTS(shoal_get(q, 0.1, &m));
	LASTS(shoal_poll(q, 0.1));
	LASTS(shoal_event_wait(event, 0.1));
	LASTS(shoal_wait_any(&event, 1, 0.1, &ready));
	OK(shoal_lock(mutex, 0));
	LASTS(shoal_cond_wait(cond, 0.1));
	OK(shoal_unlock(mutex));
	LASTS(shoal_barrier_wait(barrier, 0.1, &index));
	atomic_store(&over, 1);
	pthread_join(thread, NULL);
	/* every handler of the program ends a wait */
	struct sigaction set = {.sa_handler = handle};
	sigaction(SIGRTMIN, &set, NULL);
	CHECK(pthread_create(&thread, NULL, signal_soon, NULL) == 0);
	while (!handled)
		WANT(SHOAL_INTERRUPTED, shoal_get(q, 30, &m));
	pthread_join(thread, NULL);
	return 0;
}
