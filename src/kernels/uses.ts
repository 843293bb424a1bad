/**
 * Constants that are compiled in, and device functions: the body finds them by name in its second
 * parameter.
 */
import { types } from 'node:util';

import { invalid, isList } from '../ground/arguments.js';
import { isDetached } from '../core/host-codec.js';
import type { Gpu } from '../compiler/gpu.js';
import type { Used } from '../compiler/signature.js';
import { DeviceFunction } from './device-function.js';
import { checkName, unknownName } from '../ground/names.js';
import { textOfFunction } from './function-text.js';

/** A constant, a list of them, or a function that runs on the device. */
export type Usable =
  | number
  | bigint
  | boolean
  | ArrayLike<number | bigint | boolean>
  | DeviceFunction
  | ((...args: never[]) => unknown);

/** Constants and functions by name. */
export type Uses = Readonly<Record<string, Usable>>;

export type UsedByName = Readonly<Record<string, Used>>;

/**
 * The names of gpu's own members; also bool, which gpu's type leaves out. The type checker keeps
 * the list the same as compiler/gpu.ts. The compiler has the table of their meanings, and need not
 * be loaded for this list.
 */
const GPU_NAMES: Readonly<Record<keyof Gpu | 'bool', true>> = {
  threadIdx: true,
  blockIdx: true,
  blockDim: true,
  gridDim: true,
  globalId: true,
  globalSize: true,
  lane: true,
  warpIdx: true,
  warpSize: true,
  shared: true,
  dynamicShared: true,
  local: true,
  warp: true,
  group: true,
  tensor: true,
  barrier: true,
  cluster: true,
  block: true,
  grid: true,
  fence: true,
  async: true,
  fast: true,
  bool: true,
  i8: true,
  u8: true,
  i16: true,
  u16: true,
  i32: true,
  u32: true,
  i64: true,
  u64: true,
  f16: true,
  bf16: true,
  f32: true,
  f64: true,
  bits: true,
  fromBits: true,
  fma: true,
  rsqrt: true,
  rint: true,
  erf: true,
  mulhi: true,
  popcount: true,
  clz: true,
  reverseBits: true,
  copysign: true,
  clamp: true,
  atomicAdd: true,
  atomicMin: true,
  atomicMax: true,
  atomicAnd: true,
  atomicOr: true,
  atomicXor: true,
  atomicExchange: true,
  atomicCompareExchange: true,
  volatileLoad: true,
  volatileStore: true,
  streamingLoad: true,
  streamingStore: true,
  unroll: true,
  clock: true,
  globalTimer: true,
  trap: true,
};

/**
 * Copies constants and functions, so that later changes of theirs do not matter.
 *
 * @throws CudaArgumentError for values that cannot be compiled in
 */
export function usedOf(argument: string, uses: unknown): UsedByName {
  if (uses === undefined) return {};
  if (typeof uses !== 'object' || uses === null || Array.isArray(uses))
    throw invalid(
      argument,
      'an object of constants and functions by name',
      uses,
      'Write { uses: { TILE: 16, gelu } }.',
    );
  return Object.freeze(
    Object.fromEntries(
      Object.entries(uses).map(([name, value]: [string, unknown]) => {
        checkName(argument, name, 'a constant or a function');
        if (Object.hasOwn(GPU_NAMES, name)) {
          const other = `own${name[0]!.toUpperCase()}${name.slice(1)}`;
          throw invalid(
            `${argument}.${name}`,
            `another name, as gpu.${name} is there already`,
            value,
            `Name it ${other}, say, and write gpu.${other}.`,
          );
        }
        return [name, usedValue(`${argument}.${name}`, value)];
      }),
    ),
  );
}

/**
 * Gives the constants and functions of a kernel with other values for some of them.
 *
 * @throws CudaArgumentError for names that it does not use
 */
export function otherUses(kernel: string, uses: UsedByName, changes: unknown): UsedByName {
  if (changes === undefined) return uses;
  const names = Object.keys(uses);
  const given = Object.fromEntries(
    Object.entries(changes as object).filter(([, value]) => (value as unknown) !== undefined),
  );
  for (const name of Object.keys(given))
    if (!names.includes(name))
      throw unknownName(`changes.uses.${name}`, `kernel '${kernel}' does not use`, name, names);
  return { ...uses, ...usedOf('changes.uses', given) };
}

function usedValue(argument: string, value: unknown): Used {
  if (isConstant(value)) return value;
  if (typeof value === 'function') return { text: textOfFunction(argument, value), uses: {} };
  const isArray = ArrayBuffer.isView(value) && !types.isDataView(value);
  if (isArray && value.byteLength === 0 && isDetached(value.buffer))
    throw invalid(
      argument,
      'an array that has its bytes',
      value,
      'It was detached or transferred: pass it before that, or pass a copy.',
    );
  if (isArray || isList(value)) {
    const list = value as unknown as readonly unknown[];
    if (list.length > MOST_CONSTANTS)
      throw invalid(
        argument,
        `a list of at most ${MOST_CONSTANTS} constants`,
        `one of ${list.length}`,
        'Pass it as a tensor.',
      );
    if (list.length === 0) throw invalid(argument, 'a list of at least one constant', value);
    // A copy has undefined where the list has a hole, which find() and every() would skip.
    const copy: unknown[] = [...list];
    const wrong = copy.findIndex((each) => !isConstant(each));
    if (wrong !== -1)
      throw invalid(
        `${argument}[${wrong}]`,
        'a number, a bigint or a boolean',
        copy[wrong],
        wrong in list ? '' : 'The list has a hole there: write a constant for each element.',
      );
    return Object.freeze(copy as number[]);
  }
  if (isDeviceFunction(value)) return value.source;
  throw invalid(
    argument,
    'a number, a bigint, a boolean, a list of them, or a function',
    value,
    'Anything else is passed as an argument of the kernel.',
  );
}

/** `instanceof` throws for a Proxy that was revoked. */
function isDeviceFunction(value: unknown): value is DeviceFunction {
  try {
    return value instanceof DeviceFunction;
  } catch {
    return false;
  }
}

/** The limit of a list that is compiled in. */
const MOST_CONSTANTS = 2 ** 20;

function isConstant(value: unknown): value is number | bigint | boolean {
  return typeof value === 'number' || typeof value === 'bigint' || typeof value === 'boolean';
}

/** A key that differs for what compiles to different code. */
export function keyOfUses(uses: UsedByName): unknown {
  return Object.entries(uses)
    .map(([name, value]) => [name, keyOfUsed(value)])
    .sort(([a], [b]) => ((a as string) < (b as string) ? -1 : 1));
}

function keyOfUsed(value: Used): unknown {
  if (typeof value === 'bigint') return [`${value}n`];
  // JSON has neither -0 nor NaN nor infinities.
  if (typeof value === 'number') return [Object.is(value, -0) ? '-0' : String(value)];
  if (typeof value === 'boolean') return value;
  if (isConstants(value)) return { list: value.map(keyOfUsed) };
  return { text: value.text, uses: keyOfUses(value.uses) };
}

function isConstants(value: Used): value is readonly (number | bigint | boolean)[] {
  return Array.isArray(value);
}

/** The text that `util.inspect` shows. */
export function describeUses(uses: UsedByName): string {
  return Object.entries(uses)
    .map(([name, value]) =>
      typeof value === 'object' && !isConstants(value)
        ? name
        : `${name}: ${isConstants(value) ? `[${value.length}]` : String(value)}`,
    )
    .join(', ');
}
