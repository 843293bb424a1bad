/** An operation that many commands belong to: the run of a composed operation. */

/** The number of parts that a name lists. */
const LISTED = 4;

export class HeldOperation {
  readonly root: number;
  /** The name of the operation as a whole, if it has one. */
  label: string | undefined = undefined;
  /** Whether its name is recorded. */
  remembered = false;
  /** The first part, unformatted: most operations have one, whose name is never read. */
  private first: { toString(): string } | undefined = undefined;
  private firstMethod = '';
  /** The other parts. */
  private parts: string[] | undefined = undefined;
  private more = 0;

  constructor(root: number) {
    this.root = root;
  }

  /** Whether no name was given yet. */
  get isUnnamed(): boolean {
    return this.first === undefined && !this.remembered;
  }

  /** Adds the name of a part. */
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
