/** How a thread of ONNX Runtime gives up on a request. */
import type { Refusal } from './messages.js';

/** Only {@link Refused.refusal} crosses to the JS thread. */
export class Refused extends Error {
  readonly refusal: Refusal;
  constructor(refusal: Refusal) {
    super(refusal.message);
    this.refusal = refusal;
  }
}
