// Kernels of thousands of warp operations, as nvcc makes them of unrolled loops of matrix products.

import { describe, expect, it } from 'vitest';
import { FAULT } from '../index.js';
import { Grid, kernelText } from '../run-grid.test-support.js';

const registers = (prefix: string, count: number): string =>
  `{${Array.from({ length: count }, (_, i) => `${prefix}${i}`).join(', ')}}`;
const accumulator = (index: number): string => registers(`%c${index}_`, 8);
const A = registers('%a', 8);
const B = registers('%b', 8);
const LOAD_A = `wmma.load.a.sync.aligned.row.m16n16k16.global.f16 ${A}, [%rd1], %r1;\n`;
const PRODUCT = 'wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32';

/**
 * Each of `products` products reads A again and adds to one of the accumulators in turn, which are
 * stored.
 */
function unrolled(products: number, accumulators: number): string {
  const each = Array.from({ length: accumulators }, (_, i) => i);
  return kernelText(
    'k',
    '.param .u64 in, .param .u64 out',
    `
    .reg .b64 %rd<3>; .reg .b32 %r<2>; .reg .b32 %a<8>; .reg .b32 %b<8>;
    ${each.map((i) => `.reg .f32 %c${i}_<8>;`).join(' ')}
    ld.param.u64 %rd1, [in]; ld.param.u64 %rd2, [out]; mov.u32 %r1, 16;
    ${each
      .flatMap((i) =>
        Array.from(
          { length: 8 },
          (_, j) =>
            `mov.f32
      %c${i}_${j}, ` +
            `0f${[0, 0x3f800000, 0x40000000, 0x40400000][i % 4]!.toString(16).padStart(8, '0')};`,
        ),
      )
      .join(' ')}
    wmma.load.b.sync.aligned.col.m16n16k16.global.f16 ${B}, [%rd1], %r1;
    ${Array.from(
      { length: products },
      (_, i) =>
        `${LOAD_A}${PRODUCT}
      ${accumulator(i % accumulators)}, ${A},
        ${B}, ` + `${accumulator(i % accumulators)};\n`,
    ).join('')}
    ${each
      .map(
        (i) =>
          `wmma.store.d.sync.aligned.row.m16n16k16.global.f32
      [%rd2+${1024 * i}], ` + `${accumulator(i)}, %r1;`,
      )
      .join('\n')}
    ret;`,
  );
}

describe('products that are written out one by one', () => {
  it('4096 of them in one kernel, with 8 accumulators', { tags: 'thorough' }, () => {
    const grid = new Grid(unrolled(4096, 8));
    expect(grid.module.failures).toEqual([]);
    const ones = grid.put(new Uint16Array(256).fill(0x3c00));
    const out = grid.put(new Float32Array(8 * 256));
    expect(
      grid.run('k', [{ i64: ones.address }, { i64: out.address }], { grid: [1], block: [32] })
        .status,
    ).toBe(0);
    for (let i = 0; i < 8; i++)
      expect(new Set(out.view.subarray(256 * i, 256 * (i + 1)))).toEqual(
        new Set([512 * 16 + (i % 4)]),
      );
  });

  it('each takes less than 1 KB of code, what threads keep meanwhile included', () => {
    const bytes = (products: number): number => new Grid(unrolled(products, 8)).module.wasm.length;
    expect((bytes(192) - bytes(64)) / 128).toBeLessThan(1000);
  });

  it('a fault in one of them is reported with its own line', () => {
    const text = unrolled(3, 1).replace(LOAD_A, `${LOAD_A}mov.u64 %rd1, 8;\n`);
    const grid = new Grid(text);
    const ones = grid.put(new Uint16Array(256).fill(0x3c00));
    const out = grid.put(new Float32Array(256));
    const { fault } = grid.run('k', [{ i64: ones.address }, { i64: out.address }], {
      grid: [1],
      block: [32],
    });
    const line = text
      .split('\n')
      .reduce(
        (found, each, at) =>
          found.length < 2 && each.includes('wmma.load.a') ? [...found, at + 1] : found,
        [] as number[],
      )[1];
    expect(fault).toMatchObject({ kind: FAULT.outOfBounds, thread: 0, line });
  });
});
