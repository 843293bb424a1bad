// Blocks that run side by side, on one thread and on several: their results, that they take turns,
// and how they fail.

import { afterEach, describe, expect, test } from 'vitest';

import { messageOf } from '../../driver/cpu/testing/open-fake.js';
import { kernelText } from '../../ptx/run-grid.test-support.js';
import { CrewDevice } from './crew-device.test-support.js';
import { someOf } from '../../../test/random-runs.js';

const opened: CrewDevice[] = [];

function open(workers: number, options = {}): CrewDevice {
  const device = new CrewDevice(workers, {}, { lanes: 'all', ...options });
  opened.push(device);
  return device;
}

afterEach(() => opened.splice(0).forEach((device) => device.close()));

/**
 * Each block sums words, a grid apart, of n words, and writes the sum and two tickets, drawn at its
 * beginning and at its end. `last` is one more instruction of the loop, which finds the index of
 * the word in %r24.
 */
const summing = (last = ''): string =>
  kernelText(
    'sums',
    '.param .u64 p0, .param .u64 p1, .param .u64 p2, .param .u32 p3',
    `
  .reg .pred %p<8>; .reg .b32 %r<40>; .reg .b64 %rd<20>;
  .shared .align 4 .b32 sum;
  ld.param.u64 %rd0, [p0]; ld.param.u64 %rd1, [p1]; ld.param.u64 %rd2, [p2]; ld.param.u32 %r3, [p3];
  mov.u32 %r1, %nctaid.y; mov.u32 %r2, %ctaid.y; mov.u32 %r20, %ctaid.x;
  mov.u32 %r21, %tid.x; mov.u32 %r22, %ntid.x; mov.u32 %r23, %nctaid.x;
  mad.lo.u32 %r20, %r2, %r23, %r20; mul.lo.u32 %r23, %r23, %r1;
  mad.lo.u32 %r24, %r20, %r22, %r21; mul.lo.u32 %r25, %r22, %r23;
  mul.wide.u32 %rd3, %r20, 4; add.s64 %rd4, %rd1, %rd3;
  mul.wide.u32 %rd5, %r20, 8; add.s64 %rd6, %rd2, %rd5;
  mov.u32 %r26, 0;
  setp.ne.u32 %p0, %r21, 0;
  @%p0 bra begun;
  st.shared.u32 [sum], %r26;
  atom.global.add.u32 %r30, [%rd2], 1; st.global.u32 [%rd6+8], %r30;
begun:
  bar.sync 0;
  setp.ge.u32 %p1, %r24, %r3;
  @%p1 bra done;
again:
  mul.wide.u32 %rd10, %r24, 4; add.s64 %rd11, %rd0, %rd10;
  ld.global.u32 %r27, [%rd11]; add.u32 %r26, %r26, %r27;
  ${last}
  add.u32 %r24, %r24, %r25; setp.lt.u32 %p2, %r24, %r3;
  @%p2 bra again;
done:
  red.shared.add.u32 [sum], %r26;
  bar.sync 0;
  @%p0 bra end;
  ld.shared.u32 %r28, [sum]; st.global.u32 [%rd4], %r28;
  atom.global.add.u32 %r31, [%rd2], 1; st.global.u32 [%rd6+12], %r31;
end:
  ret;`,
  );

interface Run {
  words: number;
  grid: readonly [number, number?];
  threads: number;
}

/** Runs a launch. `before` is called when its memory and its parameters are ready. */
function run(
  device: CrewDevice,
  { words, grid, threads }: Run,
  before: () => void = () => undefined,
): { sums: number[]; tickets: number[][]; wanted: number[] } {
  const [x, y = 1] = grid;
  const blocks = x * y;
  const values = device.array(Uint32Array, words);
  const sums = device.array(Uint32Array, blocks);
  const tickets = device.array(Uint32Array, 2 + 2 * blocks);
  const wanted = Array.from({ length: blocks }, () => 0);
  values.view.forEach((_, i) => {
    const value = Math.imul(i, 0x9e3779b1) >>> 12;
    const block = Math.floor(i / threads) % blocks;
    values.view[i] = value;
    wanted[block] = (wanted[block]! + value) >>> 0;
  });
  sums.view.fill(0);
  tickets.view.fill(0);
  const kernel = device.kernel(summing(), 'sums');
  before();
  device.launch(kernel, [x, y], [threads], [[values.at], [sums.at], [tickets.at], words]);
  device.finish();
  return {
    sums: [...sums.view],
    wanted,
    tickets: Array.from({ length: blocks }, (_, block) => [
      ...tickets.view.subarray(2 + 2 * block, 4 + 2 * block),
    ]),
  };
}

describe.each([1, 2, 3])('with %i workers', (workers) => {
  someOf(
    5,
    test,
  )<Run>([
    { words: 200_000, grid: [64], threads: 256 },
    { words: 200_001, grid: [64], threads: 256 },
    // Some threads of a unit have one turn more than others, in number as many as a turn of blocks
    // covers, or twice as many.
    ...[6, 8, 12, 16].map((turns): Run => ({
      words: 64 * 256 * turns + 97,
      grid: [64],
      threads: 256,
    })),
    { words: 99_991, grid: [12], threads: 96 },
    { words: 50_000, grid: [7], threads: 70 },
    { words: 50_000, grid: [8, 3], threads: 32 },
    { words: 50_000, grid: [1], threads: 256 },
    { words: 100, grid: [40], threads: 64 },
    { words: 300_000, grid: [250], threads: 64 },
  ])('$words words in $grid blocks of $threads', (shape) => {
    const { sums, wanted, tickets } = run(open(workers), shape);
    expect(sums).toEqual(wanted);
    expect(tickets.flat().sort((a, b) => a - b)).toEqual(tickets.flat().map((_, index) => index));
  });

  test('a fault names the block and the thread that met it', () => {
    const device = open(workers);
    // Word 70,000 is that of thread 112 of block 17 of 64; the thread reads out of bounds.
    const text = summing(
      'setp.eq.u32 %p3, %r24, 70000; @%p3 ld.global.u32 %r29, [%rd11+0x7fff0000];',
    );
    const words = 100_000;
    const [values, sums, tickets] = [
      device.array(Uint32Array, words),
      device.array(Uint32Array, 64),
      device.array(Uint32Array, 130),
    ];
    device.launch(
      device.kernel(text, 'sums'),
      [64],
      [256],
      [[values.at], [sums.at], [tickets.at], words],
    );
    const message = messageOf(() => {
      device.finish();
    });
    expect(message).toMatch(/block \(17,0,0\)/);
    expect(message).toMatch(/thread \(112,0,0\)/);
  });
});

test('blocks take turns: all have begun before one ends', () => {
  const { tickets } = run(open(1), { words: 400_000, grid: [32], threads: 256 });
  expect(Math.max(...tickets.map(([begun]) => begun!))).toBeLessThan(
    Math.min(...tickets.map(([, ended]) => ended!)),
  );
});

test('thread by thread they run one after the other and give the same', () => {
  const shape = { words: 100_000, grid: [32], threads: 256 } as const;
  const { sums, wanted, tickets } = run(open(1, { lanes: 'none' }), shape);
  expect(sums).toEqual(wanted);
  expect(tickets.every(([begun, ended]) => ended! - begun! === 1)).toBe(true);
});

test('where memory is left for one block only, they run one after the other', () => {
  const device = open(1, { memoryBytes: 2 ** 23 });
  const { sums, wanted, tickets } = run(
    device,
    { words: 100_000, grid: [32], threads: 256 },
    () => {
      let last = 0;
      for (let bytes = 2 ** 22; bytes >= 2 ** 15; bytes /= 2) {
        try {
          for (;;) last = device.cu.cuMemAlloc(bytes);
        } catch (error) {
          expect(String(error)).toContain('OUT_OF_MEMORY');
        }
      }
      device.cu.cuMemFree(last);
    },
  );
  expect(sums).toEqual(wanted);
  expect(tickets.every(([begun, ended]) => ended! - begun! === 1)).toBe(true);
});
