/*
 * The algorithms of bench/kernels/typescript.ts in CUDA C++, for nvcc -O3: the same work for each thread, the same order.
 */
#include <math_constants.h>

#define K extern "C" __global__ void

K saxpy(float *__restrict__ y, const float *__restrict__ x, float a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
}

K elementwise(float *__restrict__ y, const float *__restrict__ x, const float *__restrict__ z, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float v = x[i], w = z[i];
  float gate = v / (1.f + expf(-v));
  y[i] = gate * w + sqrtf(fabsf(w) + 1.f);
}

K transpose(float *__restrict__ out, const float *__restrict__ in, int width, int height) {
  __shared__ float tile[32][33];
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8)
    if (x < width && y + j < height) tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * width + x];
  __syncthreads();
  x = blockIdx.y * 32 + threadIdx.x;
  y = blockIdx.x * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8)
    if (x < height && y + j < width) out[(y + j) * height + x] = tile[threadIdx.x][threadIdx.y + j];
}

__device__ __forceinline__ float warpSum(float v) {
  for (int o = 16; o > 0; o >>= 1) v += __shfl_xor_sync(~0u, v, o);
  return v;
}

__device__ __forceinline__ float warpMax(float v) {
  for (int o = 16; o > 0; o >>= 1) v = fmaxf(v, __shfl_xor_sync(~0u, v, o));
  return v;
}

/* The same in every thread of 256. */
__device__ __forceinline__ float blockSum(float v) {
  __shared__ float sums[8];
  v = warpSum(v);
  __syncthreads();
  if ((threadIdx.x & 31) == 0) sums[threadIdx.x >> 5] = v;
  __syncthreads();
  float sum = sums[0];
  for (int i = 1; i < 8; i++) sum += sums[i];
  return sum;
}

__device__ __forceinline__ float blockMax(float v) {
  __shared__ float most[8];
  v = warpMax(v);
  __syncthreads();
  if ((threadIdx.x & 31) == 0) most[threadIdx.x >> 5] = v;
  __syncthreads();
  float max = most[0];
  for (int i = 1; i < 8; i++) max = fmaxf(max, most[i]);
  return max;
}

K reduce(float *out, const float *__restrict__ x, int n) {
  float sum = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) sum += x[i];
  sum = blockSum(sum);
  if (threadIdx.x == 0) atomicAdd(out, sum);
}

K softmax(float *__restrict__ y, const float *__restrict__ x, int columns) {
  const int row = blockIdx.x * columns;
  float max = -CUDART_INF_F;
  for (int i = threadIdx.x; i < columns; i += blockDim.x) max = fmaxf(max, x[row + i]);
  max = blockMax(max);
  float sum = 0;
  for (int i = threadIdx.x; i < columns; i += blockDim.x) sum += expf(x[row + i] - max);
  float scale = 1.f / blockSum(sum);
  for (int i = threadIdx.x; i < columns; i += blockDim.x) y[row + i] = expf(x[row + i] - max) * scale;
}

K layer_norm(float *__restrict__ y, const float *__restrict__ x, const float *__restrict__ w, const float *__restrict__ b, int columns, float eps) {
  const int row = blockIdx.x * columns;
  float sum = 0;
  for (int i = threadIdx.x; i < columns; i += blockDim.x) sum += x[row + i];
  float mean = blockSum(sum) / columns;
  float square = 0;
  for (int i = threadIdx.x; i < columns; i += blockDim.x) {
    float d = x[row + i] - mean;
    square += d * d;
  }
  float scale = 1.f / sqrtf(blockSum(square) / columns + eps);
  for (int i = threadIdx.x; i < columns; i += blockDim.x) y[row + i] = (x[row + i] - mean) * scale * w[i] + b[i];
}

K rms_norm(float *__restrict__ y, const float *__restrict__ x, const float *__restrict__ w, int columns, float eps) {
  const int row = blockIdx.x * columns;
  float square = 0;
  for (int i = threadIdx.x; i < columns; i += blockDim.x) {
    float v = x[row + i];
    square += v * v;
  }
  float scale = 1.f / sqrtf(blockSum(square) / columns + eps);
  for (int i = threadIdx.x; i < columns; i += blockDim.x) y[row + i] = x[row + i] * scale * w[i];
}

K histogram(unsigned *out, const unsigned char *__restrict__ data, int n) {
  __shared__ unsigned counts[256];
  counts[threadIdx.x] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&counts[data[i]], 1u);
  __syncthreads();
  atomicAdd(&out[threadIdx.x], counts[threadIdx.x]);
}

K scan(int *__restrict__ out, int *__restrict__ sums, const int *__restrict__ in, int n) {
  __shared__ int warps[32];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  int v = i < n ? in[i] : 0;
  for (int o = 1; o < 32; o <<= 1) {
    int below = __shfl_up_sync(~0u, v, o);
    if (lane >= o) v += below;
  }
  if (lane == 31) warps[warp] = v;
  __syncthreads();
  if (warp == 0) {
    int s = lane < (int)(blockDim.x >> 5) ? warps[lane] : 0;
    for (int o = 1; o < 32; o <<= 1) {
      int below = __shfl_up_sync(~0u, s, o);
      if (lane >= o) s += below;
    }
    warps[lane] = s;
  }
  __syncthreads();
  if (warp > 0) v += warps[warp - 1];
  if (i < n) out[i] = v;
  if (threadIdx.x == blockDim.x - 1) sums[blockIdx.x] = v;
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
    unsigned h0 = __umulhi(0xD2511F53u, a), l0 = 0xD2511F53u * a, h1 = __umulhi(0xCD9E8D57u, c), l1 = 0xCD9E8D57u * c;
    a = h1 ^ b ^ k0;
    b = l1;
    c = h0 ^ d ^ k1;
    d = l0;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  out[i] = make_uint4(a, b, c, d);
}
