/**
 * Checks of what users pass. Each throws a {@link CudaArgumentError} that names the argument, what
 * was expected, what came, and what to write instead.
 */
import { fileURLToPath } from 'node:url';
import { inspect, types } from 'node:util';

import { CudaArgumentError } from './errors.js';
import { DTYPES } from './dtype.js';
import type { DType } from './dtype.js';
import { isAbortSignal, isPlainObject } from './other-realms.js';

/** A value as an error message shows it; whatever the value does when it is looked at. */
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
    return `${value.constructor.name}(${'length' in value ? String((value as Uint8Array).length) : String(value.byteLength)})`;
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
  'It comes from another copy of async-cuda in this program, whose classes are others. `npm ' +
  'ls async-cuda` shows the copies: let all packages use one, and import or require it in ' +
  'one way.';

/** Whether the object is what was expected, by its name, and yet is refused. */
function isOfAnotherCopy(expected: string, value: unknown, shown: string): boolean {
  if (typeof value !== 'object' || value === null) return false;
  const name = /^[A-Z]\w+/.exec(shown)?.[0];
  return (
    name !== undefined &&
    new RegExp(`\\b(?:an?|the|lazy) ${name}(?:,|$| or | of async-cuda)`).test(expected)
  );
}

/** Whether it is a list. A Proxy that was revoked is none: `Array.isArray` throws for it. */
export function isList(value: unknown): value is readonly unknown[] {
  try {
    return Array.isArray(value);
  } catch {
    return false;
  }
}

/** A whole number from `low` to `high`. */
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

/** What to write for a bigint where a number belongs: only i64 and u64 have bigints on the host. */
export function insteadOfBigint(
  value: unknown,
  low = -Number.MAX_SAFE_INTEGER,
  high = Number.MAX_SAFE_INTEGER,
): string {
  return typeof value === 'bigint' && value >= low && value <= high
    ? `Write ${value}: bigints are for i64 and u64.`
    : '';
}

/** Only the named options; a misspelled one is named, with the nearest that exists. */
export function checkOptions(argument: string, options: unknown, known: readonly string[]): void {
  if (options === undefined) return;
  if (typeof options !== 'object' || options === null || isList(options) || isRevoked(options)) {
    throw invalid(argument, `an object with ${known.join(', ')}`, options);
  }
  if (!isPlainObject(options) && !known.some((name) => name in options)) {
    // A signal in the place of { signal }, say, or an array in that of { into }: it would be
    // ignored.
    const fix = isAbortSignal(options)
      ? 'Write { signal }.'
      : ArrayBuffer.isView(options) && known.includes('into')
        ? 'Write { into }.'
        : '';
    throw invalid(argument, `an object with ${known.join(', ')}`, options, fix);
  }
  // What is inherited is nobody's mistake, and Object.keys() makes an array.
  for (const key in options) {
    if (known.includes(key) || !Object.hasOwn(options, key)) continue;
    const near =
      known.find((name) => distance(name, key) <= 2) ??
      known.find((name) => key.length > 2 && name.startsWith(key));
    throw new CudaArgumentError(
      `${argument}.${key}`,
      `${argument}: there is no option ` +
        `'${key}'.${near === undefined ? ` Options are ${known.join(', ')}.` : ` Did you mean '${near}'?`}`,
    );
  }
}

/** Whether it is a Proxy with nothing behind it: whatever is asked of it throws. */
function isRevoked(value: object): boolean {
  try {
    Object.getPrototypeOf(value);
    return false;
  } catch {
    return types.isProxy(value);
  }
}

/** Levenshtein distance, for suggestions. */
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

/** True or false; `undefined` where the option was left out. */
export function checkBoolean(
  argument: string,
  value: unknown,
): asserts value is boolean | undefined {
  if (value !== undefined && typeof value !== 'boolean')
    throw invalid(argument, 'true or false', value);
}

/**
 * What an object has by a name that the program chose. What every object inherits by that name
 * (`toString`, `constructor`) was not given.
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
 * Text for native code, where it ends at its first NUL character: another name, or another file,
 * would be meant.
 */
export function checkText(argument: string, value: unknown): asserts value is string {
  checkString(argument, value);
  if (value.includes('\0'))
    throw new CudaArgumentError(
      argument,
      `${argument}: expected text without a zero character, got one at ${value.indexOf('\0')}.`,
    );
}

/** A path of the file system. */
export function checkPath(
  argument: string,
  value: unknown,
  expected = 'a path',
): asserts value is string {
  if (typeof value !== 'string' || value === '') throw invalid(argument, expected, value);
  checkText(argument, value);
}

/** The path that a `file:` URL names. */
export function pathOfUrl(argument: string, url: URL): string {
  let path: string;
  try {
    // By its text: it may be of another realm.
    path = fileURLToPath(url.href);
  } catch (cause) {
    // Another host, or an encoded separator.
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

/** A name to be shown in errors. */
export function checkLabel(argument: string, value: unknown): asserts value is string | undefined {
  if (value !== undefined) checkString(argument, value);
}

/** One of the exported dtypes themselves. */
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

/** Whether it looks as a dtype does, and is none of these. */
function isOtherDType(value: unknown): boolean {
  const { name } = (value ?? {}) as { name?: unknown };
  return typeof value === 'object' && typeof name === 'string' && Object.hasOwn(DTYPES, name);
}

export function checkSignal(signal: unknown): asserts signal is AbortSignal | undefined {
  if (signal === undefined || isAbortSignal(signal)) return;
  throw invalid('signal', 'an AbortSignal', signal, 'Write { signal: controller.signal }.');
}

/** Whether it is something to be awaited. */
export function isThenable(value: unknown): value is PromiseLike<unknown> {
  return (
    typeof value === 'object' &&
    value !== null &&
    typeof (value as { then?: unknown }).then === 'function'
  );
}
