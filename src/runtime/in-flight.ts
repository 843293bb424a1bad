/**
 * Lists, stream by stream, the commands that had been issued and were not seen to end when the
 * device was lost. A GPU reports a fault without the command that met it. So the ring is read once
 * more, in which decoded records stay until they are overwritten; no list is kept while the device
 * works.
 */
import { OP, RECORD_BODY, RECORD_ROOT, RECORD_STREAM, commandOf } from './commands.js';
import { handlesOf } from './commands/command.js';
import type { InFlight } from '../ground/in-flight.js';
import { MAX_SLOTS, RING_WORDS, SLOT_FENCE, SLOT_WORDS, WORD } from './layout.js';
import type { SharedState } from './layout.js';

/** Names for the numbers in the ring. */
export interface Names {
  stream(slot: number): string;
  kernel(handle: number): string | undefined;
  /** The label of an allocation. */
  memory(handle: number): string | undefined;
  /** The name of an operation. Plain launches have none; their kernel names them. */
  operation(root: number): string | undefined;
}

const MASK = RING_WORDS - 1;
/** The largest number of operations of one stream that the error names. */
const LISTED = 6;

/**
 * Names a command that occupies the device; undefined for any other. A copy names its source first.
 */
function describe(op: number, ring: Int32Array, body: number, names: Names): string | undefined {
  const command = commandOf(op);
  if (command?.inFlight === undefined) return undefined;
  const handles = handlesOf(command.operands(ring, body));
  if (command.copies !== undefined) handles.reverse();
  const kernel = command.trace?.(ring, body).kernel;
  const what =
    kernel === undefined
      ? command.inFlight
      : `${command.inFlight} ${names.kernel(kernel) ?? '(of a closed module)'}`;
  const labels = new Set(
    handles.map((handle) => names.memory(handle)).filter((label) => label !== undefined),
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
    if (stream < 0) continue;
    const description = describe(op, ring, body, names);
    if (description === undefined) continue;
    let list = streams.get(stream);
    if (list === undefined) streams.set(stream, (list = []));
    list.push(names.operation(ring[at + RECORD_ROOT]!) ?? description);
  }
  return [...streams].map(([stream, operations]) => ({
    stream: names.stream(stream),
    operations: counted(operations),
  }));
}

/** Returns one sentence about the work; empty where there is none. */
export function describeInFlight(work: readonly InFlight[]): string {
  if (work.length === 0) return '';
  const told = work.map(({ stream, operations }) => {
    const more = operations.length > LISTED ? `, and ${operations.length - LISTED} more` : '';
    return `${stream}: ${operations.slice(0, LISTED).join(', ')}${more}`;
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

/**
 * Returns where the records begin that were decoded and are still in the ring, the oldest first.
 */
function decoded(shared: SharedState, head: number): number[] {
  const { control, ring } = shared;
  const tail = Atomics.load(control, WORD.tail);
  const end = tail & MASK;
  const overwritten = head & MASK;
  // Both positions are in the same round of the ring: this round's records, which begin at 0,
  // follow those of the round before.
  if (overwritten >= end)
    return [...chain(ring, overwritten + 1, RING_WORDS), ...chain(ring, 0, end)];
  return chain(ring, overwritten + 1, end);
}

/**
 * Returns the records from `from`, or the first place after it, that follow one another up to
 * exactly `to`. Where the oldest one begins is not known, so the chain of records is found from its
 * end.
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
      commandOf(op) !== undefined &&
      (op === OP.pad || (words >= RECORD_BODY && stream >= -1 && stream < MAX_SLOTS))
    )
      leads[at - from] = 1;
  }
  const records: number[] = [];
  let at = leads.indexOf(1) + from;
  for (; at >= from && at < to; at += ring[at]! >>> 16) records.push(at);
  return records;
}
