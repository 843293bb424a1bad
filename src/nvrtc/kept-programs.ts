/** Programs on disk, in the same cache as kernels in TypeScript. */
import { openDiskCache, programEntry } from '../core/kept.js';
import { isBytes } from '../ground/other-realms.js';

/** The fields of a cached program that are bytes. */
type Bytes<T> = {
  [K in keyof T]: T[K] extends Uint8Array | undefined
    ? Uint8Array extends Exclude<T[K], undefined>
      ? K
      : never
    : never;
}[keyof T];

/** Reads the program of `key`, if it is cached. */
export async function keptProgram<T extends object>(
  key: readonly unknown[],
  bytesOf: readonly Bytes<T>[],
): Promise<T | undefined> {
  const kept = await openDiskCache()?.read(programEntry(key));
  if (kept === undefined) return undefined;
  try {
    const program = JSON.parse(kept.toString('utf8')) as Record<PropertyKey, unknown>;
    for (const field of bytesOf) {
      const text = program[field];
      if (typeof text === 'string') program[field] = new Uint8Array(Buffer.from(text, 'base64'));
    }
    return program as T;
  } catch {
    // A damaged entry counts as absent.
    return undefined;
  }
}

/** Writes a program to the cache, without a waiter. */
export function keepProgram<T extends object>(
  key: readonly unknown[],
  program: T,
  bytesOf: readonly Bytes<T>[],
): void {
  const fields: Record<PropertyKey, unknown> = { ...program } as Record<PropertyKey, unknown>;
  for (const field of bytesOf) {
    const bytes = fields[field];
    if (isBytes(bytes))
      fields[field] = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString(
        'base64',
      );
  }
  void openDiskCache()?.write(programEntry(key), Buffer.from(JSON.stringify(fields)));
}
