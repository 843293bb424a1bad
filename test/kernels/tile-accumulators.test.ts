/**
 * `tile.dot(…, { accumulate })`: products that tensor cores sum in f16, within the bound of
 * docs/kernels.md, and pairs of dtypes that no instruction has.
 */
import {
  CudaCompileError,
  bf16,
  f16,
  f32,
  f8e4m3,
  f8e5m2,
  i32,
  i8,
  input,
  output,
  tileKernel,
} from 'async-cuda';
import type { DType, Tensor, Device } from 'async-cuda';
import { beforeAll, describe, expect, test } from 'vitest';

import type { KernelDTypeName } from '../../src/core/index.js';
import { failure } from '../core/test-device.js';
import { someOf } from '../random-runs.js';
import { onTensorCores } from './tensor-core-devices.js';

type AnyDType = DType<KernelDTypeName>;
type AnyKernel = ((args: object) => PromiseLike<{ readonly c: Tensor<'f32'> }>) & {
  report(of: Device, shape: object): Promise<{ readonly products: readonly string[] }>;
  ptx(target: object, shape: object): Promise<string>;
};

const HALF = "{ accumulate: 'f16' }";
/** `c = a · bᵀ` with the options of dot as they are written. */
function product(a: AnyDType, b: AnyDType, out: AnyDType, options = HALF, more = ''): AnyKernel {
  // eslint-disable-next-line @typescript-eslint/no-implied-eval -- a body with options by text
  const body = new Function(
    '{ c, a, b }',
    'tile',
    "let sum = 0; for (const part of tile.over('k')) sum = " +
      `tile.dot(a.load(part), tile.transpose(b.load(part)), sum, ${options}); ` +
      `c.store(sum${more});`,
  );
  return tileKernel(
    'product',
    { c: output(out as typeof f32), a: input(a as typeof f32), b: input(b as typeof f32) },
    body as never,
    {
      axes: { c: ['m', 'n'], a: ['m', 'k'], b: ['n', 'k'] },
      tile: { m: 128, n: 128, k: { walk: 32 } },
    },
  ) as unknown as AnyKernel;
}

const PAIRS: readonly (readonly [name: string, a: AnyDType, b: AnyDType, factors: string])[] = [
  ['f16', f16, f16, 'k16 of f16, sums of f16'],
  ['f8e4m3', f8e4m3, f8e4m3, 'k32 of f8e4m3, sums of f16'],
  ['both f8', f8e5m2, f8e4m3, 'k32 of f8e5m2 and f8e4m3, sums of f16'],
];
const range = (length: number): number[] => Array.from({ length }, (_, i) => i);

onTensorCores('sums of f16, compute capability ', (host) => {
  let device: Device;
  let version = 0;
  beforeAll(() => {
    ({ device, version } = host);
  });

  someOf(1, test)(PAIRS)('%s are within the bound', async (_, dtypeA, dtypeB, factors) => {
    const [m, n, k] = [70, 72, 208];
    const kernel = product(dtypeA, dtypeB, f32);
    const shape = { m, n, k };
    const instruction = version === 90 ? 'wgmma.m64n128' : 'mma.m16n8';
    expect((await kernel.report(device, shape)).products).toEqual([instruction + factors]);
    const [a, b] = await Promise.all(
      (
        [
          [dtypeA, m],
          [dtypeB, n],
        ] as const
      ).map(([dtype, rows], seed) =>
        device.randn(f32, [rows, k], { seed }).andThen((x) => x.convert(dtype as typeof f32)),
      ),
    );
    const [xs, ys] = await Promise.all(
      [a!, b!].map((x) => x.convert(f32).andThen((wide) => wide.read())),
    );
    using c = (await kernel({ a: a!, b: b! })).c;
    const sums = await c.read();
    const bound = (k / 16 + 2) * 2 ** -10;
    let largest = 0;
    let coarse = 0;
    for (const [at, sum] of sums.entries()) {
      const [row, column] = [Math.floor(at / n), at % n];
      const terms = range(k).map((p) => xs![row * k + p]! * ys![column * k + p]!);
      const exact = terms.reduce((all, term) => all + term, 0);
      const most = terms.reduce((all, term) => all + Math.abs(term), 0);
      largest = Math.max(largest, Math.abs(sum - exact) / most);
      // They have been numbers of f16.
      if (Math.abs(exact) >= 16 && (sum * 2 ** 6) % 1 === 0) coarse++;
      else if (Math.abs(exact) >= 16) coarse = -Infinity;
    }
    expect(largest).toBeLessThanOrEqual(bound);
    expect(coarse).toBeGreaterThan(0);
    for (const each of [a!, b!]) each.close();
  });

  test('sums beyond 65504 are infinite', { tags: 'thorough' }, async () => {
    using a = await device.full(f16, [8, 64], 64);
    using c = (await product(f16, f16, f32)({ a, b: a })).c;
    expect([...new Set(await c.read())]).toEqual([Infinity]);
  });

  test('begin with what the body gives, and end in an expression', async () => {
    const body = product(f16, f16, f32, HALF, ' * 2 + 1');
    using a = await device.full(f16, [8, 64], 0.5);
    using c = (await body({ a, b: a })).c;
    expect([...new Set(await c.read())]).toEqual([64 * 0.25 * 2 + 1]);
  });

  test('the usual accumulators may be named', { tags: 'thorough' }, async () => {
    for (const [dtype, out, options] of [
      [bf16, f32, "{ accumulate: 'f32' }"],
      [f32, f32, "{ precision: 'tensor', accumulate: 'f32' }"],
      [i8, i32, "{ accumulate: 'i32' }"],
    ] as const) {
      const kernel = product(dtype, dtype, out, options);
      const { products } = await kernel.report(device, { m: 64, n: 64, k: 64 });
      expect(products[0]).toMatch(/^(wgmma|mma).*(bf16|tf32|i8)$/);
      using a = await device.full(dtype as typeof f32, [8, 64], 2);
      using c = (await kernel({ a, b: a })).c;
      expect([...new Set(await c.read())]).toEqual([256]);
    }
  });
});

describe('an error of the compiler', () => {
  someOf(
    3,
    test,
  )([
    ['bf16', "{ accumulate: 'f16' }", 'Products of bf16 are summed in f32, and not in f16', bf16],
    ['f32', "{ accumulate: 'f16', precision: 'tensor' }", 'Products of f32 are summed in f32', f32],
    ['i8', "{ accumulate: 'f16' }", 'Products of i8 are summed in i32, and not in f16', i8],
    ['i8', "{ accumulate: 'f32' }", 'Products of i8 are summed in i32, and not in f32', i8],
    [
      'f16',
      "{ accumulate: 'i32' }",
      'Products of f16 are summed in f32 or f16, and not in i32',
      f16,
    ],
    ['f16', "{ accumulate: 'f16', precision: 'exact' }", 'An exact product is summed in f32', f16],
    ['f16', "{ accumulate: 'f64' }", "accumulate is 'f32' or 'f16' or 'i32'", f16],
    [
      'f16',
      "{ accumulates: 'f16' }",
      'The options of dot are constants, precision and accumulate',
      f16,
    ],
  ] as const)('%s with %s', async (_, options, message, dtype) => {
    const kernel = product(dtype, dtype, dtype === i8 ? i32 : f32, options);
    const error = await failure(() => kernel.ptx({ capability: [9, 0] }, { m: 64, n: 64, k: 64 }));
    expect(error).toBeInstanceOf(CudaCompileError);
    expect(error.message).toContain(message);
  });
});
