/*
 * What a C peer on a GPU needs: the driver API resolved from libcuda at run time. A peer includes
 * this, fills `measurements`, and ends with SERVE().
 */
#include <cuda.h>
#include <dlfcn.h>
#include <stdarg.h>

#include "protocol.h"

#define DRIVER_CALLS(X) \
  X(cuInit) X(cuDriverGetVersion) X(cuGetErrorName) X(cuDeviceGet) X(cuDeviceGetAttribute) \
  X(cuDevicePrimaryCtxRetain) X(cuCtxSetCurrent) X(cuModuleLoadData) X(cuModuleGetFunction) \
  X(cuStreamCreate) X(cuStreamSynchronize) X(cuLaunchKernel) X(cuMemAlloc) X(cuMemFree) \
  X(cuMemHostAlloc) X(cuMemFreeHost) X(cuMemsetD32Async) X(cuMemsetD16Async) X(cuMemcpyDtoH) \
  X(cuMemcpyHtoDAsync) X(cuMemcpyDtoHAsync) X(cuStreamBeginCapture) X(cuStreamEndCapture) \
  X(cuGraphInstantiateWithFlags) X(cuGraphLaunch) X(cuGraphDestroy) X(cuGraphExecDestroy) \
  X(cuEventCreate) X(cuEventRecord) X(cuEventSynchronize) X(cuEventElapsedTime)

/* cuda.h defines cuMemAlloc as cuMemAlloc_v2: the expanded name is the symbol, the written one
 * names the pointer. */
#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)
#define DECLARE(name) static __typeof__(&name) p_##name __attribute__((unused));
#define RESOLVE(name) p_##name = (__typeof__(p_##name))resolve(TEXT(name));
DRIVER_CALLS(DECLARE)

static void *library;
static CUcontext context;
static CUstream stream;

/* Says why there is nothing to measure here, and ends. */
static void absent(const char *format, ...) {
  va_list args;
  va_start(args, format);
  printf("{\"absent\": \"");
  vprintf(format, args);
  printf("\"}\n");
  fflush(stdout);
  exit(0);
}

static void *resolve(const char *symbol) {
  void *found = dlsym(library, symbol);
  if (!found) absent("libcuda has no %s", symbol);
  return found;
}

#define CHECK(call)                                              \
  do {                                                           \
    CUresult r_ = (call);                                        \
    if (r_) {                                                    \
      const char *n_ = "?";                                      \
      p_cuGetErrorName(r_, &n_);                                 \
      fprintf(stderr, "line %d: %s: %s\n", __LINE__, #call, n_); \
      exit(1);                                                   \
    }                                                            \
  } while (0)

static void openDevice(int ordinal) {
  library = dlopen("libcuda.so.1", RTLD_NOW);
  if (!library) absent("libcuda.so.1 cannot be loaded");
  DRIVER_CALLS(RESOLVE)
  CUdevice device;
  if (p_cuInit(0) || p_cuDeviceGet(&device, ordinal)) absent("no GPU %d", ordinal);
  CHECK(p_cuDevicePrimaryCtxRetain(&context, device));
  CHECK(p_cuCtxSetCurrent(context));
  CHECK(p_cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
}

static char *__attribute__((unused)) readText(const char *path) {
  FILE *file = fopen(path, "rb");
  if (!file) absent("cannot read %s", path);
  fseek(file, 0, SEEK_END);
  long length = ftell(file);
  rewind(file);
  char *text = (char *)malloc((size_t)length + 1);
  if (fread(text, 1, (size_t)length, file) != (size_t)length) absent("cannot read %s", path);
  text[length] = 0;
  fclose(file);
  return text;
}

/* The module of a file in the folder of the kernels. */
static CUmodule __attribute__((unused)) loadModule(const char *folder, const char *file) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s", folder, file);
  char *text = readText(path);
  CUmodule module;
  CHECK(p_cuModuleLoadData(&module, text));
  free(text);
  return module;
}

static int __attribute__((unused)) serve(const Measurement *measurements, int count) {
  char versions[64];
  snprintf(versions, sizeof versions, ", \"cuda.h\": \"%d.%d\"", CUDA_VERSION / 1000,
      CUDA_VERSION % 1000 / 10);
  return serveLines(measurements, count, versions);
}
#define SERVE(measurements) serve(measurements, (int)(sizeof measurements / sizeof measurements[0]))
