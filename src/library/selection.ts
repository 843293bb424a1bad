/** Selection by a condition, and between bounds. */
import { bool, f32 } from '../core/index.js';
import type { DType, KernelDTypeName } from '../core/index.js';
import { checkDType, checkOptions, invalid } from '../ground/arguments.js';
import { isKernelDType } from '../ground/dtype.js';
import type { PartnerOf } from '../ground/promotion.js';
import type { Usable } from '../kernels/index.js';
import type { DeviceOp, OrOp } from '../ops/index.js';
import type { Broadcast, Known, Shape, Tensor } from '../tensor/index.js';
import type { Beside, Common } from './binary-function.js';
import { ByDType, elementwise } from './elementwise.js';
import type { NumberName } from './element-types.js';
import { checkNoOptions } from './operation.js';

type Wide<S extends Shape, T extends Shape> = Known<Broadcast<S, T>>;

/** Options of {@link where} with two numbers. */
export interface WhereOptions<R extends KernelDTypeName> {
  /** The dtype of the result. Default: f32. */
  readonly dtype?: DType<R>;
}

/**
 * Selects x where the condition is true, else y, element by element of the shape that all operands
 * broadcast to. x and y are tensors whose dtypes have a common one, or numbers. With two numbers
 * the options give the dtype.
 *
 * @param condition a tensor of bool
 * @throws CudaArgumentError as {@link Binary} does
 *
 * @example
 * ```ts
 * using x = await device.tensor(f32, [-1, 2, -3]);
 * using y = await where(less(x, 0), 0, x);
 * console.log((await y.read()).join(' ')); // 0 2 0
 * ```
 */
export function where<
  D extends KernelDTypeName,
  E extends KernelDTypeName & PartnerOf<D>,
  C extends Shape,
  S extends Shape,
  T extends Shape,
>(
  condition: OrOp<Tensor<'bool', C>>,
  x: OrOp<Tensor<D, S>>,
  y: OrOp<Tensor<E, T>>,
): DeviceOp<Tensor<Common<D, E>, Wide<C, Wide<S, T>>>>;
export function where<D extends KernelDTypeName, C extends Shape, S extends Shape>(
  condition: OrOp<Tensor<'bool', C>>,
  x: OrOp<Tensor<D, S>>,
  y: Beside<D>,
): DeviceOp<Tensor<D, Wide<C, S>>>;
export function where<D extends KernelDTypeName, C extends Shape, S extends Shape>(
  condition: OrOp<Tensor<'bool', C>>,
  x: Beside<D>,
  y: OrOp<Tensor<D, S>>,
): DeviceOp<Tensor<D, Wide<C, S>>>;
export function where<C extends Shape, R extends KernelDTypeName = 'f32'>(
  condition: OrOp<Tensor<'bool', C>>,
  x: Beside<R>,
  y: Beside<R>,
  options?: WhereOptions<R>,
): DeviceOp<Tensor<R, C>>;
export function where(
  condition: unknown,
  x: unknown,
  y: unknown,
  more?: unknown,
  further?: unknown,
): unknown {
  if (isNumber(condition)) throw invalid('condition', 'a Tensor of bool, for where(…)', condition);
  if (isNumber(x) && y === undefined) throw invalid('y', 'a Tensor or a number, for where(…)', y);
  if (isNumber(x) && isNumber(y)) {
    checkOptions('options', more, ['dtype']);
    const { dtype = f32 } = (more ?? {}) as WhereOptions<KernelDTypeName>;
    checkDType(dtype, 'options.dtype');
    if (!isKernelDType(dtype.name))
      throw invalid('options.dtype', 'a dtype that kernels compute with, for where(…)', dtype.name);
    return elementwise({ ...choice, ofNumbers: dtype }, [condition, x, y]);
  }
  checkNoOptions('where', more, further, 'The dtype is that of the tensors.');
  return elementwise(choice, [condition, x, y]);
}

const isNumber = (value: unknown): boolean =>
  typeof value === 'number' || typeof value === 'bigint' || typeof value === 'boolean';

const choice = {
  name: 'where',
  group: 'any',
  f: (condition: boolean, x: number, y: number): number => (condition ? x : y),
  own: { 0: bool },
  names: ['condition', 'x', 'y'],
} as const;

/**
 * Limits each element to the range from `min` to `max`, where NaN stays: `min(max(x, min), max)`.
 * The bounds are numbers, or tensors that broadcast together with x; without one of them there is
 * no limit on that side. Where min is above max the result is max. It gives a new contiguous
 * tensor.
 *
 * @throws CudaArgumentError as {@link Binary} does
 *
 * @example
 * ```ts
 * using x = await device.tensor(f32, [-1, 0.5, 3]);
 * using inside = await clip(x, 0, 1);
 * using above = await clip(x, 0);
 * console.log((await inside.read()).join(' '), (await above.read()).join(' ')); // 0 0.5 1 0 0.5 3
 * ```
 */
export function clip<D extends NumberName, S extends Shape>(
  x: OrOp<Tensor<D, S>>,
  min?: Beside<D>,
  max?: Beside<D>,
): DeviceOp<Tensor<D, S>>;
export function clip<D extends NumberName>(
  x: OrOp<Tensor<D>>,
  min?: Beside<D> | OrOp<Tensor<D>>,
  max?: Beside<D> | OrOp<Tensor<D>>,
): DeviceOp<Tensor<D>>;
export function clip(x: unknown, min?: unknown, max?: unknown, more?: unknown): unknown {
  checkNoOptions('clip', more, undefined, 'Write clip(x, min, max).');
  const bounds = { min, max };
  const given = (['min', 'max'] as const).filter((name) => bounds[name] !== undefined);
  return elementwise(
    {
      name: 'clip',
      group: 'numbers',
      f: new ByDType(() => ({ key: given.join('_'), f: CLIPS[given.join('')]! })),
      names: ['x', ...given],
    },
    [x, ...given.map((name) => bounds[name])],
  );
}

const CLIPS: Readonly<Record<string, Usable>> = {
  '': (x: number): number => x,
  min: (x: number, least: number): number => Math.max(x, least),
  max: (x: number, most: number): number => Math.min(x, most),
  minmax: (x: number, least: number, most: number): number => Math.min(Math.max(x, least), most),
};
