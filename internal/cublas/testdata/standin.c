// A stand-in for libcublas: the functions with the types of cublas_api.h, written out here. Each notes what it was given, as C sees it.
#include <stdarg.h>
#include <stdio.h>

typedef void *Obj;
typedef long long i64;

static char note[4096];
static int result;

const char *standin_note(void) { return note; }
void standin_fail(int r) { result = r; }

static int say(const char *format, ...) {
	va_list a;
	va_start(a, format);
	vsnprintf(note, sizeof note, format, a);
	va_end(a);
	return result;
}

int cublasCreate_v2(Obj *out) { *out = (Obj)0x7a0000000001ull; return say("cublasCreate"); }
int cublasSetStream_v2(Obj h, Obj s) { return say("cublasSetStream %p %p", h, s); }

#define GEMM(name, T) \
	int name(Obj h, int ta, int tb, int m, int n, int k, const T *alpha, const T *a, int lda, i64 sa, const T *b, int ldb, i64 sb, const T *beta, T *c, int ldc, i64 sc, int batch) { \
		return say(#name " %p %d %d %d %d %d %g %p %d %lld %p %d %lld %g %p %d %lld %d", h, ta, tb, m, n, k, (double)*alpha, (const void *)a, lda, sa, (const void *)b, ldb, sb, \
			(double)*beta, (void *)c, ldc, sc, batch); \
	}
GEMM(cublasSgemmStridedBatched, float)
GEMM(cublasDgemmStridedBatched, double)
