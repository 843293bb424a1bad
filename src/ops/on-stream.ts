/** An operation that is bound to a stream, within a run that may use another one. */
import { Stream } from '../core/index.js';
import { Later } from './node.js';
import type { Node, Submitted } from './node.js';
import type { Run } from './run.js';
import { invalid } from '../ground/arguments.js';

export class OnStream<T> implements Node<T> {
  readonly device: Stream['device'];
  private readonly inner: Node<T>;
  private readonly stream: Stream;

  constructor(inner: Node<T>, stream: Stream) {
    this.device = stream.device;
    this.inner = inner;
    this.stream = stream;
  }

  submit(run: Run): Submitted<T> {
    return onOther(run, this.stream, () => this.inner.submit(run));
  }

  describe(depth: number): string {
    return `${this.inner.describe(depth)}.on(${this.stream.title})`;
  }
}

/** Queues on another stream, after what the run has queued and before what it queues next. */
export function onOther<T>(run: Run, stream: Stream, submit: () => Submitted<T>): Submitted<T> {
  const outer = run.stream;
  if (outer === stream) return submit();
  stream.wait(outer);
  run.stream = stream;
  let value: Submitted<T>;
  try {
    value = submit();
  } finally {
    run.stream = outer;
  }
  if (value instanceof Later) {
    return run.goOn(value, (known) => {
      outer.wait(stream);
      return known;
    });
  }
  outer.wait(stream);
  return value;
}

export function checkStream(stream: unknown): asserts stream is Stream {
  if (!(stream instanceof Stream)) throw invalid('stream', 'a Stream', stream);
  stream.check();
}
