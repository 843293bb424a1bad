/**
 * Driver calls that rarely fail on a GPU: each is made to fail once, in inline mode, where the test
 * can replace the driver's functions. What depends on the call is undefined or gone, everything
 * else works, and nothing hangs.
 */
import { f64, i32, i64, inout, input, u32, u8 } from 'async-cuda/core';
import type { CudaError, CoreDevice, DeviceBuffer, Graph, Kernel, Stream } from 'async-cuda/core';
import { DriverError } from 'async-cuda/driver';
import { beforeAll, describe, expect, test } from 'vitest';

import { ELEMENTWISE } from './kernels/elementwise.js';
import { failure, onDevice, turns } from './test-device.js';

const N = 64;
const GRID = { grid: 1, block: N } as const;

/** CUresult */
const OUT_OF_MEMORY = 2;
const INVALID_VALUE = 1;
const TOO_LARGE = 720;

type Calls = Record<string, (...args: unknown[]) => unknown>;

/**
 * Runs `queue` while driver call `name` fails, the first time it is made. Returns how often it was
 * made.
 */
function withFailing(device: CoreDevice, name: string, result: number, queue: () => void): number {
  const driver = device.runtime.driver as unknown as Calls;
  // On a GPU only launches within a capture call the driver's function through this table.
  const { batch } = (
    device.runtime as unknown as { local: { decoder: { launches: { batch: Calls } } } }
  ).local.decoder.launches;
  const ways: (readonly [host: Calls, call: string])[] = [[driver, name]];
  if (name === 'cuLaunchKernel' && driver['launchBatch']?.() !== undefined)
    ways.push([batch, 'run']);
  const real = ways.map(([host, call]) => host[call]!);
  let calls = 0;
  device.runtime.completion.pump();
  ways.forEach(([host, call], way) => {
    host[call] = (...args) => {
      if (calls++ === 0) throw new DriverError(name, result);
      return real[way]!.apply(host, args);
    };
  });
  try {
    queue();
    device.runtime.completion.pump();
  } finally {
    ways.forEach(([host, call], way) => {
      host[call] = real[way]!;
    });
  }
  return calls;
}

/** Driver calls that queue work or change memory. */
const QUEUED =
  /^cu(Launch|Mem(cpy|set|Alloc|Free|Prefetch)|Graph|EventRecord|Stream(Wait|Write|Begin|End))/;

/** Driver calls that are made while `work` runs, by name. */
async function callsDuring(device: CoreDevice, work: () => Promise<void>): Promise<string[]> {
  const driver = device.runtime.driver as unknown as Calls;
  const made: string[] = [];
  const real = new Map<string, Calls[string]>();
  for (const name of Object.keys(driver)) {
    const call = driver[name];
    if (typeof call !== 'function' || !QUEUED.test(name)) continue;
    real.set(name, call);
    driver[name] = (...args) => {
      made.push(name);
      return call.apply(driver, args);
    };
  }
  try {
    await work();
  } finally {
    for (const [name, call] of real) driver[name] = call;
  }
  return made;
}

onDevice(
  'A stream that could not be made',
  (host) => {
    let add1: Kernel;

    beforeAll(async () => {
      add1 = (await host.load(ELEMENTWISE)).kernel('add1');
    });

    function unmade(label?: string): Stream {
      let stream!: Stream;
      expect(
        withFailing(host.device, 'cuStreamCreateWithPriority', OUT_OF_MEMORY, () => {
          stream = host.device.createStream(label === undefined ? {} : { label });
        }),
      ).toBe(1);
      return stream;
    }

    /** The error gives the reason, and its cause is the failure of the creation. */
    function expectUnmade(error: CudaError): void {
      expect(error).toMatchObject({
        name: 'CudaOutOfMemoryError',
        code: 'ERR_CUDA_OUT_OF_MEMORY',
        driverCode: OUT_OF_MEMORY,
      });
      expect(error.cause).toMatchObject({
        code: 'ERR_CUDA_OUT_OF_MEMORY',
        operation: expect.stringContaining("createStream (stream 'broken')") as string,
      });
    }

    test('rejects all work that is queued on it, with that failure as the cause', async () => {
      using stream = unmade('broken');
      using buffer = host.device.alloc(i32, N);
      using large = host.device.alloc(u8, 1 << 20);
      await using pinned = await host.device.pinned(i32, N);
      buffer.fill(host.stream, 1);
      large.fill(host.stream, 1);
      const work: (() => unknown)[] = [
        () => buffer.fill(stream, 2),
        () => buffer.write(stream, new Int32Array(N)),
        () => buffer.read(stream),
        () => buffer.write(stream, pinned),
        () => buffer.read(stream, pinned),
        () => add1.launch(stream, GRID, buffer, N),
        () => add1.launch(stream, { ...GRID, cooperative: true }, buffer, N),
        () => large.write(stream, new Uint8Array(1 << 20)),
        () => large.read(stream),
        () =>
          stream.call(() => {
            throw new Error('it ran');
          }),
        () => host.device.alloc(i32, N, { stream }).allocated(),
        () =>
          stream.capture(() => {
            buffer.fill(stream, 3);
          }),
      ];
      for (const queue of work) {
        const error = await failure(queue);
        expect(error.code).not.toBe('ERR_CUDA_INTERNAL');
        if (error.code === 'ERR_CUDA_UNDEFINED_CONTENTS')
          expect(error.cause).toMatchObject({ code: 'ERR_CUDA_OUT_OF_MEMORY' });
        else expectUnmade(error);
        await buffer.fill(host.stream, 1);
        await large.fill(host.stream, 1);
        await buffer.read(host.stream, pinned);
      }
    });

    test('makes no driver call', async () => {
      using buffer = host.device.alloc(i32, N);
      await buffer.fill(host.stream, 1);
      using stream = unmade('broken');
      const made = await callsDuring(host.device, async () => {
        buffer.fill(stream, 2);
        stream.wait(stream.record());
        const errors = await Promise.all([
          failure(() => add1.launch(stream, GRID, buffer, N)),
          failure(() => stream.call(() => 1)),
          failure(() => buffer.fill(stream, 3)),
        ]);
        expectUnmade(errors[0]);
        await stream.finished();
      });
      expect(made).toEqual([]);
      await turns(4);
      host.errors.splice(0);
    });

    test('leaves the outputs of its work undefined until they are written whole', async () => {
      using stream = unmade('broken');
      using buffer = host.device.alloc(i32, N);
      buffer.fill(host.stream, 1);
      expectUnmade(await failure(() => add1.launch(stream, GRID, buffer, N)));
      expect(await failure(() => buffer.read(host.stream))).toMatchObject({
        code: 'ERR_CUDA_UNDEFINED_CONTENTS',
      });
      buffer.fill(host.stream, 4);
      expect((await buffer.read(host.stream))[0]).toBe(4);
    });

    test('does not hang: waits and close() end, and a thousand launches reject', async () => {
      const stream = unmade('broken');
      using other = host.device.createStream();
      using buffer = host.device.alloc(i32, N);
      buffer.fill(host.stream, 1);
      other.wait(stream);
      await other.finished();
      await stream.finished();
      const event = stream.record();
      await event.finished();
      const errors = await Promise.all(
        Array.from({ length: 1000 }, () => failure(() => add1.launch(stream, GRID, buffer, N))),
      );
      expectUnmade(errors[0]!);
      expect(
        errors.every(
          (error) =>
            error.code === 'ERR_CUDA_OUT_OF_MEMORY' || error.code === 'ERR_CUDA_UNDEFINED_CONTENTS',
        ),
      ).toBe(true);
      event.close();
      stream.close();
      await host.device.finished();
      await turns(4);
      host.errors.splice(0);
    });

    test('is reported in the error event where no work uses it', async () => {
      using stream = unmade('broken');
      await stream.finished();
      await turns(4);
      const [error, ...more] = host.errors.splice(0);
      expect(error).toMatchObject({ code: 'ERR_CUDA_OUT_OF_MEMORY' });
      expect(error!.message).toContain("stream 'broken'");
      expect(more).toEqual([]);
    });

    test('gives its place to a stream that works', async () => {
      const broken = unmade('broken');
      await failure(() => broken.call(() => 1));
      broken.close();
      await turns(4);
      using buffer = host.device.alloc(i32, N);
      for (let i = 0; i < 4; i++) {
        using stream = host.device.createStream();
        buffer.fill(stream, i);
        for (let j = 0; j < 300; j++) add1.launch(stream, GRID, buffer, N);
        expect((await buffer.read(stream))[N - 1]).toBe(300 + i);
      }
    });

    test('is refused by upload', async () => {
      using stream = unmade('broken');
      await using graph = await host.stream.capture(() => undefined);
      expect(await failure(() => graph.upload(stream))).toMatchObject({
        code: 'ERR_CUDA_OUT_OF_MEMORY',
      });
    });
  },
  ['inline'],
);

onDevice(
  'A failed graph launch',
  (host) => {
    let add1: Kernel;
    let absorb: Kernel;
    let read: DeviceBuffer<'i32'>;
    let written: DeviceBuffer<'i32'>;
    let graph: Graph;

    beforeAll(async () => {
      const module = await host.load(ELEMENTWISE);
      add1 = module.kernel('add1');
      absorb = module.kernel('absorb', [inout(i32), input(i32), u32]);
      read = host.device.alloc(i32, N);
      written = host.device.alloc(i32, N);
      graph = await host.stream.capture(() => {
        absorb.launch(host.stream, GRID, written, read, N);
      });
    });

    const fill = (): void => {
      read.fill(host.stream, 1);
      written.fill(host.stream, 2);
    };

    async function failedLaunch(): Promise<void> {
      let error!: ReturnType<typeof failure>;
      withFailing(host.device, 'cuGraphLaunch', INVALID_VALUE, () => {
        error = failure(() => graph.launch(host.stream));
      });
      expect(await error).toMatchObject({ code: 'ERR_CUDA_DRIVER', driverCode: INVALID_VALUE });
    }

    test('leaves what the graph writes undefined, and not what it only reads', async () => {
      fill();
      await failedLaunch();
      const error = await failure(() => written.read(host.stream));
      expect(error).toMatchObject({ code: 'ERR_CUDA_UNDEFINED_CONTENTS' });
      expect(error.cause).toMatchObject({ driverCode: INVALID_VALUE });
      expect((await read.read(host.stream))[0]).toBe(1);
    });

    test('rejects the next launch until its undefined input is written whole', async () => {
      fill();
      await failedLaunch();
      expect(await failure(() => graph.launch(host.stream))).toMatchObject({
        code: 'ERR_CUDA_UNDEFINED_CONTENTS',
      });
      fill();
      await graph.launch(host.stream);
      expect((await written.read(host.stream))[0]).toBe(63);
    });

    test.each(['read', 'written'])(
      'fails with an undefined buffer: one that is %s',
      async (which) => {
        fill();
        const spoiled = which === 'read' ? read : written;
        withFailing(host.device, 'cuMemsetD32Async', INVALID_VALUE, () => {
          failure(() => spoiled.fill(host.stream, 5)).catch(() => undefined);
        });
        const error = await failure(() => graph.launch(host.stream));
        expect(error).toMatchObject({ code: 'ERR_CUDA_UNDEFINED_CONTENTS' });
        expect(error.cause).toMatchObject({ driverCode: INVALID_VALUE });
        expect(await failure(() => written.read(host.stream))).toMatchObject({
          code: 'ERR_CUDA_UNDEFINED_CONTENTS',
        });
      },
    );

    test('only a graph that first writes a buffer whole defines it again', async () => {
      using a = host.device.alloc(i64, N);
      using b = host.device.alloc(i64, N);
      await using source = await host.device.pinned(i64, N);
      source.view().fill(6n);
      await using heals = await host.stream.capture(() => {
        a.fill(host.stream, 0x1_0000_0002n);
        b.write(host.stream, source);
        add1.launch(host.stream, GRID, a, 1);
      });
      await using reads = await host.stream.capture(() => {
        b.copyFrom(host.stream, a);
        a.fill(host.stream, 0n);
      });
      const spoil = async (): Promise<void> => {
        withFailing(
          host.device,
          'cuMemsetD2D32Async',
          INVALID_VALUE,
          () => void a.fill(host.stream, 5n).catch(() => undefined),
        );
        withFailing(
          host.device,
          'cuMemsetD2D32Async',
          INVALID_VALUE,
          () => void b.fill(host.stream, 5n).catch(() => undefined),
        );
        await host.stream.finished();
      };
      await spoil();
      expect(await failure(() => reads.launch(host.stream))).toMatchObject({
        code: 'ERR_CUDA_UNDEFINED_CONTENTS',
      });
      await spoil();
      await heals.launch(host.stream);
      expect([(await a.read(host.stream))[0], (await b.read(host.stream))[0]]).toEqual([
        0x1_0000_0003n,
        6n,
      ]);
    });

    test('recording a graph neither requires nor defines undefined buffers', async () => {
      using a = host.device.alloc(i32, N);
      withFailing(
        host.device,
        'cuMemsetD32Async',
        INVALID_VALUE,
        () => void a.fill(host.stream, 5).catch(() => undefined),
      );
      await using adds = await host.stream.capture(() => {
        add1.launch(host.stream, GRID, a, N);
      });
      await using fills = await host.stream.capture(() => {
        a.fill(host.stream, 1);
      });
      expect(await failure(() => a.read(host.stream))).toMatchObject({
        code: 'ERR_CUDA_UNDEFINED_CONTENTS',
      });
      fills.launch(host.stream);
      await adds.launch(host.stream);
      expect((await a.read(host.stream))[0]).toBe(2);
    });

    test('a command that the driver refuses fails the capture only', async () => {
      using a = host.device.alloc(i32, N);
      a.fill(host.stream, 7);
      let captured!: Promise<unknown>;
      withFailing(host.device, 'cuLaunchKernel', TOO_LARGE, () => {
        captured = host.stream.capture(() => {
          a.fill(host.stream, 1);
          add1.launch(host.stream, GRID, a, N);
          a.fill(host.stream, 2);
        });
      });
      await expect(captured).rejects.toMatchObject({ driverCode: TOO_LARGE });
      expect((await a.read(host.stream))[0]).toBe(7);
    });

    test('a capture that cannot begin runs nothing and leaves nothing undefined', async () => {
      using a = host.device.alloc(i32, N);
      a.fill(host.stream, 7);
      let captured!: Promise<unknown>;
      withFailing(host.device, 'cuStreamBeginCapture', OUT_OF_MEMORY, () => {
        captured = host.stream.capture(() => {
          a.fill(host.stream, 1);
        });
      });
      await expect(captured).rejects.toMatchObject({ driverCode: OUT_OF_MEMORY });
      expect((await a.read(host.stream))[0]).toBe(7);
    });
  },
  ['inline'],
);

onDevice(
  'What makes undefined contents good again',
  (host) => {
    const stream = (): Stream => host.stream;

    /** Makes the next call of `call` that `queue` causes fail. */
    async function spoil(call: string, queue: () => PromiseLike<unknown>): Promise<void> {
      let failed!: ReturnType<typeof failure>;
      expect(
        withFailing(host.device, call, INVALID_VALUE, () => {
          failed = failure(queue);
        }),
      ).toBeGreaterThan(0);
      expect(await failed).toMatchObject({ driverCode: INVALID_VALUE });
    }

    describe.each([
      ['i64', i64, 0x1_0000_0002n],
      ['f64', f64, 0.1],
      ['i32', i32, 3],
      ['u8', u8, 200],
    ] as const)('of %s', (_, dtype, value) => {
      const memset =
        dtype.bytes === 1
          ? 'cuMemsetD8Async'
          : dtype.bytes === 4
            ? 'cuMemsetD32Async'
            : 'cuMemsetD2D32Async';
      const memset2D = dtype.bytes === 1 ? 'cuMemsetD2D8Async' : 'cuMemsetD2D32Async';
      const zero = (typeof value === 'bigint' ? 0n : 0) as never;

      test('a fill of the whole buffer, not one of a part', async () => {
        using buffer = host.device.alloc(dtype, N);
        await spoil(memset, () => buffer.fill(stream(), value as never));
        expect(await failure(() => buffer.slice(1).fill(stream(), zero))).toMatchObject({
          code: 'ERR_CUDA_UNDEFINED_CONTENTS',
        });
        await buffer.fill(stream(), value as never);
        expect((await buffer.read(stream()))[N - 1]).toBe(value);
      });

      test('a fill of the whole image, not one of a crop', async () => {
        using image = host.device.alloc2D(dtype, { width: 5, height: 7, channels: 3 });
        await spoil(memset2D, () => image.fill(stream(), value as never));
        expect(
          await failure(() => image.crop({ x: 1, y: 0, width: 4, height: 7 }).fill(stream(), zero)),
        ).toMatchObject({ code: 'ERR_CUDA_UNDEFINED_CONTENTS' });
        await image.crop({ x: 0, y: 0, width: 5, height: 7 }).fill(stream(), value as never);
        expect((await image.read(stream()))[104]).toBe(value);
      });

      test('a write and a copy of the whole image', async () => {
        using image = host.device.alloc2D(dtype, { width: 5, height: 7 });
        using good = host.device.alloc2D(dtype, { width: 5, height: 7 });
        await good.fill(stream(), value as never);
        await spoil(memset2D, () => image.fill(stream(), value as never));
        await image.copyFrom(stream(), good);
        expect((await image.read(stream()))[34]).toBe(value);
        await spoil(memset2D, () => image.fill(stream(), value as never));
        await image.write(stream(), await good.read(stream()));
        expect((await image.read(stream()))[34]).toBe(value);
      });
    });

    test('the half of a 64-bit fill that fails leaves the buffer undefined', async () => {
      using buffer = host.device.alloc(i64, N);
      await buffer.fill(stream(), 1n);
      const driver = host.device.runtime.driver as unknown as Calls;
      const real = driver['cuMemsetD2D32Async']!;
      let calls = 0;
      driver['cuMemsetD2D32Async'] = (...args) => {
        if (++calls === 2) throw new DriverError('cuMemsetD2D32Async', INVALID_VALUE);
        return real.apply(driver, args);
      };
      const error = await failure(() => buffer.fill(stream(), 0x1_0000_0002n));
      driver['cuMemsetD2D32Async'] = real;
      expect(error).toMatchObject({ driverCode: INVALID_VALUE });
      expect(await failure(() => buffer.read(stream()))).toMatchObject({
        code: 'ERR_CUDA_UNDEFINED_CONTENTS',
      });
    });

    test('a read into a whole page-locked buffer defines it again', async () => {
      using buffer = host.device.alloc(i32, N);
      await using pinned = await host.device.pinned(i32, N);
      await buffer.fill(stream(), 9);
      await spoil('cuMemcpyDtoHAsync', () => buffer.read(stream(), pinned));
      expect(await failure(() => buffer.write(stream(), pinned))).toMatchObject({
        code: 'ERR_CUDA_UNDEFINED_CONTENTS',
      });
      await buffer.fill(stream(), 9);
      await buffer.read(stream(), pinned);
      await buffer.write(stream(), pinned);
      expect(pinned.view()[N - 1]).toBe(9);
    });

    test('copies of boxes, and of page-locked memory, that fill a whole buffer', async () => {
      using buffer = host.device.alloc(i32, N);
      using good = host.device.alloc(i32, N);
      await using pinned = await host.device.pinned(i32, N);
      good.fill(stream(), 6);
      pinned.view().fill(4);
      const size = { width: N / 4, height: 2, depth: 2 };
      await spoil('cuMemsetD32Async', () => buffer.fill(stream(), 1));
      const part = { x: 0, y: 0, z: 0, width: N / 4, height: 2, depth: 1 };
      expect(
        await failure(() =>
          buffer.box(size).crop(part).copyFrom(stream(), good.box(size).crop(part)),
        ),
      ).toMatchObject({ code: 'ERR_CUDA_UNDEFINED_CONTENTS' });
      await buffer.box(size).copyFrom(stream(), good.box(size));
      expect((await buffer.read(stream()))[N - 1]).toBe(6);
      await spoil('cuMemsetD32Async', () => buffer.fill(stream(), 1));
      await buffer.box(size).write(stream(), pinned);
      expect((await buffer.read(stream()))[N - 1]).toBe(4);
    });

    test('a copy from a page-locked buffer, and one from another device', async () => {
      using buffer = host.device.alloc(i32, N);
      await using pinned = await host.device.pinned(i32, N);
      pinned.view().fill(4);
      await spoil('cuMemsetD32Async', () => buffer.fill(stream(), 1));
      await buffer.write(stream(), pinned);
      expect((await buffer.read(stream()))[0]).toBe(4);
      const { openTestDevice } = await import('./test-device.js');
      await using other = await openTestDevice({ thread: 'inline' }, 'cpu:2');
      using source = other.alloc(i32, N);
      await source.fill(other.stream, 5);
      await spoil('cuMemsetD32Async', () => buffer.fill(stream(), 1));
      await buffer.copyFrom(stream(), source);
      expect((await buffer.read(stream()))[0]).toBe(5);
    });

    test('a kernel that writes it does not define it', async () => {
      const add1 = (await host.load(ELEMENTWISE)).kernel('add1');
      using buffer = host.device.alloc(i32, N);
      await buffer.fill(stream(), 0);
      await spoil('cuLaunchKernel', () => add1.launch(stream(), GRID, buffer, N));
      expect(await failure(() => add1.launch(stream(), GRID, buffer, N))).toMatchObject({
        code: 'ERR_CUDA_UNDEFINED_CONTENTS',
      });
    });
  },
  ['inline'],
);
