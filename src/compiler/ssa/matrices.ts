/**
 * Matrix operations of a warp, and asynchronous copies. A fragment's elements are registers like
 * those of other local arrays, but two of 16 bits share one, as the instructions take them.
 */
import type { Fragment, Place, Statement, StorageType } from '../tree.js';
import type { Builder } from './builder.js';
import { storageBytes } from '../storage-types.js';
import type { RegisterType, Value } from './function.js';
import { addressOf, checkCopied } from './places.js';

type Of<K extends Statement['kind']> = Extract<Statement, { kind: K }>;

/**
 * The first capability with these instructions (PTX ISA: mma.m16n8k16, cp.async and bf16 need
 * sm_80).
 */
const CAPABILITY = 80;

function checkCapability(b: Builder, name: string): void {
  if (b.options.capability >= CAPABILITY) return;
  const [major, minor] = [Math.floor(b.options.capability / 10), b.options.capability % 10];
  throw b.error(
    `${name} needs a device of compute capability 8.0, and this code is for ${major}.${minor}`,
    'Use another kernel there, without tensor cores and asynchronous copies.',
  );
}

/** The number of words that hold so many elements. */
export const wordsOf = (length: number, storage: StorageType): number =>
  (length * storageBytes[storage]) / 4;
export const fragmentRegister = (storage: StorageType): RegisterType =>
  storage === 'f32' ? 'f32' : 'b32';

/** The first of the fragment's variables, where its array lies in registers. */
function firstVariable(b: Builder, { array, index, length }: Fragment): number | undefined {
  const first = b.registers.get(array);
  if (first === undefined) return undefined;
  const at = Number(b.value(index).constant);
  const declared = b.tree.arrays[array]!;
  if (!(at >= 0 && at + length <= declared.length)) {
    // The function is built again, with the array in memory.
    b.indexed.add(array);
    return first;
  }
  return first + wordsOf(at, declared.storage);
}

const placeOf = (b: Builder, { array, index }: Fragment): Place => ({
  memory: { kind: 'array', array },
  index,
  storage: b.tree.arrays[array]!.storage,
  span: index.span,
});

/** The fragment's registers, in the order of the instruction's operands. */
export function readFragment(b: Builder, fragment: Fragment): Value[] {
  const { storage } = b.tree.arrays[fragment.array]!;
  const words = wordsOf(fragment.length, storage);
  const first = firstVariable(b, fragment);
  if (first !== undefined) return Array.from({ length: words }, (_, at) => b.read(first + at));
  const { base, offset, space, region } = addressOf(b, placeOf(b, fragment));
  return Array.from({ length: words }, (_, at) => {
    const load = b.effect('load', fragmentRegister(storage), [base]);
    load.memory = {
      space,
      region,
      form: storage === 'f32' ? 'f32' : 'b32',
      offset: offset + 4 * at,
      readonly: false,
    };
    return load;
  });
}

export function writeFragment(b: Builder, fragment: Fragment, values: readonly Value[]): void {
  const { storage } = b.tree.arrays[fragment.array]!;
  const first = firstVariable(b, fragment);
  if (first !== undefined) {
    values.forEach((value, at) => {
      b.write(first + at, value);
    });
    return;
  }
  const { base, offset, space, region } = addressOf(b, placeOf(b, fragment));
  values.forEach((value, at) => {
    b.effect('store', 'none', [base, value]).memory = {
      space,
      region,
      form: storage === 'f32' ? 'f32' : 'b32',
      offset: offset + 4 * at,
      readonly: false,
    };
  });
}

/** The registers of an operation's results. */
function partsOf(b: Builder, whole: Value, type: RegisterType, count: number): Value[] {
  const parts = Array.from({ length: count }, (_, at) =>
    b.effect('part', type, [whole], String(at)),
  );
  whole.parts = parts;
  return parts;
}

export function buildMatrixProduct(
  b: Builder,
  { shape, type, sum, a, b: right }: Of<'matrixProduct'>,
): void {
  checkCapability(b, type === 'tf32' ? 'gpu.warp.mmaTf32' : 'gpu.warp.mma');
  const bits = (value: Value): Value =>
    value.type === 'f32' ? b.make('bits', 'b32', [value]) : value;
  const factors = [...readFragment(b, a), ...readFragment(b, right)].map(bits);
  const product = b.effect(
    'matrixProduct',
    'none',
    [...factors, ...readFragment(b, sum)],
    `${shape} ${type}`,
  );
  writeFragment(b, sum, partsOf(b, product, 'f32', sum.length));
}

export function buildLoadMatrices(b: Builder, { to, from, transposed }: Of<'loadMatrices'>): void {
  checkCapability(b, 'gpu.warp.loadMatrices');
  const { base, offset, region } = addressOf(b, from);
  const count = to.length / 2;
  const load = b.effect('loadMatrices', 'none', [base], `x${count}${transposed ? '.trans' : ''}`);
  load.memory = { space: 'shared', region, form: 'b32', offset, readonly: false };
  writeFragment(b, to, partsOf(b, load, 'b32', count));
}

export function buildCopyAsync(b: Builder, { to, from, count, given }: Of<'copyAsync'>): void {
  checkCapability(b, 'gpu.async.copy');
  const element = storageBytes[to.storage];
  const target = addressOf(b, to);
  const elements =
    given === undefined ? b.constant('b32', count) : clamped(b, b.value(given), count);
  const source = addressOf(b, from, false);
  if (b.options.checks) checkCopied(b, from, elements);
  const bytes = b.make('mul', 'b32', [elements, b.constant('b32', element)]);
  const copy = b.effect(
    'copyAsync',
    'none',
    [target.base, source.base, bytes],
    `${count * element} ${source.offset}`,
  );
  copy.memory = {
    space: 'shared',
    region: target.region,
    form: 'b32',
    offset: target.offset,
    readonly: false,
  };
}

function clamped(b: Builder, given: Value, count: number): Value {
  return b.make(
    'min',
    'b32',
    [b.make('max', 'b32', [given, b.constant('b32', 0)], '', 's32'), b.constant('b32', count)],
    '',
    's32',
  );
}
