/** What the completion asks of the runtime that it belongs to. */
export interface CompletionHost {
  /** Whether the device computes on as many threads as there are cores. */
  readonly crowded: boolean;
  /** Decodes and polls on this thread, where the runtime has no thread of its own. */
  turn: (() => boolean) | undefined;
  /** Reads messages; called whenever the posted counter moved. */
  messages(): void;
  /** Moves overflowing commands on; returns whether none are left. */
  flush(): boolean;
  /** Wakes the runtime thread if it sleeps. */
  wake(): void;
  /** The error that everything in flight rejects with, once the device is lost or closed. */
  lost(): Error | undefined;
}
