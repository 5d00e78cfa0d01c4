/*
 * pipeline.c is an example of libshoal in C. A producer process makes batches of numbers in shared
 * memory, and this process sums them up, without a copy. Meanwhile it publishes weights, of which the
 * producer always uses the newest. In the middle the producer is killed, and a new one goes on.
 *
 *	cc -o pipeline pipeline.c -I.. -L. -lshoal && LD_LIBRARY_PATH=. ./pipeline
 */
#include "shoal.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BATCHES = 10, SIZE = 4096 };

/* check ends the program with the library's message if the call failed. */
static void check(int code, const char *doing) {
	char text[1024];
	if (code == SHOAL_OK)
		return;
	shoal_error_message(text, sizeof(text));
	fprintf(stderr, "%s: %s: %s\n", doing, shoal_code_name(code), text);
	exit(1);
}

/* produce puts the batches from first on: batch i has SIZE elements of value i. The message is the
 * number of the batch, as text. */
static int produce(const char *address, int first) {
	shoal_handle batches, weights, message;
	uint64_t version = 0;
	check(shoal_join(address, "the key of the example", 22, 10), "join");
	check(shoal_lookup("batches", SHOAL_KIND_QUEUE, &batches), "look up batches");
	check(shoal_lookup("weights", SHOAL_KIND_LATEST, &weights), "look up weights");
	for (int i = first; i < BATCHES; i++) {
		/* the newest weights; an older version is released when its last reader closes it */
		check(shoal_latest_load(weights, &message, &version), "load weights");
		check(shoal_close(message), "close weights");
		shoal_handle tensor;
		float *x;
		int64_t shape[1] = {SIZE};
		check(shoal_tensor_empty((shoal_dtype){2, 32, 1}, 1, shape, &tensor, (void **)&x), "make batch");
		for (int k = 0; k < SIZE; k++)
			x[k] = (float)i;
		char text[32];
		snprintf(text, sizeof(text), "%d", i);
		shoal_view view = {.handle = tensor};
		check(shoal_put(batches, text, strlen(text) + 1, &view, 1, -1), "put batch");
		check(shoal_close(tensor), "close batch");
		if (i == BATCHES / 2 && first == 0)
			pause(); /* until it is killed */
	}
	printf("producer: weights of version %d\n", (int)version);
	return 0;
}

/* start executes this program as a producer. The library does not survive a fork, but an exec. */
static pid_t start(const char *program, const char *address, int first) {
	char text[32];
	snprintf(text, sizeof(text), "%d", first);
	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0) {
		execl(program, program, address, text, (char *)NULL);
		_exit(127);
	}
	return pid;
}

int main(int argc, char **argv) {
	if (argc == 3)
		return produce(argv[1], atoi(argv[2]));
	if (shoal_abi() != SHOAL_ABI) {
		fprintf(stderr, "libshoal has ABI %d, want %d\n", shoal_abi(), SHOAL_ABI);
		return 1;
	}
	char address[64];
	shoal_handle listener, batches, weights;
	snprintf(address, sizeof(address), "@pipeline-%d", (int)getpid());
	check(shoal_listen(address, "the key of the example", 22, &listener), "listen");
	check(shoal_queue_new(4, &batches), "make queue");
	check(shoal_latest_new("weights", 7, NULL, 0, &weights), "make weights");
	check(shoal_bind("batches", batches, 10), "bind queue");
	check(shoal_bind("weights", weights, 10), "bind weights");
	pid_t producer = start("/proc/self/exe", address, 0);
	for (int i = 0; i < BATCHES; i++) {
		char text[32];
		shoal_tensor_info info;
		shoal_buffer buffer = {.bytes = text, .capacity = sizeof(text), .tensors = &info, .tensor_capacity = 1};
		check(shoal_get_into(batches, 30, &buffer), "get batch");
		const float *x = info.data;
		double sum = 0;
		for (int64_t k = 0; k < info.shape[0]; k++)
			sum += x[k];
		printf("sum of batch %s: %.0f\n", text, sum);
		check(shoal_close(info.handle), "close batch");
		if (i == BATCHES / 2) {
			kill(producer, SIGKILL);
			waitpid(producer, NULL, 0);
			printf("producer %s\n", "was killed");
			check(shoal_latest_store(weights, "weights", 7, NULL, 0, 10, NULL), "store weights");
			check(shoal_latest_store(weights, "weights", 7, NULL, 0, 10, NULL), "store weights");
			producer = start("/proc/self/exe", address, i + 1);
		}
	}
	int status;
	waitpid(producer, &status, 0);
	check(shoal_leave(1), "leave");
	puts("all batches arrived");
	return status == 0 ? 0 : 1;
}
