/** Operations one after the other, and what the host makes of their values in between. */
import { invalid } from '../core/arguments.js';
import { isNodeMemory } from '../core/node-memory.js';
import { Later, whenKnown } from './node.js';
import type { Node, Submitted } from './node.js';
import type { Run } from './run.js';

/** One more step of a chain. */
interface Step {
  /** Whether it is the host's affair only. */
  readonly quiet: boolean;
  next(value: unknown, run: Run): Submitted<unknown>;
}

/**
 * A chain is written as nodes within nodes, the last step outermost. It is walked from the inside without recursion, so
 * that its length is not limited by the stack.
 */
export abstract class Link<T, U> implements Node<U>, Step {
  readonly before: Node<T>;
  readonly device: Node<T>['device'];
  private readonly name: string;
  /** The steps from the innermost on, once they have been needed. */
  private path: { first: Node<unknown>; steps: readonly Step[] } | undefined = undefined;

  constructor(before: Node<T>, name: string) {
    this.before = before;
    this.device = before.device;
    this.name = name;
  }

  abstract next(value: unknown, run: Run): Submitted<unknown>;

  get quiet(): boolean {
    return false;
  }

  submit(run: Run): Submitted<U> {
    const { first, steps } = (this.path ??= this.pathTo());
    const value = first.submit(run);
    return follow(run, value, steps, 0) as Submitted<U>;
  }

  private pathTo(): { first: Node<unknown>; steps: readonly Step[] } {
    const steps: Step[] = [];
    // eslint-disable-next-line @typescript-eslint/no-this-alias -- the walk begins here
    let first: Node<unknown> = this;
    while (first instanceof Link) {
      steps.push(first);
      first = first.before;
    }
    return { first, steps: steps.reverse() };
  }

  describe(depth: number): string {
    return depth <= 0 ? '…' : `${this.before.describe(depth - 1)}.${this.name}(…)`;
  }
}

function follow(run: Run, start: Submitted<unknown>, steps: readonly Step[], from: number): Submitted<unknown> {
  let value = start;
  for (let at = from; at < steps.length; at++) {
    if (value instanceof Later) return whenKnown(run, value, (known) => follow(run, known, steps, at), steps.every((step, index) => index < at || step.quiet));
    value = steps[at]!.next(value, run);
  }
  return value;
}

export class AndThen<T, U, R = unknown> extends Link<T, U> {
  private readonly callback: (value: T, run: Run) => R;
  private readonly nodeOf: (result: R) => Node<U>;

  constructor(before: Node<T>, callback: (value: T, run: Run) => R, nodeOf: (result: R) => Node<U>) {
    super(before, 'andThen');
    this.callback = callback;
    this.nodeOf = nodeOf;
  }

  next(value: T, run: Run): Submitted<U> {
    const { callback } = this;
    return this.nodeOf(callback(value, run)).submit(run);
  }
}

export class Mapped<T, U> extends Link<T, U> {
  private readonly callback: (value: T) => U;

  constructor(before: Node<T>, callback: (value: T) => U, name: string) {
    super(before, name);
    this.callback = callback;
  }

  override get quiet(): boolean {
    return true;
  }

  next(value: T): U {
    const { callback } = this;
    return callback(value);
  }
}

/** The value is closed once what is made of it has been queued, or has arrived. */
export class Using<T extends Disposable, U, R = unknown> extends Link<T, U> {
  private readonly callback: (value: T) => R;
  private readonly nodeOf: (result: R) => Node<U>;

  constructor(before: Node<T>, callback: (value: T) => R, nodeOf: (result: R) => Node<U>) {
    super(before, 'use');
    this.callback = callback;
    this.nodeOf = nodeOf;
  }

  next(value: T, run: Run): Submitted<U> {
    const { callback } = this;
    if (typeof (value as Partial<Disposable> | null | undefined)?.[Symbol.dispose] !== 'function') {
      throw invalid('use(callback)', 'an operation whose value can be closed, as a tensor can', value, 'For another value write andThen(…).');
    }
    // A graph needs it at every launch, and closes it in the end; what a node of it allocates another frees.
    const close = (): void => {
      if (run.recording && !isNodeMemory(value)) run.owned.push(value);
      else value[Symbol.dispose]();
    };
    let result: Submitted<U>;
    try {
      result = this.nodeOf(callback(value)).submit(run);
    } catch (error) {
      close();
      throw error;
    }
    if (result instanceof Later) return new Later(result.promise.finally(close), result.queued);
    close();
    return result;
  }
}
