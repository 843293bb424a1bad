/** What follows a product: a bias for each column and an activation, computed in f32. */
import { i32 } from '../core/index.js';
import type { KernelDType } from '../core/index.js';
import { deviceFunction, input, output } from '../kernels/index.js';
import type { DeviceFunction } from '../kernels/index.js';
import type { KernelTensor } from '../tensor/index.js';
import { ACTIVATIONS, FAST_ACTIVATIONS } from './activations.js';
import type { ActivationName } from './activations.js';
import { KernelFamily } from './kernel-family.js';
import type { Gpu, Input, Launchable, Output } from './kernel-family.js';

/** What is done with the sums of a product before they are rounded. */
export interface Finish {
  /** One value for each column. */
  readonly bias: KernelTensor | undefined;
  readonly activation: ActivationName | undefined;
}

export const NO_FINISH: Finish = { bias: undefined, activation: undefined };

interface Uses {
  readonly BIAS: boolean;
  activation(x: number): number;
}

/** Gives an element of column `x` with what follows the product. */
const finished = (sum: number, bias: Input, x: number, n: number, gpu: Gpu & Uses): number =>
  gpu.activation(gpu.BIAS && x < n ? sum + bias[x]! : sum);

/**
 * The function of kernels: `finished(sum, bias, column, columns)`. `fast`: by approximate
 * instructions.
 */
export const finishing = (
  hasBias: boolean,
  name: ActivationName | undefined,
  fast: boolean,
): DeviceFunction =>
  deviceFunction(finished as never, {
    uses: {
      BIAS: hasBias,
      activation: (fast ? FAST_ACTIVATIONS : ACTIVATIONS)[name ?? 'none'] as never,
    },
  }) as DeviceFunction;

interface Args {
  readonly out: Output;
  readonly sums: Input;
  readonly bias: Input;
  readonly n: number;
}

interface FinishGpu extends Gpu {
  finished(sum: number, bias: Input, x: number, n: number): number;
}

const kernels = new KernelFamily('finish', ({ out, sums, bias, n }: Args, gpu: FinishGpu) => {
  const i = gpu.globalId.x;
  if (i < out.length) out[i] = gpu.finished(sums[i]!, bias, i % n, n);
});

/** Queues what follows a product of `n` columns that has been computed: both are contiguous. */
export function finishProduct(
  sums: KernelTensor,
  out: KernelTensor,
  { bias, activation }: Finish,
  n: number,
): ReturnType<Launchable> {
  const given = bias?.dtype as KernelDType | undefined;
  const launch = kernels.member(
    `${sums.dtype.name}_${out.dtype.name}_${given?.name ?? 'no'}_${activation ?? 'none'}`,
    () => ({
      signature: {
        out: output(out.dtype),
        sums: input(sums.dtype),
        bias: input(given ?? sums.dtype),
        n: i32,
      },
      uses: { finished: finishing(bias !== undefined, activation, false) },
    }),
  );
  const flat = (tensor: KernelTensor): KernelTensor => tensor.reshape([tensor.size] as never);
  return launch({ out: flat(out), sums: flat(sums), bias: bias ?? flat(sums), n });
}
