/**
 * A slot of page-locked memory in which one stream writes increasing fence values, and the waits
 * for them.
 */
export interface Waiter {
  seq: number;
  /** When the wait began: `performance.now()`. */
  start: number;
  resolve: () => void;
  reject: (reason: unknown) => void;
  promise: Promise<void>;
}

/**
 * Fields that contain milliseconds are initialised to -0, here and in `Completion`: V8 stores 0 as
 * a small integer, and the first fractional time would change the hidden class of all objects,
 * which discards all code that was compiled for it.
 */
export class CompletionSlot {
  readonly index: number;
  /** The last fence value that was assigned. */
  issued: number;
  /** The last fence value that was seen. */
  seen: number;
  /** The waits in the order of their values. */
  readonly waiters: Waiter[] = [];
  /**
   * A second place that shows the end of fence `earlySeq`: the fence counts as passed once word
   * `earlyAt` of these has reached `earlyValue`. The host observes the end of its own work before
   * the device has written a fence after it (13 µs, H100).
   */
  earlyWords: Int32Array | undefined = undefined;
  earlyAt = 0;
  earlyValue = 0;
  earlySeq = 0;
  /** How long the last wait took that did not end at once: milliseconds. */
  took = -0;
  /** The last fence that a spin did not see, and when that spin began: milliseconds. */
  vain: number;
  vainSince = -0;

  constructor(index: number, value: number) {
    this.index = index;
    this.issued = value;
    this.seen = value;
    this.vain = value;
  }
}
