/** Addresses of places, loads, stores and atomics. */
import type { AbiParam, Expression, Place, StorageType } from '../tree.js';
import { numberOf, registerOf } from './builder.js';
import type { Builder } from './builder.js';
import { abiStorage, storageBytes } from '../storage-types.js';
import type { ArraySymbol, MemoryAccess, NumberType, Value } from './function.js';
import { rangeOf } from './ranges.js';
import { constantAdded } from './simplify.js';
import { summaryOf } from './summary.js';
import { formOf, fromMemory, registerOfForm, throughMemory, toMemory } from './storage.js';

export interface Address {
  readonly base: Value;
  readonly offset: number;
  readonly space: MemoryAccess['space'];
  readonly region: string;
  readonly readonly: boolean;
}

/** The number of a parameter in the ABI; a new one is added at the end. */
function abiIndex(b: Builder, wanted: AbiParam): number {
  const same = (param: AbiParam): boolean =>
    param.kind === wanted.kind &&
    param.param === wanted.param &&
    (!('axis' in param) || !('axis' in wanted) || param.axis === wanted.axis);
  const found = b.f.abi.findIndex(same);
  if (found >= 0) return found;
  b.f.abi.push(wanted);
  return b.f.abi.length - 1;
}

/** A scalar of the ABI, widened. */
export function readParameter(b: Builder, index: number): Value {
  const storage = abiStorage(b.f.abi[index]!, b.tree.indexType);
  const raw = b.once('parameter', registerOfForm[formOf[storage]], [], String(index));
  const { kind } = b.f.abi[index]!;
  if ((kind === 'length' || kind === 'extent') && b.tree.indexType === 'i32')
    raw.range = [0, 2 ** 31 - 1];
  return fromMemory(b, storage, raw);
}

const alignTo = (value: number, align: number): number => Math.ceil(value / align) * align;

/**
 * A line of shared memory. Asynchronous copies of a warp are split, and read twice from L2, where
 * their lines in global memory and in shared memory begin at different places; so an array of
 * shared memory that consists of whole lines begins with one.
 */
const SHARED_LINE = 128;

function alignmentOf(space: ArraySymbol['space'], bytes: number): number {
  return space === 'dynamic' || (space === 'shared' && bytes > 0 && bytes % SHARED_LINE === 0)
    ? SHARED_LINE
    : 16;
}

/** The bytes after which a swizzle repeats. */
const SWIZZLE_PERIOD = 1024;

/** The address of the array, which is declared at its first use. */
function arrayBase(b: Builder, array: number): Value {
  const declared = b.tree.arrays[array]!;
  let symbol = b.f.arrays.get(array);
  if (symbol === undefined) {
    const bytes = declared.length * storageBytes[declared.storage];
    symbol = {
      symbol: declared.space === 'dynamic' ? '__dynamic_shared' : `__${declared.space}_${array}`,
      space: declared.space,
      bytes: declared.space === 'local' ? alignTo(bytes, 8) : bytes,
      align: summaryOf(b.tree.body).swizzled.has(array)
        ? SWIZZLE_PERIOD
        : alignmentOf(declared.space, bytes),
    };
    b.f.arrays.set(array, symbol);
  }
  return b.once('symbol', declared.space === 'local' ? 'b64' : 'b32', [], symbol.symbol);
}

/** Splits an index into a computed part and a constant number of elements. */
function split(
  b: Builder,
  index: Value,
  type: Expression['type'],
  exact: boolean,
): [Value, number] {
  const parts = constantAdded(index);
  if (!parts) return [index, 0];
  const [rest, by] = [parts[0], Number(parts[1].constant)];
  if (Math.abs(by) >= 2 ** 24) return [index, 0];
  // Sums of 64 bits wrap as addresses do.
  if (exact || type === 'i64') return [rest, by];
  // An index in bounds lies in 0 to 2^31 - 1, so that subtracting a positive constant never wraps;
  // subtracting a negative one may.
  if (type === 'i32' && by > 0) return [rest, by];
  const [low, high] = rangeOf(rest);
  return low + by >= (type === 'u32' ? 0 : -(2 ** 31)) &&
    low >= (type === 'u32' ? 0 : -(2 ** 31)) &&
    high + by <= 2 ** 31 - 1
    ? [rest, by]
    : [index, 0];
}

/** Fails where the source of an asynchronous copy is out of bounds. */
export function checkCopied(b: Builder, place: Place, elements: Value): void {
  const nothing = b.make('compare', 'pred', [elements, b.constant('b32', 0)], 'le', 's32');
  const first = b.value(place.index);
  check(b, place, first, nothing);
  const type = first.type as 'b32' | 'b64';
  const more = b.make('sub', 'b32', [elements, b.constant('b32', 1)]);
  check(
    b,
    place,
    b.make('add', type, [
      first,
      type === 'b64' ? b.make('extend', 'b64', [more], '', 's32') : more,
    ]),
    nothing,
  );
}

/** Fails where the index is out of bounds, unless it is not used. */
function check(b: Builder, place: Place, index: Value, unused?: Value): void {
  if (place.memory.kind !== 'param') return;
  const { param } = place.memory;
  const tensor = b.tree.params[param]!;
  if (tensor.kind !== 'tensor') return;
  const i64 = (value: Value, type: Expression['type']): Value =>
    value.type === 'b64'
      ? value
      : b.make('extend', 'b64', [value], '', type === 'u32' ? 'u32' : 's32');
  const message = b.f.text(`an index of ${tensor.name} is out of bounds`);
  const fail = (inside: Value): void =>
    assertThat(b, unused === undefined ? inside : b.make('or', 'pred', [inside, unused]), message);
  if (tensor.rank <= 1) {
    const length = readParameter(b, abiIndex(b, { kind: 'length', param }));
    if (index.type === 'b32' && length.type === 'b32')
      fail(b.make('compare', 'pred', [index, length], 'lt', 'u32'));
    else
      fail(
        b.make('compare', 'pred', [i64(index, place.index.type), i64(length, 'i32')], 'lt', 'u64'),
      );
    return;
  }
  // The bounds of a view: from the lowest place that its axes reach to the highest.
  let lowest = b.constant('b64', 0);
  let highest = b.constant('b64', 0);
  for (let axis = 0; axis < tensor.rank; axis++) {
    const extent = i64(readParameter(b, abiIndex(b, { kind: 'extent', param, axis })), 'i32');
    const stride = i64(readParameter(b, abiIndex(b, { kind: 'stride', param, axis })), 'i32');
    const reach = b.make('mul', 'b64', [
      b.make('sub', 'b64', [extent, b.constant('b64', 1)]),
      stride,
    ]);
    lowest = b.make('add', 'b64', [
      lowest,
      b.make('min', 'b64', [reach, b.constant('b64', 0)], '', 's64'),
    ]);
    highest = b.make('add', 'b64', [
      highest,
      b.make('max', 'b64', [reach, b.constant('b64', 0)], '', 's64'),
    ]);
  }
  const wide = i64(index, place.index.type);
  fail(
    b.make('and', 'pred', [
      b.make('compare', 'pred', [wide, lowest], 'ge', 's64'),
      b.make('compare', 'pred', [wide, highest], 'le', 's64'),
    ]),
  );
}

/** Ends the grid with the message where the test is false. */
export function assertThat(b: Builder, test: Value, message: string): void {
  if (test.constant === true) return;
  const { file, line } =
    b.span === undefined ? { file: b.tree.name, line: 0 } : b.options.where(b.span);
  b.effect(
    'assert',
    'none',
    [test],
    `${message} ${b.f.text(file)} ${b.f.text(b.tree.name)} ${line}`,
  );
}

export function addressOf(b: Builder, place: Place, checked = b.options.checks): Address {
  const index = b.value(place.index);
  if (checked) check(b, place, index);
  const { memory } = place;
  const fieldOffset = place.field?.offset ?? 0;
  let space: Address['space'] = 'global';
  let start: Value;
  let bytes: number;
  let readonly = false;
  let region = 'global';
  if (memory.kind === 'param') {
    const tensor = b.tree.params[memory.param]!;
    if (tensor.kind !== 'tensor')
      throw b.error(
        `'${tensor.name}' is no tensor`,
        'Only tensors and arrays have elements.',
        place.span,
      );
    bytes =
      'struct' in tensor.element
        ? tensor.element.struct.bytes
        : storageBytes[tensor.element.storage];
    start = b.once('global', 'b64', [
      b.once('parameter', 'b64', [], String(abiIndex(b, { kind: 'pointer', param: memory.param }))),
    ]);
    readonly = tensor.access === 'input' && !b.tree.dependent;
    if (readonly) region = `input ${memory.param}`;
  } else {
    const array = b.tree.arrays[memory.array]!;
    bytes = storageBytes[array.storage];
    start = arrayBase(b, memory.array);
    space = array.space === 'local' ? 'local' : 'shared';
    region = array.space === 'dynamic' ? 'dynamic' : `array ${memory.array}`;
  }
  const narrow = start.type === 'b32';
  const [rest, by] = split(b, index, place.index.type, narrow);
  let offset = by * bytes + fieldOffset;
  let base = start;
  if (rest.constant !== undefined) {
    const whole = Number(rest.constant) * bytes;
    if (Math.abs(whole) < 2 ** 30) offset += whole;
    else
      base = b.make('add', 'b64', [
        start,
        b.constant('b64', BigInt(rest.constant) * BigInt(bytes)),
      ]);
  } else if (narrow) {
    const low = rest.type === 'b64' ? b.make('truncate', 'b32', [rest]) : rest;
    base = b.make('add', 'b32', [b.make('mul', 'b32', [low, b.constant('b32', bytes)]), start]);
    // Scaling by the elements' size may have separated a constant.
    const parts = constantAdded(base);
    if (parts && Math.abs(parts[1].constant as number) < 2 ** 24) {
      base = parts[0];
      offset += parts[1].constant as number;
    }
  } else {
    const wide =
      rest.type === 'b64'
        ? rest
        : b.make('extend', 'b64', [rest], '', place.index.type === 'u32' ? 'u32' : 's32');
    base = b.make('add', 'b64', [start, b.make('mul', 'b64', [wide, b.constant('b64', bytes)])]);
  }
  return { base, offset, space, region, readonly };
}

/** An element that a variable holds. */
interface Held {
  readonly variable: number;
  /** The half of the variable that it is, where two elements share one. */
  readonly half: 'low' | 'high' | undefined;
}

/** The variable that holds the element, where the array lies in registers. */
function registerAt(b: Builder, place: Place): Held | undefined {
  if (place.memory.kind !== 'array') return undefined;
  const first = b.registers.get(place.memory.array);
  if (first === undefined) return undefined;
  const index = b.value(place.index);
  const at = Number(index.constant);
  if (index.constant === undefined || at < 0 || at >= b.tree.arrays[place.memory.array]!.length) {
    // The function is built again, with the array in memory.
    b.indexed.add(place.memory.array);
    return { variable: first, half: b.paired.has(place.memory.array) ? 'low' : undefined };
  }
  return b.paired.has(place.memory.array)
    ? { variable: first + (at >> 1), half: at % 2 === 0 ? 'low' : 'high' }
    : { variable: first + at, half: undefined };
}

/** One element, f16 or bf16, of the two in a word. */
function halfOf(b: Builder, storage: StorageType, { variable, half }: Held): Value {
  const bits = b.make(half === 'low' ? 'lowHalf' : 'highHalf', 'b16', [b.read(variable)]);
  return fromMemory(b, storage, storage === 'f16' ? bits : b.make('bits', 'b32', [bits]));
}

function writeHalf(b: Builder, storage: StorageType, { variable, half }: Held, value: Value): void {
  const stored = toMemory(b, storage, value);
  const bits = stored.type === 'b16' ? stored : b.make('bits', 'b16', [stored]);
  const word = b.read(variable);
  const halves =
    half === 'low'
      ? [bits, b.make('highHalf', 'b16', [word])]
      : [b.make('lowHalf', 'b16', [word]), bits];
  b.write(variable, b.make('halves', 'b32', halves));
}

function access(
  address: Address,
  storage: StorageType,
  cache: MemoryAccess['cache'],
): MemoryAccess {
  return {
    space: address.space,
    form: formOf[storage],
    offset: address.offset,
    readonly: address.readonly && cache !== 'volatile',
    cache,
    region: address.region,
  };
}

export function buildLoad(b: Builder, place: Place, cache: MemoryAccess['cache']): Value {
  const register = registerAt(b, place);
  if (register !== undefined)
    return register.half === undefined
      ? b.read(register.variable)
      : halfOf(b, place.storage, register);
  const address = addressOf(b, place);
  const load = b.effect('load', registerOfForm[formOf[place.storage]], [address.base]);
  load.memory = access(address, place.storage, cache);
  return fromMemory(b, place.storage, load);
}

export function buildStore(
  b: Builder,
  place: Place,
  value: Expression,
  cache: MemoryAccess['cache'],
): void {
  const register = registerAt(b, place);
  if (register !== undefined) {
    const built = b.value(value);
    if (register.half === undefined)
      b.write(register.variable, throughMemory(b, place.storage, built));
    else writeHalf(b, place.storage, register, built);
    return;
  }
  const address = addressOf(b, place);
  const stored = toMemory(b, place.storage, b.value(value));
  const store = b.effect('store', 'none', [address.base, stored]);
  store.memory = access(address, place.storage, cache);
}

export function buildClear(b: Builder, array: number): void {
  const first = b.registers.get(array);
  if (first !== undefined) {
    for (let at = 0; at < b.variablesOf(array); at++)
      b.write(first + at, b.constant(b.elementRegister(array), 0));
    return;
  }
  const base = arrayBase(b, array);
  b.effect('clear', 'none', [base], String(b.f.arrays.get(array)!.bytes)).memory = {
    space: 'local',
    form: 'b64',
    offset: 0,
    readonly: false,
    region: `array ${array}`,
  };
}

type AtomicExpression = Extract<Expression, { op: 'atomic' }>;

/**
 * The type of the atomic instruction for an operator and a storage of 32 or 64 bits; undefined
 * where there is none.
 */
function atomicType(
  operator: AtomicExpression['operator'],
  storage: StorageType,
): NumberType | undefined {
  const bits = storageBytes[storage] * 8;
  if (bits < 32) return undefined;
  const isFloat = storage === 'f32' || storage === 'f64';
  switch (operator) {
    case 'add':
      return isFloat ? storage : bits === 32 ? 'u32' : 'u64';
    case 'min':
    case 'max':
      return isFloat ? undefined : numberOf[storage as 'i32'];
    case 'and':
    case 'or':
    case 'xor':
      return isFloat ? undefined : bits === 32 ? 'b32' : 'b64';
    default:
      return bits === 32 ? 'b32' : 'b64';
  }
}

const hasBits = (operator: AtomicExpression['operator']): boolean =>
  operator === 'and' || operator === 'or' || operator === 'xor';

/** The lowest compute capability with atomics of 16 bits. */
function leastCapability(operator: AtomicExpression['operator'], storage: StorageType): number {
  return storage === 'bf16' && operator === 'add' ? 80 : 70;
}

export function buildAtomic(b: Builder, node: AtomicExpression): Value {
  const { place, operator } = node;
  const { storage } = place;
  const space = place.memory.kind === 'array' ? b.tree.arrays[place.memory.array]!.space : 'global';
  if (space === 'local')
    throw b.error(
      'There are no atomics on local arrays, which one thread alone accesses',
      'Read and write the element as any other.',
      node.span,
    );
  if (storageBytes[storage] === 2 && (storage === 'i16' || storage === 'u16' || !hasBits(operator)))
    return buildHalfAtomic(b, node);
  const type = atomicType(operator, storage);
  if (type === undefined) {
    throw b.error(
      `There is no atomic '${operator}' on elements of ${storage}`,
      operator === 'min' || operator === 'max'
        ? 'Use elements of i32, u32, i64 or u64.'
        : 'Use elements of i32, u32, i64, u64, f32 or f64.',
      node.span,
    );
  }
  const address = addressOf(b, place);
  const held = registerOf[node.type];
  const bits = (value: Value): Value =>
    (type === 'b32' && held === 'f32') || (type === 'b64' && held === 'f64')
      ? b.make('bits', type, [value])
      : value;
  const operand = bits(b.value(node.operand));
  const args = node.compare === undefined ? [operand] : [bits(b.value(node.compare)), operand];
  const result = b.effect(
    'atomic',
    operand.type,
    [address.base, ...args],
    `${operator} ${node.scope}`,
    type,
  );
  result.memory = { ...access(address, storage, undefined), readonly: false };
  return result.type === held ? result : b.make('bits', held, [result]);
}

/** Builds an atomic of 16 bits; the operand and the result are bits. */
function buildHalfAtomic(b: Builder, node: AtomicExpression): Value {
  const { place, operator } = node;
  const { storage } = place;
  const least = leastCapability(operator, storage);
  if (b.options.capability < least)
    throw b.error(
      `There is no atomic '${operator}' on elements of ${storage} below compute capability ` +
        `${least / 10}.0`,
      'Use elements of 32 bits.',
      node.span,
    );
  const address = addressOf(b, place);
  const bits = (value: Value): Value => {
    const stored = toMemory(b, storage, value);
    return stored.type === 'b16' ? stored : b.make('bits', 'b16', [stored]);
  };
  const operand = bits(b.value(node.operand));
  const args = node.compare === undefined ? [operand] : [bits(b.value(node.compare)), operand];
  const result = b.effect(
    'atomic',
    'b16',
    [address.base, ...args],
    `${operator} ${node.scope} ${storage}`,
  );
  result.memory = { ...access(address, storage, undefined), readonly: false };
  if (storage === 'f16') return fromMemory(b, storage, result);
  const word = b.make('bits', 'b32', [result]);
  return storage === 'bf16' ? fromMemory(b, storage, word) : throughMemory(b, storage, word);
}
