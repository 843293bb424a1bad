/** The inputs of the peer in C for ONNX Runtime: a model, and the library's file. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { matrixModel } from '../../test/onnxruntime/matrix-model.js';
import { resnet50 } from '../inference/resnet50.js';
import { onnxruntime } from '../library.js';
import { scratchFolder } from '../scratch.js';
import { PeerAbsent } from './program.js';

/** A model; results are compared by its first output. */
export interface Subject {
  readonly file: () => Promise<string>;
  readonly input: string;
  readonly outputs: readonly string[];
  /** The shape of the input. */
  readonly shape: readonly number[];
}

const digits = fileURLToPath(
  new URL('../../demo/inference/digits/model/digits.onnx', import.meta.url),
);
/** Rows and columns of the matrix: 16 MiB of weights. */
const EXTENT = 2048;

/** The demo's detector: 14 convolutions. */
export const DETECTOR: Subject = {
  file: () => Promise.resolve(digits),
  input: 'image',
  outputs: ['digits', 'distances'],
  shape: [4, 3, 256, 256],
};
/** 53 convolutions, with seeded weights. */
export const RESNET: Subject = {
  file: written('resnet50.onnx', () => resnet50().bytes),
  input: 'image',
  outputs: ['logits'],
  shape: [1, 3, 224, 224],
};
/** Weights, and very little work. */
export const MATRIX: Subject = {
  file: written('matrix.onnx', () => matrixModel(EXTENT)),
  input: 'x',
  outputs: ['y'],
  shape: [1, EXTENT],
};

/** A file of the run, written at its first use. */
function written(name: string, bytes: () => Uint8Array): Subject['file'] {
  let file: Promise<string> | undefined;
  const write = async (): Promise<string> => {
    const path = join(scratchFolder(), name);
    await writeFile(path, bytes());
    return path;
  };
  return () => (file ??= write());
}

/** The file that our engines load as well. @throws PeerAbsent where there is none */
export async function onnxRuntimeLibrary(): Promise<string> {
  const { path } = await onnxruntime.findOnnxRuntime().catch((cause: unknown) => {
    throw new PeerAbsent(cause instanceof Error ? cause.message.split('\n')[0] : String(cause), {
      cause,
    });
  });
  return path;
}
