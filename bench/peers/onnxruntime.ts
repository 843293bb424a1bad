/** What the peer in C needs of ONNX Runtime: a model, and the library's file. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { resnet50 } from '../inference/resnet50.js';
import { onnxruntime } from '../library.js';
import { scratchFolder } from '../scratch.js';
import { PeerAbsent } from './program.js';

/** What is run, and on which of its outputs results are compared: the first. */
export interface Subject {
  readonly file: () => Promise<string>;
  readonly input: string;
  readonly outputs: readonly string[];
  /** Of the input. */
  readonly shape: readonly number[];
}

const digits = fileURLToPath(new URL('../../demo/inference/digits/model/digits.onnx', import.meta.url));
let written: Promise<string> | undefined;

/** The demo's detector: 14 convolutions. */
export const DETECTOR: Subject = { file: () => Promise.resolve(digits), input: 'image', outputs: ['digits', 'distances'], shape: [4, 3, 256, 256] };
/** 53 convolutions, with seeded weights. */
export const RESNET: Subject = { file: () => (written ??= writeResNet()), input: 'image', outputs: ['logits'], shape: [1, 3, 224, 224] };

async function writeResNet(): Promise<string> {
  const file = join(scratchFolder(), 'resnet50.onnx');
  await writeFile(file, resnet50().bytes);
  return file;
}

/** The file that our engines load, too. @throws PeerAbsent where there is none */
export async function onnxRuntimeLibrary(): Promise<string> {
  const { path } = await onnxruntime.findOnnxRuntime().catch((cause: unknown) => { throw new PeerAbsent(cause instanceof Error ? cause.message.split('\n')[0] : String(cause), { cause }); });
  return path;
}
