/** The error that ends a request on a thread of ONNX Runtime. */
import type { Refusal } from './messages.js';

/** Only {@link Refused.refusal} is sent to the JavaScript thread. */
export class Refused extends Error {
  readonly refusal: Refusal;
  constructor(refusal: Refusal) {
    super(refusal.message);
    this.refusal = refusal;
  }
}
