/**
 * Matrix operations of a warp: each lane passes its elements, and receives its elements of the
 * result.
 */
import type { MatrixShape, MatrixType } from '../tree.js';
import { Failure } from './failure.js';
import type { Memory } from './memory.js';

/** A lane's part of a product. */
export interface ProductPart {
  readonly shape: MatrixShape;
  readonly type: MatrixType;
  readonly sum: Memory<number>;
  readonly sumIndex: number;
  readonly a: readonly number[];
  readonly b: readonly number[];
  readonly site: number;
}

/**
 * A lane's part of a load of matrices: the row that it names, and the destination of its elements.
 */
export interface LoadPart {
  readonly to: Memory<number>;
  readonly index: number;
  /** Elements of the row, where the lane names one. */
  readonly row: readonly number[] | undefined;
  readonly count: number;
  readonly transposed: boolean;
  readonly site: number;
}

const LANES = 32;
const ROWS = 16;
const COLUMNS = 8;

const words = new Uint32Array(1);
const floats = new Float32Array(words.buffer);

/** The value without the lowest 13 bits, which tensor cores ignore. */
function tf32(value: number): number {
  floats[0] = value;
  words[0] = words[0]! & 0xffffe000;
  return floats[0];
}

/**
 * The place of element `i` of lane `lane`: PTX ISA, "Matrix Fragments for mma.m16n8k16" and the
 * sections after it.
 */
const PLACES = {
  half: {
    a: (lane: number, i: number): [row: number, column: number] => [
      (lane >> 2) + 8 * ((i >> 1) & 1),
      2 * (lane & 3) + (i & 1) + 8 * (i >> 2),
    ],
    b: (lane: number, i: number): [row: number, column: number] => [
      2 * (lane & 3) + (i & 1) + 8 * (i >> 1),
      lane >> 2,
    ],
  },
  single: {
    a: (lane: number, i: number): [row: number, column: number] => [
      (lane >> 2) + 8 * (i & 1),
      (lane & 3) + 4 * (i >> 1),
    ],
    b: (lane: number, i: number): [row: number, column: number] => [(lane & 3) + 4 * i, lane >> 2],
  },
} as const;

/** The elements of a fragment, as they are multiplied. */
export function elementsOf(
  memory: Memory<number>,
  index: number,
  length: number,
  type: MatrixType,
  site: number,
): number[] {
  return Array.from({ length }, (_, at) => {
    const value = memory.load(index + at, site);
    return type === 'tf32' ? tf32(value) : value;
  });
}

function wholeWarp(count: number, operation: string, site: number): void {
  if (count === LANES) return;
  throw new Failure(
    'mask',
    `${operation} takes a warp of 32 lanes, and the last warp of this block has ${count}`,
    'Give the block a multiple of 32 threads.',
    site,
  );
}

/**
 * Adds the products to each lane's part of the sum, in the order of the common dimension, rounded
 * at each step.
 */
export function multiply(parts: readonly ProductPart[]): void {
  const { shape, type, site } = parts[0]!;
  wholeWarp(parts.length, 'gpu.warp.mma', site);
  const depth = shape === 'm16n8k16' ? 16 : 8;
  const places = type === 'tf32' ? PLACES.single : PLACES.half;
  const left = new Float32Array(ROWS * depth);
  const right = new Float32Array(depth * COLUMNS);
  parts.forEach(({ a, b }, lane) => {
    a.forEach((value, i) => {
      const [row, column] = places.a(lane, i);
      left[row * depth + column] = value;
    });
    b.forEach((value, i) => {
      const [row, column] = places.b(lane, i);
      right[row * COLUMNS + column] = value;
    });
  });
  parts.forEach(({ sum, sumIndex }, lane) => {
    for (let i = 0; i < 4; i++) {
      const row = (lane >> 2) + 8 * (i >> 1);
      const column = 2 * (lane & 3) + (i & 1);
      let total = sum.load(sumIndex + i, site);
      for (let k = 0; k < depth; k++)
        total = Math.fround(
          total + Math.fround(left[row * depth + k]! * right[k * COLUMNS + column]!),
        );
      sum.store(sumIndex + i, total, site);
    }
  });
}

/** The row of 8 elements that a lane names. */
export function rowFrom(memory: Memory<number>, index: number, site: number): number[] {
  if (index % COLUMNS !== 0) {
    throw new Failure(
      'alignment',
      `a row of a matrix begins at element ${index}, which is no multiple of 8`,
      'Rows of 8 elements begin at multiples of 16 bytes: give rows of shared memory lengths ' +
        'that are multiples of 8.',
      site,
    );
  }
  return Array.from({ length: COLUMNS }, (_, column) => memory.load(index + column, site));
}

/** Gives each lane its elements of the matrices whose rows the lanes named. */
export function distribute(parts: readonly LoadPart[]): void {
  const { count, transposed, site } = parts[0]!;
  wholeWarp(parts.length, 'gpu.warp.loadMatrices', site);
  parts.forEach(({ to, index }, lane) => {
    for (let at = 0; at < 2 * count; at++) {
      const [across, down] = [2 * (lane & 3) + (at & 1), lane >> 2];
      const [row, column] = transposed ? [across, down] : [down, across];
      to.store(index + at, parts[8 * (at >> 1) + row]!.row![column]!, site);
    }
  });
}
