/**
 * Every IEEE operation and conversion, bit for bit: all 16-bit operands, edges and random ones
 * beyond. At a scale below 1 no operand takes all of its values.
 */
import { describe, expect, test } from 'vitest';
import { Grid } from '../../../src/ptx/run-grid.test-support.js';
import type { PtxCompileOptions } from 'async-cuda/ptx';
import { CASES } from './cases.js';
import type { Case } from './cases.js';
import { compare } from './compare.js';
import type { Comparison } from './compare.js';
import { inputsOf } from './inputs.js';
import { FORMATS } from './reference.js';
import { BLOCK, KERNEL, PER_THREAD, kernelOf } from './kernel.js';
import { scale, scaled, scaledRows } from '../../random-runs.js';

const COUNT = scaled(1000);

function evaluate(one: Case, options: PtxCompileOptions, exhaustive = scale >= 1): Comparison {
  const columns = inputsOf(one, COUNT, 1, exhaustive);
  const count = columns[0]!.length;
  const grid = new Grid(kernelOf(one), { ...options, pages: 64 });
  const input = grid.put(BigUint64Array.from(columns.flat()));
  const output = grid.put(new BigUint64Array(count));
  const { status } = grid.run(
    KERNEL,
    [{ i64: input.address }, { i64: output.address }, { i32: count }],
    { grid: [Math.ceil(count / BLOCK / PER_THREAD)], block: [BLOCK] },
  );
  expect(status).toBe(0);
  return compare(one, columns, output.view);
}

const families = new Map<string, Case[]>();
for (const one of CASES) {
  const [mnemonic] = one.instruction.split('.');
  const name = mnemonic === 'cvt' ? `cvt to .${one.result}` : `${mnemonic!} .${one.result}`;
  families.set(name, [...(families.get(name) ?? []), one]);
}

describe.each([...families])('%s', (_, cases) => {
  test('with relaxed SIMD where there is one', { tags: 'random' }, () => {
    expect(
      cases
        .map((one) => evaluate(one, {}))
        .filter(({ wrong }) => wrong)
        .map(({ wrong, count, example }) => `${wrong} of ${count}: ${example!}`),
    ).toEqual([]);
  });
  if (FORMATS[cases[0]!.result])
    test('with canonical NaNs', { tags: 'random' }, () => {
      // A conversion of a type to itself without any modifier is a move.
      const complaints = scaledRows(
        cases.filter(({ instruction }) => !/^cvt\.(\w+)\.\1$/.test(instruction)),
        3,
      )
        .map((one) => evaluate(one, { canonicalNaN: true }, false))
        .filter(({ wrong, otherNaNs }) => wrong || otherNaNs);
      expect(complaints).toEqual([]);
    });
  if (cases.some(({ instruction }) => /^(mul|fma)\.rn\.ftz\.f32$/.test(instruction))) {
    // Vector lanes flush rounded results with code of their own.
    test('in vector lanes', { tags: 'random' }, () => {
      expect(
        new Grid(kernelOf(cases[0]!), { simd: true }).width(KERNEL, { grid: [1], block: [BLOCK] }),
      ).toBeGreaterThan(1);
      for (const relaxedFma of [undefined, false]) {
        const options: PtxCompileOptions & { simd: boolean } = {
          simd: true,
          ...(relaxedFma === undefined ? {} : { relaxedFma }),
        };
        expect(
          cases
            .map((one) => evaluate(one, options))
            .filter(({ wrong }) => wrong)
            .map(({ wrong, count, example }) => `${wrong} of ${count}: ${example!}`),
        ).toEqual([]);
      }
    });
  }
  if (cases[0]!.instruction.startsWith('fma')) {
    test('without', { tags: 'random' }, () => {
      expect(
        cases
          .map((one) => evaluate(one, { relaxedFma: false }))
          .filter(({ wrong }) => wrong)
          .map(({ wrong, count, example }) => `${wrong} of ${count}: ${example!}`),
      ).toEqual([]);
    });
  }
});
