/**
 * Puts a model's bytes where a thread can read them: the JavaScript thread copies them in parts,
 * each short enough for the event loop.
 */
import { stat } from 'node:fs/promises';
import { isAbsolute, resolve } from 'node:path';
import { setImmediate } from 'node:timers/promises';

import { CudaArgumentError } from '../core/index.js';
import { checkPath, invalid, pathOfUrl } from '../ground/arguments.js';
import { isArrayBuffer, isSharedArrayBuffer, isUrl } from '../ground/other-realms.js';
import type { ModelSource } from './options.js';
import type { ModelSource as PlacedModel } from './thread/messages.js';

/** One part takes about 0.3 ms. */
const PART_BYTES = 4 << 20;

/**
 * An ArrayBuffer that can be made shorter, which frees its memory at once. It is part of ES2024,
 * and of Node 20.
 */
const Resizable = ArrayBuffer as new (
  bytes: number,
  options: { maxByteLength: number },
) => ArrayBuffer;

/** Returns the buffers to transfer: a copy is transferred; shared memory stays with its owner. */
export function transferOf(model: PlacedModel): ArrayBuffer[] {
  return 'bytes' in model && isArrayBuffer(model.bytes) ? [model.bytes] : [];
}

export async function placeModel(model: ModelSource): Promise<PlacedModel> {
  if (typeof model === 'string' || isUrl(model)) return { path: modelPath(model) };
  if (isSharedArrayBuffer(model)) return { bytes: checkedBytes(model) };
  return { bytes: await copyOf(model) };
}

/**
 * A model that may be loaded again later: its file as long as that is unchanged, or a copy of its
 * bytes.
 */
export class KeptModel {
  private readonly source:
    { readonly path: string; readonly state: string | undefined } | { readonly bytes: ArrayBuffer };

  private constructor(source: KeptModel['source']) {
    this.source = source;
  }

  static async of(model: ModelSource): Promise<KeptModel> {
    if (typeof model !== 'string' && !isUrl(model))
      return new KeptModel({ bytes: await copyOf(model) });
    const path = modelPath(model);
    return new KeptModel({ path, state: await stateOf(path) });
  }

  /** Returns the model for one load; undefined where the file has changed. */
  async place(): Promise<PlacedModel | undefined> {
    if ('bytes' in this.source) return { bytes: await copyOf(this.source.bytes) };
    const { path, state } = this.source;
    return state !== undefined && (await stateOf(path)) === state ? { path } : undefined;
  }

  /** Frees its memory at once, which V8's garbage collector would do much later. */
  drop(): void {
    if ('bytes' in this.source) (this.source.bytes as { resize?(bytes: number): void }).resize?.(0);
  }
}

/** Returns the state of a file; undefined where there is none. */
async function stateOf(path: string): Promise<string | undefined> {
  const found = await stat(path, { bigint: true }).catch(() => undefined);
  return found === undefined ? undefined : `${found.ino} ${found.size} ${found.mtimeNs}`;
}

async function copyOf(model: Uint8Array | ArrayBuffer | SharedArrayBuffer): Promise<ArrayBuffer> {
  const source = isArrayBuffer(model) || isSharedArrayBuffer(model) ? new Uint8Array(model) : model;
  if (!ArrayBuffer.isView(source))
    throw invalid('model', 'a path, a file: URL, or the bytes of an ONNX model', model);
  checkedBytes(source);
  const bytes = new Resizable(source.byteLength, { maxByteLength: source.byteLength });
  const target = new Uint8Array(bytes);
  for (let from = 0; from < target.length; from += PART_BYTES) {
    if (from > 0) await setImmediate();
    if (source.byteLength !== target.length)
      throw new CudaArgumentError(
        'model',
        'model: its bytes were detached or resized before they were copied. Await ' +
          'loadOnnxEngine(…) first.',
      );
    target.set(
      new Uint8Array(
        source.buffer,
        source.byteOffset + from,
        Math.min(PART_BYTES, target.length - from),
      ),
      from,
    );
  }
  return bytes;
}

/**
 * Returns a model's path.
 *
 * @throws CudaArgumentError for anything else than a path or a `file:` URL
 */
export function modelPath(model: string | URL): string {
  if (isUrl(model)) {
    if (model.protocol !== 'file:')
      throw invalid('model', 'a path, a file: URL, or the bytes of an ONNX model', model.href);
    return pathOfUrl('model', model);
  }
  checkPath('model', model, 'a path, a file: URL, or the bytes of an ONNX model');
  return isAbsolute(model) ? model : resolve(model);
}

function checkedBytes<B extends { byteLength: number }>(bytes: B): B {
  if (bytes.byteLength === 0)
    throw new CudaArgumentError('model', 'model: expected the bytes of an ONNX model, got none.');
  return bytes;
}
