/** The sample kernels that nvcc compiled, for three targets. */
import { describe, expect } from 'vitest';
import { STATUS } from './index.js';
import { Grid, sample } from './run-grid.test-support.js';
import type { Argument, Launch } from './run-grid.test-support.js';
import { someOf } from '../../test/random-runs.js';

const TARGETS = ['sm_80', 'sm_75', 'sm_90'] as const;
export const fround = Math.fround;

export const random = (() => {
  let state = 12345;
  return (): number => {
    state = (Math.imul(state, 1103515245) + 12345) >>> 0;
    return (state >>> 8) / 2 ** 24;
  };
})();
export const floats = (n: number, scale = 1, shift = 0): Float32Array =>
  Float32Array.from({ length: n }, () => random() * scale + shift);
export const integers = (n: number, below: number): Int32Array =>
  Int32Array.from({ length: n }, () => Math.floor(random() * below));

/** Exact f32 fma for operands whose product and sum fit f64. */
export const fma = (a: number, b: number, c: number): number => fround(a * b + c);

export function each(file: string, body: (open: () => Grid) => void): void {
  someOf(1, describe)(TARGETS)(`${file} %s`, (target) => {
    body(() => new Grid(sample(file, target)));
  });
}

export function launch(grid: Grid, name: string, args: Argument[], shape: Launch): void {
  const outcome = grid.run(name, args, shape);
  expect(outcome.fault).toBeUndefined();
  expect(outcome.status).toBe(STATUS.done);
}

export function expectClose(
  actual: ArrayLike<number>,
  wanted: ArrayLike<number>,
  relative: number,
): void {
  for (let index = 0; index < wanted.length; index++) {
    const difference = Math.abs(actual[index]! - wanted[index]!);
    if (
      !(difference <= relative * Math.max(1, Math.abs(wanted[index]!))) &&
      !Object.is(actual[index], wanted[index])
    ) {
      expect.fail(`[${index}]: ${actual[index]}, not ${wanted[index]}`);
    }
  }
}
