/**
 * Requests of many callers for an engine, put together: on the device, by a model of ONNX Runtime.
 */
import { CudaError, f32, i64 } from 'async-cuda/core';
import { EngineBatcher, loadEngine } from 'async-cuda/inference';
import type { NamedTensors } from 'async-cuda/inference';
import { full } from 'async-cuda/tensor';
import { expect, test } from 'vitest';

import { onDevice, usedMemory } from '../core/test-device.js';
import { addModel, onnxModel } from '../onnxruntime/onnx-model.js';

onDevice('a batcher of an engine', (on) => {
  // The first one: what runs that fail in others have made is the garbage collector's, which would
  // free it between the two looks at memory.
  test('outputs whose first axis is not the batch are refused, and closed', async () => {
    const model = onnxModel({
      inputs: [['a', 'f32', ['n', 2]]],
      outputs: [['rows', 'i64', ['k', 2]]],
      nodes: [
        { op: 'NonZero', inputs: ['a'], outputs: ['at'] },
        { op: 'Transpose', inputs: ['at'], outputs: ['rows'], attributes: { perm: [1, 0] } },
      ],
    });
    await using engine = await loadEngine(on.device, model, { engine: 'onnxruntime' });
    await using batcher = new EngineBatcher(engine, { maxBatchSize: 3, maxQueueDelay: 10_000 });
    const items = await Promise.all([1, 2, 3].map((x) => full(on.device, f32, [2], x).run()));
    const before = await usedMemory(on.device);
    for (const outcome of await Promise.allSettled(items.map((a) => batcher.run({ a })))) {
      expect(outcome).toMatchObject({
        status: 'rejected',
        reason: { code: 'ERR_CUDA_UNSUPPORTED' },
      });
    }
    expect(await usedMemory(on.device)).toBe(before);
    for (const item of items) item.close();
  });

  test('requests of many callers are one batch, and each gets its own outputs', async () => {
    await using engine = await loadEngine(on.device, addModel('f32', ['n', 4]), {
      engine: 'onnxruntime',
    });
    await using batcher = new EngineBatcher(engine, { maxBatchSize: 3, maxQueueDelay: 10_000 });
    const items = await Promise.all([1, 2, 3].map((x) => full(on.device, f32, [4], x).run()));
    const outputs = await Promise.all(items.map((item) => batcher.run({ a: item, b: item })));
    expect(batcher.statistics).toMatchObject({ batches: 1, items: 3 });
    for (const [i, { c }] of outputs.entries()) {
      expect(c!.shape).toEqual([4]);
      expect([...((await c!.read()) as Float32Array)]).toEqual(Array(4).fill(2 * (i + 1)));
      c!.close();
    }
    for (const item of items) item.close();
  });

  test('items of one shape are put together where more than the batch is open', async () => {
    await using engine = await loadEngine(on.device, addModel('f32', ['n', 'm', 2]), {
      engine: 'onnxruntime',
    });
    await using batcher = new EngineBatcher(engine, { maxBatchSize: 2, maxQueueDelay: 10_000 });
    const items = await Promise.all(
      [3, 5, 3, 5].map((m, i) => full(on.device, f32, [m, 2], i).run()),
    );
    const outputs = await Promise.all(items.map((item) => batcher.run({ a: item, b: item })));
    expect(batcher.statistics).toMatchObject({ batches: 2, items: 4 });
    for (const [i, { c }] of outputs.entries()) {
      expect(c!.shape).toEqual(items[i]!.shape);
      expect([...((await c!.read()) as Float32Array)]).toEqual(
        Array(2 * items[i]!.shape[0]!).fill(2 * i),
      );
      c!.close();
    }
    for (const item of items) item.close();
  });

  test('extents of one name are equal in an item with a strict engine', async () => {
    await using engine = await loadEngine(on.device, addModel('f32', ['n', 'm']), {
      engine: 'onnxruntime',
      onnxruntime: { strictShapes: true },
    });
    await using batcher = new EngineBatcher(engine, { maxBatchSize: 2 });
    using a = await full(on.device, f32, [3], 1);
    using b = await full(on.device, f32, [4], 1);
    expect(() => batcher.run({ a, b })).toThrow(
      "item.b: expected a tensor of f32 and [m], one item of the model's input, where m is 3 " +
        'by item.a, got [4]. Make them equal.',
    );
    using whole = await full(on.device, f32, [1, 3], 1);
    expect(() => batcher.run({ a: whole, b })).toThrow(
      /item\.a: expected .* f32 and \[m\].* got .* f32 and \[1, 3\]\. .*: tensor\.squeeze\(0\)\./,
    );
  });

  test('a model without a batch, or with the batch in its items, is refused', async () => {
    await using fixed = await loadEngine(on.device, addModel('f32', [2, 'm']), {
      engine: 'onnxruntime',
    });
    expect(() => new EngineBatcher(fixed, { maxBatchSize: 3 })).toThrow(
      /the input 'a' is \[2, -1\]: expected a first axis of any extent/,
    );
    await using square = await loadEngine(on.device, addModel('f32', ['n', 'n']), {
      engine: 'onnxruntime',
      onnxruntime: { strictShapes: true },
    });
    expect(() => new EngineBatcher(square, { maxBatchSize: 3 })).toThrow(
      /the input 'a' has the extent 'n' in its items, which is the batch's/,
    );
  });

  test('only the failing requests of a batch reject, each with its own error', async () => {
    await using engine = await loadEngine(on.device, gatherModel(), {
      engine: 'onnxruntime',
      onnxruntime: { providers: ['cpu'] },
    });
    await using batcher = new EngineBatcher(engine, { maxBatchSize: 4, maxQueueDelay: 10_000 });
    const items = await Promise.all(
      [2, 99, 0, -50].map((i) => full(on.device, i64, [1], BigInt(i)).run()),
    );
    const outputs = await Promise.allSettled(items.map((item) => batcher.run({ at: item })));
    expect(outputs.map(({ status }) => status)).toEqual([
      'fulfilled',
      'rejected',
      'fulfilled',
      'rejected',
    ]);
    const errors = outputs.flatMap((each) =>
      each.status === 'rejected' ? [each.reason as CudaError] : [],
    );
    expect(errors[0]!.message).toMatch(
      /^EngineBatcher\.run, request 2 of a batch of 4, .* failed, .* by itself: .*idx=99/s,
    );
    expect(errors[1]!.message).toMatch(
      /^EngineBatcher\.run, request 4 of a batch of 4, .* failed, .* by itself: .*idx=-50/s,
    );
    expect(errors[0]!.cause).toBeInstanceOf(CudaError);
    expect(errors[0]!.code).toBe((errors[0]!.cause as CudaError).code);
    for (const [i, wanted] of [
      [0, 30],
      [2, 10],
    ] as const) {
      const { value } = outputs[i] as PromiseFulfilledResult<NamedTensors>;
      expect([...((await value['found']!.read()) as Float32Array)]).toEqual([wanted]);
      value['found']!.close();
    }
    expect(batcher.statistics).toMatchObject({ batches: 1, fulfilled: 2, failed: 2 });
    for (const item of items) item.close();
  });

  test('a tensor that is closed while it waits fails its own request only', async () => {
    await using engine = await loadEngine(on.device, addModel('f32', ['n', 2]), {
      engine: 'onnxruntime',
    });
    await using batcher = new EngineBatcher(engine, { maxBatchSize: 2, maxQueueDelay: 10_000 });
    using kept = await full(on.device, f32, [2], 4);
    const closed = await full(on.device, f32, [2], 1).run();
    const first = batcher.run({ a: kept, b: closed });
    closed.close();
    const [a, b] = await Promise.allSettled([first, batcher.run({ a: kept, b: kept })]);
    expect(a).toMatchObject({ status: 'rejected', reason: { code: 'ERR_CUDA_DISPOSED' } });
    expect(((a as PromiseRejectedResult).reason as Error).message).toMatch(
      /^EngineBatcher\.run, request 1 of a batch of 2: item\.b was closed .* run\(\) has settled/,
    );
    const { c } = (b as PromiseFulfilledResult<NamedTensors>).value;
    expect([...((await c!.read()) as Float32Array)]).toEqual([8, 8]);
    c!.close();
  });
});

/** What lies at an index in a list of three: other indices fail when the model is run. */
function gatherModel(): Uint8Array {
  return onnxModel({
    inputs: [['at', 'i64', ['n', 1]]],
    outputs: [['found', 'f32', ['n', 1]]],
    nodes: [{ op: 'Gather', inputs: ['list', 'at'], outputs: ['found'] }],
    constants: [{ name: 'list', type: 'f32', shape: [3], data: Float32Array.of(10, 20, 30) }],
  });
}
