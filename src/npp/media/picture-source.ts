/** Where a picture comes from: a file, or the bytes of one. */
import { fileURLToPath } from 'node:url';

import { invalid } from '../../core/arguments.js';

/** A path, a `file:` URL, or the bytes of a file, in memory that threads share too. Bytes are left alone until the picture is decoded. */
export type PictureSource = string | URL | Uint8Array | ArrayBuffer;

/** A source that was checked. */
export interface CheckedSource {
  readonly input: string | Uint8Array;
  /** As errors name it. */
  readonly name: string;
}

/** @throws CudaArgumentError for what is none, another kind of URL, and no bytes at all */
export function sourceOf(argument: string, source: unknown): CheckedSource {
  if (source instanceof URL) {
    if (source.protocol !== 'file:') throw invalid(argument, 'a path, a file: URL or the bytes of a file', source.href, 'Fetch it first, and pass await response.arrayBuffer().');
    const path = fileURLToPath(source);
    return { input: path, name: path };
  }
  if (typeof source === 'string' && source !== '') return { input: source, name: source };
  const bytes = source instanceof ArrayBuffer ? new Uint8Array(source) : source;
  if (!(bytes instanceof Uint8Array)) throw invalid(argument, 'a path, a file: URL or the bytes of a file', source);
  if (bytes.length === 0) throw invalid(argument, 'the bytes of a file, at least one', source);
  return { input: bytes, name: `${argument} (${bytes.length} bytes)` };
}
