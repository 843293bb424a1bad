/** What `fixtures/make.py` made, with the reference implementations: files, and what is in them. */
import { readFileSync } from 'node:fs';

import type { DTypeName } from 'async-cuda/core';

interface Expected {
  dtype: DTypeName;
  shape: number[];
  /** The elements row-major and little-endian. */
  hex: string;
}

export const fixture = (name: string): Uint8Array =>
  new Uint8Array(readFileSync(new URL(`./fixtures/${name}`, import.meta.url)));

export const expected = JSON.parse(new TextDecoder().decode(fixture('expected.json'))) as {
  npy: (Expected & { fortran: boolean; start: number; end: number })[];
  refused: Record<string, string>;
  safetensors: Record<string, Expected>;
};

export const hex = (bytes: Uint8Array): string =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('hex');
export const unhex = (text: string): Uint8Array => new Uint8Array(Buffer.from(text, 'hex'));
