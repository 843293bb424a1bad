/**
 * Values of whichever realm: `node:vm` and Jest run programs in realms of their own, whose classes
 * are not those of this module. So values are told by what they are, as `node:util` and their tags
 * say, and not by `instanceof`.
 */
import { types } from 'node:util';

export const isMap = (value: unknown): value is ReadonlyMap<unknown, unknown> => types.isMap(value);

/** A Uint8Array, a Buffer among them. */
export const isBytes = (value: unknown): value is Uint8Array => types.isUint8Array(value);

/** The same bytes by this realm's class, for libraries that ask for it. */
export function ownBytes(bytes: Uint8Array): Uint8Array {
  if (bytes instanceof Uint8Array) return bytes;
  const { buffer, byteOffset, byteLength } = bytes as Uint8Array;
  return new Uint8Array(buffer, byteOffset, byteLength);
}

export const isArrayBuffer = (value: unknown): value is ArrayBuffer => types.isArrayBuffer(value);

export const isSharedArrayBuffer = (value: unknown): value is SharedArrayBuffer =>
  types.isSharedArrayBuffer(value);

export const isPromise = (value: unknown): value is Promise<unknown> => types.isPromise(value);

/** An error that was thrown by whichever realm's code. DOMException is one by its prototype. */
export const isError = (value: unknown): value is Error =>
  types.isNativeError(value) || value instanceof Error || tagOf(value) === 'DOMException';

/** What is to be said of something that was thrown. */
export function messageOf(thrown: unknown): string {
  return isError(thrown) ? thrown.message : String(thrown);
}

/** A URL, also of an implementation beside Node's, as jsdom has. */
export function isUrl(value: unknown): value is URL {
  if (tagOf(value) !== 'URL') return false;
  const { href, protocol } = value as URL;
  return typeof href === 'string' && typeof protocol === 'string';
}

/** An AbortSignal, also of another implementation. */
export function isAbortSignal(value: unknown): value is AbortSignal {
  if (tagOf(value) !== 'AbortSignal') return false;
  const { aborted, addEventListener } = value as { aborted?: unknown; addEventListener?: unknown };
  return typeof aborted === 'boolean' && typeof addEventListener === 'function';
}

/**
 * An object that is written as `{ … }`, or has no prototype: of whichever realm, whose
 * Object.prototype has none.
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
    // It says nothing about itself: a getter of its own has thrown.
    return undefined;
  }
}
