// What the language offers: wide integers, carry chains, bit-fields, pointers to functions,
// recursion, the heap.
#include <cstdint>
#include <new>
#define I (blockIdx.x * blockDim.x + threadIdx.x)

typedef unsigned long long u64;
typedef unsigned __int128 u128;
typedef __int128 s128;

extern "C" __global__ void i128(const u64* a, const u64* b, u64* o, int n) {
  int i = I;
  if (i >= n) return;
  u128 x = (u128)a[2 * i + 1] << 64 | a[2 * i], y = (u128)b[2 * i + 1] << 64 | b[2 * i];
  s128 sx = (s128)x, sy = (s128)y;
  if (!y) {
    y = 7;
    sy = -3;
  }
  u128 r[10] = {x + y,
                x - y,
                x * y,
                x / y,
                x % y,
                (u128)(sx / sy),
                (u128)(sx % sy),
                x << (unsigned)(b[2 * i] & 127),
                x >> (unsigned)(b[2 * i] & 127),
                (u128)(sx >> (int)(b[2 * i] & 127))};
  for (int k = 0; k < 10; k++) {
    o[(i * 10 + k) * 2] = (u64)r[k];
    o[(i * 10 + k) * 2 + 1] = (u64)(r[k] >> 64);
  }
  o[20 * n + i] = (x < y) | (sx < sy) << 1 | (u64)((double)(u64)x > 1e9) << 2;
}

// Montgomery multiplication of 256 bits.
__device__ __forceinline__ void madc8(unsigned* t, const unsigned* a, unsigned b) {
  asm("mad.lo.cc.u32 %0,%9,%17,%0; madc.lo.cc.u32 %1,%10,%17,%1; madc.lo.cc.u32 %2,%11,%17,%2; "
      "madc.lo.cc.u32 %3,%12,%17,%3; "
      "madc.lo.cc.u32 %4,%13,%17,%4; madc.lo.cc.u32 %5,%14,%17,%5; madc.lo.cc.u32 %6,%15,%17,%6; "
      "madc.lo.cc.u32 %7,%16,%17,%7; addc.u32 "
      "%8,%8,0;\n\t"
      : "+r"(t[0]), "+r"(t[1]), "+r"(t[2]), "+r"(t[3]), "+r"(t[4]), "+r"(t[5]), "+r"(t[6]),
      "+r"(t[7]), "+r"(t[8])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(a[4]), "r"(a[5]), "r"(a[6]), "r"(a[7]),
      "r"(b));
  asm("mad.hi.cc.u32 %0,%8,%16,%0; madc.hi.cc.u32 %1,%9,%16,%1; madc.hi.cc.u32 %2,%10,%16,%2; "
      "madc.hi.cc.u32 %3,%11,%16,%3; madc.hi.cc.u32 "
      "%4,%12,%16,%4; madc.hi.cc.u32 %5,%13,%16,%5; madc.hi.cc.u32 %6,%14,%16,%6; madc.hi.u32 "
      "%7,%15,%16,%7;"
      : "+r"(t[1]), "+r"(t[2]), "+r"(t[3]), "+r"(t[4]), "+r"(t[5]), "+r"(t[6]), "+r"(t[7]),
      "+r"(t[8])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(a[4]), "r"(a[5]), "r"(a[6]), "r"(a[7]),
      "r"(b));
}

struct Big {
  unsigned w[8];
};

extern "C" __global__ void mont(
    const Big* a, const Big* b, Big* o, const __grid_constant__ Big p, unsigned inv, int n) {
  int i = I;
  if (i >= n) return;
  Big x = a[i], y = b[i];
  unsigned t[10] = {0};
  for (int k = 0; k < 8; k++) {
    madc8(t, x.w, y.w[k]);
    unsigned m = t[0] * inv;
    madc8(t, p.w, m);
    for (int j = 0; j < 8; j++) t[j] = t[j + 1];
    t[8] = 0;
  }
  Big s;
  unsigned borrow;
  asm("sub.cc.u32 %0,%9,%17; subc.cc.u32 %1,%10,%18; subc.cc.u32 %2,%11,%19; subc.cc.u32 "
      "%3,%12,%20; subc.cc.u32 %4,%13,%21; subc.cc.u32 "
      "%5,%14,%22; subc.cc.u32 %6,%15,%23; subc.cc.u32 %7,%16,%24; subc.u32 %8,0,0;"
      : "=r"(s.w[0]), "=r"(s.w[1]), "=r"(s.w[2]), "=r"(s.w[3]), "=r"(s.w[4]), "=r"(s.w[5]),
      "=r"(s.w[6]), "=r"(s.w[7]), "=r"(borrow)
      : "r"(t[0]), "r"(t[1]), "r"(t[2]), "r"(t[3]), "r"(t[4]), "r"(t[5]), "r"(t[6]), "r"(t[7]),
      "r"(p.w[0]), "r"(p.w[1]), "r"(p.w[2]), "r"(p.w[3]), "r"(p.w[4]), "r"(p.w[5]), "r"(p.w[6]),
      "r"(p.w[7]));
  for (int k = 0; k < 8; k++) o[i].w[k] = borrow ? t[k] : s.w[k];
}

struct Bits {
  unsigned a : 3;
  int b : 7;
  unsigned c : 22;
  u64 d : 40;
  int e : 24;
  bool f : 1;
};
union U {
  float f;
  unsigned u;
  unsigned char c[4];
};

extern "C" __global__ void fields(const unsigned* in, Bits* o, unsigned* q, int n) {
  int i = I;
  if (i >= n) return;
  Bits b;
  b.a = in[i];
  b.b = in[i] >> 3;
  b.c = in[i] * 5;
  b.d = (u64)in[i] * in[i];
  b.e = -(int)in[i];
  b.f = in[i] & 4;
  b.a += 3;
  b.b -= b.a;
  b.c ^= b.b;
  b.d += b.e;
  Bits t = o[i];
  t.a = b.a;
  t.b = b.b;
  t.c = b.c;
  t.d = b.d;
  t.e = b.e;
  t.f = b.f;
  U u;
  u.u = in[i];
  u.c[in[i] & 3] ^= 0x55;
  q[i] = (b.b < 0) + 2 * (b.e >= 0) + u.u * 4 + (unsigned)(b.d >> 13);
  o[i] = t;
}

// Parameters of 4096 bytes.
struct Four {
  int n;
  float w[1000];
  double d;
  signed char tail[79];
};

extern "C" __global__ void big4k(const Four f, const int* ix, float* o, int n) {
  int i = I;
  if (i < n) {
    int k = ix[i] % f.n;
    o[i] = f.w[k] * 2 + (float)f.d + f.tail[k % 79];
  }
}

__device__ int f0(int a, int b) { return a + b; }
__device__ int f1(int a, int b) { return a - b; }
__device__ int f2(int a, int b) { return a * b; }
__device__ int f3(int a, int b) { return b ? a / b : -1; }

typedef int (*Fn)(int, int);
__device__ Fn table[4] = {f0, f1, f2, f3};
__constant__ Fn ctable[2] = {f3, f2};

__device__ __noinline__ int ack(int m, int n) {
  return m == 0 ? n + 1 : n == 0 ? ack(m - 1, 1) : ack(m - 1, ack(m, n - 1));
}

__device__ int isodd(unsigned n);
__device__ __noinline__ int iseven(unsigned n) { return n == 0 ? 1 : isodd(n - 1); }
__device__ __noinline__ int isodd(unsigned n) { return n == 0 ? 0 : iseven(n - 1); }

extern "C" __global__ void calls(const int* a, int* o, int n) {
  int i = I;
  if (i >= n) return;
  int x = a[i] & 1023;
  Fn f = table[x & 3];
  int r = f(a[i], x) + ctable[x & 1](x, 3);
  if (x & 8) r += ack(2, x & 7);
  r = r * 2 + iseven(x % 37);
  o[i] = r;
}

// An array whose length the data decides, on the stack.
extern "C" __global__ void stack(const int* a, int* o, int n) {
  int i = I;
  if (i >= n) return;
  int m = (a[i] & 63) + 1;
  int* s = (int*)__builtin_alloca(m * 4);
  for (int k = 0; k < m; k++) s[k] = a[(i + k) % n];
  for (int k = 1; k < m; k++) {
    int v = s[k], j = k;
    while (j > 0 && s[j - 1] > v) {
      s[j] = s[j - 1];
      j--;
    }
    s[j] = v;
  }
  o[i] = s[m / 2];
}

struct Base {
  int k;
  __device__ Base(int k) : k(k) {}
  __device__ virtual int eval(int x) const { return x + k; }
  __device__ virtual ~Base() {}
};

struct Mul : Base {
  Base* c;
  int* log;
  __device__ Mul(int k, Base* c, int* l) : Base(k), c(c), log(l) {}
  __device__ int eval(int x) const override { return c->eval(x) * k; }
  __device__ ~Mul() {
    atomicAdd(log, k);
    delete c;
  }
};

extern "C" __global__ void heap(const int* a, int* o, int* log, int n) {
  int i = I;
  if (i >= n) return;
  Base* e = new Base(i);
  for (int k = 0; k < (a[i] & 3); k++) e = new Mul(k + 2, e, log);
  int* arr = new int[5 + (i & 7)];
  for (int k = 0; k < 5 + (i & 7); k++) arr[k] = e->eval(k);
  o[i] = arr[4 + (i & 7)];
  delete[] arr;
  alignas(8) char buf[sizeof(Base)];
  Base* p = new (buf) Base(1000);
  o[i] += p->eval(i);
  p->~Base();
  delete e;
}

// Shifts by more than the width, quotients and remainders.
extern "C" __global__ void edges(const int* a, const int* b, u64* o, int n) {
  int i = I;
  if (i >= n) return;
  int x = a[i], y = b[i];
  unsigned s = b[i] & 127;
  unsigned r[6];
  asm("shl.b32 %0,%1,%2;" : "=r"(r[0]) : "r"(x), "r"(s));
  asm("shr.s32 %0,%1,%2;" : "=r"(r[1]) : "r"(x), "r"(s));
  asm("shr.u32 %0,%1,%2;" : "=r"(r[2]) : "r"(x), "r"(s));
  u64 X = (u64)(unsigned)x << 32 | (unsigned)y, z;
  asm("shl.b64 %0,%1,%2;" : "=l"(z) : "l"(X), "r"(s));
  o[i * 8] = r[0];
  o[i * 8 + 1] = r[1];
  o[i * 8 + 2] = r[2];
  o[i * 8 + 3] = z;
  asm("shr.s64 %0,%1,%2;" : "=l"(z) : "l"(X), "r"(s));
  o[i * 8 + 4] = z;
  short h = (short)x, hh;
  asm("shr.s16 %0,%1,%2;" : "=h"(hh) : "h"(h), "r"(s));
  o[i * 8 + 5] = (unsigned short)hh;
  asm("shl.b16 %0,%1,%2;" : "=h"(hh) : "h"(h), "r"(s));
  o[i * 8 + 6] = (unsigned short)hh;
  o[i * 8 + 7] = (u64)(unsigned)(y ? x % y : 0) |
      (u64)(unsigned)(y == -1 && x == (-2147483647 - 1) ? 0
              : y                                       ? x / y
                                                        : 0)
          << 32;
}

enum Op : unsigned char { PUSH, ADD, SUB, MUL, DUP, SWAP, JNZ, DEC, HALT, XOR, SHL, NEG };

// A stack machine.
extern "C" __global__ void vm(const unsigned char* code, int* o, int n) {
  int i = I;
  if (i >= n) return;
  int st[8], sp = 0;
  int pc = 0, steps = 0;
  st[sp++] = i % 23 + 1;
  for (;;) {
    if (++steps > 500) break;
    switch (code[pc++]) {
      case PUSH: st[sp++ & 7] = (signed char)code[pc++]; break;
      case ADD:
        sp--;
        st[(sp - 1) & 7] += st[sp & 7];
        break;
      case SUB:
        sp--;
        st[(sp - 1) & 7] -= st[sp & 7];
        break;
      case MUL:
        sp--;
        st[(sp - 1) & 7] *= st[sp & 7];
        break;
      case DUP:
        st[sp & 7] = st[(sp - 1) & 7];
        sp++;
        break;
      case SWAP: {
        int t = st[(sp - 1) & 7];
        st[(sp - 1) & 7] = st[(sp - 2) & 7];
        st[(sp - 2) & 7] = t;
        break;
      }
      case JNZ:
        pc++;
        if (st[(sp - 1) & 7]) pc = code[pc - 1];
        break;
      case DEC: st[(sp - 1) & 7]--; break;
      case XOR:
        sp--;
        st[(sp - 1) & 7] ^= st[sp & 7];
        break;
      case SHL: st[(sp - 1) & 7] <<= 1; break;
      case NEG: st[(sp - 1) & 7] = -st[(sp - 1) & 7]; break;
      case HALT: goto out;
      default: __builtin_unreachable();
    }
  }
out:
  o[i] = st[(sp - 1) & 7] * 1000 + steps;
}

template <int... N>
struct Seq {};
constexpr int fibo(int n) { return n < 2 ? n : fibo(n - 1) + fibo(n - 2); }
template <class T, int N>
struct Arr {
  T v[N];
  constexpr Arr() : v() {
    for (int i = 0; i < N; i++) v[i] = fibo(i);
  }
};
__constant__ Arr<int, 20> FT;
__device__ constexpr Arr<short, 16> FS;

template <class F>
__device__ __forceinline__ int fold(int n, F f) {
  int r = 0;
  for (int i = 0; i < n; i++) r = f(r, i);
  return r;
}

extern "C" __global__ void lambdas(const int* a, int* o, int n) {
  int i = I;
  if (i >= n) return;
  int k = a[i] & 15;
  int cap = a[i];
  auto g = [=](int r, int j) { return r * 31 + (j ^ cap) + FT.v[j] + FS.v[k]; };
  auto h = [&](int r, int j) {
    cap += j;
    return r ^ g(r, j);
  };
  o[i] = fold(k, g) + fold(16 - k, h) * 3 + cap;
}
