/** A reduction over a block whose warps are known to be whole asks no lane whether it has a partner. */
import { expect, test } from 'vitest';
import { readKernel } from '../../../src/kernel/read/read-kernel.js';
import { runKernel } from './run-kernel.js';

const tree = readKernel({
  name: 'sums', uses: {}, indexType: 'i32', signature: {
    y: { kind: 'tensor', element: { storage: 'f32' }, access: 'output', rank: 1 }, x: { kind: 'tensor', element: { storage: 'f32' }, access: 'input', rank: 1 },
  },
  text: '({ y, x }, gpu) => { y[gpu.threadIdx.x] = gpu.block.sum(x[gpu.threadIdx.x]); }',
});

/** @param known what the compiler knows of the block. */
function run(threads: number, known: readonly [number, number, number] | undefined): string {
  const x = Float32Array.from({ length: threads }, (_, at) => at + 1);
  const { of, emitted: { ptx } } = runKernel(tree, { values: { x, y: new Float32Array(threads) }, block: [threads], target: known === undefined ? {} : { block: known } });
  expect([...of<Float32Array>('y')]).toEqual(Array<number>(threads).fill((threads * (threads + 1)) / 2));
  return ptx;
}

test.each([32, 256, 1024])('of %i threads', (threads) => {
  const ptx = run(threads, [threads, 1, 1]);
  expect(ptx).not.toContain('selp');
  expect(ptx.match(/shfl\.sync.*, 31, -1;/g)).toHaveLength(5);
});

test.each([48, 1000])('but of %i threads, and where they are not known, it does', (threads) => {
  for (const known of [[threads, 1, 1], undefined] as const) expect(run(threads, known)).toContain('selp');
});
