/*
 * What every C peer needs: the driver API resolved from libcuda at run time, the clock, and the line protocol of
 * bench/peers/program.ts. A peer includes this, fills `measurements`, and ends with SERVE().
 */
#include <cuda.h>
#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define DRIVER_CALLS(X) \
  X(cuInit) X(cuDriverGetVersion) X(cuGetErrorName) X(cuDeviceGet) X(cuDevicePrimaryCtxRetain) X(cuCtxSetCurrent) \
  X(cuModuleLoadData) X(cuModuleGetFunction) X(cuStreamCreate) X(cuStreamSynchronize) X(cuLaunchKernel) \
  X(cuMemAlloc) X(cuMemFree) X(cuMemHostAlloc) X(cuMemFreeHost) X(cuMemsetD32Async) X(cuMemsetD16Async) \
  X(cuMemcpyDtoH) X(cuMemcpyHtoDAsync) X(cuMemcpyDtoHAsync) \
  X(cuStreamBeginCapture) X(cuStreamEndCapture) X(cuGraphInstantiateWithFlags) X(cuGraphLaunch)

/* cuda.h defines cuMemAlloc as cuMemAlloc_v2: the expanded name is the symbol, the written one names the pointer. */
#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)
#define DECLARE(name) static __typeof__(&name) p_##name __attribute__((unused));
#define RESOLVE(name) p_##name = (__typeof__(p_##name))resolve(TEXT(name));
DRIVER_CALLS(DECLARE)

static void *library;
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

static char failure[256];
#define FAIL(...) do { snprintf(failure, sizeof failure, __VA_ARGS__); return; } while (0)
#define CHECK(call) do { CUresult r_ = (call); if (r_) { const char *n_ = "?"; p_cuGetErrorName(r_, &n_); \
  fprintf(stderr, "line %d: %s: %s\n", __LINE__, #call, n_); exit(1); } } while (0)

/* Microseconds. */
static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1e6 + t.tv_nsec / 1e3;
}

#define MAX_SAMPLES 100000
static double samples[MAX_SAMPLES];
static int sampleCount;
static void sample(double value) { if (sampleCount < MAX_SAMPLES) samples[sampleCount++] = value; }

typedef struct { const char *name; void (*run)(const long *args); } Measurement;

static void openDevice(int ordinal) {
  library = dlopen("libcuda.so.1", RTLD_NOW);
  if (!library) absent("libcuda.so.1 cannot be loaded");
  DRIVER_CALLS(RESOLVE)
  CUdevice device;
  CUcontext context;
  if (p_cuInit(0) || p_cuDeviceGet(&device, ordinal)) absent("no GPU %d", ordinal);
  CHECK(p_cuDevicePrimaryCtxRetain(&context, device));
  CHECK(p_cuCtxSetCurrent(context));
  CHECK(p_cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
}

/* Answers one line per line: `NAME INTEGER…`. */
static int serve(const Measurement *measurements, int count) {
  int version = 0;
  p_cuDriverGetVersion(&version);
  printf("{\"ready\": true, \"versions\": {\"gcc\": \"%s\", \"cuda.h\": \"%d.%d\"}}\n", __VERSION__, CUDA_VERSION / 1000, CUDA_VERSION % 1000 / 10);
  fflush(stdout);
  char line[1024];
  while (fgets(line, sizeof line, stdin)) {
    char name[64];
    long args[8] = {0};
    int at = 0, n = 0;
    if (sscanf(line, "%63s%n", name, &at) != 1) continue;
    for (char *rest = line + at, *end; n < 8; rest = end) {
      args[n] = strtol(rest, &end, 10);
      if (end == rest) break;
      n++;
    }
    const Measurement *found = NULL;
    for (int i = 0; i < count; i++) if (!strcmp(measurements[i].name, name)) found = &measurements[i];
    sampleCount = 0;
    failure[0] = 0;
    if (found) found->run(args);
    else snprintf(failure, sizeof failure, "no measurement %s", name);
    if (failure[0]) printf("{\"error\": \"%s\"}\n", failure);
    else {
      printf("{\"samples\": [");
      for (int i = 0; i < sampleCount; i++) printf(i ? ",%.5g" : "%.5g", samples[i]);
      printf("]}\n");
    }
    fflush(stdout);
  }
  return 0;
}
#define SERVE(measurements) serve(measurements, (int)(sizeof measurements / sizeof measurements[0]))
