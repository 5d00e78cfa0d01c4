//go:build linux

/*
 * native.c is the part of the library that must not run in Go: the state of each thread, the sleep
 * of a thread that waits, cancellers, which a signal handler may fire, and the functions that a
 * forked child may call.
 */
#define _GNU_SOURCE
#include "native.h"
#include "shoal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#define TEXT_SIZE 2048

/* self is the state of the calling thread. It must stay small: Go links a shared library so that all
 * of its thread-local memory is in the static TLS block, of which glibc keeps about 1.6 KB for every
 * library that a process loads, and a forked child loads this one twice:
 * https://github.com/golang/go/issues/13492 */
static __thread struct {
	char *text; /* TEXT_SIZE bytes; NULL before the first error */
	size_t length;
	int process;
	int park_fd; /* plus 1; 0 is none */
	shoal_handle canceller;
	uint64_t owner;
} self;

/* ---- Fork ---- */

static atomic_int forked;

static void mark_forked(void) { atomic_store(&forked, 1); }

static pthread_key_t exit_key;

/* end_thread releases the state of a thread that ends. */
static void end_thread(void *state) {
	(void)state;
	if (self.park_fd != 0)
		close(self.park_fd - 1);
	free(self.text);
	self.park_fd = 0;
	self.text = NULL;
	self.length = 0;
}

/* release_at_exit makes the calling thread run end_thread when it ends. */
static void release_at_exit(void) { pthread_setspecific(exit_key, &self); }

__attribute__((constructor)) static void prepare_process(void) {
	pthread_atfork(NULL, NULL, mark_forked);
	pthread_key_create(&exit_key, end_thread);
}

/* Go replaces the disposition of SIGPIPE when it starts. A program that ignores the signal, as Python
 * does, gets that back, because an ignored signal stays ignored in programs that it executes. A program
 * that does not must not be killed by a write of Go, so it keeps Go's handler, which passes on the
 * signals of other code. */
static struct sigaction pipe_before;

__attribute__((constructor(101))) static void save_signals(void) { sigaction(SIGPIPE, NULL, &pipe_before); }

void shoal_native_restore_signals(void) {
	if (pipe_before.sa_handler == SIG_IGN)
		sigaction(SIGPIPE, &pipe_before, NULL);
}

int shoal_forked(void) { return atomic_load_explicit(&forked, memory_order_relaxed); }

/* shoal_native_refuse returns SHOAL_FORKED and sets its text. */
int shoal_native_refuse(void) {
	static const char text[] = "shoal: this process was forked after libshoal was loaded, and Go does not survive "
		"fork: load a second copy of libshoal.so here and call shoal_fork_import, or start processes by exec "
		"(spawn, forkserver)";
	shoal_native_fail(text, sizeof(text) - 1, 0);
	return SHOAL_FORKED;
}

/* ---- Errors ---- */

void shoal_native_fail(const char *text, size_t length, int process) {
	self.length = 0;
	self.process = process;
	if (self.text == NULL && (self.text = malloc(TEXT_SIZE)) == NULL)
		return; /* the code must do */
	release_at_exit();
	self.length = length;
	size_t n = length < TEXT_SIZE - 1 ? length : TEXT_SIZE - 1;
	memcpy(self.text, text, n);
	self.text[n] = 0;
}

/* fail_static sets the error of the calling thread and returns code. */
static int fail_static(int code, const char *text) {
	shoal_native_fail(text, strlen(text), 0);
	return code;
}

size_t shoal_error_message(char *buffer, size_t size) {
	size_t have = self.length < TEXT_SIZE - 1 ? self.length : TEXT_SIZE - 1;
	if (buffer != NULL && size > 0) {
		size_t n = have < size - 1 ? have : size - 1;
		if (n > 0)
			memcpy(buffer, self.text, n);
		buffer[n] = 0;
	}
	return have;
}

int shoal_error_process(void) { return self.process; }

int shoal_abi(void) { return SHOAL_ABI; }

const char *shoal_code_name(int code) {
	static const char *const names[] = {"SHOAL_OK", "SHOAL_CLOSED", "SHOAL_TIMEOUT", "SHOAL_EMPTY", "SHOAL_FULL",
		"SHOAL_LOCKED", "SHOAL_INTERRUPTED", "SHOAL_OWNER_DIED", "SHOAL_NOT_OWNER", "SHOAL_BROKEN", "SHOAL_RELEASED",
		"SHOAL_PEER_DIED", "SHOAL_TOO_LARGE", "SHOAL_NO_MEMORY", "SHOAL_VERSION", "SHOAL_KEY", "SHOAL_PERMISSION",
		"SHOAL_NAME_TAKEN", "SHOAL_NOT_FOUND", "SHOAL_ARGUMENT", "SHOAL_HANDLE", "SHOAL_FORKED", "SHOAL_TYPE",
		"SHOAL_DOMAIN", "SHOAL_SYSTEM", "SHOAL_INTERNAL", "SHOAL_UNSUPPORTED"};
	if (code < 0 || (size_t)code >= sizeof(names) / sizeof(names[0]))
		return "SHOAL_?";
	return names[code];
}

/* shoal_native_owner returns the identity of the calling thread as a holder of recursive locks. */
uint64_t shoal_native_owner(void) {
	static atomic_uint_fast64_t last;
	if (self.owner == 0) {
		struct timespec now;
		clock_gettime(CLOCK_MONOTONIC, &now);
		uint64_t n = atomic_fetch_add(&last, 1) + 1;
		self.owner = (n << 40 ^ (uint64_t)now.tv_nsec << 8 ^ (uint64_t)now.tv_sec) | 1;
	}
	return self.owner;
}

/* ---- Descriptors ---- */

int shoal_native_eventfd(void) {
	int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return fd < 0 ? -errno : fd;
}

void shoal_native_close(int fd) { close(fd); }

int shoal_native_pipe(int *fds) { return pipe2(fds, O_CLOEXEC) < 0 ? -errno : 0; }

/* shoal_native_signal makes an eventfd readable. It is async-signal-safe. */
void shoal_native_signal(int fd) {
	int before = errno;
	uint64_t one = 1;
	ssize_t n = write(fd, &one, sizeof(one)); /* EAGAIN: readable already */
	(void)n;
	errno = before;
}

/* shoal_native_drain makes an eventfd unreadable. */
void shoal_native_drain(int fd) {
	uint64_t count;
	ssize_t n = read(fd, &count, sizeof(count)); /* EAGAIN: unreadable already */
	(void)n;
}

/* ---- Cancellers ---- */

/* A canceller's descriptor is never closed, because a signal handler may be about to write to it.
 * It is reused for a later canceller. */
#define MOST_CANCELLERS 4096

static struct {
	atomic_uint_fast64_t handle; /* 0: free */
	int fd;
	uint32_t uses;
} cancellers[MOST_CANCELLERS];

static pthread_mutex_t cancellers_lock = PTHREAD_MUTEX_INITIALIZER;
static size_t cancellers_used;

/* canceller_fd returns the descriptor of an open canceller, or -1. */
static int canceller_fd(shoal_handle h) {
	size_t i = (uint32_t)h;
	if (h >> 56 != SHOAL_KIND_CANCELLER || i >= MOST_CANCELLERS || atomic_load(&cancellers[i].handle) != h)
		return -1;
	return cancellers[i].fd;
}

static const char no_canceller[] = "shoal: handle is not an open canceller: use one from shoal_canceller_new";

int shoal_canceller_new(shoal_handle *canceller) {
	if (shoal_forked())
		return shoal_native_refuse();
	if (canceller == NULL)
		return fail_static(SHOAL_ARGUMENT, "shoal: new canceller: the out parameter is NULL");
	int code = SHOAL_OK;
	pthread_mutex_lock(&cancellers_lock);
	size_t i = 0;
	while (i < cancellers_used && atomic_load(&cancellers[i].handle) != 0)
		i++;
	if (i == MOST_CANCELLERS) {
		code = fail_static(SHOAL_TOO_LARGE, "shoal: new canceller: 4096 are open: close some");
	} else if (i == cancellers_used) {
		int fd = shoal_native_eventfd();
		if (fd < 0)
			code = fail_static(SHOAL_SYSTEM, "shoal: new canceller: eventfd failed: raise the limit of open files (ulimit -n)");
		else
			cancellers[i].fd = fd, cancellers_used++;
	}
	if (code == SHOAL_OK) {
		uint32_t use = ++cancellers[i].uses & 0xffffff;
		shoal_native_drain(cancellers[i].fd);
		*canceller = (uint64_t)SHOAL_KIND_CANCELLER << 56 | (uint64_t)use << 32 | i;
		atomic_store(&cancellers[i].handle, *canceller);
	}
	pthread_mutex_unlock(&cancellers_lock);
	return code;
}

/* shoal_native_close_canceller closes a canceller. Threads that wait with it are woken. */
int shoal_native_close_canceller(shoal_handle h) {
	int code = SHOAL_OK;
	pthread_mutex_lock(&cancellers_lock);
	int fd = canceller_fd(h);
	if (fd < 0) {
		code = fail_static(SHOAL_HANDLE, no_canceller);
	} else {
		shoal_native_signal(fd);
		atomic_store(&cancellers[(uint32_t)h].handle, 0);
	}
	pthread_mutex_unlock(&cancellers_lock);
	return code;
}

int shoal_native_canceller_kind(shoal_handle h) { return canceller_fd(h) < 0 ? SHOAL_KIND_NONE : SHOAL_KIND_CANCELLER; }

int shoal_cancel(shoal_handle canceller) {
	if (shoal_forked())
		return SHOAL_FORKED;
	int fd = canceller_fd(canceller);
	if (fd < 0)
		return SHOAL_HANDLE; /* no text: this may be a signal handler */
	shoal_native_signal(fd);
	return SHOAL_OK;
}

int shoal_canceller_reset(shoal_handle canceller) {
	if (shoal_forked())
		return shoal_native_refuse();
	int fd = canceller_fd(canceller);
	if (fd < 0)
		return fail_static(SHOAL_HANDLE, no_canceller);
	shoal_native_drain(fd);
	return SHOAL_OK;
}

int shoal_use_canceller(shoal_handle canceller) {
	if (shoal_forked())
		return shoal_native_refuse();
	if (canceller != 0 && canceller_fd(canceller) < 0)
		return fail_static(SHOAL_HANDLE, no_canceller);
	self.canceller = canceller;
	return SHOAL_OK;
}

int shoal_native_cancelled(void) {
	if (self.canceller == 0)
		return SHOAL_NO_CANCELLER;
	struct pollfd p = {.fd = canceller_fd(self.canceller), .events = POLLIN};
	if (p.fd < 0)
		return SHOAL_CANCELLED; /* closed */
	return poll(&p, 1, 0) == 1 ? SHOAL_CANCELLED : SHOAL_HAS_CANCELLER;
}

/* ---- Sleep ---- */

/* shoal_native_park_fd returns the eventfd that ends the calling thread's shoal_native_park, or a
 * negative errno. */
int shoal_native_park_fd(void) {
	if (self.park_fd == 0) {
		int fd = shoal_native_eventfd();
		if (fd < 0)
			return fd;
		self.park_fd = fd + 1;
		release_at_exit();
	}
	return self.park_fd - 1;
}

/* shoal_native_has_handlers reports whether the program handles a signal, apart from those of faults and
 * those that Go handles. */
int shoal_native_has_handlers(void) {
	for (int s = 1; s <= SIGRTMAX; s++) {
		struct sigaction a;
		switch (s) {
		case SIGSEGV: case SIGBUS: case SIGFPE: case SIGILL: case SIGTRAP: case SIGABRT: case SIGSYS:
		case SIGURG: case SIGPIPE:
			continue;
		}
		if (sigaction(s, NULL, &a) == 0 && a.sa_handler != SIG_DFL && a.sa_handler != SIG_IGN)
			return 1;
	}
	return 0;
}

static int64_t now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* shoal_native_park sleeps until the calling thread's eventfd is readable, a signal handler of the program
 * has run, its canceller was fired, or the time has passed, if it is not negative. Signals of Go's runtime
 * do not end it. */
int shoal_native_park(int64_t nanoseconds) {
	struct pollfd p[2] = {{.fd = self.park_fd - 1, .events = POLLIN}, {.fd = -1, .events = POLLIN}};
	if (self.canceller != 0 && (p[1].fd = canceller_fd(self.canceller)) < 0)
		return SHOAL_PARK_INTERRUPTED;
	int64_t end = nanoseconds < 0 ? 0 : now() + nanoseconds;
	int n;
	do {
		int64_t left = nanoseconds < 0 ? 0 : end - now();
		if (left < 0)
			left = 0;
		struct timespec most = {.tv_sec = left / 1000000000, .tv_nsec = left % 1000000000};
		n = ppoll(p, 2, nanoseconds < 0 ? NULL : &most, NULL);
	} while (n < 0 && errno == EINTR && !shoal_native_has_handlers());
	if (n == 0)
		return SHOAL_PARK_TIMEOUT;
	if (n > 0 && p[0].revents != 0)
		return SHOAL_PARK_WOKEN;
	return SHOAL_PARK_INTERRUPTED;
}

/* ---- The lifeline of a fork ---- */

int shoal_fork_parent(shoal_fork_ticket *ticket) {
	if (ticket == NULL)
		return fail_static(SHOAL_ARGUMENT, "shoal: fork parent: the ticket is NULL");
	if (ticket->lifeline >= 0)
		close(ticket->lifeline);
	ticket->lifeline = -1;
	return SHOAL_OK;
}

int shoal_fork_done(shoal_fork_ticket *ticket) { return shoal_fork_parent(ticket); }
