/**
 * A reduction over a block whose warps are known to be full does not check for a lane's partner.
 */
import { expect, test } from 'vitest';
import { readKernel } from '../../../src/compiler/read/read-kernel.js';
import { runKernel } from './run-kernel.js';
import { someOf } from '../../random-runs.js';

const source = {
  name: 'sums',
  uses: {},
  indexType: 'i32',
  signature: {
    y: { kind: 'tensor', element: { storage: 'f32' }, access: 'output', rank: 1 },
    x: { kind: 'tensor', element: { storage: 'f32' }, access: 'input', rank: 1 },
  },
  text: '({ y, x }, gpu) => { y[gpu.threadIdx.x] = gpu.block.sum(x[gpu.threadIdx.x]); }',
} as const;
const tree = readKernel(source);

/** @param known the block that the compiler assumes. */
function run(threads: number, known: readonly [number, number, number] | undefined): string {
  const x = Float32Array.from({ length: threads }, (_, at) => at + 1);
  const {
    of,
    emitted: { ptx },
  } = runKernel(tree, {
    values: { x, y: new Float32Array(threads) },
    block: [threads],
    target: known === undefined ? {} : { block: known },
  });
  expect([...of<Float32Array>('y')]).toEqual(
    Array<number>(threads).fill((threads * (threads + 1)) / 2),
  );
  return ptx;
}

test.each([32, 256, 1024])('of %i threads', (threads) => {
  const ptx = run(threads, [threads, 1, 1]);
  expect(ptx).not.toContain('selp');
  // The reduction of each warp, and of their results.
  expect(ptx.match(/shfl\.sync.*, 31, -1;/g)).toHaveLength(5 + Math.log2(threads / 32));
  expect(ptx.match(/bar\.sync/g)).toHaveLength(1);
});

test('has one more barrier where it may run again', () => {
  const again = readKernel({
    ...source,
    text:
      '({ y, x }, gpu) => { for (let i = 0; i < 2; i++) y[gpu.threadIdx.x] = ' +
      'gpu.block.sum(x[gpu.threadIdx.x]); }',
  });
  const {
    emitted: { ptx },
  } = runKernel(again, {
    values: { x: new Float32Array(64), y: new Float32Array(64) },
    block: [64],
    target: { block: [64, 1, 1] },
  });
  expect(ptx.match(/bar\.sync/g)!.length).toBeGreaterThan(1);
});

test('one after another waits for the earlier one’s reads, also within a function', () => {
  const total = { text: '(v, gpu) => gpu.block.sum(v)', uses: {} };
  const text =
    '({ y, x }, gpu) => { const t = gpu.threadIdx.x; let v = x[t]; v = v - gpu.total(v) / ' +
    '128; v = gpu.total(v * v); y[t] = v + gpu.block.sum(1); }';
  const tree = readKernel({ ...source, text, uses: { total } });
  const x = Float32Array.from({ length: 128 }, (_, at) => at);
  for (const block of [[128, 1, 1] as const, undefined]) {
    const {
      of,
      emitted: { ptx },
    } = runKernel(tree, {
      values: { x, y: new Float32Array(128) },
      block: [128],
      target: block === undefined ? {} : { block },
    });
    expect([...of<Float32Array>('y')]).toEqual(Array<number>(128).fill(174752 + 128));
    // One barrier for the first reduction of f32, two for the second, and one for that of i32,
    // which has memory of its own.
    if (block !== undefined) expect(ptx.match(/bar\.sync/g)).toHaveLength(4);
  }
});

someOf(
  2,
  test,
)([
  ['sum', 'f32', Float32Array],
  ['max', 'f32', Float32Array],
  ['min', 'f32', Float32Array],
  ['sum', 'i32', Int32Array],
  ['max', 'i32', Int32Array],
  ['min', 'u32', Uint32Array],
  ['max', 'i64', BigInt64Array],
  ['min', 'u64', BigUint64Array],
  ['sum', 'f64', Float64Array],
] as const)(
  '%s of %s is the same for any number of threads, known to the compiler or not',
  (of, storage, array) => {
    const signature = Object.fromEntries(
      (['y', 'x'] as const).map((name) => [
        name,
        {
          kind: 'tensor',
          element: { storage },
          access: name === 'y' ? 'output' : 'input',
          rank: 1,
        } as const,
      ]),
    );
    const reduce = readKernel({
      ...source,
      signature,
      text: `({ y, x }, gpu) => { y[gpu.threadIdx.x] = gpu.block.${of}(x[gpu.threadIdx.x]); }`,
    });
    for (const threads of [1, 8, 32, 40, 64, 96, 256, 352, 1000, 1024]) {
      const wide = storage === 'i64' || storage === 'u64';
      const values = Array.from({ length: threads }, (_, at) =>
        storage.startsWith('f')
          ? Math.sin(at * 7)
          : ((at * 7919) % 1000) + (storage.startsWith('i') ? -700 : 5),
      );
      const x = (array as Float32ArrayConstructor).from(
        values.map((value) => (wide ? BigInt(value) : value)) as number[],
      );
      const results = [[threads, 1, 1] as const, undefined].map((known) => {
        const ran = runKernel(reduce, {
          values: { x, y: new array(threads) },
          block: [threads],
          target: known === undefined ? {} : { block: known },
        });
        return [...ran.of<Float32Array>('y')];
      });
      expect(results[1]).toEqual(results[0]);
      expect(new Set(results[0]).size).toBe(1);
      const exact = of === 'sum' ? values.reduce((a, b) => a + b, 0) : Math[of](...values);
      expect(Number(results[0]![0])).toBeCloseTo(exact, storage === 'f32' ? 3 : 6);
    }
  },
);

test.each([48, 1000])('of %i threads, or of an unknown number, checks for partners', (threads) => {
  for (const known of [[threads, 1, 1], undefined] as const)
    expect(run(threads, known)).toContain('selp');
});
