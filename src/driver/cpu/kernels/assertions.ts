/**
 * Assertions that have failed in kernels. As on a GPU, each thread that fails prints a message and
 * ends, and the others continue: the launch fails when its grid has ended, or the messages fill
 * printf's buffer.
 */
import { CTX } from '../../../ptx/index.js';
import { CUlimit } from '../../attributes.js';
import { deviceText } from './device-text.js';
import type { KernelContext } from './kernel-context.js';

/**
 * A grid continues for this many milliseconds after its first failure: other threads may wait for
 * the one that has ended.
 */
const MOST_MS = 1000;

/** The first failed assertion of a grid. */
export interface FailedAssertion {
  /** The message, without the thread. */
  readonly text: string;
  readonly place: string;
  readonly since: number;
  /** Bytes that the grid's failures have written. */
  bytes: number;
  /** Whether the grid has to end now. */
  full: boolean;
}

/** The place of the failure: addresses of its texts, and the block's context. */
export interface AssertionCall {
  message: number;
  file: number;
  line: number;
  name: number;
  ctx: number;
  thread: number;
}

export class FailedAssertions {
  private readonly context: KernelContext;
  /** First failures by the grid's number. */
  private readonly first = new Map<number, FailedAssertion>();

  constructor(context: KernelContext) {
    this.context = context;
  }

  add({ message, file, line, name, ctx, thread }: AssertionCall): void {
    const { context } = this;
    const { memory, words } = context.memory;
    const word = (offset: number): number => words[(ctx + offset) >>> 2]!;
    const block = [0, 4, 8].map((axis) => word(CTX.ctaid + axis)).join();
    const [x, y] = [word(CTX.blockDim), word(CTX.blockDim + 4)];
    const index = [thread % x, Math.floor(thread / x) % y, Math.floor(thread / (x * y))].join();
    const where = `${deviceText(memory, file)}:${line}: ${deviceText(memory, name)}`;
    const statement = `Assertion \`${deviceText(memory, message)}\` failed.`;
    const grid = word(CTX.gridId);
    let failed = this.first.get(grid);
    if (failed === undefined) {
      const ptxLine = word(CTX.faultLine);
      const line = ptxLine > 0 ? `PTX line ${ptxLine}, ` : '';
      const place = `${line}block (${block}), thread (${index})`;
      failed = {
        text: `${where}: ${statement}`,
        place,
        since: context.machine.services.now(),
        bytes: 0,
        full: false,
      };
      this.first.set(grid, failed);
    }
    if (failed.full) return;
    const text = `${where}: block: [${block}], thread: [${index}] ${statement}\n`;
    context.print(text);
    failed.bytes += text.length;
    failed.full = failed.bytes >= context.limits.get(CUlimit.CU_LIMIT_PRINTF_FIFO_SIZE)!;
  }

  of(grid: number): FailedAssertion | undefined {
    return this.first.size === 0 ? undefined : this.first.get(grid);
  }

  /** Whether the grid ends for a failed assertion before all its blocks have ended. */
  endsEarly(grid: number): boolean {
    const failed = this.of(grid);
    return (
      failed !== undefined &&
      (failed.full || this.context.machine.services.now() - failed.since > MOST_MS)
    );
  }
}
