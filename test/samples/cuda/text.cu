// Texts and packed bytes: byte loads and stores, ballots, loops whose length the data decides.
#include <cstdint>

extern "C" __global__ void base64(const unsigned char* in, char* out, int n) {
  const char* abc = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  int g = blockIdx.x * blockDim.x + threadIdx.x, p = 3 * g;
  if (p >= n) return;
  unsigned v = in[p] << 16;
  if (p + 1 < n) v |= in[p + 1] << 8;
  if (p + 2 < n) v |= in[p + 2];
  uchar4 o;
  o.x = abc[v >> 18];
  o.y = abc[v >> 12 & 63];
  o.z = p + 1 < n ? abc[v >> 6 & 63] : '=';
  o.w = p + 2 < n ? abc[v & 63] : '=';
  ((uchar4*)out)[g] = o;
}

// LZ4 blocks, a thread each.
extern "C" __global__ void lz4(
    const unsigned char* src, const int* off, unsigned char* dst, int cap, int* len, int n) {
  int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t >= n) return;
  const unsigned char *p = src + off[t], *e = src + off[t + 1];
  unsigned char *o = dst + t * cap, *s = o;
  while (p < e) {
    unsigned tok = *p++;
    unsigned l = tok >> 4;
    if (l == 15) {
      unsigned c;
      do {
        c = *p++;
        l += c;
      } while (c == 255);
    }
    while (l--) *o++ = *p++;
    if (p >= e) break;
    unsigned d = p[0] | p[1] << 8;
    p += 2;
    l = (tok & 15);
    if (l == 15) {
      unsigned c;
      do {
        c = *p++;
        l += c;
      } while (c == 255);
    }
    l += 4;
    const unsigned char* m = o - d;
    while (l--) *o++ = *m++;
  }
  len[t] = o - s;
}

// Codes of 1 to 9 bits by a table of 512 entries: length in the high byte.
extern "C" __global__ void huff(const unsigned char* bits, const unsigned* start,
    const unsigned short* table, unsigned char* out, int per, int n) {
  __shared__ unsigned short T[512];
  for (int i = threadIdx.x; i < 512; i += blockDim.x) T[i] = table[i];
  __syncthreads();
  int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t >= n) return;
  unsigned pos = start[t];
  for (int i = 0; i < per; i++) {
    unsigned long long w = 0;
    for (int j = 0; j < 4; j++) w = w << 8 | bits[(pos >> 3) + j];
    unsigned k = (unsigned)(w >> (32 - 9 - (pos & 7))) & 511;
    unsigned e = T[k];
    out[t * per + i] = e & 255;
    pos += e >> 8;
  }
}

// Aho-Corasick over an alphabet of four letters; chunks overlap by the longest pattern less one.
extern "C" __global__ void aho(const unsigned char* text, int n, const short* go,
    const unsigned char* outs, unsigned* count, int chunk, int over) {
  extern __shared__ unsigned hist[];
  for (int i = threadIdx.x; i < 8; i += blockDim.x) hist[i] = 0;
  __syncthreads();
  int b = (blockIdx.x * blockDim.x + threadIdx.x) * chunk;
  int s = 0;
  for (int i = max(b - over, 0); i < min(b + chunk, n); i++) {
    s = go[s * 4 + text[i]];
    if (i >= b) {
      unsigned o = outs[s];
      while (o) {
        int q = __ffs(o) - 1;
        o &= o - 1;
        atomicAdd(&hist[q], 1u);
      }
    }
  }
  __syncthreads();
  if (threadIdx.x < 8) atomicAdd(count + threadIdx.x, hist[threadIdx.x]);
}

// Places of the structural characters: quotes by ballots and a prefix xor.
extern "C" __global__ void json(const char* in, int n, int* pos, int* total) {
  __shared__ unsigned q[8], carry;
  __shared__ int cnt[8], base;
  if (threadIdx.x == 0) {
    carry = 0;
    base = 0;
  }
  __syncthreads();
  int lane = threadIdx.x & 31, w = threadIdx.x >> 5;
  for (int s = 0; s < n; s += 256) {
    int i = s + threadIdx.x;
    char c = i < n ? in[i] : ' ';
    int back = 0;
    for (int j = i - 1; j >= 0 && i < n && in[j] == '\\'; j--) back++;
    bool quote = c == '"' && !(back & 1);
    unsigned m = __ballot_sync(~0u, quote);
    unsigned x = m;
    x ^= x << 1;
    x ^= x << 2;
    x ^= x << 4;
    x ^= x << 8;
    x ^= x << 16;
    if (lane == 0) q[w] = __popc(m) & 1;
    __syncthreads();
    unsigned in_s = carry;
    for (int j = 0; j < w; j++) in_s ^= q[j];
    bool inside = ((x >> lane) & 1) ^ in_s;
    bool st = !inside && (c == '{' || c == '}' || c == '[' || c == ']' || c == ':' || c == ',');
    unsigned b = __ballot_sync(~0u, st);
    if (lane == 0) cnt[w] = __popc(b);
    __syncthreads();
    int o = base;
    for (int j = 0; j < w; j++) o += cnt[j];
    if (st) pos[o + __popc(b & ((1u << lane) - 1))] = i;
    __syncthreads();
    if (threadIdx.x == 0) {
      for (int j = 0; j < 8; j++) {
        carry ^= q[j];
        base += cnt[j];
      }
    }
    __syncthreads();
  }
  if (threadIdx.x == 0) *total = base;
}
