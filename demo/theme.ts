/** The picture's colours and how it writes numbers. */
import type { Color } from './canvas.js';
import type { StageTime, StreamName } from './stage-clock.js';

export const BACKGROUND: Color = [18, 20, 26];
export const CARD: Color = [29, 32, 41];
export const RULE: Color = [58, 64, 80];
export const TEXT: Color = [236, 239, 244];
export const QUIET: Color = [146, 153, 171];

/** Streams have a hue, stages of one stream its shades, in the order in which they run. */
const shades: Readonly<Record<StreamName, readonly Color[]>> = {
  A: [
    [52, 96, 150],
    [64, 128, 190],
    [80, 160, 220],
    [112, 188, 236],
    [158, 214, 248],
  ],
  B: [
    [186, 104, 40],
    [226, 142, 56],
    [250, 186, 100],
  ],
};

export const streamColor: Readonly<Record<StreamName, Color>> = {
  A: [80, 160, 220],
  B: [226, 142, 56],
};

/** The stage's shade of its stream's hue. */
export function stageColor(stage: StageTime, times: readonly StageTime[]): Color {
  const colors = shades[stage.stream];
  const index = times.filter(({ stream }) => stream === stage.stream).indexOf(stage);
  return colors[index % colors.length]!;
}

/**
 * Milliseconds with three or four significant digits, enough for a kernel of a few microseconds.
 */
export function milliseconds(value: number): string {
  return `${value.toFixed(value < 10 ? 3 : value < 100 ? 2 : 1)} ms`;
}
