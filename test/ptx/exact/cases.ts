/**
 * Every IEEE operation and conversion with every rounding and modifier, as rows: the instruction,
 * and what it must give.
 */
import {
  BF16,
  F16,
  F32,
  F64,
  FORMATS,
  INTEGERS,
  INTEGRAL_MODES,
  MODES,
  add,
  clamp,
  convertFloat,
  divide,
  floatToInteger,
  flush,
  flushing,
  fma,
  integerToFloat,
  multiply,
  reciprocal,
  rectify,
  roundToIntegral,
  saturate,
  squareRoot,
  subtract,
} from './reference.js';
import type { Format, Integer, Mode, Result } from './reference.js';

export interface Case {
  /** `add.rz.ftz.f32`, the row's name. */
  instruction: string;
  /** PTX types of the operands and of the result. */
  operands: readonly string[];
  result: string;
  reference(operands: readonly bigint[]): Result;
}

type Operation = (operands: readonly bigint[], f: Format, mode: Mode) => Result;

const OPERATIONS: readonly { name: string; count: number; sat: boolean; apply: Operation }[] = [
  { name: 'add', count: 2, sat: true, apply: ([a, b], f, mode) => add(a!, b!, f, mode) },
  { name: 'sub', count: 2, sat: true, apply: ([a, b], f, mode) => subtract(a!, b!, f, mode) },
  { name: 'mul', count: 2, sat: true, apply: ([a, b], f, mode) => multiply(a!, b!, f, mode) },
  { name: 'fma', count: 3, sat: true, apply: ([a, b, c], f, mode) => fma(a!, b!, c!, f, mode) },
  { name: 'div', count: 2, sat: false, apply: ([a, b], f, mode) => divide(a!, b!, f, mode) },
  { name: 'rcp', count: 1, sat: false, apply: ([a], f, mode) => reciprocal(a!, f, mode) },
  { name: 'sqrt', count: 1, sat: false, apply: ([a], f, mode) => squareRoot(a!, f, mode) },
];

function arithmetic(): Case[] {
  const cases: Case[] = [];
  const push = (
    f: Format,
    mode: Mode,
    { name, count, apply }: (typeof OPERATIONS)[number],
    words: readonly string[],
  ): void => {
    const ftz = words.includes('ftz');
    cases.push({
      instruction: [name, mode, ...words, f.name].join('.'),
      operands: Array<string>(count).fill(f.name),
      result: f.name,
      reference: (operands) => {
        let result = ftz
          ? apply(
              operands.map((bits) => flush(bits, f)),
              flushing(f),
              mode,
            )
          : apply(operands, f, mode);
        if (words.includes('sat')) result = saturate(result, f);
        return words.includes('relu') ? rectify(result, f) : result;
      },
    });
  };
  for (const operation of OPERATIONS) {
    for (const mode of MODES) {
      push(F64, mode, operation, []);
      for (const words of [[], ['ftz'], ...(operation.sat ? [['sat'], ['ftz', 'sat']] : [])])
        push(F32, mode, operation, words);
    }
    if (!operation.sat) continue;
    for (const words of [
      [],
      ['ftz'],
      ['sat'],
      ['ftz', 'sat'],
      ...(operation.name === 'fma' ? [['relu'], ['ftz', 'relu']] : []),
    ])
      push(F16, 'rn', operation, words);
    for (const words of [[], ...(operation.name === 'fma' ? [['relu']] : [])])
      push(BF16, 'rn', operation, words);
  }
  return cases;
}

const asInteger = (bits: bigint, type: Integer): bigint =>
  type.signed ? BigInt.asIntN(type.bits, bits) : BigInt.asUintN(type.bits, bits);
const dotted = (...words: (string | false)[]): string =>
  words.filter((word) => word !== false && word !== '').join('.');

function conversions(): Case[] {
  const cases: Case[] = [];
  const integers = Object.values(INTEGERS);
  const floats = Object.values(FORMATS);
  for (const from of integers) {
    for (const to of integers) {
      for (const sat of [false, true]) {
        const [most, least] = [
          (1n << BigInt(from.bits - (from.signed ? 1 : 0))) - 1n,
          from.signed ? -(1n << BigInt(from.bits - 1)) : 0n,
        ];
        // .sat is refused where there is nothing to clamp.
        if (sat && clamp(most, to) === most && clamp(least, to) === least) continue;
        cases.push({
          instruction: dotted('cvt', sat && 'sat', to.name, from.name),
          operands: [from.name],
          result: to.name,
          reference: ([a]) => {
            const value = asInteger(a!, from);
            return sat ? clamp(value, to) : asInteger(value, to);
          },
        });
      }
    }
    for (const to of floats) {
      for (const mode of MODES) {
        for (const sat of to === BF16 ? [false] : [false, true]) {
          cases.push({
            instruction: dotted('cvt', mode, sat && 'sat', to.name, from.name),
            operands: [from.name],
            result: to.name,
            reference: ([a]) => {
              const result = integerToFloat(asInteger(a!, from), to, mode);
              return sat ? saturate(result, to) : result;
            },
          });
        }
      }
    }
  }
  for (const from of floats) {
    for (const to of integers) {
      for (const mode of INTEGRAL_MODES) {
        for (const ftz of from === F32 ? [false, true] : [false]) {
          cases.push({
            instruction: dotted('cvt', mode, ftz && 'ftz', to.name, from.name),
            operands: [from.name],
            result: to.name,
            reference: ([a]) => floatToInteger(ftz ? flush(a!, from) : a!, from, to, mode),
          });
        }
      }
    }
    for (const to of floats) {
      const exact = from === to || to === F64 || (to === F32 && from !== F64);
      const modes: string[] = from === to ? ['', ...INTEGRAL_MODES] : exact ? [''] : [...MODES];
      for (const mode of modes) {
        // .ftz is for f32 on either side, of bf16 only as a source; .sat is not for bf16.
        const flushes =
          (from === F32 || to === F32) && to !== BF16 && !(from === to && to === BF16);
        for (const ftz of flushes ? [false, true] : [false]) {
          for (const sat of from === BF16 || to === BF16 ? [false] : [false, true]) {
            cases.push({
              instruction: dotted('cvt', mode, ftz && 'ftz', sat && 'sat', to.name, from.name),
              operands: [from.name],
              result: to.name,
              reference: ([a]) => {
                // The ISA flushes what cvt reads as .f32; an H200 does not on the way to f16, where
                // .rm and .rp show it.
                const source = ftz && from === F32 && to !== F16 ? flush(a!, from) : a!;
                const target = ftz && to === F32 ? flushing(to) : to;
                const result: Result = INTEGRAL_MODES.includes(mode)
                  ? roundToIntegral(source, from, mode)
                  : convertFloat(source, from, target, (mode || 'rn') as Mode);
                return sat ? saturate(result, to) : result;
              },
            });
          }
        }
      }
    }
  }
  return cases;
}

export const CASES: readonly Case[] = [...arithmetic(), ...conversions()];
