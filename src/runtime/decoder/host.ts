/**
 * What the decoder asks of the thread that it runs on.
 */
import type { LibraryCaller } from '../../native/library-caller.js';
import type { Failure } from '../failure.js';
import type { NativeOutput } from '../native-output.js';

/** `trim`: pools give back what they keep. `frees`: frees that are queued are waited for. */
export type RoomStep = 'trim' | 'frees';

export interface DecoderHost {
  /** A command failed; the failure has its number already. */
  failed(failure: Failure): void;
  /** The context met a fault and cannot be used again. */
  lost(failure: Failure): void;
  /** A message waits in the port. */
  call(): void;
  /**
   * Standard output as native code writes it; undefined where it is not available. Asked when a
   * kernel first prints.
   */
  output(): NativeOutput | undefined;
  /** Calls functions of libraries. Asked when the first is called. */
  libraryCaller(): LibraryCaller;
  /**
   * An allocation of `bytes` on `stream` found too little memory and waits. Returns false where no
   * step can help; otherwise SLOT_ROOM of the stream grows by one when the step has been taken.
   */
  makeRoom(step: RoomStep, stream: number, bytes: number): boolean;
  /** The device has been idle for some time, and memory has been freed since the last time. */
  idle(): void;
}
