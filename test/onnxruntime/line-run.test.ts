/**
 * Runs that a thread takes from shared memory: their results, their order, the memory that they
 * keep, and failures among many.
 */
import { f32, i64 } from 'async-cuda/core';
import type { Stream } from 'async-cuda/core';
import { loadOnnxEngine } from 'async-cuda/onnxruntime';
import type { OnnxEngine, OnnxRuntimeOptions } from 'async-cuda/onnxruntime';
import { tensor, zeros } from 'async-cuda/tensor';
import type { AnyTensor, Tensor } from 'async-cuda/tensor';
import { afterEach, expect, test, vi } from 'vitest';

import { collectGarbage } from '../core/garbage.js';
import { failure } from '../core/test-device.js';
import type { TestDevice } from '../core/test-device.js';
import { RESHAPE, addModel, longModel } from './onnx-model.js';
import { onPaths } from './paths.js';
import { someOf } from '../random-runs.js';

/** Loads engines that are closed after each test. */
function loading(
  on: TestDevice,
): (model: Uint8Array, options?: OnnxRuntimeOptions) => Promise<OnnxEngine> {
  const opened: OnnxEngine[] = [];
  afterEach(async () => {
    await Promise.all(opened.splice(0).map((engine) => engine.close()));
  });
  return async (model, options) => {
    const engine = await loadOnnxEngine(on.device, model, options);
    opened.push(engine);
    return engine;
  };
}

onPaths(
  'a run on tensors that were given',
  (on) => {
    const load = loading(on);
    const first = async (x: Tensor<'f32'>): Promise<number> => (await x.read())[0]!;

    test('uses the contents of its tensors at each run', async () => {
      const engine = await load(addModel('f32', [3]));
      using a = await zeros(on.device, f32, [3]);
      using b = await tensor(on.device, f32, [1, 2, 3]);
      using c = await zeros(on.device, f32, [3]);
      const sum = engine.infer({ a, b }, { outputs: { c } });
      for (let i = 0; i < 20; i++) {
        await a.write(new Float32Array(3).fill(i));
        expect((await sum).c).toBe(c);
        expect([...(await c.read())]).toEqual([i + 1, i + 2, i + 3]);
      }
    });

    someOf(2, test)(['built once', 'made for each run'])(
      'an operation %s: thousands queued without waiting read what those before have written',
      async (how) => {
        const engine = await load(addModel('f32', [4]));
        using stream = on.device.createStream();
        using one = await tensor(on.device, f32, [1, 1, 1, 1]);
        using x = await zeros(on.device, f32, [4]);
        using y = await zeros(on.device, f32, [4]);
        const there = () => engine.infer({ a: x, b: one }, { outputs: { c: y } });
        const back = () => engine.infer({ a: y, b: one }, { outputs: { c: x } });
        const built = [there(), back()];
        let last: PromiseLike<unknown> | undefined;
        // More than a thread receives at once.
        const count = engine.staged ? 300 : 3000;
        for (let i = 0; i < count; i++)
          last = (how === 'built once' ? built[i % 2]! : i % 2 === 0 ? there() : back()).runOn(
            stream,
          );
        await last;
        expect([...(await x.read())]).toEqual([count, count, count, count]);
      },
    );

    test('is ordered in its stream, and by its tensors across streams', async () => {
      const engine = await load(addModel('f32', [1024]));
      using left = on.device.createStream();
      using right = on.device.createStream();
      using one = await tensor(on.device, f32, new Float32Array(1024).fill(1));
      using x = await zeros(on.device, f32, [1024]);
      using y = await zeros(on.device, f32, [1024]);
      const there = engine.infer({ a: x, b: one }, { outputs: { c: y } });
      const back = engine.infer({ a: y, b: one }, { outputs: { c: x } });
      for (let round = 0; round < 20; round++) {
        // 5, 6 and 7 on one stream, 8 and 9 on the other.
        const runs = [
          x.fill(5).runOn(left),
          there.runOn(left),
          back.runOn(left),
          there.runOn(right),
          back.runOn(right),
        ];
        await Promise.all(runs);
        expect(await first(x)).toBe(9);
        expect((await y.read())[1023]).toBe(8);
      }
    });

    test('that fails rejects its operation and readers of its output, and no others', async () => {
      const engine = await load(RESHAPE);
      const add = await load(addModel('f32', [4]));
      using stream = on.device.createStream();
      using x = await tensor(on.device, f32, [1, 2, 3, 4]);
      using good = await tensor(on.device, i64, [4n]);
      using bad = await tensor(on.device, i64, [7n]);
      using y = await zeros(on.device, f32, [4]);
      using z = await zeros(on.device, f32, [4]);
      using sum = await zeros(on.device, f32, [4]);
      const right = engine.infer({ x, i: good }, { outputs: { y } });
      const wrong = engine.infer({ x, i: bad }, { outputs: { y: z } });
      const doubled = add.infer({ a: z, b: z }, { outputs: { c: sum } });
      // The first time each is prepared; later they are passed together.
      for (let round = 0; round < 3; round++) {
        const runs = [right, wrong, doubled, right, wrong, right].map((op) => op.runOn(stream));
        const ends = await Promise.allSettled(runs);
        expect(ends.map(({ status }) => status)).toEqual([
          'fulfilled',
          'rejected',
          'rejected',
          'fulfilled',
          'rejected',
          'fulfilled',
        ]);
        const reasons = ends.map((end) =>
          end.status === 'rejected' ? (end.reason as unknown) : undefined,
        );
        expect(reasons[1]).toMatchObject({
          code: 'ERR_CUDA_LIBRARY',
          message: expect.stringMatching(/cannot be reshaped.*\{7\}/) as string,
        });
        expect(reasons[4]).toMatchObject({ code: 'ERR_CUDA_LIBRARY' });
        expect(reasons[2]).toMatchObject({ code: 'ERR_CUDA_UNDEFINED_CONTENTS' });
        expect([...(await y.read())]).toEqual([1, 2, 3, 4]);
        expect(await failure(() => sum.read())).toMatchObject({
          code: 'ERR_CUDA_UNDEFINED_CONTENTS',
        });
      }
      // A buffer that a run writes whole is defined after it.
      await bad.write(BigInt64Array.of(4n));
      await wrong.runOn(stream);
      await doubled.runOn(stream);
      expect([...(await z.read()), ...(await sum.read())]).toEqual([1, 2, 3, 4, 2, 4, 6, 8]);
    });

    test('whose output an earlier failure left undefined defines it again', async () => {
      const engine = await load(RESHAPE);
      using x = await tensor(on.device, f32, [1, 2, 3, 4]);
      using i = await tensor(on.device, i64, [9n]);
      using y = await zeros(on.device, f32, [4]);
      expect(await failure(() => engine.infer({ x, i }, { outputs: { y } }))).toMatchObject({
        code: 'ERR_CUDA_LIBRARY',
      });
      expect(await failure(() => y.read())).toMatchObject({ code: 'ERR_CUDA_UNDEFINED_CONTENTS' });
      await i.write(BigInt64Array.of(4n));
      await (await load(RESHAPE)).infer({ x, i }, { outputs: { y } });
      expect([...(await y.read())]).toEqual([1, 2, 3, 4]);
    });

    test('whose failure is not awaited is reported by the device', async () => {
      const engine = await load(RESHAPE);
      using stream = on.device.createStream();
      using x = await tensor(on.device, f32, [1, 2, 3, 4]);
      using i = await tensor(on.device, i64, [4n]);
      using y = await zeros(on.device, f32, [4]);
      const op = engine.infer({ x, i }, { outputs: { y } });
      await op.runOn(stream);
      await op.runOn(stream);
      await i.write(BigInt64Array.of(5n));
      const told = new Promise<Error>((resolve) => {
        on.device.once('error', resolve);
      });
      op.runOn(stream);
      expect(await told).toMatchObject({ code: 'ERR_CUDA_LIBRARY' });
      expect(on.errors.splice(0)).toHaveLength(1);
    });

    test('is bound once, and again where a run needs more page-locked memory', async () => {
      const engine = await load(addModel('f32', ['n']));
      await using context = await engine.createContext();
      using a = await tensor(on.device, f32, [1, 2]);
      using c = await zeros(on.device, f32, [2]);
      using large = await tensor(on.device, f32, new Float32Array(1 << 16).fill(4));
      using sum = await zeros(on.device, f32, [1 << 16]);
      const small = context.infer({ a, b: a }, { outputs: { c } });
      for (let round = 0; round < 3; round++) {
        await a.write(Float32Array.of(round, 10 * round));
        await small;
        expect([...(await c.read())]).toEqual([2 * round, 20 * round]);
      }
      expect(engine.bindings.count).toBe(1);
      await context.infer({ a: large, b: large }, { outputs: { c: sum } });
      expect([...new Set(await sum.read())]).toEqual([8]);
      for (let round = 3; round < 6; round++) {
        await a.write(Float32Array.of(round, 10 * round));
        await small;
        expect([...(await c.read())]).toEqual([2 * round, 20 * round]);
      }
      // In place the large tensors have a binding of their own; through page-locked memory the
      // small ones are bound again to the larger memory.
      expect(engine.bindings.count).toBe(2);
    });

    test('allows its tensors to be closed after it is queued, also the first time', async () => {
      const engine = await load(addModel('f32', [2]));
      const a = await tensor(on.device, f32, [1, 2]);
      using c = await zeros(on.device, f32, [2]);
      const doubled = engine.infer({ a, b: a }, { outputs: { c } });
      const runs = [doubled.run(), doubled.run()];
      a.close();
      await Promise.all(runs);
      expect([...(await c.read())]).toEqual([2, 4]);
    });

    test(
      'on a stream for each run does not keep closed and unreferenced streams',
      { tags: 'thorough' },
      async () => {
        const engine = await load(addModel('f32', [2]));
        using a = await tensor(on.device, f32, [1, 2]);
        using c = await zeros(on.device, f32, [2]);
        const doubled = engine.infer({ a, b: a }, { outputs: { c } });
        const streams: WeakRef<Stream>[] = [];
        const runOnOneMore = async (): Promise<void> => {
          const stream = on.device.createStream();
          await doubled.runOn(stream);
          stream.close();
          streams.push(new WeakRef(stream));
        };
        for (let i = 0; i < 120; i++) await runOnOneMore();
        await on.device.finished();
        await vi.waitFor(
          async () => {
            await collectGarbage(2);
            expect(streams.filter((each) => each.deref() !== undefined).length).toBeLessThan(60);
          },
          { timeout: 5000 },
        );
      },
    );

    test(
      'more operations in turn than an engine keeps prepared',
      { tags: 'thorough' },
      async () => {
        const engine = await load(addModel('f32', [1]));
        using one = await tensor(on.device, f32, [1]);
        using x = await zeros(on.device, f32, [1]);
        const outputs = await Promise.all(
          Array.from({ length: 70 }, () => zeros(on.device, f32, [1])),
        );
        const ops = outputs.map((c, i) =>
          engine.infer({ a: i === 0 ? x : outputs[i - 1]!, b: one }, { outputs: { c } }),
        );
        for (let round = 0; round < 4; round++) {
          await x.write(Float32Array.of(round));
          for (const op of ops.slice(0, -1)) op.run().catch(() => undefined);
          await ops.at(-1);
          expect(await first(outputs.at(-1)!)).toBe(70 + round);
        }
        for (const each of outputs) each.close();
      },
    );

    test(
      'more streams at once than there are threads, each with more to do all the time',
      { tags: 'thorough' },
      async () => {
        const engine = await load(longModel(256, 4), { contexts: 16, threads: 1 });
        const streams = Array.from({ length: 12 }, () => on.device.createStream());
        using x = await zeros(on.device, f32, [256, 256]);
        const outputs = await Promise.all(streams.map(() => zeros(on.device, f32, [256, 256])));
        const seen = streams.map(() => 0);
        // Each stream has several queued until each has had some runs.
        const deadline = performance.now() + 20_000;
        await Promise.all(
          streams.map(async (stream, s) => {
            const underway: Promise<void>[] = [];
            while (seen.some((count) => count < 3) && performance.now() < deadline) {
              underway.push(
                engine
                  .infer({ x }, { outputs: { y: outputs[s]! } })
                  .runOn(stream)
                  .finished()
                  .then(() => {
                    seen[s]!++;
                  }),
              );
              if (underway.length > 8) await underway.shift();
            }
            await Promise.all(underway);
          }),
        );
        expect(Math.min(...seen)).toBeGreaterThanOrEqual(3);
        for (const each of [...streams, ...outputs]) each.close();
      },
    );

    test('refuses closed tensors, other streams at once, and a closed engine', async () => {
      const engine = await load(longModel(256, 20));
      const context = await engine.createContext();
      using left = on.device.createStream();
      using right = on.device.createStream();
      using x = await zeros(on.device, f32, [256, 256]);
      const y = await zeros(on.device, f32, [256, 256]);
      const op = context.infer({ x }, { outputs: { y } });
      await op.runOn(left);
      await op.runOn(left);
      // The run is held, so that it is in flight during the test.
      let open = (): void => undefined;
      const gate = new Promise<void>((resolve) => {
        open = resolve;
      });
      left.call(() => gate).catch(() => undefined);
      const running = op.runOn(left);
      expect(() => op.runOn(right)).toThrow(expect.objectContaining({ code: 'ERR_CUDA_BUSY' }));
      open();
      await running;
      await op.runOn(right);
      y.close();
      expect(() => op.runOn(left)).toThrow(expect.objectContaining({ code: 'ERR_CUDA_DISPOSED' }));
      using z = await zeros(on.device, f32, [256, 256]);
      const other = engine.infer({ x }, { outputs: { y: z } });
      await other.runOn(left);
      const last = other.runOn(left);
      await engine.close();
      await last;
      expect(() => other.runOn(left)).toThrow(
        expect.objectContaining({ code: 'ERR_CUDA_DISPOSED' }),
      );
    });
  },
  1,
);

onPaths(
  'a run that makes its outputs',
  (on) => {
    const load = loading(on);

    test('returns new tensors each time, also for the same operation', async () => {
      const engine = await load(addModel('f32', [2]));
      using a = await tensor(on.device, f32, [1, 2]);
      const doubled = engine.infer({ a, b: a });
      const results: AnyTensor[] = [];
      for (let i = 0; i < 5; i++) {
        await a.write(Float32Array.of(i, -i));
        results.push((await doubled).c!);
      }
      expect(new Set(results).size).toBe(5);
      for (const [i, result] of results.entries()) {
        expect([...((await result.read()) as Float32Array)]).toEqual([2 * i, -2 * i]);
        result.close();
      }
    });

    test('reuses the binding of memory that is allocated again, also on new tensors', async () => {
      const engine = await load(addModel('f32', ['n']));
      using stream = on.device.createStream();
      for (let i = 0; i < 40; i++) {
        using a = await tensor(on.device, f32, [i, 1, 2]);
        using result = (await engine.infer({ a, b: a }).runOn(stream)).c!;
        expect([...((await result.read()) as Float32Array)]).toEqual([2 * i, 2, 4]);
      }
      expect(engine.bindings.count).toBeGreaterThan(0);
      expect(engine.bindings.count).toBeLessThan(10);
    });

    test('distinguishes tensors at the same addresses with other shapes', async () => {
      const engine = await load(addModel('f32', ['n', 'm']));
      using stream = on.device.createStream();
      for (let round = 0; round < 3; round++) {
        for (const shape of [
          [2, 8],
          [16, 1],
          [1, 4],
          [4, 4],
        ]) {
          const values = Float32Array.from({ length: shape[0]! * shape[1]! }, (_, i) => i + round);
          using a = await tensor(on.device, f32, values, shape);
          using result = (await engine.infer({ a, b: a }).runOn(stream)).c!;
          expect(result.shape).toEqual(shape);
          expect([...((await result.read()) as Float32Array)]).toEqual(
            [...values].map((value) => 2 * value),
          );
        }
      }
    });

    test('hundreds are queued without waiting, each on the closed result before', async () => {
      const engine = await load(addModel('f32', [4]));
      using stream = on.device.createStream();
      using one = await tensor(on.device, f32, [1, 1, 1, 1]);
      let sum: AnyTensor = await zeros(on.device, f32, [4]);
      // From the second run on the output's shape is known before it.
      (await engine.infer({ a: one, b: one })).c!.close();
      for (let i = 0; i < 300; i++) {
        const next = engine.infer({ a: sum, b: one }).runOn(stream).value.c!;
        sum.close();
        sum = next;
      }
      expect([...((await sum.read()) as Float32Array)]).toEqual([300, 300, 300, 300]);
      sum.close();
    });

    test('that fails returns no tensors, and frees its memory', async () => {
      const engine = await load(RESHAPE);
      using x = await tensor(on.device, f32, [1, 2, 3, 4]);
      using i = await tensor(on.device, i64, [4n]);
      const op = engine.infer({ x, i });
      for (let round = 0; round < 3; round++) (await op).y!.close();
      await on.device.finished();
      const {
        live,
        memory: { inUse },
      } = await on.device.stats();
      for (let round = 0; round < 10; round++) {
        await i.write(BigInt64Array.of(9n));
        expect(await failure(() => op)).toMatchObject({
          code: 'ERR_CUDA_LIBRARY',
          message: expect.stringMatching(/cannot be reshaped.*\{9\}/) as string,
        });
        await i.write(BigInt64Array.of(4n));
        using y = (await op).y!;
        expect([...((await y.read()) as Float32Array)]).toEqual([1, 2, 3, 4]);
      }
      await on.device.finished();
      const after = await on.device.stats();
      expect(after.live.buffers).toBe(live.buffers);
      expect(after.memory.inUse).toBe(inUse);
    });

    test('inputs may be closed as soon as it is queued', async () => {
      const engine = await load(addModel('f32', [3]));
      const given: Promise<AnyTensor>[] = [];
      for (let i = 0; i < 20; i++) {
        const a = await tensor(on.device, f32, [i, 10 * i, 100 * i]);
        const running = engine.infer({ a, b: a }).run();
        a.close();
        given.push(running.then((outputs) => outputs.c!));
      }
      for (const [i, each] of (await Promise.all(given)).entries()) {
        expect([...((await each.read()) as Float32Array)]).toEqual([2 * i, 20 * i, 200 * i]);
        each.close();
      }
    });
  },
  1,
);
