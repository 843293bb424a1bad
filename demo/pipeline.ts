/**
 * The demo's pipeline: seven kernels on two streams.
 *
 *     stream A   upload → grey ─┬→ blur rows → blur columns → sobel
 *     stream B                  └→ histogram → table → equalise
 *
 * `runPipeline` enqueues all of it at once and returns to the event loop; the device does the rest.
 * Only the results are awaited.
 */
import { type CoreDevice, f32, u32, u8 } from 'async-cuda/core';

import { gaussianWeights } from './gaussian.js';
import type { Image } from './image.js';
import { type Kernels, loadKernels } from './kernels.js';
import type { StageImages } from './reference.js';
import { StageClock, type StageTime } from './stage-clock.js';

export interface Stages extends StageImages {
  readonly times: readonly StageTime[];
}

const LEVELS = 256;
/** Threads of a block that takes pixels in a row. */
const LINE = 256;
/**
 * The histogram's blocks stride over the image: enough of them to fill a GPU, few enough to merge
 * cheaply.
 */
const HISTOGRAM_BLOCKS = 256;
/** Threads of a block, and the pixels that it covers, as the kernels' sources have them. */
const BLUR_ROWS = { block: [64, 4], tile: [64, 4] } as const;
const BLUR_COLUMNS = { block: [32, 8], tile: [32, 32] } as const;
const SOBEL = { block: [32, 8], tile: [32, 8] } as const;

/**
 * Runs every stage on the device and reads all of them back. Pass `kernels` to load them only once.
 * `name` is for traces.
 */
export async function runPipeline(
  device: CoreDevice,
  image: Image,
  kernels?: Kernels,
  name = 'photograph',
): Promise<Stages> {
  const run = kernels ?? (await loadKernels(device));
  const { width, height } = image;
  const count = width * height;
  const lines = { grid: Math.ceil(count / LINE), block: LINE };

  using a = device.createStream({ label: `${name} A` });
  using b = device.createStream({ label: `${name} B` });

  // Stream-ordered: allocating, like everything below, is one more command in the queue.
  using rgb = device.alloc(u8, count * 3, { stream: a });
  using weights = device.alloc(f32, gaussianWeights().length, { stream: a });
  using grey = device.alloc(u8, count, { stream: a });
  using rows = device.alloc(f32, count, { stream: a });
  using blurred = device.alloc(u8, count, { stream: a });
  using edges = device.alloc(u8, count, { stream: a });
  using bins = device.alloc(u32, LEVELS, { stream: b });
  using table = device.alloc(u8, LEVELS, { stream: b });
  using equalised = device.alloc(u8, count, { stream: b });

  using clock = new StageClock(device, { A: a, B: b });

  clock.time('A', 'upload', (stream) => {
    rgb.write(stream, image.data);
    weights.write(stream, gaussianWeights());
  });
  const greyDone = clock.time('A', 'grey', (stream) => {
    run.grey.launch(stream, lines, rgb, grey, count);
  });

  bins.fill(b, 0);
  // The library tracks the writers of buffers and would insert this wait by itself; written out, it
  // shows the fork.
  b.wait(greyDone);

  clock.time('A', 'blur rows', (stream) => {
    run.blurRows.launch(stream, tiles(BLUR_ROWS, image), grey, rows, weights, width, height);
  });
  clock.time('B', 'histogram', (stream) => {
    const grid = Math.min(lines.grid, HISTOGRAM_BLOCKS);
    run.histogram.launch(stream, { grid, block: LEVELS }, grey, bins, count);
  });
  clock.time('A', 'blur columns', (stream) => {
    run.blurColumns.launch(
      stream,
      tiles(BLUR_COLUMNS, image),
      rows,
      blurred,
      weights,
      width,
      height,
    );
  });
  clock.time('B', 'table', (stream) => {
    run.equaliseTable.launch(stream, { grid: 1, block: LEVELS }, bins, table, count);
  });
  clock.time('A', 'sobel', (stream) => {
    run.sobel.launch(stream, tiles(SOBEL, image), blurred, edges, width, height);
  });
  clock.time('B', 'equalise', (stream) => {
    run.equalise.launch(stream, lines, grey, table, equalised, count);
  });

  const [greyBytes, blurredBytes, edgesBytes, histogram, equalisedBytes, times] = await Promise.all(
    [grey.read(a), blurred.read(a), edges.read(a), bins.read(b), equalised.read(b), clock.times()],
  );
  return {
    grey: greyBytes,
    blurred: blurredBytes,
    edges: edgesBytes,
    histogram,
    equalised: equalisedBytes,
    times,
  };
}

interface Tiling {
  readonly block: readonly [number, number];
  readonly tile: readonly [number, number];
}

/** The launch that covers the image with tiles. */
function tiles({ block, tile }: Tiling, { width, height }: Image) {
  return {
    grid: [Math.ceil(width / tile[0]), Math.ceil(height / tile[1]), 1] as [number, number, number],
    block: [block[0], block[1], 1] as [number, number, number],
  };
}
