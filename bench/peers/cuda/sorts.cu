/*
 * Sorting by CUB, which is called from the host: a program of its own, in the protocol of
 * bench/peers/program.ts. `sort N SAMPLES LAUNCHES`: N u32, microseconds of one of LAUNCHES sorts
 * between two events.
 */
#include <cub/cub.cuh>

#include "../c/protocol.h"

#define CHECK(call)                                                               \
  do {                                                                            \
    cudaError_t status = (call);                                                  \
    if (status != cudaSuccess) FAIL("%s: %s", #call, cudaGetErrorString(status)); \
  } while (0)

static void sort(const long *args) {
  const int n = (int)args[0], launches = (int)args[2];
  unsigned *from, *to;
  void *space = NULL;
  size_t bytes = 0;
  cudaEvent_t begin, end;
  unsigned *keys = (unsigned *)malloc(4 * (size_t)n);
  unsigned long long sum = 0;
  for (int i = 0; i < n; i++) {
    // As bench/kernels/sorting.ts has them.
    unsigned x = (i + 1u) * 2654435761u;
    keys[i] = (x ^ x >> 15) * 2246822519u;
    sum += keys[i];
  }
  CHECK(cudaMalloc(&from, 4 * (size_t)n));
  CHECK(cudaMalloc(&to, 4 * (size_t)n));
  CHECK(cudaMemcpy(from, keys, 4 * (size_t)n, cudaMemcpyHostToDevice));
  CHECK(cub::DeviceRadixSort::SortKeys(space, bytes, from, to, n));
  CHECK(cudaMalloc(&space, bytes));
  CHECK(cub::DeviceRadixSort::SortKeys(space, bytes, from, to, n));
  CHECK(cudaMemcpy(keys, to, 4 * (size_t)n, cudaMemcpyDeviceToHost));
  for (int i = 0; i < n; i++) {
    if (i > 0 && keys[i] < keys[i - 1]) FAIL("element %d is not in order", i);
    sum -= keys[i];
  }
  if (sum != 0) FAIL("these are other elements");
  CHECK(cudaEventCreate(&begin));
  CHECK(cudaEventCreate(&end));
  for (long k = 0; k < args[1]; k++) {
    float milliseconds;
    CHECK(cudaEventRecord(begin));
    for (int i = 0; i < launches; i++)
      CHECK(cub::DeviceRadixSort::SortKeys(space, bytes, from, to, n));
    CHECK(cudaEventRecord(end));
    CHECK(cudaEventSynchronize(end));
    CHECK(cudaEventElapsedTime(&milliseconds, begin, end));
    sample(milliseconds * 1000 / launches);
  }
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  cudaFree(from);
  cudaFree(to);
  cudaFree(space);
  free(keys);
}

static const Measurement measurements[] = {{"sort", sort}};

int main(int count, char **args) {
  char versions[64];
  if (cudaSetDevice(count > 1 ? atoi(args[1]) : 0) != cudaSuccess) {
    printf("{\"absent\": \"no GPU\"}\n");
    return 0;
  }
  snprintf(versions, sizeof versions, ", \"CUB\": \"%d.%d.%d\"", CUB_MAJOR_VERSION,
      CUB_MINOR_VERSION, CUB_SUBMINOR_VERSION);
  return serveLines(measurements, 1, versions);
}
