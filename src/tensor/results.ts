/**
 * Several results of one operation, by name: those of a kernel's call, the values and indices of
 * `topK`.
 */
import { PARTS } from '../core/holder.js';
import { Tensor } from './tensor.js';

/** An object that owns memory: `close()` and `using` give it back. */
export interface Closing extends Disposable {
  /**
   * Closes the tensors that the operation made, after all work that uses them; tensors that were
   * passed to it stay open.
   */
  close(): void;
}

/** The methods of results with these names: one of the results may be named `close`. */
export type ClosingResults<Names> = 'close' extends Names ? Disposable : Closing;

/** An object whose own properties are the results. It is a class for its methods only. */
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

  /** {@link close}, for `using`; also where a result is named `close`. */
  [Symbol.dispose](): void {
    this.#close();
  }

  /** Values that a step gives with it. @internal */
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
