/**
 * mma.sp in every shape and type against a plain matrix product. The positions of elements
 * are written here as in the PTX ISA, case by case, and not as the compiler computes them.
 */
import { describe, expect, it } from 'vitest';
import {
  BITS,
  C16,
  ROW16,
  fragments,
  group,
  inGroup,
  isInteger,
  matrix,
  product,
  random,
  readFragments,
  run,
  size,
} from './mma.test-support.js';
import type { Place } from './mma.test-support.js';

describe('mma.sp', () => {
  interface Sparse {
    name: string;
    types: readonly string[];
    registers: readonly [number, number];
    lanes: number;
    unit: number;
  }
  const SPARSE: readonly Sparse[] = [
    { name: 'm16n8k16', types: ['f16', 'bf16'], registers: [2, 2], lanes: 1, unit: 16 },
    { name: 'm16n8k32', types: ['f16', 'bf16'], registers: [4, 4], lanes: 2, unit: 16 },
    { name: 'm16n8k8', types: ['tf32'], registers: [2, 2], lanes: 1, unit: 16 },
    { name: 'm16n8k16', types: ['tf32'], registers: [4, 4], lanes: 2, unit: 16 },
    { name: 'm16n8k32', types: ['s8', 'u8'], registers: [2, 2], lanes: 2, unit: 32 },
    {
      name: 'm16n8k64',
      types: ['s8', 'u8', 'e4m3', 'e5m2', 'e2m3'],
      registers: [4, 4],
      lanes: 4,
      unit: 32,
    },
    { name: 'm16n8k64', types: ['s4', 'u4'], registers: [2, 2], lanes: 2, unit: 32 },
    { name: 'm16n8k128', types: ['s4', 'u4'], registers: [4, 4], lanes: 4, unit: 32 },
  ];
  for (const { name, types, registers, lanes, unit } of SPARSE) {
    for (const type of types) {
      for (let selector = 0; selector < 4 / lanes; selector++) {
        it(`mma.sp.sync.aligned.${name} of ${type}, selector ${selector}`, () => {
          const [m, n, k] = size(name);
          const bits = BITS[type]!;
          const accumulator = isInteger(type) ? 's32' : 'f32';
          const next = random(77 + k + selector);
          const full = Array.from({ length: m }, () => new Array<number>(k).fill(0));
          const kept = Array.from({ length: m }, () => [] as number[]);
          // Indices of two bits for each row, in the order of the columns.
          const indices = Array.from({ length: m }, () => [] as number[]);
          const values = matrix(type, m, k, 31);
          full.forEach((row, i) => {
            const keep = (column: number): void => {
              row[column] = values[i]![column]!;
              kept[i]!.push(row[column]);
            };
            if (type === 'tf32') {
              for (let chunk = 0; chunk < k; chunk += 2) {
                const which = next(2);
                keep(chunk + which);
                indices[i]!.push(...(which ? [2, 3] : [0, 1]));
              }
              return;
            }
            const part = bits === 4 ? 2 : 1;
            for (let chunk = 0; chunk < k; chunk += 4 * part) {
              const first = next(3);
              const second = first + 1 + next(3 - first);
              for (const index of [first, second]) {
                for (let at = 0; at < part; at++) keep(chunk + index * part + at);
                indices[i]!.push(index);
              }
            }
          });
          const metadata = new Uint32Array(32).map(() => next(2 ** 31));
          const firstLane = lanes === 4 ? 0 : selector * lanes;
          for (let g = 0; g < 8; g++) {
            let text = 0n;
            const put = (row: number, from: number, at: number): void => {
              for (let bit = 0; bit < unit; bit += 2)
                text |= BigInt(indices[row]![(from + bit) / 2]!) << BigInt(at + bit);
            };
            for (
              let from = 0, at = 0;
              from < indices[0]!.length * 2;
              from += unit, at += 2 * unit
            ) {
              put(g, from, at);
              put(g + 8, from, at + unit);
            }
            for (let word = 0; word < lanes; word++)
              metadata[4 * g + firstLane + word] = Number(
                (text >> BigInt(32 * word)) & 0xffffffffn,
              );
          }
          const perRegister = 32 / bits;
          const a: Place = (lane, i) => [
            ROW16(lane, (Math.floor(i / perRegister) & 1) === 1),
            inGroup(lane) * perRegister +
              (i % perRegister) +
              4 * perRegister * (Math.floor(i / perRegister) >> 1),
          ];
          const b: Place = (lane, i) => [
            inGroup(lane) * perRegister +
              (i % perRegister) +
              4 * perRegister * Math.floor(i / perRegister),
            group(lane),
          ];
          const right = matrix(type, k, n, 32);
          const c = matrix(accumulator, m, n, 33);
          const order = selector & 1 || type === 'e2m3' ? '::ordered_metadata' : '';
          const kind = type === 'e2m3' ? '.kind::f8f6f4' : '';
          const types = [accumulator, type, type, accumulator].join('.');
          const output = run(
            `mma.sp${order}.sync.aligned.${name}.row.col${kind}.${types}`,
            [
              {
                type,
                registers: registers[0],
                place: a,
                bytes: fragments(type, registers[0], a, kept),
              },
              {
                type,
                registers: registers[1],
                place: b,
                bytes: fragments(type, registers[1], b, right),
              },
              {
                type: accumulator,
                registers: 4,
                place: C16,
                bytes: fragments(accumulator, 4, C16, c),
              },
            ],
            { type: accumulator, registers: 4, place: C16 },
            `, %e, ${selector}`,
            metadata,
          );
          expect(readFragments(output, accumulator, 4, C16, m, n)).toEqual(product(full, right, c));
        });
      }
    }
  }
});
