/** One kernel's text, run as JavaScript and on the device with the same arguments, and where the two differ. */
import { bf16, bool, f16, f32, f64, f8e4m3, f8e5m2, i16, i32, i64, i8, inout, input, kernel, u16, u32, u64, u8 } from 'async-cuda';
import type { DType, Device, KernelFunction, KernelParams, Tensor } from 'async-cuda';

import type { StorageType } from '../../../src/kernel/tree.js';
import { Random, randomValue } from '../../kernel/fuzz/random-kernel.test-support.js';
import { BLOCKS, COLUMNS, LENGTH, READ_AS, ROWS, SUMS, THREADS } from './random-source.js';
import type { RandomSource } from './random-source.js';

const DTYPE: Readonly<Record<StorageType, DType>> = { bool, i8, u8, i16, u16, i32, u32, i64, u64, f16, bf16, f8e4m3, f8e5m2, f32, f64 };

/** Narrow floats: their values. */
const ARRAY = {
  bool: Uint8Array, i8: Int8Array, u8: Uint8Array, i16: Int16Array, u16: Uint16Array, i32: Int32Array, u32: Uint32Array, i64: BigInt64Array, u64: BigUint64Array,
  f16: Float32Array, bf16: Float32Array, f8e4m3: Float32Array, f8e5m2: Float32Array, f32: Float32Array, f64: Float64Array,
} as const satisfies Record<StorageType, unknown>;
type Elements = InstanceType<(typeof ARRAY)[StorageType]>;

/** The function of a text, as if it had been written in a file. */
// eslint-disable-next-line @typescript-eslint/no-implied-eval -- the text is this test's own
export const functionOf = (text: string): ((...args: never[]) => number) => new Function(`return ${text}`)() as () => number;

/** The kernel of a text. @throws SyntaxError where the text is no JavaScript */
export function kernelOf({ text, functions, constants, inputs, outputs, scalars, sums }: RandomSource): KernelFunction {
  const named = (prefix: string, storages: readonly StorageType[], declare: (dtype: DType) => unknown): [string, unknown][] => storages.map((storage) => [`${prefix}_${storage}`, declare(DTYPE[storage])]);
  const signature = Object.fromEntries([
    ['m', input(f32, 2)], ...named('x', inputs, (dtype) => input(dtype)), ...named('y', outputs, (dtype) => inout(dtype)), ...named('s', scalars, (dtype) => dtype), ...named('sums', sums, (dtype) => inout(dtype)),
  ]) as KernelParams;
  const uses = { ...constants, ...Object.fromEntries(Object.entries(functions).map(([name, each]) => [name, functionOf(each)])) };
  return kernel('fuzzed', signature, functionOf(text) as never, { uses: uses as never, block: THREADS }) as unknown as KernelFunction;
}

/** An element. Of narrow floats a value that they may have to round. */
function element(random: Random, storage: StorageType): number | bigint {
  const value = randomValue(random, READ_AS[storage]);
  return typeof value === 'boolean' ? Number(value) : value;
}

function scalar(random: Random, storage: StorageType): number | bigint | boolean {
  const value = randomValue(random, READ_AS[storage]);
  if (typeof value !== 'number' || READ_AS[storage] !== 'i32' || storage === 'i32') return value;
  return new ARRAY[storage as 'i8']([value])[0]!;
}

const shown = (value: number | bigint): string => (Object.is(value, -0) ? '-0' : typeof value === 'bigint' ? `${value}n` : `${value}`);

/**
 * The first element that differs; undefined where none does. Any NaN is as good as another; everything else is equal bit for bit.
 * `seed` gives the arguments. @throws what compiling and running reject with
 */
export async function differenceOf(source: RandomSource, seed: number, device: Device): Promise<string | undefined> {
  const fuzzed = kernelOf(source);
  const random = new Random(seed ^ 0x5eed);
  const arrays = new Map<string, { storage: StorageType; data: Elements }>();
  const fill = (name: string, storage: StorageType, length: number, of: () => number | bigint): void => {
    const data = new ARRAY[storage](length);
    for (let at = 0; at < length; at++) data[at] = of();
    arrays.set(name, { storage, data });
  };
  for (const storage of source.inputs) fill(`x_${storage}`, storage, LENGTH, () => element(random, storage));
  for (const storage of source.outputs) fill(`y_${storage}`, storage, LENGTH, () => element(random, storage));
  for (const storage of source.sums) fill(`sums_${storage}`, storage, SUMS, () => (storage.endsWith('64') ? 0n : 0));
  const columns = Float32Array.from({ length: ROWS * COLUMNS }, () => element(random, 'f32') as number);
  const scalars = Object.fromEntries(source.scalars.map((storage) => [`s_${storage}`, scalar(random, storage)]));

  const simulated = Object.fromEntries([...arrays].map(([name, { data }]) => [name, data.slice()]));
  await fuzzed.simulate({ ...simulated, ...scalars, m: { data: columns, shape: [ROWS, COLUMNS], strides: [1, ROWS] } } as never, { grid: BLOCKS });

  const tensors: Record<string, Tensor> = {};
  const made: Tensor[] = [];
  try {
    for (const [name, { storage, data }] of arrays) made.push(tensors[name] = (await device.tensor(DTYPE[storage] as typeof f32, data as Float32Array)) as unknown as Tensor);
    const whole = await device.tensor(f32, columns, [COLUMNS, ROWS]);
    made.push(whole as unknown as Tensor);
    await fuzzed({ ...tensors, ...scalars, m: whole.transpose() } as never, { grid: BLOCKS });
    for (const [name, { storage }] of arrays) {
      if (name.startsWith('x_')) continue;
      const there = (await tensors[name]!.read()) as ArrayLike<number | bigint>;
      const here = simulated[name]!;
      for (let at = 0; at < here.length; at++) {
        if (!Object.is(here[at]!, there[at]!)) return `${name}[${at}] (${storage}) is ${shown(here[at]!)} in simulation, ${shown(there[at]!)} on the device`;
      }
    }
    return undefined;
  } finally {
    for (const tensor of made) tensor.close();
  }
}
