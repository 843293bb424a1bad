/** Options that are one number for all channels, or one for each. */
import { CudaArgumentError } from '../core/index.js';
import { invalid } from '../ground/arguments.js';

/** One number for all channels, or one for each. */
export type ChannelNumbers = number | readonly number[];

/** @throws CudaArgumentError for what is neither a finite number nor a list of them */
export function checkChannelNumbers(
  argument: string,
  value: unknown,
  holds?: { readonly what: string; readonly test: (value: number) => boolean },
): asserts value is ChannelNumbers {
  const list = Array.isArray(value) ? (value as unknown[]) : [value];
  const fits = (each: unknown): boolean =>
    typeof each === 'number' && Number.isFinite(each) && (holds === undefined || holds.test(each));
  if (list.length > 0 && list.every(fits)) return;
  throw invalid(
    argument,
    `a number that is finite${holds === undefined ? '' : ` and ${holds.what}`}, or a list of ` +
      'one for each channel',
    value,
  );
}

/** Gives one number for each channel. @throws CudaArgumentError for a list of another length */
export function forChannels(
  argument: string,
  value: ChannelNumbers,
  channels: number,
): readonly number[] {
  if (typeof value === 'number') return Array.from({ length: channels }, () => value);
  if (value.length === channels) return value;
  throw new CudaArgumentError(
    argument,
    `${argument}: expected ${channels} ${channels === 1 ? 'number' : 'numbers'}, one for ` +
      `each channel, got ${value.length}.`,
  );
}
