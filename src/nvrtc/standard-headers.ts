/**
 * Headers of the C library that NVRTC lacks, as far as device code uses them: types of whole
 * numbers, limits, and the constants of <math.h>. Functions (sqrtf, printf, memcpy, assert) are
 * NVRTC's own, without a header. nvcc includes <math.h> by itself, so sources for nvcc use INFINITY
 * and NAN without an #include.
 *
 * Types and values are those of `cuda/std` under NVRTC, with the same spelling, so that a source
 * may include both.
 */

const SIGNED: Readonly<Record<number, string>> = {
  8: 'signed char',
  16: 'signed short',
  32: 'signed int',
  64: 'signed long long',
};
const PREFIXES: Readonly<Record<number, string>> = {
  8: 'CHAR',
  16: 'SHRT',
  32: 'INT',
  64: 'LLONG',
};
const WIDTHS = [8, 16, 32, 64];

const macros = (values: Readonly<Record<string, string>>): string =>
  Object.entries(values)
    .map(([name, value]) => `#ifndef ${name}\n#define ${name} ${value}\n#endif\n`)
    .join('');
const inStd = (names: readonly string[]): string =>
  `namespace std {\n${names.map((name) => `using ::${name};\n`).join('')}}\n`;

/** The types of each width: exact, least and fast. */
const SIZED = WIDTHS.flatMap((width) => [
  `int${width}_t`,
  `uint${width}_t`,
  `int_least${width}_t`,
  `uint_least${width}_t`,
  `int_fast${width}_t`,
  `uint_fast${width}_t`,
]);
const WIDEST = ['intptr_t', 'uintptr_t', 'intmax_t', 'uintmax_t'];

/**
 * CUDA's C++ libraries define INT8_C and similar macros, too, with other texts from version to
 * version: where they are available, theirs come first. They refuse standards before C++17.
 */
const OTHERS_CONSTANTS =
  '#if defined(__has_include) && __cplusplus >= 201703L\n#if ' +
  '__has_include(<cuda/std/cstdint>)\n#include <cuda/std/cstdint>\n#endif\n#endif\n';

function stdint(): string {
  const types = [
    ...SIZED.map((name) => [name, Number(/\d+/.exec(name)![0])] as const),
    ...WIDEST.map((name) => [name, 64] as const),
  ]
    .map(
      ([name, width]) =>
        'typedef ' +
        `${name.startsWith('u') ? SIGNED[width]!.replace('signed', 'unsigned') : SIGNED[width]!} ` +
        `${name};\n`,
    )
    .join('');
  const limits = WIDTHS.flatMap((width) =>
    ['', '_LEAST', '_FAST'].flatMap((kind): [string, string][] => {
      const exact = (end: string): string =>
        kind === ''
          ? (end.startsWith('U') ? 'U' : width === 8 ? 'S' : '') +
            `${PREFIXES[width]!}${end.slice(-4)}`
          : `${end.startsWith('U') ? 'U' : ''}INT${width}${end.slice(-4)}`;
      return [
        [`INT${kind}${width}_MIN`, exact('_MIN')],
        [`INT${kind}${width}_MAX`, exact('_MAX')],
        [`UINT${kind}${width}_MAX`, exact('U_MAX')],
      ];
    }),
  );
  return `#include <limits.h>\n${types}${macros({
    ...Object.fromEntries(limits),
    INTPTR_MIN: 'INT64_MIN',
    INTPTR_MAX: 'INT64_MAX',
    UINTPTR_MAX: 'UINT64_MAX',
    INTMAX_MIN: 'INT64_MIN',
    INTMAX_MAX: 'INT64_MAX',
    UINTMAX_MAX: 'UINT64_MAX',
    PTRDIFF_MIN: 'INT64_MIN',
    PTRDIFF_MAX: 'INT64_MAX',
    SIZE_MAX: 'UINT64_MAX',
  })}${OTHERS_CONSTANTS}${[
    ...WIDTHS.map((width) => [`INT${width}_C`, `UINT${width}_C`, `int_least${width}_t`]),
    ['INTMAX_C', 'UINTMAX_C', 'intmax_t'],
  ]
    .map(
      ([name, unsigned, type]) =>
        `#ifndef ${name}\n#define ${name}(X) ((::${type}) (X))\n#define ${unsigned}(X) ` +
        `((::u${type}) (X))\n#endif\n`,
    )
    .join('')}`;
}

/** C99, 5.2.4.2.1, where char is signed; long has the width of the host's. */
const LIMITS = `${macros({
  CHAR_BIT: '8',
  SCHAR_MIN: '(-128)',
  SCHAR_MAX: '127',
  UCHAR_MAX: '255',
  CHAR_MIN: 'SCHAR_MIN',
  CHAR_MAX: 'SCHAR_MAX',
  SHRT_MIN: '(-SHRT_MAX - 1)',
  SHRT_MAX: '0x7fff',
  USHRT_MAX: '0xffff',
  INT_MIN: '(-INT_MAX - 1)',
  INT_MAX: '0x7fffffff',
  UINT_MAX: '0xffffffff',
  LONG_MIN: '(-LONG_MAX - 1)',
  LLONG_MIN: '(-LLONG_MAX - 1)',
  LLONG_MAX: '0x7fffffffffffffffLL',
  ULLONG_MAX: '0xffffffffffffffffUL',
})}#ifdef __LP64__\n${macros({
  LONG_MAX: 'LLONG_MAX',
  ULONG_MAX: 'ULLONG_MAX',
})}#else\n${macros({
  LONG_MAX: 'INT_MAX',
  ULONG_MAX: 'UINT_MAX',
})}#endif\n`;

/** IEEE 754 binary32 and binary64. */
const FLOATS = macros({
  FLT_RADIX: '2',
  DECIMAL_DIG: 'DBL_DECIMAL_DIG',
  FLT_ROUNDS: '1',
  FLT_EVAL_METHOD: '0',
  FLT_DECIMAL_DIG: '9',
  FLT_DIG: '6',
  FLT_MANT_DIG: '24',
  FLT_MIN_EXP: '(-125)',
  FLT_MIN_10_EXP: '(-37)',
  FLT_MAX_EXP: '128',
  FLT_MAX_10_EXP: '38',
  FLT_HAS_SUBNORM: '1',
  FLT_MIN: '1.17549435082228750796873653722224568e-38f',
  FLT_TRUE_MIN: '1.40129846432481707092372958328991613e-45f',
  FLT_MAX: '3.40282346638528859811704183484516925e+38f',
  FLT_EPSILON: '1.19209289550781250000000000000000000e-7f',
  DBL_DECIMAL_DIG: '17',
  DBL_DIG: '15',
  DBL_MANT_DIG: '53',
  DBL_MIN_EXP: '(-1021)',
  DBL_MIN_10_EXP: '(-307)',
  DBL_MAX_EXP: '1024',
  DBL_MAX_10_EXP: '308',
  DBL_HAS_SUBNORM: '1',
  DBL_MIN: '2.22507385850720138309023271733240406e-308',
  DBL_TRUE_MIN: '4.94065645841246544176568792868221372e-324',
  DBL_MAX: '1.79769313486231570814527423731704357e+308',
  DBL_EPSILON: '2.22044604925031308084726333618164062e-16',
});

/** Constants of <math.h>, also those of POSIX. */
const CONSTANTS = macros({
  M_E: '2.7182818284590452354',
  M_LOG2E: '1.4426950408889634074',
  M_LOG10E: '0.43429448190325182765',
  M_LN2: '0.69314718055994530942',
  M_LN10: '2.30258509299404568402',
  M_PI: '3.14159265358979323846',
  M_PI_2: '1.57079632679489661923',
  M_PI_4: '0.78539816339744830962',
  M_1_PI: '0.31830988618379067154',
  M_2_PI: '0.63661977236758134308',
  M_2_SQRTPI: '1.12837916709551257390',
  M_SQRT2: '1.41421356237309504880',
  M_SQRT1_2: '0.70710678118654752440',
});

// __builtin_bit_cast is a constant expression, and __int_as_float is not; NVRTC 12 and later have
// it.
const MATH = `#if __CUDACC_VER_MAJOR__ >= 12\n${macros({
  INFINITY: '__builtin_bit_cast(float, 0x7f800000u)',
  NAN: '__builtin_bit_cast(float, 0x7fc00000u)',
  HUGE_VALF: '__builtin_bit_cast(float, 0x7f800000u)',
  HUGE_VAL: '__builtin_bit_cast(double, 0x7ff0000000000000ull)',
})}#else\n${macros({
  INFINITY: '__int_as_float(0x7f800000)',
  NAN: '__int_as_float(0x7fc00000)',
  HUGE_VALF: '__int_as_float(0x7f800000)',
  HUGE_VAL: '__longlong_as_double(0x7ff0000000000000ll)',
})}#endif\n${CONSTANTS}`;

const MATH_FUNCTIONS = [
  'abs',
  'acos',
  'acosh',
  'asin',
  'asinh',
  'atan',
  'atan2',
  'atanh',
  'cbrt',
  'ceil',
  'copysign',
  'cos',
  'cosh',
  'erf',
  'erfc',
  'exp',
  'exp2',
  'expm1',
  'fabs',
  'fdim',
  'floor',
  'fma',
  'fmax',
  'fmin',
  'fmod',
  'frexp',
  'hypot',
  'ilogb',
  'isfinite',
  'isinf',
  'isnan',
  'ldexp',
  'lgamma',
  'log',
  'log10',
  'log1p',
  'log2',
  'logb',
  'lrint',
  'lround',
  'modf',
  'nearbyint',
  'nextafter',
  'pow',
  'remainder',
  'rint',
  'round',
  'scalbn',
  'signbit',
  'sin',
  'sinh',
  'sqrt',
  'tan',
  'tanh',
  'tgamma',
  'trunc',
];
const STDDEF =
  '#ifndef offsetof\n#define offsetof(type, member) __builtin_offsetof(type, member)\n#endif\n';

const TEXTS: Readonly<Record<string, string>> = {
  'stdint.h': stdint(),
  'limits.h': LIMITS,
  'float.h': FLOATS,
  'math.h': MATH,
  'stddef.h': STDDEF,
  'assert.h': '',
  'stdio.h': '',
  'stdlib.h': '',
  'string.h': '',
  cstdint: `#include <stdint.h>\n${inStd([...SIZED, ...WIDEST])}`,
  climits: '#include <limits.h>\n',
  cfloat: '#include <float.h>\n',
  cmath: `#include <math.h>\n${inStd(MATH_FUNCTIONS)}`,
  cstddef:
    `#include <stddef.h>\n${inStd(['size_t', 'ptrdiff_t'])}namespace std { typedef ` +
    `decltype(nullptr) nullptr_t; }\n`,
  cassert: '',
  cstdio: inStd(['printf']),
  cstdlib: inStd(['malloc', 'free', 'abs', 'size_t']),
  cstring: inStd(['memcpy', 'memset', 'size_t']),
};

/** The header for a source that uses <math.h>'s constants without an include. */
export const CONSTANTS_HEADER = 'math.h';

const GUARDED: ReadonlyMap<string, string> = new Map(
  Object.entries(TEXTS).map(([name, text]) => [name, `#pragma once\n${text}`]),
);

/** Returns the headers of these names that this file has, and those that they include. */
export function standardHeaders(
  names: readonly string[],
): (readonly [name: string, text: string])[] {
  const found = new Map<string, string>();
  const add = (name: string): void => {
    const text = GUARDED.get(name);
    if (text === undefined || found.has(name)) return;
    found.set(name, text);
    for (const [, included] of text.matchAll(/#include <(.*?)>/g)) add(included!);
  };
  names.forEach(add);
  return [...found];
}

const HEADERS = ['stdint.h', 'limits.h', 'float.h', 'math.h'];

/** Returns the header with the name that a message of the compiler reports as undefined. */
export function headerFor(message: string): string | undefined {
  const [, name] = /^identifier "(\w+)" is undefined/.exec(message) ?? [];
  return name === undefined
    ? undefined
    : HEADERS.find((header) =>
        new RegExp(`^(?:#define ${name}\\b|typedef .* ${name};)`, 'm').test(TEXTS[header]!),
      );
}
