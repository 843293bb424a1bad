import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as fc from '../../test/fast-check.js';
import { expect, test } from 'vitest';

import { onnxModel } from '../../test/onnxruntime/onnx-model.js';
import type { NodeSpec } from '../../test/onnxruntime/onnx-model.js';
import { outputsByValue } from './value-shapes.js';

const two = { name: 'two', type: 'i64', shape: [2], data: BigInt64Array.of(2n, 2n) } as const;
const model = (nodes: readonly NodeSpec[], big = 0): Uint8Array =>
  onnxModel({
    inputs: [
      ['x', 'f32', ['n', 4]],
      ['k', 'i64', [2]],
    ],
    outputs: [['y', 'f32', [2, 2]]],
    nodes,
    constants: [{ name: 'weights', type: 'f32', shape: [big], data: new Float32Array(big) }, two],
  });
const bytesOf = (bytes: Uint8Array): { bytes: ArrayBuffer } => ({
  bytes: Uint8Array.from(bytes).buffer,
});

const N = (op: string, inputs: readonly string[], output: string): NodeSpec => ({
  op,
  inputs,
  outputs: [output],
});

test.each<[string, readonly NodeSpec[], boolean]>([
  [
    'of a convolutional network',
    [N('Relu', ['x'], 'a'), N('MatMul', ['a', 'weights'], 'y')],
    false,
  ],
  ['that a constant says', [N('Reshape', ['x', 'two'], 'y')], false],
  [
    'that a node of a constant says',
    [
      { op: 'Constant', inputs: [], outputs: ['c'], attributes: { value_ints: [2, 2] } },
      N('Reshape', ['x', 'c'], 'y'),
    ],
    false,
  ],
  [
    "that the input's extents say",
    [
      N('Shape', ['x'], 's'),
      N('Gather', ['s', 'two'], 'g'),
      N('Concat', ['g', 'two'], 'c'),
      N('Expand', ['x', 'c'], 'y'),
    ],
    false,
  ],
  ['that an input says', [N('Reshape', ['x', 'k'], 'y')], true],
  [
    'that what was computed says',
    [N('Cast', ['x'], 'c'), N('Tile', ['x', 'c'], 't'), N('Neg', ['t'], 'y')],
    true,
  ],
  ['of what is found', [N('NonZero', ['x'], 'i'), N('Gather', ['x', 'i'], 'y')], true],
  [
    'of what is found in a constant',
    [N('NonZero', ['two'], 'i'), N('Gather', ['x', 'i'], 'y')],
    false,
  ],
  ['of extents of what is found', [N('NonZero', ['x'], 'i'), N('Shape', ['i'], 'y')], false],
  [
    'that extents of what is found say',
    [N('NonZero', ['x'], 'i'), N('Shape', ['i'], 's'), N('Expand', ['x', 's'], 'y')],
    true,
  ],
  ['of another graph', [N('If', ['k'], 'y')], true],
  ['with an input that was left out', [N('Resize', ['x', '', '', 'two'], 'y')], false],
  [
    'that a random number says',
    [N('RandomUniformLike', ['two'], 'r'), N('Expand', ['x', 'r'], 'y')],
    true,
  ],
])('a shape %s', async (_, nodes, expected) => {
  expect([...(await outputsByValue(bytesOf(model(nodes))))]).toEqual(expected ? ['y'] : []);
});

test('of a file only the parts beside constants are read, and the same is found', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'async-cuda-value-shapes-'));
  const path = join(folder, 'model.onnx');
  await writeFile(
    path,
    model([N('Mul', ['x', 'weights'], 'a'), N('Reshape', ['a', 'k'], 'y')], 3_000_000),
  );
  expect([...(await outputsByValue({ path }))]).toEqual(['y']);
  await writeFile(
    path,
    model([N('Mul', ['x', 'weights'], 'a'), N('Reshape', ['a', 'two'], 'y')], 3_000_000),
  );
  expect([...(await outputsByValue({ path }))]).toEqual([]);
  expect([...(await outputsByValue({ path: join(folder, 'absent.onnx') }))]).toEqual([]);
  await rm(folder, { recursive: true });
});

test(
  'bytes that are no model, or a damaged one, give no shapes and no endless loop',
  { tags: 'random' },
  async () => {
    const whole = model([N('Reshape', ['x', 'k'], 'y')]);
    await fc.assert(
      fc.asyncProperty(
        fc.oneof(
          fc.uint8Array({ maxLength: 200 }),
          fc
            .tuple(fc.nat(whole.length - 1), fc.nat(255))
            .map(([at, value]) => whole.map((byte, i) => (i === at ? value : byte))),
          fc.nat(whole.length).map((end) => whole.slice(0, end)),
        ),
        async (bytes) => {
          expect((await outputsByValue(bytesOf(bytes))).size).toBeLessThanOrEqual(1);
        },
      ),
      { numRuns: 300 },
    );
  },
);
