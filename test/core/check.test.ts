/**
 * The checking CPU device as programs use it: `Device.open('cpu', { check, schedule })` and
 * `explore`. The tests of src/cpu-device cover what it finds in kernels.
 */
import { afterEach, describe, expect, test, vi } from 'vitest';

import { CudaCheckError, CudaScheduleError, CoreDevice, explore, i32 } from 'async-cuda/core';
import type { CheckReport, CudaError, OpenOptions } from 'async-cuda/core';
import { allModes, failure } from './test-device.js';
import { someOf } from '../random-runs.js';

const KERNELS = `.version 7.0
.target sm_70
.address_size 64
.visible .entry twice(.param .u64 p) {
  .reg .u64 %rd<4>; .reg .u32 %r<3>;
  ld.param.u64 %rd1, [p];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd2, %r1, 4;
  add.u64 %rd3, %rd1, %rd2;
  ld.global.u32 %r2, [%rd3];
  add.u32 %r2, %r2, %r2;
  st.global.u32 [%rd3], %r2;
  ret;
}
.visible .entry last(.param .u64 p) {
  .reg .u64 %rd<2>; .reg .u32 %r<2>;
  ld.param.u64 %rd1, [p];
  mov.u32 %r1, %ctaid.x;
  st.relaxed.gpu.global.u32 [%rd1], %r1;
  ret;
}
`;

const opened: CoreDevice[] = [];
async function open(options: OpenOptions = {}): Promise<CoreDevice> {
  const device = await CoreDevice.open('cpu', { check: true, memoryBytes: 64 << 20, ...options });
  opened.push(device);
  return device;
}
afterEach(() => Promise.all(opened.splice(0).map((device) => device.close())));

someOf(1, describe)(allModes)('A device that is checked (%s)', (thread) => {
  test('reports the fault, its place, and where the memory was allocated', async () => {
    const device = await open({ thread });
    const module = await device.loadModule(KERNELS);
    const data = device.alloc(i32, 100, { label: 'data' });
    await data.fill(device.stream, 1);
    const error = (await failure(() =>
      module.kernel('twice').launch(device.stream, { grid: 1, block: 128 }, data),
    )) as CudaError;
    expect(error).toBeInstanceOf(CudaCheckError);
    expect(error).toMatchObject({
      code: 'ERR_CUDA_CHECK',
      driverName: 'CUDA_ERROR_ILLEGAL_ADDRESS',
    });
    const [report] = (error as CudaCheckError).reports;
    expect(report).toMatchObject({
      kind: 'out-of-bounds',
      place: { kernel: 'twice', line: 10, block: [0, 0, 0], thread: [100, 0, 0], action: 'read' },
      memory: { bytes: 400, offset: 400, label: "alloc i32[100] 'data'" },
    });
    expect(report!.memory!.stack).toContain('check.test.ts');
    expect(error.message).toContain('twice: read, PTX line 10, block (0,0,0), thread (100,0,0)');
  });

  test('is lost after an error, and another one can be opened', async () => {
    const device = await open({ thread });
    const module = await device.loadModule(KERNELS);
    const data = device.alloc(i32, 1);
    data.fill(device.stream, 1);
    await failure(() => module.kernel('twice').launch(device.stream, { grid: 1, block: 64 }, data));
    expect((await failure(() => device.alloc(i32, 4))).code).toBe('ERR_CUDA_CHECK');
    const next = await open({ thread });
    const fresh = next.alloc(i32, 4);
    fresh.fill(next.stream, 7);
    expect([...(await fresh.read(next.stream))]).toEqual([7, 7, 7, 7]);
  });

  test('that keeps going reports the error and goes on', async () => {
    const device = await open({ thread, check: { keepGoing: true } });
    const reports: CheckReport[] = [];
    device.on('check', (report) => reports.push(report));
    const module = await device.loadModule(KERNELS);
    const data = device.alloc(i32, 32);
    await module.kernel('twice').launch(device.stream, { grid: 1, block: 32 }, data);
    expect(reports).toMatchObject([{ kind: 'uninitialised', count: 32 }]);
    await data.fill(device.stream, 1);
    await module.kernel('twice').launch(device.stream, { grid: 1, block: 32 }, data);
    expect(reports).toHaveLength(1);
    expect((await data.read(device.stream))[31]).toBe(2);
  });

  test('reports two streams on the same memory unless an event orders them', async () => {
    const device = await open({ thread });
    const module = await device.loadModule(KERNELS);
    const [a, b] = [device.createStream({ label: 'a' }), device.createStream({ label: 'b' })];
    const data = device.alloc(i32, 32, { stream: a });
    await data.fill(a, 1);
    const event = device.createEvent();
    const kernel = module.kernel('twice');
    kernel.launch(a, { grid: 1, block: 32 }, data);
    a.record(event);
    b.wait(event);
    await kernel.launch(b, { grid: 1, block: 32 }, data);
    expect((await data.read(b))[0]).toBe(4);
  });

  test('closes what was left open, and reports it', async () => {
    const device = await open({ thread });
    const reports: CheckReport[] = [];
    device.on('check', (report) => reports.push(report));
    const kept = device.alloc(i32, 100, { label: 'kept' });
    kept.fill(device.stream, 1);
    using closed = device.alloc(i32, 50);
    closed.fill(device.stream, 1);
    closed.close();
    const array = await device.allocArray(i32, { width: 16, height: 4 });
    await device.allocPlain(i32, 10, { label: 'plain' });
    await device.managed(i32, 5);
    await device.close();
    expect(reports.map(({ kind, memory }) => [kind, memory!.bytes, memory!.label])).toEqual([
      ['leak', 400, "alloc i32[100] 'kept'"],
      ['leak', 40, "allocPlain i32[10] 'plain'"],
      ['leak', 20, 'managed i32[5]'],
      ['leak', 256, expect.stringContaining('DeviceArray')],
    ]);
    for (const { memory } of reports.slice(0, 3)) {
      expect(memory!.stack).toContain('check.test.ts');
      expect(memory!.address).toBeGreaterThan(0);
    }
    expect(array.isClosed).toBe(true);
  });

  test('warns of a few of many leaks one by one, and counts the others', async () => {
    const warnings = vi.spyOn(process, 'emitWarning').mockImplementation(() => undefined);
    try {
      const device = await open({ thread, check: true });
      for (let i = 0; i < 40; i++) device.alloc(i32, 100);
      await device.close();
      expect(warnings.mock.calls).toHaveLength(6);
      expect(String(warnings.mock.calls.at(-1)![0])).toContain('35 more were not closed');
    } finally {
      warnings.mockRestore();
    }
  });

  test('warns of a leak without a listener, and not where leaks are ignored', async () => {
    const warnings = vi.spyOn(process, 'emitWarning').mockImplementation(() => undefined);
    try {
      for (const leaks of [true, false]) {
        const device = await open({ thread, check: { leaks } });
        device.alloc(i32, 100, { label: 'kept' });
        await device.close();
      }
      expect(warnings.mock.calls.map(([message]) => String(message).split('\n')[0])).toEqual([
        expect.stringContaining("alloc i32[100] 'kept' was not closed"),
      ]);
    } finally {
      warnings.mockRestore();
    }
  });
});

test('one thread checks the accesses of kernels', async () => {
  for (const options of [{ check: true }, { check: {} }, { schedule: { seed: 1 } }]) {
    expect(await failure(() => CoreDevice.open('cpu', { ...options, workers: 2 }))).toMatchObject({
      argument: 'options.workers',
    });
    await open({ check: false, ...options, workers: 1 });
  }
});

test.each([
  [{ check: { race: true } }, 'options.check'],
  [{ check: { races: 1 } }, 'options.check.races'],
  [{ check: 'yes' }, 'options.check'],
  [{ schedule: {} }, 'options.schedule.seed'],
  [{ schedule: { seed: -1 } }, 'options.schedule.seed'],
  [{ schedule: { seed: 2 ** 32 } }, 'options.schedule.seed'],
] as [object, string][])('refuses %j', async (options, argument) => {
  expect(await failure(() => CoreDevice.open('cpu', options))).toMatchObject({
    code: 'ERR_CUDA_INVALID_ARGUMENT',
  });
  expect((await failure(() => CoreDevice.open('cpu', options))).argument).toContain(argument);
});

describe('explore', () => {
  /** The block that wrote last. */
  const lastBlock = async (device: CoreDevice): Promise<number> => {
    const module = await device.loadModule(KERNELS);
    using data = device.alloc(i32, 1);
    data.fill(device.stream, -1);
    module.kernel('last').launch(device.stream, { grid: 4, block: 1 }, data);
    return (await data.read(device.stream))[0]!;
  };

  test('returns the result that a program has in every order', async () => {
    const seen: number[] = [];
    const sum = await explore(
      async (device) => {
        using data = device.alloc(i32, 4);
        data.fill(device.stream, 5);
        seen.push(device.ordinal);
        return data.read(device.stream);
      },
      { seeds: 5 },
    );
    expect([...sum]).toEqual([5, 5, 5, 5]);
    expect(seen).toHaveLength(5);
  });

  test('finds a result that depends on the order, and the seed reproduces it', async () => {
    const error = (await failure(() =>
      explore(lastBlock, { seeds: 50 }),
    )) as CudaError as CudaScheduleError;
    expect(error).toBeInstanceOf(CudaScheduleError);
    expect(error.message).toContain(`ASYNC_CUDA_SEED=${error.seed}`);
    const [first, again] = [
      await explore(lastBlock, { seeds: [error.seed] }),
      await explore(lastBlock, { seeds: [error.seed] }),
    ];
    expect(again).toBe(first);
    expect(first).not.toBe(await explore(lastBlock, { seeds: [0] }));
  });

  test('names the seed of an error, and runs only the seed that the environment sets', async () => {
    const program = async (device: CoreDevice): Promise<void> => {
      if ((await lastBlock(device)) === 2) throw new Error('block 2 was the last');
    };
    const error = (await failure(() => explore(program))) as CudaError as CudaScheduleError;
    expect(error.message).toMatch(/^seed \d+: block 2 was the last\n/);
    vi.stubEnv('ASYNC_CUDA_SEED', String(error.seed));
    const seeds: number[] = [];
    try {
      const again = await failure(() =>
        explore((device) => {
          seeds.push(device.ordinal);
          return program(device);
        }),
      );
      expect(again.message).toBe(error.message);
      expect(seeds).toHaveLength(1);
    } finally {
      vi.unstubAllEnvs();
    }
  });

  test('names the seed of an error that is not awaited', async () => {
    const error = await failure(() =>
      explore(
        async (device) => {
          const module = await device.loadModule(KERNELS);
          const data = device.alloc(i32, 8);
          await data.fill(device.stream, 1);
          module.kernel('twice').launch(device.stream, { grid: 1, block: 32 }, data);
        },
        { seeds: 3 },
      ),
    );
    expect(error).toMatchObject({ code: 'ERR_CUDA_SCHEDULE', seed: 0 });
    expect(error.message).toContain('out of bounds');
  });

  test.each([
    [{ seeds: 0 }],
    [{ seeds: [] }],
    [{ seeds: [-1] }],
    [{ seeds: 'all' }],
    [{ seed: 1 }],
  ])('refuses %j', async (options) => {
    expect(await failure(() => explore(() => 1, options as never))).toMatchObject({
      code: 'ERR_CUDA_INVALID_ARGUMENT',
    });
  });
});
