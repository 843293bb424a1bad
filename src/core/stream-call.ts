/**
 * Functions of the host in stream order. A call is a hold of its stream: the function is called
 * when a fence before the hold has passed, and the hold is released when the function has settled.
 */
import { CudaError } from '../ground/errors.js';
import { invalid, isThenable } from '../ground/arguments.js';
import { Pending, pendingOf } from './pending.js';
import { hostWorkBegins } from './queued-operation.js';
import type { Held } from './queued-operation.js';
import type { Stream } from './stream.js';

/** {@link Stream.call} */
export function callInOrder<T>(stream: Stream, callback: () => T | Promise<T>): Pending<T> {
  stream.check();
  if (typeof callback !== 'function') throw invalid('callback', 'a function', callback);
  stream.checkNotCaptured('stream.call()', 'call the function before or after graph.launch()');
  const { runtime, transferSlot } = stream;
  // There is always a fence: after it, it is known whether the stream could be created.
  const before =
    stream.mark === 0
      ? runtime.wait(stream.slot, stream.fenceAt(0, true), stream.slot.index)
      : stream.passed(stream.mark);
  const held = runtime.nextHold(transferSlot);
  const work: Held = { kind: 'call', operation: 0, name: 'stream.call', memory: [] };
  stream.hold(transferSlot, held, work);
  const run = async (): Promise<T> => {
    try {
      await before;
      const unmade = runtime.whyUnmade(stream.slot, 'stream.call');
      if (unmade !== undefined) throw unmade;
      hostWorkBegins(stream, work);
      const result = callback();
      if (result instanceof Pending && result.isOf(stream)) {
        // The returned work is unclaimed: it goes on once this function has failed.
        throw new CudaError(
          'ERR_CUDA_INVALID_ARGUMENT',
          'stream.call: the function returned work of the stream that it holds, which ' +
            'waits for the function. Queue it after the call, or on another stream.',
        );
      }
      return isThenable(result) ? await runtime.completion.orEnd(result) : result;
    } finally {
      runtime.release(transferSlot, held);
    }
  };
  return pendingOf(stream, run());
}
