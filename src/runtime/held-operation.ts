/**
 * An operation that many commands belong to: the run of a description that was put together of
 * several.
 */

/** Parts that a name lists. */
const LISTED = 4;

export class HeldOperation {
  readonly root: number;
  /** What it is called as a whole, if that has been said. */
  label: string | undefined = undefined;
  /** Whether it can be asked for its name. */
  remembered = false;
  /**
   * The first part, as it was told: most operations have one, and nobody asks what it is called.
   */
  private first: { toString(): string } | undefined = undefined;
  private firstMethod = '';
  /** The others. */
  private parts: string[] | undefined = undefined;
  private more = 0;

  constructor(root: number) {
    this.root = root;
  }

  /** Whether nothing was said of it yet. */
  get isUnnamed(): boolean {
    return this.first === undefined && !this.remembered;
  }

  /** A part of it is called so. */
  add(subject: { toString(): string }, method = ''): void {
    if (this.first === undefined) {
      this.first = subject;
      this.firstMethod = method;
    } else if ((this.parts ??= []).length < LISTED - 1)
      this.parts.push(`${subject.toString()}${method}`);
    else this.more++;
  }

  toString(): string {
    const first = this.first === undefined ? [] : [`${this.first.toString()}${this.firstMethod}`];
    const parts =
      [...first, ...(this.parts ?? [])].join(', ') +
      (this.more > 0 ? ` and ${this.more} more` : '');
    if (this.label === undefined) return parts;
    return parts === '' ? `'${this.label}'` : `'${this.label}' (${parts})`;
  }
}
