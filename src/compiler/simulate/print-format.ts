/** The device's printf: a format as in C, with i32, u32, i64, u64 and f64 values. */
import type { Value } from './memory.js';

/**
 * The limit of widths and precisions, which is also the CPU device's: a larger one counts as this.
 */
const MOST_PLACES = 4096;

const CONVERSION =
  /%([-+ #0]*)([1-9]\d*)?(?:\.(\d*))?(?:hh|h|ll|l|j|z|t|L)?([diouxXcsfFeEgGaAp%])/g;

interface Conversion {
  readonly flags: string;
  readonly width: number;
  readonly precision: number | undefined;
}

const whole = (value: Value): bigint =>
  typeof value === 'number'
    ? Number.isFinite(value)
      ? BigInt(Math.trunc(value))
      : 0n
    : BigInt(value);
/** The value as an unsigned integer, with the same bits. */
const unsigned = (value: Value): bigint =>
  BigInt.asUintN(typeof value === 'bigint' ? 64 : 32, whole(value));

function padded(
  sign: string,
  digits: string,
  { flags, width }: Conversion,
  zeros: boolean,
): string {
  const missing = width - sign.length - digits.length;
  if (missing <= 0) return sign + digits;
  if (flags.includes('-')) return sign + digits + ' '.repeat(missing);
  return zeros && flags.includes('0')
    ? sign + '0'.repeat(missing) + digits
    : ' '.repeat(missing) + sign + digits;
}

const signOf = (negative: boolean, flags: string): string =>
  negative ? '-' : flags.includes('+') ? '+' : flags.includes(' ') ? ' ' : '';

function integer(value: bigint, radix: number, prefix: string, conversion: Conversion): string {
  const { flags, precision } = conversion;
  const size = value < 0n ? -value : value;
  const digits =
    size === 0n && precision === 0 ? '' : size.toString(radix).padStart(precision ?? 0, '0');
  const sign =
    radix === 10 && prefix === 'd'
      ? signOf(value < 0n, flags)
      : flags.includes('#') && size !== 0n
        ? prefix.replace('d', '')
        : '';
  // As in C, the flag 0 has no effect beside a precision.
  return padded(sign, digits, conversion, precision === undefined);
}

/**
 * value · 10^power to the nearest integer, ties to even, where toFixed rounds ties up. `value` is
 * not negative.
 */
function scaled(value: number, power: number): bigint {
  const bits = new BigUint64Array(Float64Array.of(value).buffer)[0]!;
  const field = Number(bits >> 52n);
  const fraction = bits & 0xfffffffffffffn;
  const exponent = Math.max(field, 1) - 1075;
  let numerator = field === 0 ? fraction : fraction | 0x10000000000000n;
  let denominator = 1n;
  if (exponent >= 0) numerator <<= BigInt(exponent);
  else denominator <<= BigInt(-exponent);
  if (power >= 0) numerator *= 10n ** BigInt(power);
  else denominator *= 10n ** BigInt(-power);
  const quotient = numerator / denominator;
  const rest = (numerator - quotient * denominator) * 2n;
  return rest > denominator || (rest === denominator && (quotient & 1n) === 1n)
    ? quotient + 1n
    : quotient;
}

/** Puts the point before the last `digits` digits. */
function pointed(digits: string, after: number, keepPoint: boolean): string {
  const text = digits.padStart(after + 1, '0');
  return after === 0
    ? `${text}${keepPoint ? '.' : ''}`
    : `${text.slice(0, -after)}.${text.slice(-after)}`;
}

const fixed = (value: number, digits: number, keepPoint: boolean): string =>
  pointed(scaled(value, digits).toString(), digits, keepPoint);

/** The decimal exponent of the number when it is written with so many digits after the first. */
function exponentOf(value: number, digits: number): number {
  if (value === 0) return 0;
  const exponent = Number(value.toExponential().split('e')[1]);
  // Rounding may carry into one more digit.
  return scaled(value, digits - exponent).toString().length > digits + 1 ? exponent + 1 : exponent;
}

function exponential(value: number, digits: number, keepPoint: boolean): string {
  const exponent = exponentOf(value, digits);
  const size = Math.abs(exponent).toString().padStart(2, '0');
  const mantissa = pointed(scaled(value, digits - exponent).toString(), digits, keepPoint);
  return `${mantissa}e${exponent < 0 ? '-' : '+'}${size}`;
}

function general(value: number, precision: number, alternate: boolean): string {
  const digits = precision === 0 ? 1 : precision;
  const exponent = exponentOf(value, digits - 1);
  const text =
    exponent < -4 || exponent >= digits
      ? exponential(value, digits - 1, alternate)
      : fixed(value, digits - 1 - exponent, alternate);
  return alternate || !text.includes('.') ? text : text.replace(/\.?0+(?=e|$)/, '');
}

function float(value: Value, letter: string, conversion: Conversion): string {
  const number = Number(value);
  const { flags, precision = 6 } = conversion;
  const size = Math.abs(number);
  const sign = signOf(number < 0 || Object.is(number, -0), flags);
  let digits: string;
  if (!Number.isFinite(number)) digits = Number.isNaN(number) ? 'nan' : 'inf';
  else if (letter === 'f' || letter === 'F') digits = fixed(size, precision, flags.includes('#'));
  else if (letter === 'e' || letter === 'E')
    digits = exponential(size, precision, flags.includes('#'));
  else if (letter === 'g' || letter === 'G') digits = general(size, precision, flags.includes('#'));
  else digits = hexadecimal(size, conversion.precision);
  const text = padded(sign, digits, conversion, Number.isFinite(number));
  return letter === letter.toUpperCase() ? text.toUpperCase() : text;
}

/** %a */
function hexadecimal(value: number, precision: number | undefined): string {
  if (value === 0)
    return `0x0${precision === undefined || precision === 0 ? '' : `.${'0'.repeat(precision)}`}p+0`;
  const bits = new BigUint64Array(Float64Array.of(value).buffer)[0]!;
  const field = Number(bits >> 52n);
  const exponent = field === 0 ? -1022 : field - 1023;
  let fraction = (bits & 0xfffffffffffffn) | (field === 0 ? 0n : 0x10000000000000n);
  let places = 13;
  if (precision !== undefined && precision < 13) {
    const dropped = BigInt(4 * (13 - precision));
    const rest = fraction & ((1n << dropped) - 1n);
    const half = 1n << (dropped - 1n);
    fraction >>= dropped;
    if (rest > half || (rest === half && (fraction & 1n) === 1n)) fraction++;
    places = precision;
  }
  const digits = fraction.toString(16).padStart(places + 1, '0');
  const after = digits.slice(1);
  const shown = precision === undefined ? after.replace(/0+$/, '') : after.padEnd(precision, '0');
  return `0x${digits[0]!}${shown === '' ? '' : `.${shown}`}p${exponent < 0 ? '' : '+'}${exponent}`;
}

const CONVERSIONS: Readonly<Record<string, (value: Value, conversion: Conversion) => string>> = {
  d: (value, conversion) => integer(whole(value), 10, 'd', conversion),
  i: (value, conversion) => integer(whole(value), 10, 'd', conversion),
  u: (value, conversion) => integer(unsigned(value), 10, '', conversion),
  o: (value, conversion) => integer(unsigned(value), 8, '0', conversion),
  x: (value, conversion) => integer(unsigned(value), 16, '0x', conversion),
  X: (value, conversion) => integer(unsigned(value), 16, '0x', conversion).toUpperCase(),
  p: (value, conversion) =>
    integer(unsigned(value), 16, '0x', { ...conversion, flags: `${conversion.flags}#` }),
  c: (value, conversion) =>
    padded('', String.fromCharCode(Number(whole(value)) & 0xff), conversion, false),
  s: (value, conversion) => padded('', String(value), conversion, false),
};

/** Gives the text that printf writes. A conversion without a value stays as it is. */
export function formatPrint(format: string, values: readonly Value[]): string {
  let next = 0;
  return format.replace(
    CONVERSION,
    (
      whole,
      flags: string,
      width: string | undefined,
      precision: string | undefined,
      letter: string,
    ) => {
      if (letter === '%') return '%';
      if (next >= values.length) return whole;
      const places = (digits: string): number => Math.min(Number(digits), MOST_PLACES);
      const conversion = {
        flags,
        width: places(width ?? '0'),
        precision: precision === undefined ? undefined : places(precision),
      };
      return letter in CONVERSIONS
        ? CONVERSIONS[letter]!(values[next++]!, conversion)
        : float(values[next++]!, letter, conversion);
    },
  );
}
