// Matrix instructions, asynchronous copies, and warps with different work.
#include <cuda_fp16.h>
#include <cuda/pipeline>
#include <cooperative_groups.h>
#include <mma.h>
namespace cg = cooperative_groups;
using namespace nvcuda;

// Bits and numbers of four bits.
extern "C" __global__ void wm_b1(const unsigned* a, const unsigned* b, int* d) {
  wmma::fragment<wmma::matrix_a, 8, 8, 128, wmma::experimental::precision::b1, wmma::row_major> fa;
  wmma::fragment<wmma::matrix_b, 8, 8, 128, wmma::experimental::precision::b1, wmma::col_major> fb;
  wmma::fragment<wmma::accumulator, 8, 8, 128, int> fc, fd;
  wmma::fill_fragment(fc, 1);
  wmma::load_matrix_sync(fa, (const void*)a, 128);
  wmma::load_matrix_sync(fb, (const void*)b, 128);
  wmma::bmma_sync(
      fd, fa, fb, fc, wmma::experimental::bmmaBitOpXOR, wmma::experimental::bmmaAccumulateOpPOPC);
  wmma::store_matrix_sync(d, fd, 8, wmma::mem_row_major);
  wmma::bmma_sync(
      fd, fa, fb, fd, wmma::experimental::bmmaBitOpAND, wmma::experimental::bmmaAccumulateOpPOPC);
  wmma::store_matrix_sync(d + 64, fd, 8, wmma::mem_col_major);
  wmma::fragment<wmma::matrix_a, 8, 8, 32, wmma::experimental::precision::s4, wmma::row_major> ga;
  wmma::fragment<wmma::matrix_b, 8, 8, 32, wmma::experimental::precision::s4, wmma::col_major> gb;
  wmma::fragment<wmma::accumulator, 8, 8, 32, int> gc;
  wmma::fill_fragment(gc, -5);
  wmma::load_matrix_sync(ga, (const void*)a, 32);
  wmma::load_matrix_sync(gb, (const void*)b, 32);
  wmma::mma_sync(gc, ga, gb, gc);
  wmma::store_matrix_sync(d + 128, gc, 8, wmma::mem_row_major);
}

// Tiles of 64 by 32 in two stages of cp.async, fragments by ldmatrix.
extern "C" __global__ void __launch_bounds__(128)
    hgemm(const __half* A, const __half* B, float* C, int M, int N, int K) {
  __shared__ __align__(16) __half sa[2][64][40], sb[2][32][40];
  int t = threadIdx.x, w = t >> 5, l = t & 31;
  int bm = blockIdx.y * 64, bn = blockIdx.x * 32;
  float c[4][4] = {};
  auto load = [&](int s, int k) {
    for (int i = t; i < 64 * 4; i += 128) {
      int r = i >> 2, q = (i & 3) * 8;
      unsigned d = (unsigned)__cvta_generic_to_shared(&sa[s][r][q]);
      asm volatile("cp.async.cg.shared.global [%0],[%1],16;" ::"r"(d),
          "l"(A + (size_t)(bm + r) * K + k + q));
    }
    for (int i = t; i < 32 * 4; i += 128) {
      int r = i >> 2, q = (i & 3) * 8;
      unsigned d = (unsigned)__cvta_generic_to_shared(&sb[s][r][q]);
      asm volatile("cp.async.ca.shared.global [%0],[%1],16;" ::"r"(d),
          "l"(B + (size_t)(bn + r) * K + k + q));
    }
    asm volatile("cp.async.commit_group;");
  };
  load(0, 0);
  for (int k = 0, s = 0; k < K; k += 32, s ^= 1) {
    if (k + 32 < K) {
      load(s ^ 1, k + 32);
      asm volatile("cp.async.wait_group 1;");
    } else asm volatile("cp.async.wait_all;");
    __syncthreads();
    for (int kk = 0; kk < 32; kk += 16) {
      unsigned a[4], b[2];
      unsigned ad =
          (unsigned)__cvta_generic_to_shared(&sa[s][w * 16 + (l & 15)][kk + (l >> 4) * 8]);
      asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3},[%4];"
                   : "=r"(a[0]), "=r"(a[1]), "=r"(a[2]), "=r"(a[3])
                   : "r"(ad));
      for (int n = 0; n < 4; n++) {
        unsigned bd =
            (unsigned)__cvta_generic_to_shared(&sb[s][n * 8 + (l & 7)][kk + ((l >> 3) & 1) * 8]);
        asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0,%1},[%2];"
            : "=r"(b[0]), "=r"(b[1])
            : "r"(bd));
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
                     "{%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
            : "+f"(c[n][0]), "+f"(c[n][1]), "+f"(c[n][2]), "+f"(c[n][3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
      }
    }
    __syncthreads();
  }
  for (int n = 0; n < 4; n++)
    for (int q = 0; q < 4; q++)
      C[(size_t)(bm + w * 16 + (l >> 2) + (q >> 1) * 8) * N + bn + n * 8 + (l & 3) * 2 + (q & 1)] =
          c[n][q];
}

#define MMA2(d, a, b, c)                                                                        \
  asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.u8.s32.satfinite "                     \
               "{%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%10,%11,%12,%13};"                         \
      : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])                                          \
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(c[0]), "r"(c[1]), \
      "r"(c[2]), "r"(c[3]))

extern "C" __global__ void imma(
    const signed char* A, const unsigned char* B, const int* C, int* D) {
  int l = threadIdx.x, g = l >> 2, t = l & 3;
  unsigned a[4], b[2];
  int c[4], d[4];
  for (int q = 0; q < 4; q++)
    a[q] = *(const unsigned*)(A + (g + (q & 1) * 8) * 32 + (q >> 1) * 16 + t * 4);
  for (int q = 0; q < 2; q++) {
    unsigned v = 0;
    for (int j = 0; j < 4; j++) v |= B[(q * 16 + t * 4 + j) * 8 + g] << 8 * j;
    b[q] = v;
  }
  for (int q = 0; q < 4; q++) c[q] = C[(g + (q >> 1) * 8) * 8 + t * 2 + (q & 1)];
  MMA2(d, a, b, c);
  for (int q = 0; q < 4; q++) D[(g + (q >> 1) * 8) * 8 + t * 2 + (q & 1)] = d[q];
}

// A pipeline of four stages with a warp that only copies.
extern "C" __global__ void pipe(const int* in, int* out, int batches) {
  constexpr int S = 4, N = 96;
  __shared__ int buf[S][N];
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, S> st;
  auto block = cg::this_thread_block();
  const cuda::pipeline_role role =
      threadIdx.x < 32 ? cuda::pipeline_role::producer : cuda::pipeline_role::consumer;
  auto p = cuda::make_pipeline(block, &st, role);
  int sum = 0;
  if (role == cuda::pipeline_role::producer) {
    for (int b = 0; b < batches; b++) {
      p.producer_acquire();
      for (int k = threadIdx.x; k < N; k += 32)
        cuda::memcpy_async(&buf[b % S][k], in + (blockIdx.x * batches + b) * N + k, sizeof(int), p);
      p.producer_commit();
    }
  } else {
    for (int b = 0; b < batches; b++) {
      p.consumer_wait();
      sum = sum * 3 + buf[b % S][(threadIdx.x - 32 + b) % N];
      p.consumer_release();
    }
    out[blockIdx.x * 96 + threadIdx.x - 32] = sum;
  }
}

// A ring of full and empty mbarriers.
__device__ void mb_init(unsigned b, int n) {
  asm volatile("mbarrier.init.shared.b64 [%0],%1;" ::"r"(b), "r"(n));
}
__device__ void mb_arrive(unsigned b) {
  asm volatile("{.reg .b64 s; mbarrier.arrive.shared.b64 s,[%0];}" ::"r"(b) : "memory");
}
__device__ void mb_wait(unsigned b, unsigned ph) {
  asm volatile(
      "{.reg .pred p; L: mbarrier.test_wait.parity.shared.b64 p,[%0],%1; @p bra D; bra L; D:}" ::
          "r"(b),
      "r"(ph)
      : "memory");
}

extern "C" __global__ void ring(const float* in, float* out, int n) {
  __shared__ float q[3][32];
  __shared__ unsigned long long full[3], empty[3];
  unsigned f = (unsigned)__cvta_generic_to_shared(full),
           e = (unsigned)__cvta_generic_to_shared(empty);
  if (threadIdx.x == 0)
    for (int i = 0; i < 3; i++) {
      mb_init(f + 8 * i, 32);
      mb_init(e + 8 * i, 96);
    }
  __syncthreads();
  int w = threadIdx.x >> 5, l = threadIdx.x & 31;
  float acc = 0;
  for (int i = 0; i < n; i++) {
    int s = i % 3;
    unsigned ph = (i / 3) & 1;
    if (w == 0) {
      mb_wait(e + 8 * s, ph ^ 1);
      q[s][l] = in[i * 32 + l];
      mb_arrive(f + 8 * s);
    } else {
      mb_wait(f + 8 * s, ph);
      acc += q[s][(l * w + i) & 31] * w;
      mb_arrive(e + 8 * s);
    }
  }
  if (w) out[threadIdx.x - 32] = acc;
}
