/**
 * Elements of every storage: read, written, narrowed, on either side of the compute capabilities
 * that have instructions for it.
 */
import { describe, expect, test } from 'vitest';
import type { StorageType } from '../../../src/compiler/tree.js';
import { runKernel } from './run-kernel.js';
import type { HostArray } from './run-kernel.js';
import {
  TreeBuilder,
  add,
  bitcast,
  compare,
  convert,
  mul,
  narrow,
  readType,
} from '../../../src/compiler/emit/trees.test-support.js';

const bytesOf: Readonly<Record<string, number>> = {
  bool: 1,
  i8: 1,
  u8: 1,
  f8e4m3: 1,
  f8e5m2: 1,
  i16: 2,
  u16: 2,
  f16: 2,
  bf16: 2,
};

/** The value of each bit pattern, from the format's own definition. */
function decode(exponentBits: number, mantissaBits: number, bits: number, finite: boolean): number {
  const sign = (bits >> (exponentBits + mantissaBits)) & 1 ? -1 : 1;
  const exponent = (bits >> mantissaBits) & ((1 << exponentBits) - 1);
  const mantissa = bits & ((1 << mantissaBits) - 1);
  const bias = 2 ** (exponentBits - 1) - 1;
  if (finite && exponent === 2 ** exponentBits - 1 && mantissa === 2 ** mantissaBits - 1)
    return NaN;
  if (!finite && exponent === 2 ** exponentBits - 1) return mantissa ? NaN : sign * Infinity;
  if (exponent === 0) return sign * mantissa * 2 ** (1 - bias - mantissaBits);
  return sign * (1 + mantissa / 2 ** mantissaBits) * 2 ** (exponent - bias);
}

const formats = {
  f16: { exponent: 5, mantissa: 10, finite: false },
  bf16: { exponent: 8, mantissa: 7, finite: false },
  f8e4m3: { exponent: 4, mantissa: 3, finite: true },
  f8e5m2: { exponent: 5, mantissa: 2, finite: false },
} as const;
type Format = keyof typeof formats;

const tables = new Map<Format, { bits: number; value: number }[]>();

/** All finite values that are not negative, in their order. */
function tableOf(format: Format): { bits: number; value: number }[] {
  let table = tables.get(format);
  if (table) return table;
  const { exponent, mantissa, finite } = formats[format];
  table = [];
  for (let bits = 0; bits < 2 ** (exponent + mantissa); bits++) {
    const value = decode(exponent, mantissa, bits, finite);
    if (Number.isFinite(value)) table.push({ bits, value });
  }
  tables.set(format, table);
  return table;
}

/** Bits of the nearest value, ties to even. f8 saturates. */
function encode(format: Format, value: number): number | undefined {
  if (Number.isNaN(value)) return undefined;
  const { exponent, mantissa } = formats[format];
  const sign = value < 0 || Object.is(value, -0) ? 2 ** (exponent + mantissa) : 0;
  const table = tableOf(format);
  const wanted = Math.abs(value);
  let [low, high] = [0, table.length - 1];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (table[middle]!.value <= wanted) low = middle;
    else high = middle - 1;
  }
  const below = table[low]!;
  const above = table[low + 1];
  if (above === undefined) {
    if (format.startsWith('f8')) return sign | below.bits;
    const step = below.value - table[low - 1]!.value;
    return sign | (wanted >= below.value + step / 2 ? below.bits + 1 : below.bits);
  }
  const toBelow = wanted - below.value;
  const toAbove = above.value - wanted;
  const up = toAbove < toBelow || (toAbove === toBelow && below.bits % 2 === 1);
  return sign | (up ? above.bits : below.bits);
}

function floatsAround(format: Format): number[] {
  const table = tableOf(format);
  const picked = table.filter(
    (_, at) =>
      table.length < 300 ||
      at % Math.floor(table.length / 150) === 0 ||
      at > table.length - 3 ||
      at < 3,
  );
  const values = picked.flatMap(({ value, bits }) => {
    const next = table[table.findIndex((entry) => entry.bits === bits) + 1]?.value ?? value * 1.1;
    const middle = Math.fround((value + next) / 2);
    return [
      value,
      middle,
      Math.fround(middle * (1 + 2 ** -22)),
      Math.fround(middle * (1 - 2 ** -22)),
    ];
  });
  return [
    ...values,
    ...values.map((value) => -value),
    Infinity,
    -Infinity,
    NaN,
    1e30,
    -1e30,
    1e-40,
    0,
    -0,
  ].map(Math.fround);
}

describe.each(['7.5', '8.0', '8.9', '9.0'])('compute capability %s', (capability) => {
  test.each(Object.keys(formats) as Format[])(
    '%s is rounded to nearest even when written',
    (format) => {
      const values = Float32Array.from(floatsAround(format));
      const wide = bytesOf[format] === 2;
      const t = new TreeBuilder('write');
      const [x, y, z] = [
        t.tensor('x', 'f32', 'input'),
        t.tensor('y', format, 'output'),
        t.tensor('z', 'f32', 'output'),
      ];
      const i = t.variable(t.special('globalId.x'));
      t.if(compare('lt', i.value, x.length), () => {
        y.put(i.value, x.at(i.value));
        z.put(i.value, narrow(x.at(i.value), format));
      });
      const { of, outcome } = runKernel(t.tree, {
        values: {
          x: values,
          y: wide ? new Uint16Array(values.length) : new Uint8Array(values.length),
          z: new Float32Array(values.length),
        },
        grid: [Math.ceil(values.length / 128)],
        block: [128],
        target: { capability },
      });
      expect(outcome.status).toBe(0);
      const [bits, back] = [of('y'), of('z')];
      const { exponent, mantissa, finite } = formats[format];
      const wrong: string[] = [];
      values.forEach((value, at) => {
        const wanted = encode(format, value);
        if (wanted === undefined) {
          if (
            !Number.isNaN(decode(exponent, mantissa, Number(bits[at]), finite)) ||
            !Number.isNaN(Number(back[at]))
          )
            wrong.push(`NaN = ${bits[at]!}`);
        } else if (
          bits[at] !== wanted ||
          !Object.is(back[at], decode(exponent, mantissa, wanted, finite))
        )
          wrong.push(`${value} = ${bits[at]!} (${back[at]!}), not ${wanted}`);
      });
      expect(wrong.slice(0, 8)).toEqual([]);
    },
  );

  test.each(Object.keys(formats) as Format[])('%s is read exactly', (format) => {
    const { exponent, mantissa, finite } = formats[format];
    const count = 2 ** (1 + exponent + mantissa);
    const all =
      bytesOf[format] === 2
        ? Uint16Array.from({ length: count }, (_, at) => at)
        : Uint8Array.from({ length: count }, (_, at) => at);
    const t = new TreeBuilder('read');
    const [x, y] = [t.tensor('x', format, 'input'), t.tensor('y', 'f32', 'output')];
    const i = t.variable(t.special('globalId.x'));
    y.put(i.value, x.at(i.value));
    const { of } = runKernel(t.tree, {
      values: { x: all, y: new Float32Array(count) },
      grid: [count / 128],
      block: [128],
      target: { capability },
    });
    const got = of<Float32Array>('y');
    expect(
      [...got].findIndex(
        (value, bits) => !Object.is(value, decode(exponent, mantissa, bits, finite)),
      ),
    ).toBe(-1);
  });
});

test.each(['i8', 'u8', 'i16', 'u16'] as const)(
  '%s wraps when written and is widened when read',
  (storage: StorageType) => {
    const values = Int32Array.from([
      0,
      1,
      -1,
      127,
      128,
      -128,
      -129,
      255,
      256,
      32767,
      32768,
      -32769,
      65535,
      65536,
      2147483647,
      -2147483648,
      ...new Array<number>(16).fill(5),
    ]);
    const t = new TreeBuilder('narrow');
    const [x, y, z, w] = [
      t.tensor('x', 'i32', 'input'),
      t.tensor('y', storage),
      t.tensor('z', 'i32'),
      t.tensor('w', 'i32'),
    ];
    const i = t.variable(t.special('threadIdx.x'));
    y.put(i.value, x.at(i.value));
    z.put(i.value, y.at(i.value));
    w.put(i.value, narrow(x.at(i.value), storage));
    const room = storage.endsWith('8') ? new Uint8Array(32) : new Uint16Array(32);
    const { of } = runKernel(t.tree, {
      values: { x: values, y: room, z: new Int32Array(32), w: new Int32Array(32) },
    });
    const wrapped = [...values].map(
      (value) =>
        ({
          i8: (value << 24) >> 24,
          u8: value & 255,
          i16: (value << 16) >> 16,
          u16: value & 65535,
        })[storage as 'i8'],
    );
    expect([...of<Int32Array>('z')]).toEqual(wrapped);
    expect([...of<Int32Array>('w')]).toEqual(wrapped);
  },
);

const scalars: readonly (readonly [StorageType, number | bigint, number | bigint])[] = [
  ['bool', 1, 1],
  ['i8', 0x1fe, -2],
  ['u8', 0xfe, 254],
  ['i16', 0xfffe, -2],
  ['u16', 0xfffe, 65534],
  ['f16', 0x3e00, 1.5],
  ['bf16', 0x3fc0, 1.5],
  ['f8e4m3', 0x38, 1],
  ['f8e5m2', 0x3c, 1],
  ['i32', -5, -5],
  ['u32', 4294967295, 4294967295],
  ['i64', -5n, -5],
  ['u64', 7n, 7],
  ['f32', 1.5, 1.5],
  ['f64', 0.1, 0.1],
];

test.each(scalars)('a scalar of %s is widened', (storage, given, wanted) => {
  const t = new TreeBuilder('scalar');
  const s = t.scalar('s', storage);
  const y = t.tensor('y', 'f64');
  y.put(0, convert(s, 'f64'));
  const { of } = runKernel(t.tree, {
    values: { s: given, y: new Float64Array(1) },
    block: [1],
    target: { capability: '9.0' },
  });
  expect(of('y')[0]).toBe(Number(wanted));
});

test('bits of floats are kept in both directions', () => {
  const t = new TreeBuilder('bits');
  const [x, y] = [t.tensor('x', 'f32', 'input'), t.tensor('y', 'u32')];
  const [v, w] = [t.tensor('v', 'u64', 'input'), t.tensor('w', 'f64')];
  const i = t.variable(t.special('threadIdx.x'));
  y.put(i.value, bitcast(x.at(i.value), 'u32'));
  w.put(i.value, bitcast(v.at(i.value), 'f64'));
  const floats = Float32Array.from([1, -0, 1e-45, Infinity]);
  const words = BigUint64Array.from([1n, 0x3ff0000000000000n, 0x8000000000000000n, 5n]);
  const { of } = runKernel(t.tree, {
    values: { x: floats, y: new Uint32Array(4), v: words, w: new Float64Array(4) },
    block: [4],
  });
  expect([...of<Uint32Array>('y')]).toEqual([...new Uint32Array(floats.buffer)]);
  expect([...of<Float64Array>('w')]).toEqual([...new Float64Array(words.buffer)]);
});

test('structures are reached by the offsets of their fields', () => {
  const t = new TreeBuilder('fields');
  const fields = [
    { name: 'id', storage: 'u8', offset: 0 },
    { name: 'x', storage: 'f32', offset: 4 },
    { name: 'y', storage: 'f64', offset: 8 },
  ] as const;
  t.params.push({
    kind: 'tensor',
    name: 's',
    access: 'inout',
    rank: 1,
    element: { struct: { fields, bytes: 16, align: 8 } },
  });
  t.abi.push({ kind: 'pointer', param: 0 });
  const i = t.variable(t.special('threadIdx.x'));
  const place = (field: number, index = i.value) => ({
    span: index.span,
    memory: { kind: 'param' as const, param: 0 },
    index,
    field: fields[field]!,
    storage: fields[field]!.storage,
  });
  const load = (field: number) => ({
    op: 'load' as const,
    span: i.value.span,
    type: readType(fields[field]!.storage),
    place: place(field),
  });
  t.push({
    kind: 'store',
    span: i.value.span,
    place: place(2),
    value: add(convert(load(1), 'f64'), convert(load(0), 'f64')),
  });
  t.push({ kind: 'store', span: i.value.span, place: place(0), value: mul(load(0), 3) });
  const bytes = new DataView(new ArrayBuffer(64));
  for (let at = 0; at < 4; at++) {
    bytes.setUint8(at * 16, 100 + at);
    bytes.setFloat32(at * 16 + 4, at + 0.5, true);
  }
  const { of } = runKernel(t.tree, {
    values: { s: new Uint8Array(bytes.buffer) as HostArray },
    block: [4],
  });
  const after = new DataView(of<Uint8Array>('s').slice().buffer);
  for (let at = 0; at < 4; at++) {
    expect(after.getUint8(at * 16)).toBe(((100 + at) * 3) & 255);
    expect(after.getFloat64(at * 16 + 8, true)).toBe(at + 0.5 + 100 + at);
  }
});
