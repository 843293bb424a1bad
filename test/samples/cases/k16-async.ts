/** Asynchronous copies, a barrier in shared memory, matrix instructions. */
import { expect } from 'vitest';

import { near, numbersOf } from '../equality.js';
import { Values } from '../host-values.js';
import type { SampleModule } from '../sample-case.js';

const random = new Values(16);

const rows = 7;
const g = random.wildFloats(rows * 512);

/** 16-bit words of small whole numbers: their products and sums are exact in any order. */
const wholeHalves = (length: number): Uint16Array =>
  Uint16Array.from(
    { length },
    () => [0, 0x3c00, 0x4000, 0x4200, 0x4400, 0xbc00, 0xc000, 0xc500][random.below(8)]!,
  );
const fractionHalves = (length: number): Uint16Array =>
  Uint16Array.from({ length }, () => (random.word() & 0x8000) | (0x3000 + random.below(0x0c00)));
const halves = (words: Uint16Array): number[] => Array.from(numbersOf(words, 'f16'), Number);

/** A row by row; B column by column. */
function matrixProduct(a: number[], b: number[]): number[] {
  return Array.from({ length: 256 }, (_, at) => {
    let sum = 0;
    for (let k = 0; k < 16; k++) sum += a[(at >> 4) * 16 + k]! * b[(at & 15) * 16 + k]!;
    return sum;
  });
}

/** The fragments of mma.m16n8k16, as the PTX ISA lays them out over the lanes. */
function mma(aWords: Uint16Array, bWords: Uint16Array): number[] {
  const [a, b] = [halves(aWords), halves(bWords)];
  const A = Array.from({ length: 16 }, () => new Array<number>(16).fill(0));
  const B = Array.from({ length: 16 }, () => new Array<number>(8).fill(0));
  for (let lane = 0; lane < 32; lane++) {
    const [group, thread] = [lane >> 2, lane & 3];
    for (let i = 0; i < 8; i++)
      A[group + (i & 2 ? 8 : 0)]![thread * 2 + (i & 1) + (i & 4 ? 8 : 0)] = a[lane * 8 + i]!;
    for (let i = 0; i < 4; i++)
      B[thread * 2 + (i & 1) + (i & 2 ? 8 : 0)]![group] = b[lane * 4 + i]!;
  }
  return Array.from({ length: 128 }, (_, at) => {
    const [lane, i] = [at >> 2, at & 3];
    const [row, column] = [(lane >> 2) + (i & 2 ? 8 : 0), (lane & 3) * 2 + (i & 1)];
    return A[row]!.reduce((sum, value, k) => sum + value * B[k]![column]!, 0);
  });
}

const whole = { a: wholeHalves(256), b: wholeHalves(256) };
const fractions = { a: fractionHalves(256), b: fractionHalves(256) };
const wholeB = whole.b.slice(0, 128);
const fractionsB = fractions.b.slice(0, 128);
// Sixteen products below 2^0; a tensor core aligns them to the largest and cuts what is below its
// 24 bits.
const TENSOR_CORE = near(16, 4);

export const K16_ASYNC: SampleModule = {
  name: 'k16_async',
  cases: [
    {
      kernel: 'pipe_copy',
      name: 'six rows in two stages',
      memory: { g, o: new Float32Array(rows * 512) },
      launches: [{ grid: 1, block: 128, args: ['g', 'o', rows] }],
      outputs: {
        o: {
          equal: 'bits',
          reference: () => g.map((_, i) => (i < (rows - 1) * 512 ? g[i ^ 4]! : 0)),
        },
      },
    },
    {
      kernel: 'bar_arrive',
      name: '70 threads',
      memory: { o: new Int32Array(70) },
      launches: [{ grid: 1, block: 70, args: ['o'] }],
      outputs: {
        o: {
          equal: 'bits',
          // A thread writes its 1 between its arrival and its wait, so the other of the pair may
          // find 0, 1, or the sum.
          normalForm: (o: Int32Array) => o.map((value) => (value >= 1 && value <= 3 ? 1 : value)),
          check: (o: Int32Array) => {
            for (let i = 0; i < o.length; i += 2) expect([3, 4, 5]).toContain(o[i]! + o[i + 1]!);
          },
          reference: () => new Int32Array(70).fill(1),
        },
      },
    },
    {
      kernel: 'wmma_gemm',
      name: 'whole numbers',
      memory: { ...whole, c: new Float32Array(256) },
      launches: [{ grid: 1, block: 32, args: ['a', 'b', 'c'] }],
      outputs: {
        c: { equal: 'bits', reference: () => matrixProduct(halves(whole.a), halves(whole.b)) },
      },
    },
    {
      kernel: 'wmma_gemm',
      name: 'fractions',
      memory: { ...fractions, c: new Float32Array(256) },
      launches: [{ grid: 1, block: 32, args: ['a', 'b', 'c'] }],
      outputs: {
        c: {
          equal: TENSOR_CORE,
          reference: () => matrixProduct(halves(fractions.a), halves(fractions.b)),
        },
      },
    },
    {
      kernel: 'mma_ptx',
      name: 'whole numbers',
      targets: ['sm_80', 'sm_90'],
      memory: { a: whole.a, b: wholeB, c: new Float32Array(128) },
      launches: [{ grid: 1, block: 32, args: ['a', 'b', 'c'] }],
      outputs: { c: { equal: 'bits', reference: () => mma(whole.a, wholeB) } },
    },
    {
      kernel: 'mma_ptx',
      name: 'fractions',
      targets: ['sm_80', 'sm_90'],
      memory: { a: fractions.a, b: fractionsB, c: new Float32Array(128) },
      launches: [{ grid: 1, block: 32, args: ['a', 'b', 'c'] }],
      outputs: { c: { equal: TENSOR_CORE, reference: () => mma(fractions.a, fractionsB) } },
    },
  ],
};
