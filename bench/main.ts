/**
 * `npm run bench`: measures each benchmark with its peers, prints a row for each pair, and on
 * request writes the run's report and the project's summary. Ends with status 1 where a benchmark
 * gave no value; a missed bar is a result, not an error.
 */
import { setTimeout } from 'node:timers';

import { BENCHMARKS, select } from './benchmarks.js';
import { type DeviceName, core } from './library.js';
import { cpuName, describeMachine, versions as findVersions } from './machine.js';
import { measure } from './measure.js';
import { HELP, type Options, parseOptions } from './options.js';
import { Programs } from './peers/programs.js';
import { type Failure, type Report, readReport, record, writeReport } from './report.js';
import { type DetailedRow, rowsOf } from './rows.js';
import { heading, lines } from './table.js';

async function run(options: Options): Promise<Report> {
  const device = await (options.device === undefined
    ? core.CoreDevice.open()
    : core.CoreDevice.open(options.device as DeviceName));
  const chosen = select(options.names, device.kind);
  if (chosen.length === 0)
    throw new Error(
      `no benchmark has ${options.names.join(' or ')} in its name; --list names them`,
    );
  const machine = await describeMachine(device);
  const versions = await findVersions(device);
  const cpu = `cpu: ${cpuName()}`;
  const date = new Date().toISOString();
  console.log(
    `${machine.gpu ?? 'no GPU'}, ${machine.cpu} (${machine.cores} cores), ` +
      `driver ${machine.driver ?? '–'}, ` +
      Object.entries(versions)
        .map((pair) => pair.join(' '))
        .join(', '),
  );

  const programs = new Programs(device.kind === 'cuda' ? device.ordinal : undefined);
  const needed = chosen.flatMap(({ peers }) =>
    peers.flatMap((peer) => ('program' in peer ? [peer.program] : [])),
  );
  for (const line of await programs.start(
    [...new Set(needed)].filter((name) => programs.possible(name)),
  ))
    console.log(`peer ${line}`);
  const setup = {
    device,
    quick: options.quick,
    programs,
    count: (full: number) => (options.quick ? Math.ceil(full / 5) : full),
  };

  const rows: DetailedRow[] = [];
  const failures: Failure[] = [];
  const report = (): Report => ({ date, quick: options.quick, machine, versions, rows, failures });
  console.log(heading());
  for (const benchmark of chosen) {
    const onGpu = benchmark.area !== 'cpu-device' && device.kind === 'cuda';
    const where = onGpu ? device.name : cpu;
    try {
      // The runtime's bars are for a GPU; on the CPU device its benchmarks are only tested.
      const bars = onGpu || benchmark.area === 'cpu-device';
      const measured = rowsOf(await measure(benchmark, setup), {
        device: where,
        date,
        versions,
        bars,
      });
      rows.push(...measured);
      console.log(lines(measured));
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      failures.push({ name: benchmark.name, device: where, message });
      console.log(`${benchmark.name}: FAILED: ${message}`);
    }
    // After each, so that an interrupted run has its results.
    if (options.out !== undefined) await writeReport(options.out, report());
  }
  await programs.close();
  await device.close();
  return report();
}

function conclusion({ rows, failures }: Report): string {
  const count = (pass: boolean): number => rows.filter((row) => row.pass === pass).length;
  const lacking = new Set(rows.filter(({ problem }) => problem !== null).map(({ peer }) => peer));
  return [
    `${count(true)} bars met, ${count(false)} missed`,
    ...(lacking.size > 0 ? [`rows lack ${[...lacking].join(', ')}`] : []),
    ...(failures.length > 0 ? [`${failures.length} failed`] : []),
  ].join('; ');
}

async function main(): Promise<number> {
  const options = parseOptions(process.argv.slice(2));
  if (options.help) return print(HELP);
  if (options.list)
    return print(BENCHMARKS.map(({ area, name }) => `${area.padEnd(12)}${name}`).join('\n'));
  if (options.add !== undefined)
    return print(`written: ${await record(await readReport(options.add))}`);
  const report = await run(options);
  console.log(`\n${conclusion(report)}`);
  if (options.out !== undefined) console.log(`written: ${options.out}`);
  if (options.record) console.log(`written: ${await record(report)}`);
  if (report.failures.length === 0) return 0;
  // Work that never ended may hold the process.
  setTimeout(() => process.exit(), 5000).unref();
  return 1;
}

function print(text: string): number {
  console.log(text);
  return 0;
}

process.exitCode = await main().catch((error: unknown) => {
  console.error(error instanceof Error ? `bench: ${error.message}` : error);
  return 1;
});
