/**
 * A stand-in for cuBLASLt. It records descriptors, layouts and calls, and computes small products
 * in memory that the process can access: that of a CPU device.
 */
import koffi from 'koffi';

import { StandInLibrary } from '../core/stand-in-library.js';

const TEXT = `
#include <math.h>
#include <stdlib.h>
typedef struct {
  int type;
  uint64_t rows, columns;
  int64_t pitch;
  int batch;
  int64_t apart;
} Layout;
typedef struct {
  int compute, scale, transposed[2], bias_type, mode[2], fast;
  unsigned epilogue;
  uint64_t bias, scale_of[2], scale_of_d, amax;
} Desc;
typedef struct { uint64_t workspace; unsigned alignment[4]; } Preference;

static uint64_t base, wanted_workspace;
static int live, refused_at, found = 1;
API void standin_base(uint64_t value) { base = value; }
API int standin_live(void) { return live; }
/* 1: create, 2: the choice of an algorithm, 3: the product, 4: an attribute that is a pointer */
API void standin_refuse_at(int where) { refused_at = where; }
API void standin_found(int value) { found = value; }
API void standin_workspace(uint64_t bytes) { wanted_workspace = bytes; }
static int answer_at(int where) { return refused_at == where ? answer() : 0; }

API size_t cublasLtGetVersion(void) { return VERSION; }
API int cublasLtCreate(void **handle) {
  int status = answer_at(1);
  if (status == 0) { *handle = malloc(1); live++; note("create"); }
  return status;
}
API int cublasLtDestroy(void *handle) { free(handle); live--; note("destroy"); return 0; }
static int drop(void *object) { free(object); live--; return 0; }
API int cublasLtMatmulDescCreate(Desc **made, int compute, int scale) {
  *made = calloc(1, sizeof(Desc));
  (*made)->compute = compute;
  (*made)->scale = scale;
  (*made)->epilogue = 1;
  (*made)->bias_type = -1;
  live++;
  return 0;
}
API int cublasLtMatmulDescDestroy(Desc *object) { return drop(object); }
API int cublasLtMatmulDescSetAttribute(Desc *d, int number, const void *value, size_t bytes) {
  struct { int number; void *to; size_t bytes; } rows[] = {
    {3, &d->transposed[0], 4}, {4, &d->transposed[1], 4}, {7, &d->epilogue, 4},
    {8, &d->bias, 8}, {17, &d->scale_of[0], 8}, {18, &d->scale_of[1], 8},
    {20, &d->scale_of_d, 8}, {21, &d->amax, 8}, {25, &d->fast, 1}, {26, &d->bias_type, 4},
    {31, &d->mode[0], 4}, {32, &d->mode[1], 4}};
  int status = bytes == 8 && *(uint64_t *)value != 1 << 20 ? answer_at(4) : 0;
  for (size_t i = 0; status == 0 && i < sizeof rows / sizeof *rows; i++) {
    if (rows[i].number != number) continue;
    if (rows[i].bytes != bytes) return 7;
    if (bytes == 8 && *(uint64_t *)value != 1 << 20) note("pointer %d", number);
    memcpy(rows[i].to, value, bytes);
    return 0;
  }
  return status != 0 ? status : 7;
}
API int cublasLtMatrixLayoutCreate(Layout **made, int type, uint64_t rows, uint64_t columns,
                                   int64_t pitch) {
  *made = calloc(1, sizeof(Layout));
  **made = (Layout){type, rows, columns, pitch, 1, 0};
  live++;
  return 0;
}
API int cublasLtMatrixLayoutDestroy(Layout *object) { return drop(object); }
API int cublasLtMatrixLayoutSetAttribute(Layout *l, int number, const void *value, size_t bytes) {
  if (number == 5 && bytes == 4) memcpy(&l->batch, value, 4);
  else if (number == 6 && bytes == 8) memcpy(&l->apart, value, 8);
  else return 7;
  return 0;
}
API int cublasLtMatmulPreferenceCreate(Preference **made) {
  *made = calloc(1, sizeof(Preference));
  for (int i = 0; i < 4; i++) (*made)->alignment[i] = 256;
  live++;
  return 0;
}
API int cublasLtMatmulPreferenceDestroy(Preference *object) { return drop(object); }
API int cublasLtMatmulPreferenceSetAttribute(Preference *p, int number, const void *value,
                                             size_t bytes) {
  if (number == 1 && bytes == 8) memcpy(&p->workspace, value, 8);
  else if (number >= 5 && number <= 8 && bytes == 4) memcpy(&p->alignment[number - 5], value, 4);
  else return 7;
  return 0;
}

static void write_layout(char *to, const Layout *l) {
  to += sprintf(to, "%d:%llux%llu/%lld", l->type, (unsigned long long)l->rows,
    (unsigned long long)l->columns, (long long)l->pitch);
  if (l->batch != 1) sprintf(to, "*%d+%lld", l->batch, (long long)l->apart);
}
API int cublasLtMatmulAlgoGetHeuristic(void *handle, Desc *d, Layout *a, Layout *b, Layout *c,
    Layout *out, Preference *p, int most, unsigned char *results, int *count) {
  char text[4][128];
  Layout *layouts[] = {a, b, c, out};
  int status = answer_at(2);
  for (int i = 0; i < 4; i++) write_layout(text[i], layouts[i]);
  note("choose compute=%d scale=%d ops=%d%d epilogue=%u bias=%d fast=%d modes=%d%d A=%s B=%s C=%s "
    "D=%s%s workspace=%llu alignment=%u,%u,%u,%u", d->compute, d->scale, d->transposed[0],
    d->transposed[1], d->epilogue, d->bias_type, d->fast, d->mode[0], d->mode[1], text[0], text[1],
    text[2], text[3], c == out ? " C=D" : "", (unsigned long long)p->workspace, p->alignment[0],
    p->alignment[1], p->alignment[2], p->alignment[3]);
  if ((d->epilogue & 4) != 0 && d->bias == 0) return 7;
  if (status != 0 || most != 1) return status != 0 ? status : 7;
  memset(results, 0, 96);
  memcpy(results, "algorithm", 9);
  memcpy(results + 64, &wanted_workspace, 8);
  *count = found;
  return 0;
}

static double small(unsigned bits, int exponent, int fraction, int infinite) {
  int e = bits >> fraction & ((1 << exponent) - 1), f = bits & ((1 << fraction) - 1);
  int bias = (1 << (exponent - 1)) - 1;
  double sign = bits >> (exponent + fraction) & 1 ? -1 : 1;
  if (infinite && e == (1 << exponent) - 1) return f ? NAN : sign * INFINITY;
  if (e == 0) return sign * ldexp(f, 1 - bias - fraction);
  return sign * ldexp(f + (1 << fraction), e - bias - fraction);
}
static double load(int type, uint64_t at, uint64_t i) {
  const void *p = (const void *)(base + at);
  if (type == 0) return ((const float *)p)[i];
  if (type == 2) return small(((const uint16_t *)p)[i], 5, 10, 1);
  if (type == 14) return small(((const uint16_t *)p)[i], 8, 7, 1);
  if (type == 28) return small(((const uint8_t *)p)[i], 4, 3, 0);
  return small(((const uint8_t *)p)[i], 5, 2, 1);
}
/* The bits of magnitudes increase with them: the nearest one is next to where the search ends. */
static void store(int type, uint64_t at, uint64_t i, double value) {
  void *p = (void *)(base + at);
  if (type == 0) { ((float *)p)[i] = value; return; }
  int bits = type == 2 || type == 14 ? 16 : 8, e = type == 14 ? 8 : type == 28 ? 4 : 5;
  int fraction = bits - 1 - e;
  unsigned low = 0, high = type == 28 ? 0x7e : (((1u << e) - 1) << fraction) - 1;
  while (low < high) {
    unsigned middle = (low + high) / 2;
    if (small(middle, e, fraction, type != 28) < fabs(value)) low = middle + 1;
    else high = middle;
  }
  if (low > 0 && fabs(value) - small(low - 1, e, fraction, type != 28) <
      small(low, e, fraction, type != 28) - fabs(value)) low--;
  if (value < 0) low |= 1u << (bits - 1);
  if (bits == 16) ((uint16_t *)p)[i] = low; else ((uint8_t *)p)[i] = low;
}
static uint64_t place(const Layout *l, int n, uint64_t row, uint64_t column) {
  return (uint64_t)n * l->apart + row + column * l->pitch;
}
API int cublasLtMatmul(void *handle, Desc *d, const float *alpha, uint64_t A, Layout *a, uint64_t B,
    Layout *b, const float *beta, uint64_t C, Layout *c, uint64_t D, Layout *out,
    const char *algorithm, uint64_t workspace, size_t bytes, uint64_t stream) {
  int status = answer_at(3), ta = d->transposed[0], tb = d->transposed[1];
  uint64_t m = out->rows, n = out->columns, k = ta ? a->rows : a->columns;
  note("multiply alpha=%g beta=%g C%s workspace=%llu%s stream=%llu", *alpha, *beta,
    C == 0 ? "=0" : C == D ? "=D" : "", (unsigned long long)bytes, workspace ? "@" : "",
    (unsigned long long)stream);
  if (status != 0) return status;
  if (strcmp(algorithm, "algorithm") != 0) return 14;
  if ((ta ? a->columns : a->rows) != m || (tb ? b->rows : b->columns) != n) return 7;
  if ((tb ? b->columns : b->rows) != k) return 7;
  if (a->batch != out->batch || b->batch != out->batch) return 7;
  if (base == 0) return 0;
  double most = 0;
  for (int batch = 0; batch < out->batch; batch++)
    for (uint64_t i = 0; i < m; i++)
      for (uint64_t j = 0; j < n; j++) {
        double sum = 0;
        for (uint64_t s = 0; s < k; s++)
          sum += load(a->type, A, ta ? place(a, batch, s, i) : place(a, batch, i, s)) *
            load(b->type, B, tb ? place(b, batch, j, s) : place(b, batch, s, j));
        if (d->scale_of[0]) sum *= load(0, d->scale_of[0], d->mode[0] ? i : 0);
        if (d->scale_of[1]) sum *= load(0, d->scale_of[1], d->mode[1] ? j : 0);
        sum *= *alpha;
        if (*beta != 0) sum += *beta * load(c->type, C, place(c, batch, i, j));
        if (d->epilogue & 4) sum += load(d->bias_type, d->bias, i);
        if (d->epilogue & 2) sum = sum < 0 ? 0 : sum;
        if (d->epilogue & 32)
          sum = 0.5 * sum * (1 + tanh(0.7978845608028654 * (sum + 0.044715 * sum * sum * sum)));
        if (fabs(sum) > most) most = fabs(sum);
        if (d->scale_of_d) sum *= load(0, d->scale_of_d, 0);
        store(out->type, D, place(out, batch, i, j), sum);
      }
  if (d->amax) store(0, d->amax, 0, most);
  return 0;
}
`;

/** The places where the stand-in can return a failure. */
export const REFUSALS = { nowhere: 0, create: 1, choice: 2, product: 3, pointer: 4 } as const;

export interface StandInCublasLt {
  readonly library: StandInLibrary;
  /** The number of the library's objects that exist. */
  live(): number;
  /** The place that returns the status of `library.answers`. */
  refuseAt(where: number): void;
  /** The number of algorithms that it finds. */
  found(count: number): void;
  /** The bytes of workspace that its algorithm needs. */
  workspace(bytes: number): void;
  /** Where the device's memory begins in the process; 0 where it computes nothing. */
  base(address: number): void;
  /** Sets everything back. */
  reset(): void;
}

/** @param version as cublasLtGetVersion gives it */
export function standInCublasLt(version: number): StandInCublasLt {
  const library = new StandInLibrary('cublasLt', TEXT.replace('VERSION', String(version)));
  const loaded = koffi.load(library.path);
  const live = loaded.func('int standin_live()') as () => number;
  const refuseAt = loaded.func('void standin_refuse_at(int where)') as (where: number) => void;
  const found = loaded.func('void standin_found(int count)') as (count: number) => void;
  const workspace = loaded.func('void standin_workspace(uint64_t bytes)') as (n: number) => void;
  const base = loaded.func('void standin_base(uint64_t address)') as (address: number) => void;
  return {
    library,
    live,
    refuseAt,
    found,
    workspace,
    base,
    reset: () => {
      library.answers(0);
      refuseAt(REFUSALS.nowhere);
      found(1);
      workspace(0);
      library.take();
    },
  };
}
