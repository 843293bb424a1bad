/**
 * Some seconds of the fuzzer, in numbers of ASYNC_CUDA_TEST_SCALE. The seed is the number of the
 * first input. main.ts runs a million.
 */
import { expect, test } from 'vitest';
import { judge } from './judge.js';
import { Inputs } from './mutations.js';
import { seedModules } from './seeds.js';
import { failureOf, namedSeed, scale } from '../../random-runs.js';

const SECONDS = 4 * scale;
const FROM = namedSeed ?? Date.now() % 2 ** 31;
const inputs = new Inputs(seedModules());

test('the same number is the same input', { tags: 'random' }, () => {
  expect(new Inputs(seedModules()).at(12345)).toBe(inputs.at(12345));
  expect(inputs.at(12345)).not.toBe(inputs.at(12346));
});

test(
  'every text gives a valid module or an error with its place',
  { tags: 'random', timeout: SECONDS * 1000 + 30_000 },
  () => {
    const end = performance.now() + SECONDS * 1000;
    let number = FROM;
    let compiled = 0;
    // One text compiles at the least: a machine with much else to do may need all the time for it.
    for (; performance.now() < end || compiled === 0; number++) {
      const { complaint, module } = judge(inputs.at(number));
      if (module) compiled++;
      if (complaint !== undefined) expect.fail(failureOf(number, complaint));
    }
    console.log(`fuzzed ${number - FROM} inputs from number ${FROM}: ${compiled} compile`);
    // Mutations of which none is a valid module would test little.
    expect(compiled).toBeGreaterThan((number - FROM) / 50);
  },
);

test.each([
  '.global .b8 x[4294967295];',
  '.global .b8 x[4294967296];',
  '.global .b8 x[65536][65536][65536];',
  '.global .align 1099511627776 .b8 x[4];',
  '.global .b8 x[-1];',
  '.global .u32 x = 1/0;',
  `.global .u32 x = ${'{'.repeat(5000)}`,
  `.global .u32 x = ${'('.repeat(5000)}`,
  '/* no end',
  '.pragma "no end',
  '.visible .entry k() { .reg .b32 %r<4294967295>; ret; }',
  '.visible .entry k() { A: A: ret; }',
  '.visible .entry k() { bra NOWHERE; }',
  '.visible .entry k() { .local .b8 x[4294967295]; ret; }',
  '.visible .entry k() { ret; } .visible .entry k() { ret; }',
  '.global .u32 x; .global .u32 x;',
  `.visible .entry k() { ${'{'.repeat(5000)}`,
  '.visible .entry k() { constructor.u32 %r1; }',
  '.visible .entry k() { .reg .b32 r; .reg .b64 r2; add.u32 r, r2, r; ret; }',
])('%.60s is refused with its place', { tags: 'random' }, (text) => {
  const { complaint, module } = judge(`.version 8.0\n.target sm_80\n.address_size 64\n${text}\n`);
  expect(complaint).toBeUndefined();
  expect(module).toBeUndefined();
});

test('a million registers cost nothing until they are used', { tags: 'random' }, () => {
  const { complaint, module, ms } = judge(
    '.version 8.0 .target sm_80 .address_size 64 .visible .entry k() { .reg .b32 ' +
      '%r<1000000>; mov.u32 %r999999, 1; ret; }',
  );
  expect(complaint).toBeUndefined();
  expect(module!.wasm.length).toBeLessThan(2000);
  expect(ms).toBeLessThan(2000);
});

test.each([
  ['a long chain of calls', 20_000, (index: number) => `call f${index + 1};`],
  ['calls that double', 60, (index: number) => `call f${index + 1}; call f${index + 1};`],
  ['calls in a ring', 1000, (index: number) => `call f${(index + 1) % 1000};`],
])('%s is bounded', { tags: 'random' }, (_, count, body) => {
  const functions = Array.from(
    { length: count },
    (__, index) =>
      `.func f${index}() { ${index < count - 1 || count === 1000 ? body(index) : ''} }`,
  ).reverse();
  const { complaint } = judge(
    `.version 8.0\n.target sm_80\n.address_size 64\n${functions.join('\n')}\n.visible .entry ` +
      `k() { call f0; ret; }\n`,
  );
  expect(complaint).toBeUndefined();
});
