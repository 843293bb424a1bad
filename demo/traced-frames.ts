/**
 * Several photographs at once, traced: each goes through the pipeline on two streams of its own, so
 * that one is uploaded while kernels work on another and the results of a third come back.
 */
import { type CoreDevice, type Trace, recordTrace } from 'async-cuda/core';

import type { Image } from './image.js';
import type { Kernels } from './kernels.js';
import { runPipeline } from './pipeline.js';
import { fitWithin } from './resize.js';

const FRAMES = 4;
/**
 * Pixels of a frame's longer side: large enough that kernels and copies take a while on a GPU as
 * well.
 */
const SIDE = { cuda: 4000, cpu: 1200 } as const;

/** Runs the frames twice, the first time unrecorded. */
export async function traceFrames(
  device: CoreDevice,
  photograph: Image,
  kernels: Kernels,
): Promise<Trace> {
  const image = fitWithin(photograph, SIDE[device.kind]);
  const run = () =>
    Promise.all(
      Array.from({ length: FRAMES }, (_, i) =>
        runPipeline(device, image, kernels, `frame ${i + 1}`),
      ),
    );
  await run();
  const recording = recordTrace(device);
  await run();
  return recording.stop();
}
