import { beforeEach, describe, expect, test } from 'vitest';

import { CUresult } from '../../ground/result.js';
import { openLibcuda } from './open.js';
import type { LibcudaOptions } from './open.js';
import { StandIn, buildStandIn, whyNoStandIn } from './stand-in/stand-in.js';

const FUNC = 0x7f1000000010,
  STREAM = 0x7f2000000020;

/** y: f32*, a: f32, x: f64, n: i32 — as a kernel's parameter space lays them out. */
const LAYOUT = [
  { offset: 0, size: 8 },
  { offset: 8, size: 4 },
  { offset: 16, size: 8 },
  { offset: 24, size: 4 },
];
const WORDS = Int32Array.of(-1, -1, 0x1000, 0x7f, 0x40000000, 0, 0x22222222, 0x33333333, 5, -1);
const POINTERS = 'params 001000007f000000,00000040,2222222233333333,05000000';
const BUFFER = 'buffer 001000007f00000000000040000000002222222233333333' + '05000000';

describe('launches', () => {
  if (whyNoStandIn !== undefined) {
    test.skip(whyNoStandIn, () => {});
    return;
  }
  const standIn = new StandIn(buildStandIn(13000));
  beforeEach(() => {
    standIn.reset();
    standIn.parameters(...LAYOUT);
  });
  const open = (options: LibcudaOptions = {}) => openLibcuda({ path: standIn.path, ...options });
  const launches = (): string[] => standIn.takeLog().filter((line) => line.startsWith('cuLaunch'));
  const launch = (driver: ReturnType<typeof open>, func = FUNC): void =>
    driver.cuLaunchKernel(func, 1, 2, 3, 4, 5, 6, 7, STREAM, WORDS, 2, 28);

  test(
    'cuLaunchKernel: dimensions, shared memory and stream in place, each parameter after its ' +
      'own pointer',
    () => {
      launch(open({ launchVia: 'cuLaunchKernel' }));
      const [line] = launches();
      expect(line).toMatch(/^cuLaunchKernel 7f1000000010 1 2 3 4 5 6 7 7f2000000020 [0-9a-f]+ 0 /);
      expect(line!.endsWith(POINTERS)).toBe(true);
    },
  );

  test('as a buffer: extra describes the block, kernelParams is null', () => {
    launch(open({ launchVia: 'cuLaunchKernel', launchParams: 'buffer' }));
    const [line] = launches();
    expect(line).toMatch(/^cuLaunchKernel 7f1000000010 1 2 3 4 5 6 7 7f2000000020 0 [0-9a-f]+ /);
    expect(line!.endsWith(BUFFER)).toBe(true);
  });

  const words = [1, 2, 3, 4, 5, 6, 7].map((n) => `0${n}000000`);
  const config = `config ${words.join('')} stream 7f2000000020`;

  test.each([
    ['pointers', POINTERS],
    ['buffer', BUFFER],
  ] as const)('via cuLaunchKernelEx, %s: the same in a CUlaunchConfig', (launchParams, params) => {
    launch(open({ launchVia: 'cuLaunchKernelEx', launchParams }));
    const [line] = launches();
    expect(line).toContain('cuLaunchKernelEx ');
    expect(line!.endsWith(`${config} ${params}`)).toBe(true);
  });

  test('cuLaunchKernelEx adds the attributes, and a plain launch after it has none of them', () => {
    const driver = open({ launchVia: 'cuLaunchKernelEx' });
    driver.cuLaunchKernelEx(
      {
        gridDimX: 1,
        gridDimY: 2,
        gridDimZ: 3,
        blockDimX: 4,
        blockDimY: 5,
        blockDimZ: 6,
        sharedMemBytes: 7,
        hStream: STREAM,
        attrs: { cooperative: true, clusterDim: [2, 1, 1] },
      },
      FUNC,
      WORDS,
      2,
      28,
    );
    launch(driver);
    const [first, second] = launches();
    expect(first).toContain(
      `${config} attribute 2:010000000000000000000000 attribute 4:020000000100000001000000 ` +
        `${POINTERS}`,
    );
    expect(second).toContain(`${config} ${POINTERS}`);
  });

  test('cuOccupancyMaxActiveClusters gets the same structure', () => {
    standIn.writes('cuOccupancyMaxActiveClusters', 0, Int32Array.of(16));
    const clusters = open().cuOccupancyMaxActiveClusters(FUNC, {
      gridDimX: 1,
      gridDimY: 2,
      gridDimZ: 3,
      blockDimX: 4,
      blockDimY: 5,
      blockDimZ: 6,
      sharedMemBytes: 7,
      hStream: STREAM,
      attrs: { clusterDim: [4, 1, 1] },
    });
    expect(clusters).toBe(16);
    expect(standIn.takeLog().at(-1)).toContain(`${config} attribute 4:040000000100000001000000`);
  });

  test('a kernel without parameters gets two null pointers', () => {
    standIn.parameters();
    for (const launchParams of ['pointers', 'buffer'] as const) {
      open({ launchVia: 'cuLaunchKernel', launchParams }).cuLaunchKernel(
        FUNC,
        1,
        1,
        1,
        1,
        1,
        1,
        0,
        0,
        WORDS,
        0,
        0,
      );
    }
    expect(launches()).toEqual(Array(2).fill('cuLaunchKernel 7f1000000010 1 1 1 1 1 1 0 0 0 0'));
  });

  test('parameters of 4 KiB arrive whole', () => {
    const big = Int32Array.from({ length: 1024 }, (_, i) => i);
    standIn.parameters({ offset: 0, size: 4096 });
    open().cuLaunchKernel(FUNC, 1, 1, 1, 1, 1, 1, 0, 0, big, 0, 4096);
    expect(launches()[0]).toContain(Buffer.from(big.buffer).toString('hex'));
  });

  test('the places of the parameters are read once for each function', () => {
    const driver = open();
    for (let i = 0; i < 3; i++) for (const func of [FUNC, FUNC + 16]) launch(driver, func);
    const asked = standIn.takeLog().filter((line) => line.startsWith('cuFuncGetParamInfo'));
    expect(asked).toHaveLength(2 * (LAYOUT.length + 1));
  });

  test('an unload on any thread makes it read them again: the handle may be reused', () => {
    const unloads = new SharedArrayBuffer(4);
    const launcher = openLibcuda({ path: standIn.path, unloads });
    const loader = openLibcuda({ path: standIn.path, unloads });
    launch(launcher);
    loader.cuLibraryUnload(0x7f5000000000);
    standIn.parameters({ offset: 0, size: 4 });
    standIn.takeLog();
    launch(launcher);
    expect(launches()[0]).toMatch(/ params 00100000$/);

    loader.cuModuleUnload(0x7f5000000000);
    standIn.parameters({ offset: 4, size: 4 });
    launch(launcher);
    expect(launches()[0]).toMatch(/ params 7f000000$/);
  });

  test('fewer words than the kernel has parameters is an error, not stale memory', () => {
    const driver = open();
    expect(() => driver.cuLaunchKernel(FUNC, 1, 1, 1, 1, 1, 1, 0, 0, WORDS, 2, 27)).toThrow(
      expect.objectContaining({
        result: CUresult.CUDA_ERROR_INVALID_VALUE,
        detail: 'the kernel takes 28 bytes of parameters and got 27',
      }),
    );
    expect(launches()).toEqual([]);
  });

  test('more parameters than CUDA allows is an error', () => {
    expect(() =>
      open().cuLaunchKernel(FUNC, 1, 1, 1, 1, 1, 1, 0, 0, new Int32Array(8193), 0, 32772),
    ).toThrow('32772 bytes of parameters');
  });

  test.each(['cuLaunchKernel', 'cuLaunchKernelEx'] as const)(
    'a failure of %s describes the launch',
    (launchVia) => {
      standIn.returns(launchVia, 701);
      expect(() => launch(open({ launchVia }))).toThrow(
        'cuLaunchKernel returned CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES (701): grid 1×2×3, block ' +
          '4×5×6, 7 bytes of dynamic shared memory',
      );
    },
  );

  test('as a buffer: the size is that of the parameters to the byte, not rounded up', () => {
    const driver = open({ launchVia: 'cuLaunchKernel', launchParams: 'buffer' });
    for (const bytes of [25, 26, 27, 28])
      driver.cuLaunchKernel(FUNC, 1, 1, 1, 1, 1, 1, 0, 0, WORDS, 2, bytes);
    const sizes = launches().map((line) => / buffer ([0-9a-f]*)$/.exec(line)![1]!.length / 2);
    expect(sizes).toEqual([25, 26, 27, 28]);
  });

  test.each([true, false])(
    'a batch launches what was prepared, in turn, with node:ffi allowed: %s',
    (nodeFfi) => {
      const batch = open({ nodeFfi }).launchBatch!()!;
      for (const i of [0, 1])
        batch.words.set(
          [0x1000 + i, 0x7f, 0x40000000, 0, 0x22222222, 0x33333333, 5],
          i * batch.stride,
        );
      expect(
        [0, 1].map((i) => batch.prepare(i, FUNC, 1 + i, 1, 1, 64, 1, 1, 7, STREAM, 28)),
      ).toEqual([true, true]);
      expect(launches()).toEqual([]);
      batch.run(0);
      batch.run(1);
      const [first, second] = launches();
      expect(first!.endsWith(POINTERS)).toBe(true);
      expect(second!.endsWith(POINTERS.replace('0010', '0110'))).toBe(true);
    },
  );

  test(
    'a batch refuses a launch with too few bytes of parameters, or of a function that the ' +
      'driver does not have',
    () => {
      standIn.parameters({ offset: 0, size: 8 }, { offset: 8, size: 1 });
      const batch = open().launchBatch!()!;
      expect(
        [8, 9, 12].map((bytes) => batch.prepare(0, FUNC, 1, 1, 1, 1, 1, 1, 0, STREAM, bytes)),
      ).toEqual([false, true, true]);
      standIn.returns('cuFuncGetParamInfo', CUresult.CUDA_ERROR_INVALID_HANDLE);
      expect(batch.prepare(0, FUNC + 16, 1, 1, 1, 1, 1, 1, 0, STREAM, 9)).toBe(false);
    },
  );

  test(
    'a driver without cuFuncGetParamInfo gets buffers, one without cuLaunchKernelEx the older ' +
      'call',
    () => {
      const old = new StandIn(buildStandIn(11020));
      const driver = openLibcuda({ path: old.path, launchVia: 'cuLaunchKernelEx' });
      old.takeLog();
      launch(driver);
      const [line] = old.takeLog();
      expect(line).toMatch(/^cuLaunchKernel /);
      expect(line!.endsWith(BUFFER)).toBe(true);
      expect(driver.launchBatch!()).toBeUndefined();
    },
  );
});
