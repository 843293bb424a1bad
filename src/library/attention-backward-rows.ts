/**
 * The gradients of attention for every device, dtype and number of channels, in f32, and without
 * atomics: one kernel goes over the keys of each query, and another over the queries of each key.
 * Both are one body. A warp has four rows (queries, or keys) and goes over the others, 32 at a
 * time: its lanes are the others for the shares, and channels for the sums.
 */
import { f32, i32, i64 } from '../core/index.js';
import type { KernelDType } from '../core/index.js';
import { input, output } from '../kernels/index.js';
import { KernelFamily } from './kernel-family.js';
import type { Gpu, Launchable } from './kernel-family.js';

/** Queries, or keys, of a block. */
export const BACKWARD_ROWS = 16;
/** Channels that are in shared memory at a time. */
const PART = 64;
const THREADS = 128;

/** What a kernel is specialised for. */
export interface BackwardRowsForm {
  /** Whether it computes the gradients of keys and values, or those of queries. */
  readonly ofKeys: boolean;
  readonly dtype: KernelDType;
  readonly channels: number;
  readonly causal: boolean;
  readonly window: boolean;
  /** The dtype of a mask: bool tells which keys are seen, others are added to the scores. */
  readonly mask: KernelDType | undefined;
  readonly wide: boolean;
}

type Axes = readonly (readonly (readonly number[])[])[][];

interface Args {
  /** Gradients of the rows, and of values: [batch][head][position][channel] */
  readonly out: number[][][][];
  readonly values: number[][][][];
  /** The rows' factors of scores (q, or k) and of the gradients of shares (dOut, or v). */
  readonly a: Axes;
  readonly x: Axes;
  /** Those of the others: k and v, or q and dOut. */
  readonly b: Axes;
  readonly y: Axes;
  /** [batch][head][query] */
  readonly logs: readonly (readonly number[])[][];
  readonly deltas: readonly (readonly number[])[][];
  /** [batch][head][query][key] */
  readonly mask: Axes & readonly (readonly (readonly boolean[])[])[][];
  readonly m: number;
  readonly n: number;
  readonly heads: number;
  readonly group: number;
  /** Blocks along the rows. */
  readonly down: number;
  readonly scale: number;
  readonly window: number;
}

interface BackwardGpu extends Gpu {
  readonly OF_KEYS: boolean;
  readonly CHANNELS: number;
  readonly PARTS: number;
  readonly CAUSAL: boolean;
  readonly WINDOW: boolean;
  readonly ADDED: boolean;
  readonly CHOSEN: boolean;
}

const gradients = new KernelFamily('attention_backward_rows', (args: Args, gpu: BackwardGpu) => {
  const { out, a, x, b, y, logs, deltas, m, n, heads, group, down, scale, window } = args;
  const { OF_KEYS, CHANNELS, PARTS, CAUSAL, WINDOW, ADDED, CHOSEN, lane } = gpu;
  // One element more in a line: the lanes of a warp read different banks.
  const tileB = gpu.shared.f32(32, 65);
  const tileY = gpu.shared.f32(32, 65);
  const tileA = gpu.shared.f32(16, 64);
  const tileX = gpu.shared.f32(16, 64);
  const t = gpu.threadIdx.x;
  const warp = gpu.warpIdx;
  const matrix = gpu.blockIdx.x / down;
  const top = (gpu.blockIdx.x % down) * 16;
  const owners = OF_KEYS ? heads / group : heads;
  const batch = matrix / owners;
  const own = matrix % owners;
  const rows = OF_KEYS ? n : m;
  const others = OF_KEYS ? m : n;
  // Sums of dq, or of dk and dv.
  const sums = gpu.local.f32(8 * PARTS);
  const sumsOfValues = gpu.local.f32(OF_KEYS ? 8 * PARTS : 1);
  // Which of the others see the rows of the block, or are seen by them.
  let begin = OF_KEYS ? 0 : n - n;
  let last = others;
  if (OF_KEYS) {
    if (CAUSAL) begin = (Math.max(0, top + m - n) >> 5) << 5;
    if (WINDOW) last = Math.min(m, top + 16 + m - n + window);
  } else {
    if (CAUSAL) last = Math.min(n, top + 16 + n - m);
    if (WINDOW) begin = (Math.max(0, top + n - m - window) >> 5) << 5;
  }
  for (let turn = 0; turn < (OF_KEYS ? group : 1); turn++) {
    const head = OF_KEYS ? own * group + turn : own;
    const other = OF_KEYS ? head : own / group;
    for (let first = begin; first < last; first += 32) {
      const scores = gpu.local.f32(4);
      const slopes = gpu.local.f32(4);
      const shares = gpu.local.f32(4);
      for (let part = 0; part < PARTS; part++) {
        gpu.block.sync();
        for (let i = t; i < 32 * 64; i += 128) {
          const [line, at] = [i >> 6, part * 64 + (i & 63)];
          let one = gpu.f32(0);
          let two = gpu.f32(0);
          if (first + line < others && at < CHANNELS) {
            one = gpu.f32(b[batch]![other]![first + line]![at]!);
            two = gpu.f32(y[batch]![other]![first + line]![at]!);
          }
          tileB[line]![i & 63] = one;
          tileY[line]![i & 63] = two;
        }
        for (let i = t; i < 16 * 64; i += 128) {
          const [line, at] = [i >> 6, part * 64 + (i & 63)];
          let one = gpu.f32(0);
          let two = gpu.f32(0);
          if (top + line < rows && at < CHANNELS) {
            one = gpu.f32(a[batch]![own]![top + line]![at]!);
            two = gpu.f32(x[batch]![own]![top + line]![at]!);
          }
          tileA[line]![i & 63] = one;
          tileX[line]![i & 63] = two;
        }
        gpu.block.sync();
        for (let c = 0; c < 64; c++) {
          const one = tileB[lane]![c]!;
          const two = tileY[lane]![c]!;
          gpu.unroll();
          for (let r = 0; r < 4; r++) {
            scores[r] = gpu.fma(tileA[warp * 4 + r]![c]!, one, scores[r]!);
            slopes[r] = gpu.fma(tileX[warp * 4 + r]![c]!, two, slopes[r]!);
          }
        }
      }
      gpu.unroll();
      for (let r = 0; r < 4; r++) {
        const row = top + warp * 4 + r;
        const query = OF_KEYS ? first + lane : row;
        const key = OF_KEYS ? row : first + lane;
        const position = query + n - m;
        let isSeen =
          query < m &&
          key < n &&
          (!CAUSAL || key <= position) &&
          (!WINDOW || key >= position - window);
        if (CHOSEN && isSeen) isSeen = args.mask[batch]![head]![query]![key]!;
        shares[r] = 0;
        let slope = gpu.f32(0);
        if (isSeen) {
          let score = scores[r]! * scale;
          if (ADDED) score += gpu.f32(args.mask[batch]![head]![query]![key]!);
          const log = logs[batch]![head]![query]!;
          // The query sees no key: masks have added -Infinity.
          const share = log === -Infinity ? 0 : Math.exp(score - log);
          shares[r] = share;
          slope = share * (slopes[r]! - deltas[batch]![head]![query]!);
        }
        slopes[r] = slope;
      }
      gpu.unroll();
      for (let part = 0; part < PARTS; part++) {
        if (PARTS > 1) {
          gpu.block.sync();
          for (let i = t; i < 32 * 64; i += 128) {
            const [line, at] = [i >> 6, part * 64 + (i & 63)];
            let one = gpu.f32(0);
            let two = gpu.f32(0);
            if (first + line < others && at < CHANNELS) {
              one = gpu.f32(b[batch]![other]![first + line]![at]!);
              if (OF_KEYS) two = gpu.f32(y[batch]![other]![first + line]![at]!);
            }
            tileB[line]![i & 63] = one;
            if (OF_KEYS) tileY[line]![i & 63] = two;
          }
          gpu.block.sync();
        }
        for (let line = 0; line < 32; line++) {
          gpu.unroll();
          for (let r = 0; r < 4; r++) {
            const at = (r * PARTS + part) * 2;
            const slope = gpu.warp.shuffle(slopes[r]!, line);
            sums[at] = gpu.fma(slope, tileB[line]![lane]!, sums[at]!);
            sums[at + 1] = gpu.fma(slope, tileB[line]![lane + 32]!, sums[at + 1]!);
            if (OF_KEYS) {
              const share = gpu.warp.shuffle(shares[r]!, line);
              sumsOfValues[at] = gpu.fma(share, tileY[line]![lane]!, sumsOfValues[at]!);
              sumsOfValues[at + 1] = gpu.fma(
                share,
                tileY[line]![lane + 32]!,
                sumsOfValues[at + 1]!,
              );
            }
          }
        }
      }
    }
  }
  gpu.unroll();
  for (let r = 0; r < 4; r++) {
    const row = top + warp * 4 + r;
    gpu.unroll();
    for (let c = 0; c < 2 * PARTS; c++) {
      const at = c * 32 + lane;
      if (row < rows && at < CHANNELS) {
        out[batch]![own]![row]![at] = sums[r * 2 * PARTS + c]! * scale;
        if (OF_KEYS) args.values[batch]![own]![row]![at] = sumsOfValues[r * 2 * PARTS + c]!;
      }
    }
  }
});

/** Gives the kernel for a form. */
export function attentionBackwardRows(form: BackwardRowsForm): Launchable {
  const { ofKeys, dtype, channels, causal, window, mask, wide } = form;
  const key =
    `${ofKeys ? 'keys' : 'queries'}_${dtype.name}_${channels}${causal ? '_causal' : ''}` +
    `${window ? '_window' : ''}${mask === undefined ? '' : `_${mask.name}`}${wide ? '_wide' : ''}`;
  return gradients.member(key, () => ({
    signature: {
      out: output(dtype, 4),
      ...(ofKeys ? { values: output(dtype, 4) } : {}),
      ...Object.fromEntries(['a', 'x', 'b', 'y'].map((name) => [name, input(dtype, 4)])),
      logs: input(f32, 3),
      deltas: input(f32, 3),
      ...(mask === undefined ? {} : { mask: input(mask, 4) }),
      ...Object.fromEntries(
        ['m', 'n', 'heads', 'group', 'down'].map((name) => [name, wide ? i64 : i32]),
      ),
      scale: f32,
      window: i32,
    },
    uses: {
      OF_KEYS: ofKeys,
      CHANNELS: channels,
      PARTS: Math.ceil(channels / PART),
      CAUSAL: causal,
      WINDOW: window,
      ADDED: mask !== undefined && mask.name !== 'bool',
      CHOSEN: mask?.name === 'bool',
    },
    block: THREADS,
  }));
}
