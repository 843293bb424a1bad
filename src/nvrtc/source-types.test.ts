/** The type checker's reading of CUDA C++, the reading at run time, and the expected one agree. */
import { readFileSync, readdirSync } from 'node:fs';
import * as fc from '../../test/fast-check.js';
import { expect, test } from 'vitest';

import { readAtRunTime } from './read-at-run-time.test-support.js';
import type { Read } from './read-at-run-time.test-support.js';
import { readByTypes } from './read-types.test-support.js';

const k = (list: string): string => `extern "C" __global__ void k(${list}) {}`;
const one = (...types: unknown[]): Read => ({ kernels: { k: types }, open: false });
const X = { fields: { x: 'f32' } };
const untyped: Read = { kernels: { k: undefined }, open: false };

const CASES: readonly (readonly [name: string, text: string, read: Read])[] = [
  ['no parameters', `${k('')}`, one()],
  ['void', k(' void '), one()],
  [
    'scalars',
    k(
      'float a, double b, bool c, int d, unsigned e, unsigned long long f, long long int g, ' +
        'char h, size_t i, std::uint8_t j, half l',
    ),
    one('f32', 'f64', 'bool', 'i32', 'u32', 'u64', 'i64', 'i8', 'u64', 'u8', 'f16'),
  ],
  [
    'pointers',
    k(
      'float* a, const float *b, float const * __restrict__ c, float * const d, void* e, ' +
        'const void* f, float4* g, const char* h',
    ),
    one(
      'inout f32',
      'input f32',
      'input f32',
      'inout f32',
      'inout any',
      'input any',
      'inout f32',
      'input char',
    ),
  ],
  [
    'no names',
    k('float*, int, const float* __restrict__, unsigned int'),
    one('inout f32', 'i32', 'input f32', 'u32'),
  ],
  [
    'comments and lines',
    k('float* y, // the "result"\n  /* it\'s, */ const float*\n    x,\n\n  int n // }\n'),
    one('inout f32', 'input f32', 'i32'),
  ],
  ['launch bounds', 'extern "C" __global__ void __launch_bounds__(256, 2) k(int n) {}', one('i32')],
  [
    'launch bounds in front',
    'extern "C" __launch_bounds__(256) __global__ void k(int n) {}',
    one('i32'),
  ],
  ['a block', `extern "C" {\n__global__ void k(int n) {}\n}\n`, one('i32')],
  [
    'aliases',
    'typedef float real; using In = const real*; typedef double* ' +
      `Out;\n${k('real a, In b, Out c, const Out d, real* e, In* f')}`,
    one('f32', 'input f32', 'inout f64', 'inout f64', 'inout f32', 'unknown'),
  ],
  [
    'structures',
    `struct A { float x, y; int i[3]; };\ntypedef struct { A a; unsigned char m[2][4]; } ` +
      `B;\n${k('A a, const B b, struct A c, A* d')}`,
    one(
      { fields: { x: 'f32', y: 'f32', i: ['i32', 3] } },
      { fields: { a: { fields: { x: 'f32', y: 'f32', i: ['i32', 3] } }, m: [['u8', 4], 2] } },
      { fields: { x: 'f32', y: 'f32', i: ['i32', 3] } },
      'inout any',
    ),
  ],
  [
    'a typedef with the tag as its name',
    `typedef struct A { float x; } A;\ntypedef struct B { A a; } C;\n${k('A a, B b, C c')}`,
    one(
      { fields: { x: 'f32' } },
      { fields: { a: { fields: { x: 'f32' } } } },
      { fields: { a: { fields: { x: 'f32' } } } },
    ),
  ],
  [
    'pointers to functions',
    `typedef int (*Op)(int, const float*);\ntypedef void\n  (* Done ) ();\nstruct A { float ` +
      `x; };\nstruct B { Op op; };\n${k('A a, Op b, Done c, B d')}`,
    one({ fields: { x: 'f32' } }, 'unknown', 'unknown', 'unknown'),
  ],
  [
    'a pointer to a function for a known name',
    `typedef float (*half)(float);\n${k('half h, half* g')}`,
    one('unknown', 'inout any'),
  ],
  [
    'typedefs of several names, and of pointers to functions of functions',
    `typedef int (*Op)(int), half;\n${k('half h')}`,
    one('unknown'),
  ],
  [
    'a typedef of a pointer to a function that takes one',
    `typedef int (*Op)(int (*)(int));\n${k('half h')}`,
    one('unknown'),
  ],
  [
    'vectors',
    k('float2 a, uchar3 b'),
    one({ fields: { x: 'f32', y: 'f32' } }, { fields: { x: 'u8', y: 'u8', z: 'u8' } }),
  ],
  [
    'what is not understood',
    k('Foo a, float** b, float c[4], ns::Bar d, Foo* e, long f'),
    one('unknown', 'unknown', 'unknown', 'unknown', 'inout any', 'unknown'),
  ],
  [
    'structures with more than fields',
    'struct A { float* x; }; struct B { float x; float f() { return x; } }; struct C : A { ' +
      `int i; }; enum D { E };\n${k('A a, B b, C c, D d')}`,
    one('unknown', 'unknown', 'unknown', 'unknown'),
  ],
  [
    'packed structures',
    `struct A { float x; };\n#pragma pack(push, 1)\nstruct B { char a; int b; };\ntypedef ` +
      `struct { char a; int b; } C;\n#pragma pack(pop)\nstruct D { float x; };\nstruct E { D ` +
      `d; B b; };\n${k('A a, B b, C c, D d, E e, B* f, half h')}`,
    one(X, 'unknown', 'unknown', X, 'unknown', 'inout any', 'f16'),
  ],
  [
    'packed structures up to the end',
    `struct A { float x; };\n#pragma pack(1)\nstruct B { float x; ` +
      `};\n${k('A a, B b, float4* c')}\nstruct C { float x; };\nextern "C" {\n__global__ void ` +
      `l(C c) {\n  if (1) { }\n}\n}\n`,
    { kernels: { k: [X, 'unknown', 'inout f32'], l: ['unknown'] }, open: false },
  ],
  [
    'packing that ends',
    `#pragma pack(2)\nstruct A { float x; };\n#pragma pack()\nstruct B { float x; ` +
      `};\n#pragma pack(pop)\nstruct C { float x; };\n#pragma pack(show)\n${k('A a, B b, C c')}`,
    one('unknown', X, X),
  ],
  [
    'packing within packing',
    `#pragma pack(push)\n#  pragma  pack ( N ) // one\nstruct A { float x; };\n#pragma ` +
      `pack(push, 8)\n#pragma pack()\nstruct B { float x; };\n#pragma pack(pop)\nstruct C { ` +
      `float x; };\n#pragma pack(pop)\nstruct D { float x; };\n${k('A a, B b, C c, D d')}`,
    one('unknown', X, 'unknown', X),
  ],
  [
    'packing under a condition',
    `struct A { float x; };\n#ifdef X\n#pragma pack(push, 1)\n#else\n#endif\nstruct B { ` +
      `float x; };\n#pragma pack(pop)\n#pragma pack()\nstruct C { float x; ` +
      `};\n${k('A a, B b, C c')}`,
    one(X, 'unknown', 'unknown'),
  ],
  [
    'packing that has a name',
    `#pragma pack(push, mine, 1)\nstruct A { float x; };\n#pragma pack(pop, mine)\nstruct B ` +
      `{ float x; };\n${k('A a, B b')}`,
    one('unknown', 'unknown'),
  ],
  [
    'packing in a structure',
    `struct A {\n  char a;\n#pragma pack(1)\n  int b;\n#pragma pack()\n};\nstruct B { float ` +
      `x; };\n${k('A a, B b')}`,
    one('unknown', X),
  ],
  [
    'packing in a body',
    `__device__ void f() {\n#pragma pack(1)\n}\nstruct A { float x; };\n#pragma ` +
      `pack()\nstruct B { float x; };\n${k('A a, B b')}`,
    one('unknown', X),
  ],
  [
    'packing by an operator',
    `_Pragma("pack(1)")\nstruct A { float x; };\n_Pragma("pack()")\nstruct B { float x; ` +
      `};\n${k('A a, int n')}`,
    one('unknown', 'i32'),
  ],
  [
    'packing by a macro',
    `#define DO(text) _Pragma(#text)\nDO(pack(1))\nstruct A { float x; };\n${k('A a, int n')}`,
    one('unknown', 'i32'),
  ],
  [
    'pragmas that pack nothing',
    `#pragma once\n#pragma nv_diag_suppress 177 // pack(1)\n#define UNROLL ` +
      `_Pragma("unroll")\nstruct A { float x; };\n__device__ int pack(int x) {\n  #pragma ` +
      `unroll\n  for (;;) { x = pack(pack(x)); }\n}\nstruct B { float x; };\n${k('A a, B b')}`,
    one(X, X),
  ],
  [
    'a structure of its own for a known name',
    `struct half { int bits[2]; };\n${k('half h')}`,
    one({ fields: { bits: ['i32', 2] } }),
  ],
  [
    'an alias under a condition',
    `#ifdef X\ntypedef float real;\n#else\ntypedef double ` +
      `real;\n#endif\n${k('real a, real* b, int c')}`,
    one('unknown', 'inout any', 'i32'),
  ],
  ['a kernel under a condition', `#ifdef X\n${k('int n')}\n#endif\n`, untyped],
  [
    'a parameter under a condition',
    'extern "C" __global__ void k(int n\n#ifdef X\n, int m\n#endif\n) {}',
    { kernels: {}, open: true },
  ],
  [
    'a body under conditions',
    'extern "C" __global__ void k(int n) {\n#ifdef X\n  if (n) {\n    n++;\n  }\n#else\n  ' +
      'n--;\n#endif\n}\n',
    one('i32'),
  ],
  ['a macro in a list', `#define ALSO , int m\n${k('int n ALSO')}`, untyped],
  ['a macro for a name', `#define n *m\n${k('float n')}`, untyped],
  [
    'a macro for a kernel',
    '#define NAME other\nextern "C" __global__ void NAME(int n) {}',
    { kernels: {}, open: true },
  ],
  [
    'a macro that makes kernels',
    `#define MAKE(T) extern "C" __global__ void f_##T(T* x) {}\nMAKE(float)\n${k('int n')}`,
    { kernels: { k: ['i32'] }, open: true },
  ],
  [
    'a macro for a word of the language',
    `#define float double\n${k('float n')}`,
    { kernels: {}, open: true },
  ],
  [
    "a header of one's own",
    `#include "mine.cuh"\n${k('int n')}`,
    { kernels: { k: ['i32'] }, open: true },
  ],
  [
    'templates',
    `template <typename T>\n__global__ void t(T* x) { if (x) { } }\n${k('int n')}`,
    one('i32'),
  ],
  [
    'a mangled kernel',
    `__global__ void mangled(int n) {}\n${k('int n')}`,
    { kernels: { k: ['i32'] }, open: true },
  ],
  [
    'a namespace',
    `namespace a { struct half { int i; }; extern "C" __global__ void k(half h) {} }`,
    untyped,
  ],
  [
    'comments that hold kernels',
    `// ${k('int a')}\n/* ${k('int b')} */\n${k('float c')}`,
    one('f32'),
  ],
  [
    'literals with braces and quotes',
    `__device__ const char* s = "} \\" {"; __device__ char c = '{', d = '\\'', e = ` +
      `'"';\n__device__ int f() { return 1'000'000; }\n${k('int n')}`,
    one('i32'),
  ],
  [
    'newlines in literals',
    `__device__ void f() { printf("a\n}\n{\n", '\n'); }\n${k('int n')}`,
    one('i32'),
  ],
  [
    'raw strings',
    `__device__ const char* s = R"x(" } ${k('int z')} )" )x";\n${k('int n')}`,
    one('i32'),
  ],
  [
    'lines that end with a backslash',
    `#define F(x) \\\n  { g(x); \\\n  }\n// a comment \\\n ${k('int z')}\n${k('int n')}`,
    one('i32'),
  ],
  [
    'functions in one line',
    '__device__ int f() { if (1) { return 2; } return 1; } __device__ int g() { return 2; ' +
      `}\n${k('int n')}`,
    one('i32'),
  ],
  ['braces that do not match', `${k('int n')} }`, { kernels: {}, open: true }],
  ['nothing', '', { kernels: {}, open: false }],
];

test('both read each case alike, as expected', { tags: 'thorough' }, () => {
  const { read, errors } = readByTypes(CASES.map(([, text]) => text));
  expect(errors).toEqual([]);
  CASES.forEach(([name, text, meant], i) => {
    expect({ name, ...readAtRunTime(text) }).toEqual({ name, ...meant });
    expect({ name, ...read[i] }).toEqual({ name, ...meant });
  });
});

test('the kernels of the samples are read alike', { tags: 'thorough' }, () => {
  const folder = new URL('../../test/samples/kernels/', import.meta.url);
  const texts = readdirSync(folder)
    .filter((file) => file.endsWith('.cu'))
    .map((file) => readFileSync(new URL(file, folder), 'utf8'));
  const { read, errors } = readByTypes(texts);
  expect(errors).toEqual([]);
  expect(texts.length).toBeGreaterThan(10);
  texts.forEach((text, i) => {
    expect(read[i]).toEqual(readAtRunTime(text));
  });
});

// Random signatures, printed in any layout
// --------------------------------------------------------------

const SCALARS: readonly (readonly [string, string])[] = [
  ['float', 'f32'],
  ['double', 'f64'],
  ['bool', 'bool'],
  ['int', 'i32'],
  ['unsigned int', 'u32'],
  ['unsigned', 'u32'],
  ['short', 'i16'],
  ['unsigned char', 'u8'],
  ['signed char', 'i8'],
  ['long long', 'i64'],
  ['unsigned long long int', 'u64'],
  ['size_t', 'u64'],
  ['int64_t', 'i64'],
  ['uint8_t', 'u8'],
  ['__half', 'f16'],
  ['half', 'f16'],
  ['__nv_bfloat16', 'bf16'],
];
const VECTORS: readonly (readonly [string, string])[] = [
  ['float2', 'f32'],
  ['float4', 'f32'],
  ['half2', 'f16'],
  ['uchar4', 'u8'],
];

const blank = fc.constantFrom(' ', '  ', '\n', '\n    ', ' /* a, b) */ ', ' // c "d\n  ', '\t');
const gap = fc.oneof(fc.constant(''), blank);

/**
 * The printed parameter without its name, with a blank or a star at its end, and its description.
 */
const parameter: fc.Arbitrary<readonly [string, unknown]> = fc.oneof(
  fc
    .tuple(fc.constantFrom(...SCALARS), blank, fc.boolean())
    .map(
      ([[name, dtype], space, isConst]) =>
        [`${isConst ? `const${space}` : ''}${name}${space}`, dtype] as const,
    ),
  fc
    .tuple(
      fc.constantFrom(...SCALARS, ...VECTORS),
      gap,
      blank,
      fc.constantFrom('', 'before', 'after'),
      fc.constantFrom('', '__restrict__', 'const', 'const __restrict__'),
    )
    .map(
      ([[name, dtype], loose, space, constness, after]) =>
        [
          (constness === 'before' ? `const${space}` : '') +
            `${name}${constness === 'after' ? `${space}const` : ''}` +
            `${loose}*${loose}${after}${after === '' ? '' : ' '}`,
          `${constness === '' ? 'inout' : 'input'} ${dtype}`,
        ] as const,
    ),
  fc.constantFrom<readonly [string, unknown]>(
    ['Alias ', 'f64'],
    ['Alias* ', 'inout f64'],
    ['const Alias *', 'input f64'],
    ['Pair ', { fields: { a: 'f32', b: ['i32', 4] } }],
    ['const Pair* ', 'input any'],
    ['Foreign ', 'unknown'],
    ['float ** ', 'unknown'],
  ),
);

const kernel = fc.record({
  parameters: fc.array(parameter, { maxLength: 7 }),
  lead: fc.constantFrom(
    '',
    '// extern "C" __global__ void no(int n) {\n',
    '/* { */\n',
    '__device__ float g(float x) {\n  if (x > 0) { return x; }\n  return -x;\n}\n',
    '__constant__ float c[2] = {1, 2};\n',
  ),
  bounds: fc.constantFrom('', '__launch_bounds__(128) ', '__launch_bounds__(128, 2)\n'),
  space: gap,
  body: fc.constantFrom(
    '{}',
    '{\n  int i = 0;\n  for (;;) { i++; }\n}',
    '{ printf("}\n"); }',
    "\n{\n  /* } */ char c = '{';\n}",
  ),
});

test('what is generated and printed in any layout is read by both', { tags: 'random' }, () => {
  const texts: string[] = [];
  const meant: Read[] = [];
  fc.assert(
    fc.property(
      fc.array(kernel, { minLength: 1, maxLength: 3 }),
      fc.boolean(),
      (kernels, inBlock) => {
        const printed = kernels
          .map(
            ({ parameters, lead, bounds, space, body }, i) =>
              `${lead}${inBlock ? '' : 'extern "C" '}__global__ void ` +
              `${bounds}kernel_${i}(` +
              parameters.map(([type], j) => `${space}${type}p${j}`).join(',') +
              `${space}) ${body}\n`,
          )
          .join('\n');
        const text =
          `#include <cuda_fp16.h>\ntypedef double Alias;\nstruct Pair {\n  float a; // first\n ` +
          ` int b[4];\n};\n${inBlock ? `extern "C" {\n${printed}}\n` : printed}`;
        texts.push(text);
        meant.push({
          kernels: Object.fromEntries(
            kernels.map(({ parameters }, i) => [`kernel_${i}`, parameters.map(([, type]) => type)]),
          ),
          open: false,
        });
        expect(readAtRunTime(text)).toEqual(meant.at(-1));
      },
    ),
    { numRuns: 120 },
  );
  const { read, errors } = readByTypes(texts);
  expect(errors).toEqual([]);
  texts.forEach((text, i) => {
    expect({ text, ...read[i] }).toEqual({ text, ...meant[i] });
  });
});
