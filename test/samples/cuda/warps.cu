// Warps whose threads count on being in step, as before Volta, and such as wait one by one.

// The end of a reduction, from a time without __syncwarp.
__device__ void reduceWarp(volatile float* sums, int lane) {
  sums[lane] += sums[lane + 32];
  sums[lane] += sums[lane + 16];
  sums[lane] += sums[lane + 8];
  sums[lane] += sums[lane + 4];
  sums[lane] += sums[lane + 2];
  sums[lane] += sums[lane + 1];
}

extern "C" __global__ void old_reduce(const float* x, float* out, int n) {
  extern __shared__ float sums[];
  float sum = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    sum += x[i];
  sums[threadIdx.x] = sum;
  __syncthreads();
  for (int half = blockDim.x / 2; half > 32; half /= 2) {
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x < 32) reduceWarp(sums, threadIdx.x);
  if (threadIdx.x == 0) out[blockIdx.x] = sums[0];
}

// Scans of 32 by Hillis and Steele, in rows of 48 threads; whoever has no 32 neighbours does
// nothing.
extern "C" __global__ void old_scan(int* data, int warps) {
  __shared__ volatile int rows[3][64];
  int thread = threadIdx.y * blockDim.x + threadIdx.x;
  int warp = thread / 32, lane = thread % 32;
  if (warp >= warps) return;
  volatile int* row = rows[warp] + 32;
  row[lane - 32] = 0;
  row[lane] = data[32 * warp + lane];
  for (int by = 1; by < 32; by *= 2) row[lane] += row[lane - by];
  data[32 * warp + lane] = row[lane];
}

// Recursion cannot give way; it reads what one thread wrote.
__device__ __noinline__ int walk(volatile int* steps, int at) {
  if (at <= 0) return steps[0];
  steps[at] = steps[at] + 1;
  return steps[at] + walk(steps, at - 1);
}

extern "C" __global__ void old_walk(int* out) {
  __shared__ int steps[32];
  steps[threadIdx.x] = threadIdx.x;
  __syncthreads();
  if (threadIdx.x == 0) out[0] = walk(steps, 9);
}

__device__ unsigned addressOf(const void* shared) {
  return (unsigned)__cvta_generic_to_shared(shared);
}

// The first warp's threads wait at four barriers; those of the last are released only by one that
// has passed the first.
extern "C" __global__ void four_barriers(int* out) {
  __shared__ unsigned long long barriers[4];
  __shared__ int values[32], passed;
  int lane = threadIdx.x & 31, mine = lane & 3;
  if (threadIdx.x < 4)
    asm volatile("mbarrier.init.shared.b64 [%0], 8;" ::"r"(addressOf(barriers + threadIdx.x)));
  if (threadIdx.x < 32) values[threadIdx.x] = -1;
  if (threadIdx.x == 0) passed = 0;
  __syncthreads();
  if (threadIdx.x >= 32) {
    if (mine == 3) while (atomicAdd(&passed, 0) == 0);
    values[lane] = 100 + lane;
    asm volatile("{ .reg .b64 state; mbarrier.arrive.shared.b64 state, [%0]; }" ::"r"(
        addressOf(barriers + mine))
        : "memory");
    return;
  }
  for (int done = 0; !done;) {
    asm volatile(
        "{ .reg .pred p; mbarrier.test_wait.parity.shared.b64 p, [%1], 0; selp.b32 %0, 1, 0, p; }"
        : "=r"(done)
        : "r"(addressOf(barriers + mine))
        : "memory");
    if (done && lane == 0) atomicExch(&passed, 1);
  }
  out[lane] = values[lane];
}
