/**
 * The printf of kernels: a C format string and the arguments packed as for vprintf, each aligned to
 * its own size. Integers narrower than 32 bits and floats arrive promoted, as in C.
 */

/** The memory of a kernel's printf: its text and its arguments. */
export interface PrintfSource {
  view: DataView;
  /** Returns the zero-terminated text at an address. */
  text(address: number): string;
}

interface Directive {
  left: boolean;
  plus: boolean;
  space: boolean;
  alternate: boolean;
  zero: boolean;
  width: number;
  /** The precision; -1 where none is given. */
  precision: number;
  wide: boolean;
  conversion: string;
}

/**
 * A larger width or precision counts as this: C would write gigabytes, and the digits of a
 * precision of 10^9 take longer than any program runs. The exact value of every double has fewer
 * digits.
 */
const MOST_PLACES = 4096;
/** Largest number of characters of one call; the rest is dropped. */
const MOST_TEXT = 1 << 20;

/**
 * A width does not begin with 0, which is a flag, so that a directive can be read in one way only.
 */
const DIRECTIVE =
  /%([-+ #0]*)(\*|[1-9]\d*)?(?:\.(\*|-?\d*))?(hh|h|ll|l|j|z|t|L)?([diouxXcspfFeEgGaA%n])/g;

export function formatPrintf(format: string, source: PrintfSource, args: number): string {
  let at = args;
  const word = (): number => {
    at = (at + 3) & ~3;
    const value = source.view.getInt32(at >>> 0, true);
    at += 4;
    return value;
  };
  const long = (): bigint => {
    at = (at + 7) & ~7;
    const value = source.view.getBigInt64(at >>> 0, true);
    at += 8;
    return value;
  };
  const double = (): number => {
    at = (at + 7) & ~7;
    const value = source.view.getFloat64(at >>> 0, true);
    at += 8;
    return value;
  };
  const convert = (
    whole: string,
    flags: string,
    width?: string,
    precision?: string,
    length?: string,
    conversion?: string,
  ): string => {
    const d: Directive = {
      left: flags.includes('-'),
      plus: flags.includes('+'),
      space: flags.includes(' '),
      alternate: flags.includes('#'),
      zero: flags.includes('0'),
      width: 0,
      precision: -1,
      conversion: conversion!,
      // long is 64 bits wide on the device, as on the hosts that CUDA supports, except Windows.
      wide: length === 'l' || length === 'll' || length === 'j' || length === 'z' || length === 't',
    };
    if (width === '*') {
      d.width = word();
      if (d.width < 0) {
        d.left = true;
        d.width = -d.width;
      }
    } else if (width !== undefined) {
      d.width = Number(width);
    }
    d.width = Math.min(d.width, MOST_PLACES);
    if (precision === '*') d.precision = Math.max(word(), -1);
    else if (precision !== undefined) d.precision = Math.max(Number(precision), -1);
    d.precision = Math.min(d.precision, MOST_PLACES);
    switch (conversion) {
      case '%':
        return '%';
      case 'd':
      case 'i':
        return integer(d, d.wide ? long() : BigInt(narrowSigned(word(), length)));
      case 'u':
      case 'o':
      case 'x':
      case 'X':
        return integer(
          d,
          d.wide ? BigInt.asUintN(64, long()) : BigInt(narrowUnsigned(word(), length)),
        );
      case 'p': {
        const pointer = BigInt.asUintN(64, long());
        return pad(d, '', pointer === 0n ? '(nil)' : `0x${pointer.toString(16)}`, false);
      }
      case 'c':
        return pad(d, '', String.fromCharCode(word() & 0xff), false);
      case 's': {
        const address = Number(BigInt.asUintN(32, long()));
        const text = address === 0 ? '(null)' : source.text(address);
        return pad(d, '', d.precision < 0 ? text : text.slice(0, d.precision), false);
      }
      case 'n':
        return whole;
      default:
        return floating(d, double());
    }
  };
  let text = '';
  let end = 0;
  for (const found of format.matchAll(DIRECTIVE)) {
    const [whole, flags, width, precision, length, conversion] = found;
    text +=
      format.slice(end, found.index) + convert(whole, flags!, width, precision, length, conversion);
    end = found.index + whole.length;
    if (text.length > MOST_TEXT) return text.slice(0, MOST_TEXT);
  }
  return text + format.slice(end);
}

function narrowSigned(value: number, length: string | undefined): number {
  return length === 'hh' ? (value << 24) >> 24 : length === 'h' ? (value << 16) >> 16 : value;
}

function narrowUnsigned(value: number, length: string | undefined): number {
  return length === 'hh' ? value & 0xff : length === 'h' ? value & 0xffff : value >>> 0;
}

function signOf(d: Directive, negative: boolean): string {
  return negative ? '-' : d.plus ? '+' : d.space ? ' ' : '';
}

/** Pads a conversion. `zeros`: the flag 0 pads between the sign (or 0x) and the digits. */
function pad(d: Directive, sign: string, body: string, zeros: boolean): string {
  const missing = d.width - sign.length - body.length;
  if (missing <= 0) return sign + body;
  if (d.left) return sign + body + ' '.repeat(missing);
  return zeros ? sign + '0'.repeat(missing) + body : ' '.repeat(missing) + sign + body;
}

function integer(d: Directive, value: bigint): string {
  const signed = d.conversion === 'd' || d.conversion === 'i';
  const magnitude = value < 0n ? -value : value;
  let digits = magnitude.toString(
    d.conversion === 'o' ? 8 : d.conversion === 'x' || d.conversion === 'X' ? 16 : 10,
  );
  if (d.conversion === 'X') digits = digits.toUpperCase();
  if (d.precision === 0 && value === 0n) digits = '';
  if (d.precision > digits.length) digits = digits.padStart(d.precision, '0');
  let prefix = signed ? signOf(d, value < 0n) : '';
  if (d.alternate && d.conversion === 'o' && !digits.startsWith('0')) digits = `0${digits}`;
  if (d.alternate && value !== 0n && (d.conversion === 'x' || d.conversion === 'X'))
    prefix = d.conversion === 'x' ? '0x' : '0X';
  // A precision switches the flag 0 off, as in C.
  return pad(d, prefix, digits, d.zero && d.precision < 0);
}

function floating(d: Directive, value: number): string {
  const upper = d.conversion !== d.conversion.toLowerCase();
  const negative = value < 0 || Object.is(value, -0);
  const magnitude = Math.abs(value);
  const finite = Number.isFinite(value);
  let prefix = signOf(d, negative);
  let body: string;
  if (!finite) {
    body = Number.isNaN(value) ? 'nan' : 'inf';
  } else {
    switch (d.conversion.toLowerCase()) {
      case 'f':
        body = fixed(magnitude, d.precision < 0 ? 6 : d.precision, d.alternate);
        break;
      case 'e':
        body = exponential(magnitude, d.precision < 0 ? 6 : d.precision, d.alternate);
        break;
      case 'g':
        body = general(magnitude, d.precision < 0 ? 6 : Math.max(d.precision, 1), d.alternate);
        break;
      default:
        prefix += upper ? '0X' : '0x';
        body = hexadecimal(magnitude, d.precision, d.alternate);
    }
  }
  if (upper) body = body.toUpperCase();
  return pad(d, prefix, body, d.zero && finite);
}

/**
 * Returns `magnitude` times 10 to the `power`, rounded to an integer, ties to even. JavaScript's
 * toFixed rounds ties up, C's printf to even; a double is an integer times a power of two, so this
 * is exact.
 */
function scaled(magnitude: number, power: number): bigint {
  const bits = new DataView(new ArrayBuffer(8));
  bits.setFloat64(0, magnitude);
  const raw = bits.getBigUint64(0);
  const field = Number(raw >> 52n);
  let top = field === 0 ? raw : (raw & 0xfffffffffffffn) | 0x10000000000000n;
  let bottom = 1n;
  const exponent = Math.max(field, 1) - 1075;
  if (exponent >= 0) top <<= BigInt(exponent);
  else bottom <<= BigInt(-exponent);
  if (power >= 0) top *= 10n ** BigInt(power);
  else bottom *= 10n ** BigInt(-power);
  const quotient = top / bottom;
  const twice = (top % bottom) * 2n;
  return twice > bottom || (twice === bottom && (quotient & 1n) === 1n) ? quotient + 1n : quotient;
}

function withPoint(digits: string, precision: number, point: boolean): string {
  if (precision === 0) return point ? `${digits}.` : digits;
  const padded = digits.padStart(precision + 1, '0');
  return `${padded.slice(0, -precision)}.${padded.slice(-precision)}`;
}

function fixed(magnitude: number, precision: number, point: boolean): string {
  return withPoint(scaled(magnitude, precision).toString(), precision, point);
}

/**
 * Returns the digits of d.ddd, one more than `precision`, and the power of ten that belongs to
 * them.
 */
function digitsOf(magnitude: number, precision: number): { digits: string; exponent: number } {
  if (magnitude === 0) return { digits: '0'.repeat(precision + 1), exponent: 0 };
  let exponent = Number(magnitude.toExponential().split('e')[1]);
  for (;;) {
    const digits = scaled(magnitude, precision - exponent).toString();
    if (digits.length === precision + 1) return { digits, exponent };
    exponent += digits.length > precision + 1 ? 1 : -1;
  }
}

function exponential(magnitude: number, precision: number, point: boolean): string {
  const { digits, exponent } = digitsOf(magnitude, precision);
  const power = String(Math.abs(exponent)).padStart(2, '0');
  return `${withPoint(digits, precision, point)}e${exponent < 0 ? '-' : '+'}${power}`;
}

function general(magnitude: number, precision: number, alternate: boolean): string {
  const { exponent } = digitsOf(magnitude, precision - 1);
  const plain = exponent >= -4 && exponent < precision;
  const text = plain
    ? fixed(magnitude, precision - 1 - exponent, alternate)
    : exponential(magnitude, precision - 1, alternate);
  if (alternate) return text;
  const [mantissa, power] = text.split('e') as [string, string?];
  const trimmed = mantissa.includes('.') ? mantissa.replace(/\.?0+$/, '') : mantissa;
  return power === undefined ? trimmed : `${trimmed}e${power}`;
}

function hexadecimal(magnitude: number, precision: number, point: boolean): string {
  if (magnitude === 0)
    return `0${precision > 0 ? `.${'0'.repeat(precision)}` : point ? '.' : ''}p+0`;
  const bits = new DataView(new ArrayBuffer(8));
  bits.setFloat64(0, magnitude);
  const raw = bits.getBigUint64(0);
  let exponent = Number(raw >> 52n) - 1023;
  let mantissa = raw & 0xfffffffffffffn;
  let lead = 1n;
  if (exponent === -1023) {
    lead = 0n;
    exponent = -1022;
  }
  let digits = mantissa.toString(16).padStart(13, '0');
  if (precision >= 0 && precision < 13) {
    const drop = BigInt(4 * (13 - precision));
    const all = (lead << 52n) | mantissa;
    const half = 1n << (drop - 1n);
    const rest = all & ((1n << drop) - 1n);
    let kept = all >> drop;
    if (rest > half || (rest === half && (kept & 1n) === 1n)) kept += 1n;
    lead = kept >> BigInt(4 * precision);
    mantissa = kept & ((1n << BigInt(4 * precision)) - 1n);
    digits = precision === 0 ? '' : mantissa.toString(16).padStart(precision, '0');
  } else if (precision < 0) {
    digits = digits.replace(/0+$/, '');
  } else {
    digits = digits.padEnd(precision, '0');
  }
  const fraction = digits === '' ? (point ? '.' : '') : `.${digits}`;
  return `${lead}${fraction}p${exponent < 0 ? '-' : '+'}${Math.abs(exponent)}`;
}
