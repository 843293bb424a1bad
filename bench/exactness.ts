/**
 * Every IEEE operation and conversion on a device, compared with exact arithmetic: `npx tsx
 * bench/exactness.ts [--device NAME] [--count N] [--out FILE]`. On a GPU each result is also
 * compared with the CPU device's. For the approximate functions, which the ISA does not define to
 * the bit, the differences are counted.
 *
 * Counts of differing results go to bench/results/exactness-DEVICE.json. Exit status 1 if an exact
 * one differs.
 */
import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

import { CASES } from '../test/ptx/exact/cases.js';
import type { Case } from '../test/ptx/exact/cases.js';
import { compare } from '../test/ptx/exact/compare.js';
import { inputsOf } from '../test/ptx/exact/inputs.js';
import { BLOCK, KERNEL, PER_THREAD, kernelOf } from '../test/ptx/exact/kernel.js';
import { core } from './library.js';
import type { CoreDevice, DeviceName } from './library.js';

const APPROXIMATE = [
  'ex2',
  'lg2',
  'sin',
  'cos',
  'rcp',
  'sqrt',
  'rsqrt',
  'tanh',
  'div',
  'div.full',
].map((name) =>
  name === 'div.full'
    ? { instruction: 'div.full.f32', operands: ['f32', 'f32'] }
    : { instruction: `${name}.approx.f32`, operands: name === 'div' ? ['f32', 'f32'] : ['f32'] },
);

async function run(
  device: CoreDevice,
  one: Pick<Case, 'instruction' | 'operands' | 'result'>,
  columns: readonly (readonly bigint[])[],
): Promise<BigUint64Array> {
  const count = columns[0]!.length;
  const { stream } = device;
  const operands = device.alloc(core.u64, count * columns.length);
  const results = device.alloc(core.u64, count);
  const module = await device.loadModule(kernelOf(one));
  operands.write(stream, BigUint64Array.from(columns.flat()));
  module
    .kernel(KERNEL)
    .launch(
      stream,
      { grid: Math.ceil(count / BLOCK / PER_THREAD), block: BLOCK },
      operands,
      results,
      count,
    );
  const values = await results.read(stream);
  operands.close();
  results.close();
  await module.close();
  return values;
}

const { values: options } = parseArgs({
  options: { device: { type: 'string' }, count: { type: 'string' }, out: { type: 'string' } },
});
const device = await core.CoreDevice.open(options.device as DeviceName | undefined);
const other = device.kind === 'cuda' ? await core.CoreDevice.open('cpu') : undefined;
const count = Number(options.count ?? 20_000);
const rows: Record<string, unknown>[] = [];
let wrong = 0;
for (const one of CASES) {
  const columns = inputsOf(one, count, 1);
  const results = await run(device, one, columns);
  const comparison = compare(one, columns, results);
  const theirs = other && (await run(other, one, columns));
  const differing = theirs?.reduce(
    (sum, bits, index) => sum + (bits === results[index] ? 0 : 1),
    0,
  );
  wrong += comparison.wrong;
  if (comparison.example !== undefined)
    console.log(`${comparison.wrong} of ${comparison.count}: ${comparison.example}`);
  rows.push({
    instruction: one.instruction,
    ...comparison,
    ...(differing === undefined ? {} : { differingFromCpuDevice: differing }),
  });
}
for (const { instruction, operands } of other ? APPROXIMATE : []) {
  const one = { instruction, operands, result: 'f32', reference: () => 0n };
  const columns = inputsOf(one, count, 1);
  const [ours, theirs] = [await run(device, one, columns), await run(other!, one, columns)];
  rows.push({
    instruction,
    count: ours.length,
    differingFromCpuDevice: ours.reduce(
      (sum, bits, index) => sum + (bits === theirs[index] ? 0 : 1),
      0,
    ),
  });
}
const name = device.name.toLowerCase().replaceAll(/[^a-z0-9]+/g, '-');
const file =
  options.out ?? fileURLToPath(new URL(`results/exactness-${name}.json`, import.meta.url));
const report = {
  device: device.name,
  date: new Date().toISOString(),
  node: process.version,
  count,
  rows,
};
writeFileSync(file, `${JSON.stringify(report, undefined, 1)}\n`);
console.log(
  `${device.name}: ${CASES.length} instructions, ${wrong} wrong results; written: ${file}`,
);
await Promise.all([device.close(), other?.close()]);
process.exitCode = wrong === 0 ? 0 : 1;
