/**
 * Runtimes, engines and contexts, with a stand-in that has TensorRT's virtual tables; on a GPU the
 * stand-in computes an engine's results.
 */
import {
  CudaArgumentError,
  CudaLibraryError,
  CudaOutOfMemoryError,
  f32,
  f64,
} from 'async-cuda/core';
import type { DeviceBuffer, Stream } from 'async-cuda/core';
import { operation, value } from 'async-cuda/ops';
import { Runtime } from 'async-cuda/tensorrt';
import type { TensorRTEngine } from 'async-cuda/tensorrt';
import { Tensor } from 'async-cuda/tensor';
import type { AnyTensor } from 'async-cuda/tensor';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';

import { residentMemory } from '../core/resident-memory.js';
import { failure, onCpu, onDevice } from '../core/test-device.js';
import { StandInTensorRT, planText, whyNoStandIn } from './stand-in-tensorrt.js';

describe.skipIf(whyNoStandIn !== undefined).each([
  { key: '8' as const, version: 8601 },
  { key: '10' as const, version: 101600 },
  { key: '11' as const, version: 110000 },
])(
  `TensorRT $version runs${whyNoStandIn === undefined ? '' : ` (${whyNoStandIn})`}`,
  ({ key, version }) => {
    const standIn = whyNoStandIn === undefined ? new StandInTensorRT(key, version) : undefined!;

    onDevice('on', (host) => {
      let runtime: Runtime;
      let engine: TensorRTEngine;
      beforeAll(async () => {
        runtime = await Runtime.create(host.device, {
          files: { library: standIn.path },
          anyDevice: true,
        });
        engine = await runtime.deserialize(planText(1, 2));
        standIn.take();
      });
      afterAll(async () => {
        await engine.close();
        await runtime.close();
      });

      /**
       * Closed after each test: otherwise the garbage collector frees them during another test,
       * which counts memory.
       */
      const buffers: DeviceBuffer[] = [];
      afterEach(() => {
        for (const buffer of buffers.splice(0)) buffer.close();
      });

      function tensor(values: readonly number[], shape: number[]): AnyTensor {
        const buffer = host.device.alloc(f32, values.length);
        buffers.push(buffer);
        void buffer.write(host.stream, Float32Array.from(values));
        const made = Tensor.of(buffer, shape) as unknown as AnyTensor;
        return made;
      }

      async function used(): Promise<number> {
        return (await (await host.device.pool()).statistics()).used;
      }

      async function values(
        from: AnyTensor | undefined,
        stream: Stream = host.stream,
      ): Promise<number[]> {
        return Array.from((await from!.buffer.read(stream)) as Float32Array);
      }

      // async-tensorrt: engine, serialize
      test('an engine is serialized to its plan', async () => {
        expect(Buffer.from(await engine.serialize()).toString()).toBe('plan 1 2');
      });

      // async-tensorrt: engine, tensor_info
      test('an engine has its inputs and outputs', () => {
        const plain = (list: TensorRTEngine['inputs']): unknown =>
          list.map(({ name, dtype, shape }) => ({ name, dtype, shape }));
        expect(plain(engine.inputs)).toEqual([{ name: 'x', dtype: 'f32', shape: [1, 2] }]);
        expect(plain(engine.outputs)).toEqual([{ name: 'y', dtype: 'f32', shape: [2, 3] }]);
        expect(engine.profileShape('x')).toEqual({ min: [1, 2], opt: [1, 2], max: [1, 2] });
        expect([engine.name, engine.layers, engine.isRefittable]).toEqual(['pad', 1, false]);
      });

      // async-tensorrt: engine, execution_context_new
      test('two contexts, one after the other, and at once', async () => {
        standIn.take();
        await using first = await engine.createContext();
        await using second = await engine.createContext();
        expect(first).not.toBe(second);
        expect(standIn.take()).toEqual(['createExecutionContext 0', 'createExecutionContext 0']);
      });

      // async-tensorrt: engine, execution_context_enqueue: with float32 values the first row is 2,
      // 4, 0
      test('a run', async () => {
        await using context = await engine.createContext();
        const x = tensor([2, 4], [1, 2]);
        standIn.take();
        const { y } = await context.infer({ x });
        expect(standIn.take()).toEqual([
          'setTensorAddress x 1',
          'setTensorAddress y 1',
          'enqueueV3 1',
        ]);
        expect(y!.shape).toEqual([2, 3]);
        if (!onCpu) expect(await values(y)).toEqual([2, 4, 0, 0, 0, 0]);
        y!.close();
      });

      test('addresses that have not changed are not set again', async () => {
        await using context = await engine.createContext();
        const x = tensor([2, 4], [1, 2]);
        const y = tensor([9, 9, 9, 9, 9, 9], [2, 3]);
        const other = tensor([1, 3], [1, 2]);
        standIn.take();
        await context.infer({ x }, { outputs: { y } });
        await context.infer({ x }, { outputs: { y } });
        await context.infer({ x: other }, { outputs: { y } });
        expect(standIn.take()).toEqual([
          'setTensorAddress x 1',
          'setTensorAddress y 1',
          'enqueueV3 1',
          'enqueueV3 1',
          'setTensorAddress x 1',
          'enqueueV3 1',
        ]);
        if (!onCpu) expect(await values(y)).toEqual([1, 3, 0, 0, 0, 0]);
      });

      test('runs chain with other operations, in stream order', async () => {
        const x = tensor([0, 0], [1, 2]);
        const written = operation(host.device, ({ stream }) => {
          void (x.buffer as { write(stream: Stream, values: Float32Array): unknown }).write(
            stream,
            Float32Array.of(5, 6),
          );
        });
        const read = await written.andThen(() => engine.infer({ x }));
        if (!onCpu) expect(await values(read['y'])).toEqual([5, 6, 0, 0, 0, 0]);
        expect(read['y']!.shape).toEqual([2, 3]);
        read['y']!.close();
      });

      test.skipIf(onCpu)('a run is recorded in a graph', async () => {
        await using context = await engine.createContext();
        const x = tensor([1, 2], [1, 2]);
        const y = tensor([9, 9, 9, 9, 9, 9], [2, 3]);
        await context.infer({ x }, { outputs: { y } });
        const graph = await context.infer({ x }, { outputs: { y } }).capture(host.stream);
        await (
          x.buffer as unknown as { write(stream: Stream, values: Float32Array): PromiseLike<void> }
        ).write(host.stream, Float32Array.of(7, 8));
        await graph.replay();
        expect(await values(y)).toEqual([7, 8, 0, 0, 0, 0]);
      });

      test('the inspector has the engine’s layers', async () => {
        expect(JSON.parse(await engine.inspect())).toEqual({ Layers: ['pad'] });
        expect(JSON.parse(await engine.inspect(0))).toEqual({ Name: 'pad' });
        expect(() => engine.inspect(1)).toThrow(CudaArgumentError);
      });

      test('the times of layers are reported', async () => {
        await using context = await engine.createContext();
        const { layers, outputs } = await context.profileRun({ x: tensor([1, 2], [1, 2]) });
        expect(layers).toEqual([{ layer: 'pad', milliseconds: 0.25 }]);
        outputs['y']!.close();
      });

      test('weights are streamed, from version 10 on', async () => {
        if (key === '8') {
          expect((await failure(() => engine.weightStreaming())).code).toBe('ERR_CUDA_UNSUPPORTED');
          return;
        }
        await engine.setWeightStreamingBudget(500);
        expect(await engine.weightStreaming()).toEqual({
          streamable: 1000,
          budget: 500,
          automatic: 1 << 20,
        });
        expect(await failure(() => engine.setWeightStreamingBudget(5000))).toBeInstanceOf(
          CudaArgumentError,
        );
      });

      describe('a dynamic extent', () => {
        let dynamic: TensorRTEngine;
        beforeAll(async () => {
          dynamic = await runtime.deserialize(planText(-1, 2));
        });
        afterAll(() => dynamic.close());

        test('is given with each input', async () => {
          await using context = await dynamic.createContext();
          standIn.take();
          const first = await context.infer({ x: tensor([1, 2, 3, 4], [2, 2]) });
          expect(first['y']!.shape).toEqual([3, 3]);
          expect(standIn.take().filter((line) => line.startsWith('setInputShape'))).toContain(
            'setInputShape x 2 2 2',
          );
          if (!onCpu) expect(await values(first['y'])).toEqual([1, 2, 0, 3, 4, 0, 0, 0, 0]);
          const second = await context.infer({ x: tensor([1, 2], [1, 2]) });
          expect(second['y']!.shape).toEqual([2, 3]);
          for (const each of [first, second]) each['y']!.close();
        });

        test('is inferred, and checked', async () => {
          expect(await dynamic.inferShapes({ x: [3, 2] })).toEqual({ y: [4, 3] });
          await using context = await dynamic.createContext();
          expect(() => context.infer({ x: tensor(new Array<number>(18).fill(0), [9, 2]) })).toThrow(
            'inputs.x: expected f32[?, 2], got f32[9, 2]: axis 0 has 9 elements for 1 to 8, ' +
              'as profile 0 says',
          );
        });
      });

      describe('an output whose shape depends on the run', () => {
        let open: TensorRTEngine;
        beforeAll(async () => {
          open = await runtime.deserialize(planText(-1, 2, true));
        });
        afterAll(() => open.close());

        test('is of that shape', async () => {
          await using context = await open.createContext();
          expect(await open.inferShapes({ x: [3, 2] })).toEqual({ y: [-1, 3] });
          const x = tensor([1, 2, 3, 4], [2, 2]);
          for (const rows of [2, 0, 3, 1]) {
            standIn.rows(rows);
            const { y } = await context.infer({ x });
            expect(y!.shape).toEqual([rows, 3]);
            expect((await y!.read()).length).toBe(3 * rows);
            if (!onCpu)
              expect(await y!.read()).toEqual(
                Float32Array.of(1, 2, 0, 3, 4, 0, 0, 0, 0).slice(0, 3 * rows),
              );
            y!.close();
          }
        });

        test('of concurrent runs is read before the next run', async () => {
          await using context = await open.createContext();
          standIn.rows(2);
          standIn.take();
          const x = tensor([1, 2, 3, 4], [2, 2]);
          const results = await Promise.all(
            [1, 2, 3].map(() => context.infer({ x }).on(host.stream)),
          );
          for (const { y } of results) {
            expect(y!.shape).toEqual([2, 3]);
            y!.close();
          }
          // The allocator belongs to the context, and is set once.
          expect(standIn.take().filter((line) => line.startsWith('setOutputAllocator'))).toEqual([
            'setOutputAllocator y',
          ]);
          for (let i = 0; i < 2; i++) {
            const shape = await open.infer({ x }).andThen(({ y }) =>
              value(y!.shape).tap(() => {
                y!.close();
              }),
            );
            expect(shape).toEqual([2, 3]);
          }
        });

        test('with more output than TensorRT’s bound fails, and frees its memory', async () => {
          await using context = await open.createContext();
          const x = tensor([1, 2, 3, 4], [2, 2]);
          standIn.rows(1);
          (await context.infer({ x }))['y']!.close();
          await host.device.finished();
          const before = await used();
          standIn.rows(4);
          const error = await failure(async () => context.infer({ x }));
          standIn.rows(1);
          expect(error).toBeInstanceOf(CudaLibraryError);
          expect(error.message).toMatch(/IOutputAllocator returned nullptr/);
          (await context.infer({ x }))['y']!.close();
          await host.device.finished();
          expect(await used()).toBe(before);
        });

        test('is not given, recorded, or waited for by a thread that blocks', async () => {
          await using context = await open.createContext();
          const x = tensor([1, 2, 3, 4], [2, 2]);
          const y = tensor([1, 2, 3], [1, 3]);
          await open.inferShapes({ x: [2, 2] });
          (await context.infer({ x }))['y']!.close();
          expect(
            (await failure(async () => context.infer({ x }, { outputs: { y } }))).message,
          ).toMatch(/options\.outputs\.y: expected nothing: its shape is known when it is there/);
          expect((await failure(() => context.infer({ x }).capture())).code).toBe(
            'ERR_CUDA_CAPTURE',
          );
          expect((await failure(async () => context.infer({ x }).sync())).code).toBe(
            'ERR_CUDA_UNSUPPORTED',
          );
        });
      });

      test(
        'a hundred engines that are loaded, run and released leave nothing',
        { tags: 'thorough' },
        async () => {
          const x = tensor([1, 2, 3, 4], [2, 2]);
          standIn.rows(2);
          const once = async (): Promise<void> => {
            await using made = await runtime.deserialize(planText(-1, 2, true));
            await using context = await made.createContext();
            for (const { y } of await Promise.all([context.infer({ x }), made.infer({ x })]))
              y!.close();
            await context.profileRun({ x }).then(({ outputs }) => {
              outputs['y']!.close();
            });
          };
          for (let i = 0; i < 30; i++) await once();
          await host.device.finished();
          let growth = Infinity;
          // A leak grows with every hundred engines; the heap does not.
          for (let round = 0; round < 4 && growth >= 16 * 2 ** 20; round++) {
            const resident = await residentMemory();
            const [alive, before] = [standIn.alive, await used()];
            for (let i = 0; i < 100; i++) await once();
            await host.device.finished();
            expect(standIn.alive).toBe(alive);
            expect(await used()).toBe(before);
            growth = (await residentMemory()) - resident;
          }
          // The words or allocators of a context that were not freed would take some kilobytes
          // each.
          expect(growth).toBeLessThan(16 * 2 ** 20);
        },
      );

      describe('bad input', () => {
        test('names, dtypes, ranks and extents', async () => {
          await using context = await engine.createContext();
          const x = tensor([1, 2], [1, 2]);
          using doubles = host.device.alloc(f64, 2);
          const wide = Tensor.of(doubles, [1, 2]) as unknown as AnyTensor;
          expect(() => context.infer({})).toThrow(
            /inputs: expected 'x', got nothing\. Add x: a tensor of f32\[1, 2\]/,
          );
          expect(() => context.infer({ x, z: x })).toThrow(/no input 'z'; it has 'x'/);
          expect(() => context.infer({ x: wide })).toThrow(
            /inputs\.x: expected f32\[1, 2\], got f64\[1, 2\]: another dtype/,
          );
          expect(() => context.infer({ x: tensor([1, 2], [2]) })).toThrow(/rank 1 for 2/);
          expect(() => context.infer({ x: tensor([1, 2, 3], [1, 3]) })).toThrow(
            /axis 1 has 3 elements for 2/,
          );
          expect(() => context.infer({ x: [1, 2] as unknown as AnyTensor })).toThrow(
            CudaArgumentError,
          );
          // A run of these tensors is cached: values that are not objects are still refused.
          (await context.infer({ x }))['y']!.close();
          expect(() => context.infer(null as never)).toThrow(CudaArgumentError);
          expect(() => context.infer({ x }, { outputs: null as never })).toThrow(CudaArgumentError);
          const error = await failure(async () =>
            context.infer({ x }, { outputs: { y: tensor([1, 2, 3, 4], [2, 2]) } }),
          );
          expect(error).toBeInstanceOf(CudaArgumentError);
          expect(error.message).toMatch(/options\.outputs\.y/);
        });

        test("a plan of garbage, and one of another version, with TensorRT's message", async () => {
          const garbage = await failure(() =>
            runtime.deserialize(new TextEncoder().encode('garbage')),
          );
          expect(garbage).toBeInstanceOf(CudaLibraryError);
          expect(garbage.message).toMatch(/magicTagRead/);
          expect(
            (await failure(() => runtime.deserialize(new TextEncoder().encode('other')))).message,
          ).toMatch(/not compatible with this version/);
        });

        test("a run that fails, with TensorRT's message; the next sets all addresses", async () => {
          await using context = await engine.createContext();
          const x = tensor([1, 2], [1, 2]);
          (await context.infer({ x }))['y']!.close();
          standIn.answers(1);
          const error = await failure(async () => context.infer({ x }));
          standIn.answers(0);
          expect(error).toBeInstanceOf(CudaLibraryError);
          expect(error.message).toMatch(
            /enqueueV3 of TensorRT .* returned false: the stand-in was told to refuse/,
          );
          standIn.take();
          (await context.infer({ x }))['y']!.close();
          expect(standIn.take()).toContain('setTensorAddress x 1');
        });

        test('too little memory for a context', async () => {
          standIn.answers(3);
          const error = await failure(() => engine.createContext());
          standIn.answers(0);
          expect(error).toBeInstanceOf(CudaOutOfMemoryError);
        });

        test('a run that is aborted before its turn is not queued', async () => {
          await using context = await engine.createContext();
          const x = tensor([1, 2], [1, 2]);
          const gone = new Error('gone');
          standIn.take();
          const controller = new AbortController();
          const op = context.infer({ x }, { signal: controller.signal });
          controller.abort(gone);
          expect(await failure(async () => op)).toBe(gone);
          // A run that waits for its context checks the signal again.
          await using fresh = await runtime.deserialize(planText(1, 2));
          const late = new AbortController();
          const waits = fresh.infer({ x }, { signal: late.signal }).then();
          const waiting = failure(() => waits);
          late.abort(gone);
          const ended = await waiting;
          expect(ended).toBe(gone);
          expect(standIn.take().filter((line) => line.startsWith('enqueueV3'))).toEqual([]);
          expect(() => context.infer({ x }, { signal: 1 as unknown as AbortSignal })).toThrow(
            /AbortSignal/,
          );
        });

        test('an aborted run is not waited for, and its memory is freed', async () => {
          await using context = await engine.createContext();
          const x = tensor([1, 2], [1, 2]);
          await host.device.finished();
          const before = await used();
          const stream = host.device.createStream();
          let go = (): void => undefined;
          const gate = new Promise<void>((resolve) => {
            go = resolve;
          });
          const held = stream.call(() => gate);
          const [gone, controller] = [new Error('gone'), new AbortController()];
          const running = context.infer({ x }, { signal: controller.signal }).on(stream).then();
          const ended = failure(() => running);
          controller.abort(gone);
          expect(await ended).toBe(gone);
          go();
          await held;
          stream.close();
          await host.device.finished();
          expect(await used()).toBe(before);
          // Another run of the context has its result.
          const { y } = await context.infer({ x }, { signal: new AbortController().signal });
          expect(y!.shape).toEqual([2, 3]);
          y!.close();
        });

        test('memory of a run that fails after it is queued is freed', async () => {
          await using context = await engine.createContext();
          const x = tensor([1, 2], [1, 2]);
          (await context.infer({ x }))['y']!.close();
          await host.device.finished();
          const before = await used();
          standIn.answers(1);
          for (let i = 0; i < 3; i++) await failure(async () => context.infer({ x }));
          standIn.answers(0);
          await host.device.finished();
          expect(await used()).toBe(before);
        });

        test('outputs that share memory with an input', async () => {
          await using context = await engine.createContext();
          const memory = host.device.alloc(f32, 8);
          const [x, y] = [
            Tensor.of(memory.slice(0, 2), [1, 2]),
            Tensor.of(memory.slice(2, 8), [2, 3]),
          ] as unknown as [AnyTensor, AnyTensor];
          expect(() => context.infer({ x }, { outputs: { y } })).toThrow(
            /options\.outputs\.y: expected memory of its own/,
          );
          memory.close();
        });

        test('two runs of one context at once', async () => {
          await using context = await engine.createContext();
          const x = tensor([1, 2], [1, 2]);
          const [a, b] = [host.device.createStream(), host.device.createStream()];
          let go = (): void => undefined;
          const gate = new Promise<void>((resolve) => {
            go = resolve;
          });
          const held = a.call(() => gate);
          const running = context.infer({ x }).on(a).then();
          const error = await failure(async () => context.infer({ x }).on(b));
          expect(error.code).toBe('ERR_CUDA_BUSY');
          go();
          await held;
          for (const { y } of [await running, await context.infer({ x }).on(b)]) y!.close();
          for (const stream of [a, b]) stream.close();
        });

        test('an engine is closed while it runs: its runs end first', async () => {
          const other = await runtime.deserialize(planText(1, 2));
          const context = await other.createContext();
          const running = context.infer({ x: tensor([1, 2], [1, 2]) }).then();
          await other.close();
          (await running)['y']!.close();
          expect(() => context.infer({ x: tensor([1, 2], [1, 2]) })).toThrow(
            /used after it was closed/,
          );
          expect(() => other.infer({ x: tensor([1, 2], [1, 2]) })).toThrow(
            /used after it was closed/,
          );
        });
      });
    });
  },
);

describe.skipIf(whyNoStandIn !== undefined)('a TensorRT of a version that is not known', () => {
  onDevice(
    'on',
    (host) => {
      test.each([
        [8400, /8\.4\.0/],
        [120000, /12\.0\.0/],
      ])('%i is refused', async (version, said) => {
        const error = await failure(() =>
          Runtime.create(host.device, {
            files: { library: new StandInTensorRT('10', version).path },
            anyDevice: true,
          }),
        );
        expect(error.code).toBe('ERR_CUDA_UNSUPPORTED');
        expect(error.message).toMatch(said);
      });

      test('a library with the virtual tables of another version is refused', async () => {
        const error = await failure(() =>
          Runtime.create(host.device, {
            files: { library: new StandInTensorRT('8', 101600).path },
            anyDevice: true,
          }),
        );
        expect(error.code).toBe('ERR_CUDA_UNSUPPORTED');
        expect(error.message).toMatch(/virtual table of Runtime/);
      });

      test.skipIf(!onCpu)('TensorRT does not run on a CPU device', async () => {
        expect((await failure(() => Runtime.create(host.device))).message).toMatch(/ONNX Runtime/);
      });
    },
    ['worker'],
  );
});
