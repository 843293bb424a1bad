// Graphs, sparse matrices and structures that threads share without a barrier.
#include <cuda/atomic>
typedef unsigned long long u64;
#define I (blockIdx.x * blockDim.x + threadIdx.x)

// Connected components by union-find.
__device__ int find(volatile int* p, int x) {
  while (p[x] != x) {
    p[x] = p[p[x]];
    x = p[x];
  }
  return x;
}

extern "C" __global__ void cc_link(const int2* e, int* p, int m) {
  int i = I;
  if (i >= m) return;
  int u = e[i].x, v = e[i].y;
  for (;;) {
    u = find(p, u);
    v = find(p, v);
    if (u == v) return;
    if (u < v) {
      int t = u;
      u = v;
      v = t;
    }
    if (atomicCAS(p + u, u, v) == u) return;
  }
}

extern "C" __global__ void cc_flat(int* p, int* o, int n) {
  int i = I;
  if (i < n) o[i] = find(p, i);
}

// The game of life, 32 cells a word, neighbours counted in bit planes.
extern "C" __global__ void life(const unsigned* a, unsigned* o, int w, int h) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= w || y >= h) return;
  unsigned s0 = 0, s1 = 0, s2 = 0, s3 = 0;
  auto add = [&](unsigned v) {
    unsigned c = s0 & v;
    s0 ^= v;
    unsigned d = s1 & c;
    s1 ^= c;
    unsigned e = s2 & d;
    s2 ^= d;
    s3 |= e;
  };
  for (int dy = -1; dy <= 1; dy++) {
    const unsigned* r = a + ((y + dy + h) % h) * w;
    unsigned l = r[(x + w - 1) % w], c = r[x], g = r[(x + 1) % w];
    add(__funnelshift_l(l, c, 1));
    add(__funnelshift_r(c, g, 1));
    if (dy) add(c);
  }
  unsigned c = a[y * w + x];
  o[y * w + x] = ~s3 & ~s2 & s1 & (s0 | c);
}

// A table of counts, open addressing.
template <class K, class V>
__device__ void put(K* keys, V* vals, int cap, K k) {
  unsigned h = (unsigned)k * 2654435761u % cap;
  for (;;) {
    K q = atomicCAS(keys + h, (K)0, k);
    if (q == 0 || q == k) {
      atomicAdd(vals + h, (V)1);
      return;
    }
    h = h + 1 == cap ? 0 : h + 1;
  }
}

extern "C" __global__ void hash64(const unsigned* in, u64* keys, u64* vals, int cap, int n) {
  for (int i = I; i < n; i += gridDim.x * blockDim.x)
    put(keys, vals, cap, (u64)in[i] << 33 | in[i] | 1ull << 32);
}

extern "C" __global__ void sum64(const u64* keys, const u64* vals, u64* o, int cap) {
  int i = I;
  if (i < cap && keys[i]) atomicMax(o + (keys[i] & 1023), vals[i] * 1000 + (keys[i] >> 33));
}

// A queue of 16 cells for many producers and consumers, by tickets.
struct Cell {
  cuda::atomic<unsigned, cuda::thread_scope_device> seq;
  unsigned v;
};

extern "C" __global__ void q_init(Cell* c, int cap) {
  int i = I;
  if (i < cap) c[i].seq.store(i, cuda::memory_order_relaxed);
}

extern "C" __global__ void queue(
    Cell* c, unsigned cap, unsigned* head, unsigned* tail, u64* sum, unsigned* seen, int per) {
  unsigned t = I;
  bool prod = (t & 1) == 0;
  for (int k = 0; k < per; k++) {
    if (prod) {
      unsigned p = atomicAdd(tail, 1u);
      Cell& x = c[p % cap];
      while (x.seq.load(cuda::memory_order_acquire) != p) __nanosleep(20);
      x.v = t * per + k;
      x.seq.store(p + 1, cuda::memory_order_release);
    } else {
      unsigned p = atomicAdd(head, 1u);
      Cell& x = c[p % cap];
      while (x.seq.load(cuda::memory_order_acquire) != p + 1) __nanosleep(20);
      unsigned v = x.v;
      x.seq.store(p + cap, cuda::memory_order_release);
      atomicAdd(sum, (u64)v);
      atomicAdd(seen + v % 64, 1u);
    }
  }
}

extern "C" __global__ void sssp(
    const int* rp, const int* ci, const int* w, int* dist, int* changed, int n) {
  int v = I;
  if (v >= n) return;
  int d = dist[v];
  if (d == 0x3fffffff) return;
  for (int j = rp[v]; j < rp[v + 1]; j++) {
    int nd = d + w[j];
    if (atomicMin(dist + ci[j], nd) > nd) *changed = 1;
  }
}

// Rows of a triangular system wait for those they need.
extern "C" __global__ void sptrsv(const int* rp, const int* ci, const double* v, const double* b,
    volatile double* x, volatile int* done, int n) {
  int r = I >> 5, l = I & 31;
  if (r >= n) return;
  double s = 0;
  for (int j = rp[r] + l; j < rp[r + 1] - 1; j += 32) {
    while (!done[ci[j]]);
    __threadfence();
    s += v[j] * x[ci[j]];
  }
  for (int o = 16; o; o >>= 1) s += __shfl_down_sync(~0u, s, o);
  if (l == 0) {
    x[r] = (b[r] - s) / v[rp[r + 1] - 1];
    __threadfence();
    done[r] = 1;
  }
}

// A product with a matrix of coordinates: sums by row within a warp, then atomics.
extern "C" __global__ void coo(
    const int* r, const int* c, const float* v, const float* x, float* y, int n) {
  int i = I, l = threadIdx.x & 31;
  int row = i < n ? r[i] : -1;
  float s = i < n ? v[i] * x[c[i]] : 0;
  for (int o = 1; o < 32; o <<= 1) {
    float t = __shfl_up_sync(~0u, s, o);
    int q = __shfl_up_sync(~0u, row, o);
    if (l >= o && q == row) s += t;
  }
  int nx = __shfl_down_sync(~0u, row, 1);
  if (row >= 0 && (l == 31 || nx != row)) atomicAdd(y + row, s);
}

// Keys of four bits at a time, ranked by match.
extern "C" __global__ void __launch_bounds__(256) radix(const unsigned* in, unsigned* out, int n) {
  __shared__ unsigned cnt[8][16], base[16];
  __shared__ unsigned tot[16];
  int w = threadIdx.x >> 5, l = threadIdx.x & 31;
  unsigned k[2] = {in[threadIdx.x], 0};
  __shared__ unsigned buf[256];
  unsigned key = k[0];
  for (int b = 0; b < 32; b += 4) {
    unsigned d = key >> b & 15;
    if (threadIdx.x < 128) cnt[threadIdx.x >> 4][threadIdx.x & 15] = 0;
    __syncthreads();
    unsigned m = __match_any_sync(~0u, d);
    unsigned rank = __popc(m & ((1u << l) - 1));
    if (rank == 0) cnt[w][d] = __popc(m);
    __syncthreads();
    if (threadIdx.x < 16) {
      unsigned s = 0;
      for (int j = 0; j < 8; j++) {
        unsigned t = cnt[j][threadIdx.x];
        cnt[j][threadIdx.x] = s;
        s += t;
      }
      tot[threadIdx.x] = s;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
      unsigned s = 0;
      for (int j = 0; j < 16; j++) {
        base[j] = s;
        s += tot[j];
      }
    }
    __syncthreads();
    buf[base[d] + cnt[w][d] + rank] = key;
    __syncthreads();
    key = buf[threadIdx.x];
    __syncthreads();
  }
  out[threadIdx.x] = key;
}

// Merge path.
extern "C" __global__ void mpath(const int* a, int na, const int* b, int nb, int* o, int per) {
  int d = I * per;
  if (d >= na + nb) return;
  int lo = max(0, d - nb), hi = min(d, na);
  while (lo < hi) {
    int m = (lo + hi) >> 1;
    if (a[m] <= b[d - 1 - m]) lo = m + 1;
    else hi = m;
  }
  int x = lo, y = d - lo;
  for (int k = 0; k < per && d + k < na + nb; k++)
    o[d + k] = y >= nb || (x < na && a[x] <= b[y]) ? a[x++] : b[y++];
}

// A lock that backs off.
__device__ int lock_ = 0;

extern "C" __global__ void locks(int* c, int n) {
  for (int k = 0; k < 3; k++) {
    unsigned ns = 8;
    while (atomicCAS(&lock_, 0, 1) != 0) {
      __nanosleep(ns);
      if (ns < 256) ns *= 2;
    }
    __threadfence();
    volatile int* v = c;
    int t = v[0];
    v[1] = v[1] + t % 3;
    v[0] = t + 1;
    __threadfence();
    atomicExch(&lock_, 0);
  }
}
