/** What the demo draws: the photographs in a grid, with a box around each digit and its label above it. */
import { Canvas, type Color } from '../canvas.js';
import { type Image } from '../image.js';
import { fitWithin } from '../resize.js';
import { BACKGROUND, QUIET, TEXT } from '../theme.js';
import { textWidth } from '../typeface.js';
import type { Detection } from './non-maximum-suppression.js';

/** A photograph, what it is called, and what was found. */
export interface Labelled {
  readonly name: string;
  readonly image: Image;
  readonly detections: readonly Detection[];
}

const PANEL = 600;
const MARGIN = 56;
const GAP = 40;
const HEADING = 132;
const CAPTION = 48;
const LINE = 2;
const TAG = 24;

/** A colour for each label: hues around the circle, light enough for dark letters. */
const COLORS: readonly Color[] = [
  [255, 99, 99], [255, 165, 70], [247, 215, 66], [168, 224, 80], [84, 222, 128], [72, 220, 210], [96, 178, 255], [150, 146, 255], [214, 132, 255], [255, 128, 200],
];
const INK: Color = [16, 18, 22];

export function drawBoxes(photographs: readonly Labelled[], { title, subtitle }: { readonly title: string; readonly subtitle: string }): Canvas {
  const columns = Math.min(2, photographs.length);
  const panels = photographs.map((photograph) => ({ ...photograph, shown: fitWithin(photograph.image, PANEL) }));
  const width = Math.max(PANEL, ...panels.map(({ shown }) => shown.width));
  const height = Math.max(...panels.map(({ shown }) => shown.height));
  const rows = Math.ceil(panels.length / columns);
  const canvas = new Canvas(2 * MARGIN + columns * width + (columns - 1) * GAP, MARGIN + HEADING + rows * (height + CAPTION) + (rows - 1) * GAP + MARGIN - 20, BACKGROUND);
  canvas.text(MARGIN, MARGIN + 32, title, { size: 40, color: TEXT });
  canvas.text(MARGIN, MARGIN + 76, subtitle, { size: 24, color: QUIET });
  panels.forEach(({ name, image, shown, detections }, i) => {
    const x = MARGIN + (i % columns) * (width + GAP);
    const y = MARGIN + HEADING + Math.floor(i / columns) * (height + CAPTION + GAP);
    canvas.draw(x, y, withBoxes(shown, detections, shown.width / image.width));
    canvas.text(x, y + height + 32, name, { size: 24, color: TEXT });
    canvas.text(x + width, y + height + 32, `${detections.length} digits`, { size: 24, color: QUIET, align: 'right' });
  });
  return canvas;
}

/** The photograph with the boxes, `scale` times as large as they were found. */
function withBoxes(image: Image, detections: readonly Detection[], scale: number): Image {
  const canvas = new Canvas(image.width, image.height, BACKGROUND);
  canvas.draw(0, 0, image);
  for (const { label, box } of detections) {
    const color = COLORS[Number(label) % COLORS.length]!;
    const [left, top, right, bottom] = [box.left, box.top, box.right, box.bottom].map((edge) => Math.round(edge * scale)) as [number, number, number, number];
    canvas.fill(left - LINE, top - LINE, right - left + 2 * LINE, LINE, color);
    canvas.fill(left - LINE, bottom, right - left + 2 * LINE, LINE, color);
    canvas.fill(left - LINE, top, LINE, bottom - top, color);
    canvas.fill(right, top, LINE, bottom - top, color);
    const wide = textWidth(label, 18) + 10;
    const above = top - LINE - TAG >= 0 ? top - LINE - TAG : bottom + LINE;
    canvas.fill(left - LINE, above, wide, TAG, color);
    canvas.text(left - LINE + 5, above + 18, label, { size: 18, color: INK });
  }
  return canvas;
}
