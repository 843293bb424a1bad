import { errorFunctionTexts } from './error-function.js';
import { exponentialTexts } from './exponential.js';
import { hyperbolicTexts } from './hyperbolic.js';
import { inverseTrigonometricTexts } from './inverse-trigonometric.js';
import { logarithmTexts } from './logarithm.js';
import { powerTexts } from './power.js';
import { trigonometricTexts } from './trigonometric.js';

export const mathsTexts: Readonly<Record<string, { readonly f32?: string; readonly f64?: string }>> = {
  ...exponentialTexts,
  ...logarithmTexts,
  ...trigonometricTexts,
  ...inverseTrigonometricTexts,
  ...hyperbolicTexts,
  ...powerTexts,
  ...errorFunctionTexts,
};
