/** The ratios of a source's and a result's sizes, for kernels that resize. */

/** Sizes of the source (`from`) and of the result (`to`), divided by their common divisor. */
export interface Proportions {
  readonly fromX: number;
  readonly toX: number;
  readonly fromY: number;
  readonly toY: number;
}

interface Extents {
  readonly width: number;
  readonly height: number;
}

export function proportionsOf(image: Extents, out: Extents): Proportions {
  const [fromX, toX] = reduced(image.width, out.width);
  const [fromY, toY] = reduced(image.height, out.height);
  return { fromX, toX, fromY, toY };
}

/** Divides both by their greatest common divisor. */
function reduced(from: number, to: number): readonly [number, number] {
  let [a, b] = [from, to];
  while (b !== 0) [a, b] = [b, a % b];
  return [from / a, to / a];
}
