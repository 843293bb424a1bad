/*
 * The kernels of bench/cpu-device/kernels.ts in C: what a programmer writes for the same work on
 * the machine's cores. Blocks are spread with OpenMP where there is more than one thread.
 * Arguments: samples, threads → ms each.
 */
#include <math.h>
#include <omp.h>
#include <stdint.h>

#include "protocol.h"

#define FOR_BLOCKS _Pragma("omp parallel for schedule(dynamic, 16)")

static void *zeroed(size_t bytes) {
  void *memory = aligned_alloc(64, (bytes + 63) / 64 * 64);
  if (!memory) exit(1);
  memset(memory, 0, bytes);
  return memory;
}
/* Times its argument after one run that is not counted. */
#define SAMPLE(...)                          \
  do {                                       \
    omp_set_num_threads((int)args[1]);       \
    for (long k_ = 0; k_ <= args[0]; k_++) { \
      double s_ = now();                     \
      __VA_ARGS__;                           \
      if (k_) sample((now() - s_) / 1e3);    \
    }                                        \
  } while (0)

static void saxpy(const long *args) {
  enum { N = 16 << 20 };
  float *x = zeroed(4 * N), *y = zeroed(4 * N);
  for (int i = 0; i < N; i++) x[i] = (float)(i & 1023);
  SAMPLE(FOR_BLOCKS for (int b = 0; b < N; b += 65536)
    for (int i = b; i < b + 65536; i++) y[i] = 2 * x[i] + y[i]);
  if (y[5] != 10.f * (float)(args[0] + 1)) FAIL("saxpy");
  free(x); free(y);
}

/* The thread loops of the tiled kernel, split at its barriers. Each thread adds up in a register,
 * as in the kernel. */
static void sgemm(const long *args) {
  enum { N = 512 };
  float *A = zeroed(4 * N * N), *B = zeroed(4 * N * N), *C = zeroed(4 * N * N);
  for (int i = 0; i < N * N; i++) A[i] = (float)(i % 7), B[i] = (float)(i % 5);
  SAMPLE(FOR_BLOCKS for (int block = 0; block < (N / 16) * (N / 16); block++) {
    int by = block / (N / 16) * 16, bx = block % (N / 16) * 16;
    float As[256], Bs[16 * 17], acc[256];
    for (int t = 0; t < 256; t++) acc[t] = 0;
    for (int k0 = 0; k0 < N; k0 += 16) {
      for (int t = 0; t < 256; t++) {
        int tx = t & 15, ty = t >> 4;
        As[t] = A[(by + ty) * N + k0 + tx];
        Bs[ty * 17 + tx] = B[(k0 + ty) * N + bx + tx];
      }
      for (int t = 0; t < 256; t++) {
        int tx = t & 15, ty = t >> 4;
        float sum = acc[t];
        for (int k = 0; k < 16; k++) sum += As[ty * 16 + k] * Bs[k * 17 + tx];
        acc[t] = sum;
      }
    }
    for (int t = 0; t < 256; t++) C[(by + (t >> 4)) * N + bx + (t & 15)] = acc[t];
  });
  float want = 0;
  for (int k = 0; k < N; k++) want += A[3 * N + k] * B[k * N + 11];
  if (C[3 * N + 11] != want) FAIL("sgemm");
  free(A); free(B); free(C);
}

/* The same with the threads' sums in memory, which lets gcc exchange the two innermost loops and
 * use its widest vectors. */
static void sgemmInMemory(const long *args) {
  enum { N = 512 };
  float *A = zeroed(4 * N * N), *B = zeroed(4 * N * N), *C = zeroed(4 * N * N);
  for (int i = 0; i < N * N; i++) A[i] = (float)(i % 7), B[i] = (float)(i % 5);
  SAMPLE(FOR_BLOCKS for (int block = 0; block < (N / 16) * (N / 16); block++) {
    int by = block / (N / 16) * 16, bx = block % (N / 16) * 16;
    float As[16][16], Bs[16][17], acc[16][16] = {{0}};
    for (int k0 = 0; k0 < N; k0 += 16) {
      for (int ty = 0; ty < 16; ty++)
        for (int tx = 0; tx < 16; tx++)
          As[ty][tx] = A[(by + ty) * N + k0 + tx], Bs[ty][tx] = B[(k0 + ty) * N + bx + tx];
      for (int ty = 0; ty < 16; ty++)
        for (int tx = 0; tx < 16; tx++)
          for (int k = 0; k < 16; k++) acc[ty][tx] += As[ty][k] * Bs[k][tx];
    }
    for (int ty = 0; ty < 16; ty++)
      for (int tx = 0; tx < 16; tx++) C[(by + ty) * N + bx + tx] = acc[ty][tx];
  });
  float want = 0;
  for (int k = 0; k < N; k++) want += A[3 * N + k] * B[k * N + 11];
  if (C[3 * N + 11] != want) FAIL("sgemm");
  free(A); free(B); free(C);
}

static void mandel(const long *args) {
  enum { N = 1024, MOST = 256 };
  int *o = zeroed(4 * N * N);
  SAMPLE(FOR_BLOCKS for (int y = 0; y < N; y++) for (int x = 0; x < N; x++) {
    float cx = -2 + x * (3.f / N), cy = -1.5f + y * (3.f / N), zx = 0, zy = 0;
    int i = 0;
    while (i < MOST && zx * zx + zy * zy < 4) {
      float t = zx * zx - zy * zy + cx;
      zy = 2 * zx * zy + cy;
      zx = t;
      i++;
    }
    o[y * N + x] = i;
  });
  if (o[512 * N + 683] != MOST || o[0] > 3) FAIL("mandel");
  free(o);
}

static void reduce(const long *args) {
  enum { N = 16 << 20 };
  float *x = zeroed(4 * N), sum = 0;
  for (int i = 0; i < N; i++) x[i] = (float)(i & 1);
  /* 16 partial sums, as many as a vector register's lanes: the order is free, as it is among a
   * kernel's threads. */
  SAMPLE(sum = 0; _Pragma("omp parallel for reduction(+:sum)") for (int b = 0; b < N; b += 65536) {
    float part[16] = {0};
    for (int i = b; i < b + 65536; i += 16) for (int l = 0; l < 16; l++) part[l] += x[i + l];
    float whole = 0;
    for (int l = 0; l < 16; l++) whole += part[l];
    sum += whole;
  });
  if (sum != N / 2) FAIL("reduce: %g", sum);
  free(x);
}

/* The same in the order of a kernel whose 64 blocks of 256 threads run one after the other, or 32
 * of them by turns, 8 times round each. */
static float reduceBlocks(const float *x, int blocks) {
  enum { N = 16 << 20, GRID = 64, THREADS = 256, TURNS = 8 };
  static float parts[GRID][THREADS];
  memset(parts, 0, sizeof parts);
  for (int first = 0; first < GRID; first += blocks)
    for (int i = 0; i < N; i += TURNS * GRID * THREADS)
      for (int b = first; b < first + blocks; b++) for (int unit = 0; unit < THREADS; unit += 32) {
        float part[32];
        for (int t = 0; t < 32; t++) part[t] = parts[b][unit + t];
        for (int k = 0; k < TURNS; k++)
          for (int t = 0; t < 32; t++) part[t] += x[i + (k * GRID + b) * THREADS + unit + t];
        for (int t = 0; t < 32; t++) parts[b][unit + t] = part[t];
      }
  float sum = 0;
  for (int b = 0; b < GRID; b++) for (int t = 0; t < THREADS; t++) sum += parts[b][t];
  return sum;
}

/* Arguments: samples, threads (1), blocks that take turns. */
static void reduceInOrder(const long *args) {
  enum { N = 16 << 20 };
  float *x = zeroed(4 * N), sum = 0;
  for (int i = 0; i < N; i++) x[i] = (float)(i & 1);
  SAMPLE(sum = reduceBlocks(x, (int)args[2]));
  if (sum != N / 2) FAIL("reduce in order: %g", sum);
  free(x);
}

static void histogram(const long *args) {
  enum { N = 16 << 20 };
  unsigned char *d = zeroed(N);
  unsigned h[256];
  for (int i = 0; i < N; i++) d[i] = (unsigned char)(i * 2654435761u >> 24);
  SAMPLE(memset(h, 0, sizeof h); FOR_BLOCKS for (int b = 0; b < 64; b++) {
    unsigned s[256] = {0};
    for (int i = b * (N / 64); i < (b + 1) * (N / 64); i++) s[d[i]]++;
    for (int i = 0; i < 256; i++) { _Pragma("omp atomic") h[i] += s[i]; }
  });
  unsigned long total = 0;
  for (int i = 0; i < 256; i++) total += h[i];
  if (total != N) FAIL("histogram");
  free(d);
}

/* The scan itself, as the kernel's warps do it: five steps of shuffles, then the same over the
 * warps' sums. */
static void scan(const long *args) {
  enum { N = 4 << 20 };
  int *in = zeroed(4 * N), *out = zeroed(4 * N), *sums = zeroed(4 * (N / 256));
  for (int i = 0; i < N; i++) in[i] = i % 10;
  SAMPLE(FOR_BLOCKS for (int b = 0; b < N / 256; b++) {
    int v[256], other[32], warps[32] = {0};
    for (int t = 0; t < 256; t++) v[t] = in[b * 256 + t];
    for (int w = 0; w < 256; w += 32) {
      for (int d = 1; d < 32; d <<= 1) {
        for (int l = 0; l < 32; l++) other[l] = l >= d ? v[w + l - d] : 0;
        for (int l = 0; l < 32; l++) v[w + l] += other[l];
      }
      warps[w / 32] = v[w + 31];
    }
    for (int d = 1; d < 32; d <<= 1) {
      for (int l = 0; l < 32; l++) other[l] = l >= d ? warps[l - d] : 0;
      for (int l = 0; l < 32; l++) warps[l] += other[l];
    }
    for (int t = 0; t < 256; t++) out[b * 256 + t] = v[t] + (t >= 32 ? warps[t / 32 - 1] : 0);
    sums[b] = out[b * 256 + 255];
  });
  if (out[9] != 45 || sums[0] != out[255]) FAIL("scan");
  free(in); free(out); free(sums);
}

/* What a programmer writes for one core: a running sum. */
static void runningSum(const long *args) {
  enum { N = 4 << 20 };
  int *in = zeroed(4 * N), *out = zeroed(4 * N), *sums = zeroed(4 * (N / 256));
  for (int i = 0; i < N; i++) in[i] = i % 10;
  SAMPLE(FOR_BLOCKS for (int b = 0; b < N / 256; b++) {
    int v = 0;
    for (int i = b * 256; i < b * 256 + 256; i++) out[i] = v += in[i];
    sums[b] = v;
  });
  if (out[9] != 45 || sums[0] != out[255]) FAIL("scan");
  free(in); free(out); free(sums);
}

static void transpose(const long *args) {
  enum { N = 2048 };
  float *in = zeroed(4 * N * N), *out = zeroed(4 * N * N);
  for (int i = 0; i < N * N; i++) in[i] = (float)i;
  SAMPLE(FOR_BLOCKS for (int block = 0; block < (N / 32) * (N / 32); block++) {
    int y0 = block / (N / 32) * 32, x0 = block % (N / 32) * 32;
    float t[32][33];
    for (int y = 0; y < 32; y++) for (int x = 0; x < 32; x++) t[y][x] = in[(y0 + y) * N + x0 + x];
    for (int y = 0; y < 32; y++) for (int x = 0; x < 32; x++) out[(x0 + y) * N + y0 + x] = t[x][y];
  });
  if (out[5 * N + 77] != (float)(77 * N + 5)) FAIL("transpose");
  free(in); free(out);
}

typedef struct { float x, y, z, w; } Float4;

static void nbody(const long *args) {
  enum { N = 4096 };
  Float4 *p = zeroed(sizeof(Float4) * N), *v = zeroed(sizeof(Float4) * N);
  for (int i = 0; i < N; i++) p[i] = (Float4){(float)(i % 17), (float)(i % 31), (float)(i % 7), 1};
  SAMPLE(FOR_BLOCKS for (int i = 0; i < N; i++) {
    float ax = 0, ay = 0, az = 0;
    for (int j = 0; j < N; j++) {
      float dx = p[j].x - p[i].x, dy = p[j].y - p[i].y, dz = p[j].z - p[i].z;
      float r = 1 / sqrtf(fmaf(dx, dx, fmaf(dy, dy, fmaf(dz, dz, 0.01f)))), s = p[j].w * r * r * r;
      ax += dx * s; ay += dy * s; az += dz * s;
    }
    v[i].x += ax * 0.01f; v[i].y += ay * 0.01f; v[i].z += az * 0.01f;
    v[i].w = sqrtf(v[i].x * v[i].x + v[i].y * v[i].y + v[i].z * v[i].z);
  });
  if (!(v[1].w > 0)) FAIL("nbody");
  free(p); free(v);
}

static void softmax(const long *args) {
  enum { ROWS = 1024, COLS = 1024 };
  float *x = zeroed(4 * ROWS * COLS), *y = zeroed(4 * ROWS * COLS);
  for (int i = 0; i < ROWS * COLS; i++) x[i] = (float)(i % 13) / 4;
  SAMPLE(FOR_BLOCKS for (int r = 0; r < ROWS; r++) {
    const float *p = x + r * COLS;
    float m = -INFINITY, s = 0;
    for (int i = 0; i < COLS; i++) m = fmaxf(m, p[i]);
    for (int i = 0; i < COLS; i++) s += expf(p[i] - m);
    for (int i = 0; i < COLS; i++) y[r * COLS + i] = expf(p[i] - m) / s;
  });
  float sum = 0;
  for (int i = 0; i < COLS; i++) sum += y[i];
  if (fabsf(sum - 1) > 1e-4f) FAIL("softmax");
  free(x); free(y);
}

static void rms(const long *args) {
  enum { ROWS = 1024, COLS = 1024 };
  float *x = zeroed(4 * ROWS * COLS), *y = zeroed(4 * ROWS * COLS), *w = zeroed(4 * COLS);
  for (int i = 0; i < ROWS * COLS; i++) x[i] = 3;
  for (int i = 0; i < COLS; i++) w[i] = 2;
  SAMPLE(FOR_BLOCKS for (int r = 0; r < ROWS; r++) {
    const float *p = x + r * COLS;
    float s = 0;
    for (int i = 0; i < COLS; i++) s += p[i] * p[i];
    float scale = 1 / sqrtf(s / COLS + 1e-6f);
    for (int i = 0; i < COLS; i++) y[r * COLS + i] = p[i] * scale * w[i];
  });
  if (fabsf(y[7] - 2) > 1e-4f) FAIL("rms");
  free(x); free(y); free(w);
}

static void resize(const long *args) {
  enum { SW = 1024, SH = 1024, DW = 1536, DH = 1536 };
  unsigned char *s = zeroed(4 * SW * SH), *d = zeroed(4 * DW * DH);
  for (int i = 0; i < 4 * SW * SH; i++) s[i] = (unsigned char)(100 + i % 4);
  SAMPLE(FOR_BLOCKS for (int y = 0; y < DH; y++) for (int x = 0; x < DW; x++) {
    float fx = (x + .5f) * SW / DW - .5f, fy = (y + .5f) * SH / DH - .5f;
    int ix = (int)floorf(fx), iy = (int)floorf(fy);
    float ax = fx - ix, ay = fy - iy;
    int x1 = ix + 1 < SW - 1 ? ix + 1 : SW - 1, y1 = iy + 1 < SH - 1 ? iy + 1 : SH - 1;
    ix = ix > 0 ? ix : 0; iy = iy > 0 ? iy : 0;
    const unsigned char *a = s + 4 * (iy * SW + ix), *b = s + 4 * (iy * SW + x1),
                        *c = s + 4 * (y1 * SW + ix), *e = s + 4 * (y1 * SW + x1);
    for (int k = 0; k < 4; k++) {
      float v =
          ((a[k] * (1 - ax) + b[k] * ax) * (1 - ay) + (c[k] * (1 - ax) + e[k] * ax) * ay) / 255;
      d[4 * (y * DW + x) + k] = (unsigned char)rintf((v < 0 ? 0 : v > 1 ? 1 : v) * 255);
    }
  });
  if (d[4 * 777 + 2] != 102) FAIL("resize");
  free(s); free(d);
}

static void philox(const long *args) {
  enum { N = 1 << 20 };
  Float4 *o = zeroed(sizeof(Float4) * N);
  SAMPLE(FOR_BLOCKS for (int i = 0; i < N; i++) {
    uint32_t c0 = (uint32_t)i, c1 = 0, c2 = 0, c3 = 0, k0 = 1234, k1 = 0;
    for (int r = 0; r < 10; r++) {
      uint64_t p = 0xD2511F53ull * c0, q = 0xCD9E8D57ull * c2;
      uint32_t n0 = (uint32_t)(q >> 32) ^ c1 ^ k0, n2 = (uint32_t)(p >> 32) ^ c3 ^ k1;
      c1 = (uint32_t)q; c3 = (uint32_t)p; c0 = n0; c2 = n2;
      k0 += 0x9E3779B9u; k1 += 0xBB67AE85u;
    }
    float u = c0 * 2.3283064e-10f + 1.16415e-10f, v = c1 * 2.3283064e-10f * 6.2831853f,
          s = sqrtf(-2 * logf(u));
    o[i] = (Float4){s * sinf(v), s * cosf(v), c2 * 2.3283064e-10f, c3 * 2.3283064e-10f};
  });
  double mean = 0;
  for (int i = 0; i < N; i++) mean += o[i].x;
  if (fabs(mean / N) > 0.01) FAIL("philox");
  free(o);
}

/* The network itself, as the kernel runs it. */
static void bitonic(const long *args) {
  enum { N = 1 << 20 };
  unsigned *d = zeroed(4 * N);
  for (unsigned i = 0; i < N; i++) d[i] = i * 2654435761u;
  SAMPLE(FOR_BLOCKS for (int b = 0; b < N; b += 1024) {
    unsigned *s = d + b;
    for (unsigned k = 2; k <= 1024; k <<= 1)
      for (unsigned j = k >> 1; j; j >>= 1)
        for (unsigned t = 0; t < 1024; t++) {
          unsigned x = t ^ j;
          if (x > t && ((t & k) == 0) == (s[t] > s[x])) {
            unsigned a = s[t];
            s[t] = s[x];
            s[x] = a;
          }
        }
  });
  for (int i = 1; i < 1024; i++) if (d[i - 1] > d[i]) FAIL("bitonic");
  free(d);
}

static const Measurement measurements[] = {
    {"saxpy", saxpy},
    {"sgemm", sgemm},
    {"sgemm-in-memory", sgemmInMemory},
    {"mandel", mandel},
    {"reduce", reduce},
    {"reduce-in-order", reduceInOrder},
    {"histogram", histogram},
    {"scan", scan},
    {"running-sum", runningSum},
    {"transpose", transpose},
    {"nbody", nbody},
    {"softmax", softmax},
    {"rms", rms},
    {"resize", resize},
    {"philox", philox},
    {"bitonic", bitonic},
};

int main(void) {
  return serveLines(measurements, (int)(sizeof measurements / sizeof measurements[0]), "");
}
