/** The picture of a trace shows the work of the streams, and how much of it overlapped. */
import { CoreDevice, type TraceJson } from 'async-cuda/core';
import * as fc from '../test/fast-check.js';
import { expect, test } from 'vitest';

import type { Canvas } from './canvas.js';
import { loadTypeScriptKernels } from './typescript-kernels.js';
import { noise } from './noise.js';
import { type Span, drawTrace, overlapOf, spansOf } from './trace-picture.js';
import { traceFrames } from './traced-frames.js';

const deviceName = (process.env['ASYNC_CUDA_TEST_DEVICE'] ?? 'cpu') as 'cpu' | 'cuda';

/** Those of the colour of kernels, row by row. */
function kernelPixels({ data }: Canvas): number[] {
  return Array.from({ length: data.length / 3 }, (_, pixel) => pixel).filter(
    (pixel) => data[3 * pixel] === 226 && data[3 * pixel + 1] === 142 && data[3 * pixel + 2] === 56,
  );
}

test('overlap is counted as by looking at every microsecond', { tags: 'random' }, () => {
  const span = fc
    .record({
      stream: fc.constantFrom('a', 'b', 'c'),
      start: fc.nat(40),
      length: fc.integer({ min: 1, max: 20 }),
    })
    .map(({ stream, start, length }): Span => ({
      stream,
      start,
      end: start + length,
      name: '',
      kind: 'kernel',
    }));
  fc.assert(
    fc.property(fc.array(span, { maxLength: 12 }), (spans) => {
      let [busy, overlapped] = [0, 0];
      for (let at = 0; at < 60; at++) {
        const streams = new Set(
          spans.filter(({ start, end }) => start <= at && at < end).map(({ stream }) => stream),
        );
        if (streams.size > 0) busy++;
        if (streams.size > 1) overlapped++;
      }
      expect(overlapOf(spans)).toEqual({ busy, overlapped });
    }),
  );
});

test('several photographs at once overlap, and can be drawn', { tags: 'thorough' }, async () => {
  await using device = await CoreDevice.open(deviceName);
  const trace = (
    await traceFrames(device, noise(300, 200), await loadTypeScriptKernels(device))
  ).toJSON();
  const spans = spansOf(trace);
  expect([...new Set(spans.map(({ stream }) => stream))].sort()).toEqual(
    [1, 2, 3, 4].flatMap((i) => [`frame ${i} A`, `frame ${i} B`]),
  );
  expect(spans.filter(({ kind }) => kind === 'kernel')).toHaveLength(4 * 7);
  expect(spans.filter(({ kind }) => kind === 'upload')).toHaveLength(4 * 2);
  expect(spans.filter(({ kind }) => kind === 'download')).toHaveLength(4 * 5);
  expect(overlapOf(spans).overlapped).toBeGreaterThan(0);
  const picture = drawTrace(trace, device.name);
  // Every lane has the colour of kernels in it.
  const rows = new Set(kernelPixels(picture).map((pixel) => Math.floor(pixel / picture.width)));
  expect([...rows].filter((row) => !rows.has(row - 1))).toHaveLength(8 + 1);
});

test('spans shorter than a pixel are drawn, also beside longer ones', () => {
  // Whether there are short kernels, at a third of a pixel's distance, before and after a copy's
  // end.
  const picture = (short: boolean): Canvas => {
    const kernels = short
      ? [
          [499.7, 0.01],
          [1000.3, 0.01],
        ]
      : [];
    const event = ([ts, dur]: number[], cat: string, args: object): object => ({
      ph: 'X',
      pid: 2,
      tid: 1,
      name: cat,
      cat,
      ts,
      dur,
      args,
    });
    const traceEvents = [
      { ph: 'M', name: 'thread_name', pid: 2, tid: 1, args: { name: "stream 'A'" } },
      ...kernels.map((times) => event(times, 'launch', {})),
      event([0, 500], 'copy', { direction: 'hostToDevice' }),
      event([1000, 500], 'copy', { direction: 'deviceToHost' }),
      event([9000, 10], 'copy', { direction: 'hostToDevice' }),
    ];
    return drawTrace({ traceEvents } as unknown as TraceJson, 'a device');
  };
  // Two columns of a lane, and the legend's square.
  expect(kernelPixels(picture(true))).toHaveLength(2 * 34 + 14 * 14);
  expect(kernelPixels(picture(false))).toEqual([]);
});
