// The floor of the suite peers: what two processes without a library, a language's runtime or any
// promise about deaths can do by bare words of shared memory.
//
//	floor WORK SIZE ROUNDS CPU CPU
//
// prints the nanoseconds that a round took: rtt is a cache line to and fro, both sides spinning;
// wake is a futex to and fro, with the other side asleep; msgs is a message of 64 bytes in a ring
// with one writer and one reader.

#define _GNU_SOURCE
#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

enum { slots = 1024, body = 64 };

// Each word stands on a pair of cache lines of its own: processors fetch them in pairs.
struct shared {
	_Alignas(128) _Atomic uint32_t here[2];
	_Alignas(128) _Atomic uint32_t ping;
	_Alignas(128) _Atomic uint32_t pong;
	_Alignas(128) _Atomic uint64_t tail;
	_Alignas(128) _Atomic uint64_t head;
	_Alignas(128) _Atomic int64_t paused[2]; // nanoseconds that a side has let the other one sleep
	_Alignas(128) char ring[slots][body];
};

static struct shared *s;
static long rounds;
static int leader;

static void fail(const char *what)
{
	fprintf(stderr, "floor: %s: %s\n", what, strerror(errno));
	exit(1);
}

static int64_t now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

// await spins until a word is v. On one processor the other side needs the time slice.
static void await(_Atomic uint32_t *w, uint32_t v)
{
	for (int i = 1; atomic_load_explicit(w, memory_order_acquire) != v; i++)
		if (!(i & 0xfff))
			sched_yield();
}

static void set(_Atomic uint32_t *w, uint32_t v) { atomic_store_explicit(w, v, memory_order_release); }

// meet returns when the other side is here as well.
static void meet(void)
{
	set(&s->here[leader], 1);
	await(&s->here[!leader], 1);
}

static void rtt(void)
{
	for (long i = 1; i <= rounds; i++) {
		if (leader) {
			set(&s->ping, i);
			await(&s->pong, i);
		} else {
			await(&s->ping, i);
			set(&s->pong, i);
		}
	}
}

// pause_ns is how long a side computes before it wakes the other one, which is asleep then.
static const int64_t pause_ns = 150000;

static void let_sleep(void)
{
	int64_t begin = now(), took;
	while ((took = now() - begin) < pause_ns) {
	}
	s->paused[leader] += took;
}

static void wake(_Atomic uint32_t *w, uint32_t v)
{
	set(w, v);
	syscall(SYS_futex, w, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static void sleep_until(_Atomic uint32_t *w, uint32_t v)
{
	for (uint32_t is; (is = atomic_load_explicit(w, memory_order_acquire)) != v;)
		syscall(SYS_futex, w, FUTEX_WAIT, is, NULL, NULL, 0);
}

static void wakes(void)
{
	for (long i = 1; i <= rounds; i++) {
		if (!leader)
			sleep_until(&s->ping, i);
		let_sleep();
		wake(leader ? &s->ping : &s->pong, i);
		if (leader)
			sleep_until(&s->pong, i);
	}
}

static void msgs(void)
{
	char message[body] = {0};
	uint64_t seen = 0;
	for (uint64_t i = 0; i < (uint64_t)rounds; i++) {
		if (leader) {
			for (int n = 1; i - seen >= slots; n++) {
				seen = atomic_load_explicit(&s->head, memory_order_acquire);
				if (!(n & 0xfff))
					sched_yield();
			}
			memcpy(s->ring[i % slots], message, body);
			atomic_store_explicit(&s->tail, i + 1, memory_order_release);
		} else {
			for (int n = 1; i >= seen; n++) {
				seen = atomic_load_explicit(&s->tail, memory_order_acquire);
				if (!(n & 0xfff))
					sched_yield();
			}
			memcpy(message, s->ring[i % slots], body);
			__asm__ volatile("" ::"r"(message) : "memory");
			atomic_store_explicit(&s->head, i + 1, memory_order_release);
		}
	}
	for (int n = 1; leader && atomic_load_explicit(&s->head, memory_order_acquire) < (uint64_t)rounds; n++)
		if (!(n & 0xfff))
			sched_yield();
}

int main(int argc, char **argv)
{
	if (argc != 6 || (rounds = atol(argv[3])) < 1) {
		fprintf(stderr, "floor: want WORK SIZE ROUNDS CPU CPU\n");
		return 2;
	}
	void (*work)(void) = !strcmp(argv[1], "rtt") ? rtt : !strcmp(argv[1], "wake") ? wakes
		: !strcmp(argv[1], "msgs") ? msgs : NULL;
	if (!work) {
		fprintf(stderr, "floor: work %s is unknown\n", argv[1]);
		return 2;
	}
	s = mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (s == MAP_FAILED)
		fail("mmap");
	pid_t child = fork();
	if (child < 0)
		fail("fork");
	leader = child > 0;
	if (!leader)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	cpu_set_t cpus;
	CPU_ZERO(&cpus);
	CPU_SET(atoi(argv[leader ? 4 : 5]), &cpus);
	if (sched_setaffinity(0, sizeof cpus, &cpus))
		fail("sched_setaffinity");
	meet();
	int64_t begin = now();
	work();
	int64_t took = now() - begin;
	if (!leader)
		return 0;
	int status;
	if (waitpid(child, &status, 0) != child || status)
		fail("the other side");
	took -= s->paused[0] + s->paused[1];
	printf("%.3f\n", (double)took / rounds);
	return 0;
}
