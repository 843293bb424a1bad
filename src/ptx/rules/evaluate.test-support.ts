// Test only: runs one instruction over many operands and compares the results with a reference.

import { TestRunner, expect } from 'vitest';
import { Grid, kernelText } from '../run-grid.test-support.js';
import { scale, scaled } from '../../../test/random-runs.js';

export type Width = 16 | 32 | 64;

/** FNV-1a of 64 bits. */
function digestOf(name: string): bigint {
  let digest = 0xcbf29ce484222325n;
  for (const character of name)
    digest = BigInt.asUintN(64, (digest ^ BigInt(character.codePointAt(0)!)) * 0x100000001b3n);
  return digest;
}

/**
 * Random numbers of 64 bits. Each test has a sequence of its own, which depends only on its name: a
 * file gets the same numbers alone and with others in one process, and so does a test that runs
 * alone.
 */
export const seeds = (() => {
  let current: ReturnType<typeof TestRunner.getCurrentTest>;
  let state = 0n;
  return (): bigint => {
    const test = TestRunner.getCurrentTest();
    if (test === undefined) throw new Error('numbers at random are drawn within a test');
    if (test !== current) {
      current = test;
      state = digestOf(test.fullTestName);
    }
    state = BigInt.asUintN(64, state * 6364136223846793005n + 1442695040888963407n);
    return (state ^ (state >> 29n)) & 0xffffffffffffffffn;
  };
})();

const EDGES = [
  0n,
  1n,
  2n,
  3n,
  5n,
  7n,
  31n,
  32n,
  33n,
  63n,
  64n,
  255n,
  0x7fn,
  0x80n,
  0x7fffn,
  0x8000n,
  0xffffn,
  0x7fffffffn,
  0x80000000n,
  0xffffffffn,
  0x100000000n,
  0x7fffffffffffffffn,
  0x8000000000000000n,
  0xffffffffffffffffn,
  0xfffffffffffffffen,
];

export function operandSets(count: number, howMany = 400): bigint[][] {
  const sets: bigint[][] = [];
  for (let index = 0; index < scaled(howMany); index++) {
    sets.push(
      Array.from({ length: count }, () =>
        seeds() % 3n === 0n ? seeds() : EDGES[Number(seeds() % BigInt(EDGES.length))]!,
      ),
    );
  }
  return sets;
}

/** The step between values of 16 bits: 1, or 16 at a smaller scale. */
const STEP = scale < 1 ? 16 : 1;

/**
 * Every value of 16 bits, as the only operand or with some others. At a scale below 1 it is one
 * value of 16, each with other low bits than those next to it.
 */
export const everyHalf = (...others: (() => bigint)[]): bigint[][] =>
  Array.from({ length: 65536 / STEP }, (_, at) => [
    BigInt(at * STEP + ((at * 7) % STEP)),
    ...others.map((other) => other()),
  ]);

/**
 * Runs one instruction on many sets of operands; operands and results are u64 cells, truncated to
 * their widths.
 */
export function evaluate(
  instruction: string,
  widths: readonly Width[],
  resultWidth: Width,
  sets: readonly (readonly bigint[])[],
): bigint[] {
  const names = ['%a', '%b', '%c', '%d'];
  const body = `
  .reg .b64 %p, %q, %t; .reg .b32 %i, %n; .reg .pred %pr, %pq;
  ${widths.map((width, index) => `.reg .b${width} ${names[index]!};`).join(' ')} .reg
    .b${resultWidth} %r;
  ld.param.u64 %p, [in]; ld.param.u64 %q, [out];
  mov.u32 %i, %ctaid.x; mov.u32 %n, %ntid.x; mul.lo.u32 %i, %i, %n; mov.u32 %n, %tid.x;
  add.u32 %i, %i, %n;
  mad.wide.u32 %p, %i, ${widths.length * 8}, %p;
  mad.wide.u32 %q, %i, 8, %q;
  ${widths
    .map(
      (width, index) => `ld.global.b${width} ${names[index]!},
    [%p+${index * 8}];`,
    )
    .join('\n  ')}
  ${instruction}
  cvt.u64.u${resultWidth} %t, %r;
  st.global.u64 [%q], %t;
  ret;`;
  const grid = new Grid(kernelText('k', '.param .u64 in, .param .u64 out', body));
  const input = grid.put(BigUint64Array.from(sets.flat()));
  const output = grid.put(new BigUint64Array(sets.length));
  const threads = Math.min(sets.length, 1024);
  if (sets.length % threads)
    throw new RangeError(`${sets.length} operand sets do not fill whole blocks`);
  const outcome = grid.run('k', [{ i64: input.address }, { i64: output.address }], {
    grid: [sets.length / threads],
    block: [threads],
  });
  expect(outcome.status).toBe(0);
  return [...output.view];
}

export const u = (bits: number, value: bigint): bigint => BigInt.asUintN(bits, value);
export const s = (bits: number, value: bigint): bigint => BigInt.asIntN(bits, value);
export const as = (type: string, value: bigint): bigint =>
  type[0] === 's' ? s(Number(type.slice(1)), value) : u(Number(type.slice(1)), value);
export const width = (type: string): Width => Number(type.slice(1)) as Width;

export function check(
  instruction: string,
  widths: readonly Width[],
  resultWidth: Width,
  reference: (...operands: bigint[]) => bigint,
  sets: readonly (readonly bigint[])[] = operandSets(widths.length),
): void {
  const results = evaluate(instruction, widths, resultWidth, sets);
  results.forEach((result, index) => {
    const operands = sets[index]!.map((value, at) => u(widths[at]!, value));
    const wanted = u(resultWidth, reference(...operands));
    if (result !== wanted)
      expect.fail(
        `${instruction} of ${operands.map((value) => value.toString(16)).join(', ')}: ` +
          `${result.toString(16)}, not ${wanted.toString(16)}`,
      );
  });
}
