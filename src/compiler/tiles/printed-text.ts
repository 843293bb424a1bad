/**
 * A text that is written piece by piece, with the part of the user's text that each piece comes
 * from.
 */
import type { TextOrigin } from '../signature.js';

interface Shown {
  readonly start: number;
  readonly end: number;
  readonly shown: { readonly start: number; readonly end: number };
}

export class PrintedText {
  private readonly shown: Shown[] = [];
  private written = '';

  get text(): string {
    return this.written;
  }

  write(text: string): void {
    this.written += text;
  }

  /** Records that the text that `print` writes comes from this part. */
  as(shown: { readonly start: number; readonly end: number }, print: () => void): void {
    const start = this.written.length;
    print();
    this.shown.push({
      start,
      end: this.written.length,
      shown: { start: shown.start, end: shown.end },
    });
  }

  /** The origin of the whole text. */
  origin(text: string): TextOrigin {
    // The innermost parts are recorded first.
    const { shown } = this;
    return {
      text,
      spanOf: (start, end) =>
        shown.find((each) => each.start <= start && end <= each.end)?.shown ?? {
          start: 0,
          end: text.length,
        },
    };
  }
}
