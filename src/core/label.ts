/**
 * What the work that is being queued is called: by whoever describes it, for channels, traces and
 * profilers.
 */
import { ranges } from '../runtime/ranges.js';
import { checkString, invalid } from '../ground/arguments.js';

let current: string | undefined;

/** The label of what is queued now. @internal */
export function currentLabel(): string | undefined {
  return current;
}

/**
 * Calls `body`. What it queues before it returns is called `label` in diagnostics channels and in
 * traces, and lies in an NVTX range of that name on a device that was opened with `nvtx`. The
 * innermost label counts. Gives what `body` gives.
 *
 * @example
 * ```ts
 * await using recording = recordTrace(device);
 * using x = device.alloc(f32, 4);
 * await labelled('clear', () => x.fill(device.stream, 0));
 * const { traceEvents } = (await recording.stop()).toJSON();
 * console.log(traceEvents.some(({ name }) => name.includes('clear'))); // true
 * ```
 * @throws CudaArgumentError where `label` is no text, or `body` no function
 */
export function labelled<T>(label: string, body: () => T): T {
  checkString('label', label);
  if (typeof body !== 'function') throw invalid('body', 'a function that queues work', body);
  const before = current;
  // The same ones at the end, though a device may be opened or closed meanwhile.
  const shown = ranges();
  current = label;
  shown?.push(label);
  try {
    return body();
  } finally {
    shown?.pop();
    current = before;
  }
}
