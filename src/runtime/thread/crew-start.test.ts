/** When the threads of a crew are started, look for work, and sleep. */
import { readdirSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from 'vitest';

import { WORD } from '../../driver/cpu/crew/control.js';
import { startMember } from './start-crew.js';
import { CrewDevice, crewDevices, kernel } from './crew-device.test-support.js';

const open = crewDevices();

test(
  'after a grid no more members look for work than there are processors to spare, and soon ' +
    'all sleep',
  async () => {
    let words: Int32Array | undefined;
    const device = open(4, {
      processors: 4,
      start: (start) => {
        words = new Int32Array(start.control);
        return startMember(start);
      },
    });
    const touch = device.kernel(kernel('touch', 'p', 'red.global.add.u32 [%rd0], 1;'), 'touch');
    const count = device.array(Int32Array, 1);
    const seen = new Set<number>();
    // On a busy machine other threads may run while members would look for work: then it takes more
    // grids to see one that does.
    for (let i = 1; i <= 50 || (i <= 2000 && Math.max(...seen) === 0); i++) {
      device.launch(touch, [200], [1], [[count.at]]);
      device.finish();
      expect(count.view[0]).toBe(200 * i);
      // A member that is refused is counted for an instant, too.
      for (let looks = 0; looks < 2000; looks++) seen.add(Atomics.load(words!, WORD.looking));
      if (i % 10 !== 0) continue;
      // Both are read at once: a member that is counted as asleep may have been woken for the grid
      // just before its wait, and looks once more.
      let atRest: [sleepers: number, looking: number] = [0, 0];
      for (let tries = 0; tries < 200 && (atRest[0] !== 3 || atRest[1] !== 0); tries++) {
        if (tries > 0) await delay(5);
        atRest = [Atomics.load(words!, WORD.sleepers), Atomics.load(words!, WORD.looking)];
      }
      expect(atRest).toEqual([3, 0]);
    }
    expect(Math.max(...seen)).toBeGreaterThan(0);
    expect(Math.max(...seen)).toBeLessThanOrEqual(3);
  },
);

test('threads are started by the first grid that runs long, and not before', () => {
  let started = 0;
  let time = 0;
  let pace = 0.0001;
  const idleMember = { post: () => undefined, end: () => undefined };
  const device = open(
    2,
    { eager: false, start: () => (started++, idleMember) },
    { now: () => (time += pace) },
  );
  const spin = device.kernel(
    kernel(
      'count',
      'pu',
      `
    mov.u32 %r10, 0;
  again:
    add.u32 %r10, %r10, 1;
    setp.lt.u32 %p0, %r10, %r1;
    @%p0 bra again;
    mul.wide.u32 %rd10, %r20, 4; add.u64 %rd11, %rd0, %rd10;
    st.global.u32 [%rd11], %r10;`,
    ),
    'count',
  );
  const out = device.array(Int32Array, 64);
  device.launch(spin, [64], [1], [[out.at], 10]);
  device.finish();
  expect(started).toBe(0);
  pace = 0.1;
  device.launch(spin, [64], [1], [[out.at], 1_000_000]);
  device.finish();
  expect(started).toBe(1);
  expect(out.view.every((value) => value === 1_000_000)).toBe(true);
});

test('threads are started by short grids that together run long, one soon after the other', () => {
  let started = 0;
  let time = 0;
  const idleMember = { post: () => undefined, end: () => undefined };
  const device = open(
    3,
    { eager: false, start: () => (started++, idleMember) },
    { now: () => (time += 0.015) },
  );
  const touch = device.kernel(kernel('touch', 'p', 'red.global.add.u32 [%rd0], 1;'), 'touch');
  const count = device.array(Int32Array, 1);
  const BLOCKS = 20_000;
  let launches = 0;
  /** Launches grids until so much time has passed, with a pause before each. */
  const run = (milliseconds: number, pause = 0): void => {
    for (let spent = 0; spent < milliseconds; launches++) {
      time += pause;
      const before = time;
      device.launch(touch, [BLOCKS], [1], [[count.at]]);
      device.finish();
      spent += time - before;
    }
  };
  run(100, 2000);
  expect(started).toBe(0);
  time += 2000;
  run(8);
  expect(started).toBe(0);
  run(40);
  expect(started).toBe(2);
  expect(count.view[0]).toBe(BLOCKS * launches);
});

test(
  'a grid of a function that ran long is open to others before its first block, a short one ' +
    'never',
  () => {
    let control: Int32Array | undefined;
    let time = 0;
    const pace = 0.02;
    /** Whether a grid was open at each reading of the clock. */
    let isOpen: boolean[] = [];
    const device = open(
      2,
      {
        eager: false,
        start: (start) => {
          control = new Int32Array(start.control);
          Atomics.add(control, WORD.online, 1);
          return { post: () => undefined, end: () => undefined };
        },
      },
      {
        now: () => {
          if (control !== undefined) isOpen.push(Atomics.load(control, WORD.open) !== 0);
          return (time += pace);
        },
      },
    );
    const touch = device.kernel(kernel('touch', 'p', 'red.global.add.u32 [%rd0], 1;'), 'touch');
    const count = device.array(Int32Array, 1);
    let blocks = 0;
    const launch = (grid: number): boolean[] => {
      isOpen = [];
      device.launch(touch, [grid], [1], [[count.at]]);
      device.finish();
      blocks += grid;
      return isOpen;
    };
    for (let i = 0; i < 20; i++) launch(50_000);
    expect(control).toBeDefined();
    // The first reading is that of the grid's beginning.
    expect(launch(50_000).slice(0, 2)).toEqual([false, true]);
    expect(launch(16)).not.toContain(true);
    expect(launch(50_000).slice(0, 2)).toEqual([false, true]);
    expect(count.view[0]).toBe(blocks);
  },
);

test.runIf(process.platform === 'linux')('the threads end with the device', async () => {
  const threads = (): number => readdirSync('/proc/self/task').length;
  let before = 0;
  // Threads of earlier tests may still be ending.
  while (before !== (before = threads())) await delay(100);
  const device = new CrewDevice(5);
  const f = device.array(Int32Array, 4);
  device.launch(
    device.kernel(kernel('touch', 'p', 'red.global.add.u32 [%rd0], 1;'), 'touch'),
    [50],
    [1],
    [[f.at]],
  );
  device.finish();
  expect(f.view[0]).toBe(50);
  expect(threads()).toBeGreaterThanOrEqual(before + 4);
  device.close();
  for (let i = 0; i < 100 && threads() > before; i++) await delay(50);
  expect(threads()).toBeLessThanOrEqual(before);
});
