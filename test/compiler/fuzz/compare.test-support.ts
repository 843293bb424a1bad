/**
 * Test only: one kernel as JavaScript and as PTX on the CPU device's compiler, and where the two
 * differ.
 */
import { storageBytes } from '../../../src/compiler/storage-types.js';
import { BIT_ARRAYS, DTYPE_NAMES, FLOAT_LIMITS, HOST_ARRAYS } from '../../../src/ground/dtype.js';
import { STATUS } from '../../../src/ptx/index.js';
import { Grid } from '../../../src/ptx/run-grid.test-support.js';
import type { Argument } from '../../../src/ptx/run-grid.test-support.js';
import { emitKernel } from '../../../src/compiler/emit/emit.js';
import type { StorageType } from '../../../src/compiler/tree.js';
import type { HostArguments } from '../../../src/compiler/simulate/arguments.js';
import { hostBits, isNarrow } from '../../../src/ground/narrow-floats.js';
import type { NarrowName } from '../../../src/ground/narrow-floats.js';
import { simulateKernel } from '../../../src/compiler/simulate/simulate.js';
import {
  BLOCKS,
  LENGTH,
  READ_AS,
  Random,
  THREADS,
  randomValue,
} from './random-kernel.test-support.js';
import type { RandomKernel } from './random-kernel.test-support.js';

type Words =
  | Uint8Array
  | Int8Array
  | Int16Array
  | Uint16Array
  | Int32Array
  | Uint32Array
  | BigInt64Array
  | BigUint64Array
  | Float32Array
  | Float64Array;

/** Narrow floats: their words. */
const ARRAYS = Object.fromEntries(
  DTYPE_NAMES.map((name) => [name, isNarrow(name) ? BIT_ARRAYS[name] : HOST_ARRAYS[name]]),
) as unknown as Readonly<Record<StorageType, new (length: number) => Words>>;

function randomElement(random: Random, storage: StorageType): number | bigint {
  const value = randomValue(random, READ_AS[storage]);
  if (isNarrow(storage)) return hostBits(storage, value as number);
  return typeof value === 'boolean' ? Number(value) : value;
}

export interface Difference {
  readonly what: string;
}

/** Any two NaNs count as equal; everything else is compared bit for bit. */
const same = (storage: StorageType, a: number | bigint, b: number | bigint): boolean =>
  Object.is(a, b) ||
  (isNarrow(storage) && isNaNBits(storage, Number(a)) && isNaNBits(storage, Number(b)));

function isNaNBits(storage: NarrowName & StorageType, bits: number): boolean {
  const magnitudes = 2 ** (storageBytes[storage] * 8 - 1) - 1;
  return (bits & magnitudes) > Number(FLOAT_LIMITS[storage]!.topBits);
}

function bytesOf(words: Words): Uint8Array {
  return new Uint8Array(words.buffer, words.byteOffset, words.byteLength);
}

/**
 * The first difference, with the emitter's optimisations and without; undefined where there is
 * none. `seed` gives the data.
 */
export function difference(
  { tree, inputs, outputs, scalars }: RandomKernel,
  seed: number,
): Difference | undefined {
  const random = new Random(seed ^ 0x5eed);
  const given = new Map<string, Words>();
  for (const { name, storage } of [...inputs, ...outputs]) {
    const words = new ARRAYS[storage](LENGTH);
    for (let at = 0; at < LENGTH; at++) words[at] = randomElement(random, storage);
    given.set(name, words);
  }
  const values = new Map<string, { storage: StorageType; value: number | bigint | boolean }>();
  for (const { name, storage } of scalars) {
    // The value in the storage type; the argument is what a read of it gives.
    const value = randomValue(random, READ_AS[storage]);
    values.set(name, {
      storage,
      value:
        READ_AS[storage] === 'i32' && storage !== 'i32'
          ? Number(BigInt.asUintN(7, BigInt(value as number)))
          : value,
    });
  }

  const simulated = new Map([...given].map(([name, words]) => [name, words.slice()]));
  const args: HostArguments = {
    ...Object.fromEntries(simulated),
    ...Object.fromEntries([...values].map(([name, { value }]) => [name, value])),
  };
  simulateKernel(tree, { grid: BLOCKS, block: THREADS, args });

  for (const optimise of [true, false]) {
    const emitted = emitKernel(tree, { capability: '9.0', optimise });
    const grid = new Grid(emitted.ptx, { canonicalNaN: true });
    const views = new Map<string, Words>();
    const passed = emitted.abi.map((param): Argument => {
      const { name } = tree.params[param.param]!;
      if (param.kind === 'pointer') {
        const { address, view } = grid.put(bytesOf(given.get(name)!));
        views.set(
          name,
          new (
            ARRAYS[outputs.find((each) => each.name === name)?.storage ?? 'u8'] as unknown as new (
              buffer: ArrayBufferLike,
              offset: number,
              length: number,
            ) => Words
          )(view.buffer, view.byteOffset, outputs.some((each) => each.name === name) ? LENGTH : 0),
        );
        return { i64: address };
      }
      if (param.kind === 'length')
        return tree.indexType === 'i64' ? { i64: LENGTH } : { i32: LENGTH };
      const { storage, value } = values.get(name)!;
      const words = new ARRAYS[storage](1);
      words[0] = isNarrow(storage)
        ? hostBits(storage, value as number)
        : typeof value === 'boolean'
          ? Number(value)
          : value;
      return { bytes: bytesOf(words) };
    });
    const outcome = grid.run(emitted.entry, passed, {
      grid: [BLOCKS],
      block: [THREADS],
      fuel: 10_000,
      maxCalls: 500,
    });
    const device = optimise ? 'the CPU device' : 'the CPU device without optimisations';
    if (outcome.fault !== undefined)
      return {
        what:
          `${device} stops with fault ${outcome.fault.kind} in thread ${outcome.fault.thread} ` +
          `of block ${outcome.fault.block}`,
      };
    if (outcome.status !== STATUS.done) return { what: `${device} does not end` };
    for (const { name, storage } of outputs) {
      const [here, there] = [simulated.get(name)!, views.get(name)];
      if (there === undefined) continue;
      for (let at = 0; at < LENGTH; at++) {
        if (!same(storage, here[at]!, there[at]!))
          return {
            what:
              `${name}[${at}] is ${shown(here[at]!)} in simulation, ${shown(there[at]!)} on ` +
              `${device}`,
          };
      }
    }
  }
  return undefined;
}

const shown = (value: number | bigint): string =>
  Object.is(value, -0) ? '-0' : typeof value === 'bigint' ? `${value}n` : `${value}`;
