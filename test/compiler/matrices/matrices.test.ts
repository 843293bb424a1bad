/**
 * Matrix operations of warps, and asynchronous copies: kernels from their text on the CPU device
 * and as JavaScript, both compared with the definition.
 */
import * as fc from '../../fast-check.js';
import { describe, expect, test } from 'vitest';
import { runKernel } from '../emit/run-kernel.js';
import type { HostArray } from '../emit/run-kernel.js';
import { emitKernel } from '../../../src/compiler/emit/emit.js';
import { readKernel } from '../../../src/compiler/index.js';
import type { SignatureEntry, Used } from '../../../src/compiler/index.js';
import type { KernelTree, StorageType } from '../../../src/compiler/tree.js';
import { kernelBits, wideValues } from '../../../src/ground/narrow-floats.js';
import { SimulationError } from '../../../src/compiler/simulate/failure.js';
import { simulateKernel } from '../../../src/compiler/simulate/simulate.js';

type Half = 'f16' | 'bf16';

const tensor = (
  storage: StorageType,
  access: 'input' | 'output' | 'inout' = 'inout',
): SignatureEntry => ({ kind: 'tensor', element: { storage }, access, rank: 1 });

function read(
  signature: Record<string, SignatureEntry>,
  text: string,
  uses: Record<string, Used> = {},
): KernelTree {
  return readKernel({ name: 'kernel', signature, text, uses, indexType: 'i32' });
}

type Given = Record<string, HostArray | number>;
const copied = (args: Given): Given =>
  Object.fromEntries(
    Object.entries(args).map(([name, value]) => [
      name,
      typeof value === 'object' ? value.slice() : value,
    ]),
  );

/**
 * What the arrays hold after the simulation, and after the CPU device with and without
 * optimisation: the same.
 */
function everywhere(tree: KernelTree, block: number, args: Given, dynamicShared?: number): Given {
  const shared = dynamicShared === undefined ? {} : { dynamicShared };
  const simulated = copied(args);
  simulateKernel(tree, {
    grid: 1,
    block,
    args: simulated,
    ...(dynamicShared === undefined ? {} : { sharedBytes: dynamicShared }),
  });
  for (const optimise of [true, false]) {
    const ran = runKernel(tree, {
      values: copied(args) as never,
      block: [block],
      ...shared,
      target: { optimise, capability: '9.0' },
    });
    expect(ran.outcome.status).toBe(0);
    for (const [name, value] of Object.entries(simulated))
      if (typeof value === 'object')
        expect([optimise, name, ran.of(name)]).toEqual([optimise, name, value]);
  }
  return simulated;
}

const halves = (storage: Half, values: readonly number[]): Uint16Array =>
  Uint16Array.from(values, (value) => kernelBits(storage, Math.fround(value)));
const numbers = (storage: Half, bits: Uint16Array): number[] =>
  Array.from(bits, (each) => wideValues(storage)[each]!);
const sequence = (length: number, seed: number): number[] =>
  Array.from({ length }, (_, i) => Math.sin(i * 12.9898 + seed) * 3);

/** a (rows × depth) times b (depth × columns), by rows; each step rounded to f32. */
function product(
  a: readonly number[],
  b: readonly number[],
  c: readonly number[],
  rows: number,
  columns: number,
  depth: number,
): Float32Array {
  return Float32Array.from({ length: rows * columns }, (_, at) => {
    const [row, column] = [Math.floor(at / columns), at % columns];
    let sum = c[at]!;
    for (let k = 0; k < depth; k++)
      sum = Math.fround(sum + Math.fround(a[row * depth + k]! * b[k * columns + column]!));
    return sum;
  });
}

/** Fragments filled by the table of gpu.ts. */
const byTheTable = (storage: Half, depth: 16 | 8): string => `({ out, a, b, c }, gpu) => {
  const g = gpu.lane / 4, t = gpu.lane % 4;
  const left = gpu.local.${storage}(${depth / 2}), right = gpu.local.${storage}(${depth / 4});
  const sum = gpu.local.f32(4);
  for (let i = 0; i < ${depth / 2}; i++)
    left[i] = a[(g + 8 * (i / 2 % 2)) * ${depth} + 2 * t + i % 2 + 8 * (i / 4)];
  for (let i = 0; i < ${depth / 4}; i++) right[i] = b[(2 * t + i % 2 + 8 * (i / 2)) * 8 + g];
  for (let i = 0; i < 4; i++) sum[i] = c[(g + 8 * (i / 2)) * 8 + 2 * t + i % 2];
  gpu.warp.mma(sum, left, right);
  for (let i = 0; i < 4; i++) out[(g + 8 * (i / 2)) * 8 + 2 * t + i % 2] = sum[i];
}`;

describe('gpu.warp.mma', () => {
  for (const storage of ['f16', 'bf16'] as const) {
    for (const depth of [16, 8] as const) {
      test(`${storage}, a common dimension of ${depth}: elements are as in the table`, () => {
        const tree = read(
          {
            out: tensor('f32', 'output'),
            a: tensor(storage, 'input'),
            b: tensor(storage, 'input'),
            c: tensor('f32', 'input'),
          },
          byTheTable(storage, depth),
        );
        const a = halves(storage, sequence(16 * depth, 1));
        const b = halves(storage, sequence(depth * 8, 2));
        const c = Float32Array.from(sequence(128, 3));
        const { out } = everywhere(tree, 32, { out: new Float32Array(128), a, b, c });
        expect(out).toEqual(
          product(numbers(storage, a), numbers(storage, b), [...c], 16, 8, depth),
        );
      });
    }
  }

  test('tf32: 13 bits are left out', () => {
    const tree = read(
      { out: tensor('f32', 'output'), a: tensor('f32', 'input'), b: tensor('f32', 'input') },
      `({ out, a, b }, gpu) => {
      const g = gpu.lane / 4, t = gpu.lane % 4;
      const left = gpu.local.f32(4), right = gpu.local.f32(2), sum = gpu.local.f32(4);
      for (let i = 0; i < 4; i++) left[i] = a[(g + 8 * (i % 2)) * 8 + t + 4 * (i / 2)];
      for (let i = 0; i < 2; i++) right[i] = b[(t + 4 * i) * 8 + g];
      gpu.warp.mmaTf32(sum, left, right);
      for (let i = 0; i < 4; i++) out[(g + 8 * (i / 2)) * 8 + 2 * t + i % 2] = sum[i];
    }`,
    );
    const [a, b] = [Float32Array.from(sequence(128, 1)), Float32Array.from(sequence(64, 2))];
    const cut = (values: Float32Array): number[] => [
      ...new Float32Array(
        new Uint32Array(values.slice().buffer).map((word) => word & 0xffffe000).buffer,
      ),
    ];
    const { out } = everywhere(tree, 32, { out: new Float32Array(128), a, b });
    expect(out).toEqual(product(cut(a), cut(b), new Array<number>(128).fill(0), 16, 8, 8));
  });

  test('a result can be a factor of the next product', () => {
    // (a · b) · c, where each sum is rounded to f16 and keeps its place.
    const tree = read(
      {
        out: tensor('f32', 'output'),
        a: tensor('f16', 'input'),
        b: tensor('f16', 'input'),
        c: tensor('f16', 'input'),
      },
      `({ out, a, b, c }, gpu) => {
      const tile = gpu.shared.f16(48, 16);
      for (let i = gpu.lane; i < 256; i += 32) {
        tile[i / 16][i % 16] = a[i];
        tile[16 + i / 16][i % 16] = b[i];
        if (i < 128) tile[32 + i / 8][i % 8] = c[i];
      }
      gpu.block.sync();
      const left = gpu.local.f16(8), right = gpu.local.f16(2, 4), sums = gpu.local.f32(2, 4);
      const second = gpu.local.f16(8), last = gpu.local.f16(4), sum = gpu.local.f32(4);
      const row = gpu.lane % 16, column = gpu.lane / 16 * 8;
      gpu.warp.loadMatrices(left, tile[row], column);
      for (let n = 0; n < 2; n++) {
        gpu.warp.loadMatricesTransposed(right[n], tile[16 + row], n * 8);
        gpu.warp.mma(sums[n], left, right[n]);
        for (let i = 0; i < 4; i++) second[n * 4 + i] = sums[n][i];
      }
      gpu.warp.loadMatricesTransposed(last, tile[32 + row], 0);
      gpu.warp.mma(sum, second, last);
      for (let i = 0; i < 4; i++)
        out[(gpu.lane / 4 + 8 * (i / 2)) * 8 + 2 * (gpu.lane % 4) + i % 2] = sum[i];
    }`,
    );
    const [a, b, c] = [
      halves('f16', sequence(256, 1)),
      halves('f16', sequence(256, 2)),
      halves('f16', sequence(128, 3)),
    ];
    const { out } = everywhere(tree, 32, { out: new Float32Array(128), a, b, c });
    const first = product(
      numbers('f16', a),
      numbers('f16', b),
      new Array<number>(256).fill(0),
      16,
      16,
      16,
    );
    const rounded = numbers('f16', halves('f16', [...first]));
    expect(out).toEqual(
      product(rounded, numbers('f16', c), new Array<number>(128).fill(0), 16, 8, 16),
    );
  });

  test('fragments in a loop stay two to a register, outside of local memory', () => {
    const tree = read(
      {
        out: tensor('f32', 'output'),
        a: tensor('f16', 'input'),
        n: { kind: 'scalar', storage: 'i32' },
      },
      `({ out, a, n }, gpu) => {
      const tile = gpu.shared.f16(512);
      for (let i = 0; i < 2; i++)
        gpu.async.copy(tile, (i * 32 + gpu.lane) * 8, a, (i * 32 + gpu.lane) * 8, 8);
      gpu.async.wait(0);
      gpu.block.sync();
      const left = gpu.local.f16(2, 8), right = gpu.local.f16(2, 4), sum = gpu.local.f32(2, 4);
      gpu.warp.loadMatrices(left[0], tile, gpu.lane * 8);
      for (let k = 0; k < n; k++) {
        for (let half = 0; half < 2; half++) {
          gpu.warp.loadMatrices(left[(half + 1) % 2], tile, (k % 2) * 256 + gpu.lane * 8);
          gpu.warp.loadMatricesTransposed(right[half], tile, (k % 2) * 128 + gpu.lane % 16 * 8);
          gpu.warp.mma(sum[half], left[half], right[half]);
        }
      }
      for (let i = 0; i < 8; i++) out[i * 32 + gpu.lane] = sum[i / 4][i % 4];
    }`,
    );
    everywhere(tree, 32, {
      out: new Float32Array(256),
      a: halves('f16', sequence(512, 1)),
      n: 5,
    });
    const { ptx } = emitKernel(tree, { capability: '9.0' });
    expect(ptx).not.toMatch(/\.local|cvt\.f32\.f16|mov\.b32 \{/);
    expect(ptx.match(/mma\.sync/g)).toHaveLength(2);
  });
});

describe('elements of fragments', () => {
  test('are read and written one by one like those of other arrays', () => {
    for (const storage of ['f16', 'bf16'] as const) {
      const tree = read(
        { out: tensor('f32', 'output'), x: tensor('f32', 'input') },
        `({ out, x }, gpu) => {
        const f = gpu.local.${storage}(8), g = gpu.local.${storage}(4), s = gpu.local.f32(4);
        for (let i = 0; i < 8; i++) f[i] = x[i] * 0.1;
        f[3] = f[3] + f[4];
        f[0] = 7;
        for (let k = 0; k < x[8]; k++) f[5] += f[6];
        gpu.warp.mma(s, f, g);
        for (let i = 0; i < 8; i++) out[gpu.lane * 12 + i] = f[i];
        for (let i = 0; i < 4; i++) out[gpu.lane * 12 + 8 + i] = s[i];
      }`,
      );
      const x = Float32Array.from([...sequence(8, 5), 3]);
      const round = (value: number): number => numbers(storage, halves(storage, [value]))[0]!;
      const f = [...x.subarray(0, 8)].map((value) => round(Math.fround(value * Math.fround(0.1))));
      f[3] = round(Math.fround(f[3]! + f[4]!));
      f[0] = 7;
      for (let k = 0; k < 3; k++) f[5] = round(Math.fround(f[5]! + f[6]!));
      const { out } = everywhere(tree, 32, { out: new Float32Array(384), x });
      expect([...(out as Float32Array).subarray(0, 8)]).toEqual(f);
    }
  });

  test('a variable index puts the array into memory, with the same results', () => {
    const tree = read(
      {
        out: tensor('f32', 'output'),
        a: tensor('f16', 'input'),
        n: { kind: 'scalar', storage: 'i32' },
      },
      `({ out, a, n }, gpu) => {
      const left = gpu.local.f16(3, 8), right = gpu.local.f16(4), sum = gpu.local.f32(4);
      for (let i = 0; i < 24; i++) left[i / 8][i % 8] = a[gpu.lane * 24 + i];
      for (let i = 0; i < 4; i++) right[i] = a[gpu.lane + i];
      gpu.warp.mma(sum, left[n], right);
      for (let i = 0; i < 4; i++) out[gpu.lane * 4 + i] = sum[i];
    }`,
    );
    const ran = everywhere(tree, 32, {
      out: new Float32Array(128),
      a: halves('f16', sequence(768, 4)),
      n: 2,
    });
    expect((ran['out'] as Float32Array).some((value) => value !== 0)).toBe(true);
    expect(emitKernel(tree, { capability: '9.0' }).ptx).toContain('.local');
  });
});

test('loadMatrices: one, two and four matrices, as they are and transposed', () => {
  for (const count of [1, 2, 4]) {
    for (const transposed of [false, true]) {
      const tree = read(
        { out: tensor('f32', 'output'), a: tensor('bf16', 'input') },
        `({ out, a }, gpu) => {
        const tile = gpu.shared.bf16(256);
        for (let i = gpu.lane; i < 256; i += 32) tile[i] = a[i];
        gpu.block.sync();
        const part = gpu.local.bf16(${2 * count});
        const start = (gpu.lane * 8 + 64) % 256;
        gpu.warp.loadMatrices${transposed ? 'Transposed' : ''}(part, tile, start);
        for (let i = 0; i < ${2 * count}; i++) out[gpu.lane * ${2 * count} + i] = part[i];
      }`,
      );
      const a = halves('bf16', sequence(256, count));
      const { out } = everywhere(tree, 32, { out: new Float32Array(64 * count), a });
      const values = numbers('bf16', a);
      const expected = Float32Array.from({ length: 64 * count }, (_, at) => {
        const [lane, i] = [Math.floor(at / (2 * count)), at % (2 * count)];
        const [across, down] = [2 * (lane % 4) + (i % 2), lane >> 2];
        const [row, column] = transposed ? [across, down] : [down, across];
        return values[(((8 * (i >> 1) + row) * 8 + 64) % 256) + column]!;
      });
      expect(out).toEqual(expected);
    }
  }
});

describe('gpu.async', () => {
  test('copies in groups, with zeros for missing elements', () => {
    for (const [storage, Make] of [
      ['f32', Float32Array],
      ['u16', Uint16Array],
      ['u8', Uint8Array],
      ['i64', BigInt64Array],
    ] as const) {
      const bytes = Make.BYTES_PER_ELEMENT;
      for (const size of [4, 8, 16]) {
        if (size < bytes) continue;
        const count = size / bytes;
        const tree = read(
          {
            out: tensor(storage),
            x: tensor(storage, 'input'),
            n: { kind: 'scalar', storage: 'i32' },
          },
          `({ out, x, n }, gpu) => {
          const tile = gpu.dynamicShared.${storage}();
          const t = gpu.threadIdx.x;
          gpu.async.copy(tile, t * ${count}, x, t * ${count}, ${count}, n - t * ${count});
          gpu.async.commit();
          gpu.async.copy(tile, (64 + t) * ${count}, x, t * ${count}, ${count});
          gpu.async.commit();
          gpu.async.wait(1);
          gpu.block.sync();
          for (let i = t; i < 64 * ${count}; i += 64) out[i] = tile[(i + ${count}) % ${64 * count}];
          gpu.async.wait(0);
          gpu.block.sync();
          for (let i = t; i < 64 * ${count}; i += 64)
            out[64 * ${count} + i] = tile[64 * ${count} + i];
        }`,
        );
        const big = storage === 'i64';
        const x = (
          big
            ? BigInt64Array.from({ length: 64 * count }, (_, i) => BigInt(i) + 1n)
            : (Make as typeof Float32Array).from({ length: 64 * count }, (_, i) => (i + 1) % 251)
        ) as HostArray;
        const n = 21 * count + 1;
        const { out } = everywhere(tree, 64, { out: new Make(128 * count), x, n }, 2048);
        const given = [...(x as Float32Array)].map((value, i) => (i < n ? value : big ? 0n : 0));
        expect([...(out as Float32Array)]).toEqual([
          ...given.slice(count),
          ...given.slice(0, count),
          ...(x as Float32Array),
        ]);
      }
    }
  });

  test('copies of no elements read nothing, and checks report other ones only', () => {
    const tree = read(
      { out: tensor('f32'), x: tensor('f32', 'input'), n: { kind: 'scalar', storage: 'i32' } },
      `({ out, x, n }, gpu) => {
      const tile = gpu.shared.f32(128);
      gpu.async.copy(tile, gpu.lane * 4, x, gpu.lane * 4000000, 4, n - gpu.lane);
      gpu.async.wait(0);
      for (let i = 0; i < 4; i++) out[gpu.lane * 4 + i] = tile[gpu.lane * 4 + i];
    }`,
    );
    const x = Float32Array.of(1, 2, 3, 4);
    const { out } = everywhere(tree, 32, { out: new Float32Array(128), x, n: 1 });
    expect([...(out as Float32Array)].filter((value) => value !== 0)).toEqual([1]);
    const checked = (n: number): number =>
      runKernel(tree, { values: { out: new Float32Array(128), x, n }, target: { checks: true } })
        .outcome.status;
    expect(checked(1)).toBe(0);
    expect(checked(2)).not.toBe(0);
  });

  test('a read before the wait is an error of the simulation', () => {
    const run = (before: string, given = ''): string => {
      const tree = read(
        { out: tensor('f32'), x: tensor('f32', 'input') },
        `({ out, x }, gpu) => {
        const tile = gpu.shared.f32(256);
        gpu.async.copy(tile, gpu.lane * 4, x, gpu.lane * 4${given}, 4);
        gpu.async.commit();
        ${before}
        out[gpu.lane] = tile[gpu.lane * 4];
      }`,
      );
      try {
        simulateKernel(tree, {
          grid: 1,
          block: 32,
          args: { out: new Float32Array(32), x: new Float32Array(128) },
        });
      } catch (error) {
        return error instanceof SimulationError ? error.message : String(error);
      }
      return '';
    };
    expect(run('gpu.async.wait(1); gpu.block.sync();')).toContain(
      'was read before an asynchronous copy to it was waited for',
    );
    expect(run('gpu.async.wait(0);')).toBe('');
    expect(run('gpu.async.wait(0);', ' + 1')).toContain('begins at element 1 of the tensor');
    expect(run('gpu.async.wait(0);', ' + 4')).toContain("'x' has 128 elements");
  });
});

describe('a warp that is not whole', () => {
  const tree = read(
    { out: tensor('f32'), n: { kind: 'scalar', storage: 'i32' } },
    `({ out, n }, gpu) => {
    const f = gpu.local.f16(8), g = gpu.local.f16(4), s = gpu.local.f32(4);
    if (gpu.lane < n) gpu.warp.mma(s, f, g);
    out[gpu.threadIdx.x] = s[0];
  }`,
  );
  test('fails in the simulation', () => {
    expect(() => {
      simulateKernel(tree, { grid: 1, block: 40, args: { out: new Float32Array(40), n: 32 } });
    }).toThrow('takes a warp of 32 lanes');
    expect(() => {
      simulateKernel(tree, { grid: 1, block: 32, args: { out: new Float32Array(40), n: 31 } });
    }).toThrow('gpu.warp.mma');
  });
});

test(
  'matrices of any values: simulation, the CPU device and the definition agree to the bit',
  { tags: 'random' },
  () => {
    const tree = read(
      {
        out: tensor('f32', 'output'),
        a: tensor('f16', 'input'),
        b: tensor('f16', 'input'),
        c: tensor('f32', 'input'),
      },
      byTheTable('f16', 16),
    );
    const finite = fc.integer({ min: 0, max: 0xffff }).filter((bits) => (bits & 0x7c00) !== 0x7c00);
    fc.assert(
      fc.property(
        fc.array(finite, { minLength: 256, maxLength: 256 }),
        fc.array(finite, { minLength: 128, maxLength: 128 }),
        fc.float({ noNaN: true }),
        (left, right, start) => {
          const [a, b, c] = [
            Uint16Array.from(left),
            Uint16Array.from(right),
            new Float32Array(128).fill(start),
          ];
          const { out } = everywhere(tree, 32, { out: new Float32Array(128), a, b, c });
          expect(out).toEqual(product(numbers('f16', a), numbers('f16', b), [...c], 16, 8, 16));
        },
      ),
      { numRuns: 10 },
    );
  },
);
