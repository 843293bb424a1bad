/**
 * The picture's last panel: when each stage ran on which stream, how long it took, and what
 * equalising did to the histogram.
 */
import type { Canvas } from './canvas.js';
import type { Stages } from './pipeline.js';
import { histogramOf } from './reference.js';
import type { StageTime, StreamName } from './stage-clock.js';
import { CARD, QUIET, RULE, TEXT, milliseconds, stageColor, streamColor } from './theme.js';

interface Box {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

/** The least room the panel needs. */
export const TIMELINE_MIN = { width: 540, height: 400 } as const;

const PADDING = 24;
const LANE = 30;
const LINE = 27;
const streams: readonly StreamName[] = ['A', 'B'];

/** Draws the panel into a box of at least {@link TIMELINE_MIN}. */
export function drawTimeline(canvas: Canvas, box: Box, { times, grey, equalised }: Stages): void {
  canvas.fill(box.x, box.y, box.width, box.height, CARD);
  const x = box.x + PADDING;
  const width = box.width - 2 * PADDING;

  drawLanes(canvas, { x, y: box.y + PADDING, width, height: 0 }, times);
  const table = box.y + PADDING + 2 * (LANE + 8) + 50;
  const gap = 28;
  const column = (width - gap) / 2;
  streams.forEach((stream, i) => {
    drawTable(
      canvas,
      { x: x + i * (column + gap), y: table, width: column, height: 0 },
      stream,
      times,
    );
  });

  const rows = Math.max(
    ...streams.map((stream) => times.filter((stage) => stage.stream === stream).length),
  );
  const top = table + rows * LINE + 6;
  const height = box.y + box.height - PADDING - 18 - top;
  [
    { label: 'grey', pixels: grey },
    { label: 'equalised', pixels: equalised },
  ].forEach(({ label, pixels }, i) => {
    drawHistogram(
      canvas,
      { x: x + i * (column + gap), y: top, width: column, height },
      label,
      pixels,
    );
  });
}

/** One lane per stream, a bar per stage, on one time axis. */
function drawLanes(canvas: Canvas, { x, y, width }: Box, times: readonly StageTime[]): void {
  const total = Math.max(...times.map(({ end }) => end));
  const label = 34;
  const scale = (width - label) / total;
  streams.forEach((stream, i) => {
    const top = y + i * (LANE + 8);
    canvas.text(x, top + 23, stream, { size: 24, color: streamColor[stream] });
    canvas.fill(x + label, top, width - label, LANE, RULE);
    for (const stage of times.filter((time) => time.stream === stream)) {
      const bar = Math.max((stage.end - stage.start) * scale, 1.5);
      canvas.fill(x + label + stage.start * scale, top, bar, LANE, stageColor(stage, times));
    }
  });
  const axis = y + 2 * (LANE + 8) + 16;
  canvas.text(x + label, axis, '0', { size: 18, color: QUIET });
  canvas.text(x + width, axis, milliseconds(total), { size: 18, color: QUIET, align: 'right' });
}

function drawTable(
  canvas: Canvas,
  { x, y, width }: Box,
  stream: StreamName,
  times: readonly StageTime[],
): void {
  times
    .filter((stage) => stage.stream === stream)
    .forEach((stage, i) => {
      const baseline = y + i * LINE;
      canvas.fill(x, baseline - 12, 12, 12, stageColor(stage, times));
      canvas.text(x + 22, baseline, stage.name, { size: 18, color: TEXT });
      canvas.text(x + width, baseline, milliseconds(stage.end - stage.start), {
        size: 18,
        color: QUIET,
        align: 'right',
      });
    });
}

/**
 * Grey levels from left to right, how many pixels have them upwards; the tallest bar fills the box.
 */
function drawHistogram(
  canvas: Canvas,
  { x, y, width, height }: Box,
  label: string,
  pixels: Uint8Array,
): void {
  const bins = histogramOf(pixels);
  const tallest = Math.max(...bins);
  const step = width / bins.length;
  bins.forEach((count, level) => {
    const bar = (count / tallest) * height;
    canvas.fill(x + level * step, y + height - bar, step, bar, QUIET);
  });
  canvas.fill(x, y + height, width, 1, RULE);
  canvas.text(x, y + height + 22, `levels, ${label}`, { size: 18, color: QUIET });
}
