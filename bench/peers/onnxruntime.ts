/** What the peer in C needs of ONNX Runtime: a model, and the library's file. */
import { fileURLToPath } from 'node:url';

import { onnxruntime } from '../library.js';
import { PeerAbsent } from './program.js';

/** The demo's detector: 14 convolutions. */
export const DETECTOR = {
  file: fileURLToPath(new URL('../../demo/inference/digits/model/digits.onnx', import.meta.url)),
  input: 'image',
  outputs: ['digits', 'distances'],
} as const;

/** The file that our engines load, too. @throws PeerAbsent where there is none */
export async function onnxRuntimeLibrary(): Promise<string> {
  const { path } = await onnxruntime.findOnnxRuntime().catch((cause: unknown) => { throw new PeerAbsent(cause instanceof Error ? cause.message.split('\n')[0] : String(cause), { cause }); });
  return path;
}
