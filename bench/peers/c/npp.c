/*
 * Photographs made smaller by NPP: by nppiResize for each image, by nppiResizeBatch, and in a
 * letterbox, normalised, as planes of f16 by a chain of calls. All on one stream, timed by the
 * device's events. The libraries are looked for at run time (NPP 12 or 13); their few declarations
 * stand here, as nppdefs.h has them, so that no header of theirs has to be there.
 */
#include <math.h>
#include <stdint.h>

#include "driver.h"

typedef struct { int width, height; } Size;
typedef struct { int x, y, width, height; } Rect;
typedef struct { const void *source; int sourceStep; void *target; int targetStep; } Resized;
/* NppStreamContext, filled by hand: nppGetStreamContext is gone from 12.9 on. The last field is
 * that of a workspace from 13.2 on; 0 is none. */
typedef struct {
  CUstream stream;
  int device, multiprocessors, threadsPerMultiprocessor, threadsPerBlock;
  size_t sharedPerBlock;
  int major, minor;
  unsigned flags;
  int reserved;
} Context;

enum { LINEAR = 2, TO_NEAREST = 0 };

static int (*resizeOne)(const void *, int, Size, Rect, void *, int, Size, Rect, int, Context);
static int (*resizeMany)(Size, Rect, Size, Rect, int, void *, unsigned, Context);
static int (*copyBorder)(
    const void *, int, Size, void *, int, Size, int, int, const uint8_t *, Context);
static int (*toFloats)(const void *, int, void *, int, Size, Context);
static int (*subtract)(const float *, void *, int, Size, Context);
static int (*divide)(const float *, void *, int, Size, Context);
static int (*toPlanes)(const void *, int, void *const *, int, Size, Context);
static int (*toHalves)(const void *, int, void *, int, Size, int, Context);

static Context npp;
static int status;
#define NPP(call) do { int s_ = (call); if (s_ && !status) status = s_; } while (0)

/* As in bench/images/pictures.ts. */
enum {
  FROM_WIDTH = 1920,
  FROM_HEIGHT = 1080,
  TO = 640,
  INNER = 360,
  TOP = (TO - INNER) / 2,
  CHANNELS = 3
};
static const size_t FROM_BYTES = (size_t)FROM_WIDTH * FROM_HEIGHT * CHANNELS,
                    TO_BYTES = (size_t)TO * TO * CHANNELS;
static const uint8_t AROUND[CHANNELS] = {114, 114, 114};
static const float MEANS[CHANNELS] = {0.485f * 255, 0.456f * 255, 0.406f * 255},
                   DEVIATIONS[CHANNELS] = {0.229f * 255, 0.224f * 255, 0.225f * 255};

static long images;
/* Photographs, results, a list of both; of the chain: one that was made smaller, in its letterbox,
 * as floats, as planes of them. */
static CUdeviceptr photographs, results, list, small, boxed, floats, planes;

static void *at(CUdeviceptr base, size_t offset) { return (void *)(uintptr_t)(base + offset); }

static void allocate(CUdeviceptr *to, size_t bytes) {
  if (*to) CHECK(p_cuMemFree(*to));
  CHECK(p_cuMemAlloc(to, bytes));
}

static void reserve(long count) {
  if (images == count) return;
  images = count;
  size_t n = (size_t)count;
  allocate(&photographs, FROM_BYTES * n);
  allocate(&results, TO_BYTES * 2 * n);
  allocate(&list, sizeof(Resized) * n);
  allocate(&small, (size_t)TO * INNER * CHANNELS * n);
  allocate(&boxed, TO_BYTES * n);
  allocate(&floats, TO_BYTES * 4 * n);
  allocate(&planes, TO_BYTES * 4 * n);
  uint8_t *host = malloc(FROM_BYTES * n);
  for (size_t i = 0; i < FROM_BYTES * n; i++) host[i] = (uint8_t)((uint32_t)i * 2654435761u >> 24);
  CHECK(p_cuMemcpyHtoDAsync(photographs, host, FROM_BYTES * n, stream));
  Resized *entries = malloc(sizeof(Resized) * n);
  for (size_t i = 0; i < n; i++)
    entries[i] = (Resized){at(photographs, i * FROM_BYTES), FROM_WIDTH * CHANNELS,
        at(results, i * TO_BYTES), TO * CHANNELS};
  CHECK(p_cuMemcpyHtoDAsync(list, entries, sizeof(Resized) * n, stream));
  CHECK(p_cuStreamSynchronize(stream));
  free(entries);
  free(host);
}

static const Size FROM_SIZE = {FROM_WIDTH, FROM_HEIGHT}, TO_SIZE = {TO, TO},
                  INNER_SIZE = {TO, INNER};
static const Rect FROM_RECT = {0, 0, FROM_WIDTH, FROM_HEIGHT}, TO_RECT = {0, 0, TO, TO},
                  INNER_RECT = {0, 0, TO, INNER};

static void resizeEach(void) {
  for (size_t i = 0; i < (size_t)images; i++) {
    NPP(resizeOne(at(photographs, i * FROM_BYTES), FROM_WIDTH * CHANNELS, FROM_SIZE, FROM_RECT,
        at(results, i * TO_BYTES), TO * CHANNELS, TO_SIZE, TO_RECT, LINEAR, npp));
  }
}

static void resizeBatch(void) {
  NPP(resizeMany(
      FROM_SIZE, FROM_RECT, TO_SIZE, TO_RECT, LINEAR, at(list, 0), (unsigned)images, npp));
}

static void makeSmall(size_t i, size_t to) {
  NPP(resizeOne(at(photographs, i * FROM_BYTES), FROM_WIDTH * CHANNELS, FROM_SIZE, FROM_RECT,
      at(small, to * TO * INNER * CHANNELS), TO * CHANNELS, INNER_SIZE, INNER_RECT, LINEAR, npp));
  NPP(copyBorder(at(small, to * TO * INNER * CHANNELS), TO * CHANNELS, INNER_SIZE,
      at(boxed, to * TO_BYTES), TO * CHANNELS, TO_SIZE, TOP, 0, AROUND, npp));
}

/* Of `count` letterboxes, one below the other. */
static void normalise(int count) {
  Size all = {TO, TO * count};
  NPP(toFloats(at(boxed, 0), TO * CHANNELS, at(floats, 0), TO * CHANNELS * 4, all, npp));
  NPP(subtract(MEANS, at(floats, 0), TO * CHANNELS * 4, all, npp));
  NPP(divide(DEVIATIONS, at(floats, 0), TO * CHANNELS * 4, all, npp));
}

static void split(size_t from) {
  void *each[CHANNELS];
  for (size_t c = 0; c < CHANNELS; c++) each[c] = at(planes, (from * CHANNELS + c) * TO * TO * 4);
  NPP(toPlanes(at(floats, from * TO_BYTES * 4), TO * CHANNELS * 4, each, TO * 4, TO_SIZE, npp));
}

/* An image after the other: what lies between two calls is small enough to stay in the cache. */
static void letterboxEach(void) {
  for (size_t i = 0; i < (size_t)images; i++) {
    makeSmall(i, 0);
    normalise(1);
    split(0);
    NPP(toHalves(at(planes, 0), TO * 4, at(results, i * TO_BYTES * 2), TO * 2,
        (Size){TO, TO * CHANNELS}, TO_NEAREST, npp));
  }
}

/* A call for all images wherever one can be for them: fewer and longer ones. */
static void letterboxAll(void) {
  for (size_t i = 0; i < (size_t)images; i++) makeSmall(i, i);
  normalise((int)images);
  for (size_t i = 0; i < (size_t)images; i++) split(i);
  NPP(toHalves(at(planes, 0), TO * 4, at(results, 0), TO * 2,
      (Size){TO, (int)(TO * CHANNELS * images)}, TO_NEAREST, npp));
}

/* args: samples, images, runs between two events → ms of each run */
static void measure(const long *args, void (*run)(void)) {
  reserve(args[1]);
  status = 0;
  CHECK(p_cuMemsetD32Async(results, 0, TO_BYTES * 2 * (size_t)images / 4, stream));
  CUevent begin, end;
  CHECK(p_cuEventCreate(&begin, 0));
  CHECK(p_cuEventCreate(&end, 0));
  for (int i = 0; i < 3; i++) run();
  for (long k = 0; k < args[0]; k++) {
    CHECK(p_cuEventRecord(begin, stream));
    for (long i = 0; i < args[2]; i++) run();
    CHECK(p_cuEventRecord(end, stream));
    CHECK(p_cuEventSynchronize(end));
    float ms = 0;
    CHECK(p_cuEventElapsedTime(&ms, begin, end));
    sample(ms / (double)args[2]);
  }
}

/* Noise has a mean of 127.5, and so has every row of the result, if it was written. */
static void proveRows(void) {
  uint8_t *host = malloc(TO_BYTES * (size_t)images);
  CHECK(p_cuMemcpyDtoH(host, results, TO_BYTES * (size_t)images));
  for (long row = 0; row < images * TO && !failure[0]; row++) {
    double sum = 0;
    for (int i = 0; i < TO * CHANNELS; i++) sum += host[row * TO * CHANNELS + i];
    double mean = sum / (TO * CHANNELS);
    if (!(mean > 110 && mean < 145))
      snprintf(failure, sizeof failure, "row %ld of image %ld has a mean of %g", row % TO, row / TO,
          mean);
  }
  free(host);
}

static double half(uint16_t bits) {
  double magnitude =
      bits & 0x7c00 ? ldexp(1024 + (bits & 1023), (bits >> 10 & 31) - 25) : ldexp(bits & 1023, -24);
  return bits >> 15 ? -magnitude : magnitude;
}

static void proveLetterboxes(void) {
  uint16_t *host = malloc(TO_BYTES * 2 * (size_t)images);
  CHECK(p_cuMemcpyDtoH(host, results, TO_BYTES * 2 * (size_t)images));
  for (long row = 0; row < images * CHANNELS * TO && !failure[0]; row++) {
    long c = row / TO % CHANNELS, y = row % TO;
    double sum = 0;
    for (int x = 0; x < TO; x++) sum += half(host[row * TO + x]);
    double mean = sum / TO * DEVIATIONS[c] + MEANS[c],
           expected = y >= TOP && y < TOP + INNER ? 127.5 : AROUND[c];
    if (!(fabs(mean - expected) < (expected == 127.5 ? 20 : 0.1)))
      snprintf(failure, sizeof failure,
          "row %ld of plane %ld of image %ld has a mean of %g, not %g", y, c, row / TO / CHANNELS,
          mean, expected);
  }
  free(host);
}

static void measureAndProve(const long *args, void (*run)(void), void (*prove)(void)) {
  measure(args, run);
  if (status) FAIL("NPP gave status %d", status);
  prove();
}

static void resizesOfEach(const long *args) { measureAndProve(args, resizeEach, proveRows); }
static void resizesOfAll(const long *args) { measureAndProve(args, resizeBatch, proveRows); }
static void letterboxesOfEach(const long *args) {
  measureAndProve(args, letterboxEach, proveLetterboxes);
}
static void letterboxesOfAll(const long *args) {
  measureAndProve(args, letterboxAll, proveLetterboxes);
}

/* The major version, by which its files are named. */
static int version;

/* One of NPP's files; all have to be of one version. */
static void *openFile(const char *name) {
  const char *home = getenv("CUDA_HOME"), *folders[] = {"", "/usr/local/cuda/lib64/"};
  char path[4096];
  for (int major = 13; major >= 12; major--) {
    if (version && version != major) continue;
    for (int i = -1; i < 2; i++) {
      if (i < 0 && !home) continue;
      snprintf(path, sizeof path, "%s%s%s.so.%d", i < 0 ? home : folders[i], i < 0 ? "/lib64/" : "",
          name, major);
      /* The others need nppc and find it once it is there. */
      void *found = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
      if (found) {
        version = major;
        return found;
      }
    }
  }
  absent("%s cannot be loaded; set CUDA_HOME or LD_LIBRARY_PATH", name);
  return NULL;
}

/* Major, minor, build. */
static int numbers[3];

static void *symbolOf(void *from, const char *name) {
  void *found = dlsym(from, name);
  if (!found) absent("NPP has no %s", name);
  return found;
}

static int attribute(CUdevice_attribute which, int ordinal) {
  CUdevice device;
  int value;
  CHECK(p_cuDeviceGet(&device, ordinal));
  CHECK(p_cuDeviceGetAttribute(&value, which, device));
  return value;
}

static void openNpp(int ordinal) {
  void *core = openFile("libnppc");
  const int *(*versionOf)(void);
  *(void **)&versionOf = symbolOf(core, "nppGetLibVersion");
  for (int i = 0; i < 3; i++) numbers[i] = versionOf()[i];
  void *geometry = openFile("libnppig"), *exchange = openFile("libnppidei"),
       *arithmetic = openFile("libnppial");
  *(void **)&resizeOne = symbolOf(geometry, "nppiResize_8u_C3R_Ctx");
  *(void **)&resizeMany = symbolOf(geometry, "nppiResizeBatch_8u_C3R_Ctx");
  *(void **)&copyBorder = symbolOf(exchange, "nppiCopyConstBorder_8u_C3R_Ctx");
  *(void **)&toFloats = symbolOf(exchange, "nppiConvert_8u32f_C3R_Ctx");
  *(void **)&subtract = symbolOf(arithmetic, "nppiSubC_32f_C3IR_Ctx");
  *(void **)&divide = symbolOf(arithmetic, "nppiDivC_32f_C3IR_Ctx");
  *(void **)&toPlanes = symbolOf(exchange, "nppiCopy_32f_C3P3R_Ctx");
  *(void **)&toHalves = symbolOf(exchange, "nppiConvert_32f16f_C1R_Ctx");
  npp = (Context){
      .stream = stream,
      .device = ordinal,
      .flags = CU_STREAM_NON_BLOCKING,
      .multiprocessors = attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, ordinal),
      .threadsPerMultiprocessor =
          attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, ordinal),
      .threadsPerBlock = attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, ordinal),
      .sharedPerBlock = (size_t)attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, ordinal),
      .major = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, ordinal),
      .minor = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, ordinal),
  };
}

int main(int count, char **arguments) {
  int ordinal = count > 1 ? atoi(arguments[1]) : 0;
  openDevice(ordinal);
  openNpp(ordinal);
  static const Measurement measurements[] = {
      {"resize-each", resizesOfEach},
      {"resize-batch", resizesOfAll},
      {"letterbox-each", letterboxesOfEach},
      {"letterbox-all", letterboxesOfAll},
  };
  char versions[128];
  snprintf(versions, sizeof versions, ", \"cuda.h\": \"%d.%d\", \"npp\": \"%d.%d.%d\"",
      CUDA_VERSION / 1000, CUDA_VERSION % 1000 / 10, numbers[0], numbers[1], numbers[2]);
  return serveLines(measurements, (int)(sizeof measurements / sizeof measurements[0]), versions);
}
