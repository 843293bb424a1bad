/**
 * The code that writes an argument of the usual type. Arguments of the usual types are written in
 * the launch itself; `putArgument` writes any.
 */
import type { Way } from './launch-code.js';
import type { ParamLayout } from './signature.js';

const WAY_OTHER = 0;
export const WAY_POINTER = 1;
export const WAY_F32 = 2;
export const WAY_I32 = 3;
/** In a word, the way is followed by the argument's place: way | word << WAY_SHIFT. */
export const WAY_MASK = 3;
export const WAY_SHIFT = 2;
/** Names of the numbers above. */
export const WAYS: readonly Way[] = ['other', 'pointer', 'f32', 'i32'];

export function usualWay(param: ParamLayout): number {
  if (param.kind === 'pointer') return WAY_POINTER;
  if (param.kind !== 'scalar') return WAY_OTHER;
  if (param.scalar === 'f32') return WAY_F32;
  return param.scalar === 'i32' || param.scalar === 'u32' ? WAY_I32 : WAY_OTHER;
}
