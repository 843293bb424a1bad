/** Requests of many callers for an engine, put together: on the device, by a model of ONNX Runtime. */
import { f32 } from 'async-cuda/core';
import { EngineBatcher, loadEngine } from 'async-cuda/inference';
import { full } from 'async-cuda/tensor';
import { expect, test } from 'vitest';

import { onDevice } from '../core/test-device.js';
import { addModel } from '../onnxruntime/onnx-model.js';

onDevice('a batcher of an engine', (on) => {
  test('requests of many callers are one batch, and each gets its own outputs', async () => {
    await using engine = await loadEngine(on.device, addModel('f32', ['n', 4]), { engine: 'onnxruntime' });
    await using batcher = new EngineBatcher(engine, { maxBatchSize: 3, maxQueueDelay: 10_000 });
    const items = await Promise.all([1, 2, 3].map((x) => full(on.device, f32, [4], x).run()));
    const outputs = await Promise.all(items.map((item) => batcher.run({ a: item, b: item })));
    expect(batcher.statistics).toMatchObject({ batches: 1, items: 3 });
    for (const [i, { c }] of outputs.entries()) {
      expect(c!.shape).toEqual([4]);
      expect([...await c!.read() as Float32Array]).toEqual(Array(4).fill(2 * (i + 1)));
      c!.close();
    }
    for (const item of items) item.close();
  });

  test('a model whose items may be of any size is refused', async () => {
    await using engine = await loadEngine(on.device, addModel('f32', ['n', 'm']), { engine: 'onnxruntime' });
    expect(() => new EngineBatcher(engine, { maxBatchSize: 3, maxQueueDelay: 1 })).toThrow(/expected the first extent only to be open/);
  });
});
