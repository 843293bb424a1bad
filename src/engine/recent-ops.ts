/** The last operations of an engine's runs, by the tensors that they were made of: whoever makes one for each run has what is kept for it at hand. */
import { Applied } from '../ops/collect.js';
import type { AnyTensor } from '../tensor/index.js';
import type { Engine, NamedTensors, TensorInfo } from './engine.js';

/** Operations that are remembered: as many as a program most often has in turns. */
const MOST_RECENT = 4;

/** A run on tensors that were given, without a signal: another of the same ones is the same. */
export class RunOfTensors extends Applied<NamedTensors> {
  readonly from: readonly unknown[];
  /** Undefined for an output that the run makes. */
  readonly to: readonly unknown[];

  constructor(from: readonly unknown[], to: readonly unknown[], ...rest: ConstructorParameters<typeof Applied<NamedTensors>>) {
    super(...rest);
    this.from = from;
    this.to = to;
  }
}

export class RecentOps {
  /** Weak: neither operations nor tensors are kept alive. */
  private readonly ops: WeakRef<RunOfTensors>[] = [];
  private next = 0;

  add(op: RunOfTensors): void {
    this.ops[this.next] = new WeakRef(op);
    this.next = (this.next + 1) % MOST_RECENT;
  }

  /** One of open tensors, these. Whatever is given: it has not been checked. */
  find({ inputs, outputs }: Pick<Engine, 'inputs' | 'outputs'>, from: unknown, to: unknown): RunOfTensors | undefined {
    if (!isRecord(from) || !isRecord(to)) return undefined;
    for (let i = 0; i < this.ops.length; i++) {
      const op = this.ops[i]!.deref();
      if (op !== undefined && isOf(inputs, from, op.from) && isOf(outputs, to, op.to)) return op;
    }
    return undefined;
  }
}

const isRecord = (given: unknown): given is Readonly<Record<string, unknown>> => typeof given === 'object' && given !== null;

/** Whether the object has exactly these, by the names of the infos, and all of them are open. One that inherits any names is none of the usual. */
function isOf(infos: readonly TensorInfo[], given: Readonly<Record<string, unknown>>, tensors: readonly unknown[]): boolean {
  let count = 0;
  // eslint-disable-next-line @typescript-eslint/no-unused-vars -- counted, and those that are inherited too
  for (const name in given) count++;
  for (let i = 0; i < infos.length; i++) {
    const tensor = tensors[i] as AnyTensor | undefined;
    if (given[infos[i]!.name] !== tensor) return false;
    if (tensor === undefined) continue;
    if (tensor.isClosed) return false;
    count--;
  }
  return count === 0;
}
