/**
 * Binds the rows of `calls.ts` to a loaded libcuda. A symbol is looked up when its call is first
 * made, so that a driver without it can still make all other calls; from then on `run` is koffi's
 * function itself and a call costs what koffi costs.
 */
import type { KoffiLibrary } from '../../native/koffi.js';
import { findFunction } from '../../native/open-library.js';
import { DriverError, MissingSymbolError } from '../error.js';
import type { DriverErrorDetails } from '../error.js';
import type { CUresult } from '../../ground/result.js';
import { CALLS } from './calls.js';
import type { ArgumentsOf, CallName } from './calls.js';
import { resultOf } from './call-row.js';
import type { Prototype } from './call-row.js';

/** One driver call of one loaded library. */
export class DriverCall<A extends readonly unknown[]> {
  /** The name that NVIDIA uses. */
  readonly name: string;
  /**
   * Makes the call and returns its result. The first time it throws MissingSymbolError if the
   * driver does not have the call.
   */
  run: (...args: A) => CUresult;
  readonly #resolve: () => ((...args: A) => CUresult) | undefined;
  #resolved = false;

  constructor(
    name: string,
    resolve: () => ((...args: A) => CUresult) | undefined,
    missing: () => Error,
  ) {
    this.name = name;
    this.#resolve = resolve;
    this.run = (...args) => {
      if (!this.available) throw missing();
      return this.run(...args);
    };
  }

  /** Whether the driver has this call. */
  get available(): boolean {
    if (this.#resolved) return true;
    const found = this.#resolve();
    if (found === undefined) return false;
    this.run = found;
    this.#resolved = true;
    return true;
  }

  /** Makes the error for a result that is not CUDA_SUCCESS. */
  failure(result: CUresult, details?: string | DriverErrorDetails): DriverError {
    return new DriverError(
      this.name,
      result,
      typeof details === 'string' ? { detail: details } : details,
    );
  }
}

export type DriverCalls = { readonly [N in CallName]: DriverCall<ArgumentsOf<N>> };

/** Binds all rows of the table, unresolved. `version` is called only for the text of an error. */
export function bindCalls(library: KoffiLibrary, version: () => string): DriverCalls {
  const calls: Record<string, DriverCall<never[]>> = {};
  for (const [rowName, row] of Object.entries<Prototype>(CALLS)) {
    const name = rowName.replace(/_v\d+$/, '');
    calls[rowName] = new DriverCall<never[]>(
      name,
      () => findSymbol(library, row),
      () => new MissingSymbolError(row.symbols[0], row.since, version()),
    );
  }
  return calls as unknown as DriverCalls;
}

function findSymbol(
  library: KoffiLibrary,
  row: Prototype,
): ((...args: never[]) => CUresult) | undefined {
  const args = row.args.map((arg) => {
    const result = resultOf(arg);
    return result === undefined ? arg : `uintptr_t ${result.name}`;
  });
  for (const symbol of row.symbols) {
    const found = findFunction(library, `int ${symbol}(${args.join(', ')})`);
    if (found !== undefined) return found as (...args: never[]) => CUresult;
  }
  return undefined;
}

/** Formats a version: 13000 as "13.0", 12040 as "12.4". */
export function versionText(version: number): string {
  return `${Math.floor(version / 1000)}.${Math.floor((version % 1000) / 10)}`;
}
