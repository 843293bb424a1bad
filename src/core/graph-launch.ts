/** How the launch of an executable graph is told, whoever has made the graph. */
import { FLAG_SHORT, OP } from '../runtime/commands.js';
import type { Stream } from './stream.js';

/**
 * Begins the command. What the graph uses follows, `count` handles with what it does with them, and
 * {@link Stream.commitGraph}.
 *
 * @param short whether launching it takes so little time that the JS thread may do it
 * @returns where the first of them goes in the ring
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
