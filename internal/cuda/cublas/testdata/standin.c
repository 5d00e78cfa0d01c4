// A stand-in for libcublas: the functions with the types of cublas_v2.h, which are written out here, or those of the header itself, if VENDOR is
// defined. Each notes what it was given, as C sees it.
#include <stdarg.h>
#include <stdio.h>

#ifdef VENDOR
#include <cublas_v2.h>
_Static_assert(CUBLAS_OP_N == 0 && CUBLAS_OP_T == 1, "the operations");
_Static_assert(CUDA_R_32F == 0 && CUDA_R_64F == 1 && CUDA_R_16F == 2 && CUDA_R_16BF == 14, "the types");
_Static_assert(CUBLAS_COMPUTE_32F == 68 && CUBLAS_COMPUTE_64F == 70 && CUBLAS_GEMM_DEFAULT == -1, "how it is computed");
#else
typedef void *cublasHandle_t, *cudaStream_t;
typedef int cublasStatus_t, cublasOperation_t, cudaDataType, cublasComputeType_t, cublasGemmAlgo_t;
enum { CUBLAS_COMPUTE_64F = 70 };
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

cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k, const void *alpha, const void *a, cudaDataType ta_, int lda, long long sa,
	const void *b, cudaDataType tb_, int ldb, long long sb, const void *beta, void *c, cudaDataType tc_, int ldc, long long sc, int batch, cublasComputeType_t compute, cublasGemmAlgo_t algo) {
	double x = compute == CUBLAS_COMPUTE_64F ? *(const double *)alpha : *(const float *)alpha;
	double y = compute == CUBLAS_COMPUTE_64F ? *(const double *)beta : *(const float *)beta;
	return say("cublasGemmStridedBatchedEx %p %d %d %d %d %d %g %p %d %d %lld %p %d %d %lld %g %p %d %d %lld %d %d %d", h, ta, tb, m, n, k, x, a, ta_, lda, sa, b, tb_, ldb, sb, y, c, tc_, ldc, sc,
		batch, compute, algo);
}
