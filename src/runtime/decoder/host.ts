/** The interface of the thread that the decoder runs on. */
import type { LibraryCaller } from '../../native/library-caller.js';
import type { Failure } from '../failure.js';
import type { NativeOutput } from '../native-output.js';

/** `trim`: pools release their unused memory. `frees`: queued frees are waited for. */
export type RoomStep = 'trim' | 'frees';

export interface DecoderHost {
  /** Is called when a command failed. The failure has its number already. */
  failed(failure: Failure): void;
  /** Is called when the context met a fault and cannot be used again. */
  lost(failure: Failure): void;
  /** Is called when a message waits in the port. */
  call(): void;
  /**
   * Returns standard output as native code writes it; undefined where it is not available. It is
   * called when a kernel first prints.
   */
  output(): NativeOutput | undefined;
  /** Returns the caller of library functions. It is called for the first such function. */
  libraryCaller(): LibraryCaller;
  /**
   * Is called when an allocation of `bytes` on `stream` found too little memory and waits. Returns
   * false where no step can help; otherwise SLOT_ROOM of the stream is incremented when the step
   * has been taken.
   */
  makeRoom(step: RoomStep, stream: number, bytes: number): boolean;
  /**
   * Is called when the device has been idle for some time, and memory has been freed since the last
   * call.
   */
  idle(): void;
}
