/**
 * Runs of the CUDA provider as graphs of the driver: the launches of a run are recorded once, and
 * from then on are one launch, which takes the processor a few microseconds where the library takes
 * some for each kernel.
 *
 * A graph is valid as long as every run would launch the same: with tensors at the same addresses,
 * for a model whose operators depend on shapes and not on the values of tensors, and draw no random
 * numbers. The library refuses models that it does not compute on the GPU alone, and the driver
 * refuses waits for the GPU; the rest is checked here and in `cuda-driver.ts`.
 */
import { closeSync, openSync, readSync } from 'node:fs';

import { placesOf } from '../../native/memory-places.js';
import { cudaDriver } from './cuda-driver.js';
import type {
  Bound,
  LoadRequest,
  Loaded,
  ModelSource,
  PlacedTensor,
  RecordRequest,
  RecordedGraph,
} from './messages.js';
import type { OrtLibrary } from './ort-library.js';
import { Refused } from './refused.js';
import { bind } from './run.js';
import { loadSession } from './session.js';

/** The alignment of tensors in memory. */
const ALIGNMENT = 256;
/**
 * Runs before the recorded one: the library plans its memory in the first, and allocates it in the
 * second.
 */
const WARM_UPS = 3;
/** Operators that draw numbers, by the beginnings of their names. */
const DRAWING = ['RandomNormal', 'RandomUniform', 'Multinomial', 'Bernoulli', 'Dropout'].map(
  (name) => Buffer.from(name),
);
const PART_BYTES = 1 << 24;
const LONGEST_NAME = 32;

/**
 * The sessions that this thread has run before: a thread has handles of cuBLAS and cuDNN of its
 * own, which take memory when they are made.
 */
const warm = new Set<number>();

/**
 * Loads a session whose runs can be recorded.
 *
 * @throws Refused where they would not be the same each time
 */
export function loadRecorded(
  ort: OrtLibrary,
  request: LoadRequest,
  loading: (options: number) => void,
): Loaded {
  if (drawsNumbers(request.model))
    throw new Refused({ reason: 'unsupported', message: 'the model may draw random numbers' });
  const driver = cudaDriver(request.ordinal);
  const stream = driver.makeStream();
  try {
    return loadSession(ort, request, loading, stream);
  } catch (error) {
    driver.destroyStream(stream);
    throw error;
  }
}

/**
 * Whether the model may draw random numbers. A node with such a name counts, too: that avoids
 * parsing the model.
 */
function drawsNumbers(model: ModelSource): boolean {
  if ('bytes' in model) {
    const bytes = Buffer.from(model.bytes as ArrayBuffer);
    return DRAWING.some((name) => bytes.includes(name));
  }
  const file = openSync(model.path, 'r');
  try {
    const part = Buffer.alloc(PART_BYTES);
    for (let kept = 0; ;) {
      const got = readSync(file, part, kept, part.length - kept, null);
      if (got === 0) return false;
      const read = part.subarray(0, kept + got);
      if (DRAWING.some((name) => read.includes(name))) return true;
      // A name may continue in the next part.
      kept = Math.min(LONGEST_NAME, read.length);
      read.copy(part, 0, read.length - kept);
    }
  } finally {
    closeSync(file);
  }
}

/**
 * Records a run on tensors that are bound. No other run may use the session or its graphs
 * meanwhile.
 *
 * @throws Refused where it cannot be recorded
 */
export function record(ort: OrtLibrary, request: RecordRequest): RecordedGraph {
  const {
    session: { id, session, stream },
    inputNames,
    outputNames,
    bound,
    ordinal,
  } = request;
  const driver = cudaDriver(ordinal);
  const options = ort.give('CreateRunOptions');
  try {
    // Otherwise the library would record it by itself, and wait for its end.
    ort.do('AddRunConfigEntry', options, 'gpu_graph_id', '-1');
    ort.do('AddRunConfigEntry', options, 'disable_synchronize_execution_providers', '1');
    const run = (on: Bound): void => {
      ort.do(
        'RunBound',
        session,
        options,
        on.inputNames,
        on.inputs,
        inputNames.length,
        on.outputNames,
        outputNames.length,
        on.outputs,
      );
    };
    if (!warm.has(id)) {
      const given = [...request.inputs, ...request.outputs];
      const { offsets, bytes } = placesOf(
        given.map((tensor) => tensor.bytes),
        ALIGNMENT,
      );
      driver.withZeros(bytes, stream, (address) => {
        const tensors = given.map((tensor, i): PlacedTensor => ({
          ...tensor,
          address: address + offsets[i]!,
        }));
        const zeros = bind(ort, {
          kind: 'bind',
          path: request.path,
          memory: 'cuda',
          ordinal,
          inputNames,
          inputs: tensors.slice(0, inputNames.length),
          outputNames,
          outputs: tensors.slice(inputNames.length),
        });
        try {
          for (let i = 0; i < WARM_UPS; i++) run(zeros);
        } finally {
          driver.synchronize(stream);
          for (const value of zeros.values) ort.call('ReleaseValue', value);
        }
      });
      warm.add(id);
    }
    return driver.record(stream, () => {
      run(bound);
    });
  } finally {
    ort.call('ReleaseRunOptions', options);
  }
}

/** Releases a session and its stream; its graphs have been destroyed. */
export function releaseRecorded(
  ort: OrtLibrary,
  ordinal: number,
  session: number,
  stream: number,
): void {
  ort.call('ReleaseSession', session);
  cudaDriver(ordinal).destroyStream(stream);
}
