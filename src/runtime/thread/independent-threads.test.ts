// Kernels of independent-threads.cu, as NVRTC compiles them, on one and more threads that run
// blocks, against JavaScript.

import { readFileSync } from 'node:fs';
import { afterEach, describe, expect, test } from 'vitest';

import { messageOf } from '../../driver/cpu/testing/open-fake.js';
import { CrewDevice } from './crew-device.test-support.js';
import type { Param } from './crew-device.test-support.js';
import { someOf } from '../../../test/random-runs.js';

const TEXT = readFileSync(new URL('./independent-threads.ptx', import.meta.url), 'utf8');
const opened: CrewDevice[] = [];

afterEach(() => opened.splice(0).forEach((device) => device.close()));

const count = <T>(length: number, value: (index: number) => T): T[] =>
  Array.from({ length }, (_, index) => value(index));
const sum = (values: readonly number[]): number =>
  values.reduce((total, value) => total + value, 0);

/** The function depth() of the source. */
function depth(n: number, k: number): number {
  if (n <= 0) return k;
  const deeper = depth(n - 1, k + 1);
  return n & 1 ? (deeper + depth(n - 3, k)) | 0 : deeper ^ n;
}

/** Each value is three times the next block's and the block's number. */
const chain = count(40, () => 1);
for (let block = 38; block >= 0; block--) chain[block] = (chain[block + 1]! * 3 + block) & 0xfffff;

const writers = sum(
  count(6 * 64, (index) => (((index % 64) + Math.floor(index / 64)) % 5 === 0 ? 1 : 0)),
);

interface Case {
  kernel: string;
  grid: number;
  block: number;
  /** Lengths of arrays of zeros, in order. */
  arrays: readonly number[];
  rest?: readonly Param[];
  /** The wanted contents by position of the array. */
  wanted: Readonly<Record<number, readonly number[]>>;
}

const CASES: readonly Case[] = [
  {
    kernel: 'naive_lock',
    grid: 7,
    block: 67,
    arrays: [1, 1],
    rest: [5],
    wanted: { 0: [0], 1: [7 * 67 * 5] },
  },
  {
    kernel: 'ticket_lock',
    grid: 10,
    block: 60,
    arrays: [1, 1, 600, 1],
    wanted: { 2: count(600, (index) => index) },
  },
  {
    kernel: 'shared_lock',
    grid: 9,
    block: 96,
    arrays: [9],
    wanted: { 0: count(9, () => (96 * 95) / 2) },
  },
  {
    kernel: 'readers_writers',
    grid: 6,
    block: 64,
    arrays: [1, 1, 1, 1, 1],
    wanted: { 1: [writers * 4], 2: [writers * 4], 3: [0], 4: [(384 - writers) * 4] },
  },
  {
    kernel: 'philosophers',
    grid: 5,
    block: 32,
    arrays: [130, 130],
    rest: [130],
    wanted: { 0: count(130, () => 0), 1: count(130, () => 5) },
  },
  { kernel: 'reverse_chain', grid: 40, block: 32, arrays: [40, 40], wanted: { 1: chain } },
  {
    kernel: 'lane_ring',
    grid: 1,
    block: 64,
    arrays: [192],
    wanted: { 0: count(192, (index) => index % 64) },
  },
  { kernel: 'lane0_waits_for_31', grid: 1, block: 32, arrays: [1], wanted: { 0: [7] } },
  {
    kernel: 'bounded_queue',
    grid: 1,
    block: 64,
    arrays: [1],
    rest: [50],
    wanted: { 0: [sum(count(50, (index) => index * index))] },
  },
  {
    kernel: 'named',
    grid: 1,
    block: 64,
    arrays: [32],
    rest: [6],
    wanted: { 0: count(32, (lane) => sum(count(6, (round) => round * 32 + 31 - lane))) },
  },
  {
    kernel: 'nested',
    grid: 1,
    block: 128,
    arrays: [128],
    wanted: {
      0: count(128, (thread) =>
        thread < 32 ? thread ^ 7 : thread < 64 ? thread + 16 : thread + (thread ^ 31),
      ),
    },
  },
  {
    kernel: 'early_exit',
    grid: 1,
    block: 100,
    arrays: [100],
    wanted: { 0: count(100, (thread) => (thread % 4 === 3 ? 0 : 75 * 100 + 25)) },
  },
  {
    kernel: 'loop_until_all',
    grid: 1,
    block: 100,
    arrays: [100],
    wanted: { 0: count(100, (thread) => (thread * 3) % 11) },
  },
  {
    kernel: 'subset_syncwarp',
    grid: 1,
    block: 32,
    arrays: [32],
    wanted: {
      0: count(32, (thread) =>
        thread < 11 ? 2 * ((((thread + 5) % 11) + 1) % 11) : 11 + ((thread - 10) % 21),
      ),
    },
  },
  {
    kernel: 'recursion_depths',
    grid: 3,
    block: 50,
    arrays: [150],
    wanted: { 0: count(150, (index) => depth((index % 50) % 13, Math.floor(index / 50))) },
  },
];

someOf(1, describe)([2, 1, 3])('with %i workers', (workers) => {
  const open = (options = {}): CrewDevice => {
    const device = new CrewDevice(workers, {}, options);
    opened.push(device);
    return device;
  };

  someOf(13, test)(CASES)('$kernel', ({ kernel, grid, block, arrays, rest = [], wanted }) => {
    const device = open();
    const buffers = arrays.map((length) => device.array(Int32Array, length));
    device.launch(
      device.kernel(TEXT, kernel),
      [grid],
      [block],
      [...buffers.map(({ at }) => [at] as const), ...rest],
    );
    device.finish();
    for (const [index, values] of Object.entries(wanted))
      expect([...buffers[Number(index)]!.view]).toEqual(values);
  });

  someOf(
    2,
    test,
  )([
    ['crossed_locks', 2],
    ['missed_barrier', 1],
  ])('%s ends with where its threads wait', (kernel, length) => {
    const device = open({ stallLimit: 300 });
    const { at } = device.array(Int32Array, length);
    device.launch(device.kernel(TEXT, kernel), [1], [length === 2 ? 2 : 40], [[at]]);
    expect(
      messageOf(() => {
        device.finish();
      }),
    ).toMatch(
      new RegExp(
        `LAUNCH_TIMEOUT.*${kernel}: the blocks wait for each other.*thread.*at PTX line \\d+`,
      ),
    );
  });
});
