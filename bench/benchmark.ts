/**
 * A benchmark: something that async-cuda does and that is sampled, round by round, and the peers
 * that do the same in the rounds between.
 */
import type { CoreDevice } from './library.js';
import type { ProgramName, Programs } from './peers/programs.js';
import type { Caller } from './processor.js';

/** The area of a row in bench/results/summary.json. */
export type Area = 'runtime' | 'cpu-device' | 'ops' | 'kernels' | 'images' | 'inference';
/** A rate (GB/s, 1/s) is better when it is higher, a time or memory when it is lower. */
export type Unit = 'µs' | 'ms' | 'MiB' | 'GB/s' | '1/s';
/**
 * The statistic of a round's samples. Over the rounds: the median, with a peer the round of the
 * median ratio; for `longest`, the longest.
 */
export type Statistic = 'median' | 'p99' | 'longest';
/**
 * e.g. `<= 1.05`: of the ratio (ours by the peer's) where there is a peer, else of the value
 * itself.
 */
export type Bar = `<= ${number}` | `>= ${number}`;

/** The samples of one round, in the benchmark's unit. */
export interface Round {
  readonly samples: readonly number[];
  /** Further numbers, by name and unit. */
  readonly notes?: Readonly<Record<string, number>>;
}

/**
 * A contender: async-cuda, or a peer. A round warms up, proves that the work is really done, then
 * samples.
 */
export interface Contender {
  round(): Promise<Round>;
  close?(): Promise<void>;
}

/** A peer in a program of its own. */
export interface ProgramPeer {
  readonly name: string;
  readonly bar?: Bar;
  readonly program: ProgramName;
  /** The measurement's name in the program, and its arguments. */
  request(setup: Setup): string | Promise<string>;
}

/** A peer in this process: the same work done differently. */
export interface LocalPeer {
  readonly name: string;
  readonly bar?: Bar;
  start(setup: Setup): Promise<Contender>;
}

export type Peer = ProgramPeer | LocalPeer;

export interface Benchmark {
  readonly area: Area;
  /** Also the row's name in summary.json: renaming it begins a new row. */
  readonly name: string;
  readonly unit: Unit;
  readonly statistic: Statistic;
  /** The bar of our own value. */
  readonly bar?: Bar;
  readonly peers: readonly Peer[];
  /** Default 9, with --quick 3. */
  readonly rounds?: number;
  /** Whether a first round is discarded. Default true. */
  readonly warmUp?: boolean;
  /** The time after which a round is aborted, in seconds. Default 90. */
  readonly limit?: number;
  /** The thread that does the timed work, where it is one: it and the peers share a processor. */
  readonly caller?: Caller;
  start(setup: Setup): Promise<Contender>;
}

/** The arguments of a benchmark. */
export interface Setup {
  /** The device named on the command line. Benchmarks of the CPU device open their own. */
  readonly device: CoreDevice;
  readonly quick: boolean;
  readonly programs: Programs;
  /** `full`, or with --quick fewer. */
  count(full: number): number;
}
