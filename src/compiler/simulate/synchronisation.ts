/**
 * Synchronisation: the requests that a generator yields, and the result that each waiting thread
 * gets once all have arrived.
 */
import { Failure } from './failure.js';
import { distribute, elementsOf, multiply, rowFrom } from './matrices.js';
import type { LoadPart, ProductPart } from './matrices.js';
import type { Memory, Value } from './memory.js';
import type { MatrixShape, MatrixType } from '../tree.js';

/** The threads that one synchronises with. `turn` waits for nothing: it lets others run. */
export type SyncKind = 'block' | 'grid' | 'warp' | 'activeMask' | 'turn';

export interface SyncRequest {
  readonly kind: SyncKind;
  /** Only threads that wait for the same operation synchronise. */
  readonly operation: string;
  readonly site: number;
  /** For `warp`: the lanes that take part. */
  readonly mask: number;
  readonly value: Value | undefined;
  /** Lane operand of shuffles. */
  readonly lane: number;
  readonly width: number;
  /** The lane's part of an operation on matrices. */
  readonly part?: ProductPart | LoadPart;
}

export const TURN: SyncRequest = {
  kind: 'turn',
  operation: 'turn',
  site: 0,
  mask: 0,
  value: undefined,
  lane: 0,
  width: 32,
};

function at(
  kind: SyncKind,
  operation: string,
  site: number,
  mask = 0,
  value?: Value,
  lane = 0,
  width = 32,
): SyncRequest {
  return { kind, operation, site, mask: mask >>> 0, value, lane, width };
}

/** `gpu.block` of the generated code. */
export const BLOCK = {
  sync: (site: number): SyncRequest => at('block', 'gpu.block.sync', site),
  and: (predicate: boolean, site: number): SyncRequest =>
    at('block', 'gpu.block.all', site, 0, predicate),
  or: (predicate: boolean, site: number): SyncRequest =>
    at('block', 'gpu.block.any', site, 0, predicate),
  count: (predicate: boolean, site: number): SyncRequest =>
    at('block', 'gpu.block.count', site, 0, predicate),
};

export const GRID = { sync: (site: number): SyncRequest => at('grid', 'gpu.grid.sync', site) };

const ALL = 0xffffffff;
const MMA = 'gpu.warp.mma';
const LOAD = 'gpu.warp.loadMatrices';

const SHUFFLES = {
  idx: 'gpu.warp.shuffle',
  up: 'gpu.warp.shuffleUp',
  down: 'gpu.warp.shuffleDown',
  bfly: 'gpu.warp.shuffleXor',
} as const;

/** `gpu.warp` of the generated code. */
export const WARP = {
  sync: (mask: number, site: number): SyncRequest => at('warp', 'gpu.warp.sync', site, mask),
  shuffle: (
    mode: keyof typeof SHUFFLES,
    value: Value,
    lane: number,
    width: number,
    mask: number,
    site: number,
  ): SyncRequest => at('warp', SHUFFLES[mode], site, mask, value, lane, width),
  any: (predicate: boolean, mask: number, site: number): SyncRequest =>
    at('warp', 'gpu.warp.any', site, mask, predicate),
  all: (predicate: boolean, mask: number, site: number): SyncRequest =>
    at('warp', 'gpu.warp.all', site, mask, predicate),
  uni: (predicate: boolean, mask: number, site: number): SyncRequest =>
    at('warp', 'gpu.warp.uni', site, mask, predicate),
  ballot: (predicate: boolean, mask: number, site: number): SyncRequest =>
    at('warp', 'gpu.warp.ballot', site, mask, predicate),
  match: (value: Value, mask: number, site: number): SyncRequest =>
    at('warp', 'gpu.warp.match', site, mask, value),
  mma: (
    shape: MatrixShape,
    type: MatrixType,
    sum: Memory<number>,
    sumIndex: number,
    a: Memory<number>,
    aIndex: number,
    b: Memory<number>,
    bIndex: number,
    site: number,
  ): SyncRequest => {
    const length = shape === 'm16n8k16' ? 8 : 4;
    const part = {
      shape,
      type,
      sum,
      sumIndex,
      a: elementsOf(a, aIndex, length, type, site),
      b: elementsOf(b, bIndex, length / 2, type, site),
      site,
    };
    return { ...at('warp', `${MMA} ${shape} ${type}`, site, ALL), part };
  },
  loadMatrices: (
    lane: number,
    to: Memory<number>,
    index: number,
    from: Memory<number>,
    fromIndex: number,
    count: number,
    transposed: boolean,
    site: number,
  ): SyncRequest => {
    const row = lane < 8 * count ? rowFrom(from, fromIndex, site) : undefined;
    return {
      ...at('warp', `${LOAD} ${count} ${String(transposed)}`, site, ALL),
      part: { to, index, row, count, transposed, site },
    };
  },
  activeMask: (site: number): SyncRequest => at('activeMask', 'gpu.warp.activeMask', site),
};

/** A waiting thread's request, and its lane. */
export interface Waiting {
  readonly lane: number;
  readonly request: SyncRequest;
}

/** The lane that `shfl` reads from, by the PTX ISA; the lane itself where that is out of bounds. */
function sourceLane({ lane, request }: Waiting): number {
  const segments = 32 - request.width;
  const operand = request.lane & 31;
  const first = lane & segments;
  const last = first | (31 & ~segments);
  switch (request.operation) {
    case SHUFFLES.up:
      return lane - operand >= first ? lane - operand : lane;
    case SHUFFLES.down:
      return lane + operand <= last ? lane + operand : lane;
    case SHUFFLES.bfly:
      return (lane ^ operand) <= last ? lane ^ operand : lane;
    default:
      return first | (operand & ~segments);
  }
}

const shuffled = (all: readonly Waiting[]): (Value | undefined)[] =>
  all.map((each) => {
    const source = sourceLane(each);
    // PTX leaves the result undefined for a lane that takes no part.
    return (all.find((other) => other.lane === source) ?? each).request.value;
  });

const bits = (all: readonly Waiting[], which: (each: Waiting) => boolean): number =>
  all.reduce((mask, each) => (which(each) ? (mask | (1 << each.lane)) >>> 0 : mask), 0);
const isTrue = ({ request }: Waiting): boolean => request.value === true;
/** A result that is the same for all. */
const shared =
  (compute: (all: readonly Waiting[]) => Value) =>
  (all: readonly Waiting[]): Value[] =>
    new Array<Value>(all.length).fill(compute(all));

const RESULTS: Readonly<Record<string, (all: readonly Waiting[]) => (Value | undefined)[]>> = {
  'gpu.block.all': shared((all) => all.every(isTrue)),
  'gpu.block.any': shared((all) => all.some(isTrue)),
  'gpu.block.count': shared((all) => all.filter(isTrue).length),
  'gpu.warp.any': shared((all) => all.some(isTrue)),
  'gpu.warp.all': shared((all) => all.every(isTrue)),
  'gpu.warp.uni': shared((all) =>
    all.every((each) => each.request.value === all[0]!.request.value),
  ),
  'gpu.warp.ballot': shared((all) => bits(all, isTrue)),
  'gpu.warp.activeMask': shared((all) => bits(all, () => true)),
  // Floats are compared by their bits.
  'gpu.warp.match': (all) =>
    all.map((one) => bits(all, (each) => Object.is(each.request.value, one.request.value))),
  [SHUFFLES.idx]: shuffled,
  [SHUFFLES.up]: shuffled,
  [SHUFFLES.down]: shuffled,
  [SHUFFLES.bfly]: shuffled,
};

/**
 * Gives each thread's result, in their order; all wait for one operation. Results of matrix
 * operations are written to the lanes' arrays.
 */
export function resultsOf(all: readonly Waiting[]): readonly (Value | undefined)[] {
  const { operation } = all[0]!.request;
  if (operation.startsWith(MMA)) multiply(all.map(({ request }) => request.part as ProductPart));
  else if (operation.startsWith(LOAD))
    distribute(all.map(({ request }) => request.part as LoadPart));
  return RESULTS[all[0]!.request.operation]?.(all) ?? all.map(() => undefined);
}

/** Checks that a mask names the thread's own lane. */
export function checkMask(lane: number, { operation, mask, site }: SyncRequest): void {
  if ((mask >>> lane) & 1) return;
  throw new Failure(
    'mask',
    `lane ${lane} calls ${operation} with the mask 0x${mask.toString(16)}, which does not name it`,
    'A mask names every lane that takes part: leave it out for all 32, or call only from the ' +
      'lanes that it names.',
    site,
  );
}
