/* gopeer.c exchanges messages with a Go program in its domain: the program's path is the argument. */
#include "check.h"

int main(int argc, char **argv) {
	CHECK(argc == 2);
	char address[64];
	snprintf(address, sizeof(address), "@shoal-gopeer-%d", (int)getpid());
	shoal_handle l, to, from, weights, t, m;
	OK(shoal_listen(address, KEY, sizeof(KEY), &l));
	OK(shoal_queue_new(4, &to));
	OK(shoal_queue_new(4, &from));
	OK(shoal_latest_new("first", 5, NULL, 0, &weights));
	OK(shoal_bind("to go", to, 10));
	OK(shoal_bind("from go", from, 10));
	OK(shoal_bind("weights", weights, 10));
	pid_t pid = fork();
	if (pid == 0) {
		setenv("SHOAL_TEST_PEER", address, 1);
		execl(argv[1], argv[1], (char *)NULL);
		_exit(127);
	}
	int64_t shape[1] = {3};
	float *x;
	OK(shoal_tensor_zeros(FLOAT32, 1, shape, &t, (void **)&x));
	for (int i = 1; i <= 100; i++) {
		x[0] = (float)i;
		OK(shoal_put(to, "abc", 3, &(shoal_view){.handle = t}, 1, 10));
		OK(shoal_get(from, 20, &m));
		const void *bytes;
		size_t n;
		OK(shoal_message_bytes(m, &bytes, &n));
		CHECK(n == 7 && memcmp(bytes, "go: abc", 7) == 0);
		shoal_tensor_info info;
		OK(shoal_message_tensor(m, 0, &info));
		CHECK(info.data == x && x[0] == (float)(2 * i));
		OK(shoal_close(info.handle));
		OK(shoal_close(m));
	}
	OK(shoal_finish(to));
	uint64_t version;
	OK(shoal_latest_wait(weights, 1, 20, &m, &version));
	CHECK(version == 2);
	OK(shoal_close(m));
	finish(pid, 0);
	OK(shoal_leave(0));
	puts("ok");
	return 0;
}
