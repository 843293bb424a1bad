/**
 * ResNet-50 (He, Zhang, Ren and Sun, 2015; stride in the 3 × 3 convolution, normalisation folded
 * into the convolutions) with seeded weights: as much work as with learned ones. The same weights
 * go to the peers, in the order in which they are used.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { onnxModel } from '../../test/onnxruntime/onnx-model.js';
import type { Constant, NodeSpec } from '../../test/onnxruntime/onnx-model.js';

export const SIDE = 224;
export const CLASSES = 1000;
/** Bottlenecks of each stage, and their width. */
const STAGES = [
  [3, 64],
  [4, 128],
  [6, 256],
  [3, 512],
] as const;
/** The scale of a block's output, which keeps the sums of sixteen residuals in range. */
const RESIDUAL_GAIN = 0.25;

/** Numbers from -1 to 1, the same in each run. */
class Seeded {
  private state = 1;

  array(length: number, scale: number): Float32Array {
    const values = new Float32Array(length);
    for (let i = 0; i < length; i++) {
      // xorshift32
      this.state ^= this.state << 13;
      this.state ^= this.state >>> 17;
      this.state ^= this.state << 5;
      values[i] = (this.state / 2 ** 31) * scale;
    }
    return values;
  }
}

export interface Model {
  readonly bytes: Uint8Array;
  /** Weights and biases in the order in which they are used. */
  readonly weights: readonly Float32Array[];
}

export function resnet50(): Model {
  const seeded = new Seeded();
  const nodes: NodeSpec[] = [];
  const constants: Constant[] = [];
  const weights: Float32Array[] = [];
  const constant = (name: string, shape: readonly number[], scale: number): string => {
    const data = seeded.array(
      shape.reduce((a, b) => a * b),
      scale,
    );
    weights.push(data);
    constants.push({ name, type: 'f32', shape, data });
    return name;
  };
  const node = (
    op: string,
    inputs: readonly string[],
    name: string,
    attributes: NodeSpec['attributes'] = {},
  ): string => {
    nodes.push({ op, inputs, outputs: [name], name, attributes });
    return name;
  };
  // A uniform number from -1 to 1 has a variance of 1/3; He's is 2 by the number of terms.
  const conv = (
    x: string,
    name: string,
    from: number,
    to: number,
    size: number,
    stride: number,
    gain = 1,
  ): string =>
    node(
      'Conv',
      [
        x,
        constant(
          `${name}.weight`,
          [to, from, size, size],
          gain * Math.sqrt(6 / (from * size * size)),
        ),
        constant(`${name}.bias`, [to], 0.1),
      ],
      name,
      {
        kernel_shape: [size, size],
        strides: [stride, stride],
        pads: Array<number>(4).fill((size - 1) / 2),
      },
    );
  const relu = (x: string): string => node('Relu', [x], `${x}.relu`);

  let x = node('MaxPool', [relu(conv('image', 'stem', 3, 64, 7, 2))], 'pool', {
    kernel_shape: [3, 3],
    strides: [2, 2],
    pads: [1, 1, 1, 1],
  });
  let from = 64;
  for (const [stage, [blocks, width]] of STAGES.entries()) {
    for (let block = 0; block < blocks; block++) {
      const name = `stage${stage + 1}.${block}`;
      const stride = block === 0 && stage > 0 ? 2 : 1;
      const inner = relu(
        conv(relu(conv(x, `${name}.1`, from, width, 1, 1)), `${name}.2`, width, width, 3, stride),
      );
      const residual = conv(inner, `${name}.3`, width, 4 * width, 1, 1, RESIDUAL_GAIN);
      const shortcut =
        block === 0 ? conv(x, `${name}.shortcut`, from, 4 * width, 1, stride, 0.7) : x;
      x = relu(node('Add', [residual, shortcut], `${name}.sum`));
      from = 4 * width;
    }
  }
  const mean = node('Flatten', [node('GlobalAveragePool', [x], 'mean')], 'features', { axis: 1 });
  node(
    'Gemm',
    [
      mean,
      constant('classes.weight', [from, CLASSES], Math.sqrt(3 / from)),
      constant('classes.bias', [CLASSES], 0.1),
    ],
    'logits',
  );
  return {
    bytes: onnxModel({
      inputs: [['image', 'f32', ['batch', 3, SIDE, SIDE]]],
      outputs: [['logits', 'f32', ['batch', CLASSES]]],
      nodes,
      constants,
    }),
    weights,
  };
}

/** A folder for the peers' inputs: `weights.f32`, and other files. */
export async function folderFor(
  model: Model,
): Promise<{ readonly path: string; remove(): Promise<void> }> {
  const path = await mkdtemp(join(tmpdir(), 'async-cuda-resnet-'));
  await writeFile(
    join(path, 'weights.f32'),
    Buffer.concat(
      model.weights.map(
        ({ buffer, byteOffset, byteLength }) => new Uint8Array(buffer, byteOffset, byteLength),
      ),
    ),
  );
  return { path, remove: () => rm(path, { recursive: true, force: true }) };
}
