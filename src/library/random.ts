/**
 * Random numbers by Philox4x32-10, the generator of `device.rand` and `device.randn`, which gives
 * four words for each counter. Element i comes from word i mod 4 of counter ⌊i/4⌋ with the seed as
 * key, for each shape and device.
 */
import { DTYPES, u32 } from '../core/index.js';
import type { KernelDType, DType, KernelDTypeName } from '../core/index.js';
import { checkDType, checkOptions, invalid } from '../ground/arguments.js';
import { output } from '../kernels/index.js';
import type { KernelParam, Usable } from '../kernels/index.js';
import type { AnyDevice, DeviceOp } from '../ops/index.js';
import { coreOf } from '../ops/scheduling.js';
import { checkRange, checkedSeed, freshSeed } from '../tensor/random-options.js';
import { checkShape, showShape } from '../tensor/shape.js';
import type {
  KernelTensor,
  Dims,
  RandOptions,
  RandnOptions,
  RealName,
  Shape,
  Tensor,
} from '../tensor/index.js';
import { checkGroup } from './element-types.js';
import type { IntegerName } from './element-types.js';
import { KernelFamily } from './kernel-family.js';
import type { Gpu, KernelArray, Output } from './kernel-family.js';
import { making } from './operation.js';
import { isWide } from './reduction-kernels.js';

const BLOCK = 256;

interface RandomGpu extends Gpu {
  /** Whether counters do not fit in 32 bits. */
  readonly WIDE: boolean;
  /** Makes four elements of four words. */
  shape(
    words: KernelArray<number>,
    elements: KernelArray<number>,
    first: number,
    second: number,
  ): void;
  elements(): KernelArray<number>;
}

interface RandomArgs {
  readonly out: Output;
  readonly seedLow: number;
  readonly seedHigh: number;
  /** Parameters of `shape`: lower bound and width, or mean and deviation. */
  readonly first: number;
  readonly second: number;
}

const randoms = new KernelFamily(
  'random',
  ({ out, seedLow, seedHigh, first, second }: RandomArgs, gpu: RandomGpu) => {
    const counter = gpu.globalId.x;
    const at = counter * 4;
    if (at >= out.length) return;
    let a = gpu.u32(counter);
    let b = gpu.WIDE ? gpu.u32(gpu.i64(counter) >> 32) : gpu.u32(0);
    let c = gpu.u32(0);
    let d = gpu.u32(0);
    let k0 = gpu.u32(seedLow);
    let k1 = gpu.u32(seedHigh);
    gpu.unroll(10);
    for (let round = 0; round < 10; round++) {
      const h0 = gpu.mulhi(0xd2511f53, a);
      const l0 = 0xd2511f53 * a;
      const h1 = gpu.mulhi(0xcd9e8d57, c);
      const l1 = 0xcd9e8d57 * c;
      a = h1 ^ b ^ k0;
      b = l1;
      c = h0 ^ d ^ k1;
      d = l0;
      k0 += 0x9e3779b9;
      k1 += 0xbb67ae85;
    }
    const words = gpu.local.u32(4);
    words[0] = a;
    words[1] = b;
    words[2] = c;
    words[3] = d;
    const elements = gpu.elements();
    gpu.shape(words, elements, first, second);
    if (at <= out.length - 4) {
      for (let k = 0; k < 4; k++) out[at + k] = elements[k]!;
    } else {
      gpu.unroll(4);
      for (let k = 0; k < 4; k++) if (at + k < out.length) out[at + k] = elements[k]!;
    }
  },
);

type Words = KernelArray<number>;

/** Whole numbers below 2^24 are exact, so that only the fused multiply-add rounds. */
const uniform = (words: Words, elements: Words, from: number, width: number, gpu: Gpu): void => {
  gpu.unroll(4);
  for (let k = 0; k < 4; k++) {
    const unit = gpu.f32(words[k]! >>> 8) * 5.960464477539063e-8;
    elements[k] = unit * width + from;
  }
};

const uniformDouble = (
  words: Words,
  elements: Words,
  from: number,
  width: number,
  gpu: Gpu,
): void => {
  gpu.unroll(4);
  for (let k = 0; k < 4; k++) {
    const unit = gpu.f64(words[k]!) * 2.3283064365386963e-10;
    elements[k] = unit * width + from;
  }
};

/** The Box-Muller transform of u in (0, 1] and an angle. */
const normal = (words: Words, elements: Words, mean: number, deviation: number, gpu: Gpu): void => {
  gpu.unroll(2);
  for (let k = 0; k < 4; k += 2) {
    const u = gpu.f32((words[k]! >>> 8) + 1) * 5.960464477539063e-8;
    const angle = gpu.f32(words[k + 1]! >>> 8) * 5.960464477539063e-8 * 6.2831854820251465;
    const radius = Math.sqrt(-2 * Math.log(u));
    const across = radius * Math.cos(angle);
    const up = radius * Math.sin(angle);
    elements[k] = across * deviation + mean;
    elements[k + 1] = up * deviation + mean;
  }
};

const normalDouble = (
  words: Words,
  elements: Words,
  mean: number,
  deviation: number,
  gpu: Gpu,
): void => {
  gpu.unroll(2);
  for (let k = 0; k < 4; k += 2) {
    const u = gpu.f64((words[k]! >>> 8) + 1) * 5.960464477539063e-8;
    const angle = gpu.f64(words[k + 1]! >>> 8) * 5.960464477539063e-8 * 6.283185307179586;
    const radius = Math.sqrt(-2 * Math.log(u));
    const across = radius * Math.cos(angle);
    const up = radius * Math.sin(angle);
    elements[k] = across * deviation + mean;
    elements[k + 1] = up * deviation + mean;
  }
};

/** The upper word of the product of a word and the width, which is at most 2^32. */
const whole = (words: Words, elements: Words, from: number, width: number, gpu: Gpu): void => {
  gpu.unroll(4);
  for (let k = 0; k < 4; k++)
    elements[k] = from + gpu.i64((gpu.u64(words[k]!) * gpu.u64(width)) >> 32);
};

const ELEMENTS = {
  f32: (gpu: Gpu): Words => gpu.local.f32(4),
  f64: (gpu: Gpu): Words => gpu.local.f64(4),
  i64: (gpu: Gpu): Words => gpu.local.i64(4),
} as const;

/** A distribution: how elements are made of words. */
interface Distribution {
  readonly name: string;
  readonly shape: Usable;
  /** The type in which elements are made. */
  readonly type: keyof typeof ELEMENTS;
  readonly scalar: KernelParam;
}

const DISTRIBUTIONS = {
  uniform: { name: 'uniform', shape: uniform, type: 'f32', scalar: DTYPES.f32 },
  uniformDouble: { name: 'uniform', shape: uniformDouble, type: 'f64', scalar: DTYPES.f64 },
  normal: { name: 'normal', shape: normal, type: 'f32', scalar: DTYPES.f32 },
  normalDouble: { name: 'normal', shape: normalDouble, type: 'f64', scalar: DTYPES.f64 },
  whole: { name: 'whole', shape: whole, type: 'i64', scalar: DTYPES.i64 },
} as const satisfies Readonly<Record<string, Distribution>>;

function random<D extends KernelDTypeName, S extends Shape>(
  name: string,
  given: AnyDevice,
  dtype: DType<D>,
  shape: S,
  seed: unknown,
  distribution: Distribution,
  first: number | bigint,
  second: number | bigint,
): DeviceOp<Tensor<D, Dims<S>>> {
  const device = coreOf(given);
  checkShape('shape', shape);
  const fixed = checkedSeed(seed);
  return making(`${name}(${dtype.name}${showShape(shape)})`, device, (work) => {
    const out = work.result(dtype, [...shape]) as unknown as KernelTensor;
    const key = fixed ?? freshSeed();
    if (out.size > 0) {
      const wide = isWide(out);
      const launch = randoms.member(
        `${distribution.name}_${dtype.name}${wide ? '_wide' : ''}`,
        () => ({
          signature: {
            out: output(dtype),
            seedLow: u32,
            seedHigh: u32,
            first: distribution.scalar,
            second: distribution.scalar,
          },
          uses: { WIDE: wide, shape: distribution.shape, elements: ELEMENTS[distribution.type] },
          block: BLOCK,
        }),
      );
      const args = {
        out: out.reshape([out.size] as never),
        seedLow: Number(key & 0xffffffffn),
        seedHigh: Number(key >> 32n),
        first,
        second,
      };
      work.add(
        launch(args, {
          grid: Math.ceil(out.size / (4 * BLOCK)),
          ...(wide ? { index: 'i64' } : {}),
        }),
      );
    }
    return out as unknown as Tensor<D, Dims<S>>;
  });
}

const REALS: readonly string[] = ['f16', 'bf16', 'f32', 'f64'];

function checkReal(name: string, dtype: KernelDType): void {
  checkDType(dtype);
  if (!REALS.includes(dtype.name))
    throw invalid(
      'dtype',
      `f16, bf16, f32 or f64, for ${name}(…)`,
      dtype.name,
      dtype.kind === 'float'
        ? 'Convert them with convert(…).'
        : 'Whole numbers are made by randomIntegers(…).',
    );
}

function checkFinite(argument: string, value: unknown): asserts value is number {
  if (typeof value !== 'number' || !Number.isFinite(value))
    throw invalid(argument, 'a finite number', value);
}

/** Options of {@link randomUniform}: those of `device.rand`. */
export type RandomUniformOptions = Omit<RandOptions, 'label'>;
/** Options of {@link randomNormal}: those of `device.randn`. */
export type RandomNormalOptions = Omit<RandnOptions, 'label'>;

/** Options of {@link randomIntegers}. */
export interface RandomIntegersOptions {
  /** The lower bound, which is included. Default 0. */
  readonly from?: number | bigint;
  /** The upper bound, which is excluded; at most 2^32 above `from`. */
  readonly to: number | bigint;
  /**
   * A whole number below 2^64. The same seed gives the same numbers. Without one, each run draws a
   * new seed, as `device.rand` does.
   */
  readonly seed?: number | bigint;
}

/**
 * Makes uniform random numbers, with 24 random bits each (f64: 32), as a new contiguous tensor. The
 * same seed gives the same bits as `device.rand`, in row-major order, on every device and for every
 * shape.
 *
 * @throws CudaArgumentError for another dtype, an invalid shape, bounds in the wrong order
 *
 * @example
 * ```ts
 * using x = await randomUniform(device, f32, [1000], { from: -1, to: 1, seed: 1 });
 * console.log((await x.read()).every((value) => value >= -1 && value <= 1)); // true
 * ```
 */
export function randomUniform<D extends RealName, const S extends Shape>(
  device: AnyDevice,
  dtype: DType<D>,
  shape: S,
  options: RandomUniformOptions = {},
): DeviceOp<Tensor<D, Dims<S>>> {
  checkReal('randomUniform', dtype);
  checkOptions('options', options, ['seed', 'from', 'to']);
  const { seed, from = 0, to = 1 } = options;
  checkRange(dtype, from, to);
  return random(
    'randomUniform',
    device,
    dtype,
    shape,
    seed,
    dtype.name === 'f64' ? DISTRIBUTIONS.uniformDouble : DISTRIBUTIONS.uniform,
    from,
    to - from,
  );
}

/**
 * Makes normal random numbers, by the Box-Muller transform of the uniform ones, as a new contiguous
 * tensor. The same seed gives the same bits on every device and for every shape. f64 is computed in
 * double precision. Numbers differ from those of `device.randn`, which takes the device's
 * approximate logarithm and sines, by less than 0.001 deviations (0.00002 for numbers above 0.1).
 *
 * @throws CudaArgumentError for another dtype, an invalid shape, numbers that are not finite
 *
 * @example
 * ```ts
 * using x = await randomNormal(device, f32, [1000], { mean: 5, deviation: 0.1, seed: 1 });
 * using average = await mean(x);
 * console.log(Math.round(await average.item())); // 5
 * ```
 */
export function randomNormal<D extends RealName, const S extends Shape>(
  device: AnyDevice,
  dtype: DType<D>,
  shape: S,
  options: RandomNormalOptions = {},
): DeviceOp<Tensor<D, Dims<S>>> {
  checkReal('randomNormal', dtype);
  checkOptions('options', options, ['seed', 'mean', 'deviation']);
  const { seed, mean = 0, deviation = 1 } = options;
  if (typeof deviation !== 'number' || !(deviation >= 0))
    throw invalid('options.deviation', 'a number of at least 0', deviation);
  checkFinite('options.mean', mean);
  checkFinite('options.deviation', deviation);
  return random(
    'randomNormal',
    device,
    dtype,
    shape,
    seed,
    dtype.name === 'f64' ? DISTRIBUTIONS.normalDouble : DISTRIBUTIONS.normal,
    mean,
    deviation,
  );
}

/**
 * Makes random whole numbers from `from` up to, and without, `to`, as a new contiguous tensor. Each
 * is `from + ⌊word · (to - from) / 2^32⌋`, so that the probabilities of two numbers differ by at
 * most (to - from) / 2^32 of them, and are equal where `to - from` is a power of two.
 *
 * @throws CudaArgumentError for another dtype, an invalid shape, bounds that the dtype does not
 *   have or that are too far apart
 *
 * @example
 * ```ts
 * using dice = await randomIntegers(device, u8, [100], { from: 1, to: 7, seed: 1 });
 * console.log((await dice.read()).every((value) => value >= 1 && value <= 6)); // true
 * ```
 */
export function randomIntegers<D extends IntegerName, const S extends Shape>(
  device: AnyDevice,
  dtype: DType<D>,
  shape: S,
  options: RandomIntegersOptions,
): DeviceOp<Tensor<D, Dims<S>>> {
  checkDType(dtype);
  checkGroup('randomIntegers', 'dtype', { dtype }, 'integers');
  checkOptions('options', options, ['seed', 'from', 'to']);
  const { seed, from = 0, to } = options ?? {};
  const bits = BigInt(dtype.bytes * 8);
  const least = dtype.kind === 'signed' ? -(1n << (bits - 1n)) : 0n;
  const beyond = least + (1n << bits);
  for (const [argument, bound] of [
    ['options.from', from],
    ['options.to', to],
  ] as const) {
    if (typeof bound !== 'bigint' && !Number.isSafeInteger(bound))
      throw invalid(
        argument,
        'a whole number',
        bound,
        typeof bound === 'number' ? 'Beyond 2^53 write a bigint: 2n ** 60n.' : '',
      );
    if (BigInt(bound) < least || BigInt(bound) > beyond)
      throw invalid(argument, `from ${least} to ${beyond}, for ${dtype.name}`, bound);
  }
  const width = BigInt(to) - BigInt(from);
  if (width < 1n || width > 1n << 32n)
    throw invalid('options.to', `above options.from, ${from}, by 1 to 2^32`, to);
  return random(
    'randomIntegers',
    device,
    dtype,
    shape,
    seed,
    DISTRIBUTIONS.whole,
    BigInt.asIntN(64, BigInt(from)),
    width,
  );
}
