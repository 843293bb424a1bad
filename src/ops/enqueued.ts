/** Work of level 3 as a node. */
import { Pending } from '../core/index.js';
import { wrongDevice } from './wrong-device.js';
import { Later } from './node.js';
import type { Node, Submitted } from './node.js';
import type { Run } from './run.js';
import type { OpContext } from './op-context.js';

/**
 * The class exists because programs make this node most often: a function around the callback would
 * be garbage as well.
 */
export class Enqueued<T> implements Node<T> {
  readonly device: Node<T>['device'];
  readonly queue: (context: OpContext) => T | Pending<T>;

  constructor(device: Node<T>['device'], queue: (context: OpContext) => T | Pending<T>) {
    this.device = device;
    this.queue = queue;
  }

  submit(run: Run): Submitted<T> {
    const { queue, device } = this;
    if (device !== undefined && device.runtime !== run.stream.runtime)
      throw wrongDevice('operation', device, run.stream);
    return arrival(run, queue(run));
  }

  describe(): string {
    return 'operation';
  }
}

/** The value of a Pending, as a node's value. */
export function arrival<T>(run: Run, given: T | Pending<T>): Submitted<T> {
  if (!(given instanceof Pending)) return given;
  if (!given.gives) return undefined as T;
  run.checkNotRecording('a value of the host', 'read it after graph.replay()');
  return new Later(given.then(), true, 'nothing');
}
