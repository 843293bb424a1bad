/**
 * Calls of TensorRT's C++ objects without a compiler. A public object holds the address of its
 * virtual table at 0 and, unless it is a pure interface, the address of its implementation at 8,
 * whose own table has the methods in the order in which the class declares them (Itanium C++ ABI
 * 2.5.2). Every table is checked before it is used: entries that are called have to be in the
 * library's executable segments.
 */
import { readFileSync } from 'node:fs';

import type { Koffi } from '../../native/koffi.js';
import type { Generation, SlotKey } from './generations.js';
import { generationOf } from './generations.js';
import { MOST_DIMS } from '../most-dims.js';
import { INTERFACES, METHODS } from './methods.js';
import type { ClassName, MethodName, NativeType, Signature } from './methods.js';
import { Refused } from './refused.js';
import { SLOTS } from './slots.js';

/** An object of a library. */
export interface NativeObject {
  readonly kind: ClassName;
  /** The object's address in C++, for methods with an argument of its type. */
  readonly address: number;
  /** The address that its methods are called with. */
  readonly self: number;
  readonly table: number;
  /** The number of consecutive entries that are in the library's code. */
  readonly length: number;
}

type Type = string | ReturnType<Koffi['struct']>;
export type NativeArgument =
  | number
  | bigint
  | boolean
  | string
  | null
  | NativeObject
  | Uint8Array
  | readonly number[]
  | { type: number; values: number; count: number };

const WORD = 8;
/** More slots than any table has. */
const MOST_SLOTS = 160;

type Segments = readonly (readonly [start: number, end: number])[];

/** Returns the address ranges of code in this process; undefined on a platform without /proc. */
function executableSegments(): Segments | undefined {
  try {
    return readFileSync('/proc/self/maps', 'latin1')
      .split('\n')
      .flatMap((line) => {
        const found = /^([0-9a-f]+)-([0-9a-f]+) ..x/.exec(line);
        return found === null ? [] : [[parseInt(found[1]!, 16), parseInt(found[2]!, 16)] as const];
      });
  } catch {
    return undefined;
  }
}

export class Classes {
  readonly koffi: Koffi;
  readonly generation: Generation;
  /** The library and its version, for errors. */
  private readonly library: string;
  private readonly slots: Readonly<Partial<Record<ClassName, Readonly<Record<string, number>>>>>;
  private segments = executableSegments();
  private readonly prototypes = new Map<string, ReturnType<Koffi['proto']>>();
  private readonly dims: Type;
  private readonly dimsPointer: Type;
  private readonly weights: Type;
  private readonly tables = new Map<string, number>();
  /**
   * Whether the row's numbers of slots are those of this minor version; in older ones a table may
   * be shorter.
   */
  private readonly whole: boolean;

  constructor(koffi: Koffi, library: string, key: SlotKey, minor: number) {
    this.koffi = koffi;
    this.library = library;
    this.slots = SLOTS[key];
    this.generation = generationOf(key);
    this.whole = key !== '10' || minor >= 16;
    this.dims = koffi.struct({
      nbDims: 'int32_t',
      d: koffi.array(this.generation.extentBytes === 8 ? 'int64_t' : 'int32_t', MOST_DIMS),
    });
    this.dimsPointer = koffi.pointer(this.dims as never);
    this.weights = koffi.struct({ type: 'int32_t', values: 'uintptr_t', count: 'int64_t' });
  }

  /**
   * Returns the object at an address, its table checked; undefined for the null pointer. @throws
   * Refused for a table of another length
   */
  object(kind: ClassName, pointer: unknown): NativeObject | undefined {
    const address = Number(pointer);
    if (address === 0) return undefined;
    const self = INTERFACES.has(kind) ? address : this.read(address + WORD);
    const table = this.read(self);
    const known = `${kind} ${table}`;
    let length = this.tables.get(known);
    if (length === undefined) {
      length = this.lengthOf(table);
      if (length === 0) {
        // The object may belong to a library that was loaded since, as the parser's is.
        this.segments = executableSegments();
        length = this.lengthOf(table);
      }
      this.checkTable(kind, length);
      this.tables.set(known, length);
    }
    return { kind, address, self, table, length };
  }

  private checkTable(kind: ClassName, length: number): void {
    const slots = this.slots[kind];
    if (slots === undefined)
      throw new Refused('unsupported', `${this.library} has no class ${kind}.`);
    if (length >= (this.whole ? slots['slots']! : 2)) return;
    throw new Refused(
      'unsupported',
      `${this.library}: the virtual table of ${kind} has ${length} functions, and should ` +
        `have ${slots['slots']!}. This build is not one whose tables are known: install a ` +
        'released version.',
    );
  }

  private lengthOf(table: number): number {
    const { segments } = this;
    if (segments === undefined) return MOST_SLOTS;
    let length = 0;
    while (length < MOST_SLOTS) {
      const entry = this.read(table + length * WORD);
      if (!segments.some(([start, end]) => entry >= start && entry < end)) break;
      length++;
    }
    return length;
  }

  /**
   * Returns the name of the object's actual class, as the library spells it, where it contains
   * that.
   */
  typeName(object: NativeObject): string | undefined {
    const type = this.read(object.table - WORD);
    return type === 0 ? undefined : this.text(this.read(type + WORD));
  }

  /** Returns whether this version has the method. */
  has<C extends ClassName>(kind: C, method: MethodName<C>): boolean {
    return this.slots[kind]?.[method] !== undefined;
  }

  /** Returns the address of a method's code. @throws Refused where this version lacks it */
  address<C extends ClassName>(object: NativeObject, kind: C, method: MethodName<C>): number {
    const slot = this.slots[kind]?.[method];
    if (slot === undefined || slot >= object.length)
      throw new Refused(
        'unsupported',
        `${this.library} has no ${kind}::${method}: it came with another version.`,
      );
    return this.read(object.table + slot * WORD);
  }

  call<C extends ClassName>(
    object: NativeObject,
    kind: C,
    method: MethodName<C>,
    ...args: readonly NativeArgument[]
  ): unknown {
    const [returned, ...declared] = (METHODS[kind] as Readonly<Record<string, Signature>>)[method]!;
    // Version 8 takes Dims by value in these methods.
    const taken =
      kind === 'OptimizationProfile' && this.generation.extentBytes === 4
        ? declared.map((type) => (type === 'dims' ? 'dimsValue' : type))
        : declared;
    const address = this.address(object, kind, method);
    const values = args.map((arg, i) => this.passed(taken[i]!, arg));
    const result: unknown = this.koffi.call(
      BigInt(address),
      this.prototype([returned, ...taken]),
      object.self,
      ...values,
    );
    if (returned === 'dims') return dimsOf(result as { nbDims: number; d: (number | bigint)[] });
    return returned === 'object' || returned === 'size' || returned === 'i64'
      ? Number(result)
      : result;
  }

  /** Destroys an object: the second of the destructor's slots also frees it. */
  destroy(object: NativeObject): void {
    const first =
      object.kind === 'Parser'
        ? this.slots.Parser!['clearErrors']! + 1
        : object.kind === 'ParserRefitter'
          ? this.slots.ParserRefitter!['clearErrors']! + 1
          : 0;
    const address = this.read(this.read(object.address) + (first + 1) * WORD);
    this.koffi.call(BigInt(address), this.prototype(['void']), object.address);
  }

  read(address: number): number {
    return Number(this.koffi.decode(BigInt(address), 'uint64_t') as bigint | number);
  }

  text(address: number): string {
    return address === 0 ? '' : String(this.koffi.decode(BigInt(address), 'char', -1));
  }

  /** Returns a copy of that many bytes at an address. */
  bytes(address: number, length: number): Uint8Array {
    return length === 0
      ? new Uint8Array(0)
      : new Uint8Array(this.koffi.view(BigInt(address), length)).slice();
  }

  private passed(type: NativeType, value: NativeArgument): unknown {
    if (type === 'dims' || type === 'dimsValue') {
      const extents = value as readonly number[];
      const d = Array.from({ length: MOST_DIMS }, (_, i) => extents[i] ?? 0);
      return { nbDims: extents.length, d };
    }
    if (value === null) return type === 'text' ? null : 0;
    if (typeof value === 'object' && 'address' in value) return value.address;
    return value;
  }

  private prototype(signature: readonly NativeType[]): ReturnType<Koffi['proto']> {
    const name = signature.join(' ');
    let prototype = this.prototypes.get(name);
    if (prototype === undefined) {
      const [returned, ...taken] = signature;
      prototype = this.koffi.proto(this.type(returned!, true) as string, [
        'uintptr_t',
        ...taken.map((type) => this.type(type, false)),
      ]);
      this.prototypes.set(name, prototype);
    }
    return prototype;
  }

  private type(type: NativeType, returned: boolean): Type {
    switch (type) {
      case 'dims':
        return returned ? this.dims : this.dimsPointer;
      case 'dimsValue':
        return this.dims;
      case 'weights':
        return this.weights;
      case 'bytes':
        return 'const void *';
      case 'text':
        return 'const char *';
      default:
        return C_TYPES[type];
    }
  }
}

const C_TYPES: Readonly<
  Record<Exclude<NativeType, 'dims' | 'dimsValue' | 'weights' | 'bytes' | 'text'>, string>
> = {
  void: 'void',
  bool: 'bool',
  i32: 'int32_t',
  u32: 'uint32_t',
  i64: 'int64_t',
  size: 'size_t',
  f32: 'float',
  object: 'uintptr_t',
};

/** Returns the extents; undefined where there are none, as for a tensor that does not exist. */
function dimsOf({ nbDims, d }: { nbDims: number; d: (number | bigint)[] }): number[] | undefined {
  return nbDims < 0 ? undefined : Array.from(d.slice(0, nbDims), Number);
}
