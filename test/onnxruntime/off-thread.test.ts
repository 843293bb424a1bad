/** What loading and running cost the JavaScript thread, and the process. */
import { f32 } from 'async-cuda/core';
import { loadOnnxEngine } from 'async-cuda/onnxruntime';
import { zeros } from 'async-cuda/tensor';
import { describe, expect, test } from 'vitest';

import { openTestDevice, testDevice } from '../core/test-device.js';
import { longModel, onnxModel } from './onnx-model.js';

/** The number of turns of the event loop until the promise was settled, and the time. */
async function turnsDuring(work: Promise<unknown>): Promise<{ turns: number; ms: number }> {
  const begun = performance.now();
  let turns = 0;
  const timer = setInterval(() => {
    turns++;
  }, 1);
  try {
    await work;
  } finally {
    clearInterval(timer);
  }
  return { turns, ms: performance.now() - begun };
}

describe(`the event loop (${testDevice})`, () => {
  test('continues while a model is loaded, and while it runs', async () => {
    const device = await openTestDevice();
    // The first load also loads the library and starts threads.
    await (await loadOnnxEngine(device, longModel(8, 1))).close();
    const loading = loadOnnxEngine(device, longModel(8, 3000));
    const whileLoading = await turnsDuring(loading);
    await (await loading).close();
    await using engine = await loadOnnxEngine(device, longModel(512, 60), { threads: 1 });
    using x = await zeros(device, f32, [512, 512]);
    const run = engine.infer({ x }).run();
    const whileRunning = await turnsDuring(run);
    (await run)['y']!.close();
    for (const { turns, ms } of [whileLoading, whileRunning]) {
      expect(ms).toBeGreaterThan(30);
      // A run on this thread would allow no turn. A loop that only waits has nearly one turn in a
      // millisecond.
      expect(turns).toBeGreaterThan(5);
    }
    await engine.close();
    await device.close();
  }, 120_000);
});

describe(`memory (${testDevice})`, () => {
  test(
    'is freed after a hundred engines are loaded, run and closed',
    { tags: 'thorough', timeout: 180_000 },
    async () => {
      const device = await openTestDevice();
      const bytes = 4 << 20;
      const model = onnxModel({
        inputs: [['x', 'f32', ['n', 1024]]],
        outputs: [['y', 'f32', ['n', 1024]]],
        constants: [
          {
            name: 'w',
            type: 'f32',
            shape: [1024, 1024],
            data: new Float32Array(bytes / 4).fill(1),
          },
        ],
        nodes: [{ op: 'MatMul', inputs: ['x', 'w'], outputs: ['y'] }],
      });
      using x = await zeros(device, f32, [4, 1024]);
      const once = async (): Promise<void> => {
        await using engine = await loadOnnxEngine(device, model);
        (await engine.infer({ x }))['y']!.close();
      };
      for (let i = 0; i < 20; i++) await once();
      const before = process.memoryUsage().rss;
      for (let i = 0; i < 100; i++) await once();
      // Each holds its weights, 4 MiB: of a hundred that stay, 400 MiB and more would be left. What
      // V8 has not collected yet is some.
      expect((process.memoryUsage().rss - before) / (1 << 20)).toBeLessThan(120);
      await device.close();
    },
  );
});
