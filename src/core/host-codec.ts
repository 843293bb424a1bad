/**
 * Conversion between a host array and the bytes of the device: the arrays that a dtype takes, and
 * copies of parts of them.
 */
import { types } from 'node:util';

import { CudaError } from '../ground/errors.js';
import { allocateHost } from '../runtime/host-allocation.js';
import { invalid } from '../ground/arguments.js';
import { BIT_ARRAYS, DTYPES, HOST_ARRAYS, partsOf } from '../ground/dtype.js';
import type { DType, DTypeName, HostView } from '../ground/dtype.js';
import { isNarrow, narrow, widen } from '../ground/narrow-floats.js';

/**
 * Copies parts of a source into staging. Offsets and sizes are bytes of the device's
 * representation.
 */
export interface Encoder {
  /** The size of the source in bytes. */
  readonly bytes: number;
  /** The time of a byte, as a multiple of plain copying. */
  readonly cost: number;
  /**
   * Copies `bytes` bytes from `offset` on to `target`. Throws where the source was detached or
   * resized.
   */
  encode(offset: number, bytes: number, target: Uint8Array): void;
  /** The source's own bytes, where they need no conversion. Throws as {@link encode} does. */
  readonly plain?: (offset: number, bytes: number) => Uint8Array;
}

/** Copies parts of staging into a destination. */
export interface Decoder {
  /** The time of a byte, as a multiple of plain copying. */
  readonly cost: number;
  decode(offset: number, source: Uint8Array): void;
  /** The destination's own bytes, where they need no conversion. Throws as {@link decode} does. */
  readonly plain?: (offset: number, bytes: number) => Uint8Array;
  /**
   * The destination's bytes, where they need no conversion and the array was made for this read.
   */
  exclusive(): Uint8Array | undefined;
}

/** Converting one element takes a few nanoseconds; copying its bytes takes a tenth of one. */
const CONVERSION_COST = 24;
/** Bytes of bool are checked four at a time. */
const TRUTH_COST = 4;

/**
 * The encoder of a write's source, which is checked against the dtype. `raw` takes words instead of
 * values.
 */
export function encoderFor(dtype: DType, source: unknown, raw: boolean, argument: string): Encoder {
  // This includes arrays of other realms.
  if (!ArrayBuffer.isView(source) && !types.isAnyArrayBuffer(source)) {
    const name = (raw ? BIT_ARRAYS : HOST_ARRAYS)[dtype.name].name;
    const fix = Array.isArray(source)
      ? `Write ${name}.from(values).`
      : `Pass a ${name}, a PinnedBuffer, or an ArrayBuffer of its bytes.`;
    throw invalid(argument, `a ${name}`, source, fix);
  }
  const wholeBytes = !ArrayBuffer.isView(source);
  if (wholeBytes) checkAttached(source, source, argument);
  const view: HostView = wholeBytes ? new Uint8Array(source) : source;
  if (!wholeBytes) checkArray(dtype, view, raw, argument);
  const converts = !raw && !wholeBytes && isNarrow(dtype.name);
  const length = view.byteLength;
  const buffer = view.buffer;
  const check = (): void => {
    if (view.byteLength === length && view.buffer === buffer) return;
    throw new CudaError(
      'ERR_CUDA_SOURCE_DETACHED',
      `${argument}: the array was ` +
        `${view.byteLength === 0 ? 'detached or transferred' : 'resized'} while it was being ` +
        'copied. ' +
        'Do not change it until the write resolves, or write a copy of it.',
    );
  };
  if (converts) {
    const values = view as Float32Array;
    const { name } = dtype;
    if (!isNarrow(name)) throw invalid(argument, 'a narrow float', name);
    return {
      bytes: values.length * dtype.bytes,
      cost: CONVERSION_COST,
      encode(offset, bytes, target) {
        check();
        const first = offset / dtype.bytes;
        const count = bytes / dtype.bytes;
        const out =
          dtype.bytes === 1
            ? target.subarray(0, bytes)
            : new Uint16Array(target.buffer, target.byteOffset, count);
        narrow(name, values.subarray(first, first + count), out);
      },
    };
  }
  if (!raw && !wholeBytes && dtype.name === 'bool') {
    return {
      bytes: length,
      cost: TRUTH_COST,
      encode(offset, bytes, target) {
        check();
        putTruth(
          new Uint8Array(buffer, view.byteOffset + offset, bytes),
          target.subarray(0, bytes),
        );
      },
    };
  }
  return plainEncoder(view, check);
}

function plainEncoder(view: HostView, check: () => void): Encoder {
  return {
    bytes: view.byteLength,
    cost: 1,
    encode(offset, bytes, target) {
      check();
      target.set(new Uint8Array(view.buffer, view.byteOffset + offset, bytes));
    },
    plain(offset, bytes) {
      check();
      return new Uint8Array(view.buffer, view.byteOffset + offset, bytes);
    },
  };
}

/** A copy of what `source` contains now, converted already, in memory of its own. */
export function ownCopy(source: Encoder): Encoder {
  const bytes = new Uint8Array(source.bytes);
  source.encode(0, bytes.length, bytes);
  return plainEncoder(bytes, neverDetached);
}

function neverDetached(): void {
  // No other code can detach the copy.
}

/** The decoder of a read's destination. `fresh` means that the array was made for this read. */
export function decoderFor(
  dtype: DType,
  target: HostView,
  raw: boolean,
  argument: string,
  fresh = false,
): Decoder {
  const length = target.byteLength;
  const check = (): void => {
    if (target.byteLength === length) return;
    throw new CudaError(
      'ERR_CUDA_SOURCE_DETACHED',
      `${argument}: the array was ` +
        `${target.byteLength === 0 ? 'detached or transferred' : 'resized'} while it was being ` +
        'read into. ' +
        'Do not change it until the read resolves.',
    );
  };
  const { name } = dtype;
  if (!raw && isNarrow(name)) {
    const values = target as Float32Array;
    return {
      cost: CONVERSION_COST,
      exclusive: () => undefined,
      decode(offset, source) {
        check();
        const first = offset / dtype.bytes;
        const count = source.length / dtype.bytes;
        const bits =
          dtype.bytes === 1 ? source : new Uint16Array(source.buffer, source.byteOffset, count);
        widen(name, bits, values.subarray(first, first + count));
      },
    };
  }
  if (!raw && name === 'bool') {
    const bytes = target as Uint8Array;
    return {
      cost: TRUTH_COST,
      exclusive: () => undefined,
      decode(offset, source) {
        check();
        putTruth(source, bytes.subarray(offset, offset + source.length));
      },
    };
  }
  return {
    cost: 1,
    exclusive: () =>
      fresh ? new Uint8Array(target.buffer, target.byteOffset, target.byteLength) : undefined,
    decode(offset, source) {
      check();
      new Uint8Array(target.buffer, target.byteOffset + offset, source.length).set(source);
    },
    plain(offset, bytes) {
      check();
      return new Uint8Array(target.buffer, target.byteOffset + offset, bytes);
    },
  };
}

/**
 * Copies bytes of bool as 0 and 1. On the device every byte other than 0 is true; files, other
 * libraries and raw writes may contain such bytes.
 */
function putTruth(source: Uint8Array, target: Uint8Array): void {
  target.set(source);
  const isAligned = target.byteOffset % 4 === 0;
  const words = isAligned
    ? new Uint32Array(target.buffer, target.byteOffset, target.length >> 2)
    : undefined;
  let word = 0;
  if (words !== undefined) while (word < words.length && (words[word]! & 0xfefefefe) === 0) word++;
  for (let i = word * 4; i < target.length; i++) if (target[i]! > 1) target[i] = 1;
}

/**
 * The type of an array, independent of its class's name: for subclasses, and for arrays of other
 * realms.
 */
function arrayType(view: ArrayBufferView): string {
  return (typeOfArray.call(view) as string | undefined) ?? 'DataView';
}

// eslint-disable-next-line @typescript-eslint/unbound-method -- called with the array in question
const typeOfArray = Object.getOwnPropertyDescriptor(
  Object.getPrototypeOf(Uint8Array.prototype),
  Symbol.toStringTag,
)!.get!;

/** The number of elements that a host array holds. A complex element takes two of its values. */
export function elementsOf(dtype: DType, view: HostView, raw: boolean): number {
  if (!raw && isNarrow(dtype.name)) return (view as Float32Array).length;
  return view.byteLength / dtype.bytes;
}

/** A new host array for `length` elements. */
export function hostArray(dtype: DTypeName, length: number, raw: boolean): HostView {
  const constructor = (raw ? BIT_ARRAYS : HOST_ARRAYS)[dtype];
  const fix = 'Read it in pieces: buffer.chunks(stream), or buffer.slice(from, to).read(stream).';
  const values = length * partsOf(DTYPES[dtype]);
  return allocateHost(
    `a ${constructor.name} to read into`,
    values * constructor.BYTES_PER_ELEMENT,
    fix,
    () => new constructor(values),
  );
}

/**
 * The destination of a read: the caller's array `into`, which must be of the dtype's host type and
 * have `length` elements (`count` describes the length in errors), or a new array.
 */
export function readTarget(
  dtype: DType,
  length: number,
  into: unknown,
  { raw = false, count = `${length} elements`, fix = '' } = {},
): { target: HostView; decoder: Decoder } {
  let target: HostView;
  if (into === undefined) target = hostArray(dtype.name, length, raw);
  else {
    if (!ArrayBuffer.isView(into))
      throw invalid('into', `a ${(raw ? BIT_ARRAYS : HOST_ARRAYS)[dtype.name].name}`, into);
    checkArray(dtype, into, raw, 'into');
    if (elementsOf(dtype, into, raw) !== length) throw invalid('into', count, into, fix);
    target = into;
  }
  return { target, decoder: decoderFor(dtype, target, raw, 'into', into === undefined) };
}

/**
 * Refuses an array without elements whose buffer was detached, by a transfer to another thread for
 * example.
 */
export function checkAttached(
  array: HostView | ArrayBufferLike,
  buffer: ArrayBufferLike,
  argument: string,
): void {
  if (array.byteLength !== 0 || !isDetached(buffer)) return;
  throw invalid(
    argument,
    'an array that has its bytes',
    array,
    'It was detached or transferred: pass it before that, or pass a copy.',
  );
}

/** Whether a buffer was detached. Node 20 has no property for it. */
export function isDetached(buffer: ArrayBufferLike): boolean {
  try {
    new Uint8Array(buffer);
    return false;
  } catch {
    return true;
  }
}

/** Checks that a host array is of the dtype's own type. Raw words are accepted with `raw` only. */
export function checkArray(dtype: DType, view: HostView, raw: boolean, argument: string): void {
  checkAttached(view, view.buffer, argument);
  const expected = (raw ? BIT_ARRAYS : HOST_ARRAYS)[dtype.name];
  const actual = arrayType(view);
  if (actual === expected.name) return;
  if (actual === 'Uint8Array' && expected.BYTES_PER_ELEMENT === 1) return;
  if (dtype.name === 'u8' && actual === 'Uint8ClampedArray') return;
  const bits = BIT_ARRAYS[dtype.name].name;
  const fix =
    !raw && actual === bits
      ? 'To copy raw words use writeBits and readBits.'
      : actual === 'DataView'
        ? `Pass new ${expected.name}(view.buffer, view.byteOffset, …).`
        : argument === 'into'
          ? `Pass a ${expected.name}, or leave it out: a new one is made.`
          : `Pass ${expected.name}.from(array), or make the buffer with the array's dtype.`;
  throw invalid(argument, `a ${expected.name} for dtype ${dtype.name}`, view, fix);
}
