/**
 * `instanceof` across two copies of the package. A program may hold two, in two versions or one
 * bundled and one not; a class of one copy is then another object than the class of the other.
 * Classes of errors carry a name under a registered symbol, and compare by it.
 */

/** A class's own name. A class that a program derives from one of ours has none of its own. */
export const CLASS_NAME: unique symbol = Symbol.for('async-cuda.class');

/** The base of the package's errors: an instance of a class of another copy counts as one of ours. */
export class NamedError extends Error {
  /** @internal */
  static readonly [CLASS_NAME]: string;

  static override [Symbol.hasInstance](value: unknown): boolean {
    if (typeof value !== 'object' || value === null) return false;
    if (Function.prototype[Symbol.hasInstance].call(this, value)) return true;
    if (!Object.hasOwn(this, CLASS_NAME)) return false;
    let prototype = Object.getPrototypeOf(value) as { constructor: typeof NamedError } | null;
    while (prototype !== null) {
      const { constructor } = prototype;
      if (Object.hasOwn(constructor, CLASS_NAME) && constructor[CLASS_NAME] === this[CLASS_NAME])
        return true;
      prototype = Object.getPrototypeOf(prototype) as typeof prototype;
    }
    return false;
  }
}
