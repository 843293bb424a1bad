// Tensor copies against a model that goes from element to element, at random: every rank, type,
// swizzle and interleave, boxes that leave the tensor on every side, steps, im2col, stores and
// reductions; and what is refused.

import { describe, expect, it } from 'vitest';
import * as fc from '../../../test/fast-check.js';
import { FAULT, STATUS } from '../index.js';
import { Grid, kernelText } from '../run-grid.test-support.js';
import type { Argument, Outcome } from '../run-grid.test-support.js';
import { TENSOR_MAP, encodeTensorMap, tensorTypeBytes } from '../tensor-map.js';
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
  const grid = gridOf(kernelText('k', TENSOR_PARAMS, tensorKernel(each, operation), TENSOR_SHARED));
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
  tf32: (value) => bitsOf(value),
  'tf32.ftz': (value) => bitsOf(value),
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
    add: ['u32', 's32', 'u64', 'f16', 'bf16', 'f32', 'f32.ftz', 'tf32', 'tf32.ftz'],
    min: ['u32', 's32', 'u64', 's64', 'f16', 'bf16'],
    max: ['u32', 's32', 'u64', 's64', 'f16', 'bf16'],
    inc: ['u32'],
    dec: ['u32'],
    and: ['u32', 's32', 'u64'],
    or: ['u32', 's32', 'u64'],
    xor: ['u32', 's32', 'u64'],
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

describe('loads convert', () => {
  it.each<[TensorType, [from: number, to: number][]]>([
    [
      'tf32',
      [
        // Ties to even, on both sides of them (H200, driver 580).
        [0x41f75000, 0x41f74000],
        [0xaf6ed000, 0xaf6ec000],
        [0x3f801001, 0x3f802000],
        [0x3f800fff, 0x3f800000],
        [0x3f803000, 0x3f804000],
        [0x7f7fffff, 0x7f800000],
        [0xff800000, 0xff800000],
        [0x7f800001, 0x7fffe000],
        [0xffc00000, 0x7fffe000],
        [0x00003000, 0x00004000],
        [0x00001000, 0x00000000],
      ],
    ],
    [
      'tf32.ftz',
      [
        // Loads leave subnormals as they are (H200, driver 580).
        [0x8004ad5a, 0x8004a000],
        [0x0014decc, 0x0014e000],
        [0x007fffff, 0x00800000],
        [0x3f801000, 0x3f800000],
      ],
    ],
    [
      'f32.ftz',
      [
        [0x007fffff, 0x007fffff],
        [0x8004ad5a, 0x8004ad5a],
        [0x00800000, 0x00800000],
        [0x3f801001, 0x3f801001],
        [0x7fc00001, 0x7fc00001],
      ],
    ],
    ['f32', [[0x007fffff, 0x007fffff]]],
  ])('%s', (type, values) => {
    const each = { ...plain({ type }), coordinates: [0, 0] };
    const tensor = new Uint8Array(each.bytes + 2 * GUARD);
    const view = new DataView(tensor.buffer);
    values.forEach(([from], index) => {
      view.setUint32(GUARD + 4 * index, from, true);
    });
    const { shared } = run(each, 'load', tensor, new Uint8Array(REGION), 512);
    const words = new Uint32Array(shared.buffer, 0, values.length);
    expect([...words].map((word) => word.toString(16))).toEqual(
      values.map(([, to]) => to.toString(16)),
    );
  });
});

describe('sums', () => {
  // What an H200 gives (driver 580).
  it.each<[TensorType, [memory: bigint, added: bigint, sum: bigint][]]>([
    [
      'f32',
      [
        [0x8004ad5an, 0x004f2879n, 0x004a7b1fn],
        [0x80ed7275n, 0x7fa4f7c2n, 0x7fffffffn],
        [0x7f800000n, 0xff800000n, 0x7fffffffn],
      ],
    ],
    ['tf32', [[0x00d85894n, 0x80b1d678n, 0x0026821cn]]],
    [
      'f32.ftz',
      [
        [0x8004ad5an, 0x004f2879n, 0x00000000n],
        [0x801c05a7n, 0x8097324an, 0x8097324an],
        [0x80771734n, 0x804772ccn, 0x80000000n],
        [0xff8a7935n, 0x801e083dn, 0x7fffffffn],
      ],
    ],
    ['tf32.ftz', [[0x00d85894n, 0x80b1d678n, 0x00000000n]]],
    [
      'f64',
      [
        [0x4fffe0c2cdc2e2e4n, 0x4ceda64e12d671ecn, 0x4fffe0c2cdc2e2f3n],
        [0xfff4ad5a41f7577an, 0x404f2879abeb3f7fn, 0xfff4ad5a41f7577an],
        [0xfff0000000000000n, 0x7ffee3fa06dd7b1an, 0x7ffee3fa06dd7b1an],
        [0x7ff4ad2568b04e8an, 0x7ff64577fefa442an, 0x7ff64577fefa442an],
        [0x7ff0000000000000n, 0xfff0000000000000n, 0xfff8000000000000n],
      ],
    ],
  ])('of %s', (type, sums) => {
    const size = tensorTypeBytes(type);
    const each: TensorCase = {
      ...plain({ type, dims: [128 / size, 16], box: [64 / size, 8] }),
      coordinates: [0, 0],
    };
    const tensor = new Uint8Array(each.bytes + 2 * GUARD);
    const shared = new Uint8Array(REGION);
    sums.forEach(([memory, added], index) => {
      tensor.set(bytesOf(memory, size), GUARD + size * index);
      shared.set(bytesOf(added, size), size * index);
    });
    const after = run(each, 'add', tensor, shared, 512).tensor;
    const given = sums.map((_, index) =>
      valueOf(after.slice(GUARD + size * index, GUARD + size * (index + 1))),
    );
    expect(given.map((sum) => sum.toString(16))).toEqual(sums.map(([, , sum]) => sum.toString(16)));
  });
});

/** A plain box of 8 rows of 64 bytes in a tensor of 16 rows. */
function plain(change: Partial<TensorCase['map']> = {}): TensorCase {
  return {
    map: {
      ...tensorCase((low) => low, { types: ['f32'] }).map,
      dims: [32, 16],
      strides: [128],
      box: [16, 8],
      steps: [1, 1],
      swizzle: 0,
      atomicity: 0,
      ...change,
    },
    mode: 'tile',
    coordinates: [4, 3],
    offsets: [],
    bytes: 2048,
    at: 0,
  };
}

const rank = (count: number): Partial<TensorCase['map']> => ({
  dims: [16, 2, 2, 2, 2].slice(0, count),
  strides: [64, 128, 256, 512].slice(0, count - 1),
  box: [16, 1, 1, 1, 1].slice(0, count),
  steps: Array<number>(count).fill(1),
});

describe('a tensor copy is a fault', () => {
  const fault = (
    each: TensorCase,
    { operation = 'load', change }: { operation?: string; change?: Parameters<typeof run>[5] } = {},
  ): number | undefined => {
    const tensor = noise(each.bytes + 2 * GUARD, 1);
    const { outcome, ...after } = run(each, operation, tensor, noise(REGION, 2), 512, change);
    if (outcome.status !== STATUS.done) {
      expect(outcome.status).toBe(STATUS.fault);
      expect(differences(after.tensor, tensor)).toEqual([]);
    }
    return outcome.fault?.kind;
  };
  const set = (offset: number, ...bytes: number[]) => ({
    change: (map: Uint8Array) => {
      map.set(bytes, offset);
    },
  });

  it('not for a map that fits', () => {
    expect(fault(plain())).toBeUndefined();
    expect(fault(plain(), { operation: 'store' })).toBeUndefined();
    expect(fault(plain(), { operation: 'add' })).toBeUndefined();
  });
  it('for bytes that are no tensor map', () => {
    expect(fault(plain(), set(0, 0))).toBe(FAULT.tensorMap);
    expect(fault(plain(), { change: (map) => map.fill(0) })).toBe(FAULT.tensorMap);
  });
  it.each([
    ['another number of dimensions', set(TENSOR_MAP.rank, 3)],
    ['an unknown type', set(TENSOR_MAP.type, 13)],
    ['im2col', set(TENSOR_MAP.kind, 1)],
    ['an unknown interleave', set(TENSOR_MAP.interleave, 3)],
    ['an interleave of two dimensions', set(TENSOR_MAP.interleave, 1)],
    ['an unknown swizzle', set(TENSOR_MAP.swizzle, 5)],
    ['rows longer than the swizzle', set(TENSOR_MAP.swizzle, 1)],
    ['an atomicity of another swizzle', set(TENSOR_MAP.atomicity, 1)],
    ['rows that are no multiple of 16 bytes', set(TENSOR_MAP.box, 17)],
    ['an empty box', set(TENSOR_MAP.box + 4, 0)],
    ['a box of more than 256', set(TENSOR_MAP.box + 4, 1, 1)],
    ['an empty tensor', set(TENSOR_MAP.dims, 0, 0, 0, 0)],
    ['a step of zero', set(TENSOR_MAP.steps + 1, 0)],
    ['a step of nine', set(TENSOR_MAP.steps + 1, 9)],
    ['a stride that is no multiple of 16', set(TENSOR_MAP.strides, 8)],
    ['a stride from 2^40 on', set(TENSOR_MAP.strides + 5, 1)],
    ['an address that is no multiple of 16', set(TENSOR_MAP.address, 8)],
  ])('for a map with %s', (_, options) => {
    expect(fault(plain(), options)).toBe(FAULT.tensorMap);
    expect(fault(plain(), { ...options, operation: 'store' })).toBe(FAULT.tensorMap);
  });
  it('for rows that do not begin at a multiple of 16 bytes', () => {
    expect(fault({ ...plain(), coordinates: [-1, 0] })).toBe(FAULT.tensorMap);
    expect(fault({ ...plain(), coordinates: [2, 0] })).toBe(FAULT.tensorMap);
    expect(fault({ ...plain(), coordinates: [-4, 0] })).toBeUndefined();
  });
  it('for a box to store that begins at a negative coordinate', () => {
    for (const coordinates of [
      [-4, 0],
      [0, -1],
    ]) {
      expect(fault({ ...plain(), coordinates })).toBeUndefined();
      for (const operation of ['store', 'add'])
        expect(fault({ ...plain(), coordinates }, { operation })).toBe(FAULT.tensorMap);
    }
  });
  it('for im2col from a place that is not between the corners, or to one outside', () => {
    const columns = (c1: number, lower: number, upper: number): TensorCase => ({
      ...plain({ ...rank(3), kind: 'im2col', lower: [lower], upper: [upper], pixels: 3 }),
      mode: 'im2col',
      coordinates: [0, c1, 0],
      offsets: [0],
    });
    const dim = 2;
    for (const [c1, operation, wanted] of [
      [-2, 'load', FAULT.tensorMap],
      [-1, 'load', undefined],
      [dim, 'load', undefined],
      [dim + 1, 'load', FAULT.tensorMap],
      [0, 'store', FAULT.tensorMap],
    ] as const)
      expect(fault(columns(c1, -1, 1), { operation })).toBe(wanted);
    expect(fault(columns(0, 0, 0), { operation: 'store' })).toBeUndefined();
    expect(fault(columns(0, 0, 1), { operation: 'store' })).toBe(FAULT.tensorMap);
    expect(fault(columns(0, -1, 0), { operation: 'store' })).toBe(FAULT.tensorMap);
  });
  it('for a place in shared memory that is no multiple of 128, or leaves it', () => {
    expect(fault({ ...plain(), at: 64 })).toBe(FAULT.misaligned);
    expect(fault({ ...plain(), at: REGION - 512 })).toBeUndefined();
    expect(fault({ ...plain(), at: REGION - 384 })).toBe(FAULT.outOfBounds);
    expect(fault({ ...plain(), at: -1024 * 1024 }, { operation: 'store' })).toBe(FAULT.outOfBounds);
  });
  it('for a tensor outside of memory, where the box touches it', () => {
    for (const address of [0n, 65520n, 2n ** 32n, 2n ** 63n, 2n ** 64n - 128n]) {
      const change = (map: Uint8Array): void => {
        new DataView(map.buffer).setBigUint64(TENSOR_MAP.address, address, true);
      };
      for (const operation of ['load', 'store', 'add'])
        expect(fault({ ...plain(), coordinates: [0, 0] }, { operation, change })).toBe(
          FAULT.outOfBounds,
        );
      // Nothing of the box is inside.
      expect(fault({ ...plain(), coordinates: [0, 16] }, { change })).toBeUndefined();
    }
  });
  it('for a type that the reduction does not take, and a swizzle for loads only', () => {
    expect(fault(plain({ type: 'f32' }), { operation: 'min' })).toBe(FAULT.tensorMap);
    expect(fault(plain({ type: 's32' }), { operation: 'inc' })).toBe(FAULT.tensorMap);
    const flip = plain({ swizzle: 3, atomicity: 2 });
    expect(fault(flip)).toBeUndefined();
    expect(fault(flip, { operation: 'store' })).toBe(FAULT.tensorMap);
  });
  it('or does what the fields say, whatever they are', { tags: 'random' }, () => {
    fc.assert(
      fc.property(
        fc.uint8Array({ minLength: 124, maxLength: 124 }),
        fc.integer({ min: 1, max: 5 }),
        fc.array(fc.integer(), { minLength: 5, maxLength: 5 }),
        fc.constantFrom('tile', 'im2col'),
        fc.integer({ min: 0, max: 7 }),
        (bytes, count, coordinates, mode, kept) => {
          const each: TensorCase = {
            ...plain(rank(count)),
            mode: count < 3 ? 'tile' : mode,
            coordinates: coordinates.slice(0, count).map((at) => at & ~15),
            offsets: mode === 'im2col' && count > 2 ? [0, 0, 0].slice(0, count - 2) : [],
          };
          if (each.mode === 'im2col') each.map.kind = 'im2col';
          // The small fields stay, one after the other is changed.
          const change = (map: Uint8Array): void => {
            for (let at = 4; at < 128; at++)
              if (bytes[at - 4]! % 8 === kept) map[at] = bytes[at - 4]! >> 3;
          };
          const tensor = noise(4096 + 2 * GUARD, 1);
          const { outcome, ...after } = run(each, 'load', tensor, noise(REGION, 2), 64, change);
          expect([STATUS.done, STATUS.fault]).toContain(outcome.status);
          expect(differences(after.tensor, tensor)).toEqual([]);
        },
      ),
      { numRuns: 300 },
    );
  });
});

describe('in a cluster', () => {
  /** Rank 0 loads a box into the blocks of the mask; each waits for its own bytes. */
  const MULTICAST =
    `.reg .b64 %map, %out, %state; .reg .b32 %s, %m, %n, %r, %c; .reg .b16 %h;
    .reg .pred %p, %q; .shared .align 128 .b8 box[512]; .shared .align 8 .b8 bar[8];
    mov.b64 %map, map; cvta.param.u64 %map, %map; ld.param.u64 %out, [out];
    ld.param.u16 %h, [mask]; ld.param.u32 %n, [bytes]; mov.u32 %s, box; mov.u32 %m, bar;
    mov.u32 %c, %cluster_ctarank; mbarrier.init.shared.b64 [%m], 1;
    mbarrier.arrive.expect_tx.shared.b64 %state, [%m], %n;
    barrier.cluster.arrive; barrier.cluster.wait;
    setp.eq.u32 %p, %c, 0; mov.u32 %r, 3;
    @%p cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.` +
    `multicast::cluster [%s], [%map, {4, %r}], [%m], %h;
    cvt.u32.u16 %r, %h; shr.u32 %r, %r, %c; and.b32 %r, %r, 1; setp.eq.u32 %q, %r, 0;
    @%q bra skip;
    again: mbarrier.try_wait.shared.b64 %p, [%m], %state; @!%p bra again;
    skip: barrier.cluster.arrive; barrier.cluster.wait;
    mul.lo.u32 %r, %c, 512; cvt.u64.u32 %state, %r; add.u64 %out, %out, %state; mov.u32 %n, 512;
    cp.async.bulk.global.shared::cta.bulk_group [%out], [%s], %n; ret;`;
  it.each([
    [2, 0b01, false],
    [2, 0b11, false],
    [4, 0b1010, false],
    [4, 0b1111, true],
    [4, 0xffff, false],
  ])('of %i blocks, those of the mask %i get the box', (blocks, mask, simd) => {
    const grid = new Grid(
      kernelText(
        'k',
        '.param .align 64 .b8 map[128], .param .u64 out, .param .u16 mask, .param .u32 bytes',
        MULTICAST,
      ),
      { simd },
    );
    const each = plain({ swizzle: 2 });
    const tensor = grid.put(noise(each.bytes, 1));
    const out = grid.put(new Uint8Array(512 * blocks));
    const outcome = grid.run(
      'k',
      [
        { bytes: encodeTensorMap({ ...each.map, address: tensor.address }) },
        { i64: out.address },
        { bytes: Uint8Array.of(mask & 255, mask >> 8) },
        { i32: 512 },
      ],
      { grid: [blocks], block: [1], cluster: [blocks], maxCalls: 1000, fuel: 1000 },
    );
    expect(outcome.status).toBe(STATUS.done);
    const box = new Uint8Array(512);
    load(each.map, boxElements(each.map, 'tile', each.coordinates), tensor.view, box, 0);
    for (let block = 0; block < blocks; block++)
      expect(
        differences(
          out.view.slice(512 * block, 512 * (block + 1)),
          (mask >> block) & 1 ? box : new Uint8Array(512),
        ),
        `block ${block}`,
      ).toEqual([]);
  });
});

describe('tensormap', () => {
  /**
   * Replaces fields of a map in shared memory, copies it to global memory, and loads through it.
   */
  function through(
    fields: string,
    map: TensorCase['map'],
    threads = 32,
  ): Outcome & { map: Uint8Array } {
    const grid = new Grid(
      kernelText(
        'k',
        '.param .u64 from, .param .u64 to, .param .u64 address',
        `.reg .b64 %f, %t, %a; .reg .b32 %m, %n, %r, %x; .reg .pred %p;
        .shared .align 128 .b8 map[128]; .shared .align 8 .b8 bar[8];
        ld.param.u64 %f, [from]; ld.param.u64 %t, [to]; ld.param.u64 %a, [address];
        mov.u32 %m, map; mov.u32 %n, bar; mov.u32 %x, %tid.x; setp.ne.u32 %p, %x, 0;
        @%p bra done;
        mbarrier.init.shared.b64 [%n], 1; mov.u32 %r, 128;
        cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%m], [%f], %r, [%n];
        ${fields}
        done: bar.warp.sync -1;
        tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned
        [%t], [%m], 128;
        fence.proxy.tensormap::generic.acquire.gpu [%t], 128; ret;`,
      ),
    );
    const from = grid.put(encodeTensorMap(map));
    const to = grid.put(new Uint8Array(128));
    const args = [{ i64: from.address }, { i64: to.address }, { i64: 0x12345670 }];
    const outcome = grid.run('k', args, { grid: [1], block: [threads] });
    return { ...outcome, map: to.view };
  }
  it('replaces every field', () => {
    const before = plain().map;
    const replace = (field: string, type: string, operands: string): string =>
      `tensormap.replace.tile.${field}.shared::cta.b1024.${type} [%m], ${operands};`;
    const { status, map } = through(
      [
        replace('global_address', 'b64', '%a'),
        replace('rank', 'b32', '2'),
        'mov.u32 %r, 40;',
        replace('box_dim', 'b32', '0, 8'),
        replace('box_dim', 'b32', '2, %r'),
        replace('global_dim', 'b32', '1, %r'),
        replace('global_dim', 'b32', '2, 7'),
        replace('global_stride', 'b64', '0, 4096'),
        replace('global_stride', 'b64', '1, %a'),
        replace('element_stride', 'b32', '1, 3'),
        replace('element_stride', 'b32', '2, 4'),
        replace('elemtype', 'b32', '5'),
        replace('interleave_layout', 'b32', '1'),
        replace('swizzle_mode', 'b32', '3'),
        replace('swizzle_atomicity', 'b32', '1'),
        replace('fill_mode', 'b32', '1'),
      ].join('\n'),
      before,
    );
    expect(status).toBe(STATUS.done);
    expect([...map]).toEqual([
      ...encodeTensorMap({
        ...before,
        address: 0x12345670,
        type: 's64',
        dims: [32, 40, 7],
        strides: [4096, 0x12345670],
        box: [8, 8, 40],
        steps: [1, 3, 4],
        interleave: 1,
        swizzle: 3,
        atomicity: 1,
        fill: 1,
      }),
    ]);
  });
  it('replaces fields at generic and global addresses', () => {
    const { map } = through(
      'cvta.to.global.u64 %f, %f; tensormap.replace.tile.rank.global.b1024.b32 [%f], 4; ' +
        'tensormap.replace.tile.fill_mode.b1024.b32 [%f], 1; ' +
        'cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%m], [%f], %r, [%n];',
      plain().map,
    );
    expect([map[TENSOR_MAP.rank], map[TENSOR_MAP.fill]]).toEqual([5, 1]);
  });
  it('refuses bytes that are no tensor map', () => {
    const { status, fault } = through(
      'st.shared.u32 [%m], 0; tensormap.replace.tile.rank.shared::cta.b1024.b32 [%m], 2;',
      plain().map,
    );
    expect([status, fault?.kind]).toEqual([STATUS.fault, FAULT.tensorMap]);
  });
  it('takes the number of a dimension that exists', () => {
    expect(() =>
      through('tensormap.replace.tile.global_stride.b1024.b64 [%f], 4, %a;', plain().map),
    ).toThrow('expected the number of a dimension from 0 to 3');
  });
});
