/** Ranges of dynamic extents that a program has not given. */
import { invalid, valueNamed } from '../ground/arguments.js';
import type { ShapeRange } from './engine-options.js';
import { checkRange } from './optimization-profile.js';

/**
 * The range of a first axis that is the only dynamic one: a batch, from one item on, tuned for 8.
 * The memory is sized for the greatest.
 */
export const DEFAULT_BATCH = { min: 1, opt: 8, max: 32 } as const;
const SELECTORS = ['min', 'opt', 'max'] as const;

/** An input of a network. */
interface DynamicInput {
  readonly name: string;
  readonly shape: readonly number[];
}

/**
 * Returns the range of each input that has dynamic extents, by name. Where none is given and only
 * the first extent is dynamic, it is {@link DEFAULT_BATCH}, or the batch of the inputs whose ranges
 * are given.
 *
 * @throws CudaArgumentError for an unknown input, and for one that needs a range
 */
export function rangesOf(
  inputs: readonly DynamicInput[],
  given: Readonly<Record<string, ShapeRange>>,
): Map<string, ShapeRange> {
  for (const name of Object.keys(given)) {
    if (!inputs.some((input) => input.name === name))
      throw invalid(
        `options.shapes.${name}`,
        `one of ${inputs.map((input) => `'${input.name}'`).join(', ')}`,
        name,
      );
    checkRange(`options.shapes.${name}`, given[name]!);
  }
  const like = inputs.find(
    ({ name, shape }) => valueNamed(given, name) !== undefined && shape[0] === -1,
  );
  const batch =
    like === undefined
      ? DEFAULT_BATCH
      : (Object.fromEntries(
          SELECTORS.map((selector) => [selector, given[like.name]![selector][0]!]),
        ) as Record<(typeof SELECTORS)[number], number>);
  const ranges = new Map<string, ShapeRange>();
  for (const { name, shape } of inputs) {
    const range = valueNamed(given, name) as ShapeRange | undefined;
    if (range !== undefined) {
      ranges.set(name, range);
      continue;
    }
    const dynamic = shape.flatMap((extent, axis) => (extent === -1 ? [axis] : []));
    if (dynamic.length === 0) continue;
    if (dynamic.length > 1 || dynamic[0] !== 0) {
      throw invalid(
        `options.shapes.${name}`,
        `a range for [${shape.join(', ')}]`,
        undefined,
        `Write shapes: { ${name}: { min: [...], opt: [...], max: [...] } }; only a first ` +
          'extent, the batch, has a range by itself.',
      );
    }
    const of = (selector: (typeof SELECTORS)[number]): number[] => [
      batch[selector],
      ...shape.slice(1),
    ];
    ranges.set(name, { min: of('min'), opt: of('opt'), max: of('max') });
  }
  return ranges;
}
