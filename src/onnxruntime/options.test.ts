import { describe, expect, test, vi } from 'vitest';

import type { CoreDevice } from '../core/index.js';
import { checkLoadOptions } from './options.js';

const machine = vi.hoisted(() => ({ cores: 1 }));
vi.mock('node:os', async (original) => ({
  ...(await original<object>()),
  availableParallelism: () => machine.cores,
}));

describe('threads of a run, by default', () => {
  const device = { kind: 'cpu' } as CoreDevice;

  test.each([
    [1, 0],
    [2, 0],
    [3, 3],
    [4, 3],
    [8, 6],
    [16, 12],
    [64, 48],
  ])('on %i cores, spinning: %i', (cores, threads) => {
    machine.cores = cores;
    expect(checkLoadOptions(device, {}).threads).toBe(threads);
  });

  test('are one per core, as the library has them, where they sleep', () => {
    machine.cores = 16;
    expect(checkLoadOptions(device, { spinning: false }).threads).toBe(0);
  });

  test.each([
    [2, {}, true],
    [2, { threads: 1 }, false],
    [4, {}, false],
    [4, { threads: 4 }, true],
    [4, { threads: 3 }, false],
    [2, { spinning: false }, false],
  ])('on %i cores, with %o, stop at the end of a run: %s', (cores, options, stop) => {
    machine.cores = cores;
    expect(checkLoadOptions(device, options).restsBetween).toBe(stop);
  });

  test('are as many as the option requests', () => {
    machine.cores = 4;
    expect(checkLoadOptions(device, { threads: 4 }).threads).toBe(4);
  });
});
