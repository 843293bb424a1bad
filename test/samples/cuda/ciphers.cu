// Ciphers and hashes: tables in shared and constant memory, rotations, structures on the stack.
#include <cstdint>

__device__ inline unsigned ror(unsigned x, int n) { return x >> n | x << (32 - n); }

// A counter through AES-128, a thread a block of 16 bytes.
extern "C" __global__ void aes128_ctr(const unsigned* rk, const unsigned* te,
    const unsigned char* sb, unsigned nonce, unsigned* out, int n) {
  __shared__ unsigned T[256];
  for (int i = threadIdx.x; i < 256; i += blockDim.x) T[i] = te[i];
  __syncthreads();
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  unsigned s0 = nonce ^ rk[0], s1 = (nonce * 3) ^ rk[1], s2 = 0 ^ rk[2], s3 = (unsigned)i ^ rk[3];
#pragma unroll 1
  for (int r = 1; r < 10; r++) {
    unsigned a = T[s0 >> 24] ^ ror(T[s1 >> 16 & 255], 8) ^ ror(T[s2 >> 8 & 255], 16) ^
        ror(T[s3 & 255], 24) ^ rk[4 * r];
    unsigned b = T[s1 >> 24] ^ ror(T[s2 >> 16 & 255], 8) ^ ror(T[s3 >> 8 & 255], 16) ^
        ror(T[s0 & 255], 24) ^ rk[4 * r + 1];
    unsigned c = T[s2 >> 24] ^ ror(T[s3 >> 16 & 255], 8) ^ ror(T[s0 >> 8 & 255], 16) ^
        ror(T[s1 & 255], 24) ^ rk[4 * r + 2];
    unsigned d = T[s3 >> 24] ^ ror(T[s0 >> 16 & 255], 8) ^ ror(T[s1 >> 8 & 255], 16) ^
        ror(T[s2 & 255], 24) ^ rk[4 * r + 3];
    s0 = a;
    s1 = b;
    s2 = c;
    s3 = d;
  }
  auto last = [&](unsigned a, unsigned b, unsigned c, unsigned d, unsigned k) {
    return ((unsigned)sb[a >> 24] << 24 | (unsigned)sb[b >> 16 & 255] << 16 |
               (unsigned)sb[c >> 8 & 255] << 8 | sb[d & 255]) ^
        k;
  };
  uint4 o;
  o.x = last(s0, s1, s2, s3, rk[40]);
  o.y = last(s1, s2, s3, s0, rk[41]);
  o.z = last(s2, s3, s0, s1, rk[42]);
  o.w = last(s3, s0, s1, s2, rk[43]);
  ((uint4*)out)[i] = make_uint4(__byte_perm(o.x, 0, 0x0123), __byte_perm(o.y, 0, 0x0123),
      __byte_perm(o.z, 0, 0x0123), __byte_perm(o.w, 0, 0x0123));
}

__constant__ unsigned K256[64] = {0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b,
    0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74,
    0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f,
    0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3,
    0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354,
    0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819,
    0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3,
    0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa,
    0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

// Messages of i bytes, a thread each; the state lies in local memory.
struct Sha {
  unsigned h[8];
  unsigned char buf[64];
  unsigned long long len;
  __device__ void init() {
    const unsigned v[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c,
        0x1f83d9ab, 0x5be0cd19};
    for (int i = 0; i < 8; i++) h[i] = v[i];
    len = 0;
  }
  __device__ __noinline__ void block() {
    unsigned w[64];
    for (int i = 0; i < 16; i++)
      w[i] = buf[4 * i] << 24 | buf[4 * i + 1] << 16 | buf[4 * i + 2] << 8 | buf[4 * i + 3];
    for (int i = 16; i < 64; i++) {
      unsigned a = w[i - 15], b = w[i - 2];
      w[i] = w[i - 16] + (ror(a, 7) ^ ror(a, 18) ^ a >> 3) + w[i - 7] +
          (ror(b, 17) ^ ror(b, 19) ^ b >> 10);
    }
    unsigned a = h[0], b = h[1], c = h[2], d = h[3], e = h[4], f = h[5], g = h[6], k = h[7];
    for (int i = 0; i < 64; i++) {
      unsigned t =
          k + (ror(e, 6) ^ ror(e, 11) ^ ror(e, 25)) + ((e & f) ^ (~e & g)) + K256[i] + w[i];
      unsigned u = (ror(a, 2) ^ ror(a, 13) ^ ror(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
      k = g;
      g = f;
      f = e;
      e = d + t;
      d = c;
      c = b;
      b = a;
      a = t + u;
    }
    h[0] += a;
    h[1] += b;
    h[2] += c;
    h[3] += d;
    h[4] += e;
    h[5] += f;
    h[6] += g;
    h[7] += k;
  }
  __device__ void add(unsigned char c) {
    buf[len & 63] = c;
    if ((++len & 63) == 0) block();
  }
  __device__ void end(unsigned char* o) {
    unsigned long long bits = len * 8;
    add(0x80);
    while ((len & 63) != 56) add(0);
    for (int i = 7; i >= 0; i--) add(bits >> (8 * i));
    for (int i = 0; i < 32; i++) o[i] = h[i >> 2] >> (24 - 8 * (i & 3));
  }
};

extern "C" __global__ void sha256(const unsigned char* in, unsigned char* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  Sha s;
  s.init();
  for (int j = 0; j < i; j++) s.add(in[(i * 7 + j) & 1023]);
  s.end(out + 32 * i);
}

__constant__ unsigned char MS[16] = {7, 12, 17, 22, 5, 9, 14, 20, 4, 11, 16, 23, 6, 10, 15, 21};

extern "C" __global__ void md5(const unsigned* in, uint4* out, const unsigned* K, int n) {
  int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t >= n) return;
  unsigned m[16];
  for (int i = 0; i < 13; i++) m[i] = in[t * 13 + i];
  m[13] = 0x80;
  m[14] = 13 * 32;
  m[15] = 0;
  unsigned a = 0x67452301, b = 0xefcdab89, c = 0x98badcfe, d = 0x10325476;
  for (int i = 0; i < 64; i++) {
    unsigned f;
    int g;
    switch (i >> 4) {
      case 0:
        f = (b & c) | (~b & d);
        g = i;
        break;
      case 1:
        f = (d & b) | (~d & c);
        g = (5 * i + 1) & 15;
        break;
      case 2:
        f = b ^ c ^ d;
        g = (3 * i + 5) & 15;
        break;
      default: f = c ^ (b | ~d); g = 7 * i & 15;
    }
    unsigned x = a + f + K[i] + m[g];
    int s = MS[(i >> 4) * 4 + (i & 3)];
    a = d;
    d = c;
    c = b;
    b = b + __funnelshift_l(x, x, s);
  }
  out[t] = make_uint4(a + 0x67452301, b + 0xefcdab89, c + 0x98badcfe, d + 0x10325476);
}

// Four tables, built by the block; words where they are left, then bytes.
extern "C" __global__ void crc32(const unsigned char* in, unsigned* out, int n, int len) {
  __shared__ unsigned t[4][256];
  for (int i = threadIdx.x; i < 256; i += blockDim.x) {
    unsigned c = i;
    for (int j = 0; j < 8; j++) c = c & 1 ? 0xedb88320u ^ c >> 1 : c >> 1;
    t[0][i] = c;
  }
  __syncthreads();
  for (int k = 1; k < 4; k++) {
    for (int i = threadIdx.x; i < 256; i += blockDim.x)
      t[k][i] = t[k - 1][i] >> 8 ^ t[0][t[k - 1][i] & 255];
    __syncthreads();
  }
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  if (x >= n) return;
  const unsigned char* p = in + x * 4;
  unsigned c = ~0u;
  int l = len - x;
  while (l >= 4) {
    c ^= *(const unsigned*)p;
    c = t[3][c & 255] ^ t[2][c >> 8 & 255] ^ t[1][c >> 16 & 255] ^ t[0][c >> 24];
    p += 4;
    l -= 4;
  }
  while (l-- > 0) c = c >> 8 ^ t[0][(c ^ *p++) & 255];
  out[x] = ~c;
}

#define QR(a, b, c, d)           \
  a += b;                        \
  d ^= a;                        \
  d = __funnelshift_l(d, d, 16); \
  c += d;                        \
  b ^= c;                        \
  b = __funnelshift_l(b, b, 12); \
  a += b;                        \
  d ^= a;                        \
  d = __byte_perm(d, d, 0x2103); \
  c += d;                        \
  b ^= c;                        \
  b = __funnelshift_l(b, b, 7)

struct Key {
  unsigned k[8];
  unsigned nonce[3];
};

extern "C" __global__ void chacha20(Key key, unsigned* out, int n) {
  int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t >= n) return;
  unsigned x[16] = {0x61707865, 0x3320646e, 0x79622d32, 0x6b206574}, s[16];
  for (int i = 0; i < 8; i++) x[4 + i] = key.k[i];
  x[12] = t;
  for (int i = 0; i < 3; i++) x[13 + i] = key.nonce[i];
  for (int i = 0; i < 16; i++) s[i] = x[i];
  for (int r = 0; r < 10; r++) {
    QR(x[0], x[4], x[8], x[12]);
    QR(x[1], x[5], x[9], x[13]);
    QR(x[2], x[6], x[10], x[14]);
    QR(x[3], x[7], x[11], x[15]);
    QR(x[0], x[5], x[10], x[15]);
    QR(x[1], x[6], x[11], x[12]);
    QR(x[2], x[7], x[8], x[13]);
    QR(x[3], x[4], x[9], x[14]);
  }
  for (int i = 0; i < 16; i++) out[t * 16 + i] = x[i] + s[i];
}
