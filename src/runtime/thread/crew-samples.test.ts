/** Samples of nvcc on several threads. */
import { describe, expect, test } from 'vitest';

import { sample } from '../../ptx/run-grid.test-support.js';
import { floatBits } from './crew-device.test-support.js';
import type { Param, Size } from './crew-device.test-support.js';
import { scaledRows, someOf } from '../../../test/random-runs.js';
import { crewDevices } from './crew-device.test-support.js';

const WORKERS = [2, 1, 3, 8];

const open = crewDevices();

/**
 * Race-free launches of the samples: their effect on memory does not depend on which thread runs
 * which block.
 */
const SAMPLES: {
  file: string;
  name: string;
  grid: Size;
  block: Size;
  shared?: number;
  params: (at: (words: number) => [number]) => Param[];
}[] = [
  {
    file: 'k01_saxpy',
    name: 'saxpy',
    grid: [40],
    block: [256],
    params: (at) => [10_000, floatBits(2.5), at(10_000), at(10_000)],
  },
  {
    file: 'k04_sgemm',
    name: 'sgemm_tiled',
    grid: [6, 6],
    block: [16, 16],
    params: (at) => [96, 96, 96, at(96 * 96), at(96 * 96), at(96 * 96)],
  },
  {
    file: 'k04_sgemm',
    name: 'sgemm_reg',
    grid: [2, 2],
    block: [256],
    params: (at) => [128, 128, 128, at(128 * 128), at(128 * 128), at(128 * 128)],
  },
  {
    file: 'k03_reduce',
    name: 'reduce_tree',
    grid: [20],
    block: [256],
    shared: 1024,
    params: (at) => [at(10_000), at(20), 10_000],
  },
  {
    file: 'k05_softmax',
    name: 'softmax',
    grid: [24],
    block: [128],
    params: (at) => [at(24 * 300), at(24 * 300), 300],
  },
  {
    file: 'k05_softmax',
    name: 'rms_norm',
    grid: [24],
    block: [128],
    params: (at) => [at(24 * 300), at(300), at(24 * 300), 300, floatBits(1e-5)],
  },
  {
    file: 'k05_softmax',
    name: 'gelu_silu',
    grid: [20],
    block: [256],
    params: (at) => [at(5000), at(5000), at(5000), 5000],
  },
  {
    file: 'k06_hist',
    name: 'hist256',
    grid: [12],
    block: [256],
    params: (at) => [at(5000), at(256), 20_000],
  },
  {
    file: 'k07_scan',
    name: 'scan_block',
    grid: [20],
    block: [256],
    params: (at) => [at(5000), at(5120), at(20), 5000],
  },
  {
    file: 'k08_transpose',
    name: 'transpose',
    grid: [4, 3],
    block: [32, 8],
    params: (at) => [at(10_000), at(10_000), 100, 70],
  },
  {
    file: 'k09_nbody',
    name: 'nbody',
    grid: [4],
    block: [128],
    params: (at) => [at(2048), at(2048), 512, floatBits(0.01), floatBits(0.1)],
  },
  {
    file: 'k10_mandel',
    name: 'mandel',
    grid: [8, 8],
    block: [16, 16],
    params: (at) => [
      at(128 * 128),
      128,
      128,
      floatBits(-2),
      floatBits(-1.5),
      floatBits(3 / 128),
      300,
    ],
  },
  {
    file: 'k11_resize',
    name: 'resize_bilinear',
    grid: [6, 6],
    block: [16, 16],
    params: (at) => [at(64 * 48), at(96 * 96), 64, 48, 90, 90],
  },
  {
    file: 'k12_philox',
    name: 'philox_normal',
    grid: [20],
    block: [64],
    params: (at) => [at(5200), [0x12345678], 1280],
  },
  {
    file: 'k12_philox',
    name: 'mulhi64',
    grid: [20],
    block: [64],
    params: (at) => [at(2600), at(2600), at(2600), 1200],
  },
  { file: 'k13_bitonic', name: 'bitonic_sh', grid: [6], block: [1024], params: (at) => [at(6144)] },
  {
    file: 'k13_bitonic',
    name: 'radix_rank',
    grid: [20],
    block: [64],
    params: (at) => [at(1280), at(1280), 1, 1200],
  },
];

someOf(8, describe)(SAMPLES)('$name', ({ file, name, grid, block, shared, params }) => {
  test('leaves the same bits in memory with any number of workers', { tags: 'scaled' }, () => {
    const results = scaledRows(WORKERS, 2).map((workers) => {
      const device = open(workers);
      const arrays: Int32Array[] = [];
      const values = params((words) => {
        const { at, view } = device.array(Int32Array, words);
        // Finite floats, and small numbers as bytes.
        view.forEach((_, i) => (view[i] = 0x3f000000 + ((i * 2654435761) >>> 9)));
        arrays.push(view);
        return [at];
      });
      device.launch(device.kernel(sample(file), name), grid, block, values, {
        shared: shared ?? 0,
      });
      device.finish();
      return arrays.map((view) => [...view]);
    });
    for (const result of results.slice(1)) expect(result).toEqual(results[0]);
    expect(results[0]!.flat().some((word) => word !== 0)).toBe(true);
  });
});
