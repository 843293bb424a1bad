/*
 * The copy benchmarks in C, on the driver API: pinned memory from cuMemHostAlloc, plain memory from
 * malloc (the driver's pageable path). Every measurement stamps its source and looks for the stamp
 * where it was copied to.
 */
#include "driver.h"

static CUdeviceptr device;
static size_t deviceBytes;
static unsigned char *plain, *pinned;
static size_t plainBytes, pinnedBytes;

static void reserve(size_t bytes, int withPinned) {
  if (deviceBytes < bytes) {
    if (deviceBytes) CHECK(p_cuMemFree(device));
    CHECK(p_cuMemAlloc(&device, bytes));
    deviceBytes = bytes;
  }
  if (withPinned && pinnedBytes < bytes) {
    if (pinnedBytes) CHECK(p_cuMemFreeHost(pinned));
    CHECK(p_cuMemHostAlloc((void **)&pinned, bytes, 0));
    memset(pinned, 1, bytes);
    pinnedBytes = bytes;
  }
  if (!withPinned && plainBytes < bytes) {
    free(plain);
    plain = malloc(bytes);
    memset(plain, 1, bytes);
    plainBytes = bytes;
  }
}

static void stamp(unsigned char *memory, size_t bytes, unsigned char value) {
  memory[0] = memory[bytes / 2] = memory[bytes - 1] = value;
}

static int stamped(const unsigned char *memory, size_t bytes, unsigned char value) {
  return memory[0] == value && memory[bytes / 2] == value && memory[bytes - 1] == value;
}

/* There and back again; also the warm-up. */
static int roundTrip(unsigned char *memory, size_t bytes) {
  static unsigned char value;
  value = (unsigned char)(value % 200 + 2);
  stamp(memory, bytes, value);
  CHECK(p_cuMemcpyHtoDAsync(device, memory, bytes, stream));
  CHECK(p_cuStreamSynchronize(stream));
  stamp(memory, bytes, 255);
  CHECK(p_cuMemcpyDtoHAsync(memory, device, bytes, stream));
  CHECK(p_cuStreamSynchronize(stream));
  return stamped(memory, bytes, value);
}
#define WARM(memory, bytes)                                            \
  do {                                                                 \
    if (!roundTrip(memory, bytes)) FAIL("the copy did not come back"); \
  } while (0)

static double rate(size_t bytes, double us) { return (double)bytes / us / 1e3; }

/* samples, bytes, copies of a sample, direction → GB/s */
static void pinnedCopies(const long *args, int toDevice) {
  size_t bytes = (size_t)args[1];
  reserve(bytes, 1);
  WARM(pinned, bytes);
  for (long k = 0; k < args[0]; k++) {
    double start = now();
    for (long i = 0; i < args[2]; i++) {
      if (toDevice) CHECK(p_cuMemcpyHtoDAsync(device, pinned, bytes, stream));
      else CHECK(p_cuMemcpyDtoHAsync(pinned, device, bytes, stream));
    }
    CHECK(p_cuStreamSynchronize(stream));
    sample(rate(bytes * (size_t)args[2], now() - start));
  }
}

/* samples, bytes, direction → GB/s */
static void plainCopies(const long *args, int toDevice) {
  size_t bytes = (size_t)args[1];
  reserve(bytes, 0);
  WARM(plain, bytes);
  for (long k = 0; k < args[0]; k++) {
    double start = now();
    /* Not cuMemcpyHtoD, which returns when the last piece is staged, before it is on the device. */
    if (toDevice) CHECK(p_cuMemcpyHtoDAsync(device, plain, bytes, stream));
    else CHECK(p_cuMemcpyDtoHAsync(plain, device, bytes, stream));
    CHECK(p_cuStreamSynchronize(stream));
    sample(rate(bytes, now() - start));
  }
}

static void pinnedIn(const long *args) { pinnedCopies(args, 1); }
static void pinnedOut(const long *args) { pinnedCopies(args, 0); }
static void plainIn(const long *args) { plainCopies(args, 1); }
static void plainOut(const long *args) { plainCopies(args, 0); }

static const Measurement measurements[] = {
    {"pinned-h2d", pinnedIn},
    {"pinned-d2h", pinnedOut},
    {"plain-h2d", plainIn},
    {"plain-d2h", plainOut},
};

int main(int argc, char **argv) {
  openDevice(argc > 1 ? atoi(argv[1]) : 0);
  return SERVE(measurements);
}
