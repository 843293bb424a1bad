/** A launch whose arguments were checked: a run of it only queues it. */
import type { CoreDevice, Kernel, KernelArgument, LaunchOptions } from '../core/index.js';
import type { Run } from '../ops/run.js';
import { Partitioned, Tensor } from '../tensor/index.js';
import { Results } from '../tensor/results.js';
import type { AnyTensor } from '../tensor/index.js';

/** A kernel with its arguments. */
interface Prepared {
  readonly kernel: Kernel;
  readonly options: LaunchOptions;
  readonly args: readonly KernelArgument[];
}

/**
 * The result of a call: its arguments by their names, and the names of those that operations made
 * for the call.
 */
interface Result {
  readonly names: readonly string[];
  readonly values: readonly unknown[];
  readonly made: readonly string[];
}

/** Launches after which the record is kept. */
const KEPT_AFTER = 2;

export class PlannedLaunch {
  private readonly device: CoreDevice;
  private readonly given: readonly unknown[];
  private readonly result: Result;
  private readonly written: readonly { name: string; value: AnyTensor | Partitioned }[];
  /** Undefined where there is nothing to launch. */
  private readonly prepared: Prepared | undefined;
  /** Whether a field of an argument may be assigned between runs. */
  private readonly isMutable: boolean;
  /** The launch for further runs; undefined where each run checks all arguments. */
  private kept: ReturnType<Kernel['keep']> = undefined;
  private launches = 0;

  constructor(
    device: CoreDevice,
    given: readonly unknown[],
    result: Result,
    written: PlannedLaunch['written'],
    prepared: Prepared | undefined,
  ) {
    this.device = device;
    this.given = given;
    this.result = result;
    this.written = written;
    this.prepared = prepared;
    this.isMutable = given.some(isMutable);
  }

  /**
   * Whether a run with these arguments would queue this launch. Tensors do not change; only whether
   * they may be used changes.
   */
  isFor(device: CoreDevice, given: readonly unknown[]): boolean {
    if (device !== this.device || this.isMutable) return false;
    if (given === this.given) return true;
    for (let i = 0; i < given.length; i++) if (given[i] !== this.given[i]) return false;
    return true;
  }

  /** @throws CudaArgumentError, CudaDisposedError */
  queue(run: Run): unknown {
    this.launch(run);
    return closing(this.result);
  }

  /** Does the same as {@link queue}, where the result is not needed. */
  launch({ stream }: Run): void {
    for (const { name, value } of this.written) {
      if (value instanceof Partitioned) value.check();
      else value.checkWritable(name);
    }
    if (this.kept !== undefined) this.kept.launch(stream);
    else if (this.prepared !== undefined) {
      const { kernel, options, args } = this.prepared;
      kernel.launch(stream, options, ...args);
      // Most calls run once.
      if (++this.launches === KEPT_AFTER) this.kept = kernel.keep(options, args);
    }
  }
}

/** Gives the result of a call; closing it closes the values that were made for the call. */
export function closing({ names, values, made }: Result): object {
  return new Results(names, values, made);
}

/** Whether a value is a structure, whose fields may have been assigned since. */
function isMutable(value: unknown): boolean {
  return typeof value === 'object' && !(value instanceof Tensor) && !(value instanceof Partitioned);
}
