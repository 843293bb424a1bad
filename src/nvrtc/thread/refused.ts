/** How the compiler's thread gives up on a request. */
import type { Refusal } from './messages.js';

/** Thrown on the compiler's thread; only {@link Refused.refusal} crosses to the JS thread. */
export class Refused extends Error {
  readonly refusal: Refusal;
  constructor(refusal: Refusal) {
    super(refusal.reason);
    this.refusal = refusal;
  }
}
