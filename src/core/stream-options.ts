/** The options of streams, and their checks. */
import { checkBoolean, checkInteger, checkLabel, checkOptions } from '../ground/arguments.js';

/** Options of {@link CoreDevice.createStream}. */
export interface StreamOptions {
  /**
   * The priority. Lower numbers come first; `device.streamPriorities` is the range. Default 0.
   * cuStreamCreateWithPriority
   */
  priority?: number;
  /**
   * Whether the stream is ordered with the legacy default stream (without CU_STREAM_NON_BLOCKING).
   * Default false.
   */
  blocking?: boolean;
  /** The label that errors show. */
  label?: string;
}

/** The options that a stream is made with: those given, checked, and the defaults. */
export function checkedStreamOptions(options: StreamOptions): {
  priority: number;
  blocking: boolean;
  label: string | undefined;
} {
  checkOptions('options', options, ['priority', 'blocking', 'label']);
  const { priority = 0, blocking = false, label } = options;
  checkInteger('options.priority', priority, -2147483648, 2147483647);
  checkBoolean('options.blocking', blocking);
  checkLabel('options.label', label);
  return { priority, blocking, label };
}
