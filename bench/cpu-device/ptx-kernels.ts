// Sample kernels on the PTX compiler's two back ends, one thread, no driver: best of several runs.
// node --import tsx bench/cpu-device/ptx-kernels.ts [name…]; on Node 20 with
// --experimental-wasm-relaxed-simd --no-turbo-use-mid-tier-regalloc-for-huge-functions, which the
// device sets itself

import { Grid, sample } from '../../src/ptx/run-grid.test-support.js';
import type { Argument, Launch } from '../../src/ptx/run-grid.test-support.js';

interface Case {
  name: string;
  file: string;
  /** The entry, where it is not the name. */
  kernel?: string;
  /** The amount of work of one run, and its unit per second. */
  work: number;
  unit: string;
  prepare(grid: Grid): { args: Argument[]; launch: Launch };
}

const random = (count: number): Float32Array => {
  let state = 12345;
  return Float32Array.from({ length: count }, () => {
    state = (Math.imul(state, 1103515245) + 12345) >>> 0;
    return state / 2 ** 32;
  });
};
const floats = (grid: Grid, count: number): Argument => ({ i64: grid.put(random(count)).address });
const room = (grid: Grid, bytes: number): Argument => ({ i64: grid.allocate(bytes) });
const ints = (grid: Grid, count: number): Argument => ({
  i64: grid.put(Int32Array.from(random(count), (x) => x * 1000)).address,
});

const CASES: Case[] = [
  {
    name: 'saxpy',
    file: 'k01_saxpy',
    work: (12 * 2 ** 24) / 1e9,
    unit: 'GB/s',
    prepare: (grid) => ({
      args: [{ i32: 2 ** 24 }, { f32: 1.5 }, floats(grid, 2 ** 24), floats(grid, 2 ** 24)],
      launch: { grid: [2 ** 16], block: [256] },
    }),
  },
  {
    name: 'saxpy_stride',
    file: 'k01_saxpy',
    work: (12 * 2 ** 22) / 1e9,
    unit: 'GB/s',
    prepare: (grid) => ({
      args: [{ i64: 2 ** 22 }, { f32: 1.5 }, floats(grid, 2 ** 22), floats(grid, 2 ** 22)],
      launch: { grid: [64], block: [256] },
    }),
  },
  {
    name: 'sgemm_tiled',
    file: 'k04_sgemm',
    work: (2 * 512 ** 3) / 1e9,
    unit: 'GFLOP/s',
    prepare: (grid) => ({
      args: [
        { i32: 512 },
        { i32: 512 },
        { i32: 512 },
        floats(grid, 512 * 512),
        floats(grid, 512 * 512),
        room(grid, 4 * 512 * 512),
      ],
      launch: { grid: [32, 32], block: [16, 16] },
    }),
  },
  {
    name: 'sgemm_reg',
    file: 'k04_sgemm',
    work: (2 * 512 ** 3) / 1e9,
    unit: 'GFLOP/s',
    prepare: (grid) => ({
      args: [
        { i32: 512 },
        { i32: 512 },
        { i32: 512 },
        floats(grid, 512 * 512),
        floats(grid, 512 * 512),
        room(grid, 4 * 512 * 512),
      ],
      launch: { grid: [8, 8], block: [256] },
    }),
  },
  {
    name: 'mandel',
    file: 'k10_mandel',
    work: 1,
    unit: 'images/s',
    prepare: (grid) => ({
      args: [
        room(grid, 4 * 1024 * 1024),
        { i32: 1024 },
        { i32: 1024 },
        { f32: -2 },
        { f32: -1.5 },
        { f32: 3 / 1024 },
        { i32: 256 },
      ],
      launch: { grid: [64, 64], block: [16, 16] },
    }),
  },
  {
    name: 'mandel_rows',
    file: 'k10_mandel',
    kernel: 'mandel',
    work: 1,
    unit: 'images/s',
    prepare: (grid) => ({
      args: [
        room(grid, 4 * 1024 * 1024),
        { i32: 1024 },
        { i32: 1024 },
        { f32: -2 },
        { f32: -1.5 },
        { f32: 3 / 1024 },
        { i32: 256 },
      ],
      launch: { grid: [32, 128], block: [32, 8] },
    }),
  },
  {
    name: 'bitonic_sh',
    file: 'k13_bitonic',
    work: 2 ** 18 / 1e6,
    unit: 'M/s',
    prepare: (grid) => ({
      args: [ints(grid, 2 ** 18)],
      launch: { grid: [256], block: [1024] },
    }),
  },
  {
    name: 'reduce_sum',
    file: 'k03_reduce',
    work: 2 ** 22 / 1e6,
    unit: 'M/s',
    prepare: (grid) => ({
      args: [floats(grid, 2 ** 22), room(grid, 4096), { i32: 2 ** 22 }],
      launch: { grid: [64], block: [256] },
    }),
  },
  {
    name: 'reduce_tree',
    file: 'k03_reduce',
    work: 2 ** 20 / 1e6,
    unit: 'M/s',
    prepare: (grid) => ({
      args: [ints(grid, 2 ** 20), room(grid, 65536), { i32: 2 ** 20 }],
      launch: { grid: [2048], block: [256], dynamicShared: 1024 },
    }),
  },
  {
    name: 'softmax',
    file: 'k05_softmax',
    work: 2 ** 20 / 1e6,
    unit: 'M/s',
    prepare: (grid) => ({
      args: [floats(grid, 2 ** 20), room(grid, 4 * 2 ** 20), { i32: 1024 }],
      launch: { grid: [1024], block: [256] },
    }),
  },
  {
    name: 'rms_norm',
    file: 'k05_softmax',
    work: 2 ** 20 / 1e6,
    unit: 'M/s',
    prepare: (grid) => ({
      args: [
        floats(grid, 2 ** 20),
        floats(grid, 1024),
        room(grid, 4 * 2 ** 20),
        { i32: 1024 },
        { f32: 1e-5 },
      ],
      launch: { grid: [1024], block: [256] },
    }),
  },
  {
    name: 'hist256',
    file: 'k06_hist',
    work: 2 ** 22 / 1e6,
    unit: 'M/s',
    prepare: (grid) => ({
      args: [
        { i64: grid.put(Uint8Array.from(random(2 ** 22), (x) => x * 256)).address },
        room(grid, 1024),
        { i32: 2 ** 22 },
      ],
      launch: { grid: [64], block: [256] },
    }),
  },
  {
    name: 'scan_block',
    file: 'k07_scan',
    work: 2 ** 20 / 1e6,
    unit: 'M/s',
    prepare: (grid) => ({
      args: [ints(grid, 2 ** 20), room(grid, 4 * 2 ** 20), room(grid, 4 * 4096), { i32: 2 ** 20 }],
      launch: { grid: [4096], block: [256] },
    }),
  },
  {
    name: 'transpose',
    file: 'k08_transpose',
    work: 2 ** 20 / 1e6,
    unit: 'M/s',
    prepare: (grid) => ({
      args: [floats(grid, 2 ** 20), room(grid, 4 * 2 ** 20), { i32: 1024 }, { i32: 1024 }],
      launch: { grid: [32, 32], block: [32, 8] },
    }),
  },
  {
    name: 'nbody',
    file: 'k09_nbody',
    work: 2048 ** 2 / 1e6,
    unit: 'M pairs/s',
    prepare: (grid) => ({
      args: [
        floats(grid, 4 * 2048),
        floats(grid, 4 * 2048),
        { i32: 2048 },
        { f32: 0.01 },
        { f32: 0.01 },
      ],
      launch: { grid: [16], block: [128] },
    }),
  },
  // Halves, and what becomes of them; bytes.
  {
    name: 'vadd_half',
    file: 'k02_half_bf16',
    work: 2 ** 22 / 1e6,
    unit: 'M/s',
    prepare: (grid) => ({
      args: [
        { i32: 2 ** 22 },
        floats(grid, 2 ** 21),
        floats(grid, 2 ** 21),
        room(grid, 2 * 2 ** 22),
      ],
      launch: { grid: [2 ** 14], block: [256] },
    }),
  },
  {
    name: 'vadd_half2',
    file: 'k02_half_bf16',
    work: 2 ** 22 / 1e6,
    unit: 'M/s',
    prepare: (grid) => ({
      args: [
        { i32: 2 ** 21 },
        floats(grid, 2 ** 21),
        floats(grid, 2 ** 21),
        room(grid, 2 * 2 ** 22),
      ],
      launch: { grid: [2 ** 13], block: [256] },
    }),
  },
  {
    name: 'vadd_bf16',
    file: 'k02_half_bf16',
    work: 2 ** 22 / 1e6,
    unit: 'M/s',
    prepare: (grid) => ({
      args: [
        { i32: 2 ** 22 },
        floats(grid, 2 ** 21),
        floats(grid, 2 ** 21),
        room(grid, 2 * 2 ** 22),
      ],
      launch: { grid: [2 ** 14], block: [256] },
    }),
  },
  {
    name: 'vmix',
    file: 'k02_half_bf16',
    work: 2 ** 22 / 1e6,
    unit: 'M/s',
    prepare: (grid) => ({
      args: [
        { i32: 2 ** 22 },
        floats(grid, 2 ** 22),
        floats(grid, 2 ** 21),
        room(grid, 4 * 2 ** 22),
      ],
      launch: { grid: [2 ** 14], block: [256] },
    }),
  },
  {
    name: 'cvts',
    file: 'k02_half_bf16',
    work: 2 ** 22 / 1e6,
    unit: 'M/s',
    prepare: (grid) => ({
      args: [
        { i32: 2 ** 22 },
        floats(grid, 2 ** 22),
        room(grid, 2 * 2 ** 22),
        room(grid, 2 * 2 ** 22),
        room(grid, 2 ** 22),
      ],
      launch: { grid: [2 ** 14], block: [256] },
    }),
  },
];

const chosen = process.argv.slice(2);
for (const test of CASES) {
  if (chosen.length && !chosen.includes(test.name)) continue;
  const rates = [false, true].map((simd) => {
    const grid = new Grid(sample(test.file), { simd, pages: 4096 });
    const { args, launch } = test.prepare(grid);
    const name = test.kernel ?? test.name;
    let best = Infinity;
    for (let run = 0; run < 6; run++) {
      const start = performance.now();
      const status = grid.repeat(name, args, launch);
      best = Math.min(best, performance.now() - start);
      if (status !== 0) throw new Error(`${test.name} ended with status ${status}`);
    }
    return { rate: (test.work / best) * 1000, best, lanes: grid.width(name, launch) };
  });
  const [scalar, lanes] = rates as [(typeof rates)[0], (typeof rates)[0]];
  console.log(
    `${test.name.padEnd(14)} scalar ${scalar.best.toFixed(2).padStart(9)} ms ` +
      `${scalar.rate.toFixed(2).padStart(8)} ${test.unit}   lanes(${lanes.lanes}) ` +
      `${lanes.best.toFixed(2).padStart(9)} ms ${lanes.rate.toFixed(2).padStart(8)} ` +
      `${test.unit}   x${(scalar.best / lanes.best).toFixed(2)}`,
  );
}
