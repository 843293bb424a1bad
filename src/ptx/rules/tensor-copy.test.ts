// Tensor copies against a model that goes from element to element, at random: every rank, type,
// swizzle and interleave, boxes that leave the tensor on every side, steps, im2col, stores and
// reductions; and what is refused.

import { describe, expect, it } from 'vitest';
import * as fc from '../../../test/fast-check.js';
import { FAULT, STATUS } from '../index.js';
import { Grid, kernelText } from '../run-grid.test-support.js';
import type { Argument, Outcome } from '../run-grid.test-support.js';
import { encodeTensorMap, tensorTypeBytes } from '../tensor-map.js';
import type { TensorType } from '../tensor-map.js';
import {
  REGION,
  TENSOR_PARAMS,
  TENSOR_SHARED,
  tensorCase,
  tensorCases,
  tensorKernel,
} from './tensor-cases.test-support.js';
import type { TensorCase } from './tensor-cases.test-support.js';
import { boxElements, load, store } from './tensor-model.test-support.js';

/** Bytes around the tensor that no copy may change. */
const GUARD = 4096;

const grids = new Map<string, Grid>();
/** Kernels are compiled once; memory is taken again by each case. */
function gridOf(text: string): Grid {
  let grid = grids.get(text);
  if (!grid) grids.set(text, (grid = new Grid(text, { pages: 64 })));
  return grid;
}

const noise = (length: number, seed: number): Uint8Array => {
  let x = seed * 2654435761 + 1;
  return Uint8Array.from({ length }, () => {
    x = (Math.imul(x, 1664525) + 1013904223) >>> 0;
    return x >>> 24;
  });
};

interface Run {
  outcome: Outcome;
  /** The tensor with its guards, and shared memory, afterwards. */
  tensor: Uint8Array;
  shared: Uint8Array;
  counted: number;
}

function run(
  each: TensorCase,
  operation: string,
  tensor: Uint8Array,
  shared: Uint8Array,
  bytes: number,
  change: (map: Uint8Array, address: number) => void = () => {},
): Run {
  const grid = gridOf(
    kernelText('k', TENSOR_PARAMS, tensorKernel(each, operation), TENSOR_SHARED),
  );
  const start = grid.allocate(0);
  const memory = grid.put(tensor);
  const input = grid.put(shared);
  const out = grid.put(new Uint8Array(REGION + 16));
  const map = encodeTensorMap({ ...each.map, address: memory.address + GUARD });
  change(map, memory.address + GUARD);
  const args: Argument[] = [{ bytes: map }, { i64: input.address }, { i64: out.address }];
  for (let axis = 0; axis < 5; axis++) args.push({ i32: each.coordinates[axis] ?? 0 });
  for (let axis = 0; axis < 3; axis++)
    args.push({ bytes: Uint8Array.of(each.offsets[axis] ?? 0, 0) });
  args.push({ i32: each.at }, { i32: bytes });
  const outcome = grid.run('k', args, { grid: [1], block: [1], dynamicShared: REGION });
  const result = {
    outcome,
    tensor: memory.view.slice(),
    shared: out.view.slice(0, REGION),
    counted: out.view[REGION]!,
  };
  grid.release(start);
  return result;
}

/** Runs a case, and compares memory with the model's. */
function check(each: TensorCase, operation: string, reduce?: Parameters<typeof store>[5]): void {
  const { map } = each;
  const elements = boxElements(map, each.mode, each.coordinates, each.offsets);
  const tensor = reduce ? numbers(map.type, each.bytes, 3) : noise(each.bytes, 1);
  const shared = reduce ? numbers(map.type, REGION, 5) : noise(REGION, 2);
  if (!reduce) for (let at = 3; at < tensor.length; at += 20) tensor.fill(0, at, at + 1);
  const around = new Uint8Array(tensor.length + 2 * GUARD).fill(0x5a);
  around.set(tensor, GUARD);
  const bytes = elements.length * tensorTypeBytes(map.type);
  const { outcome, ...after } = run(each, operation, around, shared, bytes);
  expect(outcome).toMatchObject({ status: STATUS.done });
  expect(after.counted).toBe(1);
  if (operation === 'load') load(map, elements, tensor, shared, each.at);
  else store(map, elements, tensor, shared, each.at, reduce);
  around.set(tensor, GUARD);
  expect(differences(after.shared, shared)).toEqual([]);
  expect(differences(after.tensor, around)).toEqual([]);
}

/** The first bytes that differ. */
const differences = (given: Uint8Array, wanted: Uint8Array): string[] => {
  const found: string[] = [];
  for (let at = 0; at < wanted.length && found.length < 4; at++)
    if (given[at] !== wanted[at]) found.push(`${at}: ${given[at]}, not ${wanted[at]}`);
  return found;
};

const FLOAT_BITS: Partial<Record<TensorType, (value: number) => number>> = {
  // Exact for integers of few bits.
  f16: (value) => {
    if (value === 0) return 0;
    const e = Math.floor(Math.log2(value));
    return ((e + 15) << 10) | ((value / 2 ** e - 1) * 1024);
  },
  bf16: (value) => bitsOf(value) >>> 16,
  f32: (value) => bitsOf(value),
  'f32.ftz': (value) => bitsOf(value),
};
const float = new Float32Array(1);
const word = new Uint32Array(float.buffer);
function bitsOf(value: number): number {
  float[0] = value;
  return word[0]!;
}

/** Elements whose sums are exact: small integers for floats, anything for integers. */
function numbers(type: TensorType, length: number, seed: number): Uint8Array {
  const bytes = noise(length, seed);
  const encode = FLOAT_BITS[type];
  if (!encode) return bytes;
  const size = tensorTypeBytes(type);
  const view = new DataView(bytes.buffer);
  for (let at = 0; at + size <= length; at += size) {
    const value = encode(bytes[at]! & 63);
    if (size === 2) view.setUint16(at, value, true);
    else view.setUint32(at, value, true);
  }
  return bytes;
}

const valueOf = (bytes: Uint8Array): bigint =>
  bytes.reduceRight((value, byte) => (value << 8n) | BigInt(byte), 0n);
const bytesOf = (value: bigint, size: number): Uint8Array =>
  Uint8Array.from({ length: size }, (_, index) => Number((value >> BigInt(8 * index)) & 255n));

/** A reduction of one element. */
function reduction(operation: string, type: TensorType) {
  const size = tensorTypeBytes(type);
  const encode = FLOAT_BITS[type];
  const decode = new Map(
    encode ? Array.from({ length: 128 }, (_, value) => [BigInt(encode(value)), value]) : [],
  );
  const key = (value: bigint): bigint =>
    type.startsWith('s') ? BigInt.asIntN(8 * size, value) : value;
  return (old: Uint8Array, operand: Uint8Array): Uint8Array => {
    const [a, b] = [valueOf(old), valueOf(operand)];
    const results: Readonly<Record<string, () => bigint>> = {
      add: () => (encode ? BigInt(encode(decode.get(a)! + decode.get(b)!)) : a + b),
      min: () => (key(a) < key(b) ? a : b),
      max: () => (key(a) > key(b) ? a : b),
      inc: () => (a >= b ? 0n : a + 1n),
      dec: () => (a === 0n || a > b ? b : a - 1n),
      and: () => a & b,
      or: () => a | b,
      xor: () => a ^ b,
    };
    return bytesOf(results[operation]!(), size);
  };
}

describe('tensor copies are those of the model', () => {
  const modes = [
    ['tiles', {}],
    ['slices of 16 bytes', { interleave: 1 }],
    ['slices of 32 bytes', { interleave: 2 }],
    ['im2col', { mode: 'im2col' }],
    ['im2col of slices', { mode: 'im2col', interleave: 1 }],
    ['four rows', { mode: 'rows' }],
  ] as const;
  it.each(modes)('loads: %s', { tags: 'random' }, (_, wanted) => {
    fc.assert(
      fc.property(tensorCases(wanted), (each) => {
        check(each, 'load');
      }),
      { numRuns: 400 },
    );
  });
  it.each(modes)('stores: %s', { tags: 'random' }, (_, wanted) => {
    fc.assert(
      fc.property(tensorCases({ ...wanted, stores: true }), (each) => {
        check({ ...each, offsets: each.offsets.map(() => 0) }, 'store');
      }),
      { numRuns: 200 },
    );
  });
  const REDUCED: Readonly<Record<string, readonly TensorType[]>> = {
    add: ['u32', 's32', 'u64', 'f16', 'bf16', 'f32', 'f32.ftz'],
    min: ['u32', 's32', 'u64', 's64', 'f16', 'bf16'],
    max: ['u32', 's32', 'u64', 's64', 'f16', 'bf16'],
    inc: ['u32'],
    dec: ['u32'],
    and: ['u32', 's32', 'u64', 's64'],
    or: ['u32', 's32', 'u64', 's64'],
    xor: ['u32', 's32', 'u64', 's64'],
  };
  it.each(Object.entries(REDUCED))('reductions: %s', { tags: 'random' }, (operation, types) => {
    fc.assert(
      fc.property(
        fc.constantFrom(...types).chain((type) => tensorCases({ types: [type], stores: true })),
        (each) => {
          check(each, operation, reduction(operation, each.map.type));
        },
      ),
      { numRuns: 100 },
    );
  });
});
