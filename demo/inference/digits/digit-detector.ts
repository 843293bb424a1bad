/**
 * Photographs in, digits out: those of the host are uploaded as they are; all are brought to the
 * model's size and numbers by one kernel for each eight of them, and run through the model
 * together.
 */
import { fileURLToPath } from 'node:url';

import { type Device, type DeviceOp, f32, value } from 'async-cuda';
import type { Engine, LoadEngineOptions } from 'async-cuda/inference';
import { letterboxNormaliseBatch, letterboxPlacement } from 'async-cuda/images';

import { type Photograph, sizeOf, withPhotographs } from '../photograph.js';
import { inTurns } from '../turns.js';
import { candidatesOf } from './digit-candidates.js';
import { INPUT_SIZE, decodeDigits } from './digit-decoding.js';
import type { Detection } from './non-maximum-suppression.js';

/** The model: see `model/README.md`. */
export const MODEL = fileURLToPath(new URL('model/digits.onnx', import.meta.url));
/** What the model takes, of so many photographs. */
export const shapeOf = (photographs: number): { image: [number, number, number, number] } => ({
  image: [photographs, 3, INPUT_SIZE, INPUT_SIZE],
});
/** TensorRT needs the batches that it has to take; ONNX Runtime takes all. */
export const ENGINE_OPTIONS: LoadEngineOptions = {
  tensorrt: {
    shapes: { image: { min: shapeOf(1).image, opt: shapeOf(8).image, max: shapeOf(32).image } },
  },
};

export class DigitDetector {
  private readonly device: Device;
  private readonly engine: Engine;
  private readonly batchFor: (photographs: number) => number;

  /**
   * @param engine of `model/digits.onnx`, on the device; it stays the caller's
   * @param batchFor how many photographs a batch is made for that has as many, where not every size
   *   is as good: the rest of it is nothing
   */
  constructor(
    device: Device,
    engine: Engine,
    batchFor = (photographs: number): number => photographs,
  ) {
    this.device = device;
    this.engine = engine;
    this.batchFor = batchFor;
  }

  /**
   * The digits of each photograph, best first, as an operation. What is known before it runs is
   * checked at the call.
   */
  detect(photographs: readonly Photograph[]): DeviceOp<Detection[][]> {
    if (photographs.length === 0) return value([]);
    return withPhotographs(this.device, photographs, (images) =>
      this.device.uninitialized(f32, shapeOf(this.batchFor(images.length)).image).andThen((image) =>
        letterboxNormaliseBatch(images, {
          ...INPUT,
          ...NORMALISATION,
          dtype: f32,
          out: image.slice([0, images.length]),
        }).andThen(() => this.engine.infer({ image })),
      ),
    )
      .andThen(({ digits, distances }) =>
        candidatesOf(this.device, digits!, distances!, photographs.length),
      )
      .andThen((candidates) => {
        const decode = (i: number): Detection[] => {
          const size = sizeOf(photographs[i]!);
          return decodeDigits(candidates[i]!, letterboxPlacement(size, INPUT), size);
        };
        const numbers = candidates.reduce((sum, { length }) => sum + length, 0);
        if (numbers <= NUMBERS_IN_A_TURN) return value(candidates.map((_, i) => decode(i)));
        return inTurns(this.device, async (rest) => {
          const found: Detection[][] = [];
          for (const i of candidates.keys()) {
            found.push(decode(i));
            await rest();
          }
          return found;
        });
      })
      .label(`digits of ${photographs.length} photographs`);
  }
}

/**
 * Numbers of candidates that are decoded at once: photographs have some hundreds each, and noise
 * has thousands.
 */
const NUMBERS_IN_A_TURN = 16_384;
const INPUT = { width: INPUT_SIZE, height: INPUT_SIZE };
/** As the model was trained: from -1 to 1, and grey around the photograph. */
const NORMALISATION = { mean: 0.5, deviation: 0.5, color: 114 };
