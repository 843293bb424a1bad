/**
 * Tests of values of any realm: `node:vm` and Jest run programs in realms of their own, whose
 * classes differ from this module's. Values are identified by `node:util` and their tags, not by
 * `instanceof`.
 */
import { types } from 'node:util';

export const isMap = (value: unknown): value is ReadonlyMap<unknown, unknown> => types.isMap(value);

/** Whether the value is a Uint8Array. A Buffer is one. */
export const isBytes = (value: unknown): value is Uint8Array => types.isUint8Array(value);

/** The same bytes as a Uint8Array of this realm, for libraries that require its class. */
export function ownBytes(bytes: Uint8Array): Uint8Array {
  if (bytes instanceof Uint8Array) return bytes;
  const { buffer, byteOffset, byteLength } = bytes as Uint8Array;
  return new Uint8Array(buffer, byteOffset, byteLength);
}

export const isArrayBuffer = (value: unknown): value is ArrayBuffer => types.isArrayBuffer(value);

export const isSharedArrayBuffer = (value: unknown): value is SharedArrayBuffer =>
  types.isSharedArrayBuffer(value);

export const isPromise = (value: unknown): value is Promise<unknown> => types.isPromise(value);

/** Whether the value is an error of any realm. A DOMException is recognised by its tag. */
export const isError = (value: unknown): value is Error =>
  types.isNativeError(value) || value instanceof Error || tagOf(value) === 'DOMException';

/** The message of a thrown value. */
export function messageOf(thrown: unknown): string {
  return isError(thrown) ? thrown.message : String(thrown);
}

/** Whether the value is a URL, of Node or of another implementation such as jsdom's. */
export function isUrl(value: unknown): value is URL {
  if (tagOf(value) !== 'URL') return false;
  const { href, protocol } = value as URL;
  return typeof href === 'string' && typeof protocol === 'string';
}

/** Whether the value is an AbortSignal, of Node or of another implementation. */
export function isAbortSignal(value: unknown): value is AbortSignal {
  if (tagOf(value) !== 'AbortSignal') return false;
  const { aborted, addEventListener } = value as { aborted?: unknown; addEventListener?: unknown };
  return typeof aborted === 'boolean' && typeof addEventListener === 'function';
}

/**
 * Whether the value is an object written as `{ … }`, or one without a prototype. The
 * Object.prototype of every realm has no prototype itself.
 */
export function isPlainObject(value: unknown): value is Record<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

function tagOf(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return undefined;
  try {
    return (value as { [Symbol.toStringTag]?: unknown })[Symbol.toStringTag];
  } catch {
    // A getter of the value threw: it has no tag.
    return undefined;
  }
}
