/** An operation with a name. */
import { labelled } from '../core/index.js';
import type { Node, Submitted } from './node.js';
import type { Run } from './run.js';

export class Labelled<T> implements Node<T> {
  readonly device: Node<T>['device'];
  private readonly inner: Node<T>;
  private readonly name: string;

  constructor(inner: Node<T>, name: string) {
    this.device = inner.device;
    this.inner = inner;
    this.name = name;
  }

  submit(run: Run): Submitted<T> {
    run.label(this.name);
    // For traces and profilers, where each part has its own label.
    return labelled(this.name, () => this.inner.submit(run));
  }

  describe(): string {
    return `'${this.name}'`;
  }
}
