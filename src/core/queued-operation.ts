/**
 * What a command says of itself: read from its record in the ring before it is committed, so that
 * what queues it need not tell.
 */
import {
  COPY_DEVICE_TO_DEVICE,
  COPY_DEVICE_TO_HOST,
  COPY_HOST_TO_DEVICE,
  COPY_PEER,
  GRID_PACKED,
  HANDLE_MASK,
  LAUNCH_EX,
  LINE_HANDLE_MASK,
  LINE_PACKED,
  OP,
  RECORD_BODY,
  RECORD_ROOT,
} from '../runtime/commands.js';
import { int64 } from '../runtime/copy-shapes.js';
import type { CopyDirection, OperationKind, OperationMessage } from './channels.js';
import { deviceName } from './channels.js';
import { currentLabel } from './label.js';
import type { Stream } from './stream.js';

/** What differs from command to command. */
type Details = Pick<
  OperationMessage,
  'kind' | 'memory' | 'grid' | 'block' | 'sharedBytes' | 'bytes' | 'direction' | 'graph'
> & {
  /** Handle of the kernel. */
  readonly kernel?: number;
};

/** What a transfer that holds its stream does, which its command does not say. */
export interface Held {
  readonly kind: OperationKind;
  readonly operation: number;
  /** What the operation was named where left out. */
  readonly name?: string;
  readonly memory: readonly number[];
  readonly bytes?: number;
  readonly direction?: CopyDirection;
  /**
   * Of work of the host while somebody records: when it began, in milliseconds of
   * `performance.now()`.
   */
  begun?: number;
}

const DIRECTIONS: Readonly<Record<number, CopyDirection>> = {
  [COPY_HOST_TO_DEVICE]: 'hostToDevice',
  [COPY_DEVICE_TO_HOST]: 'deviceToHost',
  [COPY_DEVICE_TO_DEVICE]: 'deviceToDevice',
  [COPY_PEER]: 'peer',
};
/** Of the kind of a 3-D copy; the other bits say which ends are arrays. */
const DIRECTION_MASK = 3;

/** Where the commands that copy say what: the source, the kind, and how many bytes. */
const COPIES: Readonly<
  Record<
    number,
    { source: number; kind: number; bytes: (words: Int32Array, body: number) => number }
  >
> = {
  [OP.copy]: { source: 3, kind: 8, bytes: (words, body) => int64(words, body + 6) },
  [OP.copy2D]: { source: 4, kind: 10, bytes: (words, body) => words[body + 8]! * words[body + 9]! },
  [OP.copy3D]: {
    source: 5,
    kind: 13,
    bytes: (words, body) => words[body + 10]! * words[body + 11]! * words[body + 12]!,
  },
};

const COMMANDS: Readonly<Record<number, (words: Int32Array, body: number) => Details>> = {
  [OP.copy]: (words, body) => copy(OP.copy, words, body),
  [OP.copy2D]: (words, body) => copy(OP.copy2D, words, body),
  [OP.copy3D]: (words, body) => copy(OP.copy3D, words, body),
  [OP.launchLine]: (words, body) => ({
    kind: 'launch',
    kernel: words[body]!,
    grid: [words[body + 1]!, 1, 1],
    block: [words[body + 2]!, 1, 1],
    sharedBytes: words[body + 3]!,
    memory: lineReferences(words, body + LINE_PACKED),
  }),
  [OP.launchGrid]: (words, body) => ({
    ...launch(words, body),
    memory: lineReferences(words, body + GRID_PACKED),
  }),
  [OP.launch]: (words, body) => ({
    ...launch(words, body),
    memory: references(words, body + 8, 2),
  }),
  [OP.launchEx]: (words, body) => ({
    ...launch(words, body),
    memory: references(words, body + 8 + LAUNCH_EX.words, 2),
  }),
  [OP.libraryCall]: (words, body) => ({ kind: 'library', memory: references(words, body + 1, 2) }),
  [OP.graphLaunch]: (words, body) => ({
    kind: 'graph',
    graph: words[body]!,
    memory: references(words, body + 1, 1),
  }),
  [OP.memset]: (words, body) => ({
    kind: 'fill',
    memory: [words[body]! & HANDLE_MASK],
    bytes: (words[body + 3]! / 8) * int64(words, body + 5) * Math.max(1, words[body + 7]!),
  }),
  [OP.alloc]: (words, body) => ({
    kind: 'alloc',
    memory: [words[body]!],
    bytes: int64(words, body + 2),
  }),
  [OP.free]: (words, body) => ({ kind: 'free', memory: [words[body]!] }),
  [OP.prefetch]: (words, body) => ({
    kind: 'prefetch',
    memory: [words[body]! & HANDLE_MASK],
    bytes: int64(words, body + 3),
  }),
  [OP.writeValue]: (words, body) => ({ kind: 'writeValue', memory: [words[body]! & HANDLE_MASK] }),
  [OP.waitValue]: (words, body) => ({ kind: 'waitValue', memory: [words[body]! & HANDLE_MASK] }),
  [OP.record]: () => ({ kind: 'record', memory: [] }),
  [OP.wait]: () => ({ kind: 'wait', memory: [] }),
  [OP.peerWait]: () => ({ kind: 'wait', memory: [] }),
  [OP.captureBegin]: () => ({ kind: 'capture', memory: [] }),
  [OP.captureEnd]: () => ({ kind: 'capture', memory: [] }),
  [OP.conditionCreate]: () => ({ kind: 'capture', memory: [] }),
  [OP.conditionalNode]: () => ({ kind: 'capture', memory: [] }),
  [OP.bodyBegin]: () => ({ kind: 'capture', memory: [] }),
  [OP.bodyEnd]: () => ({ kind: 'capture', memory: [] }),
  [OP.conditionForget]: () => ({ kind: 'capture', memory: [] }),
};

/** Commands that take time on the device; a stream that is held waits for JavaScript. */
export const TAKES_TIME: ReadonlySet<number> = new Set([
  OP.launchLine,
  OP.launchGrid,
  OP.launch,
  OP.launchEx,
  OP.graphLaunch,
  OP.copy,
  OP.copy2D,
  OP.copy3D,
  OP.memset,
  OP.prefetch,
  OP.waitValue,
  OP.hold,
  OP.libraryCall,
]);

/** Counts the command that `stream` has begun last, where it is a copy that runs. */
export function countCopy(stream: Stream): void {
  const { memory: words, place, kind: header } = stream.runtime.ring;
  const row = COPIES[header & 0xff];
  if (row === undefined) return;
  const body = place + RECORD_BODY;
  stream.copies.add(
    DIRECTIONS[words[body + row.kind]! & DIRECTION_MASK]!,
    row.bytes(words, body),
    words[place + RECORD_ROOT]!,
  );
}

/** The message of the command that `stream` has begun last. `held` says what a hold is for. */
export function queuedOperation(stream: Stream, held: Held | undefined): OperationMessage {
  const { runtime, slot, label: streamLabel, device } = stream;
  const { memory: words, place, kind: header } = runtime.ring;
  const op = header & 0xff;
  const operation = held?.operation ?? words[place + RECORD_ROOT]!;
  const { kernel, ...details }: Details =
    held ?? COMMANDS[op]?.(words, place + RECORD_BODY) ?? unknownCommand(op);
  const name =
    held?.name ??
    (kernel === undefined ? runtime.latestName(operation) : runtime.kernelNames.get(kernel)) ??
    details.kind;
  return {
    time: performance.now(),
    device: deviceName(device),
    stream: slot.index,
    streamLabel,
    ...details,
    operation,
    name,
    label: currentLabel(),
    captured: stream.captureScope !== undefined,
  };
}

function unknownCommand(op: number): never {
  throw new Error(`command ${op} is not described`);
}

function launch(
  words: Int32Array,
  body: number,
): Pick<Details, 'kind' | 'grid' | 'block' | 'sharedBytes'> & { kernel: number } {
  return {
    kind: 'launch',
    kernel: words[body]!,
    grid: [words[body + 1]!, words[body + 2]!, words[body + 3]!],
    block: [words[body + 4]!, words[body + 5]!, words[body + 6]!],
    sharedBytes: words[body + 7]!,
  };
}

function copy(op: number, words: Int32Array, body: number): Details {
  const { source, kind, bytes } = COPIES[op]!;
  return {
    kind: 'copy',
    memory: [words[body]! & HANDLE_MASK, words[body + source]! & HANDLE_MASK],
    bytes: bytes(words, body),
    direction: DIRECTIONS[words[body + kind]! & DIRECTION_MASK]!,
  };
}

function lineReferences(words: Int32Array, packed: number): number[] {
  return Array.from(
    { length: words[packed]! & 0xffff },
    (_, i) => words[packed + 1 + i]! & LINE_HANDLE_MASK,
  );
}

/** References of `stride` words each, behind the word that counts them. */
function references(words: Int32Array, head: number, stride: number): number[] {
  return Array.from(
    { length: words[head]! & 0xffff },
    (_, i) => words[head + 1 + stride * i]! & HANDLE_MASK,
  );
}
