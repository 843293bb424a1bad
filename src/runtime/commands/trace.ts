/**
 * What a command says of itself to traces, statistics and the error of a lost device.
 */

/** What a command of a stream does. */
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

/** Which way bytes go; `peer` is from another device. */
export type CopyDirection = 'hostToDevice' | 'deviceToHost' | 'deviceToDevice' | 'peer';

/** What differs from command to command in the message of a queued operation. */
export interface OperationDetails {
  readonly kind: OperationKind;
  /** Handles of the memory that the command uses; of a copy the destination first. */
  readonly memory: readonly number[];
  /** Handle of the kernel. */
  readonly kernel?: number;
  readonly grid?: readonly [number, number, number];
  readonly block?: readonly [number, number, number];
  readonly sharedBytes?: number;
  readonly bytes?: number;
  readonly direction?: CopyDirection;
  /** Handle of the executable graph. */
  readonly graph?: number;
}
