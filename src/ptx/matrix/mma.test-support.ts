/** Matrices, their fragments, and the launch of one mma. */
import { expect } from 'vitest';
import { Grid, kernelText } from '../run-grid.test-support.js';
import { decode, encode } from './element-values.test-support.js';

export type Place = (lane: number, i: number) => readonly [row: number, column: number];

export const group = (lane: number): number => lane >> 2;
export const inGroup = (lane: number): number => lane % 4;

/** Random numbers that are exact in every type, and whose sums are exact in every accumulator. */
export function random(seed: number): (below: number) => number {
  let state = seed >>> 0 || 1;
  return (below) => {
    state ^= state << 13;
    state >>>= 0;
    state ^= state >>> 17;
    state ^= state << 5;
    state >>>= 0;
    return state % below;
  };
}

const RANGES: Readonly<Record<string, readonly [number, number]>> = {
  f16: [-8, 8],
  bf16: [-8, 8],
  tf32: [-8, 8],
  f64: [-1000, 1000],
  e4m3: [-4, 4],
  e5m2: [-4, 4],
  e3m2: [-4, 4],
  e2m3: [-4, 4],
  e2m1: [-4, 4],
  s8: [-128, 127],
  u8: [0, 255],
  s4: [-8, 7],
  u4: [0, 15],
  b1: [0, 1],
  f32: [-50, 50],
  s32: [-100000, 100000],
};

export function matrix(type: string, rows: number, columns: number, seed: number): number[][] {
  const next = random(seed);
  const [least, most] = RANGES[type]!;
  return Array.from({ length: rows }, () =>
    Array.from({ length: columns }, () => least + next(most - least + 1)),
  );
}

export const BITS: Readonly<Record<string, number>> = {
  f16: 16,
  bf16: 16,
  tf32: 32,
  f64: 64,
  e4m3: 8,
  e5m2: 8,
  e3m2: 8,
  e2m3: 8,
  e2m1: 8,
  s8: 8,
  u8: 8,
  s4: 4,
  u4: 4,
  b1: 1,
  f32: 32,
  s32: 32,
};

/** The registers of all lanes as bytes, one lane after the other. */
export function fragments(
  type: string,
  registers: number,
  place: Place,
  values: readonly (readonly number[])[],
): Uint8Array {
  const bits = BITS[type]!;
  const size = Math.max(bits, 32) / 8;
  const out = new Uint8Array(32 * registers * size);
  const perRegister = (size * 8) / bits;
  for (let lane = 0; lane < 32; lane++) {
    for (let i = 0; i < registers * perRegister; i++) {
      const [row, column] = place(lane, i);
      const value = encode(type, values[row]![column]!);
      const at = lane * registers * size * 8 + i * bits;
      for (let bit = 0; bit < bits; bit++)
        if ((value >> BigInt(bit)) & 1n) out[(at + bit) >> 3]! |= 1 << ((at + bit) & 7);
    }
  }
  return out;
}

export function readFragments(
  bytes: Uint8Array,
  type: string,
  registers: number,
  place: Place,
  rows: number,
  columns: number,
): number[][] {
  const bits = BITS[type]!;
  const size = Math.max(bits, 32) / 8;
  const out = Array.from({ length: rows }, () => new Array<number>(columns).fill(NaN));
  for (let lane = 0; lane < 32; lane++) {
    for (let i = 0; i < (registers * (size * 8)) / bits; i++) {
      const at = lane * registers * size + (i * bits) / 8;
      let value = 0n;
      for (let byte = 0; byte < bits / 8; byte++)
        value |= BigInt(bytes[at + byte]!) << BigInt(8 * byte);
      const [row, column] = place(lane, i);
      out[row]![column] = decode(type, value);
    }
  }
  return out;
}

export interface Fragment {
  type: string;
  registers: number;
  place: Place;
}

/** Runs one instruction on one warp; `%a0 …` are its registers. */
export function run(
  instruction: string,
  operands: readonly (Fragment & { bytes: Uint8Array })[],
  result: Fragment,
  extra = '',
  metadata?: Uint32Array,
): Uint8Array {
  const wide = (type: string): number => (type === 'f64' ? 8 : 4);
  const kind = (type: string): string => (type === 'f64' ? 'f64' : type === 'f32' ? 'f32' : 'b32');
  const names = 'abc';
  const list = (name: string, count: number): string =>
    `{${Array.from({ length: count }, (_, index) => `%${name}${index}`).join(', ')}}`;
  const loads = operands
    .map(({ type, registers }, index) => {
      const name = names[index]!;
      return `.reg .${kind(type)} %${name}<${registers}>; ld.param.u64 %p, [${name}];
        mad.wide.u32 %p, %t, ${registers * wide(type)}, %p;
    ${Array.from(
      { length: registers },
      (_, at) => `ld.global.${kind(type)} %${name}${at},
      [%p+${at * wide(type)}];`,
    ).join(' ')}`;
    })
    .join('\n');
  const body = `.reg .b64 %p; .reg .b32 %t, %e; mov.u32 %t, %tid.x;
  ${loads}
  ld.param.u64 %p, [e]; mad.wide.u32 %p, %t, 4, %p; ld.global.b32 %e, [%p];
  .reg .${kind(result.type)} %d<${result.registers}>;
  ${instruction} ${list('d', result.registers)},
    ${operands.map(({ registers }, index) => list(names[index]!, registers)).join(', ')}${extra};
  ld.param.u64 %p, [d]; mad.wide.u32 %p, %t, ${result.registers * wide(result.type)}, %p;
  ${Array.from(
    { length: result.registers },
    (_, at) => `st.global.${kind(result.type)}
    [%p+${at * wide(result.type)}], %d${at};`,
  ).join(' ')}
  ret;`;
  const grid = new Grid(
    kernelText(
      'k',
      ['a', 'b', 'c', 'd', 'e'].map((name) => `.param .u64 ${name}`).join(', '),
      body,
    ),
  );
  const inputs = operands.map(({ bytes }) => grid.put(bytes));
  const output = grid.put(new Uint8Array(32 * result.registers * wide(result.type)));
  const meta = grid.put(metadata ?? new Uint32Array(32));
  const outcome = grid.run(
    'k',
    [...inputs, output, meta].map(({ address }) => ({ i64: address })),
    { grid: [1], block: [32] },
  );
  expect(outcome.status).toBe(0);
  return output.view;
}

export function product(
  a: readonly (readonly number[])[],
  b: readonly (readonly number[])[],
  c: readonly (readonly number[])[],
): number[][] {
  return c.map((row, i) =>
    row.map((start, j) => a[i]!.reduce((sum, value, p) => sum + value * b[p]![j]!, start)),
  );
}

// PTX ISA 9.0, "Matrix Fragments for mma.m…": a, b and c of each shape.

export const ROW16 = (lane: number, high: boolean): number => group(lane) + (high ? 8 : 0);
export const C16: Place = (lane, i) => [ROW16(lane, i >= 2), inGroup(lane) * 2 + (i & 1)];
export const C8: Place = (lane, i) => [group(lane), inGroup(lane) * 2 + i];

export const size = (name: string): [number, number, number] =>
  /m(\d+)n(\d+)k(\d+)/.exec(name)!.slice(1).map(Number) as [number, number, number];
export const isInteger = (type: string): boolean => /^[sub]\d/.test(type);
