/** Operations one after the other, and values that the host makes of theirs. */
import type { DeviceBuffer } from '../core/index.js';
import { Later } from './node.js';
import type { Node, Submitted } from './node.js';
import type { Run } from './run.js';

/** One step of a chain. */
interface Step {
  /** Whether it runs on the host only. */
  readonly quiet: boolean;
  next(value: unknown, run: Run): Submitted<unknown>;
}

/**
 * A chain consists of nodes within nodes, the last step outermost. It is walked from the inside
 * without recursion, so that the stack does not limit its length.
 */
export abstract class Link<T, U> implements Node<U>, Step {
  readonly before: Node<T>;
  readonly device: Node<T>['device'];
  private readonly name: string;
  /** The steps from the innermost on, set when they are first needed. */
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
    const { mark } = run;
    const value = first.submit(run);
    return follow(
      run,
      run.mark === mark ? value : run.endStep(value, mark),
      steps,
      0,
      mark,
    ) as Submitted<U>;
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

/**
 * Runs the steps from number `from` on. The memory that they receive and make begins at `mark` on
 * the run's list.
 */
function follow(
  run: Run,
  start: Submitted<unknown>,
  steps: readonly Step[],
  from: number,
  mark: number,
): Submitted<unknown> {
  let value = start;
  let before = run.mark;
  for (let at = from; at < steps.length; at++) {
    if (value instanceof Later) return followLater(run, value, steps, at, run.takeFrom(mark));
    const next = steps[at]!.next(value, run);
    const { mark: now } = run;
    // A step that makes nothing, and returns the value that it received, changes nothing.
    if (now === mark || (next === value && now === before)) {
      value = next;
      before = now;
      continue;
    }
    value = run.endStep(next, mark);
    before = run.mark;
  }
  return value;
}

function followLater(
  run: Run,
  value: Later<unknown>,
  steps: readonly Step[],
  from: number,
  received: readonly DeviceBuffer[],
): Later<unknown> {
  const queued = value.queued && steps.every((step, index) => index < from || step.quiet);
  return run.goOn(
    value,
    (known) => {
      run.checkAwaited();
      return follow(run, known, steps, from, 0);
    },
    { queued, received },
  );
}

export class AndThen<T, U, R = unknown> extends Link<T, U> {
  private readonly callback: (value: T, run: Run) => R;
  private readonly nodeOf: (result: R) => Node<U>;

  constructor(
    before: Node<T>,
    callback: (value: T, run: Run) => R,
    nodeOf: (result: R) => Node<U>,
  ) {
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
