/**
 * Attention of f16 and bf16 by Hopper's warp groups, after FlashAttention-3 (Shah et al., 2024).
 * One warp group of a block begins tensor copies of queries, keys and values, some steps ahead.
 * Each of the others has 64 queries. It begins the scores of the next keys and the product of the
 * last shares with their values, and computes the softmax of the scores while the second product
 * runs. The groups take turns, so that the products of one run beside the softmax of another.
 */
import { f32, i32 } from '../core/index.js';
import type { KernelDType } from '../core/index.js';
import { input, output } from '../kernels/index.js';
import { addMaskOf } from './attention-masks.js';
import type { MaskSteps } from './attention-masks.js';
import { LINE, LINE_BYTES, arraysOf, beginScoresOf, beginSumsOf } from './attention-products.js';
import type { Lines, Products } from './attention-products.js';
import { KernelFamily } from './kernel-family.js';
import type { Gpu, KernelArray, Launchable } from './kernel-family.js';
import { advanceOf, maskOf } from './attention-scores.js';
import { sequenceUses } from './packed-sequences.js';
import type { SequenceGpu } from './packed-sequences.js';

/** How attention is cut into tiles. */
export interface AttentionPlan {
  /** Queries of a block: 64, 128 or 192, of which each warp group has 64. */
  readonly rows: number;
  /** Keys of a step: a multiple of 16 of at most 256. */
  readonly keys: number;
  /** Steps whose keys, or values, are in shared memory at a time. */
  readonly stages: number;
  /** Tiles whose queries are in shared memory at a time: 1 or 2. */
  readonly queries: number;
  /** Whether the groups take turns. */
  readonly turns: boolean;
}

/** The plan and what else a kernel is specialised for. */
export interface AttentionForm {
  readonly plan: AttentionPlan;
  /** f16 or bf16. */
  readonly dtype: KernelDType;
  /** Channels in shared memory: 64, 128, 192 or 256. Those beyond the tensors' are zeros. */
  readonly channels: number;
  readonly causal: boolean;
  readonly window: boolean;
  /** Whether it writes the logarithms of the sums of shares. */
  readonly logs: boolean;
  /** Whether a mask of the dtype is added to the scores, in steps of a multiple of 64 keys. */
  readonly masked?: boolean;
  /** Whether the positions are those of several sequences, one after the other. */
  readonly packed?: boolean;
}

/** Threads of a block. */
export const threadsOf = ({ rows }: AttentionPlan): number => 128 * (1 + rows / 64);

/** Lines of shared memory. */
const linesOf = (plan: AttentionPlan, channels: number, masked: boolean): number => {
  const { rows, keys, stages, queries } = plan;
  const masks = masked ? stages * (keys / LINE) * rows : 0;
  return (channels / LINE) * (queries * rows + 2 * stages * keys) + masks;
};

/** Bytes of dynamic shared memory. */
export const sharedBytesOf = (plan: AttentionPlan, channels: number, masked = false): number =>
  linesOf(plan, channels, masked) * LINE_BYTES;

type Rows = readonly (readonly number[][])[][] & { readonly shape: readonly number[] };

interface Args extends MaskSteps {
  /** [batch][head][position][channel] */
  readonly out: number[][][][] & { readonly shape: readonly number[] };
  /** [batch][head][query] */
  readonly logs: number[][][];
  readonly q: Rows;
  readonly k: Rows;
  readonly v: Rows;
  /** [batch][head][query][key], whose rows have a multiple of 8 elements. */
  readonly mask: Rows;
  /** Where the queries and the keys of packed sequences begin, and where the last ones end. */
  readonly queryOffsets: readonly number[];
  readonly keyOffsets: readonly number[];
  readonly sequences: number;
  /** The number of queries and of keys; of packed sequences, that of all. */
  readonly m: number;
  readonly n: number;
  readonly heads: number;
  /** Heads that share keys and values. */
  readonly group: number;
  /** Tiles along the queries; of packed sequences as `findSequence` numbers them. */
  readonly down: number;
  /** Heads whose tiles are computed one after the other, longest first, and all heads. */
  readonly section: number;
  readonly matrices: number;
  /** The scale times log2(e); with a mask the scale. */
  readonly factor: number;
  readonly window: number;
}

interface AttentionGpu extends Gpu, Products, SequenceGpu {
  readonly ROWS: number;
  readonly KEYS: number;
  readonly CHANNELS: number;
  readonly STAGES: number;
  readonly QUERIES: number;
  readonly TURNS: boolean;
  readonly CAUSAL: boolean;
  readonly WINDOW: boolean;
  readonly LOGS: boolean;
  readonly MASKED: boolean;
  readonly PACKED: boolean;
  /** Channels of the tensors. */
  readonly OWN: number;
  readonly FEWER: number;
  readonly MORE: number;
  lines(): Lines;
  shares(): KernelArray<KernelArray<number>>;
  packed(): KernelArray<number>;
  mask(
    scores: KernelArray<number>,
    first: number,
    row: number,
    m: number,
    n: number,
    window: number,
  ): void;
  addMask(scores: KernelArray<number>, lines: Lines, line: number, scale: number): void;
  advance(
    scores: KernelArray<number>,
    most: KernelArray<number>,
    weight: KernelArray<number>,
    fade: KernelArray<number>,
    factor: number,
  ): void;
}

const attentions = new KernelFamily('warp_group_attention', (args: Args, gpu: AttentionGpu) => {
  const { out, logs, q, k, v, m: allQueries, n: allKeys, heads, group, down } = args;
  const { section, matrices, factor, window } = args;
  const { ROWS, KEYS, CHANNELS, STAGES, QUERIES, TURNS, CAUSAL, WINDOW, LOGS } = gpu;
  const { MASKED, PACKED, TOP, OWN_QUERIES, QUERIES_FROM, OWN_KEYS, KEYS_FROM } = gpu;
  const GROUPS = ROWS / 64;
  const CHUNKS = CHANNELS / 64;
  // Lines: queries, keys, values, parts of 64 keys of a mask.
  const FIRST_KEY = QUERIES * CHUNKS * ROWS;
  const FIRST_VALUE = FIRST_KEY + STAGES * CHUNKS * KEYS;
  const FIRST_MASK = FIRST_VALUE + STAGES * CHUNKS * KEYS;
  const PARTS = KEYS / 64;
  // mbarriers: stages that are full, and empty.
  const EMPTY_KEYS = STAGES;
  const FULL_VALUES = 2 * STAGES;
  const EMPTY_VALUES = 3 * STAGES;
  const FULL_QUERIES = 4 * STAGES;
  const EMPTY_QUERIES = FULL_QUERIES + QUERIES;
  const TURN = EMPTY_QUERIES + QUERIES;
  const lines = gpu.lines();
  const bars = gpu.shared.u64(TURN + GROUPS);
  if (gpu.threadIdx.x === 0) {
    for (let s = 0; s < STAGES; s++) {
      gpu.barrier.init(bars, s, 1);
      // With a mask, which threads read, each warp arrives.
      gpu.barrier.init(bars, EMPTY_KEYS + s, MASKED ? 4 * GROUPS : GROUPS);
      gpu.barrier.init(bars, FULL_VALUES + s, 1);
      gpu.barrier.init(bars, EMPTY_VALUES + s, GROUPS);
    }
    for (let s = 0; s < QUERIES; s++) {
      gpu.barrier.init(bars, FULL_QUERIES + s, 1);
      gpu.barrier.init(bars, EMPTY_QUERIES + s, GROUPS);
    }
    for (let g = 0; g < GROUPS; g++) gpu.barrier.init(bars, TURN + g, 1);
    gpu.fence.barriers();
  }
  gpu.block.sync();

  const warpGroup = gpu.warpIdx >> 2;
  const tiles = matrices * down;
  const grid = gpu.gridDim.x;
  // In every second round blocks take tiles in the opposite order.
  let place = gpu.blockIdx.x;
  if (warpGroup === GROUPS) {
    gpu.group.fewerRegisters(gpu.FEWER);
    if (gpu.threadIdx.x === 128 * GROUPS) {
      let [stageK, parityK, stageV, parityV, stageQ, parityQ] = [0, 1, 0, 1, 0, 1];
      for (let first = 0; first + place < tiles; first += grid) {
        const tile = first + place;
        const base = (tile / (section * down)) * section;
        const within = tile % (section * down);
        const here = Math.min(matrices - base, section);
        let top = (down - 1 - within / here) * ROWS;
        const matrix = base + (within % here);
        let m = allQueries;
        let n = allKeys;
        let firstQuery = 0;
        let firstKey = 0;
        if (PACKED) {
          const found = gpu.sequence();
          gpu.findSequence(
            found,
            top / ROWS,
            args.queryOffsets,
            args.keyOffsets,
            args.sequences,
            allQueries,
            allKeys,
          );
          top = found[TOP]!;
          m = found[OWN_QUERIES]!;
          firstQuery = found[QUERIES_FROM]!;
          n = found[OWN_KEYS]!;
          firstKey = found[KEYS_FROM]!;
          if (top < 0 || top >= m) {
            place = grid - 1 - place;
            continue;
          }
        }
        const batch = matrix / heads;
        const head = matrix % heads;
        const shared = head / group;
        const last = CAUSAL
          ? Math.max(1, Math.min(n, top + ROWS + n - m))
          : PACKED
            ? Math.max(1, n)
            : n;
        const begin = WINDOW ? Math.max(0, Math.min(last - 1, top + n - m - window)) / KEYS : 0;
        const steps = (last + KEYS - 1) / KEYS - begin;
        for (let step = 0; step <= steps; step++) {
          if (step < steps) {
            const key = (begin + steps - 1 - step) * KEYS;
            gpu.barrier.wait(bars, EMPTY_KEYS + stageK, parityK);
            gpu.barrier.expect(
              bars,
              stageK,
              CHUNKS * KEYS * 128 + (MASKED ? PARTS * ROWS * 128 : 0),
            );
            gpu.unroll();
            for (let c = 0; c < CHUNKS; c++)
              gpu.tensor.load(
                lines,
                FIRST_KEY + (stageK * CHUNKS + c) * KEYS,
                KEYS,
                k,
                bars,
                stageK,
                batch,
                shared,
                firstKey + key,
                c * 64,
              );
            if (MASKED) {
              gpu.unroll();
              for (let part = 0; part < PARTS; part++)
                gpu.tensor.load(
                  lines,
                  FIRST_MASK + (stageK * PARTS + part) * ROWS,
                  ROWS,
                  args.mask,
                  bars,
                  stageK,
                  batch * args.maskBatch,
                  head * args.maskHead,
                  top * args.maskQuery,
                  key + part * 64,
                );
            }
            stageK++;
            if (stageK === STAGES) {
              stageK = 0;
              parityK ^= 1;
            }
          }
          if (step === 0) {
            gpu.barrier.wait(bars, EMPTY_QUERIES + stageQ, parityQ);
            gpu.barrier.expect(bars, FULL_QUERIES + stageQ, CHUNKS * ROWS * 128);
            gpu.unroll();
            for (let c = 0; c < CHUNKS; c++)
              gpu.tensor.load(
                lines,
                (stageQ * CHUNKS + c) * ROWS,
                ROWS,
                q,
                bars,
                FULL_QUERIES + stageQ,
                batch,
                head,
                firstQuery + top,
                c * 64,
              );
            stageQ++;
            if (stageQ === QUERIES) {
              stageQ = 0;
              parityQ ^= 1;
            }
          } else {
            const key = (begin + steps - step) * KEYS;
            gpu.barrier.wait(bars, EMPTY_VALUES + stageV, parityV);
            gpu.barrier.expect(bars, FULL_VALUES + stageV, CHUNKS * KEYS * 128);
            gpu.unroll();
            for (let c = 0; c < CHUNKS; c++)
              gpu.tensor.load(
                lines,
                FIRST_VALUE + (stageV * CHUNKS + c) * KEYS,
                KEYS,
                v,
                bars,
                FULL_VALUES + stageV,
                batch,
                shared,
                firstKey + key,
                c * 64,
              );
            stageV++;
            if (stageV === STAGES) {
              stageV = 0;
              parityV ^= 1;
            }
          }
        }
        place = grid - 1 - place;
      }
    }
  } else {
    gpu.group.moreRegisters(gpu.MORE);
    const sums = gpu.local.f32(CHANNELS / 2);
    const scores = gpu.local.f32(KEYS / 2);
    const shares = gpu.shares();
    const most = gpu.local.f32(2);
    const weight = gpu.local.f32(2);
    const fade = gpu.local.f32(2);
    const thread = gpu.threadIdx.x % 128;
    const warp = gpu.warpIdx % 4;
    const { lane } = gpu;
    let [stageK, parityK, stageV, parityV, stageQ, parityQ] = [0, 0, 0, 0, 0, 0];
    const maskLine = MASKED ? FIRST_MASK + warpGroup * 64 + warp * 16 + (lane & 15) : 0;
    // Whether the block has had a tile: the first ones of packed sequences may be empty.
    let hasWritten = false;
    // The first group begins.
    let turn = warpGroup === 0 ? 1 : 0;
    const next = warpGroup === GROUPS - 1 ? 0 : warpGroup + 1;
    for (let first = 0; first + place < tiles; first += grid) {
      const tile = first + place;
      const base = (tile / (section * down)) * section;
      const within = tile % (section * down);
      const here = Math.min(matrices - base, section);
      let top = (down - 1 - within / here) * ROWS;
      const matrix = base + (within % here);
      let m = allQueries;
      let n = allKeys;
      let firstQuery = 0;
      if (PACKED) {
        const found = gpu.sequence();
        gpu.findSequence(
          found,
          top / ROWS,
          args.queryOffsets,
          args.keyOffsets,
          args.sequences,
          allQueries,
          allKeys,
        );
        top = found[TOP]!;
        m = found[OWN_QUERIES]!;
        firstQuery = found[QUERIES_FROM]!;
        n = found[OWN_KEYS]!;
        if (top < 0 || top >= m) {
          place = grid - 1 - place;
          continue;
        }
      }
      const last = CAUSAL
        ? Math.max(1, Math.min(n, top + ROWS + n - m))
        : PACKED
          ? Math.max(1, n)
          : n;
      const begin = WINDOW ? Math.max(0, Math.min(last - 1, top + n - m - window)) / KEYS : 0;
      const steps = (last + KEYS - 1) / KEYS - begin;
      const firstRow = top + warpGroup * 64;
      const row = firstRow + warp * 16 + (lane >> 2);
      let key = (begin + steps - 1) * KEYS;
      // All queries of the group see keys of this range.
      const wholeTo = CAUSAL ? Math.min(n, firstRow + n - m + 1) : n;
      const wholeFrom = WINDOW ? firstRow + 63 + n - m - window : 0;
      const lineQ = stageQ * CHUNKS * ROWS + warpGroup * 64;

      gpu.barrier.wait(bars, FULL_QUERIES + stageQ, parityQ);
      gpu.barrier.wait(bars, stageK, parityK);
      gpu.beginScores(scores, lines, lineQ, FIRST_KEY + stageK * CHUNKS * KEYS);
      gpu.unroll();
      for (let i = 0; i < CHANNELS / 2; i++) sums[i] = 0;
      most[0] = -Infinity;
      most[1] = -Infinity;
      weight[0] = 0;
      weight[1] = 0;
      if (QUERIES > 1 && (PACKED ? hasWritten : first > 0) && thread === 0) {
        // The copy of the last results has read the lines of their queries.
        gpu.tensor.waitRead(0);
        gpu.barrier.arrive(bars, EMPTY_QUERIES + (stageQ ^ 1));
      }
      gpu.group.wait(0);
      if (MASKED) {
        gpu.addMask(scores, lines, maskLine + stageK * PARTS * ROWS, factor);
        gpu.warp.sync();
      }
      if ((MASKED ? lane : thread) === 0) gpu.barrier.arrive(bars, EMPTY_KEYS + stageK);
      stageK++;
      if (stageK === STAGES) {
        stageK = 0;
        parityK ^= 1;
      }
      if (key + KEYS > wholeTo || (WINDOW && key < wholeFrom))
        gpu.mask(scores, key, row, m, n, window);
      gpu.advance(scores, most, weight, fade, factor);
      gpu.unroll();
      for (let i = 0; i < KEYS / 2; i++) shares[i >> 3]![i & 7] = scores[i]!;

      if (PACKED && key + KEYS > n) {
        // Values after the sequence are multiplied by shares of 0, and may not be numbers.
        gpu.barrier.wait(bars, FULL_VALUES + stageV, parityV);
        const firstLine = FIRST_VALUE + stageV * CHUNKS * KEYS;
        for (let i = gpu.threadIdx.x; i < CHUNKS * KEYS * 8; i += 128 * GROUPS) {
          const line = i >> 3;
          if (key + (line % KEYS) >= n) {
            gpu.unroll();
            for (let e = 0; e < 8; e++) lines[firstLine + line]![(i & 7) * 8 + e] = 0;
          }
        }
        gpu.fence.async();
        gpu.block.syncThreads(GROUPS + 1, 128 * GROUPS);
      }
      if (steps > 1) gpu.barrier.wait(bars, stageK, parityK);
      for (let step = 1; step < steps; step++) {
        key -= KEYS;
        if (TURNS) gpu.barrier.wait(bars, TURN + warpGroup, turn);
        gpu.beginScores(scores, lines, lineQ, FIRST_KEY + stageK * CHUNKS * KEYS);
        gpu.barrier.wait(bars, FULL_VALUES + stageV, parityV);
        gpu.beginSums(sums, shares, lines, FIRST_VALUE + stageV * CHUNKS * KEYS);
        if (TURNS) {
          turn ^= 1;
          if (thread === 0) gpu.barrier.arrive(bars, TURN + next);
        }
        // The scores are complete, the sums are not.
        gpu.group.wait(1);
        if (MASKED) {
          gpu.addMask(scores, lines, maskLine + stageK * PARTS * ROWS, factor);
          gpu.warp.sync();
        }
        if ((MASKED ? lane : thread) === 0) gpu.barrier.arrive(bars, EMPTY_KEYS + stageK);
        stageK++;
        if (stageK === STAGES) {
          stageK = 0;
          parityK ^= 1;
        }
        if (key + KEYS > wholeTo || (WINDOW && key < wholeFrom))
          gpu.mask(scores, key, row, m, n, window);
        gpu.advance(scores, most, weight, fade, factor);
        // The branch keeps ptxas from moving the wait that follows before the softmax.
        if (step + 1 < steps) gpu.barrier.wait(bars, stageK, parityK);
        gpu.group.wait(0);
        if (thread === 0) gpu.barrier.arrive(bars, EMPTY_VALUES + stageV);
        stageV++;
        if (stageV === STAGES) {
          stageV = 0;
          parityV ^= 1;
        }
        gpu.unroll();
        for (let i = 0; i < CHANNELS / 2; i++) sums[i] = sums[i]! * fade[(i >> 1) & 1]!;
        gpu.unroll();
        for (let i = 0; i < KEYS / 2; i++) shares[i >> 3]![i & 7] = scores[i]!;
      }

      gpu.barrier.wait(bars, FULL_VALUES + stageV, parityV);
      gpu.beginSums(sums, shares, lines, FIRST_VALUE + stageV * CHUNKS * KEYS);
      gpu.unroll();
      for (let r = 0; r < 2; r++) {
        let total = weight[r]!;
        total += gpu.warp.shuffleXor(total, 1);
        total += gpu.warp.shuffleXor(total, 2);
        if (LOGS && lane % 4 === 0 && row + 8 * r < m)
          logs[matrix / heads]![matrix % heads]![firstQuery + row + 8 * r] = MASKED
            ? gpu.fma(gpu.fast.log2(total), Math.LN2, most[r]!)
            : (most[r]! * factor + gpu.fast.log2(total)) * Math.LN2;
        // A query that sees no key gets zeros.
        weight[r] = total === 0 ? 0 : 1 / total;
      }
      gpu.group.wait(0);
      if (thread === 0) gpu.barrier.arrive(bars, EMPTY_VALUES + stageV);
      stageV++;
      if (stageV === STAGES) {
        stageV = 0;
        parityV ^= 1;
      }

      // The results take the place of the group's queries, which all of its threads have read.
      gpu.block.syncThreads(warpGroup + 1, 128);
      const line = lineQ + warp * 16 + (lane & 15);
      gpu.unroll();
      for (let part = 0; part < CHANNELS / 16; part++) {
        const packed = gpu.packed();
        gpu.unroll();
        for (let i = 0; i < 8; i++) packed[i] = sums[part * 8 + i]! * weight[(i >> 1) & 1]!;
        gpu.warp.storeMatrices(
          lines[line + (part >> 2) * ROWS]!,
          (((part & 3) * 2 + (lane >> 4)) ^ (lane & 7)) * 8,
          packed,
        );
      }
      gpu.fence.async();
      gpu.block.syncThreads(warpGroup + 1, 128);
      const batch = matrix / heads;
      const head = matrix % heads;
      const isPart = PACKED && firstRow + 64 > m;
      if (isPart) {
        // A copy would write to queries of the next sequence.
        for (let i = thread; i < 64 * CHUNKS * 8; i += 128) {
          const unit = i & 7;
          const own = (i >> 3) & 63;
          const channel = (i >> 9) * 64 + unit * 8;
          if (firstRow + own < m && channel < gpu.OWN) {
            const from = lineQ + (i >> 9) * ROWS + own;
            gpu.unroll();
            for (let e = 0; e < 8; e++)
              out[batch]![head]![firstQuery + firstRow + own]![channel + e] =
                lines[from]![(unit ^ (own & 7)) * 8 + e]!;
          }
        }
        gpu.block.syncThreads(warpGroup + 1, 128);
      }
      if (thread === 0) {
        if (!isPart) {
          gpu.unroll();
          for (let c = 0; c < CHUNKS; c++)
            gpu.tensor.store(
              out,
              lines,
              lineQ + c * ROWS,
              64,
              batch,
              head,
              firstQuery + firstRow,
              c * 64,
            );
        }
        gpu.tensor.commit();
        if (QUERIES === 1) {
          gpu.tensor.waitRead(0);
          gpu.barrier.arrive(bars, EMPTY_QUERIES);
        }
      }
      hasWritten = true;
      stageQ++;
      if (stageQ === QUERIES) {
        stageQ = 0;
        parityQ ^= 1;
      }
      place = grid - 1 - place;
    }
    if (thread === 0) gpu.tensor.waitRead(0);
  }
});

/** Gives the kernel for a form, of so many channels of the tensors. */
export function warpGroupAttention(form: AttentionForm, own = form.channels): Launchable {
  const { plan, dtype, channels, causal, window, logs, masked = false, packed = false } = form;
  const { rows, keys, stages, queries, turns } = plan;
  const key =
    `${dtype.name}_${channels}_${rows}x${keys}_${stages}_${queries}` +
    `${turns ? '_turns' : ''}` +
    `${causal ? '_causal' : ''}${window ? '_window' : ''}${logs ? '_logs' : ''}` +
    `${masked ? '_masked' : ''}${packed ? `_packed_${own}` : ''}`;
  const integers = (names: readonly string[]) =>
    Object.fromEntries(names.map((name) => [name, i32]));
  return attentions.member(key, () => {
    const masking = { KEYS: keys, CAUSAL: causal, WINDOW: window };
    const [fewer, more] = { 64: [56, 200], 128: [24, 240], 192: [32, 160] }[rows as 64];
    return {
      signature: {
        out: output(dtype, 4),
        logs: logs ? output(f32, 3) : input(dtype, 4),
        q: input(dtype, 4),
        k: input(dtype, 4),
        v: input(dtype, 4),
        ...integers(['m', 'n', 'heads', 'group', 'down', 'section', 'matrices']),
        factor: f32,
        window: i32,
        ...(masked
          ? { mask: input(dtype, 4), ...integers(['maskBatch', 'maskHead', 'maskQuery']) }
          : {}),
        ...(packed
          ? { queryOffsets: input(i32), keyOffsets: input(i32), ...integers(['sequences']) }
          : {}),
      },
      uses: {
        ROWS: rows,
        CHANNELS: channels,
        OWN: own,
        STAGES: stages,
        QUERIES: queries,
        TURNS: turns,
        LOGS: logs,
        MASKED: masked,
        PACKED: packed,
        FEWER: fewer!,
        MORE: more!,
        ...masking,
        ...arraysOf(dtype.name, { COUNT: linesOf(plan, channels, masked), PARTS: keys / 16 }),
        beginScores: beginScoresOf({ ROWS: rows, KEYS: keys, CHANNELS: channels }),
        beginSums: beginSumsOf({ KEYS: keys }),
        mask: maskOf(masking),
        addMask: addMaskOf(dtype.name, { ROWS: rows, KEYS: keys }),
        ...sequenceUses(rows),
        advance: advanceOf({ KEYS: keys, MASKED: masked }),
      },
      block: threadsOf(plan),
    };
  });
}
