/** Copies between tensors and host arrays, in row-major order. */
import { queueOutsideCapture } from '../core/capture.js';
import { PinnedBuffer } from '../core/index.js';
import type { DTypeName, DeviceBuffer, HostArray, WriteSource } from '../core/index.js';
import { Later, whenKnown } from '../ops/node.js';
import type { Submitted } from '../ops/node.js';
import type { Run } from '../ops/run.js';
import { copyElements } from './element-copies.js';
import { denseBuffer } from './elements.js';
import type { Elements } from './elements.js';
import { contiguous, isContiguous } from './layout.js';
import { numel } from './shape.js';

/**
 * Reads the elements, by way of a contiguous copy on the device where the layout is not contiguous.
 *
 * @param into is written instead of a new array
 */
export function readElements<D extends DTypeName>(
  run: Run,
  source: Elements<D>,
  into?: HostArray<D>,
): Submitted<HostArray<D>> {
  if (isContiguous(source.layout)) return readDense(run, denseBuffer(source), into);
  const copy = copyFor(run, source);
  const done = copyElements(run, source, copy);
  return whenKnown(run, done, () => readDense(run, copy.buffer, into));
}

/**
 * Writes the elements: `write` is called with contiguous memory, which is their own, or a temporary
 * copy whose elements are copied from it afterwards.
 */
export function writeElements<D extends DTypeName>(
  run: Run,
  target: Elements<D>,
  source: WriteSource<D>,
): Submitted<void> {
  if (isContiguous(target.layout)) {
    writeDense(run, denseBuffer(target), source);
    return undefined;
  }
  const copy = copyFor(run, target);
  writeDense(run, copy.buffer, source);
  return copyElements(run, copy, target);
}

/** Contiguous memory of the run for as many elements. */
function copyFor<D extends DTypeName>(run: Run, { buffer, layout }: Elements<D>): Elements<D> {
  return {
    buffer: run.alloc(buffer.dtype, numel(layout.shape)),
    layout: contiguous([...layout.shape]),
  };
}

function readDense<D extends DTypeName>(
  run: Run,
  buffer: DeviceBuffer<D>,
  into: HostArray<D> | undefined,
): Submitted<HostArray<D>> {
  if (run.mode === 'block') return buffer.readBlocking(run.stream, into);
  return new Later(buffer.read(run.stream, { into }).then(), true, 'nothing');
}

/**
 * Writes a host array to a buffer. A recorded run copies the array to memory of the graph at once,
 * and records a copy from there.
 *
 * @param over is called when the array is no longer read
 */
export function writeDense<D extends DTypeName>(
  run: Run,
  buffer: DeviceBuffer<D>,
  source: WriteSource<D>,
  over: () => void = () => undefined,
): void {
  /** Handles an array that is copied in pieces: later work of the stream waits for it. */
  const inPieces = (copying: Promise<void>): void => {
    run.dependOn(copying);
    copying.then(over, over);
  };
  if (source instanceof PinnedBuffer) buffer.write(run.stream, source);
  else if (run.mode === 'block') {
    buffer.writeBlocking(run.stream, source);
    over();
  } else if (run.mode === 'queue') {
    const pending = buffer.write(run.stream, source);
    if (pending.gives) inPieces(pending.then());
    else over();
  } else {
    const copy = run.allocBeside(buffer.dtype, buffer.length);
    const stream = run.beside();
    inPieces(queueOutsideCapture(stream, () => copy.write(stream, source).then()));
    buffer.copyFrom(run.stream, copy);
  }
}
