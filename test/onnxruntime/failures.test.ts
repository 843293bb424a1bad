/** Runs that fail: which waits reject, which memory is undefined, and that the next run works. */
import { readFileSync } from 'node:fs';
import { setImmediate } from 'node:timers/promises';

import { CudaError, f32, i64 } from 'async-cuda/core';
import { loadOnnxEngine } from 'async-cuda/onnxruntime';
import type { OnnxEngine, OnnxRuntimeOptions } from 'async-cuda/onnxruntime';
import { tensor, zeros } from 'async-cuda/tensor';
import type { Tensor } from 'async-cuda/tensor';
import { afterEach, expect, test } from 'vitest';

import { failure, openTestDevice } from '../core/test-device.js';
import { RESHAPE, addModel, longModel, onnxModel } from './onnx-model.js';
import { onPaths, paths } from './paths.js';

/** The same model with an output whose shape is known only after the run. */
const RESHAPE_SOME = onnxModel({
  inputs: [
    ['x', 'f32', [4]],
    ['i', 'i64', [1]],
  ],
  outputs: [['n', 'i64', [1, '']]],
  nodes: [
    { op: 'Reshape', inputs: ['x', 'i'], outputs: ['y'] },
    { op: 'NonZero', inputs: ['y'], outputs: ['n'] },
  ],
});
const FILL = onnxModel({
  inputs: [['shape', 'i64', [1]]],
  outputs: [['y', 'f32', ['']]],
  nodes: [{ op: 'ConstantOfShape', inputs: ['shape'], outputs: ['y'] }],
});
const COUNT = onnxModel({
  inputs: [['x', 'f32', ['n']]],
  outputs: [['y', 'i64', [1]]],
  nodes: [{ op: 'Shape', inputs: ['x'], outputs: ['y'] }],
});
const UNDEFINED = { code: 'ERR_CUDA_UNDEFINED_CONTENTS' };
const WRONG_SIZE = {
  code: 'ERR_CUDA_LIBRARY',
  message: expect.stringMatching(/cannot be reshaped/) as string,
};

/** Linux can be set to overcommit memory; it then kills processes that use more than there is. */
function promisesAll(): boolean {
  try {
    return readFileSync('/proc/sys/vm/overcommit_memory', 'utf8').trim() === '1';
  } catch {
    return false;
  }
}

onPaths(
  'a run that fails',
  (on) => {
    const opened: OnnxEngine[] = [];
    const load = async (model: Uint8Array, options?: OnnxRuntimeOptions): Promise<OnnxEngine> => {
      const engine = await loadOnnxEngine(on.device, model, options);
      opened.push(engine);
      return engine;
    };
    afterEach(async () => {
      await Promise.all(opened.splice(0).map((engine) => engine.close()));
    });
    const aborted = (): AbortSignal => AbortSignal.abort(new Error('enough'));
    const first = async (x: Tensor<'f32'>): Promise<number> => (await x.read())[0]!;

    test('among many of one context, on several streams, does not affect the others', async () => {
      const engine = await load(RESHAPE, { contexts: 1 });
      using x = await tensor(on.device, f32, [5, 6, 7, 8]);
      using good = await tensor(on.device, i64, [4n]);
      using bad = await tensor(on.device, i64, [9n]);
      const streams = [
        on.device.createStream(),
        on.device.createStream(),
        on.device.createStream(),
      ];
      const outputs = await Promise.all(
        Array.from({ length: 24 }, () => zeros(on.device, f32, [4])),
      );
      const ends = await Promise.allSettled(
        outputs.map((y, i) =>
          engine
            .infer({ x, i: i % 3 === 1 ? bad : good }, { outputs: { y } })
            .runOn(streams[(i % 4) % 3]!),
        ),
      );
      for (const [i, y] of outputs.entries()) {
        expect(ends[i]!.status, `run ${i}`).toBe(i % 3 === 1 ? 'rejected' : 'fulfilled');
        if (i % 3 === 1)
          expect(await failure(() => y.read()), `output ${i}`).toMatchObject(UNDEFINED);
        else expect(await first(y), `output ${i}`).toBe(5);
        y.close();
      }
      for (const stream of streams) stream.close();
    });

    test('among many whose outputs the library makes', async () => {
      const engine = await load(RESHAPE_SOME, { contexts: 2 });
      using x = await tensor(on.device, f32, [5, 6, 7, 8]);
      using good = await tensor(on.device, i64, [4n]);
      using bad = await tensor(on.device, i64, [9n]);
      const ends = await Promise.allSettled(
        Array.from({ length: 20 }, (_, i) =>
          engine.infer({ x, i: i % 3 === 1 ? bad : good }).run(),
        ),
      );
      for (const [i, end] of ends.entries()) {
        expect(end.status, `run ${i}`).toBe(i % 3 === 1 ? 'rejected' : 'fulfilled');
        if (end.status === 'rejected') expect(end.reason).toMatchObject(WRONG_SIZE);
        else {
          expect([...((await end.value['n']!.read()) as BigInt64Array)]).toEqual([0n, 1n, 2n, 3n]);
          end.value['n']!.close();
        }
      }
    });

    test('leaves page-locked memory that a run without copies to it can use', async () => {
      const engine = await load(COUNT);
      await using context = await engine.createContext();
      using none = await zeros(on.device, f32, [0]);
      using y = await zeros(on.device, i64, [1]);
      await context.infer({ x: none }, { outputs: { y } });
      expect(
        await failure(() => context.infer({ x: none }, { outputs: { y }, signal: aborted() })),
      ).toMatchObject({ message: 'enough' });
      expect(await failure(() => y.read())).toMatchObject(UNDEFINED);
      await context.infer({ x: none }, { outputs: { y } });
      expect([...(await y.read())]).toEqual([0n]);
    });

    test('leaves its output and what depends on it undefined until both are written', async () => {
      const engine = await load(addModel('f32', ['n']));
      await using context = await engine.createContext();
      using a = await tensor(on.device, f32, [1, 2]);
      using b = await zeros(on.device, f32, [2]);
      using c = await zeros(on.device, f32, [2]);
      for (let round = 0; round < 3; round++) {
        expect(
          await failure(() => context.infer({ a, b: a }, { outputs: { c: b }, signal: aborted() })),
        ).toMatchObject({ message: 'enough' });
        expect(
          await failure(() => context.infer({ a: b, b: a }, { outputs: { c } })),
        ).toMatchObject(UNDEFINED);
        expect(await failure(() => context.infer({ a, b }, { outputs: { c } }))).toMatchObject(
          UNDEFINED,
        );
        expect(await failure(() => c.read())).toMatchObject(UNDEFINED);
        await b.fill(round);
        await context.infer({ a, b }, { outputs: { c } });
        expect([...(await c.read())]).toEqual([1 + round, 2 + round]);
      }
    });

    test('does not write a part of undefined memory, and rejects', async () => {
      const engine = await load(addModel('f32', [2]));
      using a = await tensor(on.device, f32, [1, 2]);
      using whole = await zeros(on.device, f32, [4]);
      const part = whole.slice([2, 4]);
      await engine.infer({ a, b: a }, { outputs: { c: part } });
      expect([...(await whole.read())]).toEqual([0, 0, 2, 4]);
      expect(
        await failure(() => engine.infer({ a, b: a }, { outputs: { c: part }, signal: aborted() })),
      ).toMatchObject({ message: 'enough' });
      for (let i = 0; i < 3; i++)
        expect(
          await failure(() => engine.infer({ a, b: a }, { outputs: { c: part } })),
        ).toMatchObject(UNDEFINED);
      await whole.fill(1);
      await engine.infer({ a, b: a }, { outputs: { c: part } });
      expect([...(await whole.read())]).toEqual([1, 1, 2, 4]);
    });

    test('ends the operation that it is part of', async () => {
      const engine = await load(RESHAPE);
      using x = await tensor(on.device, f32, [5, 6, 7, 8]);
      using bad = await tensor(on.device, i64, [9n]);
      using good = await tensor(on.device, i64, [4n]);
      using y = await zeros(on.device, f32, [4]);
      using z = await zeros(on.device, f32, [4]);
      const wrong = engine.infer({ x, i: bad }, { outputs: { y } });
      expect(
        await failure(() =>
          wrong.andThen(({ y: made }) =>
            engine.infer({ x, i: good }, { outputs: { y: z } }).andThen(() => made!.read()),
          ),
        ),
      ).toMatchObject(WRONG_SIZE);
      expect(await wrong.orElse(() => engine.infer({ x, i: good }, { outputs: { y } }))).toEqual({
        y,
      });
      expect(await first(y)).toBe(5);
    });

    test.each([0, 1, 2])(
      'later runs of the operation do not start, after %i runs before',
      async (times) => {
        const engine = await load(RESHAPE);
        using x = await tensor(on.device, f32, [5, 6, 7, 8]);
        using bad = await tensor(on.device, i64, [9n]);
        using good = await tensor(on.device, i64, [4n]);
        using y = await zeros(on.device, f32, [4]);
        using z = await zeros(on.device, f32, [4]);
        const wrong = engine.infer({ x, i: bad }, { outputs: { y } });
        const behind = engine.infer({ x, i: good }, { outputs: { y: z } });
        for (let run = 0; run < times; run++) await behind;
        for (let round = 0; round < 2; round++) {
          expect(await failure(() => wrong.andThen(() => behind))).toMatchObject(WRONG_SIZE);
          expect(await failure(() => z.read())).toMatchObject(UNDEFINED);
        }
        await behind;
        expect(await first(z)).toBe(5);
      },
    );

    test.each([
      ['given', RESHAPE],
      ['made by the library', RESHAPE_SOME],
    ] as const)(
      'and that are not awaited, output %s, are reported by the device once',
      async (how, model) => {
        const engine = await load(model);
        using x = await tensor(on.device, f32, [5, 6, 7, 8]);
        using bad = await tensor(on.device, i64, [9n]);
        using y = await zeros(on.device, f32, [4]);
        using stream = on.device.createStream();
        const outputs = how === 'given' ? { y } : {};
        // The first run allocates its page-locked memory, the second one has it.
        for (let round = 0; round < 2; round++) {
          const told = new Promise<Error>((resolve) => {
            on.device.once('error', resolve);
          });
          engine.infer({ x, i: bad }, { outputs }).runOn(stream);
          expect(await told).toMatchObject(WRONG_SIZE);
          await stream.finished();
          for (let turn = 0; turn < 10; turn++) await setImmediate();
          expect(on.errors.splice(0)).toHaveLength(1);
        }
      },
    );

    test(
      "for lack of the host's memory, and the next one does not",
      { tags: 'thorough' },
      async ({ skip }) => {
        skip(
          promisesAll(),
          'this system promises any amount of memory, and ends processes that take it at its word',
        );
        const engine = await load(FILL);
        using huge = await tensor(on.device, i64, [1n << 60n]);
        using small = await tensor(on.device, i64, [3n]);
        for (let round = 0; round < 2; round++) {
          expect(await failure(() => engine.infer({ shape: huge }))).toMatchObject({
            code: 'ERR_CUDA_OUT_OF_MEMORY',
          });
          const { y } = await engine.infer({ shape: small });
          expect([...((await y!.read()) as Float32Array)]).toEqual([0, 0, 0]);
          y!.close();
        }
      },
    );

    test("for lack of the device's memory, and the next one does not", async () => {
      const rows = 1 << 22;
      const model = (n: number): Uint8Array =>
        onnxModel({
          inputs: [['x', 'f32', [1]]],
          outputs: [['y', 'f32', [n, rows]]],
          constants: [
            {
              name: 'shape',
              type: 'i64',
              shape: [2],
              data: BigInt64Array.of(BigInt(n), BigInt(rows)),
            },
          ],
          nodes: [{ op: 'Expand', inputs: ['x', 'shape'], outputs: ['y'] }],
        });
      // A pebibyte is more than any system allows, however much memory it overcommits.
      const large = await load(model(1 << 26));
      const small = await load(model(1));
      using x = await tensor(on.device, f32, [3]);
      for (let round = 0; round < 2; round++) {
        expect(await failure(() => large.infer({ x }))).toMatchObject({
          code: 'ERR_CUDA_OUT_OF_MEMORY',
        });
        const { y } = await small.infer({ x });
        expect(((await y!.read()) as Float32Array).at(-1)).toBe(3);
        y!.close();
      }
    });

    test('by its signal, during the run: its output is undefined, and the context usable', async ({
      skip,
    }) => {
      const engine = await load(longModel(512, 1000));
      skip(engine.provider === 'cuda', 'on a GPU all of the run is queued before the signal comes');
      const small = await load(longModel(512, 1));
      await using context = await engine.createContext();
      using x = await tensor(on.device, f32, new Float32Array(512 * 512).fill(1 / 512), [512, 512]);
      using y = await zeros(on.device, f32, [512, 512]);
      const controller = new AbortController();
      const running = context.infer({ x }, { outputs: { y }, signal: controller.signal }).run();
      setTimeout(() => {
        controller.abort(new Error('enough'));
      }, 100);
      expect(await failure(() => running)).toMatchObject({ message: 'enough' });
      expect(await failure(() => y.read())).toMatchObject(UNDEFINED);
      await small.infer({ x }, { outputs: { y } });
      expect(await first(y)).toBeCloseTo(1 / 512, 6);
    }, 60_000);

    test('does not keep its engine from closing', async () => {
      const engine = await load(RESHAPE_SOME);
      using x = await tensor(on.device, f32, [5, 6, 7, 8]);
      using bad = await tensor(on.device, i64, [9n]);
      using good = await tensor(on.device, i64, [4n]);
      const runs = Promise.allSettled([bad, good, bad].map((i) => engine.infer({ x, i }).run()));
      await engine.close();
      const ends = await runs;
      expect(ends.map(({ status }) => status)).toEqual(['rejected', 'fulfilled', 'rejected']);
      for (const end of ends) if (end.status === 'fulfilled') end.value['n']!.close();
    });
  },
  1,
);

test.each(paths)(
  'closing a device during a run, tensors $name, rejects every wait',
  async ({ options }) => {
    const device = await openTestDevice(options);
    const engine = await loadOnnxEngine(device, longModel(256, 40));
    const x = await zeros(device, f32, [256, 256]);
    const runs = [1, 2, 3].map(() => engine.infer({ x }).run());
    const ends = Promise.allSettled(runs.map((run) => run.then()));
    await setImmediate();
    await device.close();
    for (const end of await ends)
      if (end.status === 'rejected') expect(end.reason).toBeInstanceOf(CudaError);
    await engine.close();
  },
);
