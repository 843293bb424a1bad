/**
 * The last operations of an engine's runs, by the tensors that they were made of: whoever makes one
 * for each run has what is kept for it at hand.
 */
import { Applied } from '../ops/collect.js';
import type { AnyTensor } from '../tensor/index.js';
import type { NamedTensors } from './engine.js';

/** Operations that were added last and are remembered, and as many before them. */
const MOST_RECENT = 64;
/** Of one first tensor: as many as a program most often has in turns. */
const MOST_OF_ONE = 4;

/** A run on tensors that were given, without a signal: another of the same ones is the same. */
export class RunOfTensors extends Applied<NamedTensors> {
  readonly from: Named;
  readonly to: Named;

  constructor(
    from: Readonly<Record<string, unknown>>,
    to: Readonly<Record<string, unknown>>,
    ...rest: ConstructorParameters<typeof Applied<NamedTensors>>
  ) {
    super(...rest);
    this.from = new Named(from);
    this.to = new Named(to);
  }
}

/**
 * An object's own names and values, in its order: a program writes them in the same order each
 * time.
 */
class Named {
  private readonly names: readonly string[];
  private readonly values: readonly unknown[];

  constructor(of: Readonly<Record<string, unknown>>) {
    this.names = Object.keys(of);
    this.values = Object.values(of);
  }

  get first(): unknown {
    return this.values[0];
  }

  get firstName(): string {
    return this.names[0] ?? '';
  }

  /**
   * Whether the object has exactly these, in this order, and all of them are open. One that
   * inherits any names is none of the usual.
   */
  isLike(given: Readonly<Record<string, unknown>>): boolean {
    const { names, values } = this;
    let i = 0;
    // What is read within a loop over an object's own names is not looked up.
    for (const name in given) {
      if (names[i] !== name) return false;
      const tensor = given[name] as AnyTensor | undefined;
      if (tensor !== values[i++] || tensor?.isClosed === true) return false;
    }
    return i === names.length;
  }
}

/**
 * Operations by the first tensor that they were made of, which is what keeps them. No WeakRef: what
 * it gives is kept to the end of the turn, and noting that took an eighth of the time in which a
 * run is queued.
 */
type ByFirst = WeakMap<object, readonly RunOfTensors[]>;

export class RecentOps {
  private recent: ByFirst = new WeakMap();
  /** What was added before those. */
  private older: ByFirst = new WeakMap();
  private added = 0;
  /** The input by whose tensor operations are found: the one that the program names first. */
  private firstName = '';

  add(op: RunOfTensors): void {
    const { first, firstName } = op.from;
    if (!isRecord(first)) return;
    this.firstName = firstName;
    if (++this.added > MOST_RECENT) {
      this.older = this.recent;
      this.recent = new WeakMap();
      this.added = 1;
    }
    const before = this.recent.get(first) ?? [];
    this.recent.set(first, [op, ...before.slice(0, MOST_OF_ONE - 1)]);
  }

  /**
   * One of open tensors, these, by options that have nothing but outputs. Whatever is given: it has
   * not been checked.
   */
  find(from: unknown, options: unknown): RunOfTensors | undefined {
    const to = options === undefined ? NONE : outputsOf(options);
    if (to === undefined || !isRecord(from)) return undefined;
    const first = from[this.firstName];
    if (!isRecord(first)) return undefined;
    const found = among(this.recent.get(first), from, to);
    if (found !== undefined) return found;
    const old = among(this.older.get(first), from, to);
    if (old !== undefined) this.add(old);
    return old;
  }
}

function among(
  ops: readonly RunOfTensors[] | undefined,
  from: Readonly<Record<string, unknown>>,
  to: Readonly<Record<string, unknown>>,
): RunOfTensors | undefined {
  if (ops === undefined) return undefined;
  for (let i = 0; i < ops.length; i++) {
    const op = ops[i]!;
    if (op.from.isLike(from) && op.to.isLike(to)) return op;
  }
  return undefined;
}

const NONE = Object.freeze({});

/** Undefined where anything else was given, or what is no options. */
function outputsOf(options: unknown): Readonly<Record<string, unknown>> | undefined {
  // An engine that compiles for the moment asks the runtime for a prototype.
  if (!isRecord(options) || options.constructor !== Object) return undefined;
  let outputs: unknown = NONE;
  for (const name in options) {
    const value = options[name];
    // As if it had been left out.
    if (value === undefined && (name === 'outputs' || name === 'signal')) continue;
    if (name !== 'outputs') return undefined;
    outputs = value;
  }
  return isRecord(outputs) ? outputs : undefined;
}

const isRecord = (given: unknown): given is Readonly<Record<string, unknown>> =>
  typeof given === 'object' && given !== null;
