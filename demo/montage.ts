/**
 * The picture that the demo writes: input, stages and timeline in a grid of three by two, under a
 * heading.
 */
import { Canvas } from './canvas.js';
import type { Image } from './image.js';
import type { Stages } from './pipeline.js';
import { fitWithin } from './resize.js';
import type { StreamName } from './stage-clock.js';
import { BACKGROUND, CARD, QUIET, TEXT, milliseconds, streamColor } from './theme.js';
import { TIMELINE_MIN, drawTimeline } from './timeline.js';

export interface Heading {
  readonly title: string;
  readonly subtitle: string;
}

interface Panel {
  readonly title: string;
  /** The small line under the title. */
  readonly note: string;
  readonly stream: StreamName;
  /** The names of the stages whose times add up to the panel's. */
  readonly stages: readonly string[];
  image(input: Image, stages: Stages): Image;
}

const panels: readonly Panel[] = [
  { title: 'Input', note: 'upload', stream: 'A', stages: ['upload'], image: (input) => input },
  {
    title: 'Grey',
    note: 'grey',
    stream: 'A',
    stages: ['grey'],
    image: (input, { grey }) => greyImage(input, grey),
  },
  {
    title: 'Gaussian blur',
    note: 'blur_rows, blur_columns',
    stream: 'A',
    stages: ['blur rows', 'blur columns'],
    image: (input, { blurred }) => greyImage(input, blurred),
  },
  {
    title: 'Sobel edges',
    note: 'sobel',
    stream: 'A',
    stages: ['sobel'],
    image: (input, { edges }) => greyImage(input, edges),
  },
  {
    title: 'Equalised',
    note: 'histogram, equalise_table, equalise',
    stream: 'B',
    stages: ['histogram', 'table', 'equalise'],
    image: (input, { equalised }) => greyImage(input, equalised),
  },
];

const COLUMNS = 3;
const PANEL = 600;
const MARGIN = 56;
const GAP = 40;
const HEADING = 132;
const CAPTION = 74;

/**
 * Draws the picture. All panels are at the same scale: images larger than a panel shrink, small
 * ones grow by whole factors.
 */
export function drawMontage(input: Image, stages: Stages, { title, subtitle }: Heading): Canvas {
  const images = panels.map((panel) => fitWithin(panel.image(input, stages), PANEL));
  const cellWidth = Math.max(images[0]!.width, TIMELINE_MIN.width);
  const cellHeight = Math.max(images[0]!.height, TIMELINE_MIN.height);
  const rows = Math.ceil((panels.length + 1) / COLUMNS);
  const canvas = new Canvas(
    2 * MARGIN + COLUMNS * cellWidth + (COLUMNS - 1) * GAP,
    MARGIN + HEADING + rows * (cellHeight + CAPTION) + (rows - 1) * GAP + MARGIN - 20,
    BACKGROUND,
  );
  canvas.text(MARGIN, MARGIN + 34, title, { size: 40, color: TEXT });
  canvas.text(MARGIN, MARGIN + 80, subtitle, { size: 24, color: QUIET });

  const cell = (index: number): { x: number; y: number } => ({
    x: MARGIN + (index % COLUMNS) * (cellWidth + GAP),
    y: MARGIN + HEADING + Math.floor(index / COLUMNS) * (cellHeight + CAPTION + GAP),
  });

  panels.forEach((panel, i) => {
    const { x, y } = cell(i);
    const image = images[i]!;
    canvas.fill(x, y, cellWidth, cellHeight, CARD);
    canvas.draw(
      x + Math.floor((cellWidth - image.width) / 2),
      y + Math.floor((cellHeight - image.height) / 2),
      image,
    );

    const took = stages.times
      .filter(({ name }) => panel.stages.includes(name))
      .reduce((sum, { start, end }) => sum + end - start, 0);
    drawCaption(canvas, { x, y: y + cellHeight, width: cellWidth }, panel, milliseconds(took));
  });

  const last = cell(panels.length);
  drawTimeline(canvas, { ...last, width: cellWidth, height: cellHeight }, stages);
  canvas.text(last.x, last.y + cellHeight + 36, 'Timeline', { size: 24, color: TEXT });
  canvas.text(last.x, last.y + cellHeight + 64, 'two streams, times from device events', {
    size: 18,
    color: QUIET,
  });
  return canvas;
}

interface Line {
  readonly x: number;
  readonly y: number;
  readonly width: number;
}

function drawCaption(
  canvas: Canvas,
  { x, y, width }: Line,
  { title, note, stream }: Panel,
  time: string,
): void {
  canvas.text(x, y + 36, title, { size: 24, color: TEXT });
  canvas.text(x + width, y + 36, time, { size: 24, color: TEXT, align: 'right' });
  canvas.text(x, y + 64, note, { size: 18, color: QUIET });
  canvas.text(x + width, y + 64, `stream ${stream}`, {
    size: 18,
    color: streamColor[stream],
    align: 'right',
  });
}

function greyImage({ width, height }: Image, grey: Uint8Array): Image {
  const data = new Uint8Array(grey.length * 3);
  grey.forEach((level, i) => data.fill(level, 3 * i, 3 * i + 3));
  return { width, height, data };
}
