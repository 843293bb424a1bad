/*
 * A model run by ONNX Runtime's C API: `onnxruntime LIBRARY MODEL INPUT OUTPUT… ORDINAL FOLDER`. Of
 * OrtApi, a structure of function pointers whose places never change, stand here what is used, by
 * their places, so that no header of the library's has to be there. Nor is there a header of the
 * driver's where there is no GPU.
 */
#include <dlfcn.h>
#include <malloc.h>
#include <stdint.h>

#include "protocol.h"

typedef void *Handle;
typedef Handle Status;
enum {
  FATAL = 4,
  ALL_OPTIMISATIONS = 99,
  F32 = 1,
  DEVICE_ALLOCATOR = 0,
  DEFAULT_MEMORY = 0,
  API_VERSION = 14
};

static void **api;
#define CALL(PLACE, TYPES, ...) ((Status (*) TYPES)api[PLACE])(__VA_ARGS__)
#define DO(...)                                                          \
  do {                                                                   \
    Status status_ = (__VA_ARGS__);                                      \
    if (status_) FAIL("%s", ((const char *(*)(Status))api[2])(status_)); \
  } while (0)

enum { MOST_OUTPUTS = 8 };
static const char *model, *input, *const *outputs;
static size_t outputCount;
static Handle env, memory;
static Handle session;

/* Where tensors are, and who computes: all on the host; tensors on a GPU, by way of page-locked
 * memory; all on the GPU; the same, recorded by the library as a graph. */
enum { HOST, STAGED, GPU, RECORDED, PLACES };

/* Of the driver API. The context is the device's primary one, as the CUDA provider has it. */
typedef uint64_t Address;
static struct {
  int (*init)(unsigned), (*device)(int *, int), (*retain)(Handle *, int), (*use)(Handle),
      (*stream)(Handle *, unsigned), (*wait)(Handle);
  int (*alloc)(Address *, size_t), (*allocHost)(void **, size_t, unsigned), (*free)(Address),
      (*freeHost)(void *);
  int (*to)(Address, const void *, size_t, Handle), (*from)(void *, Address, size_t, Handle);
} cuda;
static Handle stream;
#define CUDA(CALL) do { int code_ = (CALL); if (code_) FAIL("%s: %d", #CALL, code_); } while (0)

static void openCuda(void) {
  if (stream) return;
  Handle library = dlopen("libcuda.so.1", RTLD_NOW);
  static const char *const names[] = {"cuInit", "cuDeviceGet", "cuDevicePrimaryCtxRetain",
      "cuCtxSetCurrent", "cuStreamCreate", "cuStreamSynchronize", "cuMemAlloc_v2", "cuMemHostAlloc",
      "cuMemFree_v2", "cuMemFreeHost", "cuMemcpyHtoDAsync_v2", "cuMemcpyDtoHAsync_v2"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    void *found = library ? dlsym(library, names[i]) : NULL;
    if (!found) FAIL("no %s", names[i]);
    ((void **)&cuda)[i] = found;
  }
  int device;
  Handle context;
  CUDA(cuda.init(0));
  CUDA(cuda.device(&device, 0));
  CUDA(cuda.retain(&context, device));
  CUDA(cuda.use(context));
  CUDA(cuda.stream(&stream, 1));
}

/* The CUDA provider, set as our engines have it. */
static void appendCuda(Handle options, int recorded) {
  const char *const keys[] = {"device_id", "cudnn_conv_algo_search", "prefer_nhwc",
      "fuse_conv_bias", "enable_cuda_graph"},
                    *const values[] = {"0", "HEURISTIC", "1", "1", "1"};
  Handle settings;
  DO(CALL(205, (Handle *), &settings));
  DO(CALL(206, (Handle, const char *const *, const char *const *, size_t), settings, keys, values,
      recorded ? 5 : 4));
  DO(CALL(204, (Handle, Handle), options, settings));
  ((void (*)(Handle))api[208])(settings);
}

/* Where tensors are from now on. */
static void settle(long place) {
  if (memory) ((void (*)(Handle))api[94])(memory);
  DO(CALL(68, (const char *, int, int, int, Handle *), place >= GPU ? "Cuda" : "Cpu",
      DEVICE_ALLOCATOR, 0, DEFAULT_MEMORY, &memory));
}

static void load(long threads, long place, Handle *loaded) {
  Handle options;
  DO(CALL(10, (Handle *), &options));
  DO(CALL(22, (Handle, int), options, FATAL));
  DO(CALL(23, (Handle, int), options, ALL_OPTIMISATIONS));
  if (threads > 0) DO(CALL(24, (Handle, int), options, (int)threads));
  if (place >= GPU) appendCuda(options, place == RECORDED);
  if (failure[0]) return;
  DO(CALL(7, (Handle, const char *, Handle, Handle *), env, model, options, loaded));
  ((void (*)(Handle))api[100])(options);
}

/* Each place has a session of its own, which stays: graphs are its. */
static void open(long threads, long place) {
  static Handle sessions[PLACES];
  static long threadsOf[PLACES];
  settle(place);
  if (failure[0]) return;
  if (!sessions[place] || threads != threadsOf[place]) load(threads, place, &sessions[place]);
  session = sessions[place], threadsOf[place] = threads;
}

/* A tensor's memory: the library's side of it, and the device's where that is another. */
typedef struct { Handle value; void *data; size_t bytes; Address onDevice; } Tensor;

static Tensor tensorOf(long place, const int64_t *extents, size_t rank) {
  Tensor tensor = {.bytes = 4};
  for (size_t i = 0; i < rank; i++) tensor.bytes *= (size_t)extents[i];
  int code = 0;
  if (place != HOST) code = cuda.alloc(&tensor.onDevice, tensor.bytes);
  if (place == STAGED) code |= cuda.allocHost(&tensor.data, tensor.bytes, 0);
  else tensor.data = place >= GPU ? (void *)tensor.onDevice : malloc(tensor.bytes);
  if (code) snprintf(failure, sizeof failure, "no memory: %d", code);
  else {
    Handle status = CALL(49, (Handle, void *, size_t, const int64_t *, size_t, int, Handle *),
        memory, tensor.data, tensor.bytes, extents, rank, F32, &tensor.value);
    if (status) snprintf(failure, sizeof failure, "%s", ((const char *(*)(Status))api[2])(status));
  }
  return tensor;
}

static void drop(long place, Tensor tensor) {
  ((void (*)(Handle))api[96])(tensor.value);
  if (place != HOST) cuda.free(tensor.onDevice);
  if (place == STAGED) cuda.freeHost(tensor.data);
  if (place == HOST) free(tensor.data);
}

/*
 * [samples, threads, place, extents…]: milliseconds of a run on an f32 input of four extents, from
 * where tensors are to where outputs are. The first three runs are not counted. On the host the
 * library makes the outputs of each run anew.
 */
static void run(const long *args) {
  const long place = args[2];
  if (place != HOST) openCuda();
  if (failure[0]) return;
  open(args[1], place);
  if (failure[0]) return;
  int64_t extents[4];
  for (int i = 0; i < 4; i++) extents[i] = args[3 + i];
  /* What is recorded knows the addresses: its tensors stay. */
  static Tensor keptPixels, keptMade[MOST_OUTPUTS];
  const int again = place == RECORDED && keptPixels.value;
  Tensor pixels = again ? keptPixels : tensorOf(place, extents, 4), made[MOST_OUTPUTS];
  if (again) memcpy(made, keptMade, sizeof made);
  Handle unrecorded = NULL;
  if (place == RECORDED) {
    DO(CALL(39, (Handle *), &unrecorded));
    DO(CALL(165, (Handle, const char *, const char *), unrecorded, "gpu_graph_id", "-1"));
  }
  if (failure[0]) return;
  float *filled = malloc(pixels.bytes);
  for (size_t i = 0; i < pixels.bytes / 4; i++)
    filled[i] = (float)(((uint32_t)i * 2654435761u) >> 8) / (1 << 24);
  if (place == HOST) memcpy(pixels.data, filled, pixels.bytes);
  else {
    CUDA(cuda.to(pixels.onDevice, filled, pixels.bytes, stream));
    CUDA(cuda.wait(stream));
  }
  free(filled);
  for (long k = again ? -3 : -4; k < args[0]; k++) {
    double start = now();
    Handle results[MOST_OUTPUTS] = {NULL};
    if (k > -4 && place != HOST)
      for (size_t i = 0; i < outputCount; i++) results[i] = made[i].value;
    if (place == STAGED) {
      CUDA(cuda.from(pixels.data, pixels.onDevice, pixels.bytes, stream));
      CUDA(cuda.wait(stream));
    }
    DO(CALL(9,
        (Handle, Handle, const char *const *, const Handle *, size_t, const char *const *, size_t,
            Handle *),
        session, k == -4 ? unrecorded : NULL, &input, &pixels.value, 1, outputs, outputCount,
        results));
    if (k > -4 && place == STAGED) {
      for (size_t i = 0; i < outputCount; i++)
        CUDA(cuda.to(made[i].onDevice, made[i].data, made[i].bytes, stream));
      CUDA(cuda.wait(stream));
    }
    if (k >= 0) sample((now() - start) / 1e3);
    // The first run tells the outputs' shapes.
    for (size_t i = 0; i < outputCount && k == -4 && place != HOST; i++) {
      Handle info;
      size_t rank;
      int64_t shape[8];
      DO(CALL(65, (Handle, Handle *), results[i], &info));
      DO(CALL(61, (Handle, size_t *), info, &rank));
      DO(CALL(62, (Handle, int64_t *, size_t), info, shape, rank));
      ((void (*)(Handle))api[99])(info);
      made[i] = tensorOf(place, shape, rank);
      if (failure[0]) return;
    }
    for (size_t i = 0; i < outputCount; i++)
      if (k == -4 || place == HOST) ((void (*)(Handle))api[96])(results[i]);
  }
  if (unrecorded) ((void (*)(Handle))api[97])(unrecorded);
  if (place == RECORDED) {
    keptPixels = pixels;
    memcpy(keptMade, made, sizeof made);
    return;
  }
  drop(place, pixels);
  for (size_t i = 0; i < outputCount && place != HOST; i++) drop(place, made[i]);
}

/* Of the C library's allocator: bytes in blocks that were allocated and not freed. */
static double allocated(void) {
#if __GLIBC_PREREQ(2, 33)
  struct mallinfo2 info = mallinfo2();
  return (double)(info.uordblks + info.hblkhd);
#else
  snprintf(failure, sizeof failure, "the C library does not tell what is allocated");
  return 0;
#endif
}

/* [times, times before, place, extents of input and output, two]: what so many sessions leave that
 * are loaded, run once and released, in MiB; a page where it is less. */
static void remains(const long *args) {
  const long place = args[2];
  const int64_t extents[] = {args[3], args[4]};
  double before = 0;
  if (place != HOST) openCuda();
  if (!failure[0]) settle(place);
  for (long k = -args[1]; k < args[0] && !failure[0]; k++) {
    if (k == 0) before = allocated();
    Handle loaded, options;
    load(0, place, &loaded);
    if (failure[0]) return;
    Tensor x = tensorOf(place, extents, 2), y = tensorOf(place, extents, 2);
    if (failure[0]) return;
    DO(CALL(39, (Handle *), &options));
    DO(CALL(9,
        (Handle, Handle, const char *const *, const Handle *, size_t, const char *const *, size_t,
            Handle *),
        loaded, options, &input, &x.value, 1, outputs, 1, &y.value));
    ((void (*)(Handle))api[97])(options);
    drop(place, x);
    drop(place, y);
    ((void (*)(Handle))api[95])(loaded);
  }
  const double left = allocated() - before;
  sample((left > 4096 ? left : 4096) / (1 << 20));
}

static void begin(void) {
  DO(CALL(3, (int, const char *, Handle *), FATAL, "bench", &env));
}

static const Measurement measurements[] = {{"run", run}, {"memory", remains}};

int main(int argc, char **argv) {
  if (argc < 7 || argc > 6 + MOST_OUTPUTS) return 2;
  model = argv[2], input = argv[3], outputs = (const char *const *)argv + 4,
  outputCount = (size_t)argc - 6;
  Handle library = dlopen(argv[1], RTLD_NOW);
  struct {
    void **(*getApi)(uint32_t);
    const char *(*version)(void);
  } *(*base)(void) = library ? dlsym(library, "OrtGetApiBase") : NULL;
  api = base ? base()->getApi(API_VERSION) : NULL;
  if (api) begin();
  if (!api || failure[0]) {
    printf("{\"absent\": \"%s\"}\n",
        failure[0] ? failure : "no ONNX Runtime of version 1.14 or later");
    return 0;
  }
  char versions[128];
  snprintf(versions, sizeof versions, ", \"onnxruntime\": \"%s\"", base()->version());
  return serveLines(measurements, 2, versions);
}
