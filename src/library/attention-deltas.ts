/**
 * What the gradients of attention take for each query besides its scores: the logarithm of its sum,
 * and delta, the product of its result and the result's gradient. One warp has one query.
 */
import { f32, i32, i64 } from '../core/index.js';
import type { KernelDType } from '../core/index.js';
import { input, output } from '../kernels/index.js';
import { KernelFamily } from './kernel-family.js';
import type { Gpu, Launchable } from './kernel-family.js';

/** Queries of a block. */
export const DELTA_ROWS = 4;

interface Args {
  /** [matrix][query], of kernels by rows. */
  readonly deltas: number[];
  /**
   * [matrix][line][32], of warp groups: in lines of 32, the logarithms of ROWS queries, to base 2
   * or natural ones, and then their deltas.
   */
  readonly lines: number[][][];
  /** [matrix][query][channel], as one axis, of which a lane reads adjacent elements. */
  readonly out: readonly number[];
  readonly dOut: readonly number[];
  /** [matrix][query] */
  readonly logs: readonly number[];
  readonly m: number;
  /** Queries of a matrix, and those after its last one. */
  readonly padded: number;
  readonly matrices: number;
}

interface DeltaGpu extends Gpu {
  readonly CHANNELS: number;
  readonly ROWS: number;
  readonly NATURAL: boolean;
  /** Adjacent channels of a lane. */
  readonly EACH: number;
}

const families = new KernelFamily('attention_deltas', (args: Args, gpu: DeltaGpu) => {
  const { out, dOut, logs, m, padded, matrices } = args;
  const { CHANNELS, ROWS, EACH } = gpu;
  const at = gpu.blockIdx.x * 4 + gpu.warpIdx;
  const matrix = at / padded;
  const row = at % padded;
  if (matrix >= matrices) return;
  const query = matrix * m + row;
  let sum = gpu.f32(0);
  // A query after the last one has no shares: they are exponentials less an infinite number.
  let log = Infinity;
  if (row < m) {
    for (let c = gpu.lane * EACH; c < CHANNELS; c += 32 * EACH) {
      const first = query * CHANNELS + c;
      gpu.unroll();
      for (let i = 0; i < EACH; i++)
        sum = gpu.fma(gpu.f32(out[first + i]!), gpu.f32(dOut[first + i]!), sum);
    }
    log = logs[query]!;
    // Nor has one that sees no key.
    if (log === -Infinity) log = Infinity;
  }
  sum = gpu.warp.sum(sum);
  if (gpu.lane === 0) {
    if (ROWS === 0) args.deltas[query] = sum;
    else {
      const line = (row / ROWS) * (ROWS / 16) + (row % ROWS) / 32;
      args.lines[matrix]![line]![row % 32] = gpu.NATURAL ? log : log * Math.LOG2E;
      args.lines[matrix]![line + ROWS / 32]![row % 32] = sum;
    }
  }
});

/** What a kernel of deltas is specialised for. */
export interface DeltaForm {
  readonly dtype: KernelDType;
  readonly channels: number;
  /** Queries whose numbers are in adjacent lines, for warp groups; 0 for kernels by rows. */
  readonly rows: number;
  /** Whether warp groups take natural logarithms, as with a mask. */
  readonly natural: boolean;
  readonly wide: boolean;
}

/** Gives the kernel for a form. */
export function attentionDeltas({ dtype, channels, rows, natural, wide }: DeltaForm): Launchable {
  const key = `${dtype.name}_${channels}_${rows}${natural ? '_natural' : ''}${wide ? '_wide' : ''}`;
  return families.member(key, () => ({
    signature: {
      ...(rows === 0 ? { deltas: output(f32) } : { lines: output(f32, 3) }),
      out: input(dtype),
      dOut: input(dtype),
      logs: input(f32),
      ...Object.fromEntries(['m', 'padded', 'matrices'].map((name) => [name, wide ? i64 : i32])),
    },
    uses: { CHANNELS: channels, ROWS: rows, NATURAL: natural, EACH: channels % 4 === 0 ? 4 : 1 },
    block: DELTA_ROWS * 32,
  }));
}
