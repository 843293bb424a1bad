/**
 * Division of integers by constants, which no processor has an instruction for: powers of two
 * become shifts, others products with a rounded-up reciprocal, whose upper half is the quotient
 * (Granlund and Montgomery). A remainder is computed from the quotient.
 */
import { resolve } from '../ssa/function.js';
import type { Block, NumberType, RegisterType, SsaFunction, Value } from '../ssa/function.js';
import { anySigned, rangeOf } from '../ssa/ranges.js';

/** Makes an operation at the place of the division. */
type Make = (op: string, args: readonly Value[], as?: NumberType) => Value;

interface Reciprocal {
  readonly factor: bigint;
  /** Bits of the product below the quotient, beyond the lower half. */
  readonly shift: number;
}

/**
 * 2^(bits + shift) / d, rounded up, so that all dividends below 2^dividendBits have their quotient
 * in the product's bits above bits + shift; undefined where the factor would have more than `bits`
 * bits.
 */
function reciprocal(d: bigint, bits: number, dividendBits: number): Reciprocal | undefined {
  for (let shift = 0; shift <= bits; shift++) {
    const power = 1n << BigInt(bits + shift);
    const factor = power / d + 1n;
    if (factor >> BigInt(bits) !== 0n) return undefined;
    // The error of rounding up stays below 1 / d in the quotient: (factor d - power) x < power.
    if ((factor * d - power) << BigInt(dividendBits) <= power) return { factor, shift };
  }
  return undefined;
}

function trailingZeros(d: bigint): number {
  let count = 0;
  while ((d >> BigInt(count)) % 2n === 0n) count++;
  return count;
}

/** Whether the value is never below zero as a signed number. */
function isNonNegative(value: Value): boolean {
  if (value.type === 'b32') return rangeOf(value)[0] >= 0;
  return value.op === 'extend' && (value.as === 'u32' || rangeOf(value.args[0]!)[0] >= 0);
}

class Divider {
  private readonly f: SsaFunction;
  private readonly type: RegisterType;
  private readonly bits: number;
  private readonly make: Make;

  constructor(f: SsaFunction, type: 'b32' | 'b64', make: Make) {
    this.f = f;
    this.type = type;
    this.bits = type === 'b32' ? 32 : 64;
    this.make = make;
  }

  private get signed(): NumberType {
    return this.type === 'b32' ? 's32' : 's64';
  }

  private get unsigned(): NumberType {
    return this.type === 'b32' ? 'u32' : 'u64';
  }

  private constant(value: bigint): Value {
    return this.f.constant(
      this.type,
      this.type === 'b32' ? Number(BigInt.asIntN(32, value)) : BigInt.asIntN(64, value),
    );
  }

  private shift(value: Value, by: number, as: NumberType): Value {
    return by === 0 ? value : this.make('shr', [value, this.f.constant('b32', by)], as);
  }

  private high(value: Value, factor: bigint, as: NumberType): Value {
    return this.make('mulhi', [value, this.constant(factor)], as);
  }

  /** x / d of an unsigned x below 2^dividendBits. */
  ofUnsigned(x: Value, d: bigint, dividendBits = this.bits): Value {
    const zeros = trailingZeros(d);
    if (d === 1n << BigInt(zeros)) return this.shift(x, zeros, this.unsigned);
    const direct = reciprocal(d, this.bits, dividendBits);
    if (direct)
      return this.shift(this.high(x, direct.factor, this.unsigned), direct.shift, this.unsigned);
    if (zeros > 0) {
      const { factor, shift } = reciprocal(d >> BigInt(zeros), this.bits, dividendBits - zeros)!;
      return this.shift(
        this.high(this.shift(x, zeros, this.unsigned), factor, this.unsigned),
        shift,
        this.unsigned,
      );
    }
    // The factor has a bit more than a register: x is added to the product with the carry.
    const length = d.toString(2).length;
    const factor = (1n << BigInt(this.bits + length)) / d + 1n - (1n << BigInt(this.bits));
    const product = this.high(x, factor, this.unsigned);
    const rest = this.shift(this.make('sub', [x, product]), 1, this.unsigned);
    return this.shift(this.make('add', [rest, product]), length - 1, this.unsigned);
  }

  /** x / d of a signed x, towards zero. */
  ofSigned(x: Value, d: bigint): Value {
    const positive = d < 0n ? -d : d;
    const quotient = isNonNegative(x)
      ? this.ofUnsigned(x, positive, this.bits - 1)
      : this.ofEither(x, positive);
    return d < 0n ? this.make('neg', [quotient]) : quotient;
  }

  private ofEither(x: Value, d: bigint): Value {
    const zeros = trailingZeros(d);
    if (d === 1n << BigInt(zeros)) return this.shift(this.biased(x, zeros), zeros, this.signed);
    // A factor exists: a dividend has a bit less than a register.
    const { factor, shift } = reciprocal(d, this.bits, this.bits - 1)!;
    const product = this.high(x, factor, this.signed);
    const isNegative = factor >> BigInt(this.bits - 1) !== 0n;
    const quotient = this.shift(
      isNegative ? this.make('add', [product, x]) : product,
      shift,
      this.signed,
    );
    // For a negative x the quotient is one too low.
    return this.make('add', [quotient, this.shift(x, this.bits - 1, this.unsigned)]);
  }

  /** x, and 2^zeros - 1 more where it is negative. */
  private biased(x: Value, zeros: number): Value {
    const sign = this.shift(x, this.bits - 1, this.signed);
    return this.make('add', [x, this.shift(sign, this.bits - zeros, this.unsigned)]);
  }

  remainder(x: Value, d: bigint, quotient: Value): Value {
    return this.make('sub', [x, this.make('mul', [quotient, this.constant(d)])]);
  }
}

/** The divisor of a division that is replaced. */
function divisorOf(value: Value): bigint | undefined {
  if ((value.op !== 'div' && value.op !== 'rem') || (value.type !== 'b32' && value.type !== 'b64'))
    return undefined;
  const { constant } = resolve(value.args[1]!);
  if (constant === undefined) return undefined;
  const bits = value.type === 'b32' ? 32 : 64;
  const isUnsigned = value.as === 'u32' || value.as === 'u64';
  const divisor = isUnsigned
    ? BigInt.asUintN(bits, BigInt(constant))
    : BigInt.asIntN(bits, BigInt(constant));
  // The result of a division by zero is the device's; the lowest number has no negation.
  return divisor === 0n ||
    divisor === 1n ||
    divisor === -1n ||
    divisor === -(1n << BigInt(bits - 1))
    ? undefined
    : divisor;
}

function divideIn(f: SsaFunction, block: Block): void {
  const values: Value[] = [];
  const quotients = new Map<string, Value>();
  for (const value of block.values) {
    const divisor = divisorOf(value);
    if (divisor === undefined) {
      values.push(value);
      continue;
    }
    const type = value.type as 'b32' | 'b64';
    const divider = new Divider(f, type, (op, args, as) => {
      const made = f.value(op, type, [...args], '', as);
      made.block = block;
      made.span = value.span;
      values.push(made);
      return made;
    });
    const x = resolve(value.args[0]!);
    const range = rangeOf(value);
    const key = `${x.id} ${value.as!} ${divisor}`;
    let quotient = quotients.get(key);
    if (quotient === undefined) {
      quotient =
        value.as === 'u32' || value.as === 'u64'
          ? divider.ofUnsigned(x, divisor)
          : divider.ofSigned(x, divisor);
      quotients.set(key, quotient);
    }
    const result = value.op === 'div' ? quotient : divider.remainder(x, divisor, quotient);
    // The new operations do not show its range.
    if (range !== anySigned) result.range = range;
    value.replacement = result;
  }
  block.values = values;
}

export function divideByConstants(f: SsaFunction): void {
  for (const block of f.blocks)
    if (block.values.some((value) => divisorOf(value) !== undefined)) divideIn(f, block);
}
