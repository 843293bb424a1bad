/*
 * Products of f16 matrices by cuBLAS, summed in f32: cublasGemmEx on row-major matrices, timed by
 * the device's events. The library is looked for at run time; its few declarations stand here, so
 * that no header of it has to be there.
 */
#include <stdint.h>

#include "driver.h"

typedef void *Handle;
/* cublas_api.h and library_types.h. */
enum { R_16F = 2, COMPUTE_32F = 68, DEFAULT_ALGORITHM = -1, NOT_TRANSPOSED = 0 };

static int (*create)(Handle *);
static int (*setStream)(Handle, CUstream);
static int (*gemm)(Handle, int, int, int, int, int, const void *, const void *, int, int,
    const void *, int, int, const void *, void *, int, int, int, int);
static Handle handle;

/* As in bench/kernels/matrix-product.ts: of either sign, with magnitudes from 1/2 to 1. */
static uint16_t element(uint32_t index) {
  uint32_t bits = (index + 1) * 2654435761u;
  return (uint16_t)(0x3800u | ((bits >> 16) & 0x3ffu) | ((bits >> 31) << 15));
}

static double value(uint16_t bits) {
  return (bits >> 15 ? -1.0 : 1.0) * (0.5 + (bits & 0x3ff) / 2048.0);
}

static double half(uint16_t bits) {
  int exponent = bits >> 10 & 31;
  double magnitude = exponent ? (1 + (bits & 1023) / 1024.0) *
          (exponent > 15 ? (double)(1 << (exponent - 15)) : 1.0 / (1 << (15 - exponent)))
                              : (bits & 1023) / 16777216.0;
  return bits >> 15 ? -magnitude : magnitude;
}

/* samples, m, n, k, products between two events → µs of each */
static void product(const long *args) {
  long m = args[1], n = args[2], depth = args[3], products = args[4];
  long sizes[] = {m * depth, depth * n, m * n};
  CUdeviceptr matrices[3];
  uint16_t *host = malloc((size_t)(m * depth + depth * n + m * n) * 2);
  for (int i = 0; i < 3; i++) CHECK(p_cuMemAlloc(&matrices[i], (size_t)sizes[i] * 2));
  for (int i = 0; i < 2; i++) {
    for (long at = 0; at < sizes[i]; at++) host[at] = element((uint32_t)(at + i * 7));
    CHECK(p_cuMemcpyHtoDAsync(matrices[i], host, (size_t)sizes[i] * 2, stream));
    CHECK(p_cuStreamSynchronize(stream));
  }
  CUevent begin, end;
  CHECK(p_cuEventCreate(&begin, 0));
  CHECK(p_cuEventCreate(&end, 0));
  const float one = 1, zero = 0;
  int status = 0;
  /* By columns, as cuBLAS has it, rows of b times a are rows of a times b. */
#define MULTIPLY()                                                                              \
  (status |= gemm(handle, NOT_TRANSPOSED, NOT_TRANSPOSED, (int)n, (int)m, (int)depth, &one,     \
       (void *)matrices[1], R_16F, (int)n, (void *)matrices[0], R_16F, (int)depth, &zero,       \
       (void *)matrices[2], R_16F, (int)n, COMPUTE_32F, DEFAULT_ALGORITHM))
  for (int i = 0; i < 3; i++) MULTIPLY();
  for (long k = 0; k < args[0]; k++) {
    CHECK(p_cuEventRecord(begin, stream));
    for (long i = 0; i < products; i++) MULTIPLY();
    CHECK(p_cuEventRecord(end, stream));
    CHECK(p_cuEventSynchronize(end));
    float ms = 0;
    CHECK(p_cuEventElapsedTime(&ms, begin, end));
    sample(ms * 1000.0 / (double)products);
  }
  CHECK(p_cuMemcpyDtoH(host, matrices[2], (size_t)sizes[2] * 2));
  double sum = 0;
  for (long k = 0; k < depth; k++)
    sum += value(element((uint32_t)(depth + k))) * value(element((uint32_t)(k * n + 3 + 7)));
  double got = half(host[n + 3]);
  for (int i = 0; i < 3; i++) CHECK(p_cuMemFree(matrices[i]));
  free(host);
  if (status) FAIL("cublasGemmEx failed");
  if (got - sum > 0.1 + 0.001 * (sum < 0 ? -sum : sum) ||
      sum - got > 0.1 + 0.001 * (sum < 0 ? -sum : sum))
    FAIL("element [1][3] is %g, not %g", got, sum);
}

static void *symbolOf(void *from, const char *name) {
  void *found = dlsym(from, name);
  if (!found) absent("libcublas has no %s", name);
  return found;
}

static void openCublas(void) {
  const char *home = getenv("CUDA_HOME");
  const char *names[] = {
      "libcublas.so.13", "libcublas.so.12", "libcublas.so", "/usr/local/cuda/lib64/libcublas.so"};
  void *cublas = NULL;
  char path[4096];
  if (home) {
    snprintf(path, sizeof path, "%s/lib64/libcublas.so", home);
    cublas = dlopen(path, RTLD_NOW);
  }
  for (int i = 0; !cublas && i < 4; i++) cublas = dlopen(names[i], RTLD_NOW);
  if (!cublas) absent("libcublas cannot be loaded; set CUDA_HOME or LD_LIBRARY_PATH");
  *(void **)&create = symbolOf(cublas, "cublasCreate_v2");
  *(void **)&setStream = symbolOf(cublas, "cublasSetStream_v2");
  *(void **)&gemm = symbolOf(cublas, "cublasGemmEx");
  if (create(&handle) || setStream(handle, stream)) absent("cublasCreate failed");
}

int main(int count, char **arguments) {
  openDevice(count > 1 ? atoi(arguments[1]) : 0);
  openCublas();
  static const Measurement measurements[] = {{"product", product}};
  return SERVE(measurements);
}
