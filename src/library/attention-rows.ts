/**
 * Attention for every device, dtype and number of channels, in f32. A warp has four queries and
 * goes over the keys, 32 at a time: its lanes are keys for the scores, and channels for the sums.
 */
import { f32, i32, i64 } from '../core/index.js';
import type { KernelDType } from '../core/index.js';
import { input, output } from '../kernels/index.js';
import { KernelFamily } from './kernel-family.js';
import type { Gpu, Launchable } from './kernel-family.js';
import { sequenceUses } from './packed-sequences.js';
import type { SequenceGpu } from './packed-sequences.js';

/** Queries of a block. */
export const ROWS = 16;
/** Channels that are in shared memory at a time. */
const PART = 64;
const THREADS = 128;

/** What a kernel is specialised for. */
export interface RowsForm {
  readonly dtype: KernelDType;
  readonly channels: number;
  readonly causal: boolean;
  readonly window: boolean;
  /** The dtype of a mask: bool tells which keys are seen, others are added to the scores. */
  readonly mask: KernelDType | undefined;
  readonly wide: boolean;
  /** Whether it writes the logarithms of the sums of shares. */
  readonly logs: boolean;
  /** Whether the positions are those of several sequences, one after the other. */
  readonly packed: boolean;
}

type Axes = readonly (readonly (readonly number[])[])[][];

interface Args {
  /** [batch][head][position][channel] */
  readonly out: number[][][][];
  /** [batch][head][query] */
  readonly logs: number[][][];
  readonly q: Axes;
  readonly k: Axes;
  readonly v: Axes;
  /** [batch][head][query][key] */
  readonly mask: Axes & readonly (readonly (readonly boolean[])[])[][];
  /** Where the queries and the keys of packed sequences begin, and where the last ones end. */
  readonly queryOffsets: readonly number[];
  readonly keyOffsets: readonly number[];
  readonly sequences: number;
  /** All queries, and all keys. */
  readonly allQueries: number;
  readonly allKeys: number;
  readonly heads: number;
  readonly group: number;
  /** Blocks along the queries; of packed sequences as `findSequence` numbers them. */
  readonly down: number;
  readonly scale: number;
  readonly window: number;
}

interface RowsGpu extends Gpu, SequenceGpu {
  readonly CHANNELS: number;
  readonly PARTS: number;
  readonly CAUSAL: boolean;
  readonly WINDOW: boolean;
  readonly ADDED: boolean;
  readonly CHOSEN: boolean;
  readonly LOGS: boolean;
  readonly PACKED: boolean;
}

const attentions = new KernelFamily(
  'attention_rows',
  (
    {
      out,
      logs,
      q,
      k,
      v,
      mask,
      queryOffsets,
      keyOffsets,
      sequences,
      allQueries,
      allKeys,
      heads,
      group,
      down,
      scale,
      window,
    }: Args,
    gpu: RowsGpu,
  ) => {
    const { CHANNELS, PARTS, CAUSAL, WINDOW, ADDED, CHOSEN, LOGS, PACKED, lane } = gpu;
    // One element more in a line: the lanes of a warp read different banks.
    const tile = gpu.shared.f32(32, 65);
    const queries = gpu.shared.f32(16, 64);
    const t = gpu.threadIdx.x;
    const warp = gpu.warpIdx;
    const matrix = gpu.blockIdx.x / down;
    let top = (gpu.blockIdx.x % down) * 16;
    // The block's sequence: all positions, where they are not packed.
    let m = allQueries;
    let n = allKeys;
    let firstQuery = 0;
    let firstKey = 0;
    if (PACKED) {
      const found = gpu.sequence();
      gpu.findSequence(
        found,
        gpu.blockIdx.x % down,
        queryOffsets,
        keyOffsets,
        sequences,
        allQueries,
        allKeys,
      );
      top = found[gpu.TOP]!;
      m = found[gpu.OWN_QUERIES]!;
      firstQuery = found[gpu.QUERIES_FROM]!;
      n = found[gpu.OWN_KEYS]!;
      firstKey = found[gpu.KEYS_FROM]!;
      if (top < 0 || top >= m) return;
    }
    const batch = matrix / heads;
    const head = matrix % heads;
    const shared = head / group;
    const sums = gpu.local.f32(8 * PARTS);
    const most = gpu.local.f32(4);
    const weight = gpu.local.f32(4);
    const shares = gpu.local.f32(4);
    gpu.unroll();
    for (let r = 0; r < 4; r++) most[r] = -Infinity;
    const last = CAUSAL ? Math.min(n, top + 16 + n - m) : n;
    const begin = WINDOW ? (Math.max(0, top + n - m - window) >> 5) << 5 : 0;
    for (let first = begin; first < last; first += 32) {
      const scores = gpu.local.f32(4);
      for (let part = 0; part < PARTS; part++) {
        gpu.block.sync();
        for (let i = t; i < 32 * 64; i += 128) {
          const [line, at] = [i >> 6, part * 64 + (i & 63)];
          let value = gpu.f32(0);
          if (first + line < n && at < CHANNELS)
            value = gpu.f32(k[batch]![shared]![firstKey + first + line]![at]!);
          tile[line]![i & 63] = value;
        }
        for (let i = t; i < 16 * 64; i += 128) {
          const [line, at] = [i >> 6, part * 64 + (i & 63)];
          let value = gpu.f32(0);
          if (top + line < m && at < CHANNELS)
            value = gpu.f32(q[batch]![head]![firstQuery + top + line]![at]!);
          queries[line]![i & 63] = value;
        }
        gpu.block.sync();
        for (let c = 0; c < 64; c++) {
          const value = tile[lane]![c]!;
          gpu.unroll();
          for (let r = 0; r < 4; r++)
            scores[r] = gpu.fma(queries[warp * 4 + r]![c]!, value, scores[r]!);
        }
      }
      gpu.unroll();
      for (let r = 0; r < 4; r++) {
        const row = top + warp * 4 + r;
        const key = first + lane;
        const position = row + n - m;
        let score = scores[r]! * scale;
        let isSeen =
          row < m &&
          key < n &&
          (!CAUSAL || key <= position) &&
          (!WINDOW || key >= position - window);
        if (CHOSEN && isSeen) isSeen = mask[batch]![head]![row]![key]!;
        if (ADDED && isSeen) score += gpu.f32(mask[batch]![head]![row]![key]!);
        if (!isSeen) score = -Infinity;
        const greatest = Math.max(most[r]!, gpu.warp.max(score));
        const base = greatest === -Infinity ? 0 : greatest;
        const fade = Math.exp(most[r]! - base);
        const share = Math.exp(score - base);
        most[r] = greatest;
        weight[r] = weight[r]! * fade + gpu.warp.sum(share);
        shares[r] = share;
        gpu.unroll();
        for (let c = 0; c < 2 * PARTS; c++)
          sums[r * 2 * PARTS + c] = sums[r * 2 * PARTS + c]! * fade;
      }
      gpu.unroll();
      for (let part = 0; part < PARTS; part++) {
        gpu.block.sync();
        for (let i = t; i < 32 * 64; i += 128) {
          const [line, at] = [i >> 6, part * 64 + (i & 63)];
          let value = gpu.f32(0);
          if (first + line < n && at < CHANNELS)
            value = gpu.f32(v[batch]![shared]![firstKey + first + line]![at]!);
          tile[line]![i & 63] = value;
        }
        gpu.block.sync();
        for (let key = 0; key < 32; key++) {
          const [one, other] = [tile[key]![lane]!, tile[key]![lane + 32]!];
          gpu.unroll();
          for (let r = 0; r < 4; r++) {
            const share = gpu.warp.shuffle(shares[r]!, key);
            const at = (r * PARTS + part) * 2;
            sums[at] = gpu.fma(share, one, sums[at]!);
            sums[at + 1] = gpu.fma(share, other, sums[at + 1]!);
          }
        }
      }
    }
    gpu.unroll();
    for (let r = 0; r < 4; r++) {
      const row = top + warp * 4 + r;
      if (LOGS && row < m && lane === 0)
        logs[batch]![head]![firstQuery + row] = most[r]! + Math.log(weight[r]!);
      gpu.unroll();
      for (let c = 0; c < 2 * PARTS; c++) {
        const at = c * 32 + lane;
        // A query that sees no key gets zeros.
        if (row < m && at < CHANNELS)
          out[batch]![head]![firstQuery + row]![at] =
            weight[r] === 0 ? 0 : sums[r * 2 * PARTS + c]! / weight[r]!;
      }
    }
  },
);

/** Gives the kernel for a form. */
export function attentionRows(form: RowsForm): Launchable {
  const { dtype, channels, causal, window, mask, wide, logs, packed } = form;
  const key =
    `${dtype.name}_${channels}${causal ? '_causal' : ''}${window ? '_window' : ''}` +
    `${packed ? '_packed' : ''}` +
    `${mask === undefined ? '' : `_${mask.name}`}${wide ? '_wide' : ''}${logs ? '_logs' : ''}`;
  return attentions.member(key, () => ({
    signature: {
      out: output(dtype, 4),
      logs: logs ? output(f32, 3) : input(dtype, 4),
      q: input(dtype, 4),
      k: input(dtype, 4),
      v: input(dtype, 4),
      mask: input(mask ?? dtype, 4),
      ...Object.fromEntries(
        ['queryOffsets', 'keyOffsets'].map((name) => [name, packed ? input(i32) : input(dtype, 4)]),
      ),
      ...Object.fromEntries(
        ['sequences', 'allQueries', 'allKeys', 'heads', 'group', 'down'].map((name) => [
          name,
          wide ? i64 : i32,
        ]),
      ),
      scale: f32,
      window: i32,
    },
    uses: {
      CHANNELS: channels,
      PARTS: Math.ceil(channels / PART),
      CAUSAL: causal,
      WINDOW: window,
      ADDED: mask !== undefined && mask.name !== 'bool',
      CHOSEN: mask?.name === 'bool',
      LOGS: logs,
      PACKED: packed,
      ...sequenceUses(ROWS, wide),
    },
    block: THREADS,
  }));
}
