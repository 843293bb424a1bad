/** What follows a product: a bias for each column and an activation, computed in f32. */
import { f32, i32 } from '../core/index.js';
import type { KernelDType } from '../core/index.js';
import { deviceFunction, input, output } from '../kernels/index.js';
import type { DeviceFunction, KernelParam } from '../kernels/index.js';
import type { KernelTensor } from '../tensor/index.js';
import { ACTIVATIONS, FAST_ACTIVATIONS } from './activations.js';
import type { ActivationName } from './activations.js';
import { KernelFamily } from './kernel-family.js';
import type { Gpu, Input, Launchable, Output } from './kernel-family.js';

/** Tensors of one f32 each: sums are multiplied by `a` and `b`, and the result by `out`. */
export type Scales = Readonly<Record<'a' | 'b' | 'out', KernelTensor | undefined>>;

/** What is done with the sums of a product before they are rounded. */
export interface Finish {
  /** One value for each column. */
  readonly bias: KernelTensor | undefined;
  readonly activation: ActivationName | undefined;
  readonly scales: Scales;
}

export const NO_SCALES: Scales = { a: undefined, b: undefined, out: undefined };
export const NO_FINISH: Finish = { bias: undefined, activation: undefined, scales: NO_SCALES };

/** What a kernel is specialised for. */
export interface FinishForm {
  /** The dtype of a bias. */
  readonly bias: KernelDType | undefined;
  readonly activation: ActivationName | undefined;
  readonly scaleA: boolean;
  readonly scaleB: boolean;
  readonly scaleOut: boolean;
}

export const finishForm = ({ bias, activation, scales }: Finish): FinishForm => ({
  ...{ bias: bias?.dtype, activation },
  scaleA: scales.a !== undefined,
  scaleB: scales.b !== undefined,
  scaleOut: scales.out !== undefined,
});

/** Whether sums are only rounded. */
export const isNone = (finish: Finish): boolean =>
  Object.values(finishForm(finish)).every((part) => part === undefined || part === false);

/** The part of a kernel's name; empty where sums are only rounded. */
export const finishKey = (form: FinishForm): string =>
  [
    form.bias === undefined ? '' : `_bias_${form.bias.name}`,
    form.activation === undefined ? '' : `_${form.activation}`,
    ...(['scaleA', 'scaleB', 'scaleOut'] as const).map((name) => (form[name] ? `_${name}` : '')),
  ].join('');

/** The tensors of what follows a product, and their parameters; `other` where there is none. */
export const finishArguments = (
  { bias, scales }: Finish,
  other: KernelTensor,
): Readonly<Record<'bias' | 'scaleA' | 'scaleB' | 'scaleOut', KernelTensor>> => ({
  bias: bias ?? other,
  scaleA: scales.a ?? other,
  scaleB: scales.b ?? other,
  scaleOut: scales.out ?? other,
});
export const finishParameters = (
  form: FinishForm,
  other: KernelDType,
): Readonly<Record<string, KernelParam>> => ({
  bias: input(form.bias ?? other),
  scaleA: input(form.scaleA ? f32 : other),
  scaleB: input(form.scaleB ? f32 : other),
  scaleOut: input(form.scaleOut ? f32 : other),
});

interface Uses {
  readonly BIAS: boolean;
  readonly SCALE_A: boolean;
  readonly SCALE_B: boolean;
  readonly SCALE_OUT: boolean;
  activation(x: number): number;
}

/** Gives an element of column `x` with what follows the product. */
const finished = (
  sum: number,
  bias: Input,
  x: number,
  n: number,
  scaleA: Input,
  scaleB: Input,
  scaleOut: Input,
  gpu: Gpu & Uses,
): number => {
  const byA = gpu.SCALE_A ? sum * scaleA[0]! : sum;
  const byBoth = gpu.SCALE_B ? byA * scaleB[0]! : byA;
  const result = gpu.activation(gpu.BIAS && x < n ? byBoth + bias[x]! : byBoth);
  return gpu.SCALE_OUT ? result * scaleOut[0]! : result;
};

/**
 * The function of kernels: `finished(sum, bias, column, columns, scaleA, scaleB, scaleOut)`.
 * `fast`: by approximate instructions.
 */
export const finishing = (
  { bias, activation, scaleA, scaleB, scaleOut }: FinishForm,
  fast: boolean,
): DeviceFunction =>
  deviceFunction(finished as never, {
    uses: {
      BIAS: bias !== undefined,
      SCALE_A: scaleA,
      SCALE_B: scaleB,
      SCALE_OUT: scaleOut,
      activation: (fast ? FAST_ACTIVATIONS : ACTIVATIONS)[activation ?? 'none'] as never,
    },
  }) as DeviceFunction;

interface Args {
  readonly out: Output;
  readonly sums: Input;
  readonly bias: Input;
  readonly scaleA: Input;
  readonly scaleB: Input;
  readonly scaleOut: Input;
  readonly n: number;
}

interface FinishGpu extends Gpu {
  finished(
    sum: number,
    bias: Input,
    x: number,
    n: number,
    scaleA: Input,
    scaleB: Input,
    scaleOut: Input,
  ): number;
}

const kernels = new KernelFamily(
  'finish',
  ({ out, sums, bias, scaleA, scaleB, scaleOut, n }: Args, gpu: FinishGpu) => {
    const i = gpu.globalId.x;
    if (i < out.length) out[i] = gpu.finished(sums[i]!, bias, i % n, n, scaleA, scaleB, scaleOut);
  },
);

/** Queues what follows a product of `n` columns that has been computed: both are contiguous. */
export function finishProduct(
  sums: KernelTensor,
  out: KernelTensor,
  finish: Finish,
  n: number,
): ReturnType<Launchable> {
  const form = finishForm(finish);
  const launch = kernels.member(`${sums.dtype.name}_${out.dtype.name}${finishKey(form)}`, () => ({
    signature: {
      out: output(out.dtype),
      sums: input(sums.dtype),
      ...finishParameters(form, sums.dtype),
      n: i32,
    },
    uses: { finished: finishing(form, false) },
  }));
  const flat = (tensor: KernelTensor): KernelTensor => tensor.reshape([tensor.size] as never);
  return launch({
    ...{ out: flat(out), sums: flat(sums), n },
    ...finishArguments(finish, flat(sums)),
  });
}
