/** The error that ends a request on the compiler's thread. */
import type { Refusal } from './messages.js';

/**
 * Thrown on the compiler's thread; only {@link Refused.refusal} is sent to the JavaScript thread.
 */
export class Refused extends Error {
  readonly refusal: Refusal;
  constructor(refusal: Refusal) {
    super(refusal.reason);
    this.refusal = refusal;
  }
}
