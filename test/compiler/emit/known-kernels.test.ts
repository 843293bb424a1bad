/**
 * Well-known kernels: their results on the CPU device, the instructions that make them fast, and
 * the time that their compilation takes.
 */
import { describe, expect, test } from 'vitest';
import { emitKernel } from '../../../src/compiler/emit/emit.js';
import { knownKernels } from '../../../src/compiler/emit/known-kernels.test-support.js';
import { offer, runKernel } from './run-kernel.js';
import type { HostArray } from './run-kernel.js';
import { TreeBuilder, add, lt } from '../../../src/compiler/emit/trees.test-support.js';

const count = 500;
const floats = (length: number, of: (at: number) => number): Float32Array =>
  Float32Array.from({ length }, (_, at) => of(at));
const wave = floats(count, (at) => Math.fround(((at * 37) % 101) / 16 - 3));

interface Case {
  readonly values: Readonly<Record<string, HostArray | number | bigint>>;
  readonly grid: readonly [number, number?];
  readonly block: readonly [number, number?];
  /** The output, and its expected contents; by default the results of the source as JavaScript. */
  readonly out: string;
  readonly wanted?: (values: Case['values']) => ArrayLike<number>;
}

const cases: Readonly<Record<string, Case>> = {
  saxpy: {
    values: { a: 2, x: wave, y: wave },
    grid: [8],
    block: [64],
    out: 'y',
    wanted: () => wave.map((value) => 3 * value),
  },
  saxpyStride: {
    values: { a: 2, x: wave, y: wave },
    grid: [2],
    block: [32],
    out: 'y',
    wanted: () => wave.map((value) => 3 * value),
  },
  chain: {
    values: { x: wave, y: wave, z: floats(count, () => 0) },
    grid: [8],
    block: [64],
    out: 'z',
  },
  transpose: {
    values: { in: floats(40 * 70, (at) => at), out: floats(40 * 70, () => -1), w: 40, h: 70 },
    grid: [2, 3],
    block: [32, 8],
    out: 'out',
    wanted: () => floats(40 * 70, (at) => (at % 70) * 40 + Math.floor(at / 70)),
  },
  reduce: {
    values: { in: floats(count, (at) => at), out: floats(1, () => 5) },
    grid: [2],
    block: [64],
    out: 'out',
    wanted: () => [5 + (count * (count - 1)) / 2],
  },
  softmax: {
    values: { x: wave, y: floats(count, () => 0), cols: 250 },
    grid: [2],
    block: [64],
    out: 'y',
  },
  rmsNorm: {
    values: { x: wave, w: wave, y: floats(count, () => 0), cols: 250, eps: 0.001 },
    grid: [2],
    block: [64],
    out: 'y',
  },
  histogram: {
    values: {
      d: Uint8Array.from({ length: 5000 }, (_, at) => (at * at) % 251),
      h: new Uint32Array(256),
    },
    grid: [3],
    block: [64],
    out: 'h',
    wanted: ({ d }) => {
      const bins = new Uint32Array(256);
      for (const value of d as Uint8Array) bins[value]!++;
      return bins;
    },
  },
  scan: {
    values: {
      in: Int32Array.from({ length: 128 }, (_, at) => at),
      out: new Int32Array(128),
      sums: new Int32Array(1),
    },
    grid: [1],
    block: [128],
    out: 'out',
    wanted: () => Int32Array.from({ length: 128 }, (_, at) => (at * (at + 1)) / 2),
  },
  nbody: {
    values: {
      p: floats(1024, (at) => wave[at % count]!),
      v: floats(1024, () => 0),
      n: 256,
      dt: 0.5,
      eps: 0.01,
    },
    grid: [2],
    block: [128],
    out: 'v',
  },
  mandelbrot: {
    values: { o: new Int32Array(32 * 16), w: 32, h: 16, x0: -2, y0: -1, s: 0.09375, maxit: 50 },
    grid: [2, 2],
    block: [16, 8],
    out: 'o',
  },
  philox: {
    values: { o: floats(256, () => 0), seed: 0x123456789abcdefn, n: 64 },
    grid: [1],
    block: [64],
    out: 'o',
  },
};

test('each kernel has its case', () => {
  expect(Object.keys(cases)).toEqual(Object.keys(knownKernels));
});

describe.each(Object.keys(cases))('%s', (name) => {
  test('has the expected results', () => {
    const { values, grid, block, out, wanted } = cases[name]!;
    const run = (target: object): number[] => {
      const { outcome, of } = runKernel(knownKernels[name]!(), { values, grid, block, target });
      expect(outcome.status).toBe(0);
      return [...of<Float32Array>(out)];
    };
    const plain = run({ optimise: false });
    expect(plain.some((value) => value !== 0)).toBe(true);
    if (wanted) expect(plain).toEqual([...(wanted(values) as Float32Array)]);
    expect(run({ alignment: { 0: 256, 1: 256, 2: 256 } })).toEqual(plain);
    expect(run({ block: [block[0], block[1] ?? 1, 1] })).toEqual(plain);
    expect(run({ checks: true })).toEqual(plain);
  });

  test.each(['7.5', '8.6', '9.0', '12.0'])(
    'is accepted by ptxas for compute capability %s',
    (capability) => {
      const emitted = emitKernel(knownKernels[name]!(), { capability, alignment: { 0: 256 } });
      expect(emitted.ptx).toContain('.visible .entry');
      offer(emitted);
    },
  );
});

/** Instructions of the innermost loops, which take most of the time. */
function loopsOf(ptx: string): string[][] {
  const lines = ptx
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('.'));
  const at = new Map(
    lines.flatMap((line, index) =>
      line.endsWith(':') ? [[line.slice(0, -1), index] as const] : [],
    ),
  );
  return lines.flatMap((line, index) => {
    const target = /bra (\S+);/.exec(line)?.[1];
    const start = target === undefined ? undefined : at.get(target);
    return start !== undefined && start < index ? [lines.slice(start + 1, index + 1)] : [];
  });
}

describe('instructions', () => {
  const ptxOf = (name: string): string =>
    emitKernel(knownKernels[name]!(), { capability: '9.0' }).ptx;
  const countOf = (lines: readonly string[], what: RegExp): number =>
    lines.filter((line) => what.test(line)).length;

  test('saxpy computes one offset for both tensors, and reads the input as read-only', () => {
    const ptx = ptxOf('saxpy');
    expect(ptx.match(/mul\.wide/g)).toHaveLength(1);
    expect(ptx.match(/ld\.global\.nc\.f32/g)).toHaveLength(1);
  });

  test('a grid-stride loop reads four elements in a turn', () => {
    const [four] = loopsOf(ptxOf('reduce'));
    expect(countOf(four!, /ld\.global\.nc/)).toBe(4);
    expect(countOf(four!, /setp/)).toBe(1);
  });

  test('the bodies of an n-body tile are loaded eight at a time from one register', () => {
    const eight = loopsOf(ptxOf('nbody')).find(
      (loop) => countOf(loop, /rsqrt/) === 8 && countOf(loop, /bar/) === 0,
    )!;
    expect([countOf(eight, /ld\.shared/), countOf(eight, /ld\.shared\.v4\.f32/)]).toEqual([8, 8]);
    expect(countOf(eight, /mul\.(wide|lo)|mad|shl/)).toBeLessThanOrEqual(1);
  });

  test('shuffles of a constant loop follow one another', () => {
    const ptx = ptxOf('reduce');
    expect(ptx.match(/shfl\.sync\.down/g)).toHaveLength(10);
  });
});

test('thousands of statements in sequence do not count as nesting', () => {
  const t = new TreeBuilder('long');
  const x = t.tensor('x', 'i32');
  const early = t.variable(x.at(0));
  const sum = t.variable(0);
  for (let at = 0; at < 3000; at++)
    t.if(lt(sum.value, x.at(at)), () => sum.set(add(sum.value, x.at(at + 1))));
  x.put(0, add(sum.value, early.value));
  expect(emitKernel(t.tree, { capability: '9.0' }).ptx).toContain('st.global');
});
