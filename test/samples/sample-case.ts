/**
 * A case of a sample kernel: memory, launches, and for each output how it is compared with a GPU's
 * result and with JavaScript's. Cases are data; `run-case.ts` runs them.
 */
import type { Equality, Format } from './equality.js';

export const TARGETS = ['sm_75', 'sm_80', 'sm_90'] as const;
export type Target = (typeof TARGETS)[number];

export type HostArray =
  | Float32Array
  | Float64Array
  | Int8Array
  | Uint8Array
  | Int16Array
  | Uint16Array
  | Int32Array
  | Uint32Array
  | BigInt64Array
  | BigUint64Array;

/** A 2-D texture or surface over an array of the case's memory, rows without gaps. */
export interface ImageArgument {
  image: 'texture' | 'surface';
  memory: string;
  width: number;
  height: number;
}

/** The name of an array of the case's memory, a number, or the bytes of a structure. */
export type SampleArgument = string | number | bigint | Uint8Array | ImageArgument;

type Size = number | readonly [number, number] | readonly [number, number, number];

export interface SampleLaunch {
  /** The case's, unless stated. */
  kernel?: string;
  grid: Size;
  block: Size;
  /** Dynamic shared memory, bytes. */
  shared?: number;
  cooperative?: boolean;
  args: readonly SampleArgument[];
}

export interface SampleOutput {
  /** Against a GPU, and against the reference unless `referenceEqual` is given. */
  equal: Equality;
  /** What the elements of an array of 16-bit words are. */
  format?: Extract<Format, 'f16' | 'bf16'>;
  /** Brings to one form what the order of the threads decides; `reference` gives that form. */
  normalForm?: (values: never) => HostArray;
  /** What JavaScript computes: numbers of the output's format, also where the array holds words. */
  reference?: (target: Target) => ArrayLike<number> | ArrayLike<bigint>;
  referenceEqual?: Equality;
  /**
   * What holds whatever the order of the threads was; throws. It sees the values before
   * `normalForm`.
   */
  check?: (values: never) => void;
}

export interface SampleCase {
  kernel: string;
  /** What is particular about it. */
  name: string;
  memory: Readonly<Record<string, HostArray>>;
  /** Values of the module's variables. */
  variables?: Readonly<Record<string, HostArray>>;
  launches: readonly SampleLaunch[];
  outputs: Readonly<Record<string, SampleOutput>>;
  /** Targets whose module has the kernel; all, unless stated. */
  targets?: readonly Target[];
  /**
   * Why the source gives something else on another target; undefined where the results have to be
   * the same on all.
   */
  differsByTarget?: string;
}

export interface SampleModule {
  /** The file's name without its ending. */
  name: string;
  cases: readonly SampleCase[];
}
