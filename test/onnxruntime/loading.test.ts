/** Models and options with which no engine of ONNX Runtime is loaded. */
import { CudaLibraryError } from 'async-cuda/core';
import { loadOnnxEngine } from 'async-cuda/onnxruntime';
import { describe, expect, test } from 'vitest';

import { failure, onCpu, openTestDevice, testDevice } from '../core/test-device.js';
import { addModel, longModel, onnxModel } from './onnx-model.js';

describe(`models that cannot be loaded (${testDevice})`, () => {
  const model = addModel();
  const node = (op: string, attributes = {}): Uint8Array =>
    onnxModel({
      inputs: [['x', 'f32', [2]]],
      outputs: [['y', 'f32', [2]]],
      nodes: [{ op, inputs: ['x'], outputs: ['y'], name: 'the culprit', attributes }],
    });
  test.each<readonly [string, unknown, string, RegExp]>([
    ['a truncated model', model.slice(0, model.length - 9), 'ERR_CUDA_FORMAT', /cut short/],
    [
      'bytes that are no model',
      Uint8Array.from({ length: 300 }, (_, i) => (i * 131 + 255) & 255),
      'ERR_CUDA_FORMAT',
      /no ONNX model/,
    ],
    [
      'an opset that is not known',
      onnxModel({
        inputs: [['x', 'f32', [2]]],
        outputs: [['y', 'f32', [2]]],
        nodes: [{ op: 'Neg', inputs: ['x'], outputs: ['y'] }],
        opset: 999,
      }),
      'ERR_CUDA_UNSUPPORTED',
      /999/,
    ],
    [
      'an operator that is not known, which is named',
      node('Frobnicate'),
      'ERR_CUDA_UNSUPPORTED',
      /Frobnicate/,
    ],
    [
      'elements that devices have not',
      onnxModel({
        inputs: [['x', 'string', [2]]],
        outputs: [['y', 'string', [2]]],
        nodes: [{ op: 'Identity', inputs: ['x'], outputs: ['y'] }],
      }),
      'ERR_CUDA_UNSUPPORTED',
      /'x' of the model has elements of type string/,
    ],
    [
      'a file that is not there',
      '/nowhere/model.onnx',
      'ERR_CUDA_NOT_FOUND',
      /\/nowhere\/model\.onnx/,
    ],
    ['no bytes', new Uint8Array(0), 'ERR_CUDA_INVALID_ARGUMENT', /got none/],
    [
      'something else',
      7,
      'ERR_CUDA_INVALID_ARGUMENT',
      /model: expected a path, a file: URL, or the bytes/,
    ],
    [
      'another URL',
      new URL('https://example.com/model.onnx'),
      'ERR_CUDA_INVALID_ARGUMENT',
      /file: URL/,
    ],
  ])('%s', async (_, given, code, says) => {
    const device = await openTestDevice();
    const error = await failure(() => loadOnnxEngine(device, given as Uint8Array));
    expect(error).toMatchObject({ code, message: expect.stringMatching(says) as string });
    if (code !== 'ERR_CUDA_INVALID_ARGUMENT' && !/devices have not/.test(error.message))
      expect(error).toBeInstanceOf(CudaLibraryError);
    await device.close();
  });

  test('options that are wrong', async () => {
    const device = await openTestDevice();
    for (const [options, says] of [
      [{ thread: 2 }, /Did you mean 'threads'/],
      [{ threads: 0 }, /options\.threads/],
      [{ optimisation: 'most' }, /'none', 'basic', 'extended', 'all'/],
      [{ convolutionSearch: 'best' }, /'heuristic', 'exhaustive', 'default'/],
      [{ layout: 'nwhc' }, /'nchw', 'nhwc'/],
      [{ fuseConvolutions: 1 }, /true or false/],
      [{ shapes: 0 }, /options\.shapes/],
      [{ shapes: [] }, /a number from 1 to 32, or a list of shapes/],
      [
        { shapes: [[3]] },
        /options\.shapes\[0\]: expected a shape for each of 'a', 'b': \{ a: \[1\], b: \[1\] \}/,
      ],
      [{ shapes: [{ a: [3], b: [3] }, { a: [3] }] }, /options\.shapes\[1\]/],
      [{ shapes: [{ a: 3, b: [3] }] }, /options\.shapes\[0\]\.a: expected a list of extents/],
      [
        { shapes: [{ a: [3, 1], b: [3] }] },
        /options\.shapes\[0\]\.a.*rank 2 for 1\. For example \{ a: \[1\], b: \[1\] \}\.$/,
      ],
      [{ shapes: [{ a: [3], b: [4] }], strictShapes: true }, /options\.shapes\[0\]\.b.*'n' is 3/],
      [{ strictShapes: 1 }, /options\.strictShapes: expected true or false/],
      [{ providers: ['tpu'] }, /a list of 'cuda' and 'cpu'/],
      [{ contexts: 0.5 }, /options\.contexts/],
      [{ signal: true }, /AbortSignal/],
    ] as const) {
      const error = await failure(() => loadOnnxEngine(device, addModel(), options as never));
      expect(error).toMatchObject({
        code: 'ERR_CUDA_INVALID_ARGUMENT',
        message: expect.stringMatching(says) as string,
      });
    }
    if (onCpu)
      expect(
        await failure(() => loadOnnxEngine(device, addModel(), { providers: ['cuda'] })),
      ).toMatchObject({ code: 'ERR_CUDA_UNSUPPORTED' });
    await device.close();
  });

  test('with a signal that has aborted, or does', async () => {
    const device = await openTestDevice();
    const signal = AbortSignal.abort();
    const error = await failure(() => loadOnnxEngine(device, addModel(), { signal }));
    expect(error.name).toBe('AbortError');
    const controller = new AbortController();
    const loading = loadOnnxEngine(device, longModel(8, 4000), { signal: controller.signal });
    controller.abort();
    expect((await failure(() => loading)).name).toBe('AbortError');
    await (await loadOnnxEngine(device, addModel())).close();
    await device.close();
  });
});
