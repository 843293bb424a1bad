/** What attention and its gradients share: options, checks of operands, tensors in four axes. */
import type { KernelDType } from '../core/index.js';
import { CudaArgumentError } from '../core/index.js';
import { checkOptions, invalid } from '../ground/arguments.js';
import type { OrOp } from '../ops/index.js';
import { beginsAt } from '../tensor/alignment.js';
import { Tensor } from '../tensor/index.js';
import { broadcastTo, tryReshape } from '../tensor/layouts.js';
import type { KernelTensor, Layout, Shape } from '../tensor/index.js';
import { showShape } from '../tensor/shape.js';
import { checkTensor } from './operation.js';
import type { Work } from './operation.js';
import { hasWarpGroups } from './warp-group-matmul.js';

/** dtypes of attention. */
export type AttentionName = 'f16' | 'bf16' | 'f32';

/** Options of {@link attention}, {@link attentionForward} and {@link attentionBackward}. */
export interface AttentionOptions<D extends AttentionName = AttentionName> {
  /**
   * Whether query i of M sees only the first i + 1 + N - M of N keys: those up to its own position,
   * where the last query and the last key are at the same one. Default: false.
   */
  readonly causal?: boolean;
  /** The factor of products of queries and keys. Default: 1 / √D. */
  readonly scale?: number;
  /**
   * How many positions a key may be before the query's own, which is i + N - M. Default: any
   * number.
   */
  readonly window?: number;
  /**
   * Added to the scaled products, of the operands' dtype; or bool, true for keys that are seen. It
   * broadcasts to `[…, heads, M, N]`. Default: none.
   */
  readonly mask?: OrOp<Tensor<D | 'bool'>>;
}

const NAMES: readonly string[] = ['f16', 'bf16', 'f32'];
/** Sizes from which on indices after the end do not fit in 32 bits. */
const WIDE_FROM = 2 ** 31 - 2 ** 20;
const MOST_BLOCKS = 2 ** 31 - 1;
/** Extents of axes are below, and so is a window that leaves keys out. */
const MOST_EXTENT = 2 ** 30;
/** Elements of 16 bytes, at multiples of which the lines of a tensor copy begin. */
const RUN = 8;
const ALIGNMENT = 16;

/** The arguments of one attention. */
export interface Task {
  readonly q: KernelTensor;
  readonly k: KernelTensor;
  readonly v: KernelTensor;
  readonly mask: KernelTensor | undefined;
  /** The axes before the heads, and all of them as one. */
  readonly outer: readonly number[];
  readonly batches: number;
  readonly heads: number;
  readonly kvHeads: number;
  readonly m: number;
  readonly n: number;
  readonly channels: number;
  readonly causal: boolean;
  readonly scale: number;
  readonly window: number | undefined;
}

/** @throws CudaArgumentError for wrong options, apart from the mask */
export function checkAttentionOptions(options: AttentionOptions): void {
  checkOptions('options', options, ['causal', 'scale', 'window', 'mask']);
  const { causal = false, scale, window } = options;
  if (typeof causal !== 'boolean') throw invalid('options.causal', 'true or false', causal);
  if (scale !== undefined && !Number.isFinite(scale))
    throw invalid('options.scale', 'a finite number', scale);
  if (window !== undefined && !(Number.isSafeInteger(window) && window >= 0))
    throw invalid('options.window', 'a whole number of at least 0', window);
}

/**
 * The task of operands and a mask, with options that were checked.
 *
 * @throws CudaArgumentError where the operands do not fit
 */
export function taskOf(
  name: string,
  operands: readonly [q: unknown, k: unknown, v: unknown],
  mask: unknown,
  { causal = false, scale, window }: AttentionOptions,
): Task {
  const [q, k, v] = checkedOperands(name, operands);
  const [heads, m, channels] = q.shape.slice(-3) as [number, number, number];
  const [kvHeads, n] = k.shape.slice(-3) as [number, number, number];
  const outer = q.shape.slice(0, -3);
  return {
    ...{ q, k, v, outer, heads, kvHeads, m, n, channels, causal },
    mask:
      mask === undefined ? undefined : checkedMask(name, mask, q.dtype, [...outer, heads, m, n]),
    batches: outer.reduce((a, b) => a * b, 1),
    scale: scale ?? 1 / Math.sqrt(channels),
    // From a number on all keys are within it.
    window: window === undefined || window >= MOST_EXTENT ? undefined : window,
  };
}

/** Gives q, k and v. @throws CudaArgumentError where they do not fit */
function checkedOperands(
  name: string,
  values: readonly unknown[],
): [KernelTensor, KernelTensor, KernelTensor] {
  const [q, k, v] = ['q', 'k', 'v'].map((argument, at) => {
    const each = values[at];
    checkTensor(name, argument, each);
    if (!NAMES.includes(each.dtype.name))
      throw invalid(
        argument,
        `a Tensor of ${NAMES.join(', ')}, for ${name}(…)`,
        each.dtype.name,
        'Convert it with convert(f32).',
      );
    checkDTypeOf(name, argument, each, values[0] as KernelTensor);
    if (each.rank < 3)
      throw invalid(
        argument,
        `at least three axes, […, heads, positions, channels], for ${name}(…)`,
        each,
        'Add an axis of one head with unsqueeze(0).',
      );
    if (each.shape.some((extent) => extent >= MOST_EXTENT))
      throw invalid(
        argument,
        `axes of fewer than ${MOST_EXTENT} elements, for ${name}(…)`,
        each,
        'Pass parts of it.',
      );
    return each;
  }) as [KernelTensor, KernelTensor, KernelTensor];
  const fails = (argument: string, what: string): never => {
    throw new CudaArgumentError(
      argument,
      `${name}: ${what}: q: ${showShape(q.shape)}, k: ${showShape(k.shape)}, v: ` +
        `${showShape(v.shape)}.`,
    );
  };
  if (showShape(v.shape) !== showShape(k.shape)) fails('v', 'k and v have different shapes');
  if (k.shape.at(-1) !== q.shape.at(-1)) fails('k', 'q and k have different numbers of channels');
  if (showShape(k.shape.slice(0, -3)) !== showShape(q.shape.slice(0, -3)))
    fails('k', 'q and k differ in the axes before the heads');
  const [heads, kvHeads] = [q.shape.at(-3)!, k.shape.at(-3)!];
  if (heads !== 0 && (kvHeads === 0 || heads % kvHeads !== 0))
    fails('k', `${heads} heads of q are no multiple of ${kvHeads} heads of k`);
  return [q, k, v];
}

/** @throws CudaArgumentError where the tensor does not have q's dtype */
function checkDTypeOf(name: string, argument: string, each: KernelTensor, q: KernelTensor): void {
  if (each.dtype !== q.dtype)
    throw invalid(
      argument,
      `a Tensor of ${q.dtype.name}, as q is, for ${name}(…)`,
      each,
      `Convert it with convert(${q.dtype.name}).`,
    );
}

/** Gives a tensor of q's dtype and shape. @throws CudaArgumentError for another one */
export function checkedAsQ(
  name: string,
  argument: string,
  value: unknown,
  q: KernelTensor,
): KernelTensor {
  checkTensor(name, argument, value);
  checkDTypeOf(name, argument, value, q);
  checkShapeOf(name, argument, value, q.shape);
  return value;
}

/** @throws CudaArgumentError for another shape */
export function checkShapeOf(
  name: string,
  argument: string,
  value: KernelTensor,
  shape: readonly number[],
): void {
  if (showShape(value.shape) !== showShape(shape))
    throw new CudaArgumentError(
      argument,
      `${name}: ${argument} has to have the shape ${showShape(shape)}, and has ` +
        `${showShape(value.shape)}.`,
    );
}

/** Gives the mask in the shape of the scores. */
function checkedMask(
  name: string,
  mask: unknown,
  dtype: KernelDType,
  shape: readonly number[],
): KernelTensor {
  checkTensor(name, 'options.mask', mask);
  if (mask.dtype !== dtype && mask.dtype.name !== 'bool')
    throw invalid(
      'options.mask',
      `a Tensor of bool or of ${dtype.name}, as q is`,
      mask,
      `Convert it with convert(${dtype.name}).`,
    );
  let layout: Layout;
  try {
    layout = broadcastTo(mask.layout, shape as never);
  } catch {
    throw new CudaArgumentError(
      'options.mask',
      `${name}: a mask of ${showShape(mask.shape)} does not broadcast to […, heads, queries, ` +
        `keys], ${showShape(shape)}.`,
    );
  }
  return new Tensor(mask.buffer, layout, false);
}

/** @throws CudaArgumentError where a grid is too large */
export function checkTiles(
  name: string,
  argument: string,
  tiles: number,
  rows: number,
  what: string,
): void {
  if (tiles > MOST_BLOCKS)
    throw invalid(
      argument,
      `at most ${MOST_BLOCKS} tiles of ${rows} ${what}, for ${name}(…)`,
      tiles,
      'Pass parts of it.',
    );
}

/** The tensor with all axes before the last three as one, as a view or a copy. */
export function inFourAxes(work: Work, tensor: KernelTensor, batches: number): KernelTensor {
  const shape = [batches, ...tensor.shape.slice(-3)];
  const layout = tryReshape<Shape, Shape>(tensor.layout, shape);
  if (layout !== undefined) return new Tensor(tensor.buffer, layout, false);
  return work.dense(tensor).reshape(shape as never);
}

/** Whether indices of one of the tensors do not fit in 32 bits. */
export function isWide(tensors: readonly KernelTensor[]): boolean {
  return tensors.some(({ size, layout: { shape, strides } }) => {
    const reach = shape.reduce((sum, extent, axis) => sum + (extent - 1) * strides[axis]!, 1);
    return reach >= WIDE_FROM || size >= WIDE_FROM;
  });
}

/** The mask with one element along axes on which it is repeated. */
const withoutRepeats = ({ buffer, layout }: KernelTensor): KernelTensor => {
  const shape = layout.shape.map((extent, axis) =>
    layout.strides[axis] === 0 ? Math.min(extent, 1) : extent,
  );
  return new Tensor(buffer, { ...layout, shape }, false);
};

/** Whether kernels for warp groups compute this, where they take so many channels. */
export function isForWarpGroups({ q, mask, channels, scale }: Task, mostChannels: number): boolean {
  return (
    hasWarpGroups(q.device, q.dtype) &&
    (mask === undefined || !isWide([withoutRepeats(mask)])) &&
    channels % RUN === 0 &&
    channels <= mostChannels &&
    // The greatest score has the greatest product.
    scale > 0
  );
}

/** Whether tensor copies can take boxes of the tensor. */
export function fitsBoxes(tensor: KernelTensor): boolean {
  const { shape, strides } = tensor.layout;
  const fits = shape.every((extent, axis) => {
    const stride = strides[axis]!;
    if (axis === shape.length - 1) return stride === 1;
    return extent === 1 || (stride >= 0 && stride % RUN === 0);
  });
  return beginsAt(tensor, ALIGNMENT) && fits;
}

/** Gives the tensor, or a copy, of which tensor copies can take boxes. */
export function inBoxes(work: Work, tensor: KernelTensor): KernelTensor {
  if (fitsBoxes(tensor)) return tensor;
  const copy = work.temporary(tensor.dtype, [...tensor.shape]) as unknown as KernelTensor;
  work.add(copy.copyFrom(tensor));
  return copy;
}
