/*
 * The launch benchmarks in C, on the driver API: what a program without any library pays. Every
 * measurement first runs the same loop with the kernel's counter on, and checks the count.
 */
#include <unistd.h>

#include "driver.h"

static CUfunction tick, scale;
static CUdeviceptr counter, halves[2];

static void launchTicks(long count, int n) {
  float a = 1;
  void *params[] = {&counter, &a, &n};
  for (long i = 0; i < count; i++)
    CHECK(p_cuLaunchKernel(tick, 1, 1, 1, 32, 1, 1, 0, stream, params, NULL));
}

/* Launches `count` kernels that count, and says whether all of them did. Also the warm-up. */
static int counted(long count) {
  float value = -1;
  CHECK(p_cuMemsetD32Async(counter, 0, 1, stream));
  launchTicks(count, -1);
  CHECK(p_cuStreamSynchronize(stream));
  CHECK(p_cuMemcpyDtoH(&value, counter, sizeof value));
  return value == (float)count;
}
#define WARM(count)                                                     \
  do {                                                                  \
    if (!counted(count)) FAIL("the counter is not %ld", (long)(count)); \
  } while (0)

/* samples, launches of a burst → µs of this thread per launch */
static void enqueue(const long *args) {
  WARM(2000);
  for (long k = 0; k < args[0]; k++) {
    double start = now();
    launchTicks(args[1], 5);
    double end = now();
    CHECK(p_cuStreamSynchronize(stream));
    sample((end - start) / (double)args[1]);
  }
}

/* samples, launches → µs per launch until all are done */
static void throughput(const long *args) {
  WARM(2000);
  for (long k = 0; k < args[0]; k++) {
    double start = now();
    launchTicks(args[1], 5);
    CHECK(p_cuStreamSynchronize(stream));
    sample((now() - start) / (double)args[1]);
  }
}

/* samples → µs from a launch to its end */
static void await(const long *args) {
  WARM(1000);
  for (long k = 0; k < 200 + args[0]; k++) {
    double start = now();
    launchTicks(1, 5);
    CHECK(p_cuStreamSynchronize(stream));
    if (k >= 200) sample(now() - start);
  }
}

/* samples, µs of idleness before each → µs from a launch to its end */
static void idle(const long *args) {
  WARM(1000);
  for (long k = 0; k < args[0]; k++) {
    usleep((useconds_t)args[1]);
    double start = now();
    launchTicks(1, 5);
    CHECK(p_cuStreamSynchronize(stream));
    sample(now() - start);
  }
}

static void launchChain(long length, int elements, float g) {
  for (long i = 0; i < length; i++) {
    void *params[] = {&halves[(i + 1) & 1], &halves[i & 1], &g, &elements};
    CHECK(p_cuLaunchKernel(
        scale, (unsigned)(elements + 255) / 256, 1, 1, 256, 1, 1, 0, stream, params, NULL));
  }
}

static const float G = 1.0009765625f;

static void startFromOnes(const long *args) {
  CHECK(p_cuMemsetD16Async(halves[0], 0x3c00, (size_t)args[2], stream));
}

/* The last element after the operations that args tell of. */
static unsigned short chainResult(const long *args) {
  unsigned short value = 0;
  CHECK(p_cuStreamSynchronize(stream));
  CHECK(p_cuMemcpyDtoH(&value, halves[args[1] & 1] + 2 * ((CUdeviceptr)args[2] - 1), sizeof value));
  return value;
}
#define EXPECT_RESULT(args)                                    \
  do {                                                         \
    unsigned short value_ = chainResult(args);                 \
    if (value_ != (unsigned short)args[3])                     \
      FAIL("the chain gave %04x, not %04lx", value_, args[3]); \
  } while (0)

/* samples, operations, elements, bits of the result when started from ones → µs per operation until
 * all are done */
static void chain(const long *args) {
  startFromOnes(args);
  launchChain(args[1], (int)args[2], G);
  EXPECT_RESULT(args);
  for (long k = 0; k < args[0]; k++) {
    double start = now();
    launchChain(args[1], (int)args[2], G);
    CHECK(p_cuStreamSynchronize(stream));
    sample((now() - start) / (double)args[1]);
  }
}

/* Each operation waited for before the next one. */
static void waitForEach(const long *args) {
  int elements = (int)args[2];
  float g = G;
  for (long i = 0; i < args[1]; i++) {
    void *params[] = {&halves[(i + 1) & 1], &halves[i & 1], &g, &elements};
    CHECK(p_cuLaunchKernel(
        scale, (unsigned)(elements + 255) / 256, 1, 1, 256, 1, 1, 0, stream, params, NULL));
    CHECK(p_cuStreamSynchronize(stream));
  }
}

/* As chain, waiting after each operation. */
static void chainEach(const long *args) {
  startFromOnes(args);
  waitForEach(args);
  EXPECT_RESULT(args);
  for (long k = 0; k < args[0]; k++) {
    double start = now();
    waitForEach(args);
    sample((now() - start) / (double)args[1]);
  }
}

/* As chain, the operations recorded as one graph. */
static void chainGraph(const long *args) {
  static CUgraphExec recorded;
  static long operations;
  if (operations != args[1]) {
    CUgraph captured;
    if (operations) CHECK(p_cuGraphExecDestroy(recorded));
    operations = args[1];
    CHECK(p_cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    launchChain(operations, (int)args[2], G);
    CHECK(p_cuStreamEndCapture(stream, &captured));
    CHECK(p_cuGraphInstantiateWithFlags(&recorded, captured, 0));
    CHECK(p_cuGraphDestroy(captured));
  }
  startFromOnes(args);
  CHECK(p_cuGraphLaunch(recorded, stream));
  EXPECT_RESULT(args);
  for (long k = 0; k < 20 + args[0]; k++) {
    double start = now();
    CHECK(p_cuGraphLaunch(recorded, stream));
    CHECK(p_cuStreamSynchronize(stream));
    if (k >= 20) sample((now() - start) / (double)operations);
  }
}

static CUgraphExec captureTicks(long kernels, int n) {
  CUgraph graph;
  CUgraphExec exec;
  CHECK(p_cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  launchTicks(kernels, n);
  CHECK(p_cuStreamEndCapture(stream, &graph));
  CHECK(p_cuGraphInstantiateWithFlags(&exec, graph, 0));
  return exec;
}

/* samples, kernels of the graph → µs from the graph's launch to its end */
static void graph(const long *args) {
  static CUgraphExec counting, quiet;
  static long kernels;
  if (kernels != args[1]) {
    kernels = args[1];
    counting = captureTicks(kernels, -1);
    quiet = captureTicks(kernels, 5);
  }
  float value = -1;
  CHECK(p_cuMemsetD32Async(counter, 0, 1, stream));
  for (int i = 0; i < 20; i++) CHECK(p_cuGraphLaunch(counting, stream));
  CHECK(p_cuStreamSynchronize(stream));
  CHECK(p_cuMemcpyDtoH(&value, counter, sizeof value));
  if (value != 20.0f * (float)kernels) FAIL("the graphs counted %g", value);
  for (long k = 0; k < 20 + args[0]; k++) {
    double start = now();
    CHECK(p_cuGraphLaunch(quiet, stream));
    CHECK(p_cuStreamSynchronize(stream));
    if (k >= 20) sample(now() - start);
  }
}

static const Measurement measurements[] = {
    {"enqueue", enqueue},
    {"throughput", throughput},
    {"await", await},
    {"idle", idle},
    {"graph", graph},
    {"chain", chain},
    {"chain-each", chainEach},
    {"chain-graph", chainGraph},
};

int main(int argc, char **argv) {
  openDevice(argc > 1 ? atoi(argv[1]) : 0);
  CUmodule module = loadModule(argc > 2 ? argv[2] : ".", "launch.ptx");
  CHECK(p_cuModuleGetFunction(&tick, module, "tick"));
  CHECK(p_cuModuleGetFunction(&scale, module, "scale_f16"));
  CHECK(p_cuMemAlloc(&counter, 4096));
  for (int i = 0; i < 2; i++) CHECK(p_cuMemAlloc(&halves[i], 1 << 20));
  return SERVE(measurements);
}
