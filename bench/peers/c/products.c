/*
 * A queue of small and large matrix products, worked off by threads: each has a stream of its own,
 * takes the next product, launches it and waits for it. Every round first works off the queue once
 * and checks the first element of each thread's results.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "driver.h"

#define MAX_THREADS 64

static CUfunction product;

/* Products are n × n; the large one is every so-many-th of the queue. */
typedef struct { long units, small, large, every; } Queue;
typedef struct { CUstream stream; CUdeviceptr small, large; } Worker;

static Queue queue;
static CUdeviceptr left, right;
static Worker workers[MAX_THREADS];
static long workerCount, reserved;
static atomic_long next;
static pthread_barrier_t begin;

static void launchProduct(CUdeviceptr result, long n, CUstream on) {
  int size = (int)n;
  unsigned blocks = (unsigned)n / 64;
  void *params[] = {&size, &size, &size, &left, &right, &result};
  CHECK(p_cuLaunchKernel(product, blocks, blocks, 1, 256, 1, 1, 0, on, params, NULL));
  CHECK(p_cuStreamSynchronize(on));
}

static void *work(void *argument) {
  Worker *self = (Worker *)argument;
  CHECK(p_cuCtxSetCurrent(context));
  pthread_barrier_wait(&begin);
  for (long unit; (unit = atomic_fetch_add(&next, 1)) < queue.units;) {
    int large = unit % queue.every == 0;
    launchProduct(
        large ? self->large : self->small, large ? queue.large : queue.small, self->stream);
  }
  return NULL;
}

/* Microseconds from the threads' start to the end of the last one. */
static double workOff(void) {
  pthread_t threads[MAX_THREADS];
  atomic_store(&next, 0);
  pthread_barrier_init(&begin, NULL, (unsigned)workerCount + 1);
  for (long i = 0; i < workerCount; i++) pthread_create(&threads[i], NULL, work, &workers[i]);
  pthread_barrier_wait(&begin);
  double start = now();
  for (long i = 0; i < workerCount; i++) pthread_join(threads[i], NULL);
  double took = now() - start;
  pthread_barrier_destroy(&begin);
  return took;
}

/* All elements of the left factor are 1 and of the right one 0.5: those of the product of n × n are
 * n / 2. */
static void reserve(void) {
  size_t most = (size_t)(queue.large * queue.large) * 4;
  CHECK(p_cuMemAlloc(&left, most));
  CHECK(p_cuMemAlloc(&right, most));
  CHECK(p_cuMemsetD32Async(left, 0x3f800000, most / 4, stream));
  CHECK(p_cuMemsetD32Async(right, 0x3f000000, most / 4, stream));
  for (long i = 0; i < MAX_THREADS && i < workerCount; i++) {
    CHECK(p_cuStreamCreate(&workers[i].stream, CU_STREAM_NON_BLOCKING));
    CHECK(p_cuMemAlloc(&workers[i].small, (size_t)(queue.small * queue.small) * 4));
    CHECK(p_cuMemAlloc(&workers[i].large, most));
  }
  CHECK(p_cuStreamSynchronize(stream));
}

/* samples, products, size of the small ones, of the large ones, one in so many is large, threads →
 * products per second */
static void queued(const long *args) {
  queue = (Queue){args[1], args[2], args[3], args[4]};
  workerCount = args[5];
  if (workerCount > MAX_THREADS) FAIL("%d threads at most", MAX_THREADS);
  if (!reserved++) reserve();
  for (long i = 0; i < workerCount; i++) {
    CHECK(p_cuMemsetD32Async(workers[i].small, 0, 1, workers[i].stream));
    CHECK(p_cuMemsetD32Async(workers[i].large, 0, 1, workers[i].stream));
    CHECK(p_cuStreamSynchronize(workers[i].stream));
  }
  workOff();
  long found = 0;
  for (long i = 0; i < workerCount; i++) {
    float first[2];
    CHECK(p_cuMemcpyDtoH(&first[0], workers[i].small, 4));
    CHECK(p_cuMemcpyDtoH(&first[1], workers[i].large, 4));
    if (first[0] != 0 && first[0] != (float)queue.small / 2)
      FAIL("a small product gave %g", first[0]);
    if (first[1] != 0 && first[1] != (float)queue.large / 2)
      FAIL("a large product gave %g", first[1]);
    found += (first[0] != 0) + (first[1] != 0);
  }
  if (found < 2) FAIL("%ld results were written", found);
  for (long k = 0; k < args[0]; k++) sample((double)queue.units / workOff() * 1e6);
}

static const Measurement measurements[] = {{"queue", queued}};

int main(int argc, char **argv) {
  openDevice(argc > 1 ? atoi(argv[1]) : 0);
  CUmodule module =
      loadModule(argc > 2 ? argv[2] : ".", "../../test/ptx/samples/sm_75/k04_sgemm.ptx");
  CHECK(p_cuModuleGetFunction(&product, module, "sgemm_reg"));
  return SERVE(measurements);
}
