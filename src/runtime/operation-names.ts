/** What the latest operations are called, for their errors: the last few thousand that were named. */

const KEPT = 4096;

export class OperationNames {
  private readonly roots = new Int32Array(KEPT);
  private readonly operations: ({ toString(): string } | undefined)[] = Array.from({ length: KEPT }, () => undefined);
  private next = 0;

  /** Costs two stores: it is called for every operation that is not a launch. */
  set(root: number, operation: { toString(): string }): void {
    const at = this.next;
    this.roots[at] = root;
    this.operations[at] = operation;
    this.next = (at + 1) % KEPT;
  }

  /** Looks through all of them. */
  get(root: number): string | undefined {
    for (let back = 1; back <= KEPT; back++) {
      const at = (this.next + KEPT - back) % KEPT;
      if (this.roots[at] === root) return this.operations[at]?.toString();
    }
    return undefined;
  }

  /** All of them by their numbers, for whoever asks for many. */
  all(): (root: number) => string | undefined {
    const at = new Map<number, number>();
    for (let i = 0; i < KEPT; i++) at.set(this.roots[(this.next + i) % KEPT]!, (this.next + i) % KEPT);
    return (root) => this.operations[at.get(root) ?? -1]?.toString();
  }
}
