/** An image of noise for tests: the same for the same size on every machine. */
import type { Image } from './image.js';

export function noise(width: number, height: number): Image {
  // A linear congruential generator (Numerical Recipes' constants); its high bits are the random
  // ones.
  let state = width * 65537 + height;
  const data = Uint8Array.from({ length: width * height * 3 }, () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state >>> 24;
  });
  return { width, height, data };
}
