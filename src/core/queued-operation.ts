/**
 * The message of a queued command: read from its record in the ring before it is committed, as the
 * command's row says (`runtime/commands/`).
 */
import { OP, RECORD_BODY, RECORD_ROOT, commandOf } from '../runtime/commands.js';
import type { OperationDetails } from '../runtime/commands/trace.js';
import type { CopyDirection, OperationKind, OperationMessage } from './channels.js';
import { deviceName } from './channels.js';
import { currentLabel } from './label.js';
import type { Stream } from './stream.js';

/** What a transfer that holds its stream does; its command, a hold, does not say it. */
export interface Held {
  readonly kind: OperationKind;
  readonly operation: number;
  /** Where it is left out, the name that the operation was given. */
  readonly name?: string;
  readonly memory: readonly number[];
  readonly bytes?: number;
  readonly direction?: CopyDirection;
  /**
   * Of host work while a trace is recorded: when it began, in milliseconds of
   * `performance.now()`.
   */
  begun?: number;
}

/** Commands that take time on the device; a stream that is held waits for JavaScript. */
export const TAKES_TIME: ReadonlySet<number> = new Set(
  Object.values(OP).filter((op) => commandOf(op)!.takesTime),
);

/** Counts the command that `stream` has begun last, where it is a copy that runs. */
export function countCopy(stream: Stream): void {
  const { memory: words, place, kind: header } = stream.runtime.ring;
  const copies = commandOf(header & 0xff)?.copies;
  if (copies === undefined) return;
  const body = place + RECORD_BODY;
  stream.copies.add(
    copies.direction(words, body),
    copies.bytes(words, body),
    words[place + RECORD_ROOT]!,
  );
}

/** The message of the command that `stream` has begun last. `held` says what a hold is for. */
export function queuedOperation(stream: Stream, held: Held | undefined): OperationMessage {
  const { runtime, slot, label: streamLabel, device } = stream;
  const { memory: words, place, kind: header } = runtime.ring;
  const op = header & 0xff;
  const operation = held?.operation ?? words[place + RECORD_ROOT]!;
  const { kernel, ...details }: OperationDetails =
    held ?? commandOf(op)?.trace?.(words, place + RECORD_BODY) ?? unknownCommand(op);
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
  throw new Error(`command ${op} is no operation of a user, and was queued as one`);
}
