/**
 * Choosing among constants and blocks by measuring. Each candidate runs on copies of what the
 * kernel writes, between two events of the device. The fastest whose results are those of the first
 * one is chosen, and kept on disk by device, driver, the kernel's source and the arguments' shapes.
 */
import { Buffer } from 'node:buffer';

import { CudaArgumentError, CudaDeviceLostError, CudaError } from '../core/index.js';
import type { CoreDevice, Stream } from '../core/index.js';
import {
  checkBoolean,
  checkInteger,
  checkOptions,
  invalid,
  valueNamed,
} from '../ground/arguments.js';
import { kernelEntry, openDiskCache } from '../core/kept.js';
import { DeviceOp } from '../ops/index.js';
import type { AnyDevice } from '../ops/index.js';
import { Partitioned, Tensor } from '../tensor/index.js';
import type { AnyTensor } from '../tensor/index.js';
import type { CallOptions, KernelChanges, KernelFunction, OtherUses } from './kernel.js';
import type { KernelParams, Parameter } from './parameters.js';
import type { ShapedCallOptions } from './shaped-kernel.js';
import type { Uses } from './uses.js';
import { keyOfUses, usedOf } from './uses.js';

/** Compares two results of one output: host arrays as `tensor.read()` gives them. */
export type Comparison = (
  expected: ArrayLike<number | bigint>,
  actual: ArrayLike<number | bigint>,
  name: string,
) => boolean;

/** Options that `tune` of every kind of kernel takes. */
export interface TuneSettings<C> {
  /** Candidates; the results of the first are the right ones. */
  readonly candidates: readonly C[];
  /**
   * Whether results have to be equal to the first candidate's, to the bit; or a function that
   * compares them. Default: true.
   */
  readonly verify?: boolean | Comparison;
  /** Measurements of each candidate; the shortest counts. Default: 5. */
  readonly rounds?: number;
  /** Whether to measure even if a choice is recorded on disk. Default: false. */
  readonly anew?: boolean;
}

/** Options of {@link KernelFunction.tune}. */
export interface TuneOptions<U extends Uses = Uses> extends TuneSettings<KernelChanges<U>> {
  /** Options of all launches. */
  readonly launch?: CallOptions;
}

/** Options of {@link ElementKernel.tune} and {@link TileKernel.tune}. */
export interface ShapedTuneOptions<C> extends TuneSettings<C> {
  /** Options of all launches. */
  readonly launch?: ShapedCallOptions;
}

/** One candidate and its measurement. */
export interface Candidate<C> {
  readonly candidate: C;
  /** Milliseconds of one launch on the device; undefined where it was not measured. */
  readonly milliseconds: number | undefined;
  /** The error for which it was not chosen. */
  readonly error?: unknown;
}

/** One candidate of {@link KernelFunction.tune}. */
export type TunedCandidate<U extends Uses = Uses> = Candidate<KernelChanges<U>>;

/** The result of {@link ElementKernel.tune} and {@link TileKernel.tune}. */
export interface ShapedTuning<K, C> {
  /** The kernel with the chosen constants and options. */
  readonly kernel: K;
  readonly chosen: C;
  readonly candidates: readonly Candidate<C>[];
  /** Whether the choice was found on disk. */
  readonly recorded: boolean;
}

/** The result of {@link KernelFunction.tune}. */
export type Tuning<S extends KernelParams = KernelParams, U extends Uses = Uses> = ShapedTuning<
  KernelFunction<S, U>,
  KernelChanges<U>
>;

/** The option of a launch that tuning uses. */
interface LaunchedOn {
  readonly device?: AnyDevice;
}

const EXAMPLE =
  'Write { candidates: [{ uses: { TILE: 16 } }, { uses: { TILE: 32 }, block: 128 }] }.';

/** A kernel of any kind, as it is tuned. `C`: the changes of its candidates. */
export interface Tunable<C> {
  readonly parameters: readonly Parameter[];
  /** A key that differs for kernels that compute different results. */
  readonly sourceKey: string;
  with(changes: C): Tunable<C>;
  call(args: unknown, options: LaunchedOn): DeviceOp<unknown>;
  deviceOf(args: Readonly<Record<string, unknown>>, options: LaunchedOn): CoreDevice;
  /** The function that users call. */
  callable(): unknown;
}

type AnyTunable = Pick<Tunable<never>, 'call' | 'parameters'>;

const ROUNDS = 5;
/**
 * Launches are repeated until they take about this many milliseconds together: an event's clock
 * ticks in half microseconds.
 */
const ROUND_MS = 2;
const MOST_LAUNCHES = 200;

interface Recorded {
  readonly chosen: number;
  readonly milliseconds: readonly (number | null)[];
}

/** @throws CudaArgumentError. It rejects where no candidate runs */
export async function tune<C extends { readonly uses?: OtherUses<Uses> }>(
  defined: Tunable<C>,
  args: Readonly<Record<string, unknown>>,
  options: TuneSettings<C> & { readonly launch?: LaunchedOn },
): Promise<ShapedTuning<unknown, C>> {
  if ((options as unknown) === undefined)
    throw invalid('options', 'what to choose among', options, EXAMPLE);
  checkOptions('options', options, ['candidates', 'verify', 'rounds', 'anew', 'launch']);
  const { candidates, verify = true, rounds = ROUNDS, anew = false, launch = {} } = options;
  if (!Array.isArray(candidates) || candidates.length === 0) {
    throw invalid('options.candidates', 'a list of what to choose among', candidates, EXAMPLE);
  }
  if (typeof verify !== 'function') checkBoolean('options.verify', verify);
  checkInteger('options.rounds', rounds, 1, 1000);
  checkBoolean('options.anew', anew);
  const variants = candidates.map((candidate: C) => defined.with(candidate));
  const values = await givenBy(args);
  const device = defined.deviceOf(values, launch);

  const cache = openDiskCache();
  const entry = kernelEntry('tuning', [
    device.name,
    device.properties.computeCapability,
    device.properties.driverVersion,
    defined.sourceKey,
    candidates.map(({ uses = {}, ...rest }: C) => [keyOfUses(usedOf('uses', uses)), rest]),
    Object.entries(values).map(([name, value]) => [name, keyOfArgument(value)]),
    { ...launch, device: undefined },
  ]);
  using trial = await Trial.of(defined, values, device, launch);
  const compare: Comparison | undefined =
    verify === true ? sameBits : verify === false ? undefined : verify;

  const kept = anew ? undefined : recordedIn(await cache?.read(entry), candidates.length);
  if (kept !== undefined && (await stillHolds(trial, variants, kept.chosen, compare))) {
    return tuningResult(
      variants,
      candidates,
      kept.chosen,
      kept.milliseconds.map((each) => each ?? undefined),
      [],
      true,
    );
  }

  const errors: unknown[] = [];
  let expected: Results | undefined;
  for (const [index, variant] of variants.entries()) {
    try {
      const results = await trial.results(variant, compare !== undefined);
      expected ??= results;
      const wrong = differing(expected, results, compare);
      if (wrong !== undefined)
        errors[index] = new CudaError(
          'ERR_CUDA_INVALID_ARGUMENT',
          `tune: output '${wrong}' of candidate ${index} is not that of the first. Pass { ` +
            'verify: false } or a comparison where it may differ.',
        );
    } catch (error) {
      if (error instanceof CudaDeviceLostError || index === 0) throw error;
      errors[index] = error;
    }
  }
  const milliseconds = await trial.measure(variants, errors, rounds);
  const chosen = milliseconds.reduce<number>(
    (best, each, index) =>
      each !== undefined && each < (milliseconds[best] ?? Infinity) ? index : best,
    0,
  );
  const record: Recorded = { chosen, milliseconds: milliseconds.map((each) => each ?? null) };
  // A process that ends after this call has recorded the choice. A choice that cannot be written is
  // measured again.
  await cache?.write(entry, Buffer.from(JSON.stringify(record))).catch(() => undefined);
  return tuningResult(variants, candidates, chosen, milliseconds, errors, false);
}

function tuningResult<C>(
  variants: readonly Tunable<C>[],
  candidates: readonly C[],
  chosen: number,
  milliseconds: readonly (number | undefined)[],
  errors: readonly unknown[],
  recorded: boolean,
): ShapedTuning<unknown, C> {
  return {
    kernel: variants[chosen]!.callable(),
    chosen: candidates[chosen]!,
    recorded,
    candidates: candidates.map((candidate, index) => ({
      candidate,
      milliseconds: milliseconds[index],
      ...(errors[index] === undefined ? {} : { error: errors[index] }),
    })),
  };
}

/** Runs the operations among the arguments, once for all candidates. */
async function givenBy(args: unknown): Promise<Record<string, unknown>> {
  if (typeof args !== 'object' || args === null)
    throw invalid('args', 'the arguments by name', args);
  const entries = Object.entries(args as Record<string, unknown>);
  return Object.fromEntries(
    await Promise.all(
      entries.map(
        async ([name, value]) => [name, value instanceof DeviceOp ? await value : value] as const,
      ),
    ),
  );
}

/** The properties of an argument that a measurement depends on. */
function keyOfArgument(value: unknown): unknown {
  const tensor = value instanceof Partitioned ? (value as Partitioned).tensor : value;
  if (tensor instanceof Tensor) return [tensor.dtype.name, tensor.shape, tensor.strides];
  return typeof value === 'bigint' ? String(value) : value;
}

function recordedIn(bytes: Uint8Array | undefined, candidates: number): Recorded | undefined {
  if (bytes === undefined) return undefined;
  try {
    const found = JSON.parse(Buffer.from(bytes).toString('utf8')) as Partial<Recorded> | null;
    if (
      found?.milliseconds?.length === candidates &&
      Number.isInteger(found.chosen) &&
      found.milliseconds[found.chosen!] !== undefined
    )
      return found as Recorded;
  } catch {
    // The record counts as missing.
  }
  return undefined;
}

/** Whether the recorded candidate gives the right results now. */
async function stillHolds(
  trial: Trial,
  variants: readonly AnyTunable[],
  chosen: number,
  compare: Comparison | undefined,
): Promise<boolean> {
  try {
    if (compare === undefined || chosen === 0) {
      await trial.results(variants[chosen]!, false);
      return true;
    }
    return (
      differing(
        await trial.results(variants[0]!, true),
        await trial.results(variants[chosen]!, true),
        compare,
      ) === undefined
    );
  } catch (error) {
    if (error instanceof CudaDeviceLostError) throw error;
    return false;
  }
}

type Results = ReadonlyMap<string, ArrayLike<number | bigint>>;

/** The name of an output that differs. */
function differing(
  expected: Results,
  actual: Results,
  compare: Comparison | undefined,
): string | undefined {
  if (compare === undefined) return undefined;
  for (const [name, values] of expected) if (!compare(values, actual.get(name)!, name)) return name;
  return undefined;
}

function sameBits(
  expected: ArrayLike<number | bigint>,
  actual: ArrayLike<number | bigint>,
): boolean {
  const [a, b] = [expected, actual].map((array) => {
    const { buffer, byteOffset, byteLength } = array as Uint8Array;
    return Buffer.from(buffer, byteOffset, byteLength);
  });
  return a!.equals(b!);
}

/** Copies of what the kernel writes, and a stream of their own. */
class Trial implements Disposable {
  private readonly device: CoreDevice;
  private readonly stream: Stream;
  private readonly args: Readonly<Record<string, unknown>>;
  private readonly written: readonly { name: string; original: AnyTensor; copy: AnyTensor }[];
  private readonly launch: LaunchedOn;

  private constructor(
    device: CoreDevice,
    args: Readonly<Record<string, unknown>>,
    written: Trial['written'],
    launch: LaunchedOn,
  ) {
    this.device = device;
    this.stream = device.createStream({ label: 'tuning' });
    this.args = args;
    this.written = written;
    this.launch = launch;
  }

  static async of(
    defined: AnyTunable,
    values: Readonly<Record<string, unknown>>,
    device: CoreDevice,
    launch: LaunchedOn,
  ): Promise<Trial> {
    const written: { name: string; original: AnyTensor; copy: AnyTensor }[] = [];
    const args: Record<string, unknown> = { ...values };
    for (const { name, entry } of defined.parameters) {
      const value = valueNamed(values, name);
      if (entry.kind !== 'tensor' || entry.access === 'input') continue;
      if (value instanceof Partitioned)
        throw new CudaArgumentError(
          `args.${name}`,
          `args.${name}: tune works on copies of what is written, and a partition has none. ` +
            'Pass the tensor.',
        );
      if (!(value instanceof Tensor))
        throw invalid(
          `args.${name}`,
          'a Tensor',
          value,
          value === undefined
            ? 'An output that is left out would be made in each launch: pass one to measure with.'
            : '',
        );
      const original = value as AnyTensor;
      const copy = await original.dup();
      written.push({ name, original, copy });
      args[name] = copy;
    }
    return new Trial(device, args, written, launch);
  }

  /** Gives the outputs of a candidate that starts from the original contents. */
  async results(variant: AnyTunable, read: boolean): Promise<Results> {
    for (const { original, copy } of this.written) await copy.copyFrom(original).runOn(this.stream);
    await variant.call(this.args, this.launch).runOn(this.stream);
    const results = new Map<string, ArrayLike<number | bigint>>();
    if (read)
      for (const { name, copy } of this.written)
        results.set(name, await copy.read().runOn(this.stream));
    return results;
  }

  /**
   * Gives the milliseconds of one launch of each candidate that has no error. Each round measures
   * all of them, so that none runs only while the clock is coolest.
   */
  async measure(
    variants: readonly AnyTunable[],
    errors: readonly unknown[],
    rounds: number,
  ): Promise<(number | undefined)[]> {
    const shortest = variants.map((): number | undefined => undefined);
    const launches = variants.map(() => 1);
    for (let round = 0; round <= rounds; round++) {
      for (const [index, variant] of variants.entries()) {
        if (errors[index] !== undefined) continue;
        const took = await this.time(variant, launches[index]!);
        // The first round only determines how many launches a measurement needs.
        if (round === 0)
          launches[index] = Math.min(
            MOST_LAUNCHES,
            Math.max(1, Math.ceil(ROUND_MS / Math.max(took, 1e-3))),
          );
        else shortest[index] = Math.min(took, shortest[index] ?? Infinity);
      }
    }
    return shortest;
  }

  private async time(variant: AnyTunable, launches: number): Promise<number> {
    using start = this.device.createEvent();
    using end = this.device.createEvent();
    const { stream } = this;
    stream.record(start);
    const op = variant.call(this.args, this.launch);
    const runs = Array.from({ length: launches }, () => op.runOn(stream));
    stream.record(end);
    await Promise.all(runs);
    return (await start.elapsed(end)) / launches;
  }

  [Symbol.dispose](): void {
    for (const { copy } of this.written) copy.close();
    if (!this.stream.isUnusable) this.stream.close();
  }
}
