// .ftz on f32. Of results that an instruction rounds, a GPU replaces by zeros those that are tiny
// in IEEE 754's sense "after rounding": below the least normal number when rounded with an exponent
// without limit. This differs from a subnormal result only if rounding with the limit gives the
// least normal number itself, so no other result is tested again.

import type { Emitter } from '../emit/emitter.js';

/** The least normal f32. */
export const LEAST = 2 ** -126;

/** Replaces a subnormal f32 on the stack, or one below another limit, by a zero of its sign. */
export function flush(
  e: Emitter,
  pushLimit: () => void = () => {
    e.code.f32(LEAST);
  },
): void {
  const { code } = e;
  const value = e.temp('f32');
  code.set(value).f32(0).get(value).op('f32.copysign').get(value).get(value).op('f32.abs');
  pushLimit();
  code.op('f32.lt').op('select');
}

/**
 * Flushes the f32 on the stack. `decide` handles a result of the least normal magnitude: the result
 * is on the stack, and it leaves the final one, by one of the functions `unless_tiny…`.
 */
export function flushRounded(e: Emitter, decide: () => void): void {
  const { code } = e;
  const result = e.temp('f32');
  // The sign is shifted out.
  const compareToLeast = (comparison: 'eq' | 'le_u'): void => {
    code
      .get(result)
      .op('i32.reinterpret_f32')
      .i32(1)
      .op('i32.shl')
      .i32(0x01000000)
      .op(`i32.${comparison}`);
  };
  code.set(result);
  compareToLeast('le_u');
  // One branch, which most results do not take.
  e.when(() => {
    code.get(result);
    flush(e);
    code.set(result);
    compareToLeast('eq');
    e.when(() => {
      code.get(result);
      decide();
      code.set(result);
    });
  });
  code.get(result);
}
