/**
 * The .approx instructions stay within the error that the PTX ISA grants, over f32 values of all
 * magnitudes. The bounds are the ISA's; what was measured is printed.
 */
import { expect, test } from 'vitest';
import { Grid } from '../../../src/ptx/run-grid.test-support.js';
import { BLOCK, KERNEL, PER_THREAD, kernelOf } from './kernel.js';

/** The step between bit patterns: a prime, so that no bit is always the same. */
const STEP = Number(process.env.ASYNC_CUDA_APPROXIMATE_STEP ?? 32_749);
const LEAST_NORMAL = 2 ** -126;

const patterns = new Uint32Array(Math.floor(2 ** 32 / STEP)).map((_, index) => index * STEP);
const values = new Float32Array(patterns.buffer);
/** The step is finer where functions change most. */
const near = (from: number, to: number): Float32Array =>
  Float32Array.from({ length: 40_000 }, (_, index) => from + ((to - from) * index) / 40_000);

function run(instruction: string, columns: readonly Float32Array[]): Float32Array {
  const count = columns[0]!.length;
  const grid = new Grid(
    kernelOf({ instruction, operands: columns.map(() => 'f32'), result: 'f32' }),
    { pages: 256 },
  );
  const cells = new BigUint64Array(count * columns.length);
  columns.forEach((column, at) => {
    new Uint32Array(column.buffer).forEach((bits, index) => {
      cells[at * count + index] = BigInt(bits);
    });
  });
  const input = grid.put(cells);
  const output = grid.put(new BigUint64Array(count));
  expect(
    grid.run(KERNEL, [{ i64: input.address }, { i64: output.address }, { i32: count }], {
      grid: [Math.ceil(count / BLOCK / PER_THREAD)],
      block: [BLOCK],
    }).status,
  ).toBe(0);
  return new Float32Array(Uint32Array.from(output.view, (cell) => Number(cell)).buffer);
}

/** Distance in units in the last place of an f32 of the exact result's magnitude. */
function ulps(got: number, exact: number): number {
  if (Object.is(got, exact) || (Number.isNaN(got) && Number.isNaN(exact))) return 0;
  if (Math.abs(exact) >= 2 ** 128 * (1 - 2 ** -25)) return Number.isFinite(got) ? Infinity : 0;
  const exponent = Math.max(-126, Math.floor(Math.log2(Math.abs(exact) || LEAST_NORMAL)));
  return Math.abs(got - exact) / 2 ** (exponent - 23);
}
const relative = (got: number, exact: number): number =>
  Object.is(got, exact) ||
  (Number.isNaN(got) && Number.isNaN(exact)) ||
  Math.abs(exact) > 3.4e38 ||
  got === exact
    ? 0
    : Math.abs(got - exact) / Math.max(Math.abs(exact), LEAST_NORMAL);
const absolute = (got: number, exact: number): number =>
  got === exact || (Number.isNaN(got) && Number.isNaN(exact)) ? 0 : Math.abs(got - exact);

interface Row {
  instruction: string;
  exact(x: number): number;
  error(got: number, exact: number): number;
  bound: number;
  inputs: Float32Array;
}

const all = values;
const within = (limit: number): Float32Array => values.filter((x) => Math.abs(x) <= limit);
const positive = values.filter((x) => x >= LEAST_NORMAL && x < Infinity);
const rows: readonly Row[] = [
  { instruction: 'ex2.approx.f32', exact: (x) => 2 ** x, error: ulps, bound: 2, inputs: all },
  {
    instruction: 'ex2.approx.f32',
    exact: (x) => 2 ** x,
    error: ulps,
    bound: 2,
    inputs: near(-130, 130),
  },
  {
    instruction: 'lg2.approx.f32',
    exact: Math.log2,
    error: absolute,
    bound: 2 ** -22,
    inputs: near(0.5, 2),
  },
  {
    instruction: 'lg2.approx.f32',
    exact: Math.log2,
    error: relative,
    bound: 2 ** -22,
    inputs: positive.filter((x) => x <= 0.5 || x >= 2),
  },
  {
    instruction: 'sin.approx.f32',
    exact: Math.sin,
    error: absolute,
    bound: 2 ** -20.5,
    inputs: near(-2 * Math.PI, 2 * Math.PI),
  },
  {
    instruction: 'cos.approx.f32',
    exact: Math.cos,
    error: absolute,
    bound: 2 ** -20.5,
    inputs: near(-2 * Math.PI, 2 * Math.PI),
  },
  {
    instruction: 'sin.approx.f32',
    exact: Math.sin,
    error: absolute,
    bound: 2 ** -14.7,
    inputs: within(100 * Math.PI),
  },
  {
    instruction: 'cos.approx.f32',
    exact: Math.cos,
    error: absolute,
    bound: 2 ** -14.7,
    inputs: within(100 * Math.PI),
  },
  { instruction: 'rcp.approx.f32', exact: (x) => 1 / x, error: ulps, bound: 1, inputs: all },
  {
    instruction: 'sqrt.approx.f32',
    exact: Math.sqrt,
    error: relative,
    bound: 2 ** -23,
    inputs: all,
  },
  {
    instruction: 'rsqrt.approx.f32',
    exact: (x) => 1 / Math.sqrt(x),
    error: relative,
    bound: 2 ** -22.9,
    inputs: positive,
  },
  {
    instruction: 'tanh.approx.f32',
    exact: Math.tanh,
    error: relative,
    bound: 2 ** -11,
    inputs: all,
  },
  {
    instruction: 'tanh.approx.f32',
    exact: Math.tanh,
    error: relative,
    bound: 2 ** -11,
    inputs: near(-10, 10),
  },
];

test.each(rows.map((row, index) => ({ ...row, name: `${row.instruction}, ${index}` })))(
  '$name',
  ({ instruction, exact, error, bound, inputs }) => {
    const results = run(instruction, [inputs]);
    let worst = 0;
    let at = 0;
    results.forEach((got, index) => {
      const off = error(got, exact(inputs[index]!));
      if (!(off <= worst)) [worst, at] = [off, inputs[index]!];
    });
    console.log(
      `${instruction}: worst error ${worst.toPrecision(4)} of ${bound.toPrecision(4)} ` +
        `allowed, at ${at}, over ${results.length} values`,
    );
    expect(worst).toBeLessThanOrEqual(bound);
  },
);

// The ISA bounds no error there, but a sine is between -1 and 1: a finite number times it stays
// finite.
test.each(['sin.approx.f32', 'cos.approx.f32'])(
  '%s of very large numbers is between -1 and 1',
  { tags: 'thorough' },
  (instruction) => {
    const finite = values.filter((x) => Math.abs(x) < Infinity);
    for (const got of run(instruction, [finite])) expect(Math.abs(got)).toBeLessThanOrEqual(1);
    expect([...run(instruction, [Float32Array.of(Infinity, -Infinity, NaN)])]).toEqual([
      NaN,
      NaN,
      NaN,
    ]);
  },
);

test.each(['div.approx.f32', 'div.full.f32'])('%s', (instruction) => {
  const divisors = values.filter((b) => Math.abs(b) >= 2 ** -126 && Math.abs(b) <= 2 ** 126);
  const dividends = divisors.map((_, index) => divisors[(index * 7919) % divisors.length]!);
  const results = run(instruction, [dividends, divisors]);
  let worst = 0;
  results.forEach((got, index) => {
    worst = Math.max(worst, ulps(got, dividends[index]! / divisors[index]!));
  });
  console.log(
    `${instruction}: worst error ${worst.toPrecision(4)} ulp of 2 allowed, over ` +
      `${results.length} values`,
  );
  expect(worst).toBeLessThanOrEqual(2);
});

test('.ftz flushes operands and results', () => {
  const tiny = Float32Array.of(2 ** -140, -(2 ** -140), 2 ** 127, -0, 1);
  expect([...run('rcp.approx.ftz.f32', [tiny])]).toEqual([Infinity, -Infinity, 0, -Infinity, 1]);
  expect([...run('rsqrt.approx.ftz.f32', [tiny.slice(0, 2)])]).toEqual([Infinity, -Infinity]);
  expect([...run('ex2.approx.ftz.f32', [Float32Array.of(-127, -126)])]).toEqual([0, 2 ** -126]);
});
