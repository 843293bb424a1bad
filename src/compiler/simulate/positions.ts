/** Failures with their place in the source. */
import type { KernelTree, Span } from '../tree.js';
import { SimulationError } from './failure.js';
import type { Failure, Index3, Locate, SourcePosition } from './failure.js';
import { placeInText } from './mapped-text.js';
import { Deadlock } from './schedule.js';

/** The place of a span, in the user's file or else in the kernel's own text. */
function positionOf(
  tree: KernelTree,
  span: Span | undefined,
  locate: Locate | undefined,
): SourcePosition | undefined {
  if (span === undefined) return undefined;
  const text = tree.texts[span.text];
  const known = locate?.(span);
  if (known !== undefined || text === undefined) return known;
  return { file: `<kernel ${tree.name}>`, ...placeInText(text, span.start) };
}

/**
 * Makes the error for a failure of a thread; `thread` and `block` are undefined where many threads
 * take part. `sites`: places in the source by the numbers in the generated code.
 */
export function simulationError(
  tree: KernelTree,
  sites: readonly Span[],
  locate: Locate | undefined,
  failure: Failure,
  thread?: Index3,
  block?: Index3,
): SimulationError {
  const span = sites[failure.site];
  let { what } = failure;
  if (failure instanceof Deadlock) {
    what += failure.waiting
      .map(({ operation, site, threads }) => {
        const position = positionOf(tree, sites[site], locate);
        const place =
          position === undefined ? '' : ` at ${position.file}:${position.line}:${position.column}`;
        return `\n  ${operation}${place}: ${threads}`;
      })
      .join('');
    what += failure.waiting.length > 0 ? '\n' : '';
  }
  return new SimulationError(
    tree.name,
    { kind: failure.kind, what, fix: failure.fix },
    {
      ...(thread && { thread }),
      ...(block && { block }),
      span,
      position: positionOf(tree, span, locate),
    },
  );
}
