/** The description of a command in traces, statistics and the error of a lost device. */

/** The kind of a stream's command. */
export type OperationKind =
  | 'launch'
  | 'graph'
  | 'copy'
  | 'fill'
  | 'alloc'
  | 'free'
  | 'prefetch'
  | 'record'
  | 'wait'
  | 'writeValue'
  | 'waitValue'
  | 'call'
  | 'capture'
  | 'library';

/** The direction of a copy; `peer` is from another device. */
export type CopyDirection = 'hostToDevice' | 'deviceToHost' | 'deviceToDevice' | 'peer';

/** The properties that differ from command to command in the message of a queued operation. */
export interface OperationDetails {
  readonly kind: OperationKind;
  /** Handles of the memory that the command uses; the destination of a copy is first. */
  readonly memory: readonly number[];
  /** The handle of the kernel. */
  readonly kernel?: number;
  readonly grid?: readonly [number, number, number];
  readonly block?: readonly [number, number, number];
  readonly sharedBytes?: number;
  readonly bytes?: number;
  readonly direction?: CopyDirection;
  /** The handle of the executable graph. */
  readonly graph?: number;
}
