/** An error in a kernel's source: the place, what is wrong, and what to write instead. */
import { CLASS_NAME, NamedError } from '../ground/named-error.js';
import type { Span } from './tree.js';

/**
 * The error of reading and compiling kernels. Offsets are in the function's own text; the caller
 * that has the file converts them to its lines.
 */
export class KernelSourceError extends NamedError {
  /** @internal */
  static override readonly [CLASS_NAME]: string = 'KernelSourceError';

  override readonly name = 'KernelSourceError';

  /** What is wrong, in one sentence without a full stop. */
  readonly what: string;
  /** What to write instead, as a sentence. */
  readonly fix: string;
  /** The place; undefined where the error concerns the whole kernel. */
  readonly span: Span | undefined;
  /** The text that `span` is in. */
  readonly text: string;

  constructor(what: string, fix: string, span: Span | undefined, text: string) {
    super(`${what}. ${fix}`);
    this.what = what;
    this.fix = fix;
    this.span = span;
    this.text = text;
  }
}
