/* native.h declares the functions of native.c that the Go files of this package call. */
#ifndef SHOAL_NATIVE_H
#define SHOAL_NATIVE_H

#include <stddef.h>
#include <stdint.h>

/* The results of shoal_native_park. */
enum { SHOAL_PARK_WOKEN, SHOAL_PARK_TIMEOUT, SHOAL_PARK_INTERRUPTED };

/* The results of shoal_native_cancelled. */
enum { SHOAL_NO_CANCELLER, SHOAL_HAS_CANCELLER, SHOAL_CANCELLED };

void shoal_native_fail(const char *text, size_t length, int process);
int shoal_native_park_fd(void);
int shoal_native_park(int64_t nanoseconds);
void shoal_native_signal(int fd);
void shoal_native_drain(int fd);
int shoal_native_eventfd(void);
void shoal_native_close(int fd);
int shoal_native_cancelled(void);
int shoal_native_has_handlers(void);
uint64_t shoal_native_owner(void);
int shoal_native_pipe(int *fds);
void shoal_native_restore_signals(void);

#endif
