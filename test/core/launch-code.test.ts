/**
 * The code that is compiled for a kernel that is launched often does what `Kernel.launch` does,
 * command for command and error for error.
 */
import { Kernel, f32, i32, inout, input, output, u8 } from 'async-cuda/core';
import type { KernelArgument, LaunchOptions, Module, Stream } from 'async-cuda/core';
import * as fc from '../fast-check.js';
import { beforeAll, expect, test } from 'vitest';

import { runProgram } from '../faults/program.js';
import { onDevice, range } from './test-device.js';

/** Launches after which a kernel has code of its own, and some more. */
const OFTEN = 600;

const kernel = (name: string, params: readonly string[]): string =>
  '.visible .entry ' +
  `${name}(${params.map((type, i) => `.param ${type.replace('@', `${name}_${i}`)}`).join(', ')}) ` +
  '{ ret; }';

const PTX = `.version 7.0
.target sm_70
.address_size 64
${kernel('none', [])}
${kernel('tick', ['.u64 @', '.f32 @', '.s32 @'])}
${kernel('two', ['.u64 @', '.u64 @', '.u32 @'])}
${kernel('mixed', ['.u8 @', '.f64 @', '.u64 @', '.s64 @', '.f32 @', '.u16 @', '.s32 @'])}
${kernel('structure', ['.u64 @', '.align 8 .b8 @[24]', '.u32 @', '.u64 @'])}
`;

interface Writer {
  memory: Int32Array;
  at: number;
  words: number;
  header: number;
  commit(): void;
}

onDevice('Launches as code', (host) => {
  let module: Module;

  beforeAll(async () => {
    module = await host.load(PTX);
  });

  /**
   * What the launch wrote into the ring, without the operation's number and the event that is
   * recorded after it; or the error.
   */
  function outcome(launch: () => unknown): string {
    const ring = (host.device as unknown as { runtime: { ring: Writer } }).runtime.ring;
    const records: string[] = [];
    ring.commit = () => {
      const record = [
        ring.header,
        ring.memory[ring.at + 2],
        ...ring.memory.subarray(ring.at + 4, ring.at + ring.words),
      ];
      records.push(record.join(' '));
      (Object.getPrototypeOf(ring) as Writer).commit.call(ring);
    };
    try {
      launch();
      return records.at(-1) ?? 'nothing';
    } catch (error) {
      return String(error);
    } finally {
      delete (ring as { commit?: unknown }).commit;
    }
  }

  function prepare() {
    const { device } = host;
    const closed = device.alloc(f32, 4);
    closed.close();
    const closedStream = device.createStream();
    closedStream.close();
    const buffer = device.alloc(f32, 64);
    const big = device.alloc(f32, 1024);
    const memories = [
      buffer,
      buffer.slice(8, 16),
      buffer.slice(12, 20),
      big,
      big.slice(1, 2),
      device.alloc(i32, 16),
      closed,
      device.alloc2D(u8, { width: 3, height: 3 }),
    ];
    for (const memory of memories)
      if (!memory.isClosed && 'fill' in memory) (memory as typeof buffer).fill(device.stream, 0);
    const values: unknown[] = [
      ...memories,
      null,
      undefined,
      0,
      1,
      -1,
      1.5,
      -0,
      NaN,
      2 ** 31,
      2 ** 32,
      -(2 ** 31),
      7n,
      true,
      'text',
      new Float32Array(2),
      new ArrayBuffer(24),
    ];
    const shapes: unknown[] = [
      { grid: 1, block: 32 },
      { grid: 2, block: 64, sharedBytes: 16 },
      { grid: [1, 2], block: 8 },
      { grid: 1, block: [4, 4, 2] },
      { grid: 0, block: 1 },
      { grid: 1, block: 99_999 },
      { grid: 1, block: 32, priority: 0 },
      { grid: 1, block: 32, typo: 1 },
      undefined,
      null,
    ];
    return {
      memories,
      values,
      shapes,
      streams: [
        device.stream,
        device.createStream(),
        closedStream,
        undefined,
      ] as unknown as Stream[],
    };
  }

  type Declared = readonly (readonly [name: string, signature: Parameters<Module['kernel']>[1]])[];
  const declared: Declared = [
    ['none', undefined],
    ['tick', undefined],
    ['tick', [inout(f32), f32, i32]],
    ['two', undefined],
    ['two', [input(f32), output(f32), i32]],
    ['two', [inout(f32), inout(f32), i32]],
    ['mixed', undefined],
    ['structure', undefined],
  ];

  test.each(declared.map(([name, signature], i) => ({ name, signature, i })))(
    '$name $i: the same commands are written and the same arguments refused',
    { tags: 'random' },
    async ({ name, signature }) => {
      const { memories, values, shapes, streams } = prepare();
      const launched =
        signature === undefined ? module.kernel(name) : module.kernel(name, signature);
      const usual: KernelArgument[] = {
        none: [],
        tick: [memories[0]!, 1, 5],
        two: [memories[0]!, memories[3]!, 5],
        mixed: [1, 2, null, 3, 4, 5, 6],
        structure: [null, new ArrayBuffer(24), 1, memories[0]!],
      }[name]!;
      const shape = shapes[0] as LaunchOptions;
      for (let i = 0; i < OFTEN; i++) launched.launch(host.stream, shape, ...usual);
      expect(Object.hasOwn(launched, 'launch')).toBe(true);
      const value = fc.integer({ min: 0, max: values.length - 1 });
      await fc.assert(
        fc.asyncProperty(
          fc.array(fc.option(value, { freq: 3 }), { maxLength: usual.length + 1 }),
          fc.boolean(),
          fc.nat(shapes.length - 1),
          fc.nat(streams.length - 1),
          fc.nat(9),
          async (picked, whole, at, on, luck) => {
            // Most launches have one unusual argument only: with more, all would be refused early.
            const args = whole
              ? usual.map((arg, i) =>
                  picked[i] === null || picked[i] === undefined ? arg : values[picked[i]!],
                )
              : picked.map((pick) => (pick === null ? usual[0] : values[pick]));
            const options = shapes[luck < 6 ? luck % 2 : at] as LaunchOptions;
            const stream = streams[luck < 8 ? luck % 2 : on]!;
            const general = outcome(() =>
              (Kernel.prototype.launch as (...all: unknown[]) => unknown).call(
                launched,
                stream,
                options,
                ...args,
              ),
            );
            // Twice: the first launch may check the options as well.
            for (let time = 0; time < 2; time++) {
              expect(
                outcome(() =>
                  (launched.launch as (...all: unknown[]) => unknown)(stream, options, ...args),
                ),
              ).toBe(general);
            }
            await host.stream.ready();
          },
        ),
        { numRuns: 500 },
      );
      await host.device.finished();
      host.errors.splice(0);
    },
  );

  test('kernels with the same parameters share it and launch their own functions', async () => {
    const { device } = host;
    const both = await host.load(
      `.version 7.0\n.target sm_70\n.address_size 64\n${range(2)
        .map(
          (i) => `.visible .entry put${i}(.param .u64 p, .param .u32 v)
{ .reg .b64 %rd<2>; .reg .b32 %r<2>; ld.param.u64 %rd1, [p]; ld.param.u32 %r1, [v];
  add.u32 %r1, %r1, ${i * 100}; st.global.u32 [%rd1], %r1; ret; }`,
        )
        .join('\n')}`,
    );
    const kernels = range(2).map((i) => both.kernel(`put${i}`, [output(i32), i32]));
    const outs = range(2).map(() => device.alloc(i32, 1));
    for (let i = 0; i < OFTEN; i++)
      for (const [k, each] of kernels.entries())
        each.launch(host.stream, { grid: 1, block: 1 }, outs[k]!, i);
    expect(await Promise.all(outs.map(async (out) => (await out.read(host.stream))[0]))).toEqual([
      OFTEN - 1,
      OFTEN + 99,
    ]);
    const [first, second] = kernels as [Kernel, Kernel];
    first.launch(host.stream, { grid: 1, block: 1 }, outs[1]!, -5);
    second.launch(host.stream, { grid: 1, block: 1 }, outs[0]!.slice(0, 1), true);
    expect(await Promise.all(outs.map(async (out) => (await out.read(host.stream))[0]))).toEqual([
      101, -5,
    ]);
  });
});

test(
  'kernels are launched where Node forbids code from strings',
  { tags: 'thorough' },
  async () => {
    const run = async (...node: string[]): Promise<unknown> =>
      (await runProgram('often', { node })).result;
    expect(await run()).toEqual({ last: 999, own: true });
    expect(await run('--disallow-code-generation-from-strings')).toEqual({ last: 999, own: false });
  },
);
