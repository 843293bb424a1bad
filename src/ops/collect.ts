/** Several operations as one, in order on one stream. */
import { wrongDevice } from './wrong-device.js';
import { Enqueued, arrival } from './enqueued.js';
import { Later, whenKnown } from './node.js';
import type { Node, Submitted } from './node.js';
import type { Run } from './run.js';
import { inTurn, isAnyAhead, takeTurn } from './turns.js';

/** A value that exists already. */
export class Ready<T> implements Node<T> {
  readonly device = undefined;
  readonly alone = true;
  readonly value: T;

  constructor(value: T) {
    this.value = value;
  }

  submit(): T {
    return this.value;
  }

  describe(): string {
    return 'value';
  }
}

export class Collected implements Node<unknown[]> {
  readonly device: Node<unknown>['device'];
  readonly alone: boolean;
  private readonly nodes: readonly Node<unknown>[];
  private readonly name: string;
  /**
   * The callbacks, where all nodes are work of level 3 of one device. With them a run need not load
   * each node from memory.
   */
  private readonly queues: readonly Enqueued<unknown>['queue'][] | undefined;

  constructor(nodes: readonly Node<unknown>[], name: string) {
    this.device = nodes.find((node) => node.device !== undefined)?.device;
    this.queues = nodes.every((node) => node instanceof Enqueued && node.device === this.device)
      ? nodes.map((node) => (node as Enqueued<unknown>).queue)
      : undefined;
    this.alone = nodes.every((node) => node instanceof Ready);
    this.nodes = nodes;
    this.name = name;
  }

  submit(run: Run): Submitted<unknown[]> {
    const { queues, device } = this;
    if (queues === undefined || (device !== undefined && device.runtime !== run.stream.runtime))
      return this.from(run, 0, new Array<unknown>(this.nodes.length), false);
    const values = new Array<unknown>(queues.length);
    let later = false;
    let { mark } = run;
    for (let i = 0; i < queues.length; i++) {
      const queue = queues[i]!;
      const value = arrival(run, queue(run));
      if (run.mark !== mark) {
        run.endStep(value, mark);
        mark = run.mark;
      }
      values[i] = value;
      if (value instanceof Later) later = true;
    }
    return later ? allKnown(run, values) : values;
  }

  /** Does the same as {@link submit}, where the values are not needed. */
  repeat(run: Run): unknown {
    const { nodes } = this;
    for (let i = 0; i < nodes.length; i++)
      if (nodes[i]!.again?.(run) !== true)
        return this.from(run, i, new Array<unknown>(nodes.length), false);
    return undefined;
  }

  private from(
    run: Run,
    first: number,
    values: unknown[],
    laterBefore: boolean,
  ): Submitted<unknown[]> {
    const { nodes } = this;
    let later = laterBefore;
    for (let i = first; i < nodes.length; i++) {
      const { mark } = run;
      const given = nodes[i]!.submit(run);
      const value = run.mark === mark ? given : run.endStep(given, mark);
      values[i] = value;
      if (!(value instanceof Later)) continue;
      later = true;
      // The next one is queued after all of this one's work.
      if (!value.queued && i < nodes.length - 1) {
        return run.goOn(value, (known) => {
          values[i] = known;
          return this.from(
            run,
            i + 1,
            values,
            values.some((each) => each instanceof Later),
          );
        });
      }
    }
    return later ? allKnown(run, values) : values;
  }

  describe(depth: number): string {
    const shown =
      depth <= 0
        ? '…'
        : this.nodes
            .slice(0, 4)
            .map((node) => node.describe(depth - 1))
            .join(', ') + (this.nodes.length > 4 ? `, … (${this.nodes.length})` : '');
    return `${this.name}(${shown})`;
  }
}

/** The values, once the later ones are known. */
export function allKnown(run: Run, values: readonly unknown[]): Later<unknown[]> {
  const laters = values.filter((value) => value instanceof Later);
  const queued = laters.every((later) => later.queued);
  const known = Promise.all(
    values.map((value): unknown => (value instanceof Later ? value.promise : { value })),
  ).then((all) =>
    all.map((each, i) => (values[i] instanceof Later ? each : (each as { value: unknown }).value)),
  );
  // The values that are known already may hold memory.
  if (
    laters.length === values.length &&
    queued &&
    laters.every((later) => later.holding === 'nothing')
  )
    return new Later(known, true, 'nothing');
  const owned = run.newList();
  const all = known.then((each) => {
    for (const later of laters) owned.push(...run.adopt(later.owned));
    return each;
  });
  return new Later(all, queued, 'unknown', owned);
}

/** The work that `make` queues, and its value. */
export class Made<T> implements Node<T> {
  readonly device: Node<T>['device'];
  private readonly make: (run: Run) => Submitted<T>;
  private readonly name: string;
  private readonly uses: readonly unknown[] | undefined;
  readonly alone: boolean;

  /** @param uses tensors whose memory it uses; without them its memory is not known */
  constructor(
    device: Node<T>['device'],
    name: string,
    make: (run: Run) => Submitted<T>,
    uses?: readonly unknown[],
  ) {
    this.device = device;
    this.name = name;
    this.make = make;
    this.uses = uses;
    this.alone = uses !== undefined;
  }

  submit(run: Run): Submitted<T> {
    const { make, device, uses } = this;
    if (device !== undefined && device.runtime !== run.stream.runtime)
      throw wrongDevice(this.name, device, run.stream);
    return uses === undefined ? make(run) : inTurn(run, uses, () => make(run));
  }

  describe(): string {
    return this.name;
  }
}

/** Work that takes the values of other nodes. */
export class Applied<T> implements Node<T> {
  readonly device: Node<T>['device'];
  readonly alone: boolean;
  private readonly inputs: Node<readonly unknown[]>;
  private readonly name: string;
  private readonly apply: (run: Run, values: readonly unknown[]) => Submitted<T>;
  private readonly uses: readonly unknown[] | undefined;
  private readonly repeat: ((run: Run) => boolean) | undefined;

  /**
   * @param uses tensors whose memory it uses besides that of its inputs
   * @param repeat see {@link Node.again}
   */
  constructor(
    inputs: Node<readonly unknown[]>,
    device: Node<T>['device'],
    name: string,
    apply: (run: Run, values: readonly unknown[]) => Submitted<T>,
    uses?: readonly unknown[],
    repeat?: (run: Run) => boolean,
  ) {
    this.device = device ?? inputs.device;
    this.repeat = repeat;
    this.alone = inputs.alone === true;
    this.inputs = inputs;
    this.name = name;
    this.apply = apply;
    this.uses = uses;
  }

  submit(run: Run): Submitted<T> {
    const { device } = this;
    if (device !== undefined && device.runtime !== run.stream.runtime)
      throw wrongDevice(this.name, device, run.stream);
    const { mark } = run;
    const values = this.inputs.submit(run);
    // Nearly always the values are known and no run is ahead. The functions are made in other
    // methods, because a method that makes a function allocates a context for its variables each
    // time.
    const given =
      values instanceof Later ? this.applyLater(run, values) : this.applyTo(run, values);
    // Memory that operands have made is closed after the work that uses it.
    return run.mark === mark ? given : run.endStep(given, mark);
  }

  again(run: Run): boolean {
    return this.repeat !== undefined && !isAnyAhead() && this.repeat(run);
  }

  private applyLater(run: Run, values: Later<readonly unknown[]>): Submitted<T> {
    return whenKnown(run, values, (known) => this.applyTo(run, known));
  }

  private applyTo(run: Run, values: readonly unknown[]): Submitted<T> {
    if (isAnyAhead()) return this.applyInTurn(run, values);
    const { loads } = run;
    const given = this.apply(run, values);
    if (run.loads !== loads) takeTurn(run, together(values, this.uses), given);
    return given;
  }

  private applyInTurn(run: Run, values: readonly unknown[]): Submitted<T> {
    return inTurn(run, together(values, this.uses), () => this.apply(run, values));
  }

  describe(): string {
    return this.name;
  }
}

function together(
  values: readonly unknown[],
  uses: readonly unknown[] | undefined,
): readonly unknown[] {
  return uses === undefined ? values : [...values, ...uses];
}
