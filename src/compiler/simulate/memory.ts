/**
 * Memory of a simulated kernel: elements of one storage type, read and written with bounds checked.
 */
import type { StorageType } from '../tree.js';
import type { StructLayout } from '../../ground/struct-layout.js';
import { NAN_BITS_F32, NAN_BITS_F64, flushed } from './exact-arithmetic.js';
import { Failure } from './failure.js';
import { HOST_ARRAYS } from '../../ground/dtype.js';
import { isNarrow, kernelBits, wideValues } from '../../ground/narrow-floats.js';
import type { NarrowName } from '../../ground/narrow-floats.js';
import { readAs, storageBytes } from '../storage-types.js';

export type Value = number | bigint | boolean;

/**
 * The state space of memory. Adding to f32 flushes subnormal numbers in global memory and keeps
 * them in shared memory (PTX ISA, atom).
 */
export type Space = 'global' | 'shared' | 'local';

/** Flags of bytes. 0 stands for a byte that no thread has written. */
const WRITTEN = 1;
/** The byte is being copied: it is readable once the copying thread has waited. */
const PENDING = 2;

/**
 * A run of bytes. `written`: one flag for each byte, where reading an unwritten byte is an error.
 */
export interface Bytes {
  readonly buffer: ArrayBufferLike;
  readonly offset: number;
  readonly bytes: number;
  readonly written?: Uint8Array;
}

/**
 * Elements of a parameter or of an array that the kernel declares. The generated code calls its
 * methods; `site` is the place in the source.
 */
export abstract class Memory<T extends Value = Value> {
  readonly length: number;
  /** Set for a tensor with more than one axis. */
  shape: readonly number[] = [];
  strides: readonly number[] = [];
  private readonly name: string;
  private readonly space: Space;
  private readonly storage: StorageType;
  private readonly written: Uint8Array | undefined;
  private readonly elementBytes: number;

  constructor(
    name: string,
    space: Space,
    storage: StorageType,
    length: number,
    written: Uint8Array | undefined,
  ) {
    this.name = name;
    this.space = space;
    this.storage = storage;
    this.length = length;
    this.written = written;
    this.elementBytes = storageBytes[storage];
  }

  protected abstract get(index: number): T;
  protected abstract set(index: number, value: T): void;
  abstract clear(): void;

  load(index: number, site: number): T {
    if (!(index >= 0 && index < this.length)) this.outside(index, 'read', site);
    if (this.written !== undefined && this.written[index * this.elementBytes] !== WRITTEN)
      this.unwritten(index, site);
    return this.get(index);
  }

  store(index: number, value: T, site: number): void {
    if (!(index >= 0 && index < this.length)) this.outside(index, 'written', site);
    this.written?.fill(WRITTEN, index * this.elementBytes, (index + 1) * this.elementBytes);
    this.set(index, value);
  }

  /**
   * Copies `given` elements of global memory, and zeros after them up to `count`. They are readable
   * once they have {@link arrived}.
   */
  copyFrom(
    index: number,
    from: Memory<T>,
    fromIndex: number,
    count: number,
    given: number,
    site: number,
  ): void {
    if (!(index >= 0 && index + count <= this.length))
      this.outside(index < 0 ? index : index + count - 1, 'written', site);
    if (given > 0 && !(fromIndex >= 0 && fromIndex + given <= from.length))
      from.outside(fromIndex < 0 ? fromIndex : fromIndex + given - 1, 'read', site);
    const zero = (
      readAs[this.storage] === 'i64' || readAs[this.storage] === 'u64'
        ? 0n
        : readAs[this.storage] === 'bool'
          ? false
          : 0
    ) as T;
    for (let at = 0; at < count; at++)
      this.set(index + at, at < given ? from.get(fromIndex + at) : zero);
    this.written?.fill(PENDING, index * this.elementBytes, (index + count) * this.elementBytes);
  }

  arrived(index: number, count: number): void {
    this.written?.fill(WRITTEN, index * this.elementBytes, (index + count) * this.elementBytes);
  }

  /** Reads, computes and writes an element; gives the value from before. */
  private change(index: number, site: number, compute: (old: T) => T): T {
    const old = this.load(index, site);
    this.store(index, compute(old), site);
    return old;
  }

  atomicAdd(index: number, value: T, site: number): T {
    // Integers wrap when they are written.
    if (this.storage === 'f32' && this.space === 'global')
      return this.change(
        index,
        site,
        (old) => flushed(Math.fround(flushed(old as number) + flushed(value as number))) as T,
      );
    const round = readAs[this.storage] === 'f32' ? Math.fround : undefined;
    return this.change(
      index,
      site,
      (old) =>
        (round === undefined
          ? (old as number) + (value as number)
          : round((old as number) + (value as number))) as T,
    );
  }

  atomicMin(index: number, value: T, site: number): T {
    return this.change(index, site, (old) => (value < old ? value : old));
  }

  atomicMax(index: number, value: T, site: number): T {
    return this.change(index, site, (old) => (value > old ? value : old));
  }

  atomicAnd(index: number, value: T, site: number): T {
    return this.change(index, site, (old) => ((old as number) & (value as number)) as T);
  }

  atomicOr(index: number, value: T, site: number): T {
    return this.change(index, site, (old) => ((old as number) | (value as number)) as T);
  }

  atomicXor(index: number, value: T, site: number): T {
    return this.change(index, site, (old) => ((old as number) ^ (value as number)) as T);
  }

  atomicExchange(index: number, value: T, site: number): T {
    return this.change(index, site, () => value);
  }

  /** Compares floats by their bits, as atom.cas does. */
  atomicCompareExchange(index: number, expected: T, value: T, site: number): T {
    return this.change(index, site, (old) => (Object.is(old, expected) ? value : old));
  }

  private outside(index: number, done: 'read' | 'written', site: number): never {
    const elements = this.length === 1 ? '1 element' : `${this.length} elements`;
    throw new Failure(
      'bounds',
      `'${this.name}' has ${elements}, and element ${index} was ${done}`,
      `Compare the index with the length before, as in if (i < ${this.name}.length).`,
      site,
    );
  }

  private unwritten(index: number, site: number): never {
    if (this.written![index * this.elementBytes] === PENDING) {
      throw new Failure(
        'uninitialized',
        `element ${index} of shared '${this.name}' was read before an asynchronous copy to ` +
          'it was waited for',
        'Call gpu.async.commit() after the copies, gpu.async.wait(…) for the group, and ' +
          'gpu.block.sync() before others read it.',
        site,
      );
    }
    throw new Failure(
      'uninitialized',
      `element ${index} of shared '${this.name}' was read before any thread wrote it`,
      'Shared memory is not initialised: write it first, and call gpu.block.sync() between.',
      site,
    );
  }
}

type PlainArray =
  | Int8Array
  | Uint8Array
  | Int16Array
  | Uint16Array
  | Int32Array
  | Uint32Array
  | BigInt64Array
  | BigUint64Array;

/** Integers, which typed arrays wrap. */
class Integers extends Memory<number | bigint> {
  private readonly view: PlainArray;
  constructor(
    name: string,
    space: Space,
    storage: StorageType,
    view: PlainArray,
    written: Uint8Array | undefined,
  ) {
    super(name, space, storage, view.length, written);
    this.view = view;
  }
  protected get(index: number): number | bigint {
    return this.view[index]!;
  }
  protected set(index: number, value: number | bigint): void {
    this.view[index] = value;
  }
  clear(): void {
    new Uint8Array(this.view.buffer, this.view.byteOffset, this.view.byteLength).fill(0);
  }
}

class Booleans extends Memory<boolean> {
  private readonly view: Uint8Array;
  constructor(name: string, space: Space, view: Uint8Array, written: Uint8Array | undefined) {
    super(name, space, 'bool', view.length, written);
    this.view = view;
  }
  protected get(index: number): boolean {
    return this.view[index] !== 0;
  }
  protected set(index: number, value: boolean): void {
    this.view[index] = value ? 1 : 0;
  }
  clear(): void {
    this.view.fill(0);
  }
}

/** Floats. Every NaN is written as PTX's one NaN. */
class Floats extends Memory<number> {
  private readonly view: Float32Array | Float64Array;
  private readonly setNaN: (index: number) => void;
  constructor(
    name: string,
    space: Space,
    view: Float32Array | Float64Array,
    written: Uint8Array | undefined,
  ) {
    const { buffer, byteOffset, length } = view;
    super(name, space, view instanceof Float32Array ? 'f32' : 'f64', length, written);
    this.view = view;
    if (view instanceof Float32Array) {
      const bits = new Uint32Array(buffer, byteOffset, length);
      this.setNaN = (index) => {
        bits[index] = NAN_BITS_F32;
      };
    } else {
      const bits = new BigUint64Array(buffer, byteOffset, length);
      this.setNaN = (index) => {
        bits[index] = NAN_BITS_F64;
      };
    }
  }
  protected get(index: number): number {
    return this.view[index]!;
  }
  protected set(index: number, value: number): void {
    if (Number.isNaN(value)) this.setNaN(index);
    else this.view[index] = value;
  }
  clear(): void {
    this.view.fill(0);
  }
}

/** The floats of 16 and 8 bits. */
class NarrowFloats extends Memory<number> {
  private readonly view: Uint8Array | Uint16Array;
  private readonly values: Float32Array;
  private readonly format: NarrowName;
  constructor(
    name: string,
    space: Space,
    storage: NarrowName & StorageType,
    view: Uint8Array | Uint16Array,
    written: Uint8Array | undefined,
  ) {
    super(name, space, storage, view.length, written);
    this.view = view;
    this.format = storage;
    this.values = wideValues(storage);
  }
  protected get(index: number): number {
    return this.values[this.view[index]!]!;
  }
  protected set(index: number, value: number): void {
    this.view[index] = kernelBits(this.format, value);
  }
  clear(): void {
    this.view.fill(0);
  }
}

type IntegerArray = new (buffer: ArrayBufferLike, offset: number, length: number) => PlainArray;

/** Makes a memory with as many elements as fit into the bytes. */
export function memoryOf(
  name: string,
  space: Space,
  storage: StorageType,
  { buffer, offset, bytes, written }: Bytes,
): Memory {
  const length = Math.floor(bytes / storageBytes[storage]);
  if (storage === 'bool')
    return new Booleans(name, space, new Uint8Array(buffer, offset, length), written);
  if (storage === 'f32')
    return new Floats(name, space, new Float32Array(buffer, offset, length), written);
  if (storage === 'f64')
    return new Floats(name, space, new Float64Array(buffer, offset, length), written);
  if (isNarrow(storage)) {
    const words =
      storageBytes[storage] === 1
        ? new Uint8Array(buffer, offset, length)
        : new Uint16Array(buffer, offset, length);
    return new NarrowFloats(name, space, storage, words, written);
  }
  return new Integers(
    name,
    space,
    storage,
    new (HOST_ARRAYS[storage] as IntegerArray)(buffer, offset, length),
    written,
  );
}

/** One field of every structure of a tensor. */
class FieldMemory extends Memory {
  private readonly one: Memory;
  private readonly scratch: Uint8Array;
  private readonly bytes: Uint8Array;
  private readonly stride: number;
  private readonly offset: number;
  constructor(
    name: string,
    storage: StorageType,
    length: number,
    bytes: Uint8Array,
    stride: number,
    offset: number,
  ) {
    super(name, 'global', storage, length, undefined);
    this.scratch = new Uint8Array(storageBytes[storage]);
    this.one = memoryOf(name, 'global', storage, {
      buffer: this.scratch.buffer,
      offset: 0,
      bytes: this.scratch.length,
    });
    this.bytes = bytes;
    this.stride = stride;
    this.offset = offset;
  }
  protected get(index: number): Value {
    const at = index * this.stride + this.offset;
    this.scratch.set(this.bytes.subarray(at, at + this.scratch.length));
    return this.one.load(0, 0);
  }
  protected set(index: number, value: Value): void {
    this.one.store(0, value, 0);
    this.bytes.set(this.scratch, index * this.stride + this.offset);
  }
  clear(): void {
    for (let at = this.offset; at < this.bytes.length; at += this.stride)
      this.bytes.fill(0, at, at + this.scratch.length);
  }
}

/** A tensor of structures: each field is a memory of its own. */
export class StructMemory {
  readonly length: number;
  shape: readonly number[] = [];
  strides: readonly number[] = [];
  readonly fields: Readonly<Record<string, Memory>>;

  constructor(name: string, struct: StructLayout, bytes: Uint8Array) {
    const length = Math.floor(bytes.length / struct.bytes);
    this.length = length;
    this.fields = Object.fromEntries(
      struct.fields.map((field) => [
        field.name,
        new FieldMemory(name, field.storage, length, bytes, struct.bytes, field.offset),
      ]),
    );
  }
}
