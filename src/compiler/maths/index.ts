/**
 * Functions of Math and gpu without an instruction, as device functions in the kernel language
 * itself: reading puts them in place of their calls, so that the GPU, the CPU device and the
 * simulation do the same operations and get the same bits.
 *
 * They use correctly rounded operations only (+ - * /, sqrt, multiply-adds, comparisons, integers),
 * and return once: `?:` becomes a selection. They are texts, not functions, so that no bundler,
 * minifier or coverage tool changes them.
 */
import { errorFunctionTexts } from './error-function.js';
import { exponentialTexts } from './exponential.js';
import { hyperbolicTexts } from './hyperbolic.js';
import { inverseTrigonometricTexts } from './inverse-trigonometric.js';
import { logarithmTexts } from './logarithm.js';
import { powerTexts } from './power.js';
import { trigonometricTexts } from './trigonometric.js';

/**
 * Texts by the function's name, which is that of Math (`erf` and `rsqrt`: of gpu), for each float
 * type. Parameters are the function's own, then gpu; atan2 takes (y, x), pow (base, exponent),
 * hypot two lengths. A text calls no other text and uses no outer names.
 */
export const mathsTexts: Readonly<
  Record<string, { readonly f32?: string; readonly f64?: string }>
> = {
  ...exponentialTexts,
  ...logarithmTexts,
  ...trigonometricTexts,
  ...inverseTrigonometricTexts,
  ...hyperbolicTexts,
  ...powerTexts,
  ...errorFunctionTexts,
};
