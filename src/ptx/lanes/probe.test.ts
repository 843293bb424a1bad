import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { compilePtx } from '../compile.js';
import { someOf } from '../../../test/random-runs.js';

const memory = new WebAssembly.Memory({ initial: 1, maximum: 65536, shared: true });

/** Its exported functions, which call a probe that returns its rounds plus one. */
function exportsOf(
  file: string,
  kernel: string,
): Map<string, (block: number, rounds: number) => number> {
  const module = compilePtx(
    readFileSync(new URL(`../../../test/ptx/samples/sm_80/${file}.ptx`, import.meta.url), 'utf8'),
    { simd: true },
  );
  const lanes = module.kernels.find(({ name }) => name === kernel)!.inLanes([256, 1, 1]);
  if (typeof lanes === 'string') throw new Error(lanes);
  const { exports } = new WebAssembly.Instance(
    new WebAssembly.Module(lanes.wasm as Uint8Array<ArrayBuffer>),
    {
      env: {
        memory,
        dataBase: new WebAssembly.Global({ value: 'i32', mutable: false }, 0),
        probe: (rounds: number) => rounds + 1,
      },
    },
  );
  return new Map(Object.entries(exports) as [string, (block: number, rounds: number) => number][]);
}

describe('exported functions in lanes call the probe if there is no block', () => {
  someOf(
    3,
    it,
  )([
    ['k01_saxpy', 'saxpy', 1],
    ['k08_transpose', 'transpose', 1],
    ['k10_mandel', 'mandel', 1],
    ['k06_hist', 'spin', 1],
    ['k15_coop', 'cg_grid', 1],
    ['k03_reduce', 'reduce_sum', 2],
  ])('%s, %s', (file, kernel, count) => {
    const found = exportsOf(file, kernel);
    expect(found.size).toBe(count);
    for (const run of found.values()) expect(run(0, 41)).toBe(42);
  });
});
