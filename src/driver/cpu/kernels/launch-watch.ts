/**
 * A launch, or other work of the host, under the checker: its place in its stream, and the numbers
 * of its blocks.
 */
import type { KernelCheck } from '../../../ptx/index.js';
import type { CheckReport } from '../../../ground/check-report.js';
import type { KernelFunction } from './kernel-function.js';
import type { Stream } from '../streams/stream.js';

/** A launch that is to be watched. */
export interface WatchedLaunch {
  readonly func: KernelFunction;
  readonly grid: Iterable<number>;
  readonly block: Iterable<number>;
  readonly sharedBytes: number;
}

/** Work that accesses memory: of a kernel, or of the host. */
export interface Work {
  /** Undefined for work in no stream. */
  readonly stream: Stream | undefined;
  readonly sequence: number;
  /** Its name in reports, where it is not a kernel. */
  readonly name: string;
  readonly launch: LaunchWatch | undefined;
  /** The number of its first block, and the count of its blocks. */
  readonly first: number;
  readonly blocks: number;
}

export class LaunchWatch implements Work {
  readonly stream: Stream | undefined;
  readonly sequence: number;
  readonly name: string;
  readonly launch: LaunchWatch;
  readonly func: KernelFunction;
  readonly sharedBytes: number;
  readonly check: KernelCheck;
  readonly kernel: string;
  readonly grid: readonly [number, number, number];
  readonly block: readonly [number, number, number];
  readonly threads: number;
  readonly first: number;
  readonly blocks: number;
  /** Reports that did not stop it, by kind and place. */
  readonly found = new Map<string, CheckReport>();
  /** When it first read memory that was never written. */
  doubtful: number | undefined = undefined;
  /** The report that stopped it. */
  fatal: CheckReport | undefined = undefined;

  constructor(
    operation: WatchedLaunch,
    check: KernelCheck,
    stream: Stream | undefined,
    first: number,
  ) {
    const [gx = 1, gy = 1, gz = 1] = operation.grid;
    const [bx = 1, by = 1, bz = 1] = operation.block;
    this.func = operation.func;
    this.sharedBytes = operation.sharedBytes;
    this.check = check;
    this.stream = stream;
    this.sequence = stream === undefined ? 0 : stream.completed + 1;
    this.kernel = this.name = operation.func.name;
    this.grid = [gx, gy, gz];
    this.block = [bx, by, bz];
    this.threads = bx * by * bz;
    this.blocks = gx * gy * gz;
    this.first = first;
    this.launch = this;
  }

  blockIndex(number: number): [number, number, number] {
    const [gx, gy] = this.grid;
    const linear = number - this.first;
    return [linear % gx, Math.floor(linear / gx) % gy, Math.floor(linear / (gx * gy))];
  }

  threadIndex(thread: number): [number, number, number] {
    const [bx, by] = this.block;
    return [thread % bx, Math.floor(thread / bx) % by, Math.floor(thread / (bx * by))];
  }
}
