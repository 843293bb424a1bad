/**
 * What there is to be found on photographs, each with its models: for the demo's command and for
 * the example server.
 */
import { availableParallelism } from 'node:os';

import type { Device, DeviceOp } from 'async-cuda';
import { loadEngine } from 'async-cuda/inference';
import type { Engine, EngineKind } from 'async-cuda/inference';

import { DigitDetector, ENGINE_OPTIONS, MODEL, shapeOf } from './digits/digit-detector.js';
import type { Finding, Photograph } from './photograph.js';
import { findOcrModels } from './text/ocr-models.js';
import { DETECTION_OPTIONS, RECOGNITION_OPTIONS, TextReader } from './text/text-reader.js';

/** Models that are loaded, and what they find. */
export interface Task extends AsyncDisposable {
  /** Files of the models. */
  readonly models: readonly string[];
  /** The library that runs them. */
  readonly description: string;
  /**
   * Whether the engine plans each number of photographs anew: a program that must not wait then
   * warms it up with the same number.
   */
  readonly plansBatches: boolean;
  /** What is on each of the photographs, as an operation. */
  find(photographs: readonly Photograph[]): DeviceOp<Finding[][]>;
  /** Frees the models' memory, after the work in flight. */
  close(): Promise<void>;
}

export type TaskName = 'text' | 'digits';

export interface TaskOptions {
  /** Runs the models; `auto`, the default, is the best that is there. */
  readonly engine?: EngineKind;
  /**
   * Photographs at once, at most, where the models are made ready for all numbers of them before
   * the first.
   */
  readonly mostAtOnce?: number;
}

export type OpenTask = (device: Device, options?: TaskOptions) => Promise<Task>;

/**
 * The event loop has requests, and the device's thread its work, beside what ONNX Runtime's threads
 * do: a core is left to them, and threads that wait take none. One run takes all the others: two at
 * once are in each other's way, and in the event loop's.
 */
const ENGINE = {
  onnxruntime: { threads: Math.max(1, availableParallelism() - 1), spinning: false, contexts: 1 },
};

export const TASKS: Readonly<Record<TaskName, OpenTask>> = {
  async text(device, { engine = 'auto' } = {}) {
    const { detection: where, recognition: what, characters } = await findOcrModels();
    const detection = await loadEngine(device, where, { ...DETECTION_OPTIONS, ...ENGINE, engine });
    const recognition = await loadEngine(device, what, {
      ...RECOGNITION_OPTIONS,
      ...ENGINE,
      engine,
    }).catch(async (error: unknown) => {
      await detection.close();
      throw error;
    });
    const reader = new TextReader(device, { detection, recognition, characters });
    return task([where, what], [detection, recognition], (photographs) =>
      reader
        .read(photographs)
        .map((found) =>
          found.map((lines) =>
            lines.map(({ text, score, corners }) => ({ label: text, score, corners })),
          ),
        ),
    );
  },

  async digits(device, { engine = 'auto', mostAtOnce } = {}) {
    const shapes = mostAtOnce === undefined ? {} : { shapes: sizesUpTo(mostAtOnce).map(shapeOf) };
    const model = await loadEngine(device, MODEL, {
      ...ENGINE_OPTIONS,
      ...ENGINE,
      onnxruntime: { ...ENGINE.onnxruntime, ...shapes },
      engine,
    });
    const detector = new DigitDetector(device, model, batchFor(model));
    return task([MODEL], [model], (photographs) =>
      detector.detect(photographs).map((found) =>
        found.map((digits) =>
          digits.map(({ label, score, box: { left, top, right, bottom } }) => ({
            label,
            score,
            corners: [
              { x: left, y: top },
              { x: right, y: top },
              { x: right, y: bottom },
              { x: left, y: bottom },
            ],
          })),
        ),
      ),
    );
  },
};

/** ONNX Runtime's CUDA provider plans for each size of a batch anew. */
const plansBatches = (engine: Engine): boolean =>
  'provider' in engine && engine.provider === 'cuda';

/** A few sizes are enough then, and the GPU does not mind the rest. */
function batchFor(engine: Engine): (photographs: number) => number {
  const plans = plansBatches(engine);
  return (photographs) => (plans ? sizeFor(photographs) : photographs);
}

const sizeFor = (photographs: number): number => 2 ** Math.ceil(Math.log2(photographs));

/** All sizes of batches of up to so many photographs, where there are a few. */
export function sizesUpTo(photographs: number): number[] {
  return Array.from({ length: Math.log2(sizeFor(photographs)) + 1 }, (_, i) => 2 ** i);
}

function task(models: Task['models'], engines: readonly Engine[], find: Task['find']): Task {
  const close = async (): Promise<void> => {
    await Promise.all(engines.map((engine) => engine.close()));
  };
  return {
    models,
    description: engines[0]!.description,
    plansBatches: engines.some(plansBatches),
    find,
    close,
    [Symbol.asyncDispose]: close,
  };
}
