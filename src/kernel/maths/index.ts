import { exponentialTexts } from './exponential.js';
import { logarithmTexts } from './logarithm.js';
import { trigonometricTexts } from './trigonometric.js';

export const mathsTexts: Readonly<Record<string, { readonly f32?: string; readonly f64?: string }>> = {
  ...exponentialTexts,
  ...logarithmTexts,
  ...trigonometricTexts,
};
