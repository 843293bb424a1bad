/**
 * Scalars of kernels of CUDA C++: numbers that the parameter's type does not have are refused,
 * whatever its name is like.
 */
import { Device, f32, i64 } from 'async-cuda';
import { afterAll, beforeAll, expect, test } from 'vitest';

import { failure, testDevice } from '../core/test-device.js';
import { describeWith, ownCache } from './nvrtc.js';
import { someOf } from '../random-runs.js';

/** The least and the greatest of each type, and one beyond each. */
const TYPES: readonly [
  type: string,
  least: number | bigint,
  most: number | bigint,
  below: number | bigint,
  above: number | bigint,
][] = [
  ['bool', 0, 1, -1, 2],
  ['char', -128, 127, -129, 128],
  ['signed char', -128, 127, -129, 128],
  ['unsigned char', 0, 255, -1, 256],
  ['short', -32768, 32767, -32769, 32768],
  ['unsigned short', 0, 65535, -1, 65536],
  ['int', -2147483648, 2147483647, -2147483649, 2147483648],
  ['unsigned int', 0, 4294967295, -1, 4294967296],
  ['long long', -(2n ** 63n), 2n ** 63n - 1n, -(2n ** 63n) - 1n, 2n ** 63n],
  ['unsigned long long', 0, 2n ** 64n - 1n, -1, 2n ** 64n],
  ['size_t', 0n, 2n ** 64n - 1n, -1n, 2n ** 64n],
  ['char16_t', 0, 65535, -1, 65536],
  ['char32_t', 0, 4294967295, -1, 4294967296],
  ['volatile unsigned char', 0, 255, -1, 256],
  ['int64_t', -5, 5, -(2n ** 63n) - 1n, 2n ** 63n],
];
/** Types that the text declares: the text before the kernel, and the type. */
const DECLARED: readonly [
  name: string,
  before: string,
  type: string,
  least: number | bigint,
  most: number | bigint,
  below: number | bigint,
  above: number | bigint,
][] = [
  [
    'a type of a header beside templates',
    '#include <cuda/std/cstdint>\nusing cuda::std::uint32_t;\ntemplate <typename T> struct ' +
      'Pair { T a, b; };',
    'uint32_t',
    0,
    4294967295,
    -1,
    4294967296,
  ],
  [
    'an alias with qualifiers',
    'typedef const volatile unsigned char Byte;',
    'Byte',
    0,
    255,
    -1,
    256,
  ],
  ['an enumeration with a type', 'enum E : unsigned char { FIRST };', 'E', 0, 255, -1, 256],
  [
    'an enumeration with a scope',
    'enum class E { FIRST };',
    'E',
    -2147483648,
    2147483647,
    -2147483649,
    2147483648,
  ],
  [
    'an alias in a namespace',
    'namespace a { namespace b { typedef unsigned short T; } }',
    'a::b::T',
    0,
    65535,
    -1,
    65536,
  ],
  ['a member alias', 'struct A { using T = signed char; };', 'A::T', -128, 127, -129, 128],
  ['a macro', '#define M unsigned char', 'M', 0, 255, -1, 256],
];
const LONGS: typeof TYPES =
  process.platform === 'win32'
    ? []
    : [
        ...((process.arch === 'x64'
          ? [['wchar_t', -2147483648, 2147483647, -2147483649, 2147483648]]
          : []) as typeof TYPES),
        ['long', -(2n ** 63n), 2n ** 63n - 1n, -(2n ** 63n) - 1n, 2n ** 63n],
        ['unsigned long int', 0, 2n ** 64n - 1n, -1, 2n ** 64n],
      ];

describeWith('NVRTC', `Scalars of CUDA C++ (${testDevice})`, () => {
  ownCache();
  let device: Device;
  beforeAll(async () => {
    device = await Device.open(testDevice);
  });
  afterAll(() => device.close());

  someOf(6, test)([...TYPES, ...LONGS])('%s', async (type, least, most, below, above) => {
    const include =
      type.endsWith('_t') && type !== 'size_t'
        ? '#include <cuda/std/cstdint>\nusing cuda::std::int64_t;\n'
        : '';
    const body = '{ y[0] = (long long)a; }';
    const source: string = `${include}
      extern "C" __global__ void plain(long long* y, ${type} a) ${body}
      __global__ void mangled(long long* y, ${type} a) ${body}
      namespace inner {
        template <typename T> __global__ void instance(long long* y, T a) ${body}
      }`;
    const name = `inner::instance<${type}>`;
    const module = await device.compile(source, { nameExpressions: [name] });
    using y = await device.zeros(i64, [1]);
    for (const each of ['plain', 'mangled', name]) {
      if (each === 'plain' && include !== '') continue;
      const kernel = module.kernel(each);
      for (const value of [least, most]) {
        await kernel.call({ grid: 1, block: 1 }, y, value as never);
        expect((await y.read())[0]).toBe(BigInt.asIntN(64, BigInt(value)));
      }
      for (const value of [below, above, 0.5, NaN]) {
        const error = await failure(() => kernel.call({ grid: 1, block: 1 }, y, value as never));
        expect([each, error.code, error.argument]).toEqual([
          each,
          'ERR_CUDA_INVALID_ARGUMENT',
          'args[1]',
        ]);
      }
    }
    await module.close();
  });

  someOf(6, test)(DECLARED)('%s', async (_, before, type, least, most, below, above) => {
    const module = await device.compile(
      (`${before}\nextern "C" __global__ void f(long long* y, ${type} a) { y[0] = (long ` +
        'long)a; }') as string,
    );
    using y = await device.zeros(i64, [1]);
    const f = module.kernel('f');
    for (const value of [least, most]) {
      await f.call({ grid: 1, block: 1 }, y, value as never);
      expect((await y.read())[0]).toBe(BigInt(value));
    }
    for (const value of [below, above, 0.5, NaN]) {
      const error = await failure(() => f.call({ grid: 1, block: 1 }, y, value as never));
      expect([error.code, error.argument]).toEqual(['ERR_CUDA_INVALID_ARGUMENT', 'args[1]']);
    }
    await module.close();
  });

  test('a number of a type that the text does not show may be of either sign', async () => {
    const module = await device.compile(
      ('enum E { FIRST = 1 };\nextern "C" __global__ void f(long long* y, E a) { y[0] = (long ' +
        'long)(unsigned)a; }') as string,
    );
    using y = await device.zeros(i64, [1]);
    for (const value of [-1, 4294967295]) {
      await module.kernel('f').call({ grid: 1, block: 1 }, y, value as never);
      expect((await y.read())[0]).toBe(4294967295n);
    }
    expect(
      (await failure(() => module.kernel('f').call({ grid: 1, block: 1 }, y, 4294967296 as never)))
        .code,
    ).toBe('ERR_CUDA_INVALID_ARGUMENT');
    await module.close();
  });

  test(
    'unsigned int stays exact where a kernel is launched often',
    { tags: 'thorough' },
    async () => {
      const module = await device.compile(
        'extern "C" __global__ void f(long long* y, unsigned a) { y[0] = a; }' as string,
      );
      using y = await device.zeros(i64, [1]);
      const f = module.kernel('f');
      for (let i = 0; i < 2000; i++) await f.call({ grid: 1, block: 1 }, y, 4294967295);
      expect((await y.read())[0]).toBe(4294967295n);
      expect((await failure(() => f.call({ grid: 1, block: 1 }, y, -1))).code).toBe(
        'ERR_CUDA_INVALID_ARGUMENT',
      );
      await module.close();
    },
  );

  test('a bool takes true and false, and an integer the address of memory', async () => {
    const module = await device.compile(
      ('extern "C" __global__ void f(float* y, bool on, unsigned long long at) { y[0] = on ? ' +
        '*(float*)at : 2; }') as string,
    );
    using y = await device.zeros(f32, [1]);
    using seven = await device.full(f32, [1], 7);
    await module.kernel('f').call({ grid: 1, block: 1 }, y, true as never, seven as never);
    expect((await y.read())[0]).toBe(7);
    await module.kernel('f').call({ grid: 1, block: 1 }, y, false as never, seven as never);
    expect((await y.read())[0]).toBe(2);
    await module.close();
  });
});
