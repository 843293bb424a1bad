/** Extents of grids and blocks, and the indices in them. */
import type { Index3 } from './failure.js';

/** Blocks of a grid or threads of a block: one number, or one for each axis. */
export type Dimensions = number | readonly [x: number, y?: number, z?: number];

export interface Axes {
  readonly x: number;
  readonly y: number;
  readonly z: number;
}

const NAMES = ['x', 'y', 'z'] as const;

export function axes(what: 'grid' | 'block', given: Dimensions): Index3 {
  const [x, y = 1, z = 1] = typeof given === 'number' ? [given] : given;
  [x, y, z].forEach((extent, axis) => {
    if (!Number.isInteger(extent) || extent < 1)
      throw new RangeError(
        `simulate: ${what}.${NAMES[axis]!} must be a whole number from 1, but is ` +
          `${typeof extent === 'string' ? `'${extent as string}'` : extent}. Pass the number ` +
          `of ${what === 'grid' ? 'blocks' : 'threads'} on that axis.`,
      );
  });
  return [x, y, z];
}

export const named = ([x, y, z]: Index3): Axes => ({ x, y, z });

/** Indices from the first, x fastest. */
export function* indices([width, height, depth]: Index3): Generator<Index3> {
  for (let z = 0; z < depth; z++) {
    for (let y = 0; y < height; y++) {
      for (let x = 0; x < width; x++) yield [x, y, z];
    }
  }
}
