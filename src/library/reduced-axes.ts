/** The axes of a reduction, and the tensor as the three axes that its kernels index. */
import { checkBoolean, checkOptions, invalid, isList } from '../ground/arguments.js';
import { Tensor } from '../tensor/index.js';
import { coalesce } from '../tensor/layouts.js';
import type { KernelTensor, Layout } from '../tensor/index.js';
import { layoutOf } from '../tensor/layout.js';
import { checkAxis, numel } from '../tensor/shape.js';
import type { Work } from './operation.js';

/** Options of reductions. */
export interface AxisOptions {
  /** The axis, or the axes; negative ones count from the end. Default: all of them. */
  readonly axis?: number | readonly number[];
  /** Whether the result keeps those axes, with one element each. Default: false. */
  readonly keepDims?: boolean;
}

export interface ReducedAxes {
  /** The shape of the result. */
  readonly shape: number[];
  /** Axes that are not reduced, in order. */
  readonly kept: readonly number[];
  readonly reduced: readonly number[];
  /** Elements that are combined to one of the result. */
  readonly count: number;
}

/**
 * Gives the axes of an argument that is one or a list of them, counted from the first one; all of
 * them by default.
 *
 * @throws CudaArgumentError for axes beyond the rank, or that are named twice
 */
export function namedAxes(name: string, argument: string, axis: unknown, rank: number): number[] {
  if (axis === undefined) return Array.from({ length: rank }, (_, at) => at);
  const list = typeof axis === 'number' ? [axis] : axis;
  if (!isList(list) || list.length > rank)
    throw invalid(argument, `an axis or a list of axes, for ${name}(…)`, axis);
  const axes = [...list].map((each: unknown) => checkAxis(argument, each, rank));
  if (new Set(axes).size !== axes.length) throw invalid(argument, 'axes that are named once', axis);
  return axes;
}

/** @throws CudaArgumentError for axes that the tensor does not have, or that are named twice */
export function reducedAxes(
  name: string,
  tensor: KernelTensor,
  options: AxisOptions = {},
): ReducedAxes {
  checkOptions('options', options, ['axis', 'keepDims']);
  const { axis, keepDims } = options;
  checkBoolean('options.keepDims', keepDims);
  const { rank, shape } = tensor;
  const all = shape.map((_, at) => at);
  const reduced = namedAxes(name, 'options.axis', axis, rank);
  const kept = all.filter((each) => !reduced.includes(each));
  return {
    shape:
      keepDims === true
        ? shape.map((extent, each) => (reduced.includes(each) ? 1 : extent))
        : kept.map((each) => shape[each]!),
    kept,
    reduced: all.filter((each) => reduced.includes(each)),
    count: numel(reduced.map((each) => shape[each]!)),
  };
}

/**
 * Gives the tensor as `[outer][reduced][inner]`, where row-major order of outer and inner is that
 * of the result: as a view where such strides exist, else as a copy.
 */
export function asThreeAxes(
  work: Work,
  tensor: KernelTensor,
  { kept, reduced, count }: ReducedAxes,
): KernelTensor {
  const { shape, strides, offset } = tensor.layout;
  const part = (axes: readonly number[]): Layout =>
    coalesce(
      layoutOf(
        axes.map((axis) => shape[axis]!),
        axes.map((axis) => strides[axis]!),
        offset,
      ),
    );
  const [outside, along] = [part(kept), part(reduced)];
  if (tensor.size > 0 && outside.shape.length <= 2 && along.shape.length <= 1) {
    const [step = 0] = along.strides;
    const [first = 1, second = 1] = outside.shape;
    const [firstStep = 0, secondStep = 0] = outside.strides;
    // A single axis that is not reduced is the inner one where its stride is smaller.
    const inside = outside.shape.length === 1 && Math.abs(firstStep) < Math.abs(step);
    const layout = inside
      ? layoutOf([1, count, first], [0, step, firstStep], offset)
      : layoutOf([first, count, second], [firstStep, step, secondStep], offset);
    return new Tensor(tensor.buffer, layout, false);
  }
  const rows = work.dense(tensor.permute([...kept, ...reduced] as never));
  return rows.reshape([numel(kept.map((axis) => shape[axis]!)), count, 1] as never);
}
