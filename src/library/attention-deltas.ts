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

type Axes = readonly (readonly (readonly number[])[])[][];

interface Args {
  /** [batch][head][query], of kernels by rows. */
  readonly deltas: number[][][];
  /**
   * [matrix][line][32], of warp groups: in lines of 32, the logarithms of ROWS queries and then
   * their deltas.
   */
  readonly lines: number[][][];
  readonly out: Axes;
  readonly dOut: Axes;
  /** [batch][head][query] */
  readonly logs: readonly (readonly number[])[][];
  readonly m: number;
  /** Queries of a matrix, and those after its last one. */
  readonly padded: number;
  readonly heads: number;
  readonly matrices: number;
}

interface DeltaGpu extends Gpu {
  readonly CHANNELS: number;
  readonly ROWS: number;
}

const families = new KernelFamily('attention_deltas', (args: Args, gpu: DeltaGpu) => {
  const { out, dOut, logs, m, padded, heads, matrices } = args;
  const { CHANNELS, ROWS } = gpu;
  const at = gpu.blockIdx.x * 4 + gpu.warpIdx;
  const matrix = at / padded;
  const row = at % padded;
  if (matrix >= matrices) return;
  const batch = matrix / heads;
  const head = matrix % heads;
  let sum = gpu.f32(0);
  // A query after the last one has no shares: they are exponentials less an infinite number.
  let log = Infinity;
  if (row < m) {
    for (let c = gpu.lane; c < CHANNELS; c += 32)
      sum = gpu.fma(
        gpu.f32(out[batch]![head]![row]![c]!),
        gpu.f32(dOut[batch]![head]![row]![c]!),
        sum,
      );
    log = logs[batch]![head]![row]!;
    // Nor has one that sees no key.
    if (log === -Infinity) log = Infinity;
  }
  sum = gpu.warp.sum(sum);
  if (gpu.lane === 0) {
    if (ROWS === 0) args.deltas[batch]![head]![row] = sum;
    else {
      const line = (row / ROWS) * (ROWS / 16) + (row % ROWS) / 32;
      args.lines[matrix]![line]![row % 32] = log * Math.LOG2E;
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
  readonly wide: boolean;
}

/** Gives the kernel for a form. */
export function attentionDeltas({ dtype, channels, rows, wide }: DeltaForm): Launchable {
  return families.member(`${dtype.name}_${channels}_${rows}${wide ? '_wide' : ''}`, () => ({
    signature: {
      ...(rows === 0 ? { deltas: output(f32, 3) } : { lines: output(f32, 3) }),
      out: input(dtype, 4),
      dOut: input(dtype, 4),
      logs: input(f32, 3),
      ...Object.fromEntries(
        ['m', 'padded', 'heads', 'matrices'].map((name) => [name, wide ? i64 : i32]),
      ),
    },
    uses: { CHANNELS: channels, ROWS: rows },
    block: DELTA_ROWS * 32,
  }));
}
