/* check.h has the checks of the C programs that test libshoal. */
#ifndef CHECK_H
#define CHECK_H

#define _GNU_SOURCE
#include "shoal.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* WANT fails the program unless the call returns the code. */
#define WANT(code, call) want_(code, call, #code, #call, __FILE__, __LINE__)
#define OK(call) WANT(SHOAL_OK, call)

/* CHECK fails the program unless the condition is true. */
#define CHECK(condition) check_(condition, #condition, __FILE__, __LINE__)

static inline void want_(int code, int got, const char *name, const char *call, const char *file, int line) {
	if (got == code)
		return;
	char text[4096] = "";
	shoal_error_message(text, sizeof(text));
	fprintf(stderr, "%s:%d: %s: got %s (%s), want %s\n", file, line, call, shoal_code_name(got), text, name);
	exit(1);
}

static inline void check_(int ok, const char *condition, const char *file, int line) {
	if (ok)
		return;
	fprintf(stderr, "%s:%d: want %s\n", file, line, condition);
	exit(1);
}

/* says reports whether the last error of this thread has the text. */
static inline int says(const char *text) {
	char all[4096] = "";
	shoal_error_message(all, sizeof(all));
	if (strstr(all, text) != NULL)
		return 1;
	fprintf(stderr, "error: %s\n", all);
	return 0;
}

static inline double seconds(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static inline void sleep_for(double s) {
	struct timespec t = {(time_t)s, (long)((s - (double)(time_t)s) * 1e9)};
	nanosleep(&t, NULL);
}

/* start executes this program with the arguments, and returns the process. */
static inline pid_t start(const char *a, const char *b, const char *c) {
	pid_t pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		execl("/proc/self/exe", "test", a, b, c, (char *)NULL);
		_exit(127);
	}
	return pid;
}

/* finish waits for a process and checks how it ended: a status of exit, or a negative signal. */
static inline void finish(pid_t pid, int want) {
	int status = 0;
	CHECK(waitpid(pid, &status, 0) == pid);
	int got = WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
	if (got != want) {
		fprintf(stderr, "process %d ended with %d, want %d\n", (int)pid, got, want);
		exit(1);
	}
}

#define FLOAT32 ((shoal_dtype){2, 32, 1})
#define KEY "a secret of the test"

#endif
