/**
 * Runs one kernel's text as JavaScript and on the device with the same arguments, and compares the
 * results.
 */
import { DTYPES, HOST_ARRAYS } from '../../../src/ground/dtype.js';
import type { HostArray } from '../../../src/ground/dtype.js';
import {
  bool,
  f16,
  f32,
  f64,
  i16,
  i32,
  i64,
  inout,
  input,
  kernel,
  struct,
  u32,
  u8,
} from 'async-cuda';
import type { Device, KernelFunction, Tensor } from 'async-cuda';
import type { KernelDType } from 'async-cuda/core';
import type { KernelParams } from 'async-cuda/kernels';

import type { StorageType } from '../../../src/compiler/tree.js';
import { Random, randomValue } from '../../compiler/fuzz/random-kernel.test-support.js';
import {
  BLOCKS,
  COLUMNS,
  FIELDS,
  LENGTH,
  READ_AS,
  ROWS,
  SHARED_BYTES,
  SUMS,
  THREADS,
} from './random-expressions.js';
import type { RandomSource } from './random-source.js';

const DTYPE: Readonly<Record<StorageType, KernelDType>> = DTYPES;

/** The values of narrow floats. */
const ARRAY = HOST_ARRAYS;
const Row = struct({ a: f32, b: i64, c: bool, d: i16, e: f64, g: u8, h: f16, k: u32, l: i32 });
type Row = ReturnType<typeof Row.unpack>[number];

type Elements = HostArray<StorageType>;

/** The function of a text, as if it had been written in a file. */
export const functionOf = (text: string): ((...args: never[]) => number) =>
  // eslint-disable-next-line @typescript-eslint/no-implied-eval -- the text is generated here
  new Function(`return ${text}`)() as () => number;

/** The kernel of a text. @throws SyntaxError where the text is no JavaScript */
export function kernelOf({
  text,
  functions,
  constants,
  inputs,
  outputs,
  scalars,
  sums,
  structures,
  dynamic,
}: RandomSource): KernelFunction {
  const named = (
    prefix: string,
    storages: readonly StorageType[],
    declare: (dtype: KernelDType) => unknown,
  ): [string, unknown][] =>
    storages.map((storage) => [`${prefix}_${storage}`, declare(DTYPE[storage])]);
  const signature = Object.fromEntries([
    ['m', input(f32, 2)],
    ...named('x', inputs, (dtype) => input(dtype)),
    ...named('y', outputs, (dtype) => inout(dtype)),
    ...named('s', scalars, (dtype) => dtype),
    ...named('sums', sums, (dtype) => inout(dtype)),
    ...(structures
      ? [
          ['rows', inout(Row)],
          ['table', input(Row)],
          ['one', Row],
        ]
      : []),
  ]) as KernelParams;
  const uses = {
    ...constants,
    ...Object.fromEntries(
      Object.entries(functions).map(([name, each]) => [name, functionOf(each)]),
    ),
  };
  return kernel('fuzzed', signature, functionOf(text) as never, {
    uses: uses as never,
    block: THREADS,
    ...(dynamic ? { sharedBytes: SHARED_BYTES } : {}),
  }) as unknown as KernelFunction;
}

/** A random element; for narrow floats a value that may have to be rounded. */
/** The value after it is stored as an element of the dtype. */
const ofOne = (storage: StorageType, value: number): number => {
  const [each] = new (ARRAY[storage] as Int8ArrayConstructor)([value]);
  return each!;
};

function element(random: Random, storage: StorageType): number | bigint {
  const value = randomValue(random, READ_AS[storage]);
  return typeof value === 'boolean' ? Number(value) : value;
}

function scalar(random: Random, storage: StorageType): number | bigint | boolean {
  const value = randomValue(random, READ_AS[storage]);
  if (typeof value !== 'number' || READ_AS[storage] !== 'i32' || storage === 'i32') return value;
  return ofOne(storage, value);
}

/** A random structure. Narrow integers are in range, as `pack` requires. */
function row(random: Random): Row {
  return Object.fromEntries(
    Object.entries(FIELDS).map(([name, storage]) => {
      const value = storage === 'bool' ? random.chance(50) : scalar(random, storage);
      return [
        name,
        storage === 'i16' || storage === 'u8' ? ofOne(storage, value as number) : value,
      ];
    }),
  ) as unknown as Row;
}

const rowsOf = (random: Random): Uint8Array =>
  Row.pack(Array.from({ length: LENGTH }, () => row(random)));

const shown = (value: number | bigint): string =>
  Object.is(value, -0) ? '-0' : typeof value === 'bigint' ? `${value}n` : `${value}`;

/**
 * The first element that differs; undefined where none does. Any two NaNs count as equal;
 * everything else is compared bit for bit. `seed` determines the arguments. @throws what compiling
 * and running reject with
 */
export async function differenceOf(
  source: RandomSource,
  seed: number,
  device: Device,
): Promise<string | undefined> {
  const fuzzed = kernelOf(source);
  const random = new Random(seed ^ 0x5eed);
  const arrays = new Map<string, { storage: StorageType; data: Elements }>();
  const fill = (
    name: string,
    storage: StorageType,
    length: number,
    of: () => number | bigint,
  ): void => {
    const data = new (ARRAY[storage] as new (length: number) => Elements)(length);
    for (let at = 0; at < length; at++) data[at] = of();
    arrays.set(name, { storage, data });
  };
  for (const storage of source.inputs)
    fill(`x_${storage}`, storage, LENGTH, () => element(random, storage));
  for (const storage of source.outputs)
    fill(`y_${storage}`, storage, LENGTH, () => element(random, storage));
  for (const storage of source.sums)
    fill(`sums_${storage}`, storage, SUMS, () => (storage.endsWith('64') ? 0n : 0));
  const columns = Float32Array.from(
    { length: ROWS * COLUMNS },
    () => element(random, 'f32') as number,
  );
  const scalars = Object.fromEntries(
    source.scalars.map((storage) => [`s_${storage}`, scalar(random, storage)]),
  );

  const structures = source.structures ? { rows: rowsOf(random), table: rowsOf(random) } : {};
  const one = source.structures ? { one: row(random) } : {};
  const simulated = Object.fromEntries([...arrays].map(([name, { data }]) => [name, data.slice()]));
  const simulatedRows = structures.rows?.slice();
  await fuzzed.simulate(
    {
      ...simulated,
      ...scalars,
      ...structures,
      ...(simulatedRows === undefined ? {} : { rows: simulatedRows }),
      ...one,
      m: { data: columns, shape: [ROWS, COLUMNS], strides: [1, ROWS] },
    } as never,
    { grid: BLOCKS },
  );

  const tensors: Record<string, Tensor> = {};
  const made: Tensor[] = [];
  try {
    for (const [name, { storage, data }] of arrays)
      made.push(
        (tensors[name] = (await device.tensor(
          DTYPE[storage] as typeof f32,
          data as Float32Array,
        )) as unknown as Tensor),
      );
    for (const [name, bytes] of Object.entries(structures))
      made.push((tensors[name] = (await device.tensor(u8, bytes)) as unknown as Tensor));
    const whole = await device.tensor(f32, columns, [COLUMNS, ROWS]);
    made.push(whole as unknown as Tensor);
    await fuzzed({ ...tensors, ...scalars, ...one, m: whole.transpose() } as never, {
      grid: BLOCKS,
    });
    for (const [name, { storage }] of arrays) {
      if (name.startsWith('x_')) continue;
      const there = (await tensors[name]!.read()) as ArrayLike<number | bigint>;
      const here = simulated[name]!;
      for (let at = 0; at < here.length; at++) {
        if (!Object.is(here[at]!, there[at]!))
          return (
            `${name}[${at}] (${storage}) is ${shown(here[at]!)} in simulation, ` +
            `${shown(there[at]!)} on the device`
          );
      }
    }
    if (simulatedRows === undefined) return undefined;
    const [here, there] = [
      Row.unpack(simulatedRows),
      Row.unpack((await tensors['rows']!.read()) as unknown as Uint8Array),
    ];
    for (const [at, one] of here.entries()) {
      for (const field of Object.keys(FIELDS) as (keyof Row)[]) {
        if (!Object.is(one[field], there[at]![field]))
          return (
            `rows[${at}].${field} is ${shown(Number(one[field]))} in simulation, ` +
            `${shown(Number(there[at]![field]))} on the device`
          );
      }
    }
    return undefined;
  } finally {
    for (const tensor of made) tensor.close();
  }
}
