/** A launch whose arguments were checked: a run of it only queues it. */
import type { CoreDevice, Kernel, KernelArgument, LaunchOptions } from '../core/index.js';
import { MapArgument } from './loaded-kernel.js';
import type { Run } from '../ops/run.js';
import { Partitioned, Tensor } from '../tensor/index.js';
import { Results } from '../tensor/results.js';
import type { AnyTensor } from '../tensor/index.js';

/** A kernel with its arguments. */
interface Prepared {
  readonly kernel: Kernel;
  readonly options: LaunchOptions;
  readonly args: readonly (KernelArgument | MapArgument)[];
  /** Whether some of them are tensor maps. */
  readonly mapped: boolean;
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

export class PlannedLaunch {
  private readonly device: CoreDevice;
  private readonly given: readonly unknown[];
  private readonly result: Result;
  private readonly written: readonly { name: string; value: AnyTensor | Partitioned }[];
  /** Undefined where there is nothing to launch. */
  private readonly prepared: Prepared | undefined;

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
  }

  /**
   * Whether a run with these arguments would queue this launch. Tensors do not change; only whether
   * they may be used changes.
   */
  isFor(device: CoreDevice, given: readonly unknown[]): boolean {
    if (device !== this.device) return false;
    for (let i = 0; i < given.length; i++)
      if (given[i] !== this.given[i] || isMutable(given[i])) return false;
    return true;
  }

  /** @throws CudaArgumentError, CudaDisposedError */
  queue(run: Run): unknown {
    for (const { name, value } of this.written) {
      if (value instanceof Partitioned) value.check();
      else value.checkWritable(name);
    }
    if (this.prepared !== undefined) {
      const { kernel, options } = this.prepared;
      kernel.launch(run.stream, options, ...this.withMaps(run, this.prepared));
    }
    return closing(this.result);
  }

  /** The arguments with the tensor maps that they need. */
  private withMaps(run: Run, { args, mapped }: Prepared): readonly KernelArgument[] {
    if (!mapped) return args as readonly KernelArgument[];
    return args.map((arg) =>
      arg instanceof MapArgument
        ? this.device.tensorMaps.of(run.stream, arg.name, arg.tensor, arg.shape)
        : arg,
    );
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
