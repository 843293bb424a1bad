/*
 * The algorithms of bench/kernels/typescript.ts in CUDA C++, for nvcc -O3: the same work for each
 * thread, the same order.
 */
#include <math_constants.h>

#define K extern "C" __global__ void

/* Four elements for each thread, of a multiple of four. */
K saxpy(float4 *__restrict__ y, const float4 *__restrict__ x, float a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i * 4 >= n) return;
  float4 v = x[i], w = y[i];
  y[i] = make_float4(a * v.x + w.x, a * v.y + w.y, a * v.z + w.z, a * v.w + w.w);
}

__device__ __forceinline__ float gated(float v, float w) {
  float gate = v / (1.f + expf(-v));
  return gate * w + sqrtf(fabsf(w) + 1.f);
}

K elementwise(
    float4 *__restrict__ y, const float4 *__restrict__ x, const float4 *__restrict__ z, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i * 4 >= n) return;
  float4 v = x[i], w = z[i];
  y[i] = make_float4(gated(v.x, w.x), gated(v.y, w.y), gated(v.z, w.z), gated(v.w, w.w));
}

/* Of sides that are multiples of 64. */
K transpose(float4 *__restrict__ out, const float4 *__restrict__ in, int width, int height) {
  __shared__ float tile[64][65];
  int column = threadIdx.x % 16, row = threadIdx.x / 16, left = blockIdx.x * 64,
      top = blockIdx.y * 64;
  float4 v[4];
#pragma unroll
  for (int p = 0; p < 4; p++) v[p] = in[(top + row + p * 16) * (width / 4) + left / 4 + column];
#pragma unroll
  for (int p = 0; p < 4; p++) {
    float *to = &tile[row + p * 16][column * 4];
    to[0] = v[p].x, to[1] = v[p].y, to[2] = v[p].z, to[3] = v[p].w;
  }
  __syncthreads();
#pragma unroll
  for (int p = 0; p < 4; p++) {
    int y = row + p * 16, x = column * 4;
    out[(left + y) * (height / 4) + top / 4 + column] =
        make_float4(tile[x][y], tile[x + 1][y], tile[x + 2][y], tile[x + 3][y]);
  }
}

__device__ __forceinline__ float warpSum(float v) {
  for (int o = 16; o > 0; o >>= 1) v += __shfl_xor_sync(~0u, v, o);
  return v;
}

__device__ __forceinline__ float warpMax(float v) {
  for (int o = 16; o > 0; o >>= 1) v = fmaxf(v, __shfl_xor_sync(~0u, v, o));
  return v;
}

/* The same in every thread. */
template <int WARPS> __device__ __forceinline__ float blockSum(float v) {
  __shared__ float sums[WARPS];
  v = warpSum(v);
  __syncthreads();
  if ((threadIdx.x & 31) == 0) sums[threadIdx.x >> 5] = v;
  __syncthreads();
  float sum = sums[0];
  for (int i = 1; i < WARPS; i++) sum += sums[i];
  return sum;
}

template <int WARPS> __device__ __forceinline__ float blockMax(float v) {
  __shared__ float most[WARPS];
  v = warpMax(v);
  __syncthreads();
  if ((threadIdx.x & 31) == 0) most[threadIdx.x >> 5] = v;
  __syncthreads();
  float max = most[0];
  for (int i = 1; i < WARPS; i++) max = fmaxf(max, most[i]);
  return max;
}

/* Of a multiple of 4096 elements. */
K reduce(float *out, const float4 *__restrict__ x, int n) {
  float4 sums = make_float4(0, 0, 0, 0), v[4];
  for (int unit = blockIdx.x * 1024 + threadIdx.x; unit < n / 4; unit += gridDim.x * 1024) {
#pragma unroll
    for (int j = 0; j < 4; j++) v[j] = __ldcs(x + unit + j * 256);
#pragma unroll
    for (int j = 0; j < 4; j++)
      sums.x += v[j].x, sums.y += v[j].y, sums.z += v[j].z, sums.w += v[j].w;
  }
  float sum = blockSum<8>((sums.x + sums.y) + (sums.z + sums.w));
  if (threadIdx.x == 0) atomicAdd(out, sum);
}

/* Eight elements of a row of 4096 for each thread of 512. */
struct Elements {
  float v[8];
  __device__ __forceinline__ Elements(const float4 *__restrict__ x, int first) {
#pragma unroll
    for (int j = 0; j < 2; j++) {
      float4 four = x[first + j * 512];
      v[j * 4] = four.x, v[j * 4 + 1] = four.y, v[j * 4 + 2] = four.z, v[j * 4 + 3] = four.w;
    }
  }
  __device__ __forceinline__ float4 four(int j) const {
    return make_float4(v[j * 4], v[j * 4 + 1], v[j * 4 + 2], v[j * 4 + 3]);
  }
};

K softmax(float4 *__restrict__ y, const float4 *__restrict__ x) {
  const int first = blockIdx.x * 1024 + threadIdx.x;
  Elements e(x, first);
  float max = e.v[0], sum = 0;
#pragma unroll
  for (int i = 1; i < 8; i++) max = fmaxf(max, e.v[i]);
  max = blockMax<16>(max);
#pragma unroll
  for (int i = 0; i < 8; i++) sum += e.v[i] = expf(e.v[i] - max);
  const float scale = 1.f / blockSum<16>(sum);
#pragma unroll
  for (int i = 0; i < 8; i++) e.v[i] *= scale;
#pragma unroll
  for (int j = 0; j < 2; j++) y[first + j * 512] = e.four(j);
}

K layer_norm(float4 *__restrict__ y, const float4 *__restrict__ x, const float4 *__restrict__ w,
    const float4 *__restrict__ b, float eps) {
  const int first = blockIdx.x * 1024 + threadIdx.x;
  Elements e(x, first);
  float sum = 0, square = 0;
#pragma unroll
  for (int i = 0; i < 8; i++) sum += e.v[i];
  const float mean = blockSum<16>(sum) / 4096;
#pragma unroll
  for (int i = 0; i < 8; i++) e.v[i] -= mean, square += e.v[i] * e.v[i];
  const float scale = 1.f / sqrtf(blockSum<16>(square) / 4096 + eps);
  const Elements g(w, threadIdx.x), h(b, threadIdx.x);
#pragma unroll
  for (int i = 0; i < 8; i++) e.v[i] = e.v[i] * scale * g.v[i] + h.v[i];
#pragma unroll
  for (int j = 0; j < 2; j++) y[first + j * 512] = e.four(j);
}

K rms_norm(
    float4 *__restrict__ y, const float4 *__restrict__ x, const float4 *__restrict__ w, float eps) {
  const int first = blockIdx.x * 1024 + threadIdx.x;
  Elements e(x, first);
  float square = 0;
#pragma unroll
  for (int i = 0; i < 8; i++) square += e.v[i] * e.v[i];
  const float scale = 1.f / sqrtf(blockSum<16>(square) / 4096 + eps);
  const Elements g(w, threadIdx.x);
#pragma unroll
  for (int i = 0; i < 8; i++) e.v[i] = e.v[i] * scale * g.v[i];
#pragma unroll
  for (int j = 0; j < 2; j++) y[first + j * 512] = e.four(j);
}

K histogram(unsigned *out, const unsigned char *__restrict__ data, int n) {
  __shared__ unsigned counts[256];
  counts[threadIdx.x] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    atomicAdd(&counts[data[i]], 1u);
  __syncthreads();
  atomicAdd(&out[threadIdx.x], counts[threadIdx.x]);
}

typedef unsigned long long Word;

__device__ __forceinline__ void tell(volatile Word *state, int at, int sum, unsigned launch) {
  state[at] = (Word)launch << 32 | (unsigned)sum;
}

/* `word` was read before other work, which saves waiting for the first answer. */
__device__ __forceinline__ int hear(volatile Word *state, int at, Word word, unsigned launch) {
  while ((unsigned)(word >> 32) != launch) word = state[at];
  return (int)word;
}

__device__ __forceinline__ int warpSum(int v) {
  for (int o = 16; o > 0; o >>= 1) v += __shfl_xor_sync(~0u, v, o);
  return v;
}

__device__ __forceinline__ void copyAhead(int4 *to, const int4 *from) {
  asm volatile(
      "cp.async.cg.shared.global [%0], [%1], 16;" ::"r"((unsigned)__cvta_generic_to_shared(to)),
      "l"(from)
      : "memory");
}

__device__ __forceinline__ void commitAhead() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}

template <int left> __device__ __forceinline__ void waitAhead() {
  asm volatile("cp.async.wait_group %0;" ::"n"(left) : "memory");
}

/* Of a multiple of 8192 elements, each read once. */
enum {
  SCAN_BLOCK = 256,
  SCAN_TIMES = 8,
  SCAN_STAGES = 2,
  SCAN_WARPS = SCAN_BLOCK / 32,
  SCAN_UNITS = SCAN_BLOCK * SCAN_TIMES
};

K scan(int4 *__restrict__ out, Word *state, const int4 *__restrict__ in, int chunks) {
  __shared__ int warps[2][SCAN_WARPS], found[SCAN_WARPS + 1], turns[SCAN_STAGES + 1];
  __shared__ unsigned launchOf[1];
  extern __shared__ int4 staged[];
  int t = threadIdx.x, lane = t & 31, warp = t >> 5, within = warp * (32 * SCAN_TIMES) + lane;
  Word tickets = chunks + gridDim.x * SCAN_STAGES, spent = 0;
  if (t == 0) {
    Word taken = atomicAdd(state, 1ull), number = taken / tickets;
    spent = number * tickets;
    launchOf[0] = (unsigned)(number + 1);
    turns[0] = (int)(taken - spent);
    for (int stage = 1; stage < SCAN_STAGES; stage++)
      turns[stage] = (int)(atomicAdd(state, 1ull) - spent);
  }
  __syncthreads();
  unsigned launch = launchOf[0];
  for (int stage = 0; stage < SCAN_STAGES; stage++) {
    int taken = turns[stage];
#pragma unroll
    for (int j = 0; j < SCAN_TIMES; j++)
      if (taken < chunks)
        copyAhead(&staged[stage * SCAN_UNITS + within + j * 32],
            &in[taken * SCAN_UNITS + within + j * 32]);
    commitAhead();
  }
  int slot = 0, stage = 0, turn = 0, chunk = turns[0], total = 0;
  waitAhead<SCAN_STAGES - 1>();
  if (chunk < chunks) {
    int own = 0;
#pragma unroll
    for (int j = 0; j < SCAN_TIMES; j++) {
      int4 v = staged[within + j * 32];
      own += v.x, own += v.y, own += v.z, own += v.w;
    }
    own = warpSum(own);
    if (lane == 0) warps[0][warp] = own;
  }
  __syncthreads();
#pragma unroll
  for (int i = 0; i < SCAN_WARPS; i++) total += warps[0][i];
  if (t == 0 && chunk < chunks) tell(state, 1 + chunk, total, launch);
  while (chunk < chunks) {
    int nextSlot = slot == SCAN_STAGES ? 0 : slot + 1,
        nextStage = stage == SCAN_STAGES - 1 ? 0 : stage + 1, next = turns[nextSlot], taken = 0;
    if (t == 0) taken = (int)(atomicAdd(state, 1ull) - spent);
    waitAhead<SCAN_STAGES - 2>();
    if (next < chunks) {
      int own = 0;
#pragma unroll
      for (int j = 0; j < SCAN_TIMES; j++) {
        int4 v = staged[nextStage * SCAN_UNITS + within + j * 32];
        own += v.x, own += v.y, own += v.z, own += v.w;
      }
      own = warpSum(own);
      if (lane == 0) warps[1 - turn][warp] = own;
    }
    int freed = slot == 0 ? SCAN_STAGES : slot - 1;
    if (t == 0) turns[freed] = taken;
    __syncthreads();
    int nextTotal = 0, start = 0;
#pragma unroll
    for (int i = 0; i < SCAN_WARPS; i++) {
      nextTotal += warps[1 - turn][i];
      if (i < warp) start += warps[turn][i];
    }
    if (t == 0 && next < chunks) tell(state, 1 + next, nextTotal, launch);
    int group = chunk / SCAN_BLOCK, place = chunk % SCAN_BLOCK,
        inGroup = 1 + group * SCAN_BLOCK + t;
    Word own = (Word)launch << 32, previous = own, earlier = own;
    if (t < place) own = ((volatile Word *)state)[inGroup];
    if (group > 0) previous = ((volatile Word *)state)[inGroup - SCAN_BLOCK];
    if (t == SCAN_BLOCK - 1 && group > 1) earlier = ((volatile Word *)state)[chunks + group - 1];
    int4 v[SCAN_TIMES];
    int starts[SCAN_TIMES], sum = 0;
#pragma unroll
    for (int j = 0; j < SCAN_TIMES; j++) {
      v[j] = staged[stage * SCAN_UNITS + within + j * 32];
      v[j].y += v[j].x, v[j].z += v[j].y, v[j].w += v[j].z;
      int upTo = v[j].w;
#pragma unroll
      for (int o = 1; o < 32; o <<= 1) {
        int below = __shfl_up_sync(~0u, upTo, o);
        if (lane >= o) upTo += below;
      }
      starts[j] = sum + upTo - v[j].w;
      sum += __shfl_sync(~0u, upTo, 31);
    }
    int ahead = turns[freed];
#pragma unroll
    for (int j = 0; j < SCAN_TIMES; j++)
      if (ahead < chunks)
        copyAhead(&staged[stage * SCAN_UNITS + within + j * 32],
            &in[ahead * SCAN_UNITS + within + j * 32]);
    commitAhead();
    int word =
        hear(state, inGroup, own, launch) + hear(state, inGroup - SCAN_BLOCK, previous, launch);
    if (t == SCAN_BLOCK - 1) found[SCAN_WARPS] = hear(state, chunks + group - 1, earlier, launch);
    word = warpSum(word);
    if (lane == 0) found[warp] = word;
    __syncthreads();
    int before = found[SCAN_WARPS];
#pragma unroll
    for (int i = 0; i < SCAN_WARPS; i++) before += found[i];
    if (t == 0 && place == SCAN_BLOCK - 1) tell(state, 1 + chunks + group, before + total, launch);
    start += before;
#pragma unroll
    for (int j = 0; j < SCAN_TIMES; j++) {
      int s = start + starts[j];
      out[chunk * SCAN_UNITS + within + j * 32] =
          make_int4(s + v[j].x, s + v[j].y, s + v[j].z, s + v[j].w);
    }
    total = nextTotal, chunk = next, slot = nextSlot, stage = nextStage, turn = 1 - turn;
  }
}

K nbody(float4 *__restrict__ v, const float4 *__restrict__ p, int n, float dt, float eps) {
  __shared__ float4 tile[256];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float4 me = p[i];
  float ax = 0, ay = 0, az = 0;
  for (int t = 0; t < n; t += 256) {
    tile[threadIdx.x] = p[t + threadIdx.x];
    __syncthreads();
    for (int j = 0; j < 256; j++) {
      float dx = tile[j].x - me.x, dy = tile[j].y - me.y, dz = tile[j].z - me.z;
      float r = rsqrtf(dx * dx + dy * dy + dz * dz + eps);
      float s = tile[j].w * r * r * r;
      ax += dx * s;
      ay += dy * s;
      az += dz * s;
    }
    __syncthreads();
  }
  float4 q = v[i];
  q.x += ax * dt;
  q.y += ay * dt;
  q.z += az * dt;
  v[i] = q;
}

K mandelbrot(int *out, int width, int height, float x0, float y0, float step, int most) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width || y >= height) return;
  float cx = x0 + x * step, cy = y0 + y * step, zx = 0, zy = 0;
  int i = 0;
  while (i < most && zx * zx + zy * zy < 4.f) {
    float t = zx * zx - zy * zy + cx;
    zy = 2 * zx * zy + cy;
    zx = t;
    i++;
  }
  out[y * width + x] = i;
}

K philox(uint4 *__restrict__ out, unsigned seed, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  unsigned a = i, b = 0, c = 0, d = 0, k0 = seed, k1 = 0;
  for (int round = 0; round < 10; round++) {
    unsigned h0 = __umulhi(0xD2511F53u, a), l0 = 0xD2511F53u * a, h1 = __umulhi(0xCD9E8D57u, c),
             l1 = 0xCD9E8D57u * c;
    a = h1 ^ b ^ k0;
    b = l1;
    c = h0 ^ d ^ k1;
    d = l0;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  out[i] = make_uint4(a, b, c, d);
}
