/**
 * Integers among the parameters of `extern "C"` kernels, as far as the text shows what their types
 * are.
 */
import { expect, test } from 'vitest';

import { wideCharacterWord } from './integer-words.js';
import { sourceSignatures } from './source-signatures.js';

const [S, U, B, O] = ['signed', 'unsigned', 'bool', undefined] as const;

const k = (list: string): string => `extern "C" __global__ void k(${list}) {}`;

test.each<[string, string, readonly (string | undefined)[] | undefined]>([
  [
    'keywords',
    k('float* y, char a, unsigned b, long c, unsigned long int, bool d, double e, long double f'),
    [O, S, U, S, U, B, O, O],
  ],
  [
    'qualifiers',
    k(
      'volatile unsigned char a, const volatile int b, unsigned const c, const unsigned ' +
        '__restrict__ d, volatile unsigned* e',
    ),
    [U, S, U, U, O],
  ],
  [
    'characters',
    k('wchar_t a, char16_t b, const char32_t c, char8_t'),
    [wideCharacterWord(), U, U, U],
  ],
  [
    'types of headers',
    k(
      'uint32_t a, std::int8_t b, cuda::std::uint64_t c, ::size_t d, uint_fast8_t e, ' +
        'intmax_t, half f, Mine g',
    ),
    [U, S, U, U, U, S, O, O],
  ],
  [
    'a template beside them',
    `template <typename T> struct Pair { T a; };\ntemplate <class T, int N> struct Block { T ` +
      `v[N]; };\n${k('float* y, uint32_t n, int64_t m')}`,
    [O, U, S],
  ],
  [
    'a template of the name',
    `template <typename T> struct int8_t { T a; };\n${k('uint32_t n, int8_t m')}`,
    [U, O],
  ],
  [
    'a template of functions',
    `template <typename T>\n__device__ T twice(T x) { return x + x; }\ntypedef unsigned ` +
      `U;\n${k('U n')}`,
    [U],
  ],
  [
    'aliases with qualifiers',
    'typedef const unsigned char A; using B = volatile unsigned short; typedef unsigned int ' +
      `volatile C;\n${k('A a, B b, C c')}`,
    [U, U, U],
  ],
  ['several aliases at once', `typedef unsigned A, *B, C;\n${k('A a, B b, C c')}`, [U, O, U]],
  [
    'enumerations of a type',
    'enum A : unsigned char { X }; enum class D : short; enum class E { Y }; enum F { Z }; ' +
      `typedef enum : unsigned { W } G;\n${k('A a, enum A b, D d, E e, F f, G g')}`,
    [U, U, S, S, O, U],
  ],
  [
    'names in namespaces',
    'namespace a { typedef unsigned char T; namespace b { using V = T; } } namespace c::d { ' +
      `enum E : unsigned { X }; }\n${k('a::T x, ::a::b::V y, const c::d::E z, b::V, T w')}`,
    [U, U, U, O, O],
  ],
  [
    'a namespace that is used',
    `namespace a { typedef unsigned char T; } using namespace a;\n${k('T x')}`,
    [U],
  ],
  [
    'unnamed and inline namespaces',
    'namespace { typedef unsigned A; } inline namespace v1 { typedef unsigned B; ' +
      `}\n${k('A a, B b, v1::B c')}`,
    [U, U, U],
  ],
  [
    'a name of a namespace that is declared outside as well',
    `typedef int T; namespace a { typedef unsigned T; typedef T V; }\n${k('T x, a::T y, a::V z')}`,
    [S, U, O],
  ],
  [
    'members',
    'struct A { typedef unsigned char T; enum class E : short { X }; using U = T; private: ' +
      `int x; };\n${k('A::T a, A::E b, A::U c, B::T d')}`,
    [U, S, U, O],
  ],
  [
    "an alias of a library's name",
    'using cuda::std::int64_t; typedef unsigned ' +
      `int16_t;\n${k('int64_t a, int16_t b, std::int16_t c')}`,
    [S, U, S],
  ],
  [
    'a name that is declared twice',
    'namespace a { typedef unsigned T; } namespace b { typedef int T; } using namespace ' +
      `a;\n${k('T x, b::T y')}`,
    [U, S],
  ],
  [
    'aliases under a condition',
    `#ifdef X\ntypedef unsigned T;\n#else\ntypedef int T;\n#endif\n${k('T a, unsigned b')}`,
    [O, U],
  ],
  [
    'a macro that is a type',
    `#define M unsigned char\n#define IN\n#define N M\n${k('IN M a, N b, int M')}`,
    [U, U, U],
  ],
  [
    'a macro of another type under a condition',
    `#ifndef M\n#define M unsigned char\n#endif\n${k('M a, int b')}`,
    undefined,
  ],
  [
    'a macro that is defined again',
    `#define M unsigned\n#undef M\n#define M int\n${k('M a')}`,
    undefined,
  ],
  ['a macro with a comma', `#define ALSO unsigned a, int\n${k('ALSO b')}`, undefined],
  ['a macro with parameters', `#define M(T) unsigned T\n${k('M(char) a')}`, undefined],
  ['a macro within an alias', `#define M unsigned char\ntypedef M T;\n${k('T a')}`, [U]],
  [
    'pointers to functions',
    `typedef void (*Done)(uint32_t n);\n${k('Done a, uint32_t b')}`,
    [O, U],
  ],
  [
    'structures and pointers by aliases',
    'typedef struct { unsigned n; } A; typedef unsigned *B; struct alignas(16) C { int x; ' +
      `};\n${k('A a, B b, C c, struct C d')}`,
    [O, O, O, O],
  ],
  ['names that lead in a circle', `typedef B A; typedef A B;\n${k('A a')}`, [O]],
  [
    'a kernel in a namespace',
    'namespace a { typedef unsigned T; extern "C" __global__ void k(T a, unsigned b, uint8_t ' +
      'c) {} }',
    [O, U, U],
  ],
  [
    'a kernel that there is twice',
    `#ifdef X\n${k('int a')}\n#else\n${k('unsigned a')}\n#endif`,
    undefined,
  ],
  [
    'an alias that a condition is within',
    `typedef\n#ifdef X\nint\n#else\nunsigned\n#endif\nT;\n${k('T a, uint8_t b, unsigned c')}`,
    [O, O, U],
  ],
])('%s', (_, text, expected) => {
  expect(sourceSignatures(text).kernels[0]!.words).toEqual(expected);
});

test('wchar_t is of the platform', () => {
  expect([
    wideCharacterWord('linux', 'x64'),
    wideCharacterWord('win32', 'x64'),
    wideCharacterWord('linux', 'arm64'),
  ]).toEqual(['signed', 'unsigned', undefined]);
});
