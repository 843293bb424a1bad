/** The command that launches an executable graph, for graphs of this library and of others. */
import { FLAG_SHORT, OP } from '../runtime/commands.js';
import type { Stream } from './stream.js';

/**
 * Begins the command. The caller writes `count` handles with their accesses, and calls
 * {@link Stream.commitGraph}.
 *
 * @param short whether launching it takes so little time that the JavaScript thread may do it
 * @returns the place of the first handle in the ring
 */
export function beginGraphLaunch(
  stream: Stream,
  root: number,
  exec: number,
  short: boolean,
  count: number,
): number {
  const flags = short && stream.hasPassed(stream.mark) ? FLAG_SHORT : 0;
  const body = stream.begin(OP.graphLaunch, 6 + count, root, flags);
  const { memory } = stream.runtime.ring;
  memory[body] = exec;
  memory[body + 1] = count;
  return body + 2;
}
