// Threads that wait for each other in ways that only independent threads can: compiled with NVRTC 13.5 for compute_75 with -lineinfo
// into independent-threads.ptx. independent-threads.test.ts says what each kernel gives.
typedef unsigned u;
extern "C" {
__global__ void naive_lock(int *lock, int *count, int rounds) {
  for (int i = 0; i < rounds; i++) { while (atomicCAS(lock, 0, 1) != 0); __threadfence(); int v = *(volatile int *)count; *(volatile int *)count = v + 1; __threadfence(); atomicExch(lock, 0); }
}
__global__ void ticket_lock(u *next, volatile u *serving, u *order, int *at) {
  u my = atomicAdd(next, 1); while (*serving != my); order[*at] = my; *at = *at + 1; __threadfence(); *serving = my + 1;
}
__global__ void shared_lock(int *out) {
  __shared__ int lock, count; if (threadIdx.x == 0) lock = count = 0; __syncthreads();
  while (atomicCAS(&lock, 0, 1)) __nanosleep(20); count += threadIdx.x; __threadfence_block(); atomicExch(&lock, 0);
  __syncthreads(); if (threadIdx.x == 0) out[blockIdx.x] = count;
}
__global__ void readers_writers(int *state, int *a, int *b, int *bad, int *reads) {
  bool writer = (threadIdx.x + blockIdx.x) % 5 == 0;
  for (int r = 0; r < 4; r++) if (writer) {
    while (atomicCAS(state, 0, -1) != 0); *(volatile int *)a += 1; __nanosleep(5); *(volatile int *)b += 1; __threadfence(); atomicExch(state, 0);
  } else {
    for (;;) { int s = *(volatile int *)state; if (s >= 0 && atomicCAS(state, s, s + 1) == s) break; }
    if (*(volatile int *)a != *(volatile int *)b) atomicAdd(bad, 1); atomicAdd(reads, 1); atomicSub(state, 1);
  }
}
__global__ void philosophers(int *forks, int *meals, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x; if (i >= n) return; int l = i, r = (i + 1) % n; if (l > r) { int t = l; l = r; r = t; }
  for (int m = 0; m < 5; m++) { while (atomicExch(&forks[l], 1)); while (atomicExch(&forks[r], 1)); meals[i]++; __threadfence(); atomicExch(&forks[r], 0); atomicExch(&forks[l], 0); }
}
__global__ void reverse_chain(volatile int *flag, volatile int *value) {
  int b = blockIdx.x, last = gridDim.x - 1; if (threadIdx.x == 0) { int v = 1; if (b < last) { while (!flag[b + 1]); v = value[b + 1] * 3 + b; v &= 0xfffff; } value[b] = v; __threadfence(); flag[b] = 1; }
}
__global__ void lane_ring(int *out) { volatile __shared__ int token; if (threadIdx.x == 0) token = 0; __syncthreads();
  for (int r = 0; r < 3; r++) { while (token != r * (int)blockDim.x + (int)threadIdx.x); out[token] = threadIdx.x; __threadfence_block(); token = token + 1; } }
__global__ void lane0_waits_for_31(int *out) { volatile __shared__ int flag; if (threadIdx.x == 0) flag = 0; __syncwarp();
  if (threadIdx.x == 0) { while (flag != 31); out[0] = 7; } else if (threadIdx.x == 31) { __nanosleep(1000); flag = 31; } }
__global__ void bounded_queue(int *out, int items) { volatile __shared__ int q[4]; volatile __shared__ int head, tail; if (threadIdx.x == 0) head = tail = 0; __syncthreads();
  if (threadIdx.x == 5) for (int i = 0; i < items; i++) { while (tail - head == 4); q[tail & 3] = i * i; __threadfence_block(); tail = tail + 1; }
  if (threadIdx.x == 40) { int s = 0; for (int i = 0; i < items; i++) { while (tail == head); s += q[head & 3]; __threadfence_block(); head = head + 1; } out[0] = s; } }
__global__ void named(int *out, int rounds) { __shared__ int buf[2][32]; int w = threadIdx.x / 32, l = threadIdx.x % 32; int sum = 0;
  for (int r = 0; r < rounds; r++) { int s = r & 1;
    if (w == 0) { if (r >= 2) asm volatile("bar.sync %0, 64;" ::"r"(3 + s) : "memory"); buf[s][l] = r * 32 + l; __threadfence_block(); asm volatile("bar.arrive %0, 64;" ::"r"(1 + s) : "memory"); }
    else if (w == 1) { asm volatile("bar.sync %0, 64;" ::"r"(1 + s) : "memory"); sum += buf[s][31 - l]; if (r + 2 < rounds) asm volatile("bar.arrive %0, 64;" ::"r"(3 + s) : "memory"); } }
  if (w == 1) out[l] = sum; }
__global__ void nested(int *out) { int t = threadIdx.x; int v = t;
  if (t < 64) { asm volatile("bar.sync 1, 64;" ::: "memory"); if (t < 32) { for (int i = 0; i < 3; i++) { v = __shfl_xor_sync(~0u, v, 1 << i); } asm volatile("bar.sync 2, 32;" ::: "memory"); } else { v += __popc(__ballot_sync(~0u, t & 4)); } asm volatile("bar.sync 1, 64;" ::: "memory"); }
  else { asm volatile("barrier.sync 4, 64;" ::: "memory"); v = v + __shfl_xor_sync(~0u, v, 31); }
  __syncthreads(); out[t] = v; }
__global__ void early_exit(int *out) { __shared__ int s; if (threadIdx.x == 0) s = 0; __syncthreads(); if (threadIdx.x % 4 == 3) return; atomicAdd(&s, 1); __syncthreads(); int c = __syncthreads_count(threadIdx.x & 1); out[threadIdx.x] = s * 100 + c; }
__global__ void loop_until_all(int *out) { int n = threadIdx.x * 3 % 11, i = 0; while (__syncthreads_or(i < n)) { if (i < n) i++; } out[threadIdx.x] = i; }
__global__ void subset_syncwarp(int *out) { __shared__ volatile int x[32]; int t = threadIdx.x; x[t] = t;
  if (t < 11) { __syncwarp(0x7ff); int y = x[(t + 1) % 11]; __syncwarp(0x7ff); x[t] = y * 2; __syncwarp(0x7ff); out[t] = x[(t + 5) % 11]; } else { __syncwarp(~0x7ffu); out[t] = x[11 + (t - 11 + 1) % 21]; } }
__device__ __noinline__ int depth(int n, int k) { if (n <= 0) return k; int a = depth(n - 1, k + 1); return (n & 1) ? a + depth(n - 3, k) : a ^ n; }
__global__ void recursion_depths(int *out) { out[blockIdx.x * blockDim.x + threadIdx.x] = depth(threadIdx.x % 13, blockIdx.x); }
__global__ void crossed_locks(int *locks) { int a = threadIdx.x, b = 1 - a; while (atomicCAS(&locks[a], 0, 1)); __threadfence(); while (((volatile int *)locks)[b] == 0); while (atomicCAS(&locks[b], 0, 1)); }
__global__ void missed_barrier(volatile int *flag) { if (threadIdx.x == 0) { while (!*flag); } __syncthreads(); if (threadIdx.x == 1) *flag = 1; }
}
