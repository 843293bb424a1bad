/**
 * The message of a queued command. It is read from the command's record in the ring before it is
 * committed, by the command's descriptor (`runtime/commands/`).
 */
import { OP, RECORD_BODY, RECORD_ROOT, commandOf } from '../runtime/commands.js';
import type { OperationDetails } from '../runtime/commands/trace.js';
import type { CopyDirection, OperationKind, OperationMessage } from './channels.js';
import { deviceName } from './channels.js';
import { currentLabel } from './label.js';
import type { Stream } from './stream.js';

/** A transfer that holds its stream. Its command, a hold, does not describe it. */
export interface Held {
  readonly kind: OperationKind;
  readonly operation: number;
  /** Its name. Default: the name of the operation. */
  readonly name?: string;
  readonly memory: readonly number[];
  readonly bytes?: number;
  readonly direction?: CopyDirection;
  /**
   * The time at which work of the host began, in milliseconds of `performance.now()`. It is set
   * while a trace is recorded.
   */
  begun?: number;
}

/**
 * Notes that work of the host which holds a stream begins. The runtime thread may not have reached
 * the command of the hold.
 */
export function hostWorkBegins(stream: Stream, work: Held): void {
  if (stream.shared.recorder !== undefined) work.begun = performance.now();
}

/**
 * Commands that take time on the device. A hold is not one of them: a held stream waits for
 * JavaScript.
 */
export const TAKES_TIME: ReadonlySet<number> = new Set(
  Object.values(OP).filter((op) => commandOf(op)!.takesTime),
);

/** Counts the last command of `stream`, where it is a copy that runs. */
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

/** The message of the last command of `stream`. `held` describes a hold. */
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
  throw new Error(`command ${op} was queued as an operation, and has no trace descriptor`);
}
