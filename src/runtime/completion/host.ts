/** The interface of the runtime that the completion belongs to. */
export interface CompletionHost {
  /** Whether the device computes on as many threads as there are cores. */
  readonly crowded: boolean;
  /** Decodes and polls on this thread, where the runtime has no thread of its own. */
  turn: (() => boolean) | undefined;
  /** Reads messages. It is called whenever the counter of posted messages has changed. */
  messages(): void;
  /** Moves overflowing commands into the ring. Returns whether none are left. */
  flush(): boolean;
  /** Wakes the runtime thread if it sleeps. */
  wake(): void;
  /** The error that everything in flight rejects with, once the device is lost or closed. */
  lost(): Error | undefined;
}
