// The elements of a matrix in a lane's registers (PTX ISA, "Matrix Fragments for mma"). Every
// layout is a part that depends on the lane plus a part that depends on the register: a matrix is
// tiled by blocks of eight rows or columns, and within a block a group of four lanes has one row or
// column.

import { perRegister } from './element-types.js';
import type { ElementType } from './element-types.js';

/** `(lane >> shift) & mask`, times its step in each dimension. */
export interface LaneField {
  readonly shift: number;
  readonly mask: number;
  readonly row?: number;
  readonly column?: number;
  /** Which of the four products that m8n8k4 computes at once. */
  readonly batch?: number;
}

export interface Position {
  readonly row: number;
  readonly column: number;
}

export interface Layout {
  readonly lane: readonly LaneField[];
  readonly registers: number;
  /** Elements per register. */
  readonly width: number;
  /** The position of an element, counted over all registers from the lowest bits of the first. */
  element(index: number): Position;
}

/**
 * A: m rows of k elements. `registers` is larger than needed if a fragment contains every element
 * more than once.
 */
export function layoutA(type: ElementType, m: number, k: number, registers?: number): Layout {
  const width = perRegister(type);
  const down = m / 8;
  const tiles = down * (k / (4 * width));
  return {
    lane: [
      { shift: 2, mask: 7, row: 1 },
      { shift: 0, mask: 3, column: width },
    ],
    registers: registers ?? tiles,
    width,
    element: (index) => {
      const tile = Math.floor(index / width) % tiles;
      return {
        row: 8 * (tile % down),
        column: 4 * width * Math.floor(tile / down) + (index % width),
      };
    },
  };
}

/** B: k rows of n elements. */
export function layoutB(type: ElementType, k: number, n: number, registers?: number): Layout {
  const width = perRegister(type);
  const down = k / (4 * width);
  const tiles = down * (n / 8);
  return {
    lane: [
      { shift: 2, mask: 7, column: 1 },
      { shift: 0, mask: 3, row: width },
    ],
    registers: registers ?? tiles,
    width,
    element: (index) => {
      const tile = Math.floor(index / width) % tiles;
      return {
        row: 4 * width * (tile % down) + (index % width),
        column: 8 * Math.floor(tile / down),
      };
    },
  };
}

/** C and D: m rows of n elements, in pairs along a row. */
export function layoutC(type: ElementType, m: number, n: number): Layout {
  const width = type.bits === 16 ? 2 : 1;
  const down = m / 8;
  return {
    lane: [
      { shift: 2, mask: 7, row: 1 },
      { shift: 0, mask: 3, column: 2 },
    ],
    registers: (m * n) / 32 / width,
    width,
    element: (index) => {
      const tile = index >> 1;
      return { row: 8 * (tile % down), column: 8 * Math.floor(tile / down) + (index & 1) };
    },
  };
}

// m8n8k4 of f16 is four products of 8 x 8 x 4, each by four lanes of the lower half of the warp and
// four of the upper half.

const QUAD: LaneField = { shift: 2, mask: 3, batch: 1 };

export const QUAD_LAYOUTS = {
  a: (order: 'row' | 'col'): Layout => ({
    lane:
      order === 'row'
        ? [{ shift: 0, mask: 3, row: 1 }, { shift: 4, mask: 1, row: 4 }, QUAD]
        : [{ shift: 0, mask: 3, column: 1 }, { shift: 4, mask: 1, row: 4 }, QUAD],
    registers: 2,
    width: 2,
    element: (index) => (order === 'row' ? { row: 0, column: index } : { row: index, column: 0 }),
  }),
  b: (order: 'row' | 'col'): Layout => ({
    lane:
      order === 'row'
        ? [{ shift: 0, mask: 3, row: 1 }, { shift: 4, mask: 1, column: 4 }, QUAD]
        : [{ shift: 0, mask: 3, column: 1 }, { shift: 4, mask: 1, column: 4 }, QUAD],
    registers: 2,
    width: 2,
    element: (index) => (order === 'row' ? { row: 0, column: index } : { row: index, column: 0 }),
  }),
  c: (type: ElementType): Layout =>
    type.bits === 16
      ? {
          lane: [{ shift: 0, mask: 3, row: 1 }, { shift: 4, mask: 1, row: 4 }, QUAD],
          registers: 4,
          width: 2,
          element: (index) => ({ row: 0, column: index }),
        }
      : {
          lane: [
            { shift: 0, mask: 1, row: 1 },
            { shift: 1, mask: 1, column: 2 },
            { shift: 4, mask: 1, row: 4 },
            QUAD,
          ],
          registers: 8,
          width: 1,
          element: (index) => ({ row: index & 2, column: (index & 4) + (index & 1) }),
        },
} as const;
