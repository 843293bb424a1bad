/** A load after a barrier whose value is first needed after quotients is moved after them. */
import { describe, expect, test } from 'vitest';
import { readKernel } from '../../../src/compiler/read/read-kernel.js';
import type { SignatureEntry } from '../../../src/compiler/signature.js';
import { runKernel } from './run-kernel.js';
import type { HostArray } from './run-kernel.js';

const tensor = (
  access: 'input' | 'output' | 'inout',
  storage: 'f32' | 'bf16' = 'f32',
): SignatureEntry => ({ kind: 'tensor', element: { storage }, access, rank: 1 });

const READ_X = 'const d = gpu.local.f32(8); for (let k = 0; k < 8; k++) d[k] = x[t * 8 + k];';
const READ_W =
  'const g = gpu.local.f32(8); for (let k = 0; k < 8; k++) g[k] = gpu.f32(w[t * 8 + k]);';
const MEET = 's[t] = d[0]; gpu.block.sync(); const by = s[t ^ 1] + 3;';
const WRITE = 'for (let k = 0; k < 8; k++) y[t * 8 + k] = d[k] / by * g[k];';
const BLOCK = 64;

/**
 * The positions of the reads of `w` and of the last division in the emitted code of a block, whose
 * results must not depend on them.
 */
function places(
  text: string,
  weights: { readonly access?: 'input' | 'inout'; readonly storage?: 'f32' | 'bf16' } = {},
): { readonly weights: number; readonly division: number; readonly ptx: string } {
  const { access = 'input', storage = 'f32' } = weights;
  const tree = readKernel({
    name: 'scaled',
    signature: { y: tensor('output'), x: tensor('input'), w: tensor(access, storage) },
    uses: {},
    indexType: 'i32',
    text:
      `({ y, x, w }, gpu) => { const s = gpu.shared.f32(${BLOCK}); const t = gpu.threadIdx.x; ` +
      `${text} }`,
  });
  const x = Float32Array.from({ length: 8 * BLOCK }, (_, at) => 1 + at / 7);
  // As bf16 the upper half of 0.5, 1.5, 2.5, 3.5.
  const w = Float32Array.from({ length: 8 * BLOCK }, (_, at) => (at % 4) + 0.5);
  const held: HostArray =
    storage === 'f32' ? w : Uint16Array.from(new Uint32Array(w.buffer), (bits) => bits >>> 16);
  const {
    of,
    emitted: { ptx },
  } = runKernel(tree, {
    values: { y: new Float32Array(8 * BLOCK), x, w: held },
    block: [BLOCK],
    target: { capability: '9.0', alignment: { 0: 16, 1: 16, 2: 16 } },
  });
  expect([...of<Float32Array>('y')]).toEqual(
    [...x].map((value, at) => {
      const by = Math.fround(x[8 * ((at >> 3) ^ 1)]! + 3);
      return Math.fround(Math.fround(value / by) * w[at]!);
    }),
  );
  const reads = [...ptx.matchAll(/ld\.global.*/g)];
  expect(reads).toHaveLength(storage === 'f32' ? 4 : 3);
  return {
    weights: reads.at(storage === 'f32' ? -2 : -1)!.index,
    division: ptx.lastIndexOf('div.rn.f32'),
    ptx,
  };
}

describe('loads after the quotients', () => {
  test('a load just before them is moved with its address', () => {
    const { weights, division, ptx } = places(`${READ_X} ${MEET} ${READ_W} ${WRITE}`);
    expect(weights).toBeGreaterThan(division);
    const address = /\[(%rd\d+)(\+\d+)?\]/.exec(ptx.slice(weights))![1]!;
    expect(ptx.indexOf(`add.s64 ${address},`)).toBeGreaterThan(division);
  });

  test('narrow elements are moved with their conversions', () => {
    const { weights, division } = places(`${READ_X} ${MEET} ${READ_W} ${WRITE}`, {
      storage: 'bf16',
    });
    expect(weights).toBeGreaterThan(division);
  });
});

describe('accesses that stay before the quotients', () => {
  test('loads before the barrier', () => {
    const { weights, division } = places(`${READ_X} ${READ_W} ${MEET} ${WRITE}`);
    expect(weights).toBeLessThan(division);
  });

  test('memory that other threads may write', () => {
    const { weights, division } = places(`${READ_X} ${MEET} ${READ_W} ${WRITE}`, {
      access: 'inout',
    });
    expect(weights).toBeLessThan(division);
  });

  test('operands of the quotients', () => {
    const { weights, division } = places(
      `${READ_X} ${MEET} ${READ_W} for (let k = 0; k < 8; k++) d[k] = Math.max(d[k], g[k] - ` +
        `4); ${WRITE}`,
    );
    expect(weights).toBeLessThan(division);
  });

  test('loads without a barrier', () => {
    const text = `${READ_X} const by = x[(t ^ 1) * 8] + 3; ${READ_W} ${WRITE}`;
    const tree = readKernel({
      name: 'scaled',
      signature: { y: tensor('output'), x: tensor('input'), w: tensor('input') },
      uses: {},
      indexType: 'i32',
      text: `({ y, x, w }, gpu) => { const t = gpu.threadIdx.x; ${text} }`,
    });
    const {
      emitted: { ptx },
    } = runKernel(tree, {
      values: { y: new Float32Array(512), x: new Float32Array(512), w: new Float32Array(512) },
      block: [BLOCK],
      target: { capability: '9.0', alignment: { 0: 16, 1: 16, 2: 16 } },
    });
    expect(ptx.lastIndexOf('ld.global')).toBeLessThan(ptx.indexOf('rcp.approx'));
  });
});
