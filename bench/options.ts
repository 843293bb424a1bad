/** The bench's command line. */
import { parseArgs } from 'node:util';

export interface Options {
  /** Parts of benchmarks' names or areas; none means all benchmarks of the device. */
  readonly names: readonly string[];
  /** A name for `Device.open`; undefined for the best device. */
  readonly device: string | undefined;
  /** File for the run's report. */
  readonly out: string | undefined;
  /** Whether the run goes to bench/results/. */
  readonly record: boolean;
  /** A report to put into bench/results/ instead of running anything. */
  readonly add: string | undefined;
  readonly quick: boolean;
  readonly list: boolean;
  readonly help: boolean;
}

export const HELP = `Measures async-cuda beside its peers, in turns, in one run.

Usage: npm run bench -- [NAME…] [options]

  NAME             part of a benchmark's name, or an area (runtime, ops, cpu-device);
                   default: all benchmarks of the device
  --device NAME    cpu, cuda, cuda:N; default: the first NVIDIA GPU, else the CPU device
  --out FILE       writes the run's report, JSON
  --record         writes the report to bench/results/ and its rows to bench/results/summary.json
  --add FILE       runs nothing: does what --record does with a report that --out wrote elsewhere
  --quick          fewer rounds and samples, for a first look
  --list           names the benchmarks
  --help           this text
`;

/** @throws Error with a one-line message when the arguments make no sense. */
export function parseOptions(args: string[]): Options {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      device: { type: 'string' },
      out: { type: 'string' },
      add: { type: 'string' },
      record: { type: 'boolean', default: false },
      quick: { type: 'boolean', default: false },
      list: { type: 'boolean', default: false },
      help: { type: 'boolean', short: 'h', default: false },
    },
  });
  if (values.record && values.quick)
    throw new Error('--record and --quick: a quick run is not for the record');
  return { ...values, names: positionals, device: values.device, out: values.out, add: values.add };
}
