/**
 * A launch that is kept for many runs writes the record that `Kernel.launch` writes, is ordered as
 * one, and is refused as one.
 */
import { CudaDisposedError, f32, i32, inout, input, output } from 'async-cuda/core';
import type { Kernel, KernelArgument, LaunchOptions, Module, Stream } from 'async-cuda/core';
import * as fc from '../fast-check.js';
import { beforeAll, expect, test } from 'vitest';

import { TensorMap } from '../../src/core/tensor-map.js';
import { onDevice } from './test-device.js';

const PTX = `.version 7.8
.target sm_80
.address_size 64
.visible .entry add(.param .u64 y, .param .u64 x, .param .f32 a, .param .u32 n) {
  .reg .b64 %rd<3>; .reg .b32 %r<5>; .reg .f32 %f<4>; .reg .pred %p;
  ld.param.u64 %rd1, [y]; ld.param.u64 %rd2, [x]; ld.param.f32 %f1, [a]; ld.param.u32 %r1, [n];
  mov.u32 %r2, %tid.x;
  setp.ge.u32 %p, %r2, %r1;
  @%p ret;
  mul.wide.u32 %rd0, %r2, 4;
  add.u64 %rd1, %rd1, %rd0; add.u64 %rd2, %rd2, %rd0;
  ld.global.f32 %f2, [%rd1]; ld.global.f32 %f3, [%rd2];
  fma.rn.f32 %f2, %f1, %f3, %f2;
  st.global.f32 [%rd1], %f2;
  ret;
}
.visible .entry narrow(.param .u8 a, .param .f64 b, .param .u64 c, .param .s64 d, .param .u16 e) {
  ret;
}
.visible .entry map(.param .align 64 .b8 m[128], .param .u64 y) { ret; }
`;
const ADD = [inout(f32), input(f32), f32, i32] as const;

interface Writer {
  memory: Int32Array;
  at: number;
  words: number;
  header: number;
  commit(): void;
}

onDevice('Kept launches', (host) => {
  let module: Module;
  let add: Kernel;

  beforeAll(async () => {
    module = await host.load(PTX);
    add = module.kernel('add', ADD);
  });

  /** What a launch writes into the ring, without the operation's number and its event. */
  function recordOf(launch: () => unknown): string {
    const { ring } = (host.device as unknown as { runtime: { ring: Writer } }).runtime;
    let record = 'nothing';
    ring.commit = () => {
      record = [
        ring.header,
        ring.memory[ring.at + 2],
        ...ring.memory.subarray(ring.at + 4, ring.at + ring.words),
      ].join(' ');
      (Object.getPrototypeOf(ring) as Writer).commit.call(ring);
    };
    try {
      launch();
      return record;
    } catch (error) {
      return String(error);
    } finally {
      delete (ring as { commit?: unknown }).commit;
    }
  }

  function check(
    kernel: Kernel,
    stream: Stream,
    options: LaunchOptions,
    args: readonly KernelArgument[],
  ): void {
    const general = recordOf(() => kernel.launch(stream, options, ...args));
    const kept = kernel.keep(options, args)!;
    for (let i = 0; i < 2; i++) expect(recordOf(() => kept.launch(stream))).toBe(general);
  }

  test(
    'the same record, whatever the grid, the options and the values',
    { tags: 'random' },
    async () => {
      const { device } = host;
      const y = device.alloc(f32, 64);
      const x = device.alloc(f32, 64);
      const streams = [device.stream, device.createStream()];
      const extent = fc.integer({ min: 1, max: 3 });
      await fc.assert(
        fc.asyncProperty(
          fc.record({
            grid: fc.oneof(extent, fc.tuple(extent, extent)),
            block: fc.oneof(extent, fc.tuple(extent, extent, extent)),
            sharedBytes: fc.option(fc.nat(64), { nil: undefined }),
            priority: fc.option(fc.nat(1), { nil: undefined }),
          }),
          fc.nat(63),
          fc.float({ noNaN: true }),
          fc.integer({ min: 0, max: 32 }),
          fc.nat(1),
          async ({ sharedBytes, priority, ...shape }, from, a, n, on) => {
            const options = {
              ...shape,
              ...(sharedBytes === undefined ? {} : { sharedBytes }),
              ...(priority === undefined ? {} : { priority }),
            };
            check(add, streams[on]!, options, [y, x.slice(from, 64), a, n % (64 - from)]);
            await host.device.finished();
          },
        ),
        { numRuns: 200 },
      );
    },
  );

  test('values of all sizes, null pointers and tensor maps', async () => {
    const options = { grid: 1, block: 1 };
    check(module.kernel('narrow'), host.stream, options, [200, -0.5, null, -7n, 65535]);
    const x = host.device.alloc(f32, 64);
    const map = new TensorMap(
      'x',
      { buffer: x.slice(16, 64), shape: [6, 8], strides: [8, 1] },
      { box: [4, 8], swizzle: 32 },
      false,
    );
    const mapped = module.kernel('map', [{ map: true, access: 'input' }, output(f32)]);
    check(mapped, host.stream, options, [map, x]);
    await host.device.finished();
  });

  test('each launch runs, after the launches of other streams that it depends on', async () => {
    const { device } = host;
    const y = device.alloc(f32, 4);
    const x = device.alloc(f32, 4);
    y.fill(host.stream, 0);
    x.fill(host.stream, 1);
    const other = device.createStream();
    const kept = add.keep({ grid: 1, block: 4 }, [y, x, 2, 4])!;
    let release = (): void => undefined;
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    void host.stream.call(() => held);
    for (let i = 0; i < 5; i++) {
      kept.launch(host.stream);
      kept.launch(other);
    }
    release();
    expect([...(await y.read(other))]).toEqual([20, 20, 20, 20]);
  });

  test('closed memory, streams and modules are refused, before anything is queued', async () => {
    const { device } = host;
    const options = { grid: 1, block: 4 };
    const y = device.alloc(f32, 4);
    const x = device.alloc(f32, 4);
    y.fill(host.stream, 0);
    x.fill(host.stream, 1);
    const kept = add.keep(options, [y, x, 1, 4])!;
    kept.launch(host.stream);
    const stream = device.createStream();
    stream.close();
    expect(() => kept.launch(stream)).toThrow(CudaDisposedError);
    x.close();
    expect(() => kept.launch(host.stream)).toThrow("args[1] of kernel 'add'");
    expect([...(await y.read(host.stream))]).toEqual([1, 1, 1, 1]);
    const own = await host.load(PTX);
    const closed = own.kernel('add', ADD).keep(options, [y, y.slice(0, 4), 1, 4])!;
    await own.close();
    expect(() => closed.launch(host.stream)).toThrow('its module was closed');
  });

  test('bytes may change, so they are not kept', async () => {
    const bytes = await host.load(`.version 7.0
.target sm_70
.address_size 64
.visible .entry take(.param .align 8 .b8 s[24]) { ret; }`);
    expect(bytes.kernel('take').keep({ grid: 1, block: 1 }, [new ArrayBuffer(24)])).toBe(undefined);
  });
});
