/** Grids that hang: which are errors, and what the errors say. */
import { describe, expect, test } from 'vitest';

import { messageOf } from '../../driver/cpu/testing/open-fake.js';
import type { CrewDevice } from './crew-device.test-support.js';
import { someOf } from '../../../test/random-runs.js';
import { crewDevices, kernel } from './crew-device.test-support.js';

const open = crewDevices();

/** Waits until the word at p0 is p1; the words that it reads meanwhile do not change. */
const AWAIT = kernel(
  'awaits',
  'pu',
  `
    add.u64 %rd10, %rd0, 0;
  wait:
    ld.volatile.global.u32 %r10, [%rd10];
    setp.ne.u32 %p0, %r10, %r1;
    @%p0 bra wait;`,
);

someOf(1, describe)([2, 1, 3])('grids that hang, with %i workers', (workers) => {
  const limit = 400;
  const hanging = (): CrewDevice => open(workers, {}, { stallLimit: limit });

  test('the error of blocks in a deadlock has the places where they wait', () => {
    const device = hanging();
    const text = kernel(
      'abba',
      'p',
      `
      // Block 0 takes lock 0 and waits for lock 1, block 1 the reverse, once both have the first.
      mul.wide.u32 %rd10, %r20, 4; add.u64 %rd11, %rd0, %rd10;
      xor.b32 %r10, %r20, 1; mul.wide.u32 %rd12, %r10, 4; add.u64 %rd13, %rd0, %rd12;
      atom.global.exch.b32 %r11, [%rd11], 1;
    both:
      ld.acquire.gpu.global.u32 %r12, [%rd13];
      setp.eq.u32 %p0, %r12, 0;
      @%p0 bra both;
    want:
      atom.global.cas.b32 %r13, [%rd13], 0, 1;
      setp.ne.u32 %p1, %r13, 0;
      @%p1 bra want;`,
    );
    const line = text.split('\n').findIndex((each) => each.includes('cas.b32')) + 1;
    const locks = device.array(Int32Array, 2);
    device.launch(device.kernel(text, 'abba'), [2], [3], [[locks.at]]);
    const message = messageOf(() => device.finish());
    expect(message).toContain('CUDA_ERROR_LAUNCH_TIMEOUT');
    for (const block of [0, 1])
      expect(message).toContain(
        `block (${block},0,0): 3 threads from thread (0,0,0) on at PTX line ${line}`,
      );
  });

  test('a grid sync that one block does not come to', () => {
    const device = hanging();
    const text = kernel(
      'absent',
      'p',
      `
      setp.eq.u32 %p0, %r20, 3;
      @%p0 ret;
      red.release.gpu.global.add.u32 [%rd0], 1;
    wait:
      ld.acquire.gpu.global.u32 %r10, [%rd0];
      setp.lt.u32 %p1, %r10, %r23;
      @%p1 bra wait;`,
    );
    const count = device.array(Int32Array, 1);
    device.launch(device.kernel(text, 'absent'), [12], [1], [[count.at]], { cooperative: true });
    const message = messageOf(() => device.finish());
    expect(message).toMatch(
      /CUDA_ERROR_LAUNCH_TIMEOUT.*absent: the blocks wait for each other.*; 3 more blocks wait/,
    );
    expect(message).not.toContain('block (3,0,0)');
    expect(message).not.toContain('have not begun');
  });

  test(
    'a grid that computes, reads the clock, or waits for another one that does, is no error',
    { tags: 'thorough' },
    () => {
      const device = hanging();
      const busy = device.kernel(
        kernel(
          'busy',
          'ppu',
          `
      mov.u64 %rd10, %globaltimer; mul.wide.u32 %rd11, %r2, 1000000; add.u64 %rd11, %rd10, %rd11;
    again:
      mov.u64 %rd12, %globaltimer;
      setp.lt.u64 %p0, %rd12, %rd11;
      @%p0 bra again;
      st.release.gpu.global.u32 [%rd0], 1;`,
        ),
        'busy',
      );
      const flag = device.array(Int32Array, 1);
      const other = device.newStream();
      device.launch(device.kernel(AWAIT, 'awaits'), [2], [1], [[flag.at], 1]);
      device.launch(busy, [1], [1], [[flag.at], [flag.at], 3 * limit], { stream: other });
      device.finish();
      device.finish(other);
      const counts = device.kernel(
        kernel(
          'counts',
          'pu',
          `
      mov.u32 %r10, 0; mov.u64 %rd10, 0; mov.u64 %rd12, 2000000000;
    again:
      add.u64 %rd10, %rd10, 1;
      ld.volatile.global.u32 %r11, [%rd0];
      setp.eq.u32 %p0, %r11, %r1;
      @%p0 bra out;
      setp.lt.u64 %p1, %rd10, %rd12;
      @%p1 bra again;
    out:`,
        ),
        'counts',
      );
      device.launch(counts, [2], [1], [[flag.at], 5]);
      const until = performance.now() + 3 * limit;
      while (performance.now() < until) device.cu.poll(1000);
      Atomics.store(flag.view, 0, 5);
      device.finish();
    },
  );

  test.each([
    ['an atomic', 'atom.global.add.u32 %r10, [%rd0], 0;'],
    ['a fence', 'membar.gl; ld.volatile.global.u32 %r10, [%rd0];'],
  ])(
    'a thousand blocks, which take longer for a turn each than a tenth of the limit: %s',
    { tags: 'thorough' },
    (_, poll) => {
      const device = hanging();
      const flag = device.array(Int32Array, 1);
      const awaits = kernel('many', 'p', `wait: ${poll} setp.eq.u32 %p0, %r10, 0; @%p0 bra wait;`);
      device.launch(device.kernel(awaits, 'many'), [1000], [64], [[flag.at]]);
      expect(messageOf(() => device.finish())).toMatch(
        /CUDA_ERROR_LAUNCH_TIMEOUT.*many: the blocks wait for each other.*; \d+ have not begun/,
      );
    },
  );

  test('a grid that the host releases in time, or that may wait for the host, is no error', () => {
    const device = open(workers, {}, { stallLimit: Infinity });
    const flag = device.array(Int32Array, 1);
    device.launch(device.kernel(AWAIT, 'awaits'), [4], [2], [[flag.at], 7]);
    const until = performance.now() + 2 * limit;
    while (performance.now() < until) device.cu.poll(1000);
    Atomics.store(flag.view, 0, 7);
    device.finish();
    expect(flag.view[0]).toBe(7);
  });
});

test('a block whose threads wait at different barriers is an error with the lines of both', () => {
  const device = open(2);
  const text = kernel(
    'apart',
    '',
    `
    setp.lt.u32 %p0, %r21, 3;
    @%p0 bra first;
    barrier.sync 1, 64;
    ret;
  first:
    barrier.sync 2, 64;`,
  );
  const line = (part: string): number =>
    text.split('\n').findIndex((each) => each.includes(part)) + 1;
  device.launch(device.kernel(text, 'apart'), [3], [32], []);
  const message = messageOf(() => device.finish());
  expect(message).toMatch(/CUDA_ERROR_LAUNCH_FAILED.*apart: every thread of the block waits/);
  expect(message).toContain(
    `3 threads from thread (0,0,0) on at PTX line ${line('barrier.sync 2')}`,
  );
  expect(message).toContain(
    `29 threads from thread (3,0,0) on at PTX line ${line('barrier.sync 1')}`,
  );
});
