/**
 * The last operations of an engine's runs, by the tensors that they were made of. A program that
 * makes the same operation for each run gets the one that has its prepared state.
 */
import { Applied } from '../ops/collect.js';
import type { AnyTensor } from '../tensor/index.js';
import type { NamedTensors } from './engine.js';

/** Number of most recent operations that are kept; as many older ones are kept, too. */
const MOST_RECENT = 64;
/** Number of operations per first tensor: as many as a program usually alternates between. */
const MOST_OF_ONE = 4;

/** A run on given tensors, without a signal. A run on the same tensors is the same operation. */
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
 * An object's own names and values, in its order. A program writes them in the same order each
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
   * Whether the object has exactly these names and values, in this order, and all of them are open.
   * An object that inherits names is treated as different.
   */
  isLike(given: Readonly<Record<string, unknown>>): boolean {
    const { names, values } = this;
    let i = 0;
    // V8 needs no look-up for a property that is read in a loop over the object's own names.
    for (const name in given) {
      if (names[i] !== name) return false;
      const tensor = given[name] as AnyTensor | undefined;
      if (tensor !== values[i++] || tensor?.isClosed === true) return false;
    }
    return i === names.length;
  }
}

/**
 * Operations by the first tensor that they were made of, which keeps them alive. There is no
 * WeakRef: its target is kept until the end of the turn, and that bookkeeping took an eighth of the
 * time in which a run is queued.
 */
type ByFirst = WeakMap<object, readonly RunOfTensors[]>;

export class RecentOps {
  private recent: ByFirst = new WeakMap();
  /** Operations that were added before those. */
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
   * Finds an operation of these tensors, all of them open, made with options that contain only
   * outputs. The arguments have not been checked.
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

/** Undefined where the options contain anything else, or are not options. */
function outputsOf(options: unknown): Readonly<Record<string, unknown>> | undefined {
  // Reading `constructor` is faster than reading the prototype, for which V8's baseline code calls
  // the runtime.
  if (!isRecord(options) || options.constructor !== Object) return undefined;
  let outputs: unknown = NONE;
  for (const name in options) {
    const value = options[name];
    // An option that is undefined counts as absent.
    if (value === undefined && (name === 'outputs' || name === 'signal')) continue;
    if (name !== 'outputs') return undefined;
    outputs = value;
  }
  return isRecord(outputs) ? outputs : undefined;
}

const isRecord = (given: unknown): given is Readonly<Record<string, unknown>> =>
  typeof given === 'object' && given !== null;
