/**
 * The CUDA provider, on a GPU, with a build that has it: `pip install onnxruntime-gpu` (and the
 * CUDA and cuDNN wheels that it needs), or ASYNC_CUDA_ONNXRUNTIME naming its folder
 * `onnxruntime/capi`. Elsewhere it is skipped with a message.
 */
import { f32 } from 'async-cuda/core';
import { loadOnnxEngine } from 'async-cuda/onnxruntime';
import { tensor } from 'async-cuda/tensor';
import type { AnyTensor } from 'async-cuda/tensor';
import { describe, expect, test } from 'vitest';

import { onDevice } from '../core/test-device.js';
import { whyNoCudaProvider } from './cuda-provider-there.js';
import { addModel, longModel, onnxModel } from './onnx-model.js';

const reason = await whyNoCudaProvider();

async function values(given: AnyTensor | undefined): Promise<number[]> {
  return [...((await given!.read()) as Iterable<number | bigint>)].map(Number);
}

if (reason !== undefined)
  describe.skip(`SKIPPED: the CUDA provider of ONNX Runtime: ${reason}`, () => undefined);
else
  onDevice('the CUDA provider', (on) => {
    test('computes where the tensors are', async () => {
      await using engine = await loadOnnxEngine(on.device, addModel(), { providers: ['cuda'] });
      expect(engine.provider).toBe('cuda');
      expect(engine.staged).toBe(false);
      expect(engine.description).toMatch(/\(CUDA\)$/);
      using a = await tensor(on.device, f32, [1, 2, 3]);
      const { c } = await engine.infer({ a, b: a });
      expect(await values(c)).toEqual([2, 4, 6]);
      c!.close();
    });

    test('work before and after a run on the device is in order with it', async () => {
      await using engine = await loadOnnxEngine(on.device, longModel(512, 16), {
        providers: ['cuda'],
      });
      for (let i = 1; i <= 20; i++) {
        using x = await tensor(on.device, f32, new Float32Array(512 * 512), [512, 512]);
        const filled = x.fill(1 / 512).run();
        const run = engine.infer({ x }).run();
        const gone = x.fill(i).run();
        const { y } = await run;
        await Promise.all([filled, gone]);
        const got = (await y!.read()) as Float32Array;
        expect(Math.abs(got[i]! - 1 / 512)).toBeLessThan(1e-4);
        y!.close();
      }
    });

    test('outputs whose shape is known only after the run', async () => {
      const model = onnxModel({
        inputs: [['x', 'f32', ['n']]],
        outputs: [['i', 'i64', [1, '']]],
        nodes: [{ op: 'NonZero', inputs: ['x'], outputs: ['i'] }],
      });
      await using engine = await loadOnnxEngine(on.device, model, { providers: ['cuda'] });
      using x = await tensor(on.device, f32, [0, 5, 0, 7]);
      const { i } = await engine.infer({ x });
      expect(await values(i)).toEqual([1, 3]);
      i!.close();
    });

    test('alternating shapes have sessions of their own, and the same results', async () => {
      const kernel = Float32Array.from({ length: 4 * 3 * 9 }, (_, i) => ((i * 7) % 11) - 5);
      const model = onnxModel({
        inputs: [['x', 'f32', ['n', 3, 8, 8]]],
        outputs: [['y', 'f32', ['n', 4, 8, 8]]],
        constants: [{ name: 'w', type: 'f32', shape: [4, 3, 3, 3], data: kernel }],
        nodes: [
          {
            op: 'Conv',
            inputs: ['x', 'w'],
            outputs: ['y'],
            attributes: { kernel_shape: [3, 3], pads: [1, 1, 1, 1] },
          },
        ],
      });
      await using engine = await loadOnnxEngine(on.device, model, {
        providers: ['cuda'],
        shapes: 3,
      });
      await using alone = await loadOnnxEngine(on.device, model, { providers: ['cpu'] });
      for (let i = 0; i < 24; i++) {
        const n = 1 + (i % 4);
        using x = await tensor(
          on.device,
          f32,
          Float32Array.from({ length: n * 192 }, (_, k) => (k * 13 + i) % 17),
          [n, 3, 8, 8],
        );
        const [{ y }, { y: wanted }] = await Promise.all([engine.infer({ x }), alone.infer({ x })]);
        expect(await values(y)).toEqual(await values(wanted));
        y!.close();
        wanted!.close();
        // A session takes some time to load.
        if (i % 4 === 3)
          await new Promise((resolve) => {
            setTimeout(resolve, 200);
          });
      }
      expect(engine.sessions.count).toBe(3);
    });

    test('shapes that the options name have sessions before their first run', async () => {
      await using engine = await loadOnnxEngine(on.device, addModel(), {
        providers: ['cuda'],
        shapes: [1, 2, 3].map((n) => ({ a: [n], b: [n] })),
      });
      expect(engine.sessions.count).toBe(3);
      for (const n of [3, 1, 2, 3, 2, 1]) {
        using a = await tensor(on.device, f32, new Float32Array(n).fill(n));
        const { c } = await engine.infer({ a, b: a });
        expect(await values(c)).toEqual(new Array<number>(n).fill(2 * n));
        c!.close();
      }
      expect(engine.sessions.count).toBe(3);
    });

    test('runs at once, on streams of their own', async () => {
      await using engine = await loadOnnxEngine(on.device, addModel(), { providers: ['cuda'] });
      using a = await tensor(on.device, f32, [1, 2]);
      const all = await Promise.all(
        Array.from({ length: 32 }, async (_, i) => {
          using b = await tensor(on.device, f32, [i, i]);
          const { c } = await engine.infer({ a, b });
          const got = await values(c);
          c!.close();
          return got;
        }),
      );
      expect(all).toEqual(Array.from({ length: 32 }, (_, i) => [1 + i, 2 + i]));
    });

    test('the CPU provider computes where it is chosen, with copies', async () => {
      await using engine = await loadOnnxEngine(on.device, addModel(), { providers: ['cpu'] });
      expect(engine.staged).toBe(true);
      using a = await tensor(on.device, f32, [1, 2, 3]);
      const { c } = await engine.infer({ a, b: a });
      expect(await values(c)).toEqual([2, 4, 6]);
      c!.close();
    });
  });
