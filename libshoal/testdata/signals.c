/* signals.c tests that the library leaves the signal handlers of the program alone, and that signals and
 * cancellers end waits. */
#include "check.h"

#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>

#ifndef LIBRARY
#error "LIBRARY must be the path of libshoal.so"
#endif

static volatile sig_atomic_t handled;

static void handle(int signal) { handled = signal; }

/* F is a function of the library, which is loaded while the program has handlers already. */
#define F(name) ((__typeof__(&name))function(#name))

static void *library;

static void *function(const char *name) {
	void *f = dlsym(library, name);
	if (f == NULL)
		fprintf(stderr, "no function %s\n", name);
	CHECK(f != NULL);
	return f;
}

/* fault is an address that cannot be written. */
static void *volatile fault = (void *)8;

#define RUN(call) CHECK((call) == SHOAL_OK)

static sigjmp_buf after_fault;

static void escape(int signal) {
	handled = signal;
	siglongjmp(after_fault, 1);
}

/* test_dispositions loads the library, uses it, and compares the disposition of every signal. */
static void test_dispositions(void) {
	struct sigaction before[65], after, set = {.sa_handler = handle};
	sigaction(SIGINT, &set, NULL);
	sigaction(SIGCHLD, &set, NULL);
	set.sa_handler = escape;
	sigaction(SIGSEGV, &set, NULL); /* as Python's faulthandler */
	signal(SIGHUP, SIG_IGN);
	signal(SIGPIPE, SIG_IGN); /* as Python has it */
	for (int s = 1; s < 65; s++)
		sigaction(s, NULL, &before[s]);
	library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
	if (library == NULL)
		fprintf(stderr, "%s\n", dlerror());
	CHECK(library != NULL);
	shoal_handle q, m;
	RUN(F(shoal_queue_new)(1, &q));
	RUN(F(shoal_put)(q, "x", 1, NULL, 0, 0));
	RUN(F(shoal_get)(q, 0, &m));
	int changed = 0;
	for (int s = 1; s < 65; s++) {
		if (sigaction(s, NULL, &after) != 0 || after.sa_handler == before[s].sa_handler)
			continue;
		/* Go needs these: faults in Go code, and the preemption of its own goroutines. They pass on to the
		 * program's handler what does not concern Go. */
		int own = s == SIGSEGV || s == SIGBUS || s == SIGFPE || s == SIGURG;
		if (!own)
			fprintf(stderr, "signal %d: the handler was %p, is %p\n", s, (void *)before[s].sa_handler, (void *)after.sa_handler);
		changed += !own;
	}
	CHECK(changed == 0);
	/* a fault of the program's own code reaches its own handler, again and again */
	for (int i = 0; i < 3; i++) {
		handled = 0;
		if (sigsetjmp(after_fault, 1) == 0)
			*(volatile int *)fault = 1;
		CHECK(handled == SIGSEGV);
		RUN(F(shoal_put)(q, "x", 1, NULL, 0, 0));
		RUN(F(shoal_get)(q, 0, &m));
	}
	raise(SIGINT);
	CHECK(handled == SIGINT);
	kill(getpid(), SIGCHLD);
	CHECK(handled == SIGCHLD);
	raise(SIGPIPE); /* still ignored */
	raise(SIGHUP);
	raise(SIGURG); /* ignored by default */
	/* a write to a closed pipe is an error, not the end of the program */
	int fds[2];
	CHECK(pipe(fds) == 0);
	close(fds[0]);
	CHECK(write(fds[1], "x", 1) == -1 && errno == EPIPE);
	close(fds[1]);
	RUN(F(shoal_close)(m));
	RUN(F(shoal_close)(q));
}

static pthread_t waiter;

static void *signal_soon(void *unused) {
	(void)unused;
	sleep_for(0.05);
	pthread_kill(waiter, SIGINT);
	return NULL;
}

/* INTERRUPTED checks that a signal ends a wait of this thread in a moment. */
#define INTERRUPTED(call) \
	do { \
		pthread_t thread; \
		waiter = pthread_self(); \
		handled = 0; \
		pthread_create(&thread, NULL, signal_soon, NULL); \
		double begun = seconds(); \
		int got; \
		while ((got = (call)) == SHOAL_INTERRUPTED && handled == 0) /* without a signal, which is allowed */ \
			; \
		if (got != SHOAL_INTERRUPTED) \
			fprintf(stderr, "%s: got %d\n", #call, got); \
		CHECK(got == SHOAL_INTERRUPTED && handled == SIGINT); \
		double took = seconds() - begun; \
		CHECK(took < 5); \
		pthread_join(thread, NULL); \
	} while (0)

static void test_interrupts(void) {
	shoal_handle q, m, e, l, s, c, mutex;
	RUN(F(shoal_queue_new)(1, &q));
	INTERRUPTED(F(shoal_get)(q, -1, &m));
	INTERRUPTED(F(shoal_get)(q, 30, &m));
	INTERRUPTED(F(shoal_poll)(q, -1));
	RUN(F(shoal_put)(q, "x", 1, NULL, 0, 0));
	INTERRUPTED(F(shoal_put)(q, "y", 1, NULL, 0, -1));
	RUN(F(shoal_event_new)(&e));
	INTERRUPTED(F(shoal_event_wait)(e, -1));
	uint8_t ready;
	INTERRUPTED(F(shoal_wait_any)(&e, 1, -1, &ready));
	RUN(F(shoal_mutex_new)(&mutex));
	RUN(F(shoal_lock)(mutex, 0));
	INTERRUPTED(F(shoal_lock)(mutex, -1));
	RUN(F(shoal_cond_new)(mutex, &c));
	INTERRUPTED(F(shoal_cond_wait)(c, -1));
	RUN(F(shoal_unlock)(mutex)); /* still held after the interruption */
	RUN(F(shoal_semaphore_new)(0, 0, &s));
	INTERRUPTED(F(shoal_acquire)(s, -1));
	RUN(F(shoal_latest_new)("", 0, NULL, 0, &l));
	INTERRUPTED(F(shoal_latest_wait)(l, 1, -1, &m, NULL));
	/* what was interrupted took nothing */
	RUN(F(shoal_get)(q, 0, &m));
	CHECK(F(shoal_get)(q, 0, &m) == SHOAL_EMPTY);
}

static shoal_handle canceller;

static volatile sig_atomic_t cancelled;

static void cancel(int signal) {
	(void)signal;
	cancelled = 1;
	F(shoal_cancel)(canceller);
}

static void *cancel_soon(void *unused) {
	(void)unused;
	sleep_for(0.05);
	F(shoal_cancel)(canceller);
	return NULL;
}

static void test_canceller(void) {
	shoal_handle q, m, other;
	RUN(F(shoal_queue_new)(1, &q));
	RUN(F(shoal_canceller_new)(&canceller));
	CHECK(F(shoal_kind)(canceller) == SHOAL_KIND_CANCELLER);
	RUN(F(shoal_use_canceller)(canceller));
	pthread_t thread;
	pthread_create(&thread, NULL, cancel_soon, NULL);
	CHECK(F(shoal_get)(q, -1, &m) == SHOAL_INTERRUPTED);
	pthread_join(thread, NULL);
	CHECK(F(shoal_get)(q, -1, &m) == SHOAL_INTERRUPTED); /* until the reset */
	RUN(F(shoal_put)(q, "x", 1, NULL, 0, -1));           /* without a wait it works */
	RUN(F(shoal_get)(q, -1, &m));
	RUN(F(shoal_canceller_reset)(canceller));
	CHECK(F(shoal_get)(q, 0.02, &m) == SHOAL_TIMEOUT);
	/* fired by a signal handler, on another thread */
	signal(SIGUSR1, cancel);
	pid_t pid = fork();
	if (pid == 0) {
		sleep_for(0.05);
		kill(getppid(), SIGUSR1);
		_exit(0);
	}
	double begun = seconds();
	while (F(shoal_get)(q, -1, &m) == SHOAL_INTERRUPTED && !cancelled && seconds() < begun + 10)
		;
	CHECK(cancelled && F(shoal_get)(q, -1, &m) == SHOAL_INTERRUPTED);
	int status;
	while (waitpid(pid, &status, 0) != pid)
		;
	/* closed while it is in use */
	RUN(F(shoal_close)(canceller));
	CHECK(F(shoal_cancel)(canceller) == SHOAL_HANDLE);
	CHECK(F(shoal_close)(canceller) == SHOAL_HANDLE);
	CHECK(F(shoal_get)(q, -1, &m) == SHOAL_INTERRUPTED);
	RUN(F(shoal_use_canceller)(0));
	CHECK(F(shoal_get)(q, 0.02, &m) == SHOAL_TIMEOUT);
	RUN(F(shoal_canceller_new)(&other));
	CHECK(other != canceller && (uint32_t)other == (uint32_t)canceller);
	CHECK(F(shoal_get)(q, 0.02, &m) == SHOAL_TIMEOUT);
	RUN(F(shoal_close)(other));
}

int main(void) {
	test_dispositions();
	test_interrupts();
	test_canceller();
	RUN(F(shoal_leave)(0));
	puts("ok");
	return 0;
}
