/** The label of the work that is being queued, for channels, traces and profilers. */
import { ranges } from '../runtime/ranges.js';
import { checkString, invalid } from '../ground/arguments.js';

let current: string | undefined;

/** The label of work that is queued now. @internal */
export function currentLabel(): string | undefined {
  return current;
}

/**
 * Calls `body`, and returns its result. Work that it queues before it returns has the label `label`
 * in diagnostics channels and in traces, and lies in an NVTX range of that name on a device that
 * was opened with `nvtx`. The innermost label counts.
 *
 * @example
 * ```ts
 * await using recording = recordTrace(device);
 * using x = device.alloc(f32, 4);
 * await labelled('clear', () => x.fill(device.stream, 0));
 * const { traceEvents } = (await recording.stop()).toJSON();
 * console.log(traceEvents.some(({ name }) => name.includes('clear'))); // true
 * ```
 * @throws CudaArgumentError where `label` is not a string, or `body` not a function
 */
export function labelled<T>(label: string, body: () => T): T {
  checkString('label', label);
  if (typeof body !== 'function') throw invalid('body', 'a function that queues work', body);
  const before = current;
  // The pop uses the same ranges, also where a device is opened or closed meanwhile.
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
