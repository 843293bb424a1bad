/**
 * Engines of ONNX Runtime on both devices: what they give, in which order, and what they refuse.
 */
import { writeFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { DTYPES, CoreDevice, bool, f32, i32, i64, u8 } from 'async-cuda/core';
import { loadOnnxEngine } from 'async-cuda/onnxruntime';
import type { OnnxEngine, OnnxRuntimeOptions } from 'async-cuda/onnxruntime';
import { empty, zip } from 'async-cuda/ops';
import { tensor, zeros } from 'async-cuda/tensor';
import type { AnyTensor, Tensor } from 'async-cuda/tensor';
import * as fc from '../fast-check.js';
import { afterEach, describe, expect, test } from 'vitest';

import { failure, onCpu } from '../core/test-device.js';
import { addModel, longModel, onnxModel } from './onnx-model.js';
import type { OnnxType } from './onnx-model.js';
import { onPaths } from './paths.js';

const NON_ZERO = onnxModel({
  inputs: [['x', 'f32', ['n']]],
  outputs: [['i', 'i64', [1, '']]],
  nodes: [{ op: 'NonZero', inputs: ['x'], outputs: ['i'] }],
});

async function values(given: AnyTensor | undefined): Promise<number[]> {
  return [...((await given!.read()) as Iterable<number | bigint>)].map(Number);
}

onPaths(
  'an engine of ONNX Runtime',
  (on) => {
    const opened: OnnxEngine[] = [];
    const load = async (
      model: Parameters<typeof loadOnnxEngine>[1],
      options?: OnnxRuntimeOptions,
    ): Promise<OnnxEngine> => {
      const engine = await loadOnnxEngine(on.device, model, options);
      opened.push(engine);
      return engine;
    };
    afterEach(async () => {
      await Promise.all(opened.splice(0).map((engine) => engine.close()));
    });

    test('has its inputs and outputs', async () => {
      const engine = await load(
        onnxModel({
          inputs: [
            ['x', 'f32', ['batch', 3, '']],
            ['k', 'i64', []],
          ],
          outputs: [['y', 'f32', ['batch', 3, '']]],
          nodes: [
            { op: 'Cast', inputs: ['k'], outputs: ['f'], attributes: { to: 1 } },
            { op: 'Add', inputs: ['x', 'f'], outputs: ['y'] },
          ],
        }),
      );
      expect(engine.kind).toBe('onnxruntime');
      expect(engine.description).toMatch(/^ONNX Runtime 1\.\d+\.\d+ \((CPU|CUDA)\)$/);
      expect(engine.inputs).toEqual([
        {
          name: 'x',
          dtype: 'f32',
          shape: [-1, 3, -1],
          dimensions: ['batch', undefined, undefined],
        },
        { name: 'k', dtype: 'i64', shape: [] },
      ]);
      expect(engine.outputs.map(({ name }) => name)).toEqual(['y']);
    });

    test('takes every byte of bool but 0 for true, with and without gaps', async () => {
      const engine = await load(
        onnxModel({
          inputs: [['x', 'bool', ['n']]],
          outputs: [['y', 'bool', ['n']]],
          nodes: [{ op: 'Not', inputs: ['x'], outputs: ['y'] }],
        }),
      );
      using bytes = await tensor(on.device, u8, Uint8Array.of(2, 255, 1, 0, 0, 128));
      const x = bytes.reinterpret(bool) as unknown as Tensor<'bool'>;
      for (let i = 0; i < 3; i++) {
        const { y } = await engine.infer({ x });
        expect([...(await y!.readBits())]).toEqual([0, 0, 0, 1, 1, 0]);
        y!.close();
      }
      const { y } = await engine.infer({ x: x.slice([0, null, 3]) as never });
      expect([...(await y!.readBits())]).toEqual([0, 1]);
      y!.close();
      // The input is unchanged.
      expect([...(await bytes.read())]).toEqual([2, 255, 1, 0, 0, 128]);
    });

    test.each(['toString', 'constructor', 'hasOwnProperty', 'valueOf', '__proto__'])(
      'an input and an output that are called %s',
      async (name) => {
        const engine = await load(
          onnxModel({
            inputs: [
              [name, 'f32', ['n']],
              ['b', 'f32', ['n']],
            ],
            outputs: [['c', 'f32', ['n']]],
            nodes: [{ op: 'Add', inputs: [name, 'b'], outputs: ['c'] }],
          }),
        );
        using a = await tensor(on.device, f32, [1, 2]);
        const { c } = await engine.infer(
          Object.fromEntries([
            [name, a],
            ['b', a],
          ]),
        );
        expect(await values(c)).toEqual([2, 4]);
        c!.close();
        const error = await failure(() => engine.infer({ b: a }));
        expect([error.code, error.message]).toEqual([
          'ERR_CUDA_INVALID_ARGUMENT',
          expect.stringContaining(`Add ${name}: a tensor of f32[n]`),
        ]);

        const giving = await load(
          onnxModel({
            inputs: [['x', 'f32', ['n']]],
            outputs: [[name, 'f32', ['n']]],
            nodes: [{ op: 'Neg', inputs: ['x'], outputs: [name] }],
          }),
        );
        for (let i = 0; i < 3; i++) {
          const given = await giving.infer({ x: a });
          expect(Object.keys(given)).toEqual([name]);
          expect(await values(given[name])).toEqual([-1, -2]);
          given[name]!.close();
        }
        using to = await zeros(on.device, f32, [2]);
        await giving.infer({ x: a }, { outputs: Object.fromEntries([[name, to]]) });
        expect(await values(to)).toEqual([-1, -2]);
      },
    );

    test('gives sums of any shape, also of no element', { tags: 'random' }, async () => {
      const engine = await load(addModel('f32', ['n', 'm']));
      await fc.assert(
        fc.asyncProperty(
          fc.integer({ min: 0, max: 40 }),
          fc.integer({ min: 1, max: 40 }),
          fc.integer({ min: -100, max: 100 }),
          async (n, m, by) => {
            const numbers = Array.from({ length: n * m }, (_, i) => i);
            using a = await tensor(on.device, f32, numbers, [n, m]);
            using b = await tensor(
              on.device,
              f32,
              numbers.map(() => by),
              [n, m],
            );
            const { c } = await engine.infer({ a, b });
            expect(c!.shape).toEqual([n, m]);
            expect(await values(c)).toEqual(numbers.map((each) => each + by));
            c!.close();
          },
        ),
        { numRuns: 20 },
      );
    });

    test.each<OnnxType & keyof typeof DTYPES>([
      'f32',
      'f64',
      'f16',
      'bf16',
      'i8',
      'i16',
      'i32',
      'i64',
      'u8',
      'u16',
      'u32',
      'u64',
      'bool',
    ])('accepts and returns %s', async (type) => {
      const engine = await load(
        onnxModel({
          inputs: [['x', type, [5]]],
          outputs: [['y', type, [5]]],
          nodes: [{ op: 'Identity', inputs: ['x'], outputs: ['y'] }],
        }),
      );
      const dtype = DTYPES[type];
      const words = dtype.bytes === 8 ? BigUint64Array.from([0n, 1n, 2n, 3n, 4n]) : [0, 1, 1, 0, 1];
      using x = await zeros(on.device, dtype, [5]);
      await x.write(
        (Array.isArray(words)
          ? await hostOf(x, words)
          : await hostOf(x, [...words].map(Number))) as never,
      );
      const { y } = await engine.infer({ x });
      expect(y!.dtype.name).toBe(type);
      expect(await y!.readBits()).toEqual(await x.readBits());
      y!.close();
    });

    test('a model from its file and its bytes: the same', async () => {
      const folder = mkdtempSync(join(tmpdir(), 'async-cuda-onnx-'));
      try {
        const path = join(folder, 'añb.onnx');
        const bytes = addModel('i32', [2]);
        writeFileSync(path, bytes);
        using a = await tensor(on.device, i32, [1, 2]);
        const shared = new SharedArrayBuffer(bytes.length);
        new Uint8Array(shared).set(bytes);
        for (const model of [path, pathToFileURL(path), bytes, bytes.slice().buffer, shared]) {
          const engine = await load(model);
          const { c } = await engine.infer({ a, b: a });
          expect(await values(c)).toEqual([2, 4]);
          c!.close();
        }
      } finally {
        rmSync(folder, { recursive: true });
      }
    });

    test('outputs whose shape is known only after the run', async () => {
      const engine = await load(NON_ZERO);
      for (const [given, expected] of [
        [
          [0, 5, 0, 7],
          [1, 3],
        ],
        [[0, 0], []],
        [
          [1, 1, 1],
          [0, 1, 2],
        ],
      ]) {
        using x = await tensor(on.device, f32, given!);
        const indices = await engine.infer({ x }).andThen(({ i }) =>
          zip(
            empty(() => i!.shape),
            i!.read(),
          ),
        );
        expect(indices[0]).toEqual([1, expected!.length]);
        expect([...(indices[1] as BigInt64Array)].map(Number)).toEqual(expected);
      }
    });

    test('a convolution, and a shape that is an input', async () => {
      const weights = Float32Array.from({ length: 9 }, () => 1);
      const engine = await load(
        onnxModel({
          inputs: [
            ['x', 'f32', [1, 1, 'h', 'w']],
            ['shape', 'i64', [1]],
          ],
          outputs: [['y', 'f32', ['']]],
          constants: [{ name: 'k', type: 'f32', shape: [1, 1, 3, 3], data: weights }],
          nodes: [
            {
              op: 'Conv',
              inputs: ['x', 'k'],
              outputs: ['c'],
              attributes: { kernel_shape: [3, 3] },
            },
            { op: 'Reshape', inputs: ['c', 'shape'], outputs: ['y'] },
          ],
        }),
      );
      using x = await tensor(
        on.device,
        f32,
        Array.from({ length: 16 }, (_, i) => i),
        [1, 1, 4, 4],
      );
      using shape = await tensor(on.device, i64, [4n]);
      const { y } = await engine.infer({ x, shape });
      expect(await values(y)).toEqual([45, 54, 81, 90]);
      y!.close();
    });

    test('inputs made by operations, and views that are no dense memory', async () => {
      const engine = await load(addModel('f32', [2, 2]));
      using square = await tensor(on.device, f32, [1, 2, 3, 4], [2, 2]);
      const sums = await engine
        .infer({ a: square.transpose(), b: tensor(on.device, f32, [10, 20, 30, 40], [2, 2]) })
        .andThen(({ c }) => c!.read());
      expect([...(sums as Float32Array)]).toEqual([11, 23, 32, 44]);
    });

    test('runs are in the order of their stream, and of the tensors that they share', async () => {
      const engine = await load(addModel('f32', [1024]));
      using one = await tensor(on.device, f32, new Float32Array(1024).fill(1));
      using x = await zeros(on.device, f32, [1024]);
      using y = await zeros(on.device, f32, [1024]);
      // Each reads what the one before has written, on another stream of the policy's.
      const runs = Array.from({ length: 12 }, (_, i) =>
        engine
          .infer({ a: i % 2 === 0 ? x : y, b: one }, { outputs: { c: i % 2 === 0 ? y : x } })
          .run(),
      );
      const last = await x.read();
      await Promise.all(runs);
      expect(last[0]).toBe(12);
      expect(last[1023]).toBe(12);
    });

    test('a write after a run does not change what it has read', async () => {
      const engine = await load(addModel('f32', [1 << 16]));
      using a = await tensor(on.device, f32, new Float32Array(1 << 16).fill(3));
      const run = engine.infer({ a, b: a }).run();
      const filled = a.fill(100).run();
      const { c } = await run;
      await filled;
      expect([...new Set(await values(c))]).toEqual([6]);
      c!.close();
    });

    test("outputs that are given are written, and stay their owner's", async () => {
      const engine = await load(addModel('f32', ['n']));
      using a = await tensor(on.device, f32, [1, 2]);
      using c = await zeros(on.device, f32, [2]);
      const given = await engine.infer({ a, b: a }, { outputs: { c } });
      expect(given.c).toBe(c);
      expect(await values(c)).toEqual([2, 4]);
    });

    test('a few contexts execute any number of runs', async () => {
      const engine = await load(addModel('f32', ['n']), { contexts: 2 });
      using a = await tensor(on.device, f32, [1, 2]);
      const all = await Promise.all(
        Array.from({ length: 20 }, async (_, i) => {
          using b = await tensor(on.device, f32, [i, i]);
          const { c } = await engine.infer({ a, b });
          const got = await values(c);
          c!.close();
          return got;
        }),
      );
      expect(all).toEqual(Array.from({ length: 20 }, (_, i) => [1 + i, 2 + i]));
    });

    describe('refuses', () => {
      const wrong: readonly (readonly [
        title: string,
        inputs: (on: CoreDevice) => Promise<Record<string, AnyTensor>>,
        says: RegExp,
      ])[] = [
        [
          'a missing input',
          async (d) => ({ a: await zeros(d, f32, [2]) }),
          /inputs: expected 'a', 'b', got 'a'\. Add b: a tensor of f32\[n\]/,
        ],
        [
          'an unknown input',
          async (d) => ({
            a: await zeros(d, f32, [2]),
            b: await zeros(d, f32, [2]),
            z: await zeros(d, f32, [2]),
          }),
          /no input 'z'; it has 'a', 'b'/,
        ],
        [
          'another dtype',
          async (d) => ({ a: await zeros(d, i32, [2]), b: await zeros(d, f32, [2]) }),
          /inputs\.a: expected f32\[n\], got i32\[2\]: another dtype\. .*tensor\.convert\(f32\)/,
        ],
        [
          'another rank',
          async (d) => ({ a: await zeros(d, f32, [2, 1]), b: await zeros(d, f32, [2]) }),
          /inputs\.a: expected f32\[n\], got f32\[2, 1\]: rank 2 for 1/,
        ],
        [
          'extents that are named alike and differ',
          async (d) => ({ a: await zeros(d, f32, [2]), b: await zeros(d, f32, [3]) }),
          /inputs\.b: .*'n' is 2 by inputs\.a, and axis 0 has 3/,
        ],
      ];
      test.each(wrong)('%s', async (_, make, says) => {
        const engine = await load(addModel(), { strictShapes: true });
        const inputs = await make(on.device);
        expect(() => engine.infer(inputs)).toThrow(
          expect.objectContaining({
            code: 'ERR_CUDA_INVALID_ARGUMENT',
            message: expect.stringMatching(says) as string,
          }),
        );
        // A tensor that an operation makes is checked when it exists.
        const later = Object.fromEntries(
          Object.entries(inputs).map(([name, each]) => [name, empty(() => each)]),
        );
        if (Object.keys(later).join() === 'a,b')
          expect((await failure(() => engine.infer(later))).message).toMatch(says);
        for (const each of Object.values(inputs)) each.close();
      });

      test('an extent that the model fixes', async () => {
        const engine = await load(addModel('f32', [4]));
        using a = await zeros(on.device, f32, [5]);
        expect(() => engine.infer({ a, b: a })).toThrow(
          /inputs\.a: expected f32\[4\], got f32\[5\]: axis 0 has 5 elements for 4/,
        );
      });

      test('outputs of other names, dtypes or shapes, or that overlap an input', async () => {
        const engine = await load(addModel());
        using a = await zeros(on.device, f32, [2]);
        using whole = await zeros(on.device, i32, [2]);
        using long = await zeros(on.device, f32, [3]);
        // Shapes of outputs are known from the first run on such inputs on.
        (await engine.infer({ a, b: a })).c!.close();
        expect(() => engine.infer({ a, b: a }, { outputs: { z: long } })).toThrow(
          /options\.outputs: the model has no output 'z'; it has 'c'/,
        );
        expect(() => engine.infer({ a, b: a }, { outputs: { c: whole } })).toThrow(
          /options\.outputs\.c: expected f32\[2\], got i32\[2\]/,
        );
        expect(() => engine.infer({ a, b: a }, { outputs: { c: long } })).toThrow(
          /options\.outputs\.c: expected f32\[2\], got f32\[3\]/,
        );
        expect(() => engine.infer({ a, b: a }, { outputs: { c: a } })).toThrow(
          /shares it with inputs\.a/,
        );
      });

      test('closed tensors, and values that are no tensors', async () => {
        const engine = await load(addModel());
        const a = await zeros(on.device, f32, [2]);
        a.close();
        expect(() => engine.infer({ a, b: a })).toThrow(
          expect.objectContaining({ code: 'ERR_CUDA_DISPOSED' }),
        );
        expect(() => engine.infer({ a: new Float32Array(2) as never, b: a })).toThrow(
          /expected a Tensor/,
        );
        expect(() => engine.infer(a as never)).toThrow(/the model has no input/);
        expect(() => engine.infer({ a, b: a }, { output: {} } as never)).toThrow(
          /Did you mean 'outputs'/,
        );
      });

      test('a later run on the same tensors has the results of a first one', async () => {
        const engine = await load(addModel());
        const [a, b] = [await zeros(on.device, f32, [2]), await zeros(on.device, f32, [2])];
        using c = await zeros(on.device, f32, [2]);
        const outputs = { c };
        const ways: (() => Promise<unknown>)[] = [
          () => engine.infer({ a, b }, { outputs }).run(),
          () => engine.infer({ b, a }, { outputs, signal: undefined }).run(),
          () => engine.infer({ a, b }, { outputs: undefined } as never).run(),
          () => engine.infer({ a, b }).run(),
        ];
        for (const way of [...ways, ...ways]) {
          const given = (await way()) as Record<string, AnyTensor>;
          expect(Object.keys(given)).toEqual(['c']);
          if (given['c'] !== c) given['c']!.close();
        }
        const run = engine.infer as (inputs: unknown, options?: unknown) => unknown;
        const wrong: [unknown, unknown, RegExp][] = [
          [{ a, b }, { outputs, singal: undefined }, /Did you mean 'signal'/],
          [{ a, b }, { outputs, signal: 1 }, /^signal: expected an AbortSignal/],
          [{ a, b }, new AbortController().signal, /Write \{ signal \}/],
          [{ a, b }, [], /options: expected an object/],
          [{ a, b }, null, /options: expected an object/],
          [{ a, b }, { outputs: null }, /options\.outputs: expected an object of tensors/],
          [{ a, b, d: a }, { outputs }, /no input 'd'/],
          [{ a }, { outputs }, /expected 'a', 'b', got 'a'/],
          [{ a, b }, { outputs: { c, d: c } }, /no output 'd'/],
          [[a, b], { outputs }, /inputs: expected an object of tensors/],
          [{ a, b: undefined }, { outputs }, /inputs\.b/],
          [undefined, { outputs }, /inputs: expected an object of tensors/],
        ];
        for (const [inputs, options, says] of wrong)
          expect(() => run.call(engine, inputs, options), String(says)).toThrow(says);
        b.close();
        expect(() => engine.infer({ a, b }, { outputs })).toThrow(
          expect.objectContaining({ code: 'ERR_CUDA_DISPOSED' }),
        );
        a.close();
      });

      test('two runs of one context at once', async () => {
        const engine = await load(longModel(256, 20));
        await using context = await engine.createContext();
        using x = await zeros(on.device, f32, [256, 256]);
        // Awaited roots go to streams of their own.
        const first = context.infer({ x }).run();
        const error = await failure(() => context.infer({ x }));
        expect(error).toMatchObject({
          code: 'ERR_CUDA_BUSY',
          message: expect.stringContaining('engine.createContext()') as string,
        });
        (await first)['y']!.close();
        const { y } = await context.infer({ x });
        y!.close();
      });

      test('to be captured, or waited for by a thread that blocks', async () => {
        const engine = await load(addModel());
        using a = await zeros(on.device, f32, [2]);
        const run = engine.infer({ a, b: a });
        expect((await failure(() => run.capture())).code).toBe('ERR_CUDA_CAPTURE');
        expect(() => run.sync()).toThrow(/await the operation/);
      });

      test('closed tensors', async () => {
        const engine = await load(addModel());
        const context = await engine.createContext();
        using a = await zeros(on.device, f32, [2]);
        await context.close();
        expect(() => context.infer({ a, b: a })).toThrow(
          expect.objectContaining({ code: 'ERR_CUDA_DISPOSED' }),
        );
        const late = engine.infer({ a, b: a });
        await engine.close();
        expect(() => engine.infer({ a, b: a })).toThrow(/used after it was closed/);
        expect((await failure(() => late)).code).toBe('ERR_CUDA_DISPOSED');
      });
    });

    test('a run with undefined inputs fails, and leaves its outputs undefined', async () => {
      const engine = await load(addModel('f32', ['n']));
      using a = await tensor(on.device, f32, [1, 2]);
      using c = await zeros(on.device, f32, [2]);
      const controller = new AbortController();
      controller.abort(new Error('enough'));
      const { signal } = controller;
      const aborted = await failure(() => engine.infer({ a, b: a }, { outputs: { c }, signal }));
      expect(aborted).toMatchObject({ message: 'enough' });
      expect(await failure(() => c.read())).toMatchObject({ code: 'ERR_CUDA_UNDEFINED_CONTENTS' });
      expect(await failure(() => engine.infer({ a: c, b: c }))).toMatchObject({
        code: 'ERR_CUDA_UNDEFINED_CONTENTS',
      });
      // A tensor that is written completely is defined again.
      await c.fill(5);
      const { c: sum } = await engine.infer({ a: c, b: a });
      expect(await values(sum)).toEqual([6, 7]);
      sum!.close();
    });

    test('close waits for runs in flight', async () => {
      const engine = await load(longModel(256, 20));
      using x = await tensor(on.device, f32, new Float32Array(65536).fill(1 / 256), [256, 256]);
      const runs = [1, 2, 3].map(() => engine.infer({ x }).run());
      let closed = false;
      const closing = engine.close().then(() => {
        closed = true;
      });
      const outputs = await Promise.all(runs.map(async (run) => (await run)['y']!));
      await closing;
      expect(closed).toBe(true);
      for (const y of outputs) {
        expect(((await y.read()) as Float32Array)[7]).toBeCloseTo(1 / 256, 5);
        y.close();
      }
    });

    test('a signal ends a run that is under way', async ({ skip }) => {
      const engine = await load(longModel(1024, 400));
      skip(engine.provider === 'cuda', 'on a GPU all of the run is queued before the signal comes');
      using x = await zeros(on.device, f32, [1024, 1024]);
      const begun = performance.now();
      const error = await failure(() => engine.infer({ x }, { signal: AbortSignal.timeout(300) }));
      expect(error.name).toBe('TimeoutError');
      // A run that is not ended takes more than ten times as long.
      expect(performance.now() - begun).toBeLessThan(20_000);
      // The context can be used again.
      const small = await load(addModel());
      using a = await zeros(on.device, f32, [2]);
      (await small.infer({ a, b: a }))['c']!.close();
    }, 60_000);
  },
  1,
);

async function hostOf(like: Tensor, numbers: readonly number[]): Promise<unknown> {
  const array = (await like.read()) as unknown as {
    constructor: { from(values: readonly (number | bigint)[]): unknown };
    [0]: unknown;
  };
  return array.constructor.from(typeof array[0] === 'bigint' ? numbers.map(BigInt) : numbers);
}

test.runIf(onCpu)('a checked device tracks the reads and writes of a run', async () => {
  const device = await CoreDevice.open('cpu', { check: true });
  const engine = await loadOnnxEngine(device, addModel());
  expect(engine.staged).toBe(true);
  using a = await tensor(device, f32, [1, 2, 3]);
  const { c } = await engine.infer({ a, b: a });
  expect([...((await c!.read()) as Float32Array)]).toEqual([2, 4, 6]);
  c!.close();
  const indices = await loadOnnxEngine(device, NON_ZERO);
  const { i } = await indices.infer({ x: a });
  expect([...((await i!.read()) as BigInt64Array)]).toEqual([0n, 1n, 2n]);
  i!.close();
  await Promise.all([engine.close(), indices.close()]);
  await device.close();
});
