/**
 * Models whose declared shapes are wrong: each that ONNX Runtime runs also runs here, and its
 * outputs have their actual shapes.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CudaArgumentError, f32, i64 } from 'async-cuda/core';
import { EngineBatcher } from 'async-cuda/inference';
import { loadOnnxEngine } from 'async-cuda/onnxruntime';
import type { OnnxEngine, OnnxRuntimeOptions } from 'async-cuda/onnxruntime';
import { tensor, zeros } from 'async-cuda/tensor';
import type { AnyTensor } from 'async-cuda/tensor';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';

import { failure } from '../core/test-device.js';
import { addModel, onnxModel } from './onnx-model.js';
import { onPaths } from './paths.js';

/** c is a, twice; it is declared with the length of a. */
const TWICE = onnxModel({
  inputs: [['a', 'f32', ['n']]],
  outputs: [['c', 'f32', ['n']]],
  nodes: [{ op: 'Concat', inputs: ['a', 'a'], outputs: ['c'], attributes: { axis: 0 } }],
});
const FLAT = onnxModel({
  inputs: [['a', 'f32', ['c', 'h', 'w']]],
  outputs: [['b', 'f32', [800, 10]]],
  nodes: [{ op: 'Flatten', inputs: ['a'], outputs: ['b'], attributes: { axis: 2 } }],
});

onPaths(
  'declared shapes that are wrong',
  (on) => {
    const opened: OnnxEngine[] = [];
    afterEach(async () => {
      await Promise.all(opened.splice(0).map((engine) => engine.close()));
    });
    let folder: string;
    beforeAll(async () => {
      folder = await mkdtemp(join(tmpdir(), 'async-cuda-declared-'));
    });
    afterAll(() => rm(folder, { recursive: true }));
    const load = async (
      model: Uint8Array | string,
      options?: OnnxRuntimeOptions,
    ): Promise<OnnxEngine> => {
      const engine = await loadOnnxEngine(on.device, model, options);
      opened.push(engine);
      return engine;
    };
    const first = (outputs: Readonly<Record<string, AnyTensor>>): AnyTensor =>
      Object.values(outputs)[0]!;
    const values = async (
      engine: OnnxEngine,
      inputs: Readonly<Record<string, AnyTensor>>,
    ): Promise<{ shape: readonly number[]; values: number[] }> => {
      using output = first(await engine.infer(inputs));
      return {
        shape: output.shape,
        values: Array.from((await output.read()) as ArrayLike<number | bigint>, Number),
      };
    };

    test('an output whose extent has a name that means another number', async () => {
      const engine = await load(TWICE);
      for (const list of [[1, 2], [3], [1, 2], [], [4, 5, 6]]) {
        using a = await tensor(on.device, f32, list);
        for (let i = 0; i < 3; i++)
          expect(await values(engine, { a })).toEqual({
            shape: [2 * list.length],
            values: [...list, ...list],
          });
      }
    });

    test('an output whose extents differ from the declared numbers', async () => {
      const engine = await load(FLAT);
      for (const shape of [
        [4, 5, 10],
        [800, 1, 10],
        [4, 5, 10],
        [2, 3, 4],
      ] as const) {
        using a = await zeros(on.device, f32, shape);
        expect((await values(engine, { a })).shape).toEqual([shape[0] * shape[1], shape[2]]);
      }
    });

    test('an output of another rank, and one of unknown rank', async () => {
      for (const declared of [['n', 2], []] as const) {
        const engine = await load(
          onnxModel({
            inputs: [
              ['a', 'f32', ['n', 2]],
              ['k', 'i64', [1]],
            ],
            outputs: [['b', 'f32', declared]],
            nodes: [{ op: 'Reshape', inputs: ['a', 'k'], outputs: ['b'] }],
          }),
        );
        using k = await tensor(on.device, i64, [-1n]);
        using a = await tensor(on.device, f32, [1, 2, 3, 4], [2, 2]);
        for (let i = 0; i < 2; i++)
          expect(await values(engine, { a, k })).toEqual({ shape: [4], values: [1, 2, 3, 4] });
      }
    });

    test('later operations have the actual shape', async () => {
      const [twice, sum] = [await load(TWICE), await load(addModel())];
      using a = await tensor(on.device, f32, [1, 2]);
      using c = first(
        await twice.infer({ a }).andThen(({ c: both }) => sum.infer({ a: both!, b: both! })),
      );
      expect([...((await c.read()) as Float32Array)]).toEqual([2, 4, 2, 4]);
    });

    test('an output whose shape depends on the contents of inputs', async () => {
      const reshaped = onnxModel({
        inputs: [
          ['a', 'f32', [4]],
          ['k', 'i64', [2]],
        ],
        outputs: [['b', 'f32', [2, 2]]],
        nodes: [{ op: 'Reshape', inputs: ['a', 'k'], outputs: ['b'] }],
      });
      const path = join(folder, 'reshaped.onnx');
      await writeFile(path, reshaped);
      using a = await tensor(on.device, f32, [1, 2, 3, 4]);
      using square = await tensor(on.device, i64, [2n, 2n]);
      using row = await tensor(on.device, i64, [1n, 4n]);
      for (const model of [reshaped, path]) {
        const engine = await load(model);
        for (const [k, shape] of [
          [square, [2, 2]],
          [square, [2, 2]],
          [row, [1, 4]],
          [square, [2, 2]],
          [row, [1, 4]],
        ] as const)
          expect((await values(engine, { a, k })).shape).toEqual(shape);
      }
      const found = await load(
        onnxModel({
          inputs: [['a', 'f32', [4]]],
          outputs: [['i', 'i64', [1, 4]]],
          nodes: [{ op: 'NonZero', inputs: ['a'], outputs: ['i'] }],
        }),
      );
      using some = await tensor(on.device, f32, [0, 2, 0, 4]);
      for (const [given, count] of [
        [a, 4],
        [a, 4],
        [some, 2],
        [a, 4],
      ] as const)
        expect((await values(found, { a: given })).shape).toEqual([1, count]);
    });

    test('memory that is given for an output must have the actual shape', async () => {
      const engine = await load(TWICE);
      using a = await tensor(on.device, f32, [1, 2]);
      using right = await zeros(on.device, f32, [4]);
      using wrong = await zeros(on.device, f32, [2]);
      for (let i = 0; i < 3; i++) {
        const error = await failure(() => engine.infer({ a }, { outputs: { c: wrong } }));
        expect(error).toBeInstanceOf(CudaArgumentError);
        expect(error.message).toMatch(
          /^options\.outputs\.c: expected f32\[4\], which the run gives, got Tensor/,
        );
        expect(first(await engine.infer({ a }, { outputs: { c: right } }))).toBe(right);
        expect([...(await right.read())]).toEqual([1, 2, 1, 2]);
      }
    });

    test('one name for several extents', async () => {
      const engine = await load(
        onnxModel({
          inputs: [
            ['a', 'f32', ['?', '?']],
            ['b', 'f32', ['?', '?']],
          ],
          outputs: [['c', 'f32', ['?', '?']]],
          nodes: [{ op: 'Add', inputs: ['a', 'b'], outputs: ['c'] }],
        }),
      );
      using a = await tensor(on.device, f32, [1, 2, 3], [1, 3]);
      using b = await tensor(on.device, f32, [10, 20], [2, 1]);
      for (let i = 0; i < 3; i++)
        expect(await values(engine, { a, b })).toEqual({
          shape: [2, 3],
          values: [11, 12, 13, 21, 22, 23],
        });
    });

    test('an input of unknown rank', async () => {
      const engine = await load(
        onnxModel({
          inputs: [['a', 'f32', []]],
          outputs: [['b', 'f32', []]],
          nodes: [{ op: 'Neg', inputs: ['a'], outputs: ['b'] }],
        }),
      );
      for (const shape of [[], [3], [2, 1, 2]]) {
        using a = await zeros(on.device, f32, shape);
        expect((await values(engine, { a })).shape).toEqual(shape);
      }
    });

    test('items of a batch may have different extents of one name', async () => {
      const engine = await load(
        onnxModel({
          inputs: [['a', 'f32', ['?', '?', '?']]],
          outputs: [['b', 'f32', ['?', '?', '?']]],
          nodes: [{ op: 'Neg', inputs: ['a'], outputs: ['b'] }],
        }),
      );
      await using batcher = new EngineBatcher(engine, { maxBatchSize: 4 });
      using item = await zeros(on.device, f32, [2, 3]);
      for (const { b } of await Promise.all([
        batcher.run({ a: item }),
        batcher.run({ a: item }),
        batcher.run({ a: item }),
      ])) {
        expect(b!.shape).toEqual([2, 3]);
        b!.close();
      }
    });

    test('strictShapes: a shape other than the declared one is an error', async () => {
      const engine = await load(TWICE, { strictShapes: true });
      expect(engine.strictShapes).toBe(true);
      using a = await tensor(on.device, f32, [1, 2]);
      expect(await failure(() => engine.infer({ a }))).toMatchObject({
        code: 'ERR_CUDA_FORMAT',
        message: expect.stringMatching(
          /the output 'c' is \[4\], and the model declares \[2\]\. .* without strictShapes/,
        ) as string,
      });
      using long = await zeros(on.device, f32, [4]);
      expect(() => engine.infer({ a }, { outputs: { c: long } })).toThrow(
        /options\.outputs\.c: expected f32\[2\], got f32\[4\]/,
      );
      const sum = await load(addModel(), { strictShapes: true });
      expect(() => sum.infer({ a, b: long })).toThrow(/'n' is 2 by inputs\.a, and axis 0 has 4/);
    });
  },
  1,
);
