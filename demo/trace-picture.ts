/**
 * A trace as a picture: a lane for each stream, with what it did when, and how much of the time
 * several of them worked.
 */
import type { TraceEvent, TraceJson } from 'async-cuda/core';

import { Canvas, type Color } from './canvas.js';
import { BACKGROUND, CARD, QUIET, RULE, TEXT, milliseconds } from './theme.js';

/** One operation on a stream; microseconds on the trace's clock. */
export interface Span {
  readonly stream: string;
  readonly name: string;
  readonly kind: SpanKind;
  readonly start: number;
  readonly end: number;
}

export type SpanKind = 'upload' | 'download' | 'kernel' | 'other';

const COLORS: Readonly<Record<SpanKind, Color>> = {
  upload: [64, 128, 190],
  kernel: [226, 142, 56],
  download: [112, 188, 236],
  other: [120, 126, 142],
};

const MARGIN = 56;
const WIDTH = 1600;
const LABEL = 110;
const LANE = 34;
const GAP = 8;
const TOP = 150;
/** The process that a trace's streams are threads of. */
const DEVICE = 2;

/** What the streams did, in the order of the trace. */
export function spansOf({ traceEvents }: TraceJson): Span[] {
  const names = new Map(
    traceEvents
      .filter(({ ph, name, pid }) => ph === 'M' && name === 'thread_name' && pid === DEVICE)
      .map(({ tid, args }) => [tid, String(args?.['name']).replace(/^stream '(.*)'$/, '$1')]),
  );
  return traceEvents
    .filter(({ ph, pid }) => ph === 'X' && pid === DEVICE)
    .map((event) => ({
      stream: names.get(event.tid) ?? String(event.tid),
      name: event.name,
      kind: kindOf(event),
      start: event.ts!,
      end: event.ts! + event.dur!,
    }));
}

function kindOf({ cat, args }: TraceEvent): SpanKind {
  if (cat === 'launch') return 'kernel';
  if (cat !== 'copy') return 'other';
  return args?.['direction'] === 'hostToDevice'
    ? 'upload'
    : args?.['direction'] === 'deviceToHost'
      ? 'download'
      : 'other';
}

/** Microseconds in which spans of at least two streams went on at once, and in which any did. */
export function overlapOf(spans: readonly Span[]): { overlapped: number; busy: number } {
  const ends = spans
    .flatMap(({ stream, start, end }) => [
      { at: start, stream, by: 1 },
      { at: end, stream, by: -1 },
    ])
    .sort((a, b) => a.at - b.at || a.by - b.by);
  const working = new Map<string, number>();
  let [overlapped, busy, last] = [0, 0, 0];
  for (const { at, stream, by } of ends) {
    if (working.size > 0) busy += at - last;
    if (working.size > 1) overlapped += at - last;
    last = at;
    const count = (working.get(stream) ?? 0) + by;
    if (count === 0) working.delete(stream);
    else working.set(stream, count);
  }
  return { overlapped, busy };
}

export function drawTrace(trace: TraceJson, device: string): Canvas {
  const spans = spansOf(trace);
  const streams = [...new Set(spans.map(({ stream }) => stream))].sort();
  const from = Math.min(...spans.map(({ start }) => start));
  const total = Math.max(...spans.map(({ end }) => end)) - from;
  const { overlapped, busy } = overlapOf(spans);

  const canvas = new Canvas(WIDTH, TOP + streams.length * (LANE + GAP) + 2 * MARGIN, BACKGROUND);
  canvas.text(MARGIN, MARGIN + 30, `Four photographs, ${streams.length} streams`, {
    size: 40,
    color: TEXT,
  });
  canvas.text(
    MARGIN,
    MARGIN + 68,
    [
      device,
      `${milliseconds(total / 1000)} in all`,
      `two streams or more at work in ${Math.round((100 * overlapped) / busy)} % of the time`,
    ].join('  ·  '),
    { size: 24, color: QUIET },
  );

  const left = MARGIN + LABEL;
  const scale = (WIDTH - MARGIN - left) / total;
  streams.forEach((stream, i) => {
    const y = TOP + i * (LANE + GAP);
    canvas.text(MARGIN, y + 24, stream, { size: 18, color: TEXT });
    canvas.fill(left, y, WIDTH - MARGIN - left, LANE, CARD);
    // What is shorter than a column of pixels has one of its own, above longer ones beside it: on a
    // long trace it would be gone.
    for (const { start, end, kind } of spans
      .filter((span) => span.stream === stream)
      .sort((a, b) => b.end - b.start - (a.end - a.start))) {
      const [x, width] = [left + (start - from) * scale, (end - start) * scale];
      canvas.fill(width < 1 ? Math.floor(x) : x, y, Math.max(width, 1), LANE, COLORS[kind]);
    }
  });

  const axis = TOP + streams.length * (LANE + GAP) + 8;
  canvas.fill(left, axis, WIDTH - MARGIN - left, 1, RULE);
  canvas.text(left, axis + 26, '0', { size: 18, color: QUIET });
  canvas.text(WIDTH - MARGIN, axis + 26, milliseconds(total / 1000), {
    size: 18,
    color: QUIET,
    align: 'right',
  });
  let x = left + 80;
  for (const [kind, color] of Object.entries(COLORS)) {
    if (!spans.some((span) => span.kind === kind)) continue;
    canvas.fill(x, axis + 13, 14, 14, color);
    canvas.text(x + 24, axis + 26, kind, { size: 18, color: QUIET });
    x += 160;
  }
  return canvas;
}
