/**
 * `instanceof` across two copies of the package. A program may hold two copies, in two versions, or
 * one bundled and one not. A class of one copy is then a different object from the class of the
 * other. Error classes carry a name under a registered symbol, and `instanceof` compares that name.
 */

/**
 * The key of a class's own name. A class that a program derives from one of these has no name of
 * its own.
 */
export const CLASS_NAME: unique symbol = Symbol.for('async-cuda.class');

/**
 * The base class of the package's errors. An instance of the class of the same name of another copy
 * counts as an instance.
 */
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
