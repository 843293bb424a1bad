/**
 * The gradients of attention of f16 and bf16 by Hopper's warp groups, after FlashAttention-3's. A
 * block has a tile of keys, and goes over the queries that see it. One warp group begins tensor
 * copies of queries and of their results' gradients, some steps ahead. Each of the others has 64
 * keys, whose scores it computes transposed: so shares and the scores' gradients are in registers
 * as the products with dOut and with the queries take them. The latter are in shared memory
 * besides, since the gradient of the queries is a sum over the keys of all groups. Tensor copies
 * add it to a tensor of f32, which has the order of registers: `addedQueries` reads it so. These
 * additions have no order, so that the last bits of dq differ from run to run on a GPU.
 */
import { f32, i32 } from '../core/index.js';
import type { KernelDType } from '../core/index.js';
import { deviceFunction, inout, input, output } from '../kernels/index.js';
import type { DeviceFunction } from '../kernels/index.js';
import { addTransposedMaskOf } from './attention-masks.js';
import type { MaskSteps } from './attention-masks.js';
import { LINE, arraysOf, beginScoresOf, beginSumsOf } from './attention-products.js';
import type { Lines, Products } from './attention-products.js';
import { sumLinesOf, widthOf } from './attention-query-sums.js';
import { KernelFamily } from './kernel-family.js';
import type { Gpu, KernelArray, Launchable } from './kernel-family.js';

/** How the gradients of attention are cut into tiles. */
export interface BackwardPlan {
  /** Queries of a step: 64, or 64 for each warp group. */
  readonly rows: number;
  /** Keys of a block, of which each warp group has 64. */
  readonly keys: number;
  /** Steps whose queries, and gradients of results, are in shared memory at a time: 2 or more. */
  readonly stages: number;
}

/** The plan and what else a kernel is specialised for. */
export interface BackwardForm {
  readonly plan: BackwardPlan;
  /** f16 or bf16. */
  readonly dtype: KernelDType;
  /** Channels in shared memory: 64, 128 or 256. Those beyond the tensors' are zeros. */
  readonly channels: number;
  readonly causal: boolean;
  readonly window: boolean;
  /** Whether a mask of the dtype is added to the scaled scores. */
  readonly masked?: boolean;
}

/** Lines of the numbers of a step's queries, in memory: logarithms, then deltas. */
export const numberLinesOf = ({ rows }: BackwardPlan): number => rows / 16;

/** Lines of shared memory for them: lines are swizzled by their numbers modulo 8. */
export const NUMBER_LINES = 8;

/** Threads of a block. */
const threadsOf = ({ keys }: BackwardPlan): number => 128 * (1 + keys / 64);

/** Lines of shared memory. */
export const linesOf = (plan: BackwardPlan, channels: number): number => {
  const { rows, keys, stages } = plan;
  return (
    (channels / LINE) * (2 * keys + 2 * stages * rows) +
    stages * (rows / 64) * keys +
    sumLinesOf(plan, channels) +
    stages * NUMBER_LINES
  );
};

type Rows = readonly (readonly number[][])[][] & { readonly shape: readonly number[] };
type Written = number[][][][] & { readonly shape: readonly number[] };
type Planes = number[][][] & { readonly shape: readonly number[] };

export interface BackwardArgs extends MaskSteps {
  /** [matrix][line][32]: sums of the gradient of queries, before the scale. */
  readonly sums: Planes;
  /** [batch][head][position][channel] */
  readonly dk: Written;
  readonly dv: Written;
  readonly q: Rows;
  readonly dOut: Rows;
  readonly k: Rows;
  readonly v: Rows;
  /** [batch][head][query][key], whose rows have a multiple of 8 elements. */
  readonly mask: Rows;
  /** [matrix][line][32]: logarithms and deltas of queries. */
  readonly numbers: Planes;
  /** The number of queries and of keys. */
  readonly m: number;
  readonly n: number;
  /** Heads of keys, and heads that share each of them. */
  readonly kvHeads: number;
  readonly group: number;
  /** Tiles along the keys. */
  readonly down: number;
  readonly scale: number;
  /** The scale times log2(e). */
  readonly factor: number;
  readonly window: number;
}

export interface BackwardGpu extends Gpu, Products {
  readonly ROWS: number;
  readonly KEYS: number;
  readonly CHANNELS: number;
  readonly STAGES: number;
  readonly WIDTH: number;
  readonly CAUSAL: boolean;
  readonly WINDOW: boolean;
  readonly MASKED: boolean;
  readonly FEWER: number;
  readonly MORE: number;
  lines(): Lines;
  sumLines(): Lines;
  shares(): KernelArray<KernelArray<number>>;
  packed(): KernelArray<number>;
  addMask(
    scores: KernelArray<number>,
    lines: Lines,
    line: number,
    unit: number,
    scale: number,
  ): void;
  mask(
    scores: KernelArray<number>,
    first: number,
    row: number,
    m: number,
    n: number,
    window: number,
  ): void;
}

type Masking = Pick<BackwardGpu, 'ROWS' | 'CAUSAL' | 'WINDOW'>;

/** Scores of queries that do not see a key become -Infinity. */
export const maskOf = (uses: Masking): DeviceFunction =>
  deviceFunction(
    ((
      scores: KernelArray<number>,
      first: number,
      row: number,
      m: number,
      n: number,
      window: number,
      gpu: Gpu & Masking,
    ) => {
      const { ROWS, CAUSAL, WINDOW } = gpu;
      gpu.unroll();
      for (let r = 0; r < 2; r++) {
        const key = row + 8 * r;
        // The first query that sees the key, and the first after it that does not.
        const from = key + m - n - first - (gpu.lane % 4) * 2;
        let begin = CAUSAL ? from : 0;
        if (key >= n) begin = ROWS;
        const end = from + window;
        gpu.unroll();
        for (let i = 0; i < ROWS / 4; i++) {
          const at = (i >> 1) * 4 + r * 2 + (i & 1);
          const query = 8 * (i >> 1) + (i & 1);
          if (query < begin || (WINDOW && query > end)) scores[at] = -Infinity;
        }
      }
    }) as never,
    { uses },
  ) as DeviceFunction;

const gradients = new KernelFamily(
  'warp_group_attention_backward',
  (args: BackwardArgs, gpu: BackwardGpu) => {
    const { sums, dk, dv, q, dOut, k, v, numbers, m, n, kvHeads, group, down } = args;
    const { scale, factor, window } = args;
    const { ROWS, KEYS, CHANNELS, STAGES, WIDTH, CAUSAL, WINDOW, MASKED } = gpu;
    const GROUPS = KEYS / 64;
    const CHUNKS = CHANNELS / 64;
    // Lines: keys, values, queries, gradients of results, gradients of scores, sums, numbers.
    const FIRST_VALUE = CHUNKS * KEYS;
    const FIRST_QUERY = 2 * FIRST_VALUE;
    const FIRST_OUT = FIRST_QUERY + STAGES * CHUNKS * ROWS;
    const FIRST_SLOPE = FIRST_OUT + STAGES * CHUNKS * ROWS;
    const SLOPE_LINES = (ROWS / 64) * KEYS;
    const FIRST_SUM = FIRST_SLOPE + STAGES * SLOPE_LINES;
    const FIRST_NUMBER = FIRST_SUM + (ROWS * CHANNELS) / 32;
    // mbarriers: stages that are full, and empty; keys and values.
    const EMPTY_QUERIES = STAGES;
    const FULL_OUT = 2 * STAGES;
    const EMPTY_OUT = 3 * STAGES;
    const FULL_KEYS = 4 * STAGES;
    const FULL_VALUES = FULL_KEYS + 1;
    const lines = gpu.lines();
    const sumLines = gpu.sumLines();
    const bars = gpu.shared.u64(FULL_VALUES + 1);
    if (gpu.threadIdx.x === 0) {
      for (let s = 0; s < STAGES; s++) {
        gpu.barrier.init(bars, s, 1);
        gpu.barrier.init(bars, EMPTY_QUERIES + s, GROUPS);
        gpu.barrier.init(bars, FULL_OUT + s, 1);
        gpu.barrier.init(bars, EMPTY_OUT + s, GROUPS);
      }
      gpu.barrier.init(bars, FULL_KEYS, 1);
      gpu.barrier.init(bars, FULL_VALUES, 1);
      gpu.fence.barriers();
    }
    gpu.block.sync();

    const warpGroup = gpu.warpIdx >> 2;
    const matrix = gpu.blockIdx.x / down;
    const top = (gpu.blockIdx.x % down) * KEYS;
    const batch = matrix / kvHeads;
    const shared = matrix % kvHeads;
    // Tiles of queries that see keys of the block: at least one, so that loops have a step.
    const firstTile = CAUSAL ? Math.max(0, top + m - n) / ROWS : 0;
    const end = WINDOW ? Math.max(1, Math.min(m, top + KEYS + m - n + window)) : m;
    const endTile = Math.max(firstTile + 1, (end + ROWS - 1) / ROWS);
    if (warpGroup === GROUPS) {
      gpu.group.fewerRegisters(gpu.FEWER);
      if (gpu.threadIdx.x === 128 * GROUPS) {
        gpu.barrier.expect(bars, FULL_KEYS, CHUNKS * KEYS * 128);
        gpu.unroll();
        for (let c = 0; c < CHUNKS; c++)
          gpu.tensor.load(lines, c * KEYS, KEYS, k, bars, FULL_KEYS, batch, shared, top, c * 64);
        let stage = 0;
        let parity = 1;
        for (let turn = 0; turn < group; turn++) {
          const head = shared * group + turn;
          for (let tile = firstTile; tile < endTile; tile++) {
            const row = tile * ROWS;
            gpu.barrier.wait(bars, EMPTY_QUERIES + stage, parity);
            gpu.barrier.expect(bars, stage, CHUNKS * ROWS * 128 + ROWS * 8);
            gpu.unroll();
            for (let c = 0; c < CHUNKS; c++)
              gpu.tensor.load(
                lines,
                FIRST_QUERY + (stage * CHUNKS + c) * ROWS,
                ROWS,
                q,
                bars,
                stage,
                batch,
                head,
                row,
                c * 64,
              );
            gpu.tensor.load(
              sumLines,
              FIRST_NUMBER + stage * 8,
              ROWS / 16,
              numbers,
              bars,
              stage,
              matrix * group + turn,
              tile * (ROWS / 16),
              0,
            );
            if (turn === 0 && tile === firstTile) {
              gpu.barrier.expect(bars, FULL_VALUES, CHUNKS * KEYS * 128);
              gpu.unroll();
              for (let c = 0; c < CHUNKS; c++)
                gpu.tensor.load(
                  lines,
                  FIRST_VALUE + c * KEYS,
                  KEYS,
                  v,
                  bars,
                  FULL_VALUES,
                  batch,
                  shared,
                  top,
                  c * 64,
                );
            }
            gpu.barrier.wait(bars, EMPTY_OUT + stage, parity);
            gpu.barrier.expect(
              bars,
              FULL_OUT + stage,
              CHUNKS * ROWS * 128 + (MASKED ? SLOPE_LINES * 128 : 0),
            );
            if (MASKED) {
              // A group's part of the mask is where it writes the gradients of its scores.
              gpu.unroll();
              for (let part = 0; part < SLOPE_LINES / 64; part++)
                gpu.tensor.load(
                  lines,
                  FIRST_SLOPE + stage * SLOPE_LINES + part * 64,
                  64,
                  args.mask,
                  bars,
                  FULL_OUT + stage,
                  batch * args.maskBatch,
                  head * args.maskHead,
                  (row + (part / GROUPS) * 64) * args.maskQuery,
                  top + (part % GROUPS) * 64,
                );
            }
            gpu.unroll();
            for (let c = 0; c < CHUNKS; c++)
              gpu.tensor.load(
                lines,
                FIRST_OUT + (stage * CHUNKS + c) * ROWS,
                ROWS,
                dOut,
                bars,
                FULL_OUT + stage,
                batch,
                head,
                row,
                c * 64,
              );
            stage++;
            if (stage === STAGES) {
              stage = 0;
              parity ^= 1;
            }
          }
        }
      }
    } else {
      gpu.group.moreRegisters(gpu.MORE);
      const sumsK = gpu.local.f32(CHANNELS / 2);
      const sumsV = gpu.local.f32(CHANNELS / 2);
      const scores = gpu.local.f32(ROWS / 2);
      const slopes = gpu.local.f32(ROWS / 2);
      const sumsQ = gpu.local.f32(WIDTH / 2);
      const shares = gpu.shares();
      const packedSlopes = gpu.shares();
      const thread = gpu.threadIdx.x % 128;
      const warp = gpu.warpIdx % 4;
      const { lane } = gpu;
      const firstKey = top + warpGroup * 64;
      const row = firstKey + warp * 16 + (lane >> 2);
      // Where a step's first query is between these two, none of its scores is masked: each of its
      // queries sees every key of the group.
      const wholeFrom = firstKey + 63 + m - n;
      const wholeTo = firstKey + m - n + window - ROWS + 1;
      const isLast = firstKey + 64 > n;
      // Where this group's part of the gradient of queries begins: its rows, or its channels.
      const slopeLine = ROWS === 64 ? 0 : warpGroup * KEYS;
      const keyLine = ROWS === 64 ? warpGroup * (WIDTH / 64) * KEYS : 0;
      const sumLine = FIRST_SUM + warpGroup * WIDTH * 2;
      const writtenLine = sumLine + (thread >> 3);
      const writtenPlace = ((thread & 7) ^ ((thread >> 3) & 7)) * 4;
      let stage = 0;
      let parity = 0;
      gpu.unroll();
      for (let i = 0; i < CHANNELS / 2; i++) {
        sumsK[i] = 0;
        sumsV[i] = 0;
      }
      gpu.barrier.wait(bars, FULL_KEYS, 0);
      for (let turn = 0; turn < group; turn++) {
        for (let tile = firstTile; tile < endTile; tile++) {
          const first = tile * ROWS;
          const lineQ = FIRST_QUERY + stage * CHUNKS * ROWS;
          const lineOut = FIRST_OUT + stage * CHUNKS * ROWS;
          gpu.barrier.wait(bars, stage, parity);
          gpu.beginScores(scores, lines, warpGroup * 64, lineQ);
          // They have come once, before the first step.
          gpu.barrier.wait(bars, FULL_VALUES, 0);
          gpu.barrier.wait(bars, FULL_OUT + stage, parity);
          gpu.beginScores(slopes, lines, FIRST_VALUE + warpGroup * 64, lineOut);
          // The scores are complete, the gradients of shares are not.
          gpu.group.wait(1);
          if (MASKED) {
            const maskLine = FIRST_SLOPE + stage * SLOPE_LINES + warpGroup * 64;
            gpu.addMask(scores, lines, maskLine, warp * 2, scale);
            gpu.block.syncThreads(warpGroup + 2, 128);
          }
          if (isLast || (CAUSAL && first < wholeFrom) || (WINDOW && first > wholeTo))
            gpu.mask(scores, first, row, m, n, window);
          const numberLine = FIRST_NUMBER + stage * 8;
          gpu.unroll();
          for (let j = 0; j < ROWS / 8; j++) {
            // Unit 2 (j % 4) + (lane % 4) / 2 of line j / 4, swizzled.
            const place =
              (((j & 3) * 2) ^ ((j >> 2) & 6)) * 4 +
              (((lane >> 1) & 1) ^ ((j >> 2) & 1)) * 4 +
              (lane & 1) * 2;
            gpu.unroll();
            for (let e = 0; e < 2; e++) {
              const log = sumLines[numberLine + (j >> 2)]![place + e]!;
              gpu.unroll();
              for (let r = 0; r < 2; r++) {
                const at = j * 4 + r * 2 + e;
                scores[at] = MASKED
                  ? gpu.fast.exp2((scores[at]! - log) * Math.LOG2E)
                  : gpu.fast.exp2(gpu.fma(scores[at]!, factor, -log));
              }
            }
          }
          gpu.unroll();
          for (let i = 0; i < ROWS / 2; i++) shares[i >> 3]![i & 7] = scores[i]!;
          // The gradients of scores are computed while these products run.
          gpu.beginSums(sumsV, shares, lines, lineOut);
          gpu.group.wait(1);
          gpu.unroll();
          for (let j = 0; j < ROWS / 8; j++) {
            const number = ROWS / 32 + (j >> 2);
            const place =
              (((j & 3) * 2) ^ (number & 6)) * 4 +
              (((lane >> 1) & 1) ^ (number & 1)) * 4 +
              (lane & 1) * 2;
            gpu.unroll();
            for (let e = 0; e < 2; e++) {
              const delta = sumLines[numberLine + number]![place + e]!;
              gpu.unroll();
              for (let r = 0; r < 2; r++) {
                const at = j * 4 + r * 2 + e;
                packedSlopes[at >> 3]![at & 7] = scores[at]! * (slopes[at]! - delta);
              }
            }
          }
          const slopeLines = FIRST_SLOPE + stage * SLOPE_LINES;
          const line = slopeLines + warpGroup * 64 + warp * 16 + (lane & 15);
          gpu.unroll();
          for (let part = 0; part < ROWS / 16; part++)
            gpu.warp.storeMatrices(
              lines[line + (part >> 2) * KEYS]!,
              (((part & 3) * 2 + (lane >> 4)) ^ (lane & 7)) * 8,
              packedSlopes[part]!,
            );
          gpu.fence.async();
          // The copy of the last sums has read the lines of the next.
          if (thread === 0) gpu.tensor.waitRead(0);
          // One barrier in a step, since a stage has its own gradients of scores: those of the last
          // stage may still be read.
          gpu.block.syncThreads(1, 128 * GROUPS);
          gpu.unroll();
          for (let i = 0; i < WIDTH / 2; i++) sumsQ[i] = 0;
          gpu.group.begin();
          gpu.unroll();
          for (let part = 0; part < KEYS / 16; part++)
            gpu.group.mma(
              sumsQ,
              lines,
              slopeLines + slopeLine + part * 16,
              0,
              lines,
              keyLine + part * 16,
              0,
              KEYS,
              KEYS,
            );
          gpu.group.commit();
          gpu.beginSums(sumsK, packedSlopes, lines, lineQ);
          // The products with gradients of results, and then those of the queries' gradient.
          gpu.group.wait(1);
          if (thread === 0) gpu.barrier.arrive(bars, EMPTY_OUT + stage);
          gpu.unroll();
          for (let j = 0; j < WIDTH / 8; j++) {
            gpu.unroll();
            for (let e = 0; e < 4; e++)
              sumLines[writtenLine + j * 16]![writtenPlace + e] = sumsQ[j * 4 + e]!;
          }
          gpu.fence.async();
          gpu.block.syncThreads(warpGroup + 2, 128);
          if (thread === 0) {
            gpu.tensor.add(
              sums,
              sumLines,
              sumLine,
              WIDTH * 2,
              matrix * group + turn,
              tile * ((ROWS * CHANNELS) / 32) + warpGroup * WIDTH * 2,
              0,
            );
            gpu.tensor.commit();
          }
          gpu.group.wait(0);
          if (thread === 0) gpu.barrier.arrive(bars, EMPTY_QUERIES + stage);
          stage++;
          if (stage === STAGES) {
            stage = 0;
            parity ^= 1;
          }
        }
      }

      // The results take the place of keys and values, which the products of all groups have read.
      gpu.block.syncThreads(1, 128 * GROUPS);
      const line = warpGroup * 64 + warp * 16 + (lane & 15);
      gpu.unroll();
      for (let part = 0; part < CHANNELS / 16; part++) {
        const place = (((part & 3) * 2 + (lane >> 4)) ^ (lane & 7)) * 8;
        const packedK = gpu.packed();
        const packedV = gpu.packed();
        gpu.unroll();
        for (let i = 0; i < 8; i++) {
          packedK[i] = sumsK[part * 8 + i]! * scale;
          packedV[i] = sumsV[part * 8 + i]!;
        }
        gpu.warp.storeMatrices(lines[line + (part >> 2) * KEYS]!, place, packedK);
        gpu.warp.storeMatrices(lines[FIRST_VALUE + line + (part >> 2) * KEYS]!, place, packedV);
      }
      gpu.fence.async();
      gpu.block.syncThreads(warpGroup + 2, 128);
      if (thread === 0) {
        gpu.unroll();
        for (let c = 0; c < CHUNKS; c++) {
          const from = c * KEYS + warpGroup * 64;
          gpu.tensor.store(dk, lines, from, 64, batch, shared, firstKey, c * 64);
          gpu.tensor.store(dv, lines, FIRST_VALUE + from, 64, batch, shared, firstKey, c * 64);
        }
        gpu.tensor.commit();
        gpu.tensor.waitRead(0);
      }
    }
  },
);

/** The same lines as lines of 32 numbers of f32. */
export const sumLinesIn = (COUNT: number): DeviceFunction => {
  const uses = { COUNT };
  return deviceFunction(
    ((gpu: Gpu & typeof uses) => gpu.dynamicShared.f32(gpu.COUNT, 32)) as never,
    { uses },
  ) as DeviceFunction;
};

/** A form's name in those of kernels. */
export function backwardKeyOf(form: BackwardForm): string {
  const { plan, dtype, channels, causal, window, masked = false } = form;
  return (
    `${dtype.name}_${channels}_${plan.rows}x${plan.keys}_${plan.stages}` +
    `${causal ? '_causal' : ''}${window ? '_window' : ''}${masked ? '_masked' : ''}`
  );
}

/** The parameters of kernels of a form. */
export const backwardSignature = ({ dtype, masked = false }: BackwardForm) => {
  const integers = (names: readonly string[]) =>
    Object.fromEntries(names.map((name) => [name, i32]));
  return {
    sums: inout(f32, 3),
    dk: output(dtype, 4),
    dv: output(dtype, 4),
    ...Object.fromEntries(['q', 'dOut', 'k', 'v'].map((name) => [name, input(dtype, 4)])),
    numbers: input(f32, 3),
    ...integers(['m', 'n', 'kvHeads', 'group', 'down']),
    scale: f32,
    factor: f32,
    window: i32,
    ...(masked
      ? { mask: input(dtype, 4), ...integers(['maskBatch', 'maskHead', 'maskQuery']) }
      : {}),
  };
};

/** Gives the kernel for a form of at most 128 channels. */
export function warpGroupAttentionBackward(form: BackwardForm): Launchable {
  const { plan, dtype, channels, causal, window, masked = false } = form;
  const { rows, keys, stages } = plan;
  return gradients.member(backwardKeyOf(form), () => {
    const masking = { ROWS: rows, CAUSAL: causal, WINDOW: window };
    const [fewer, more] = { 64: [56, 200], 128: [24, 240], 192: [32, 160] }[keys as 64];
    const COUNT = linesOf(plan, channels);
    return {
      signature: backwardSignature(form),
      uses: {
        KEYS: keys,
        CHANNELS: channels,
        STAGES: stages,
        WIDTH: widthOf(plan, channels),
        FEWER: fewer!,
        MORE: more!,
        ...masking,
        ...arraysOf(dtype.name, { COUNT, PARTS: rows / 16 }),
        sumLines: sumLinesIn(COUNT),
        beginScores: beginScoresOf({ ROWS: keys, KEYS: rows, CHANNELS: channels }),
        beginSums: beginSumsOf({ KEYS: rows }),
        MASKED: masked,
        addMask: addTransposedMaskOf(dtype.name, { ROWS: rows, KEYS: keys }),
        mask: maskOf(masking),
      },
      block: threadsOf(plan),
    };
  });
}
