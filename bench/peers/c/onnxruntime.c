/*
 * A model run by ONNX Runtime's C API: `onnxruntime LIBRARY MODEL INPUT OUTPUT… ORDINAL FOLDER`. Of OrtApi, a structure of function pointers whose
 * places never change, stand here what is used, by their places, so that no header of the library's has to be there.
 */
#include <dlfcn.h>
#include <stdint.h>

#include "protocol.h"

typedef void *Handle;
typedef Handle Status;
enum { FATAL = 4, ALL_OPTIMISATIONS = 99, F32 = 1, DEVICE_ALLOCATOR = 0, DEFAULT_MEMORY = 0, API_VERSION = 14 };

static void **api;
#define CALL(PLACE, TYPES, ...) ((Status (*) TYPES)api[PLACE])(__VA_ARGS__)
#define DO(...) do { Status status_ = (__VA_ARGS__); if (status_) FAIL("%s", ((const char *(*)(Status))api[2])(status_)); } while (0)

enum { MOST_OUTPUTS = 8 };
static const char *model, *input, *const *outputs;
static size_t outputCount;
static Handle env, memory;
static Handle session;
static long threadsOfSession;

static void open(long threads) {
  if (session && threads == threadsOfSession) return;
  Handle options;
  DO(CALL(10, (Handle *), &options));
  DO(CALL(22, (Handle, int), options, FATAL));
  DO(CALL(23, (Handle, int), options, ALL_OPTIMISATIONS));
  if (threads > 0) DO(CALL(24, (Handle, int), options, (int)threads));
  DO(CALL(7, (Handle, const char *, Handle, Handle *), env, model, options, &session));
  threadsOfSession = threads;
}

/* [samples, threads, extents…]: milliseconds of a run on an f32 input of four extents. The first three runs are not counted. */
static void run(const long *args) {
  open(args[1]);
  if (failure[0]) return;
  int64_t extents[4];
  size_t count = 1;
  for (int i = 0; i < 4; i++) count *= (size_t)(extents[i] = args[2 + i]);
  float *pixels = malloc(4 * count);
  for (size_t i = 0; i < count; i++) pixels[i] = (float)(((uint32_t)i * 2654435761u) >> 8) / (1 << 24);
  Handle value;
  DO(CALL(49, (Handle, void *, size_t, const int64_t *, size_t, int, Handle *), memory, pixels, 4 * count, extents, 4, F32, &value));
  for (long k = -3; k < args[0]; k++) {
    double start = now();
    Handle results[MOST_OUTPUTS] = {NULL};
    DO(CALL(9, (Handle, Handle, const char *const *, const Handle *, size_t, const char *const *, size_t, Handle *), session, NULL, &input, &value, 1, outputs, outputCount, results));
    if (k >= 0) sample((now() - start) / 1e3);
    for (size_t i = 0; i < outputCount; i++) ((void (*)(Handle))api[96])(results[i]);
  }
  ((void (*)(Handle))api[96])(value);
  free(pixels);
}

static void begin(void) {
  DO(CALL(3, (int, const char *, Handle *), FATAL, "bench", &env));
  DO(CALL(68, (const char *, int, int, int, Handle *), "Cpu", DEVICE_ALLOCATOR, 0, DEFAULT_MEMORY, &memory));
}

static const Measurement measurements[] = {{"run", run}};

int main(int argc, char **argv) {
  if (argc < 7 || argc > 6 + MOST_OUTPUTS) return 2;
  model = argv[2], input = argv[3], outputs = (const char *const *)argv + 4, outputCount = (size_t)argc - 6;
  Handle library = dlopen(argv[1], RTLD_NOW);
  struct { void **(*getApi)(uint32_t); const char *(*version)(void); } *(*base)(void) = library ? dlsym(library, "OrtGetApiBase") : NULL;
  api = base ? base()->getApi(API_VERSION) : NULL;
  if (api) begin();
  if (!api || failure[0]) {
    printf("{\"absent\": \"%s\"}\n", failure[0] ? failure : "no ONNX Runtime of version 1.14 or later");
    return 0;
  }
  char versions[128];
  snprintf(versions, sizeof versions, ", \"onnxruntime\": \"%s\"", base()->version());
  return serveLines(measurements, 1, versions);
}
