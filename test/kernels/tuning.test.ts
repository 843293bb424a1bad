/**
 * Tuning: measurements, errors, and choices that are recorded and used again. The compiler is a
 * stand-in.
 */
import { Device, f32, inout, kernel } from 'async-cuda';
import { mkdtemp, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeAll, beforeEach, expect, test, vi } from 'vitest';

import { failure, onDevice } from '../core/test-device.js';

vi.mock('../../src/kernels/compiler.js', () => import('./stand-in-compiler.js'));

let made = 0;
/** A kernel that was never tuned. */

const fresh = () =>
  kernel(
    'scale',
    { y: inout(f32), a: f32 },
    ({ y, a }, gpu) => {
      y[gpu.TILE] = a;
    },
    { uses: { TILE: 1, MADE: ++made } },
  );

onDevice('Tuning', (host) => {
  let folder: string;
  let device: Device;
  beforeAll(() => {
    device = Device.of(host.device);
  });
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'async-cuda-tuning-'));
    process.env['ASYNC_CUDA_CACHE_DIR'] = folder;
  });
  afterEach(async () => {
    delete process.env['ASYNC_CUDA_CACHE_DIR'];
    await rm(folder, { recursive: true, force: true, maxRetries: 10 });
  });
  const records = async (): Promise<string[]> =>
    (await readdir(folder)).filter((name) => name.endsWith('.tuning'));

  test('takes the fastest candidate, records it, and leaves the arguments unchanged', async () => {
    const scale = fresh();
    using y = await device.ones(f32, [5000]);
    const candidates = [{ uses: { TILE: 2 }, block: 64 }, { block: 256 }, { uses: { TILE: 4 } }];
    const tuning = await scale.tune({ y, a: device.value(2) }, { candidates, rounds: 2 });
    expect(new Set(await y.read())).toEqual(new Set([1]));
    const times = tuning.candidates.map(({ milliseconds }) => milliseconds!);
    expect(times.every((each) => each > 0)).toBe(true);
    expect(tuning.chosen).toBe(candidates[times.indexOf(Math.min(...times))]);
    expect(tuning.recorded).toBe(false);
    expect((await tuning.kernel({ y, a: 2 }).andThen((given) => given.y.read()))[4999]).toBe(2);

    expect(await records()).toHaveLength(1);
    const again = await scale.tune({ y, a: 2 }, { candidates, rounds: 2 });
    expect([
      again.recorded,
      again.chosen,
      again.candidates.map(({ milliseconds }) => milliseconds),
    ]).toEqual([true, tuning.chosen, times]);
    expect((await scale.tune({ y, a: 2 }, { candidates, rounds: 1, anew: true })).recorded).toBe(
      false,
    );
    // Measured for these arguments only.
    using other = await device.ones(f32, [10]);
    expect((await scale.tune({ y: other, a: 2 }, { candidates, rounds: 1 })).recorded).toBe(false);
  });

  test('a damaged record, or one of no candidate, is measured anew', async () => {
    const scale = fresh();
    using y = await device.ones(f32, [100]);
    const candidates = [{ block: 64 }, { block: 128 }];
    await scale.tune({ y, a: 2 }, { candidates, rounds: 1 });
    await vi.waitFor(async () => {
      expect(await records()).toHaveLength(1);
    });
    const path = join(folder, (await records())[0]!);
    await writeFile(path, (await readFile(path)).subarray(0, 60));
    expect((await scale.tune({ y, a: 2 }, { candidates, rounds: 1 })).recorded).toBe(false);
  });

  test('a choice that cannot be recorded is returned nevertheless', async () => {
    using y = await device.ones(f32, [100]);
    process.env['ASYNC_CUDA_CACHE_DIR'] = '/dev/null/nowhere';
    expect(
      (await fresh().tune({ y, a: 2 }, { candidates: [{ block: 64 }], rounds: 1 })).recorded,
    ).toBe(false);
  });

  test('a candidate with other results, or that cannot be launched, is not taken', async () => {
    using y = await device.ones(f32, [1000]);
    const tuning = await fresh().tune(
      { y, a: 2 },
      { candidates: [{}, { grid: 1, block: 32 }, { block: 2048 }], rounds: 1 },
    );
    expect(tuning.chosen).toEqual({});
    expect(tuning.candidates.map(({ error }) => (error as Error | undefined)?.message)).toEqual([
      undefined,
      "tune: output 'y' of candidate 1 is not that of the first. Pass { verify: false } or a " +
        'comparison where it may differ.',
      expect.stringContaining('options.block'),
    ]);
    const trusting = await fresh().tune(
      { y, a: 2 },
      { candidates: [{}, { grid: 1, block: 32 }], rounds: 1, verify: false },
    );
    expect(trusting.candidates.map(({ error }) => error)).toEqual([undefined, undefined]);
    const seen: string[] = [];
    await fresh().tune(
      { y, a: 2 },
      {
        candidates: [{}, { grid: 1, block: 32 }],
        rounds: 1,
        verify: (expected, actual, name) => (seen.push(name), expected.length === actual.length),
      },
    );
    expect(seen).toEqual(['y', 'y']);
  });

  test('unknown candidates are refused', async () => {
    using y = await device.ones(f32, [10]);
    const scale = fresh();
    expect((await failure(() => scale.tune({ y, a: 2 }, undefined as never))).message).toContain(
      'options: expected what to choose among, got undefined. Write { candidates: [',
    );
    expect((await failure(() => scale.tune({ y, a: 2 }, { candidates: [] }))).message).toContain(
      'options.candidates: expected a list of what to choose among',
    );
    expect(
      (
        await failure(() =>
          scale.tune({ y, a: 2 }, { candidates: [{ uses: { TYLE: 2 } as never }] }),
        )
      ).message,
    ).toContain("Did you mean 'TILE'?");
    expect(
      (await failure(() => scale.tune({ y, a: 2 }, { candidates: [{ block: 2048 }] }))).message,
    ).toContain('options.block');
    using tiles = y.partition([2]);
    expect(
      (await failure(() => scale.tune({ y: tiles, a: 2 }, { candidates: [{}] }))).message,
    ).toContain('a partition has none');
  });
});
