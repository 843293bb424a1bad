/**
 * What had been issued and was not seen to end when the device was lost, stream by stream. A GPU
 * says only that there was a fault, not whose: so the ring is read once more, where what was
 * decoded stays until it is overwritten. Nothing is kept for this while all is well.
 */
import {
  GRID_PACKED,
  HANDLE_MASK,
  LAUNCH_EX,
  LINE_HANDLE_MASK,
  LINE_PACKED,
  OP,
  RECORD_BODY,
  RECORD_ROOT,
  RECORD_STREAM,
} from './commands.js';
import type { InFlight } from '../ground/in-flight.js';
import { MAX_SLOTS, RING_WORDS, SLOT_FENCE, SLOT_WORDS, WORD } from './layout.js';
import type { SharedState } from './layout.js';

/** What the JS thread knows of the numbers that stand in the ring. */
export interface Names {
  stream(slot: number): string;
  kernel(handle: number): string | undefined;
  /** The label of an allocation. */
  memory(handle: number): string | undefined;
  /** What an operation is called that is rarer than launches. */
  operation(root: number): string | undefined;
}

const MASK = RING_WORDS - 1;
const OPERATIONS: ReadonlySet<number> = new Set(Object.values(OP));
/** Operations of one stream that are told. */
const TOLD = 6;

/** Commands that occupy the device, and how each is described. */
const WORK: Readonly<Record<number, (ring: Int32Array, body: number, names: Names) => string>> = {
  [OP.launchLine]: (ring, body, names) =>
    kernel(ring[body]!, names, lineReferences(ring, body + LINE_PACKED)),
  [OP.launchGrid]: (ring, body, names) =>
    kernel(ring[body]!, names, lineReferences(ring, body + GRID_PACKED)),
  [OP.launch]: (ring, body, names) => kernel(ring[body]!, names, references(ring, body + 8)),
  [OP.launchEx]: (ring, body, names) =>
    kernel(ring[body]!, names, references(ring, body + 8 + LAUNCH_EX.words)),
  [OP.libraryCall]: (ring, body, names) =>
    on('call of a library', names, references(ring, body + 1)),
  [OP.copy]: (ring, body, names) =>
    on('copy', names, [ring[body + 3]! & HANDLE_MASK, ring[body]! & HANDLE_MASK]),
  [OP.copy2D]: (ring, body, names) =>
    on('copy', names, [ring[body + 4]! & HANDLE_MASK, ring[body]! & HANDLE_MASK]),
  [OP.copy3D]: (ring, body, names) =>
    on('copy', names, [ring[body + 5]! & HANDLE_MASK, ring[body]! & HANDLE_MASK]),
  [OP.writeValue]: (ring, body, names) => on('writeValue', names, [ring[body]! & HANDLE_MASK]),
  [OP.waitValue]: (ring, body, names) => on('waitValue', names, [ring[body]! & HANDLE_MASK]),
  [OP.memset]: (ring, body, names) => on('fill', names, [ring[body]! & HANDLE_MASK]),
  [OP.prefetch]: (ring, body, names) => on('prefetch', names, [ring[body]! & HANDLE_MASK]),
  [OP.graphLaunch]: (ring, body, names) =>
    on(
      'graph',
      names,
      Array.from({ length: ring[body + 1]! }, (_, i) => ring[body + 2 + i]! & HANDLE_MASK),
    ),
};

function lineReferences(ring: Int32Array, packed: number): number[] {
  return Array.from(
    { length: ring[packed]! & 0xffff },
    (_, i) => ring[packed + 1 + i]! & LINE_HANDLE_MASK,
  );
}

function references(ring: Int32Array, head: number): number[] {
  return Array.from(
    { length: ring[head]! & 0xffff },
    (_, i) => ring[head + 1 + 2 * i]! & HANDLE_MASK,
  );
}

function kernel(handle: number, names: Names, memories: readonly number[]): string {
  return on(`kernel ${names.kernel(handle) ?? '(of a closed module)'}`, names, memories);
}

function on(what: string, names: Names, memories: readonly number[]): string {
  const labels = new Set(
    memories.map((handle) => names.memory(handle)).filter((label) => label !== undefined),
  );
  return labels.size === 0
    ? what
    : `${what} (${[...labels].map((label) => `'${label}'`).join(', ')})`;
}

export function inFlight(shared: SharedState, head: number, names: Names): InFlight[] {
  const { ring, slots } = shared;
  const streams = new Map<number, string[]>();
  for (const at of decoded(shared, head)) {
    const op = ring[at]! & 0xff;
    const body = at + RECORD_BODY;
    const stream = ring[at + RECORD_STREAM]!;
    if (op === OP.streamCreate) streams.delete(ring[body]!);
    else if (op === OP.fence && ring[body] === stream) {
      const passed = Atomics.load(slots, stream * SLOT_WORDS + SLOT_FENCE);
      if (((passed - ring[body + 1]!) | 0) >= 0) streams.delete(stream);
    }
    const describe = WORK[op];
    if (describe === undefined || stream < 0) continue;
    let list = streams.get(stream);
    if (list === undefined) streams.set(stream, (list = []));
    list.push(names.operation(ring[at + RECORD_ROOT]!) ?? describe(ring, body, names));
  }
  return [...streams].map(([stream, operations]) => ({
    stream: names.stream(stream),
    operations: counted(operations),
  }));
}

/** One sentence of it. */
export function describeInFlight(work: readonly InFlight[]): string {
  if (work.length === 0) return '';
  const told = work.map(({ stream, operations }) => {
    const more = operations.length > TOLD ? `, and ${operations.length - TOLD} more` : '';
    return `${stream}: ${operations.slice(0, TOLD).join(', ')}${more}`;
  });
  return ` In flight: ${told.join('; ')}.`;
}

function counted(operations: readonly string[]): string[] {
  const result: string[] = [];
  for (let i = 0, next = 0; i < operations.length; i = next) {
    while (next < operations.length && operations[next] === operations[i]) next++;
    result.push(next - i === 1 ? operations[i]! : `${operations[i]!} ×${next - i}`);
  }
  return result;
}

/** Where the records begin that were decoded and are still in the ring, the oldest first. */
function decoded(shared: SharedState, head: number): number[] {
  const { control, ring } = shared;
  const tail = Atomics.load(control, WORD.tail);
  const end = tail & MASK;
  const overwritten = head & MASK;
  // Both within the same round of the ring: this round's records, which begin at 0, after those of
  // the round before.
  if (overwritten >= end)
    return [...chain(ring, overwritten + 1, RING_WORDS), ...chain(ring, 0, end)];
  return chain(ring, overwritten + 1, end);
}

/**
 * The records that lead, one behind the other, from `from` or the first place after it up to
 * exactly `to`. Where the oldest one begins is not known; a chain of records that ends where it has
 * to is found from its end.
 */
function chain(ring: Int32Array, from: number, to: number): number[] {
  const leads = new Uint8Array(Math.max(0, to - from) + 1);
  leads[to - from] = 1;
  for (let at = to - 1; at >= from; at--) {
    const words = ring[at]! >>> 16;
    if (words === 0 || at + words > to || leads[at + words - from] === 0) continue;
    const op = ring[at]! & 0xff;
    const stream = words < RECORD_BODY ? -1 : ring[at + RECORD_STREAM]!;
    if (
      OPERATIONS.has(op) &&
      (op === OP.pad || (words >= RECORD_BODY && stream >= -1 && stream < MAX_SLOTS))
    )
      leads[at - from] = 1;
  }
  const records: number[] = [];
  let at = leads.indexOf(1) + from;
  for (; at >= from && at < to; at += ring[at]! >>> 16) records.push(at);
  return records;
}
