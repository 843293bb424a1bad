/**
 * What the demo draws: the photographs in a grid, with a box around each thing that was found and
 * its label above it.
 */
import { Canvas, type Color } from '../canvas.js';
import { type Image } from '../image.js';
import { fitWithin } from '../resize.js';
import { BACKGROUND, QUIET, TEXT } from '../theme.js';
import { textWidth } from '../typeface.js';
import type { Finding, Point } from './photograph.js';
import { type Area, placeTag } from './tag-placement.js';

/** A photograph, what it is called, and what was found. */
export interface Labelled {
  readonly name: string;
  readonly image: Image;
  readonly found: readonly Finding[];
}

/** Above the photographs. */
export interface PictureTitles {
  readonly title: string;
  readonly subtitle: string;
}

const PANEL = 720;
const MARGIN = 56;
const GAP = 40;
const HEADING = 132;
const CAPTION = 48;
const LINE = 2;
const TAG = 24;

/** One after the other: hues around the circle, light enough for dark letters. */
const COLORS: readonly Color[] = [
  [255, 99, 99],
  [255, 165, 70],
  [247, 215, 66],
  [168, 224, 80],
  [84, 222, 128],
  [72, 220, 210],
  [96, 178, 255],
  [150, 146, 255],
  [214, 132, 255],
  [255, 128, 200],
];
const INK: Color = [16, 18, 22];

export function drawBoxes(
  photographs: readonly Labelled[],
  { title, subtitle }: PictureTitles,
): Canvas {
  const columns = Math.min(2, photographs.length);
  const panels = photographs.map((photograph) => ({
    ...photograph,
    shown: fitWithin(photograph.image, PANEL),
  }));
  const width = Math.max(PANEL, ...panels.map(({ shown }) => shown.width));
  const height = Math.max(...panels.map(({ shown }) => shown.height));
  const rows = Math.ceil(panels.length / columns);
  const canvas = new Canvas(
    2 * MARGIN + columns * width + (columns - 1) * GAP,
    MARGIN + HEADING + rows * (height + CAPTION) + (rows - 1) * GAP + MARGIN - 20,
    BACKGROUND,
  );
  canvas.text(MARGIN, MARGIN + 32, title, { size: 40, color: TEXT });
  canvas.text(MARGIN, MARGIN + 76, subtitle, { size: 24, color: QUIET });
  panels.forEach(({ name, image, shown, found }, i) => {
    const x = MARGIN + (i % columns) * (width + GAP);
    const y = MARGIN + HEADING + Math.floor(i / columns) * (height + CAPTION + GAP);
    canvas.draw(x, y, withBoxes(shown, found, shown.width / image.width));
    canvas.text(x, y + height + 32, name, { size: 24, color: TEXT });
    canvas.text(x + width, y + height + 32, `${found.length} found`, {
      size: 24,
      color: QUIET,
      align: 'right',
    });
  });
  return canvas;
}

/** The photograph with the boxes, `scale` times as large as they were found. */
function withBoxes(image: Image, found: readonly Finding[], scale: number): Image {
  const canvas = new Canvas(image.width, image.height, BACKGROUND);
  canvas.draw(0, 0, image);
  const outlines = found.map(({ corners }) =>
    corners.map(({ x, y }) => ({ x: x * scale, y: y * scale })),
  );
  const taken = outlines.map(around);
  for (const [i, { label }] of found.entries()) {
    const color = COLORS[i % COLORS.length]!;
    const points = outlines[i]!;
    for (const [k, from] of points.entries())
      canvas.line(from, points[(k + 1) % points.length]!, LINE, color);
    const tag = placeTag(
      { width: textWidth(label, 18) + 10, height: TAG },
      taken[i]!,
      taken.filter((_, other) => other !== i),
      image,
    );
    taken.push(tag);
    canvas.fill(tag.left, tag.top, tag.width, tag.height, color);
    canvas.text(tag.left + 5, tag.top + 18, label, { size: 18, color: INK });
  }
  return canvas;
}

/** What a box covers with its outline, in whole pixels, its sides along the picture's. */
function around(points: readonly Point[]): Area {
  const [xs, ys] = [points.map(({ x }) => x), points.map(({ y }) => y)];
  const [left, top] = [Math.floor(Math.min(...xs)) - LINE, Math.floor(Math.min(...ys)) - LINE];
  return {
    left,
    top,
    width: Math.ceil(Math.max(...xs)) + LINE - left,
    height: Math.ceil(Math.max(...ys)) + LINE - top,
  };
}
