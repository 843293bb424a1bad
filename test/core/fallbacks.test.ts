/**
 * Replacements for features that some platforms lack, tested by disabling the features: events for
 * stream memory operations, plain allocation for memory pools.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import { CoreDevice, f32, i32, u16, u8, output } from '../../src/core/index.js';
import { PARAMETERS } from './kernels/parameters.js';
import { someOf } from '../random-runs.js';

const NAME = process.env['ASYNC_CUDA_TEST_DEVICE'] ?? 'cpu';

const PTX = `.version 7.0
.target sm_70
.address_size 64
.visible .entry add1(.param .u64 p0, .param .u32 p1)
{
  .reg .pred %p;
  .reg .b32 %r<6>;
  .reg .b64 %rd<5>;
  ld.param.u64 %rd1, [p0];
  ld.param.u32 %r1, [p1];
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mov.u32 %r4, %tid.x;
  mad.lo.s32 %r5, %r2, %r3, %r4;
  setp.ge.u32 %p, %r5, %r1;
  @%p ret;
  mul.wide.u32 %rd2, %r5, 4;
  add.s64 %rd3, %rd1, %rd2;
  ld.global.u32 %r2, [%rd3];
  add.s32 %r2, %r2, 1;
  st.global.u32 [%rd3], %r2;
  ret;
}`;

someOf(
  2,
  describe,
)(['memops', 'pools', 'memops,pools', 'registration', 'registration,memops,pools'])(
  'without %s',
  (missing) => {
    let device: CoreDevice;

    beforeAll(async () => {
      process.env['ASYNC_CUDA_WITHOUT'] = missing;
      try {
        // A size of its own, so that a CPU device is opened afresh and not shared with another
        // mode's.
        device = await CoreDevice.open(
          NAME,
          NAME.startsWith('cpu') ? { memoryBytes: (missing.length + 64) << 20 } : {},
        );
      } finally {
        delete process.env['ASYNC_CUDA_WITHOUT'];
      }
    });

    afterAll(() => device.close());

    test('the device lists the features that it replaces', () => {
      expect(device.runtime.info.patched).toBe(missing !== 'registration');
      expect(device.runtime.info.registered).toBe(!missing.includes('registration'));
    });

    test.runIf(missing.includes('pools'))('pools of the program are refused', async () => {
      await expect(device.createPool()).rejects.toMatchObject({ code: 'ERR_CUDA_UNSUPPORTED' });
    });

    test('work is done and awaited in order', async () => {
      await using module = await device.loadModule(PTX);
      const add1 = module.kernel('add1');
      using stream = device.createStream();
      using buffer = device.alloc(i32, 1000, { stream });
      buffer.fill(stream, 5);
      for (let i = 0; i < 1500; i++) add1.launch(stream, { grid: 4, block: 256 }, buffer, 1000);
      const values = await buffer.read(stream);
      expect(values.every((value) => value === 1505)).toBe(true);
    });

    test('large copies go through staging', async () => {
      using stream = device.createStream();
      using buffer = device.alloc(f32, 3_000_001, { stream });
      const source = Float32Array.from({ length: buffer.length }, (_, i) => i);
      await buffer.write(stream, source);
      expect(
        Buffer.from((await buffer.read(stream)).buffer).equals(Buffer.from(source.buffer)),
      ).toBe(true);
    });

    test('an idle device is woken by the next command', async () => {
      using buffer = device.alloc(i32, 4);
      for (let i = 0; i < 3; i++) {
        await new Promise((resolve) => setTimeout(resolve, 20));
        buffer.fill(device.stream, i);
        expect(await buffer.read(device.stream)).toEqual(new Int32Array(4).fill(i));
      }
    });

    test('page-locked buffers work, or are refused with the remedy', async () => {
      const pinned = device.pinned(i32, 4);
      if (missing.includes('registration')) {
        await expect(pinned).rejects.toMatchObject({
          code: 'ERR_CUDA_UNSUPPORTED',
          message: expect.stringContaining('plain arrays') as string,
        });
        return;
      }
      await using buffer = await pinned;
      expect(buffer.view().length).toBe(4);
    });

    test('calls of the host, and a device that is closed and opened again', async () => {
      expect(await device.stream.call(() => 5)).toBe(5);
      for (let i = 0; i < 3; i++) {
        process.env['ASYNC_CUDA_WITHOUT'] = missing;
        const again = await CoreDevice.open(
          NAME,
          NAME.startsWith('cpu')
            ? { memoryBytes: (missing.length + 32) << 20 }
            : { thread: 'inline' },
        );
        delete process.env['ASYNC_CUDA_WITHOUT'];
        using buffer = again.alloc(i32, 4);
        buffer.fill(again.stream, i);
        expect(await buffer.read(again.stream)).toEqual(new Int32Array(4).fill(i));
        await again.close();
      }
    });

    test('memory that is freed is allocated again, after the work that used it', async () => {
      using stream = device.createStream();
      // 200 MiB in all: a CPU device of this suite has less than half of that.
      for (let i = 0; i < 50; i++) {
        using buffer = device.alloc(i32, 1 << 20, { stream });
        buffer.fill(stream, i);
        const first = buffer.slice(0, 1).read(stream);
        if (i % 10 === 0) expect((await first)[0]).toBe(i);
      }
    });

    test('memory that runs out is an error, and work goes on', async () => {
      const { total } = await device.memoryInfo();
      using large = device.alloc(i32, Math.ceil(total / 4) + 1024);
      await expect(large.allocated()).rejects.toMatchObject({ code: 'ERR_CUDA_OUT_OF_MEMORY' });
      using small = device.alloc(i32, 4);
      small.fill(device.stream, 7);
      expect(await small.read(device.stream)).toEqual(new Int32Array(4).fill(7));
    });
  },
);

describe('without the driver’s knowledge of parameters', () => {
  let device: CoreDevice;

  beforeAll(async () => {
    process.env['ASYNC_CUDA_WITHOUT'] = 'paraminfo';
    try {
      device = await CoreDevice.open(NAME, NAME.startsWith('cpu') ? { memoryBytes: 96 << 20 } : {});
    } finally {
      delete process.env['ASYNC_CUDA_WITHOUT'];
    }
  });

  afterAll(() => device.close());

  test('kernels whose parameters end anywhere in a word are launched', async () => {
    await using module = await device.loadModule(PARAMETERS);
    const { stream } = device;
    using out = device.alloc(u16, 5);
    // 8 + 2 + 2 + 1 + 1 + 1 = 15 bytes: a size of 16 is refused by a GPU.
    const words = module.kernel('words', [output(u16), u16, u16, u8, u8, u8]);
    await words.launch(stream, { grid: 1, block: 1 }, out, 1, 2, 3, 4, 5);
    expect([...(await out.read(stream))]).toEqual([1, 2, 3, 4, 5]);
    await words.launch(stream, { grid: [1, 1, 1], block: 1, priority: 0 }, out, 6, 7, 8, 9, 10);
    expect([...(await out.read(stream))]).toEqual([6, 7, 8, 9, 10]);
  });
});
