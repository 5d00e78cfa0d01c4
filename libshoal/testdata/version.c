/* version.c joins the domain of this program from a child with a library of another version, whose path
 * is the argument. */
#include "check.h"

#include <dlfcn.h>

int main(int argc, char **argv) {
	CHECK(argc == 2);
	shoal_handle l, q, h;
	char address[64];
	unsigned char token[SHOAL_MAX_TOKEN];
	size_t n;
	snprintf(address, sizeof(address), "@shoal-version-%d", (int)getpid());
	OK(shoal_listen(address, KEY, sizeof(KEY), &l));
	OK(shoal_queue_new(1, &q));
	OK(shoal_export(q, 1, -1, token, sizeof(token), &n));
	pid_t pid = fork();
	if (pid == 0) {
		void *other = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
		if (other == NULL)
			fprintf(stderr, "%s\n", dlerror());
		CHECK(other != NULL);
		int (*join)(const char *, const void *, size_t, double);
		int (*import)(const void *, size_t, double, shoal_handle *);
		*(void **)&join = dlsym(other, "shoal_join");
		*(void **)&import = dlsym(other, "shoal_import");
		CHECK(join != shoal_join);
		WANT(SHOAL_VERSION, import(token, n, 10, &h));
		WANT(SHOAL_VERSION, join(address, KEY, sizeof(KEY), 10));
		_exit(0);
	}
	finish(pid, 0);
	OK(shoal_leave(0));
	return 0;
}
