/**
 * Products by cuBLASLt, with a stand-in that records its calls, and computes in the memory of the
 * CPU device.
 */
import { Device, bf16, f16, f32, f8e4m3, f8e5m2 } from 'async-cuda';
import { CudaArgumentError, CudaLibraryError } from 'async-cuda/core';
import type { DType } from 'async-cuda/core';
import type { AnyTensor } from 'async-cuda/tensor';
import { afterEach, beforeAll, describe, expect, test } from 'vitest';

import {
  cublasProduct,
  openCublasLt,
  prepareProduct,
  whyNotCublas,
} from '../../src/cublas/index.js';
import type { CublasLt, Product } from '../../src/cublas/index.js';
import { hostBase } from '../../src/core/host-work.js';
import { koffiPath } from '../../src/native/koffi.js';
import { whyNoStandIn } from '../core/stand-in-library.js';
import { failure, onCpu, onDevice, openTestDevice, usedMemory } from '../core/test-device.js';
import { REFUSALS, standInCublasLt } from './stand-in-cublaslt.js';
import { closeMade, keep, matrix, multiplied, numbers } from './products.test-support.js';
import type { HostProduct } from './products.test-support.js';

const why =
  whyNoStandIn ??
  (onCpu ? undefined : 'SKIPPED: on a GPU cuBLASLt itself is called, see gpu.test.ts');

/** The order of columns for a, b and out: each is by rows otherwise. */
type Order = '' | 'a' | 'b' | 'out' | 'ab' | 'a out' | 'b out' | 'ab out';

if (why !== undefined) describe.skip(why, () => undefined);
else
  onDevice('Products by cuBLASLt', (host) => {
    const standIn = standInCublasLt(130002);
    const { library } = standIn;
    let device: Device;
    let lt: CublasLt;
    beforeAll(async () => {
      device = Device.of(host.device);
      lt = await openCublasLt(host.device, { path: library.path, anyDevice: true });
      standIn.base((await hostBase(host.device, koffiPath())) ?? 0);
      standIn.reset();
    });
    afterEach(() => {
      standIn.reset();
      closeMade();
    });

    const zeros = async (dtype: DType, shape: number[]): Promise<AnyTensor> =>
      keep((await device.zeros(dtype as typeof f32, shape)) as unknown as AnyTensor);
    const tensor = async (dtype: DType, shape: number[], seed = 1): Promise<AnyTensor> =>
      await matrix(device, dtype, numbers(shape, seed));

    /** Runs the product, and gives what the stand-in has recorded. */
    async function lines(product: Product): Promise<string[]> {
      library.take();
      await cublasProduct(product);
      return library.take().map((line) => line.replace(/ stream=\d+$/, ''));
    }
    const chosen = async (product: Product): Promise<string> => {
      const line = (await lines(product)).find((each) => each.startsWith('choose'))!;
      return line.replace(/^choose /, '').replace(/ workspace=\d+/, '');
    };

    async function computed(
      given: HostProduct,
      order: Order = '',
      dtypes: readonly [DType, DType] = [f32, f32],
      more: Partial<Product> = {},
    ): Promise<{ got: number[]; expected: number[] }> {
      const { values, shape } = multiplied(given);
      const [factors, results] = dtypes;
      const outByColumn = order.includes('out');
      const out = await matrix(device, results, numbers(shape, 3), outByColumn);
      const operand = async (
        name: 'a' | 'b' | 'c' | 'bias',
        dtype: DType,
        columns: boolean,
      ): Promise<Partial<Product>> =>
        given[name] === undefined
          ? {}
          : { [name]: await matrix(device, dtype, given[name], columns) };
      const { a: _a, b: _b, c: _c, bias: _bias, ...options } = given;
      await cublasProduct({
        ...(await operand('a', factors, /a/.test(order))),
        ...(await operand('b', factors, /b/.test(order))),
        ...(await operand('c', results, outByColumn)),
        ...(await operand('bias', results, false)),
        out,
        ...options,
        ...more,
      } as Product);
      return { got: [...((await out.read()) as Float32Array)], expected: values };
    }

    test.each<Order>(['', 'a', 'b', 'out', 'ab', 'a out', 'b out', 'ab out'])(
      'matrices by rows and by columns (by columns: %s)',
      async (order) => {
        const { got, expected } = await computed(
          { a: numbers([3, 5], 1), b: numbers([5, 2], 2), c: numbers([3, 2], 4), beta: 2 },
          order,
        );
        expect(got).toEqual(expected);
      },
    );

    test.each<[string, HostProduct]>([
      ['one row', { a: numbers([1, 4], 1), b: numbers([4, 3], 2) }],
      ['one column', { a: numbers([4, 3], 1), b: numbers([3, 1], 2) }],
      ['one element in common', { a: numbers([3, 1], 1), b: numbers([1, 4], 2) }],
      ['one number', { a: numbers([1, 1], 1), b: numbers([1, 1], 2) }],
      ['a batch', { a: numbers([3, 2, 4], 1), b: numbers([3, 4, 5], 2) }],
      ['a batch with one b', { a: numbers([3, 2, 4], 1), b: numbers([4, 5], 2) }],
      ['a batch with one a', { a: numbers([2, 4], 1), b: numbers([3, 4, 5], 2) }],
      ['alpha', { a: numbers([2, 4], 1), b: numbers([4, 5], 2), alpha: -0.5 }],
      ['bias', { a: numbers([2, 4], 1), b: numbers([4, 5], 2), bias: numbers([5], 3) }],
      [
        'bias, one b and a residual for a batch',
        {
          a: numbers([3, 2, 4], 1),
          b: numbers([4, 5], 2),
          c: numbers([3, 2, 5], 5),
          bias: numbers([5], 3),
          activation: 'relu',
        },
      ],
      ['relu', { a: numbers([2, 4], 1), b: numbers([4, 5], 2), activation: 'relu' }],
      ['gelu', { a: numbers([2, 4], 1), b: numbers([4, 5], 2), activation: 'gelu', alpha: 0.05 }],
      [
        'gelu and bias',
        {
          a: numbers([2, 4], 1),
          b: numbers([4, 5], 2),
          bias: numbers([5], 3),
          activation: 'gelu',
          alpha: 0.0625,
        },
      ],
    ])('results: %s', async (_, product) => {
      const { got, expected } = await computed(product);
      got.forEach((value, i) => expect(value).toBeCloseTo(expected[i]!, 4));
    });

    test.each([
      ['f16 to f16', f16, f16],
      ['f16 to f32', f16, f32],
      ['bf16 to bf16', bf16, bf16],
      ['bf16 to f32', bf16, f32],
      ['f8e4m3 to bf16', f8e4m3, bf16],
    ] as const)('results of %s', async (_, factors, results) => {
      const product = { a: numbers([2, 4], 1), b: numbers([4, 3], 2) };
      const { got, expected } = await computed(product, 'b', [factors, results]);
      expect(got).toEqual(expected);
    });

    test('the product is added to out itself where beta is given without c', async () => {
      const out = await tensor(f32, [2, 2], 3);
      const [a, b] = [await tensor(f32, [2, 3], 1), await tensor(f32, [3, 2], 2)];
      const before = (await out.read()) as Float32Array;
      const product = multiplied({ a: numbers([2, 3], 1), b: numbers([3, 2], 2) }).values;
      expect(await lines({ a, b, out, beta: 1 })).toContain(
        'multiply alpha=1 beta=1 C=D workspace=0',
      );
      expect(await out.read()).toEqual(before.map((value, i) => value + product[i]!));
    });

    test('a row-major product is the transposed one, by columns', async () => {
      const [a, b] = [await tensor(f16, [3, 8]), await tensor(f16, [8, 5])];
      const out = await zeros(f16, [3, 5]);
      expect(await chosen({ a, b, out })).toBe(
        'compute=68 scale=0 ops=00 epilogue=1 bias=-1 fast=0 modes=00 A=2:5x8/5 B=2:8x3/8 ' +
          'C=2:5x3/5 D=2:5x3/5 C=D alignment=256,256,256,256',
      );
      const turned = (await tensor(f16, [5, 8])).transpose() as unknown as AnyTensor;
      expect(await chosen({ a, b: turned, out })).toContain('ops=10 epilogue=1');
    });

    test('views of larger tensors have their pitch, and their alignment', async () => {
      const whole = await tensor(f16, [4, 3, 16]);
      const a = whole.slice(null, null, [8, 16]) as AnyTensor;
      const b = (await tensor(f16, [4, 9, 8])).slice(null, [1, 9], null) as AnyTensor;
      const out = await zeros(f16, [4, 3, 8]);
      expect(await chosen({ a, b, out })).toBe(
        'compute=68 scale=0 ops=00 epilogue=1 bias=-1 fast=0 modes=00 A=2:8x8/8*4+72 ' +
          'B=2:8x3/16*4+48 C=2:8x3/8*4+24 D=2:8x3/8*4+24 C=D alignment=16,16,256,256',
      );
    });

    test('a batch with one b is a single product of all rows', async () => {
      const [a, b] = [await tensor(f32, [6, 3, 8]), await tensor(f32, [8, 5])];
      expect(await chosen({ a, b, out: await zeros(f32, [6, 3, 5]) })).toContain(
        'A=0:5x8/5 B=0:8x18/8 C=0:5x18/5 D=0:5x18/5',
      );
      const c = await tensor(f32, [2, 3, 3, 5]);
      const many = await tensor(f32, [2, 3, 3, 8]);
      expect(await chosen({ a: many, b, c, out: await zeros(f32, [2, 3, 3, 5]) })).toContain(
        'B=0:8x18/8',
      );
    });

    test('tf32 is used where it is asked for', async () => {
      const [a, b] = [await tensor(f32, [2, 8]), await tensor(f32, [8, 7])];
      const out = await zeros(f32, [2, 7]);
      expect(await chosen({ a, b, out })).toContain('compute=68');
      expect(await chosen({ a, b, out, tf32: true })).toContain('compute=77');
    });

    test('epilogues, and the dtype of the bias', async () => {
      const [a, b] = [await tensor(f16, [2, 8]), await tensor(f16, [8, 6])];
      const [out, bias] = [await zeros(f32, [2, 6]), await tensor(f32, [6])];
      const of = async (more: Partial<Product>): Promise<string> =>
        (await chosen({ a, b, out, ...more })).replace(/.*(epilogue=\d+ bias=\S+).*/, '$1');
      expect(await of({ activation: 'relu' })).toBe('epilogue=2 bias=-1');
      expect(await of({ activation: 'gelu' })).toBe('epilogue=32 bias=-1');
      expect(await of({ bias })).toBe('epilogue=4 bias=0');
      expect(await of({ bias, activation: 'relu' })).toBe('epilogue=6 bias=0');
      expect(await of({ bias, activation: 'gelu' })).toBe('epilogue=36 bias=0');
    });

    test('factors of 8 bits: scales, the largest magnitude, and C that is not read', async () => {
      const a = await tensor(f8e4m3, [2, 4], 1);
      const b = await matrix(device, f8e5m2, numbers([4, 3], 2), true);
      const out = await zeros(f8e4m3, [2, 3]);
      const scales = {
        a: keep(await device.tensor(f32, [2], [1])),
        b: keep(await device.tensor(f32, [0.5], [1])),
        out: keep(await device.tensor(f32, [0.25], [1])),
      };
      const amax = await zeros(f32, [1]);
      const all = await lines({ a, b, out, scales, amax, fastAccumulation: true });
      expect(all[0]).toContain(
        'ops=10 epilogue=1 bias=-1 fast=1 modes=00 A=29:4x3/4 B=28:4x2/4 C=14:3x2/3 D=28:3x2/3',
      );
      expect(all.slice(1)).toEqual([
        ...[17, 18, 20, 21].map((number) => `pointer ${number}`),
        'multiply alpha=1 beta=0 C=0 workspace=0',
      ]);
      const { values } = multiplied({ a: numbers([2, 4], 1), b: numbers([4, 3], 2) });
      expect([...((await amax.read()) as Float32Array)]).toEqual([
        Math.max(...values.map(Math.abs)),
      ]);
      // The products by a quarter have few bits.
      const near = (await out.read()) as Float32Array;
      near.forEach((value, i) => expect(Math.abs(value - values[i]! / 4)).toBeLessThanOrEqual(0.5));
    });

    test('scales for each row of a and each column of b', async () => {
      const a = await tensor(f8e4m3, [2, 4], 1);
      const b = await matrix(device, f8e4m3, numbers([4, 3], 2), true);
      const out = await zeros(bf16, [2, 3]);
      const scales = {
        a: keep(await device.tensor(f32, [1, 2], [2])),
        b: keep(await device.tensor(f32, [1, 2, 4], [3])),
      };
      expect(await chosen({ a, b, out, scales })).toContain('modes=33');
      const { values } = multiplied({ a: numbers([2, 4], 1), b: numbers([4, 3], 2) });
      const scaled = values.map(
        (value, i) => value * [1, 2][Math.floor(i / 3)]! * [1, 2, 4][i % 3]!,
      );
      expect([...((await out.read()) as Float32Array)]).toEqual(scaled);
    });

    test('a form has one plan; its pointers are set again where they differ', async () => {
      const [a, b, out] = [
        await tensor(f32, [2, 9]),
        await tensor(f32, [9, 4]),
        await zeros(f32, [2, 4]),
      ];
      const [bias, other] = [await tensor(f32, [4]), await tensor(f32, [4], 5)];
      const count = lt.planCount;
      const multiply = 'multiply alpha=1 beta=0 C=D workspace=0';
      const op = cublasProduct({ a, b, out, bias });
      library.take();
      await op;
      await op;
      await cublasProduct({ a, b, out, bias: other });
      await cublasProduct({ a, b, out, bias: other, alpha: 2 });
      expect(library.take().map((line) => line.replace(/ stream.*| compute.*/, ''))).toEqual([
        'choose',
        'pointer 8',
        multiply,
        multiply,
        'pointer 8',
        multiply,
        multiply.replace('alpha=1', 'alpha=2'),
      ]);
      expect(lt.planCount).toBe(count + 1);
    });

    test('a plan can be made before', async () => {
      const [a, b, out] = [
        await tensor(f32, [2, 9]),
        await tensor(f32, [9, 11]),
        await zeros(f32, [2, 11]),
      ];
      const blocking = await failure(() => cublasProduct({ a, b, out }).sync());
      expect(blocking.message).toContain('await prepareProduct(…) before');
      await prepareProduct({ a, b, out });
      library.take();
      cublasProduct({ a, b, out }).sync();
      expect(library.take()).toHaveLength(1);
    });

    test('the workspace exists while the product runs', async () => {
      standIn.workspace(4096);
      const [a, b, out] = [
        await tensor(f32, [2, 10]),
        await tensor(f32, [10, 4]),
        await zeros(f32, [2, 4]),
      ];
      const before = await usedMemory(host.device);
      expect((await lines({ a, b, out })).at(-1)).toContain('C=D workspace=4096@');
      expect(await usedMemory(host.device)).toBe(before);
    });

    test('streams that share a plan do not mix their pointers', async () => {
      const [a, b] = [await tensor(f32, [2, 12]), await tensor(f32, [12, 4])];
      const outs = [await zeros(f32, [2, 4]), await zeros(f32, [2, 4])] as const;
      const biases = [await tensor(f32, [4], 1), await tensor(f32, [4], 2)] as const;
      await prepareProduct({ a, b, out: outs[0], bias: biases[0] });
      using other = host.device.createStream();
      let release = (): void => undefined;
      const held = host.stream.call(() => new Promise<void>((resolve) => (release = resolve)));
      const first = cublasProduct({ a, b, out: outs[0], bias: biases[0] }).runOn(host.stream);
      await cublasProduct({ a, b, out: outs[1], bias: biases[1] }).runOn(other);
      release();
      await Promise.all([held, first]);
      const [one, two] = [await outs[0].read(), await outs[1].read()] as Float32Array[];
      const [ofOne, ofTwo] = [numbers([4], 1).data, numbers([4], 2).data];
      expect([...one!].map((value, i) => value - ofOne[i % 4]!)).toEqual(
        [...two!].map((value, i) => value - ofTwo[i % 4]!),
      );
    });

    test('a product is recorded in a graph, with a workspace that the graph keeps', async () => {
      standIn.workspace(512);
      const [a, b, out] = [
        await tensor(f32, [2, 13]),
        await tensor(f32, [13, 4]),
        await zeros(f32, [2, 4]),
      ];
      library.take();
      await using graph = await cublasProduct({ a, b, out }).capture();
      expect(library.take().map((line) => line.split(' ')[0])).toEqual(['choose', 'multiply']);
      await graph.replay();
    });

    test('plans that are dropped are destroyed when their products have run', async () => {
      const [a, b, out] = [
        await tensor(f32, [2, 14]),
        await tensor(f32, [14, 4]),
        await zeros(f32, [2, 4]),
      ];
      lt.dropPlans();
      const kept = await settled(standIn.live);
      await cublasProduct({ a, b, out });
      expect(standIn.live()).toBe(kept + 4);
      lt.dropPlans();
      expect(await settled(standIn.live)).toBe(kept);
      expect((await lines({ a, b, out })).map((line) => line.split(' ')[0])).toEqual([
        'choose',
        'multiply',
      ]);
    });

    test('a failure has the status by name, and the shapes', async () => {
      const [a, b, out] = [
        await tensor(f32, [2, 15]),
        await tensor(f32, [15, 4]),
        await zeros(f32, [2, 4]),
      ];
      standIn.refuseAt(REFUSALS.product);
      library.answers(13);
      const error = await failure(() => cublasProduct({ a, b, out }));
      expect(error).toBeInstanceOf(CudaLibraryError);
      expect(error).toMatchObject({
        code: 'ERR_CUDA_LIBRARY',
        library: 'cuBLASLt 13.0.2',
        status: 13,
        statusName: 'CUBLAS_STATUS_EXECUTION_FAILED',
        message: expect.stringContaining(
          'cublasLtMatmul([2, 15] × [15, 4] of f32 to f32) of cuBLASLt 13.0.2 returned ' +
            'CUBLAS_STATUS_EXECUTION_FAILED (13)',
        ) as string,
      });
      expect(await failure(() => out.read())).toMatchObject({
        code: 'ERR_CUDA_UNDEFINED_CONTENTS',
      });
      library.answers(0);
      await cublasProduct({ a, b, out });
      await out.read();
    });

    test('a failure to set a pointer fails the product', async () => {
      const [a, b, out] = [
        await tensor(f32, [2, 16]),
        await tensor(f32, [16, 4]),
        await zeros(f32, [2, 4]),
      ];
      const bias = await tensor(f32, [4]);
      await prepareProduct({ a, b, out, bias });
      standIn.refuseAt(REFUSALS.pointer);
      library.answers(7);
      expect(await failure(() => cublasProduct({ a, b, out, bias }))).toMatchObject({
        statusName: 'CUBLAS_STATUS_INVALID_VALUE',
        message: expect.stringContaining('cublasLtMatmulDescSetAttribute(biasPointer of') as string,
      });
    });

    test('a failure to choose an algorithm names the product, and leaves nothing', async () => {
      const [a, b, out] = [
        await tensor(f32, [2, 17]),
        await tensor(f32, [17, 4]),
        await zeros(f32, [2, 4]),
      ];
      const live = standIn.live();
      standIn.refuseAt(REFUSALS.choice);
      library.answers(15);
      expect(await failure(() => cublasProduct({ a, b, out }))).toMatchObject({
        code: 'ERR_CUDA_UNSUPPORTED',
        call: 'cublasLtMatmulAlgoGetHeuristic',
        statusName: 'CUBLAS_STATUS_NOT_SUPPORTED',
        message: expect.stringContaining('[2, 17] × [17, 4] of f32 to f32') as string,
      });
      expect(standIn.live()).toBe(live);
      standIn.reset();
      standIn.found(0);
      expect(await failure(() => cublasProduct({ a, b, out }))).toMatchObject({
        code: 'ERR_CUDA_UNSUPPORTED',
        message: expect.stringContaining(
          'has no algorithm for the product [2, 17] × [17, 4] of f32 to f32',
        ) as string,
      });
      expect(standIn.live()).toBe(live);
      standIn.reset();
      await cublasProduct({ a, b, out });
    });

    test('what the library cannot compute is an error at the call', async () => {
      const [a, b] = [await tensor(f32, [4, 8]), await tensor(f32, [8, 6])];
      const out = await zeros(f32, [4, 6]);
      const reason = (more: Partial<Product>): string =>
        whyNotCublas({ a, b, out, ...more })?.replaceAll(/\s+/g, ' ') ?? 'nothing';
      expect(reason({})).toBe('nothing');
      expect(reason({ b: await tensor(f32, [7, 6]) })).toContain('8 rows');
      expect(reason({ out: await zeros(f32, [4, 5]) })).toContain('the shape [4, 6]');
      expect(reason({ b: await tensor(f16, [8, 6]) })).toContain('factors of one of the dtypes');
      expect(reason({ out: await zeros(f16, [4, 6]) })).toContain('f32 for factors of f32 f32');
      expect(reason({ bias: await tensor(f32, [4]) })).toContain('6 contiguous elements');
      expect(reason({ a: await tensor(f32, [8]) })).toContain('at least two axes');
      expect(reason({ scales: { a: await tensor(f32, [1]) } })).toContain(
        'none, for factors of more',
      );
      const stepped = (await tensor(f32, [8, 16])).slice([0, 8, 2], [0, 16, 2]) as AnyTensor;
      expect(reason({ a: stepped })).toContain('contiguous rows or columns');
      const turned = (await zeros(f32, [6, 4])).transpose() as unknown as AnyTensor;
      expect(reason({ out: turned })).toBe('nothing');
      expect(reason({ out: turned, bias: await tensor(f32, [6]) })).toContain('contiguous rows');
      expect(reason({ c: turned })).toContain('contiguous rows, as out has them');
      const [left, right] = [await tensor(f32, [3, 1, 4, 8]), await tensor(f32, [2, 8, 6])];
      expect(whyNotCublas({ a: left, b: right, out: await zeros(f32, [3, 2, 4, 6]) })).toContain(
        'one axis in memory',
      );
      expect(() => cublasProduct({ a, b, out: a })).toThrow(CudaArgumentError);
    });
  });

/** The number, once it no longer changes. */
async function settled(count: () => number): Promise<number> {
  for (let last = count(), same = 0; ;) {
    await new Promise((resolve) => setTimeout(resolve, 5));
    same = count() === last ? same + 1 : 0;
    last = count();
    if (same === 5) return last;
  }
}

describe.skipIf(why !== undefined)('cuBLASLt', () => {
  const options = (): { path: string; anyDevice: boolean } => ({
    path: standInCublasLt(120805).library.path,
    anyDevice: true,
  });

  test('the end of the device destroys everything', async () => {
    const standIn = standInCublasLt(120805);
    const device = await openTestDevice();
    const { version } = await openCublasLt(device, options());
    expect(version).toBe('12.8.5');
    const on = Device.of(device);
    const [a, b] = [await on.ones(f32, [2, 3]), await on.ones(f32, [3, 4])];
    const out = await on.zeros(f32, [2, 4]);
    const product = { a, b, out } as unknown as Product;
    standIn.base(0);
    await cublasProduct(product);
    await cublasProduct(product).capture();
    expect(standIn.live()).toBe(5);
    await device.close();
    expect(standIn.live()).toBe(0);
    expect(standIn.library.take().at(-1)).toBe('destroy');
  });

  test('a library that is missing is an error that names what was looked for', async () => {
    const before = process.env['ASYNC_CUDA_CUBLASLT'];
    // The device's threads get the variables when they start.
    process.env['ASYNC_CUDA_CUBLASLT'] = '/nowhere/libcublasLt.so.13';
    await using device = await openTestDevice();
    try {
      const error = await failure(() => openCublasLt(device, { anyDevice: true }));
      expect(error.code).toBe('ERR_CUDA_NO_LIBRARY');
      expect(error.message).toContain('cuBLASLt');
      expect(error.message).toContain('/nowhere/libcublasLt.so.13');
      expect(error.message).toContain('pip install nvidia-cublas');
    } finally {
      if (before === undefined) delete process.env['ASYNC_CUDA_CUBLASLT'];
      else process.env['ASYNC_CUDA_CUBLASLT'] = before;
    }
    // The next call tries again.
    await openCublasLt(device, options());
  });

  test('a library that cannot be initialised, or is too old, is an error', async () => {
    const standIn = standInCublasLt(120805);
    await using device = await openTestDevice();
    standIn.refuseAt(REFUSALS.create);
    standIn.library.answers(1);
    expect(await failure(() => openCublasLt(device, options()))).toMatchObject({
      call: 'cublasLtCreate',
      statusName: 'CUBLAS_STATUS_NOT_INITIALIZED',
    });
    standIn.reset();
    const { path } = standInCublasLt(100200).library;
    expect(await failure(() => openCublasLt(device, { path, anyDevice: true }))).toMatchObject({
      code: 'ERR_CUDA_UNSUPPORTED',
      message: expect.stringContaining('cuBLASLt 10.2.0') as string,
    });
  });

  test.runIf(onCpu)('a CPU device is refused', async () => {
    await using device = await openTestDevice();
    expect(await failure(() => openCublasLt(device))).toMatchObject({
      code: 'ERR_CUDA_UNSUPPORTED',
      message: expect.stringContaining('NVIDIA GPUs only') as string,
    });
  });
});
