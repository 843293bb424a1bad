/** What the peer in C needs of ONNX Runtime: the library's file, and a model. */
import { existsSync, readdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { PeerAbsent } from './program.js';

/** The demo's detector: 14 convolutions. */
export const DETECTOR = {
  file: fileURLToPath(new URL('../../demo/inference/digits/model/digits.onnx', import.meta.url)),
  input: 'image',
  outputs: ['digits', 'distances'],
} as const;

/** The file that our engines load, too. @throws PeerAbsent where there is none */
export function onnxRuntimeLibrary(): string {
  const folders = process.env.ASYNC_CUDA_ONNXRUNTIME === undefined ? packageFolders() : [process.env.ASYNC_CUDA_ONNXRUNTIME];
  for (const folder of folders) {
    if (!existsSync(folder)) continue;
    const file = readdirSync(folder).filter((name) => name.startsWith('libonnxruntime.so')).sort()[0];
    if (file !== undefined) return join(folder, file);
  }
  throw new PeerAbsent('no libonnxruntime.so: npm install onnxruntime-node');
}

function packageFolders(): string[] {
  try {
    const bin = join(dirname(createRequire(import.meta.url).resolve('onnxruntime-node/package.json')), 'bin');
    return readdirSync(bin).map((api) => join(bin, api, 'linux', process.arch));
  } catch {
    return [];
  }
}
