/**
 * A row of the table of driver calls: the symbols that libcuda exports for a call, newest first,
 * its arguments in C's order, and the CUDA version whose driver has the oldest of those symbols.
 *
 * - Handles, device and host addresses and everything that C takes by pointer are `uintptr_t`:
 *   koffi takes a plain number for it, several times faster than a typed array (measured: 44
 *   against 80 ns for four arguments). `void*` is for images, whose bytes belong to the caller, and
 *   `const char*` for names.
 * - A result is a pointer to its type, as `int* count`. What C writes through it lands in the
 *   provider's own memory (`native-memory.ts`), whose address is the argument.
 * - Symbols of one row share one signature. Where a newer symbol takes other arguments it has a row
 *   of its own, whose name ends in `_v1` or `_v2`; the provider tests which of them exists.
 * - CUmemLocation is passed by value: 8 bytes, which the x86-64, AArch64 and Windows calling
 *   conventions all put where a 64-bit integer goes. It is a `uint64_t` here.
 * - The `_ptds` and `_ptsz` symbols only give another meaning to stream 0. Every call here names
 *   its stream, so they are not used.
 */
import type { CUresult } from '../../ground/result.js';

type CType =
  | 'int'
  | 'uint8_t'
  | 'uint16_t'
  | 'uint32_t'
  | 'uint64_t'
  | 'uintptr_t'
  | 'size_t'
  | 'void*'
  | 'const char*';
export type ResultType = 'int' | 'uint32_t' | 'uint64_t' | 'uintptr_t' | 'size_t' | 'float';

/** A result's C type and C's name of it. */
export type ResultArgument = `${ResultType}* ${string}`;
/** A C type and C's name of the argument. */
export type Argument = `${CType} ${string}` | ResultArgument;

export interface Prototype {
  /** The CUDA version whose driver first had the last of `symbols`. */
  readonly since: string;
  /** What libcuda may export it as, newest first. */
  readonly symbols: readonly [string, ...string[]];
  readonly args: readonly Argument[];
  /** Set for a call that is also made through `node:ffi`; see `node-ffi.ts`. */
  readonly nodeFfi?: true;
}

export interface CallRow extends Prototype {
  /**
   * Set where the method of the interface is the C function itself: it takes the arguments that are
   * no results, and returns the result, or an object of the results by their names. A function
   * returns the text for the error of a failed call.
   */
  readonly plain?: true | ((...args: never[]) => string);
}

/**
 * The rows of a group of calls. The rows of two signatures of one call have names that end in `_v1`
 * and `_v2`.
 */
export type RowsOf<Calls> = {
  readonly [N in keyof Calls as Extract<N, `cu${string}`>]?: Prototype & {
    readonly plain?: true | ((...args: ParametersOf<Calls[N]>) => string);
  };
} & { readonly [N in `${string}_v${number}`]: Prototype };

type ParametersOf<F> = F extends (...args: infer A) => unknown ? A : never;

type ValueOf<A> = A extends `const char* ${string}`
  ? string | null
  : A extends `void* ${string}`
    ? Uint8Array | null
    : A extends `uint64_t ${string}`
      ? number | bigint
      : number;

/** What TypeScript passes for the arguments of C; for a result it is an address. */
export type ValuesOf<A extends readonly Argument[]> = { -readonly [K in keyof A]: ValueOf<A[K]> };

/** Calls through `node:ffi`; each is undefined where the library does not have the symbol. */
export type PointerCallsOf<Rows> = {
  readonly [N in keyof Rows as Rows[N] extends { nodeFfi: true } ? N : never]:
    ((...args: PointersOf<Rows[N]>) => CUresult) | undefined;
};

type PointersOf<Row> = Row extends { args: infer A extends readonly unknown[] }
  ? { -readonly [K in keyof A]: bigint }
  : never;

type Operands<A> = A extends readonly [infer First, ...infer Rest]
  ? First extends ResultArgument
    ? Operands<Rest>
    : [ValueOf<First>, ...Operands<Rest>]
  : [];

type Results<A> = A extends readonly [infer First, ...infer Rest]
  ? First extends ResultArgument
    ? [First, ...Results<Rest>]
    : Results<Rest>
  : [];

type ResultValue<R> = R extends `uint64_t* ${string}` ? bigint : number;

type ResultOf<R extends readonly unknown[]> = R extends readonly []
  ? void
  : R extends readonly [infer Only]
    ? ResultValue<Only>
    : {
        [
          One in R[number] as One extends `${string}* ${infer Name}` ? Name : never
        ]: ResultValue<One>;
      };

/** The methods of the rows that are plain. */
export type PlainCalls<Rows> = {
  [N in keyof Rows as Rows[N] extends { plain: unknown } ? N : never]: Rows[N] extends {
    args: infer A;
  }
    ? (...args: Operands<A>) => ResultOf<Results<A>>
    : never;
};

/** Returns C's type and name of an argument. */
export function typeAndName(argument: Argument): [type: string, name: string] {
  const space = argument.lastIndexOf(' ');
  return [argument.slice(0, space), argument.slice(space + 1)];
}

/** Returns the result that an argument points to; undefined for an argument that is no result. */
export function resultOf(argument: Argument): { type: ResultType; name: string } | undefined {
  const [type, name] = typeAndName(argument);
  if (type === 'void*' || type === 'const char*' || !type.endsWith('*')) return undefined;
  return { type: type.slice(0, -1) as ResultType, name };
}
