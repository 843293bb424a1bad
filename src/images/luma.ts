/** Weights of red, green and blue in luma, by two recommendations of the ITU-R. */
export type LumaMatrix = 'bt601' | 'bt709';

export const LUMA: Readonly<Record<LumaMatrix, readonly [number, number, number]>> = {
  bt601: [0.299, 0.587, 0.114],
  bt709: [0.2126, 0.7152, 0.0722],
};
