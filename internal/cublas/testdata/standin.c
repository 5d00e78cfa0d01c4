// A stand-in for libcublas: the functions with the types of cublas_v2.h, which are written out here, or those of the header itself, if VENDOR is
// defined. Each notes what it was given, as C sees it.
#include <stdarg.h>
#include <stdio.h>

#ifdef VENDOR
#include <cublas_v2.h>
_Static_assert(CUBLAS_OP_N == 0 && CUBLAS_OP_T == 1, "the operations");
#else
typedef void *cublasHandle_t, *cudaStream_t;
typedef int cublasStatus_t, cublasOperation_t;
#endif

static char note[4096];
static cublasStatus_t result;

const char *standin_note(void);
void standin_fail(int r);
const char *standin_note(void) { return note; }
void standin_fail(int r) { result = r; }

static cublasStatus_t say(const char *format, ...) {
	va_list a;
	va_start(a, format);
	vsnprintf(note, sizeof note, format, a);
	va_end(a);
	return result;
}

cublasStatus_t cublasCreate_v2(cublasHandle_t *out) { *out = (cublasHandle_t)0x7a0000000001ull; return say("cublasCreate"); }
cublasStatus_t cublasDestroy_v2(cublasHandle_t h) { return say("cublasDestroy %p", h); }
cublasStatus_t cublasSetStream_v2(cublasHandle_t h, cudaStream_t s) { return say("cublasSetStream %p %p", h, s); }

#define GEMM(name, T) \
	cublasStatus_t name(cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k, const T *alpha, const T *a, int lda, long long sa, const T *b, int ldb, long long sb, const T *beta, T *c, int ldc, long long sc, int batch) { \
		return say(#name " %p %d %d %d %d %d %g %p %d %lld %p %d %lld %g %p %d %lld %d", h, ta, tb, m, n, k, (double)*alpha, (const void *)a, lda, sa, (const void *)b, ldb, sb, \
			(double)*beta, (void *)c, ldc, sc, batch); \
	}
GEMM(cublasSgemmStridedBatched, float)
GEMM(cublasDgemmStridedBatched, double)
