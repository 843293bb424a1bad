/** Copies between tensors on one device, element by element, with conversion of the dtype. */
import { CudaArgumentError } from '../core/index.js';
import type { DType, DTypeName, DeviceBuffer, Scalar } from '../core/index.js';
import { invalid } from '../ground/arguments.js';
import { insteadOfComplex } from '../ground/dtype.js';
import type { Submitted } from '../ops/node.js';
import type { Run } from '../ops/run.js';
import { broadcastTo } from './broadcasting.js';
import { coalesceTogether } from './coalescing.js';
import { denseBuffer } from './elements.js';
import type { Elements } from './elements.js';
import { isContiguous, layoutOf } from './layout.js';
import type { Layout } from './layout.js';
import { copies, withKernels } from './loaded-kernels.js';
import { numel, sameShape } from './shape.js';
import { shareElements } from './shared-elements.js';

/** Elements that one launch of a copy takes: the kernel counts them in 32 bits. */
const MOST_ELEMENTS = 2 ** 31;
const BLOCK = 256;

/** @throws CudaArgumentError where one dtype is complex and the other is another one */
export function checkConversion(argument: string, from: DType, to: DType): void {
  if (from.name === to.name) return;
  for (const dtype of [from, to])
    if (dtype.kind === 'complex')
      throw invalid(
        argument,
        `${dtype.name}, since complex numbers are not converted`,
        (dtype === from ? to : from).name,
        insteadOfComplex(dtype),
      );
}

/**
 * Copies each element, converted; as one copy of memory where both layouts are contiguous and the
 * dtype is the same. A source of another shape is broadcast to the target's.
 *
 * @throws CudaArgumentError for tensors of two devices, a conversion of complex numbers, shapes
 *   that do not broadcast, and where both have bytes in common
 */
export function copyElements(run: Run, given: Elements, target: Elements): Submitted<void> {
  const { shape } = target.layout;
  const source = sameShape(given.layout.shape, shape)
    ? given
    : {
        buffer: given.buffer,
        layout: broadcastTo<number[], number[]>(given.layout, shape as never),
      };
  const { device: from, dtype } = source.buffer;
  const { device: to, dtype: targetDType } = target.buffer;
  if (from.runtime !== to.runtime) {
    throw new CudaArgumentError(
      'source',
      `source: it is on ${from.kind}:${from.ordinal}, and the target on ` +
        `${to.kind}:${to.ordinal}. Copy it with to(device) first.`,
    );
  }
  checkConversion('source', targetDType, dtype);
  if (numel(shape) === 0) return undefined;
  if (shareElements(source, target)) {
    throw new CudaArgumentError('source', 'source: overlaps the target. Copy it with dup() first.');
  }
  if (
    dtype.name === targetDType.name &&
    isContiguous(source.layout) &&
    isContiguous(target.layout)
  ) {
    denseBuffer(target).copyFrom(run.stream, denseBuffer(source));
    return undefined;
  }
  return copyByKernel(run, source, target);
}

/** Sets each element. Where the layout is not contiguous, one element is set and broadcast. */
export function fillElements<D extends DTypeName>(
  run: Run,
  target: Elements<D>,
  value: Scalar<D>,
): Submitted<void> {
  const { buffer, layout } = target;
  if (numel(layout.shape) === 0) return undefined;
  if (isContiguous(layout)) {
    denseBuffer(target).fill(run.stream, value);
    return undefined;
  }
  const one = run.alloc(buffer.dtype, 1);
  one.fill(run.stream, value);
  const strides = layout.shape.map(() => 0);
  return copyElements(
    run,
    { buffer: one, layout: layoutOf([...layout.shape], strides, 0) },
    target,
  );
}

function copyByKernel(run: Run, source: Elements, target: Elements): Submitted<void> {
  const [to, from] = coalesceTogether([target.layout, source.layout], { anyOrder: true }) as [
    Layout,
    Layout,
  ];
  const rank = Math.max(1, to.shape.length);
  const { dtype } = source.buffer;
  const { dtype: targetDType } = target.buffer;
  return withKernels(run, copies(dtype.name, targetDType.name, rank), ({ copy }) => {
    launchCopies(from, to, (fromPart, toPart, count) => {
      const steps =
        to.shape.length === 0
          ? [[1, 0n, 0n]]
          : toPart.shape.map((extent, axis) => [
              extent,
              BigInt(fromPart.strides[axis]! * dtype.bytes),
              BigInt(toPart.strides[axis]! * targetDType.bytes),
            ]);
      copy!.launch(
        run.stream,
        { grid: Math.ceil(count / BLOCK), block: BLOCK },
        bufferFrom(source, fromPart),
        bufferFrom(target, toPart),
        count,
        ...steps.flat(),
      );
    });
  });
}

/** The buffer from the layout's first element on; strides may lead back to before that. */
function bufferFrom({ buffer }: Elements, { offset }: Layout): DeviceBuffer {
  return buffer.slice(offset, buffer.length);
}

/**
 * Launches for parts of fewer than {@link MOST_ELEMENTS}, cut along the outermost axis that has
 * more than one index.
 */
function launchCopies(
  from: Layout,
  to: Layout,
  launch: (from: Layout, to: Layout, count: number) => void,
): void {
  const count = numel(to.shape);
  if (count < MOST_ELEMENTS) {
    launch(from, to, count);
    return;
  }
  const axis = to.shape.findIndex((extent) => extent > 1);
  const extent = to.shape[axis]!;
  const rows = Math.max(1, Math.floor((MOST_ELEMENTS - 1) / (count / extent)));
  for (let row = 0; row < extent; row += rows) {
    const part = ({ shape, strides, offset }: Layout): Layout =>
      layoutOf(
        shape.map((each, at) => (at === axis ? Math.min(rows, extent - row) : each)),
        [...strides],
        offset + row * strides[axis]!,
      );
    launchCopies(part(from), part(to), launch);
  }
}
