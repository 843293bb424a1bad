// cp.reduce.async.bulk against a model in integers of any size: every operation and type, at edges
// and at random, thread by thread and in lanes.

import { describe, expect, it } from 'vitest';
import { BF16, F16, F32, F64, decode, encode } from '../exact-floats.test-support.js';
import type { Format } from '../exact-floats.test-support.js';
import { STATUS } from '../index.js';
import { Grid, kernelText } from '../run-grid.test-support.js';
import { someOf } from '../../../test/random-runs.js';

const THREADS = 64;
/** The bytes that each thread reduces. */
const BYTES = 64;
const FORMATS: Readonly<Record<string, Format>> = { f16: F16, bf16: BF16, f32: F32, f64: F64 };

const bitsOf = (type: string): number => Number(/\d+/.exec(type)![0]);
const signed = (type: string, value: bigint): bigint =>
  type.startsWith('s') ? BigInt.asIntN(bitsOf(type), value) : value;
/** A key with the order of the floats, in which zeros of different signs differ. */
const order = (value: bigint, { bits }: Format): bigint =>
  value >> BigInt(bits - 1) ? -(value & ((1n << BigInt(bits - 1)) - 1n)) - 1n : value;
const isNaN = (value: bigint, { bits, mantissa, bias }: Format): boolean =>
  (value & ((1n << BigInt(bits - 1)) - 1n)) > BigInt(2 * bias + 1) << BigInt(mantissa);

/** Infinities by their rules; other sums exactly and rounded once. Undefined for NaN. */
function sum(a: bigint, b: bigint, format: Format): bigint | undefined {
  const [x, y] = [decode(a, format), decode(b, format)];
  if (isNaN(a, format) || isNaN(b, format)) return undefined;
  if (!x || !y) return x ? b : y || a === b ? a : undefined;
  const e = Math.min(x.e, y.e);
  const total = (x.m << BigInt(x.e - e)) + (y.m << BigInt(y.e - e));
  if (total !== 0n) return encode(total, e, format, 'rn');
  return x.negative && y.negative ? 1n << BigInt(format.bits - 1) : 0n;
}

/** The result of reducing `value` into `old`; undefined if any NaN is correct. */
function reduced(operation: string, type: string, old: bigint, value: bigint): bigint | undefined {
  const format = FORMATS[type];
  const less = (a: bigint, b: bigint): boolean =>
    format ? order(a, format) < order(b, format) : signed(type, a) < signed(type, b);
  switch (operation) {
    case 'add':
      return format ? sum(old, value, format) : BigInt.asUintN(bitsOf(type), old + value);
    case 'and':
      return old & value;
    case 'or':
      return old | value;
    case 'xor':
      return old ^ value;
    case 'inc':
      return old >= value ? 0n : old + 1n;
    case 'dec':
      return old === 0n || old > value ? value : old - 1n;
    default: {
      if (format && isNaN(old, format)) return isNaN(value, format) ? undefined : value;
      if (format && isNaN(value, format)) return old;
      return (operation === 'min') === less(value, old) ? value : old;
    }
  }
}

const EDGES: readonly bigint[] = [
  0n,
  1n,
  2n,
  3n,
  0x7fn,
  0x80n,
  0x3ffn,
  0x400n,
  0x3c00n,
  0x3c01n,
  0x7bffn,
  0x7c00n,
  0x7f7fn,
  0x7f80n,
  0x8000n,
  0x8001n,
  0xbc00n,
  0xfbffn,
  0xfc00n,
  0xff80n,
  0xffffn,
  0x007fffffn,
  0x00800000n,
  0x3f800000n,
  0x7f7fffffn,
  0x7f800000n,
  0x7fffffffn,
  0x80000000n,
  0x80000001n,
  0xff7fffffn,
  0xff800000n,
  0xffffffffn,
  0x000fffffffffffffn,
  0x0010000000000000n,
  0x3ff0000000000000n,
  0x7fefffffffffffffn,
  0x7ff0000000000000n,
  0x7fffffffffffffffn,
  0x8000000000000000n,
  0xffefffffffffffffn,
  0xfff0000000000000n,
  0xffffffffffffffffn,
];

/** Bits from a linear congruential generator; every third value is an edge. */
function operands(seed: number, bits: number, count: number): bigint[] {
  let state = BigInt(seed) * 0x9e3779b97f4a7c15n + 1n;
  const next = (): bigint =>
    (state = BigInt.asUintN(64, state * 6364136223846793005n + 1442695040888963407n)) >> 32n;
  return Array.from({ length: count }, () =>
    BigInt.asUintN(
      bits,
      next() % 3n === 0n ? EDGES[Number(next() % BigInt(EDGES.length))]! : (next() << 32n) | next(),
    ),
  );
}

function pack(values: readonly bigint[], bits: number): Uint8Array {
  const bytes = new Uint8Array((values.length * bits) / 8);
  values.forEach((value, index) => {
    for (let byte = 0; byte < bits / 8; byte++)
      bytes[(index * bits) / 8 + byte] = Number((value >> BigInt(8 * byte)) & 255n);
  });
  return bytes;
}

function unpack(bytes: Uint8Array, bits: number): bigint[] {
  return Array.from({ length: (bytes.length * 8) / bits }, (_, index) => {
    let value = 0n;
    for (let byte = bits / 8 - 1; byte >= 0; byte--)
      value = (value << 8n) | BigInt(bytes[(index * bits) / 8 + byte]!);
    return value;
  });
}

/**
 * Each thread copies its own bytes to shared memory and reduces them there or into global memory.
 */
function run(
  place: 'global' | 'shared',
  form: string,
  old: Uint8Array,
  values: Uint8Array,
  simd: boolean,
): { out: Uint8Array; width: number } {
  const words = (move: (at: number) => string): string =>
    Array.from({ length: BYTES / 4 }, (_, index) => move(4 * index)).join(' ');
  const reduce =
    place === 'global'
      ? `cp.reduce.async.bulk.global.shared::cta.bulk_group.${form} [%o], [%v], ${BYTES};`
      : `${words((at) => `ld.global.u32 %r, [%o+${at}]; st.shared.u32 [%s+${at}], %r;`)}
      cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.${form}
        [%s], [%v], ${BYTES}, [%m];
      ${words((at) => `ld.shared.u32 %r, [%s+${at}]; st.global.u32 [%o+${at}], %r;`)}`;
  const grid = new Grid(
    kernelText(
      'k',
      '.param .u64 in, .param .u64 out',
      `.reg .b64 %i, %o, %x; .reg .b32 %t, %r, %v, %s, %m;
        .shared .align 128 .b8 values[${BYTES * THREADS}];
          .shared .align 128 .b8 sums[${BYTES * THREADS}]; .shared .align 8 .b8 bar[8];
    ld.param.u64 %i, [in]; ld.param.u64 %o, [out]; mov.u32 %t, %tid.x;
    mul.wide.u32 %x, %t, ${BYTES}; add.u64 %i, %i, %x; add.u64 %o, %o, %x;
    mov.u32 %m, bar; mov.u32 %v, values; mad.lo.u32 %v, %t, ${BYTES}, %v; mov.u32 %s, sums;
      mad.lo.u32 %s, %t, ${BYTES}, %s; mbarrier.init.shared.b64 [%m], 1; bar.sync 0;
    ${words((at) => `ld.global.u32 %r, [%i+${at}]; st.shared.u32 [%v+${at}], %r;`)} ${reduce} ret;`,
    ),
    { simd },
  );
  const input = grid.put(values);
  const output = grid.put(old);
  const launch = { grid: [1], block: [THREADS] } as const;
  expect(grid.run('k', [{ i64: input.address }, { i64: output.address }], launch).status).toBe(
    STATUS.done,
  );
  return { out: output.view, width: grid.width('k', launch) };
}

const GLOBAL = [
  ...[
    'and.b32',
    'and.b64',
    'or.b32',
    'or.b64',
    'xor.b32',
    'xor.b64',
    'add.u32',
    'add.s32',
    'add.u64',
    'add.f32',
    'add.f64',
    'inc.u32',
    'dec.u32',
    'add.noftz.f16',
    'add.noftz.bf16',
  ],
  ...['min', 'max'].flatMap((operation) =>
    ['u32', 's32', 'u64', 's64', 'f16', 'bf16'].map((type) => `${operation}.${type}`),
  ),
];
const SHARED = [
  'add.u32',
  'add.s32',
  'add.u64',
  'min.u32',
  'max.u32',
  'min.s32',
  'max.s32',
  'inc.u32',
  'dec.u32',
  'and.b32',
  'or.b32',
  'xor.b32',
];

describe.each([
  ['global', GLOBAL],
  ['shared', SHARED],
] as const)('bulk reductions into %s memory', (place, forms) => {
  someOf(
    10,
    it,
  )(
    forms.flatMap(
      (form) =>
        [
          [form, false],
          [form, true],
        ] as const,
    ),
  )('%s; in lanes: %s', (form, simd) => {
    const [operation = '', type = ''] = [form.split('.')[0], form.split('.').at(-1)];
    const bits = bitsOf(type);
    const count = (THREADS * BYTES * 8) / bits;
    for (const seed of [1, 2]) {
      const [old, values] = [operands(2 * seed, bits, count), operands(2 * seed + 1, bits, count)];
      const { out, width } = run(place, form, pack(old, bits), pack(values, bits), simd);
      expect(width > 1).toBe(simd);
      const results = unpack(out, bits);
      const wrong = old.flatMap((before, index) => {
        const wanted = reduced(operation, type, before, values[index]!);
        const given = results[index]!;
        const right = wanted === undefined ? isNaN(given, FORMATS[type]!) : given === wanted;
        return right
          ? []
          : [
              `${before.toString(16)} ${values[index]!.toString(16)}: ${given.toString(16)}, ` +
                `not ${wanted?.toString(16) ?? 'NaN'}`,
            ];
      });
      expect(wrong).toEqual([]);
    }
  });
});
