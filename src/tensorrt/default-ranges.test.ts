import { expect, test } from 'vitest';

import type { CudaArgumentError } from '../core/index.js';
import { rangesOf } from './default-ranges.js';
import { whyNotRtx } from './rtx-gpus.js';

test('a batch that has no range is from 1 to 32, tuned for 8', () => {
  const ranges = rangesOf(
    [
      { name: 'image', shape: [-1, 3, 224, 224] },
      { name: 'scale', shape: [2] },
      { name: 'labels', shape: [-1] },
    ],
    {},
  );
  expect([...ranges]).toEqual([
    ['image', { min: [1, 3, 224, 224], opt: [8, 3, 224, 224], max: [32, 3, 224, 224] }],
    ['labels', { min: [1], opt: [8], max: [32] }],
  ]);
});

test('one beside inputs whose ranges are given has their batch', () => {
  const image = { min: [2, 3], opt: [4, 3], max: [64, 3] };
  expect([
    ...rangesOf(
      [
        { name: 'labels', shape: [-1, 5] },
        { name: 'image', shape: [-1, 3] },
      ],
      { image },
    ),
  ]).toEqual([
    ['labels', { min: [2, 5], opt: [4, 5], max: [64, 5] }],
    ['image', image],
  ]);
});

test('a model without dynamic extents has no ranges', () => {
  expect(
    rangesOf(
      [
        { name: 'x', shape: [1, 3] },
        { name: 's', shape: [] },
      ],
      {},
    ).size,
  ).toBe(0);
});

test.each([[[-1, 3, -1, -1]], [[1, -1]], [[-1, -1]]])(
  'extents %j need a range, and the error says how to write one',
  (shape) => {
    expect(() => rangesOf([{ name: 'x', shape }], {})).toThrow(
      expect.objectContaining({
        name: 'CudaArgumentError',
        argument: 'options.shapes.x',
        message: expect.stringContaining('Write shapes: { x: { min: [...]') as string,
      }) as CudaArgumentError,
    );
  },
);

test('a range for an input that there is not, and one that goes down, are refused', () => {
  const inputs = [{ name: 'x', shape: [-1, 3] }];
  expect(() => rangesOf(inputs, { y: { min: [1, 3], opt: [1, 3], max: [1, 3] } })).toThrow(
    /options\.shapes\.y: expected one of 'x'/,
  );
  expect(() => rangesOf(inputs, { x: { min: [4, 3], opt: [1, 3], max: [8, 3] } })).toThrow(
    /options\.shapes\.x: extent 0 goes from 4 over 1/,
  );
});

test.each([
  [[9, 0], true],
  [[10, 0], true],
  [[10, 3], true],
  [[7, 5], false],
  [[8, 0], false],
  [[8, 9], false],
  [[12, 0], false],
  [[12, 1], false],
  [[13, 0], false],
] as const)('TensorRT for RTX and compute capability %j', (capability, refused) => {
  const why = whyNotRtx('NVIDIA H200', capability);
  if (!refused) expect(why).toBeUndefined();
  else
    expect(why).toMatch(
      new RegExp(
        `NVIDIA H200 has ${capability.join('\\.')}\\. Install TensorRT, or use ONNX Runtime`,
      ),
    );
});
