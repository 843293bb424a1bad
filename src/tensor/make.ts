/** Operations that make tensors. Literal shapes are part of the tensor's type. */
import { CudaArgumentError } from '../core/index.js';
import type { DType, DTypeName, HostArray, Scalar } from '../core/index.js';
import { INTEGER_LIMITS, isKernelDType, isWide } from '../ground/dtype.js';
import type { KernelDTypeName } from '../ground/dtype.js';
import { fillPattern } from '../core/fill-pattern.js';
import { checkDType, checkInteger, checkOptions, invalid } from '../ground/arguments.js';
import { Made } from '../ops/collect.js';
import { DeviceOp } from '../ops/device-op.js';
import { after } from '../ops/node.js';
import type { Submitted } from '../ops/node.js';
import type { Run } from '../ops/run.js';
import { coreOf } from '../ops/scheduling.js';
import type { AnyDevice } from '../ops/scheduling.js';
import { writeDense } from './host-copies.js';
import { checkedSource } from './host-source.js';
import type { HostList } from './host-source.js';
import { contiguous } from './layout.js';
import type { Layout } from './layout.js';
import { preload, randoms, sequences, withKernels } from './loaded-kernels.js';
import { checkRange, checkedSeed, freshSeed } from './random-options.js';
import { checkShape, numel, showShape } from './shape.js';
import type { Dims, Shape } from './shape-types.js';
import { Tensor } from './tensor.js';

const BLOCK = 256;
/** Elements of a sequence at most: its kernels count them in 32 bits. */
const MOST_ELEMENTS = 2 ** 31 - 1;

/** Options of every operation that makes a tensor. */
export interface TensorOptions {
  /** Shown in errors. */
  label?: string;
}

/**
 * The operation that allocates a tensor on the run's stream and calls `fill`. `more` are the names
 * of options besides the label.
 */
function made<D extends DTypeName, S extends Shape>(
  device: AnyDevice,
  dtype: DType<D>,
  shape: S,
  name: string,
  options: TensorOptions,
  fill: (run: Run, tensor: Tensor<D, Dims<S>>) => Submitted<unknown>,
  more: readonly string[] = [],
): DeviceOp<Tensor<D, Dims<S>>> {
  // The device is checked first: where it is left out, each argument is in another's place, and
  // errors for these would mislead.
  const core = coreOf(device);
  checkDType(dtype);
  checkShape('shape', shape);
  checkOptions('options', options, ['label', ...more]);
  const layout: Layout<Dims<S>> = contiguous(shape);
  const { label } = options;
  return new DeviceOp(
    new Made<Tensor<D, Dims<S>>>(core, `${name}(${dtype.name}${showShape(shape)})`, (run) => {
      const buffer = run.alloc(dtype, numel(shape), label === undefined ? {} : { label });
      const tensor = new Tensor<D, Dims<S>>(buffer, layout, true);
      return after(run, fill(run, tensor), tensor);
    }),
  );
}

/**
 * Makes a tensor of uninitialised memory: its elements are undefined until they are written.
 * cuMemAllocAsync
 *
 * @example
 * ```ts
 * using x = await uninitialized(device, f32, [2, 3]);
 * await x.fill(1);
 * console.log((await x.read()).join(' ')); // 1 1 1 1 1 1
 * ```
 */
export function uninitialized<D extends DTypeName, const S extends Shape>(
  device: AnyDevice,
  dtype: DType<D>,
  shape: S,
  options: TensorOptions = {},
): DeviceOp<Tensor<D, Dims<S>>> {
  return made(device, dtype, shape, 'uninitialized', options, () => undefined);
}

/**
 * Makes a tensor whose elements are all `value`. cuMemAllocAsync, cuMemsetD8Async and its kin
 *
 * @example
 * ```ts
 * using x = await full(device, f32, [3], 0.5);
 * console.log((await x.read()).join(' ')); // 0.5 0.5 0.5
 * ```
 */
export function full<D extends DTypeName, const S extends Shape>(
  device: AnyDevice,
  dtype: DType<D>,
  shape: S,
  value: Scalar<D>,
  options: TensorOptions = {},
): DeviceOp<Tensor<D, Dims<S>>> {
  coreOf(device);
  checkDType(dtype);
  fillPattern(dtype, value);
  return made(device, dtype, shape, 'full', options, (run, tensor) => {
    tensor.dense().fill(run.stream, value);
    return undefined;
  });
}

/**
 * Makes a tensor of zeros. cuMemAllocAsync, cuMemsetD8Async and its kin
 *
 * @example
 * ```ts
 * using x = await zeros(device, f32, [2, 2]);
 * console.log((await x.read()).join(' ')); // 0 0 0 0
 * ```
 */
export function zeros<D extends DTypeName, const S extends Shape>(
  device: AnyDevice,
  dtype: DType<D>,
  shape: S,
  options: TensorOptions = {},
): DeviceOp<Tensor<D, Dims<S>>> {
  return full(device, dtype, shape, scalarOf(dtype, 0), options);
}

/**
 * Makes a tensor of ones; in a complex dtype 1 + 0i. cuMemAllocAsync, cuMemsetD8Async and its kin
 *
 * @example
 * ```ts
 * using x = await ones(device, i32, [3]);
 * console.log((await x.read()).join(' ')); // 1 1 1
 * ```
 */
export function ones<D extends DTypeName, const S extends Shape>(
  device: AnyDevice,
  dtype: DType<D>,
  shape: S,
  options: TensorOptions = {},
): DeviceOp<Tensor<D, Dims<S>>> {
  return full(device, dtype, shape, scalarOf(dtype, 1), options);
}

/** A number as an element of the dtype. @internal */
export const scalarOf = <D extends DTypeName>(dtype: DType<D>, value: number): Scalar<D> =>
  // The dtype is not checked yet: an error for the device comes first.
  (isWide((dtype as DType | null | undefined)?.name as DTypeName)
    ? BigInt(value)
    : (dtype as DType | null | undefined)?.kind === 'complex'
      ? [value, 0]
      : value) as Scalar<D>;
const isWhole = ({ kind }: DType): boolean => kind === 'signed' || kind === 'unsigned';

/** @throws CudaArgumentError for a dtype that kernels do not compute with yet */
function checkComputed(dtype: DType, made: string): asserts dtype is DType<KernelDTypeName> {
  checkDType(dtype);
  if (isKernelDType(dtype.name)) return;
  const fix = 'Make zeros(…), and write x.real() and x.imag().';
  throw invalid('dtype', `a dtype of one number, for ${made}(…)`, dtype.name, fix);
}

/** Options of {@link arange}. Beyond 2^53, numbers of u64 and i64 are bigints. */
export interface ArangeOptions extends TensorOptions {
  /** The first element. Default 0. */
  start?: number | bigint;
  /** The difference of one element and the next. Default 1. */
  step?: number | bigint;
}

/**
 * Makes a sequence of `length` elements: start, start + step, … A float is start + i·step in double
 * precision, rounded once.
 *
 * @throws CudaArgumentError for a start, a step or a last element that an integer dtype does not
 *   have
 *
 * @example
 * ```ts
 * using x = await arange(device, i32, 4, { start: 10, step: 5 });
 * console.log((await x.read()).join(' ')); // 10 15 20 25
 * ```
 */
export function arange<D extends KernelDTypeName, const N extends number>(
  device: AnyDevice,
  dtype: DType<D>,
  length: N,
  options: ArangeOptions = {},
): DeviceOp<Tensor<D, [N]>> {
  checkInteger('length', length, 0, MOST_ELEMENTS, 'elements');
  // Other libraries take begin and end here.
  if (typeof (options as unknown) === 'number')
    throw invalid(
      'options',
      'an object with start and step',
      options,
      'Write arange(dtype, length, { start, step }).',
    );
  checkComputed(dtype, 'arange');
  // null is refused below, with everything that is no object.
  const { start = 0, step = 1 } = options ?? {};
  for (const [name, value] of [
    ['start', start],
    ['step', step],
  ] as const) {
    if (typeof value !== 'number' && typeof value !== 'bigint')
      throw invalid(`options.${name}`, 'a number or a bigint', value);
    if (dtype.kind !== 'float' && typeof value === 'number' && !Number.isInteger(value))
      throw invalid(`options.${name}`, `a whole number, for ${dtype.name}`, value);
  }
  const bounds = INTEGER_LIMITS[dtype.name];
  if (bounds !== undefined && length > 0)
    checkSequence(dtype, bounds, length, BigInt(start), BigInt(step));
  return made(
    device,
    dtype,
    [length] as [N],
    'arange',
    options,
    (run, tensor) =>
      sequence(run, tensor, (kernels, grid) => {
        if (isWhole(dtype))
          kernels['integers']!.launch(
            run.stream,
            grid,
            tensor.dense(),
            length,
            BigInt.asIntN(64, BigInt(start)),
            BigInt.asIntN(64, BigInt(step)),
          );
        else {
          const [first, by] = [Number(start), Number(step)];
          kernels['floats']!.launch(
            run.stream,
            grid,
            tensor.dense(),
            length,
            first,
            by,
            first + (length - 1) * by,
          );
        }
      }),
    ['start', 'step'],
  );
}

/** Checks that the dtype has the first and the last element, between which the others lie. */
function checkSequence(
  { name }: DType,
  [low, high]: readonly [bigint, bigint],
  length: number,
  start: bigint,
  step: bigint,
): void {
  if (start < low || start > high)
    throw invalid('options.start', `from ${low} to ${high}, for ${name}`, start);
  const last = start + BigInt(length - 1) * step;
  if (last >= low && last <= high) return;
  throw invalid(
    'options.step',
    `one by which ${length} elements from ${start} on stay within ${low} to ${high}, for ${name}`,
    step,
    `The last one would be ${last}: take fewer elements or another dtype.`,
  );
}

/**
 * Makes `length` numbers from `from` to `to`, both included, at equal distances, in a float dtype.
 *
 * @example
 * ```ts
 * using x = await linspace(device, f32, 0, 1, 5);
 * console.log((await x.read()).join(' ')); // 0 0.25 0.5 0.75 1
 * ```
 */
export function linspace<D extends 'f16' | 'bf16' | 'f32' | 'f64', const N extends number>(
  device: AnyDevice,
  dtype: DType<D>,
  from: number,
  to: number,
  length: N,
  options: TensorOptions = {},
): DeviceOp<Tensor<D, [N]>> {
  checkInteger('length', length, 0, MOST_ELEMENTS, 'elements');
  checkDType(dtype);
  if (dtype.kind !== 'float') throw invalid('dtype', 'a float dtype', dtype.name);
  for (const [name, value] of [
    ['from', from],
    ['to', to],
  ] as const)
    if (typeof value !== 'number') throw invalid(name, 'a number', value);
  return made(device, dtype, [length] as [N], 'linspace', options, (run, tensor) =>
    sequence(run, tensor, (kernels, grid) => {
      const last = length === 1 ? from : to;
      kernels['floats']!.launch(
        run.stream,
        grid,
        tensor.dense(),
        length,
        from,
        length > 1 ? (to - from) / (length - 1) : 0,
        last,
      );
    }),
  );
}

/** Options of {@link eye}. */
export interface EyeOptions extends TensorOptions {
  /**
   * The diagonal that has the ones: above the main diagonal where positive, below it where
   * negative. Default 0.
   */
  diagonal?: number;
}

/**
 * Makes a matrix with 1 on a diagonal and 0 elsewhere.
 *
 * @example
 * ```ts
 * using x = await eye(device, f32, 2, 3);
 * console.log((await x.read()).join(' ')); // 1 0 0 0 1 0
 * ```
 */
export function eye<D extends KernelDTypeName, const R extends number, const C extends number = R>(
  device: AnyDevice,
  dtype: DType<D>,
  rows: R,
  columns?: C,
  options: EyeOptions = {},
): DeviceOp<Tensor<D, [R, C]>> {
  const { diagonal = 0 } = options ?? {};
  const wide = (columns ?? rows) as C;
  checkInteger('options.diagonal', diagonal, -0x7fffffff, 0x7fffffff);
  if ((dtype as DType | null | undefined)?.kind === 'complex') checkComputed(dtype, 'eye');
  return made(
    device,
    dtype,
    [rows, wide] as [R, C],
    'eye',
    options,
    (run, tensor) =>
      sequence(run, tensor, (kernels, grid) => {
        kernels['eye']!.launch(run.stream, grid, tensor.dense(), tensor.size, wide, diagonal);
      }),
    ['diagonal'],
  );
}

function sequence<D extends KernelDTypeName>(
  run: Run,
  tensor: Tensor<D, Shape>,
  queue: (
    kernels: Parameters<Parameters<typeof withKernels>[2]>[0],
    grid: { grid: number; block: number },
  ) => void,
): Submitted<unknown> {
  const { size } = tensor;
  if (size > MOST_ELEMENTS)
    throw new CudaArgumentError('shape', `shape: at most ${MOST_ELEMENTS} elements, got ${size}.`);
  if (size === 0) return undefined;
  return withKernels(run, sequences(tensor.dtype.name), (kernels) => {
    queue(kernels, { grid: Math.ceil(size / BLOCK), block: BLOCK });
  });
}

/** Options of {@link rand}. */
export interface RandOptions extends TensorOptions {
  /**
   * A whole number below 2^64. The same seed gives the same numbers. Without one, each run of the
   * operation draws a new seed; a graph keeps the seed that was drawn when it was captured, for all
   * launches.
   */
  seed?: number | bigint;
  /** The lower bound, which is included. Default 0. */
  from?: number;
  /** The upper bound: numbers equal it only by rounding. Default 1. */
  to?: number;
}

/** Options of {@link randn}. */
export interface RandnOptions extends TensorOptions {
  /** The same as for {@link rand}. */
  seed?: number | bigint;
  /** Default 0. */
  mean?: number;
  /** Standard deviation. Default 1. */
  deviation?: number;
}

/** A dtype of random numbers. */
export type RealName = 'f16' | 'bf16' | 'f32' | 'f64';

/**
 * Makes uniform random numbers by Philox4x32-10, with 24 random bits each (f64: 32). The same seed
 * gives the same numbers in row-major order, on every device and for every shape; without a seed
 * each run gives others.
 *
 * @example
 * ```ts
 * using x = await rand(device, f32, [1000], { seed: 1, from: -1, to: 1 });
 * const values = await x.read();
 * console.log(values.every((value) => value >= -1 && value <= 1)); // true
 * ```
 */
export function rand<D extends RealName, const S extends Shape>(
  device: AnyDevice,
  dtype: DType<D>,
  shape: S,
  options: RandOptions = {},
): DeviceOp<Tensor<D, Dims<S>>> {
  const { seed, from = 0, to = 1 } = options ?? {};
  checkDType(dtype);
  checkRange(dtype, from, to);
  return random(device, dtype, shape, options, 'rand', 'uniform', seed, from, to - from, [
    'seed',
    'from',
    'to',
  ]);
}

/**
 * Makes normal random numbers, by the Box-Muller transform of the uniform ones. The same seed gives
 * the same numbers on every device but for the last bits, since sines and logarithms are
 * approximate.
 *
 * @example
 * ```ts
 * using x = await randn(device, f32, [1000], { seed: 1, mean: 5, deviation: 0.1 });
 * const values = await x.read();
 * console.log(Math.round(values.reduce((sum, value) => sum + value, 0) / 1000)); // 5
 * ```
 */
export function randn<D extends RealName, const S extends Shape>(
  device: AnyDevice,
  dtype: DType<D>,
  shape: S,
  options: RandnOptions = {},
): DeviceOp<Tensor<D, Dims<S>>> {
  const { seed, mean = 0, deviation = 1 } = options ?? {};
  if (typeof deviation !== 'number' || !(deviation >= 0))
    throw invalid('options.deviation', 'a number of at least 0', deviation);
  return random(device, dtype, shape, options, 'randn', 'normal', seed, mean, deviation, [
    'seed',
    'mean',
    'deviation',
  ]);
}

function random<D extends RealName, S extends Shape>(
  device: AnyDevice,
  dtype: DType<D>,
  shape: S,
  options: TensorOptions,
  name: string,
  kernel: string,
  seed: number | bigint | undefined,
  first: number,
  second: number,
  names: readonly string[],
): DeviceOp<Tensor<D, Dims<S>>> {
  checkDType(dtype);
  if (dtype.kind !== 'float')
    throw invalid('dtype', 'f16, bf16, f32 or f64', dtype.name, 'Convert them with convert(…).');
  if (!Number.isFinite(first) || !Number.isFinite(second))
    throw invalid('options', 'numbers that are finite', [first, second]);
  const key = checkedSeed(seed);
  return made(
    device,
    dtype,
    shape,
    name,
    options,
    (run, tensor) => {
      const { size } = tensor;
      if (size > MOST_ELEMENTS)
        throw new CudaArgumentError(
          'shape',
          `shape: at most ${MOST_ELEMENTS} elements, got ${size}.`,
        );
      if (size === 0) return undefined;
      return withKernels(run, randoms(dtype.name), (kernels) => {
        kernels[kernel]!.launch(
          run.stream,
          { grid: Math.ceil(size / (4 * BLOCK)), block: BLOCK },
          tensor.dense(),
          size,
          key ?? freshSeed(),
          first,
          second,
        );
      });
    },
    names,
  );
}

/**
 * Makes a tensor with the elements of a host array, in row-major order. A large array must not be
 * changed until the operation has ended. Without a shape the tensor has one axis. Elements of a
 * plain list are checked: an element that the dtype does not have is an error. An ArrayBuffer holds
 * the elements' bytes, little-endian. cuMemAllocAsync, cuMemcpyHtoDAsync
 *
 * @throws CudaArgumentError for an array of another dtype, an element that the dtype does not have,
 *   and a shape of another number of elements
 *
 * @example
 * ```ts
 * using x = await tensor(device, f32, [1, 2, 3, 4, 5, 6], [2, 3]);
 * console.log(x.shape, (await x.read()).join(' ')); // [ 2, 3 ] 1 2 3 4 5 6
 * using pairs = await tensor(device, complex64, [[1, 2], [3, -4]]);
 * console.log((await pairs.read()).join(' ')); // 1 2 3 -4
 * ```
 */
export function tensor<D extends DTypeName>(
  device: AnyDevice,
  dtype: DType<D>,
  source: HostArray<D> | HostList<D> | ArrayBuffer | SharedArrayBuffer,
): DeviceOp<Tensor<D, [number]>>;
export function tensor<D extends DTypeName, const S extends Shape>(
  device: AnyDevice,
  dtype: DType<D>,
  source: HostArray<D> | HostList<D> | ArrayBuffer | SharedArrayBuffer,
  shape: S,
  options?: TensorOptions,
): DeviceOp<Tensor<D, Dims<S>>>;
export function tensor<D extends DTypeName>(
  device: AnyDevice,
  dtype: DType<D>,
  source: HostArray<D> | HostList<D> | ArrayBuffer | SharedArrayBuffer,
  shape?: Shape,
  options: TensorOptions = {},
): DeviceOp<Tensor<D, number[]>> {
  checkDType(dtype);
  const { values, length } = checkedSource(dtype, source);
  const given = shape === undefined ? [length] : shape;
  checkShape('shape', given);
  if (numel(given) !== length)
    throw invalid('shape', `${length} elements, as many as source has`, given);
  return made<D, Shape>(device, dtype, given, 'tensor', options, (run, target) => {
    if (target.size > 0) writeDense(run, target.dense(), values);
    return undefined;
  });
}

/**
 * Loads the kernels for sequences and random numbers of dtypes, so that the first of them need not
 * wait.
 *
 * @example
 * ```ts
 * await prepare(device, f32);
 * using x = await arange(device, f32, 3);
 * console.log((await x.read()).join(' ')); // 0 1 2
 * ```
 */
export async function prepare(device: AnyDevice, ...dtypes: readonly DType[]): Promise<void> {
  for (const [at, dtype] of dtypes.entries()) checkDType(dtype, `dtypes[${at}]`);
  await preload(
    coreOf(device),
    dtypes.flatMap(({ name, kind, bytes }) =>
      isKernelDType(name)
        ? [sequences(name), ...(kind === 'float' && bytes > 1 ? [randoms(name)] : [])]
        : [],
    ),
  );
}
