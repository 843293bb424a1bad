/**
 * Checks of the arguments that programs pass. Each throws a {@link CudaArgumentError} that names
 * the argument, what was expected, what was passed, and what to write instead.
 */
import { fileURLToPath } from 'node:url';
import { inspect, types } from 'node:util';

import { CudaArgumentError } from './errors.js';
import { DTYPES } from './dtype.js';
import type { DType } from './dtype.js';
import { isAbortSignal, isPlainObject } from './other-realms.js';

/** The value as an error message shows it. A value whose inspection throws is shown by its type. */
export function show(value: unknown): string {
  try {
    return inspected(value);
  } catch {
    return `a ${typeof value}`;
  }
}

function inspected(value: unknown): string {
  if (typeof value === 'string' && value.length > 60)
    return `${JSON.stringify(value.slice(0, 57))}…`;
  if (ArrayBuffer.isView(value)) {
    const length = 'length' in value ? (value as Uint8Array).length : value.byteLength;
    return `${value.constructor.name}(${length})`;
  }
  return inspect(value, {
    depth: 0,
    breakLength: Infinity,
    maxStringLength: 60,
    maxArrayLength: 8,
  });
}

export function invalid(
  argument: string,
  expected: string,
  value: unknown,
  fix = '',
): CudaArgumentError {
  const shown = show(value);
  const advice = isOfAnotherCopy(expected, value, shown) ? OTHER_COPY : fix;
  return new CudaArgumentError(
    argument,
    `${argument}: expected ${expected}, got ${shown}.${advice === '' ? '' : ` ${advice}`}`,
  );
}

const OTHER_COPY =
  'It comes from another copy of async-cuda in this program, whose classes differ. `npm ls ' +
  'async-cuda` shows the copies: let all packages use one, and import or require it in ' +
  'one way.';

/**
 * Whether the object has the name of the expected class: then it is of another copy of the package.
 */
function isOfAnotherCopy(expected: string, value: unknown, shown: string): boolean {
  if (typeof value !== 'object' || value === null) return false;
  const name = /^[A-Z]\w+/.exec(shown)?.[0];
  return (
    name !== undefined &&
    new RegExp(`\\b(?:an?|the|lazy) ${name}(?:,|$| or | of async-cuda)`).test(expected)
  );
}

/**
 * Whether the value is an array. For a revoked Proxy, for which `Array.isArray` throws, it is
 * false.
 */
export function isList(value: unknown): value is readonly unknown[] {
  try {
    return Array.isArray(value);
  } catch {
    return false;
  }
}

/** Throws unless the value is a whole number from `low` to `high`. */
export function checkInteger(
  argument: string,
  value: unknown,
  low: number,
  high: number,
  unit = '',
): asserts value is number {
  if (typeof value === 'number' && Number.isInteger(value) && value >= low && value <= high) return;
  const range = high >= Number.MAX_SAFE_INTEGER ? `of at least ${low}` : `from ${low} to ${high}`;
  throw invalid(
    argument,
    `a whole number ${range}${unit === '' ? '' : ` (${unit})`}`,
    value,
    insteadOfBigint(value, low, high),
  );
}

/** The advice for a bigint in the place of a number. Only i64 and u64 have bigints on the host. */
export function insteadOfBigint(
  value: unknown,
  low = -Number.MAX_SAFE_INTEGER,
  high = Number.MAX_SAFE_INTEGER,
): string {
  return typeof value === 'bigint' && value >= low && value <= high
    ? `Write ${value}: bigints are for i64 and u64.`
    : '';
}

/** Throws for an option that is not `known`, and suggests the nearest known name. */
export function checkOptions(argument: string, options: unknown, known: readonly string[]): void {
  if (options === undefined) return;
  if (typeof options !== 'object' || options === null || isList(options) || isRevoked(options)) {
    throw invalid(argument, `an object with ${known.join(', ')}`, options);
  }
  if (!isPlainObject(options) && !known.some((name) => name in options)) {
    // For example a signal in the place of { signal }, or an array in the place of { into }. It
    // would be ignored.
    const fix = isAbortSignal(options)
      ? 'Write { signal }.'
      : ArrayBuffer.isView(options) && known.includes('into')
        ? 'Write { into }.'
        : '';
    throw invalid(argument, `an object with ${known.join(', ')}`, options, fix);
  }
  // Inherited properties are not options. Object.keys() would allocate an array.
  for (const key in options) {
    if (known.includes(key) || !Object.hasOwn(options, key)) continue;
    const near =
      known.find((name) => distance(name, key) <= 2) ??
      known.find((name) => key.length > 2 && name.startsWith(key));
    throw new CudaArgumentError(
      `${argument}.${key}`,
      `${argument}: there is no option '${key}'. ` +
        (near === undefined ? `Options are ${known.join(', ')}.` : `Did you mean '${near}'?`),
    );
  }
}

/** Whether the value is a revoked Proxy: every operation on it throws. */
function isRevoked(value: object): boolean {
  try {
    Object.getPrototypeOf(value);
    return false;
  } catch {
    return types.isProxy(value);
  }
}

/** The Levenshtein distance, for suggestions. */
export function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      next[j] = Math.min(
        row[j]! + 1,
        next[j - 1]! + 1,
        row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1),
      );
    }
    row = next;
  }
  return row[b.length]!;
}

/** Throws unless the value is true, false, or `undefined` (the option was left out). */
export function checkBoolean(
  argument: string,
  value: unknown,
): asserts value is boolean | undefined {
  if (value !== undefined && typeof value !== 'boolean')
    throw invalid(argument, 'true or false', value);
}

/**
 * The value of an object's property whose name the program chose. A property that every object
 * inherits by that name (`toString`, `constructor`) counts as absent.
 */
export function valueNamed(values: object, name: string): unknown {
  return Object.hasOwn(values, name) || !(name in Object.prototype)
    ? (values as Readonly<Record<string, unknown>>)[name]
    : undefined;
}

export function checkString(argument: string, value: unknown): asserts value is string {
  if (typeof value !== 'string') throw invalid(argument, 'a string', value);
}

/**
 * Throws unless the value is a string without a NUL character. Native code would end the text
 * there, and use another name or another file.
 */
export function checkText(argument: string, value: unknown): asserts value is string {
  checkString(argument, value);
  if (value.includes('\0'))
    throw new CudaArgumentError(
      argument,
      `${argument}: expected text without a zero character, got one at ${value.indexOf('\0')}.`,
    );
}

/** Throws unless the value is a path of the file system. */
export function checkPath(
  argument: string,
  value: unknown,
  expected = 'a path',
): asserts value is string {
  if (typeof value !== 'string' || value === '') throw invalid(argument, expected, value);
  checkText(argument, value);
}

/** The path of a `file:` URL. */
export function pathOfUrl(argument: string, url: URL): string {
  let path: string;
  try {
    // The text is passed, because the URL may be of another realm.
    path = fileURLToPath(url.href);
  } catch (cause) {
    // The URL has a host of another machine, or an encoded separator.
    throw new CudaArgumentError(
      argument,
      `${argument}: expected a URL of a file on this machine, got ${url.href}: ` +
        `${(cause as Error).message}.`,
      { cause },
    );
  }
  checkText(argument, path);
  return path;
}

/** Throws unless the value is a label for errors, or undefined. */
export function checkLabel(argument: string, value: unknown): asserts value is string | undefined {
  if (value !== undefined) checkString(argument, value);
}

/** The exported dtypes, by identity. */
const KNOWN: ReadonlySet<unknown> = new Set(Object.values(DTYPES));

export function checkDType(dtype: unknown, argument = 'dtype'): asserts dtype is DType {
  if (KNOWN.has(dtype)) return;
  const fix =
    typeof dtype === 'string' && Object.hasOwn(DTYPES, dtype)
      ? `Import ${dtype} from 'async-cuda/core' and pass it without quotes.`
      : isOtherDType(dtype)
        ? OTHER_COPY
        : '';
  throw invalid(argument, `one of ${Object.keys(DTYPES).join(', ')}`, dtype, fix);
}

/** Whether the value has the form of a dtype. It is then a dtype of another copy of the package. */
function isOtherDType(value: unknown): boolean {
  const { name } = (value ?? {}) as { name?: unknown };
  return typeof value === 'object' && typeof name === 'string' && Object.hasOwn(DTYPES, name);
}

export function checkSignal(signal: unknown): asserts signal is AbortSignal | undefined {
  if (signal === undefined || isAbortSignal(signal)) return;
  throw invalid('signal', 'an AbortSignal', signal, 'Write { signal: controller.signal }.');
}

/** Whether the value has a `then` method. */
export function isThenable(value: unknown): value is PromiseLike<unknown> {
  return (
    typeof value === 'object' &&
    value !== null &&
    typeof (value as { then?: unknown }).then === 'function'
  );
}
