/**
 * Several results of one operation, by name: what a kernel's call gives, the values and indices of
 * `topK`.
 */
import { PARTS } from '../core/holder.js';
import { Tensor } from './tensor.js';

/** What has memory to give back, by either name. */
export interface Closing extends Disposable {
  /**
   * Closes the tensors that were made for it, behind everything that uses them; what was passed
   * stays open.
   */
  close(): void;
}

/** What results of these names have: a result may be called `close` itself. */
export type ClosingResults<Names> = 'close' extends Names ? Disposable : Closing;

/** An object of results. It is a class for its methods only: its own properties are the results. */
export class Results implements Closing {
  /** Names of the results that were made for it. */
  readonly #made: readonly string[];

  /** @param made names of the results that {@link close} closes. Default: all */
  constructor(
    names: readonly string[],
    values: readonly unknown[],
    made: readonly string[] = names,
  ) {
    this.#made = made;
    for (let i = 0; i < names.length; i++) {
      const name = names[i]!;
      // An assignment by this name sets the prototype.
      if (name === '__proto__')
        Object.defineProperty(this, name, {
          value: values[i],
          enumerable: true,
          configurable: true,
          writable: true,
        });
      else (this as Record<string, unknown>)[name] = values[i];
    }
  }

  close(): void {
    this.#close();
  }

  /** {@link close}, for `using`; also where a result is called `close`. */
  [Symbol.dispose](): void {
    this.#close();
  }

  /** What a step gives on with it. @internal */
  get [PARTS](): Iterable<unknown> {
    return Object.values(this) as unknown[];
  }

  #close(): void {
    for (const name of this.#made) {
      const value = (this as Record<string, unknown>)[name];
      if (value instanceof Tensor) value.close();
    }
  }
}
