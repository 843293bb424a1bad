/** The names of the latest operations, for their errors: the last few thousand that were named. */

const KEPT = 4096;

export class OperationNames {
  private readonly roots = new Int32Array(KEPT);
  private readonly subjects: ({ toString(): string } | undefined)[] = Array.from(
    { length: KEPT },
    () => undefined,
  );
  private readonly methods: string[] = Array.from({ length: KEPT }, () => '');
  private next = 0;

  /**
   * Records a name. It costs three stores, because it is called for every operation that is not a
   * launch. The name is `subject` and `method`, joined when it is read: a string for each operation
   * would outlive thousands of others, so every collection of young garbage would move it.
   */
  set(root: number, subject: { toString(): string }, method = ''): void {
    const at = this.next;
    this.roots[at] = root;
    this.subjects[at] = subject;
    this.methods[at] = method;
    this.next = (at + 1) % KEPT;
  }

  /** Returns the name that was recorded last, if it is that of operation `root`. */
  latest(root: number): string | undefined {
    const at = (this.next + KEPT - 1) % KEPT;
    return this.roots[at] === root ? this.nameAt(at) : undefined;
  }

  /** Searches all names. */
  get(root: number): string | undefined {
    for (let back = 1; back <= KEPT; back++) {
      const at = (this.next + KEPT - back) % KEPT;
      if (this.roots[at] === root) return this.nameAt(at);
    }
    return undefined;
  }

  /** Returns a function that looks names up by their numbers, for callers that read many. */
  all(): (root: number) => string | undefined {
    const at = new Map<number, number>();
    for (let i = 0; i < KEPT; i++)
      at.set(this.roots[(this.next + i) % KEPT]!, (this.next + i) % KEPT);
    return (root) => this.nameAt(at.get(root) ?? -1);
  }

  private nameAt(at: number): string | undefined {
    const subject = this.subjects[at];
    if (subject === undefined) return undefined;
    // An operation of launches only has no name, unless it was given one.
    return `${subject.toString()}${this.methods[at]}` || undefined;
  }
}
