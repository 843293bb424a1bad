/**
 * Photographs in, digits out: those of the host are uploaded as they are; all are brought to the model's size and numbers by one
 * kernel each, and run through the model together.
 */
import { fileURLToPath } from 'node:url';

import { type AnyTensor, type Device, type DeviceOp, type Tensor, f32, value, zip } from 'async-cuda';
import type { Engine, LoadEngineOptions } from 'async-cuda/inference';
import { argmax, max } from 'async-cuda/library';
import { letterboxNormalise, letterboxPlacement } from 'async-cuda/npp';

import { type Photograph, sizeOf, withPhotographs } from '../photograph.js';
import { inTurns, someInATurn } from '../turns.js';
import { CELLS, INPUT_SIZE, decodeDigits } from './digit-decoding.js';
import type { Detection } from './non-maximum-suppression.js';

/** The model: see `model/README.md`. */
export const MODEL = fileURLToPath(new URL('model/digits.onnx', import.meta.url));
/** What the model takes, of so many photographs. */
export const shapeOf = (photographs: number): { image: [number, number, number, number] } => ({ image: [photographs, 3, INPUT_SIZE, INPUT_SIZE] });
/** TensorRT asks for the batches that it is to take; ONNX Runtime takes all. */
export const ENGINE_OPTIONS: LoadEngineOptions = {
  tensorrt: { shapes: { image: { min: shapeOf(1).image, opt: shapeOf(8).image, max: shapeOf(32).image } } },
};

export class DigitDetector {
  private readonly device: Device;
  private readonly engine: Engine;
  private readonly outputs = new KeptOutputs();
  private readonly batchFor: (photographs: number) => number;

  /**
   * @param engine of `model/digits.onnx`, on the device; it stays the caller's
   * @param batchFor how many photographs a batch is made for that has as many, where not every size is as good: the rest of it is nothing
   */
  constructor(device: Device, engine: Engine, batchFor = (photographs: number): number => photographs) {
    this.device = device;
    this.engine = engine;
    this.batchFor = batchFor;
  }

  /** The digits of each photograph, best first, as an operation. What is known before it runs is checked at the call. */
  detect(photographs: readonly Photograph[]): DeviceOp<Detection[][]> {
    return withPhotographs(this.device, photographs, (images) => this.device
      .uninitialized(f32, shapeOf(this.batchFor(images.length)).image)
      .use((image) => someInATurn(this.device, images.map((each, i) => () => letterboxNormalise(each, { ...INPUT, ...NORMALISATION, dtype: f32, out: image.slice(i) })), PHOTOGRAPHS_IN_A_TURN).andThen(() => this.engine.run({ image }))))
      .andThen(({ digits, distances }) => {
        const outputs = this.outputs.take(photographs.length);
        return zip(bestAndClose(digits!, outputs), readAndClose(distances!, outputs)).andThen(() => inTurns(this.device, async (rest) => {
          const found: Detection[][] = [];
          for (const [i, size] of photographs.map(sizeOf).entries()) {
            const { length } = photographs;
            found.push(decodeDigits(item(outputs.scores, i, length), item(outputs.digits, i, length), item(outputs.distances, i, length), letterboxPlacement(size, INPUT), size));
            await rest();
          }
          this.outputs.give(outputs);
          return found;
        }));
      })
      .label(`digits of ${photographs.length} photographs`);
  }
}

/** Batches of one size whose outputs are kept. */
const MOST_KEPT = 4;
/** That are queued in one turn of the event loop. */
const PHOTOGRAPHS_IN_A_TURN = 16;
const INPUT = { width: INPUT_SIZE, height: INPUT_SIZE };
/** As the model was trained: from -1 to 1, and grey around the photograph. */
const NORMALISATION = { mean: 0.5, deviation: 0.5, color: 114 };

/** What the host reads of the outputs of a batch. */
interface Outputs {
  readonly scores: Float32Array;
  readonly digits: Int32Array;
  readonly distances: Float32Array;
}

/** Outputs that are used again: 100 KB for each photograph, a hundred megabytes a second, would be the garbage collector's. */
class KeptOutputs {
  private readonly free = new Map<number, Outputs[]>();

  take(photographs: number): Outputs {
    const cells = photographs * CELLS * CELLS;
    return this.free.get(photographs)?.pop() ?? { scores: new Float32Array(cells), digits: new Int32Array(cells), distances: new Float32Array(4 * cells) };
  }

  /** Of a batch that has failed they are not given back. */
  give(outputs: Outputs): void {
    const photographs = outputs.scores.length / (CELLS * CELLS);
    const free = this.free.get(photographs) ?? [];
    this.free.set(photographs, free);
    if (free.length < MOST_KEPT) free.push(outputs);
  }
}

/** Of each cell the greatest score and its digit, found on the device: ten maps of each photograph need not go to the host. */
function bestAndClose(maps: AnyTensor, into: Outputs): DeviceOp<unknown> {
  return value(maps).use((each) => {
    const scores = firstOf(each, into);
    return zip(max(scores, { axis: 1 }).use((best) => best.read({ into: into.scores })), argmax(scores, { axis: 1 }).use((digits) => digits.read({ into: into.digits })));
  });
}

function readAndClose(tensor: AnyTensor, into: Outputs): DeviceOp<unknown> {
  return value(tensor).use((each) => firstOf(each, into).read({ into: into.distances }));
}

/** What belongs to photographs. */
function firstOf(batch: AnyTensor, { scores }: Outputs): Tensor<'f32', number[]> {
  return (batch as Tensor<'f32', number[]>).slice([0, scores.length / (CELLS * CELLS)]);
}

/** The i-th of `count` equal parts. */
function item<T extends Float32Array | Int32Array>(whole: T, i: number, count: number): T {
  const size = whole.length / count;
  return whole.subarray(i * size, (i + 1) * size) as T;
}
