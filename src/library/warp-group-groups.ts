/**
 * Products of grouped rows by Hopper's warp groups: one launch whose blocks stay and compute the
 * tiles of all groups. Each warp finds the group of the block's next tile from the groups' ends, so
 * that the host needs no sizes. A tile has rows of one group; what is copied beyond the group's end
 * are rows of the next one, whose results are not written.
 *
 * Where the last round has few tiles, several blocks compute each of them: every one a part of the
 * common dimension. The one that ends last adds the sums of all parts in their order, so that the
 * bits do not depend on which it is.
 */
import { f32, i32 } from '../core/index.js';
import type { KernelDType } from '../core/index.js';
import { deviceFunction, inout, input, output } from '../kernels/index.js';
import type { DeviceFunction } from '../kernels/index.js';
import type { KernelTensor } from '../tensor/index.js';
import { beginsAt } from '../tensor/alignment.js';
import { layoutOf } from '../tensor/layout.js';
import { Tensor } from '../tensor/index.js';
import { NO_FINISH, finishArguments, finishForm, finishParameters } from './finish.js';
import { groupUses } from './groups-of-rows.js';
import type { GroupsGpu } from './groups-of-rows.js';
import { KernelFamily, pairName } from './kernel-family.js';
import type { KernelArray, Launchable } from './kernel-family.js';
import type { Work } from './operation.js';
import { COPY_ALIGNMENT, oneOf, planFor, roundOf } from './warp-group-matmul.js';
import { tileOrder } from './warp-group-product.js';
import type { TileOrder, WarpGroupPlan } from './warp-group-product.js';
import { factorBytes, tileThreads, tileUses } from './warp-group-tiles.js';
import type { Result, TileGpu } from './warp-group-tiles.js';

interface Args {
  readonly out: Result;
  /** [row][depth], and [group][column][depth] or [group][depth][column]. */
  readonly a: readonly (readonly number[])[];
  readonly b: readonly (readonly (readonly number[])[])[] & { readonly shape: readonly number[] };
  /** The row after each group's last one. */
  readonly ends: readonly number[];
  /** Sums of parts, those of an item for each block, and how many parts of an item are there. */
  readonly partial: number[];
  readonly arrived: number[];
  /** Not read. */
  readonly bias: readonly number[];
  readonly scaleA: readonly number[];
  readonly scaleB: readonly number[];
  readonly scaleOut: readonly number[];
  readonly m: number;
  readonly n: number;
  readonly k: number;
  /** 1, or 0 where all groups have the same second factor. */
  readonly apart: number;
}

interface ProductGpu extends TileGpu, GroupsGpu, TileOrder {
  /** The most parts of a tile. */
  readonly PARTS: number;
  joinParts(
    sums: KernelArray<number>,
    partial: number[],
    arrived: number[],
    item: number,
    parts: number,
    warpGroup: number,
    thread: number,
  ): boolean;
}

/**
 * Leaves a part's sums of 64 rows in memory. In the threads of the part that arrives last, the sums
 * become those of all parts, and it gives true.
 *
 * @param item the number of the part among those of all tiles
 */
const joinParts = (
  sums: KernelArray<number>,
  partial: number[],
  arrived: number[],
  item: number,
  parts: number,
  warpGroup: number,
  thread: number,
  gpu: TileGpu,
): boolean => {
  const { ROWS, COLUMNS } = gpu;
  const last = gpu.shared.i32(2);
  const place = warpGroup * (64 * COLUMNS) + thread;
  const own = item * (ROWS * COLUMNS) + place;
  gpu.unroll();
  for (let i = 0; i < COLUMNS / 2; i++) partial[own + i * 128] = sums[i]!;
  gpu.fence.device();
  gpu.block.syncThreads(warpGroup + 1, 128);
  if (thread === 0) {
    const at = (item / parts) * (ROWS / 64) + warpGroup;
    last[warpGroup] = gpu.atomicAdd(arrived, at, 1) === parts - 1 ? 1 : 0;
    gpu.fence.device();
  }
  gpu.block.syncThreads(warpGroup + 1, 128);
  const isLast = last[warpGroup] === 1;
  if (isLast) {
    gpu.unroll();
    for (let i = 0; i < COLUMNS / 2; i++) sums[i] = 0;
    for (let part = 0; part < parts; part++) {
      const from = ((item / parts) * parts + part) * (ROWS * COLUMNS) + place;
      gpu.unroll();
      for (let i = 0; i < COLUMNS / 2; i++)
        sums[i] = sums[i]! + gpu.volatileLoad(partial, from + i * 128);
    }
  }
  return isLast;
};

const products = new KernelFamily(
  'warp_group_groups',
  (
    { out, a, b, ends, partial, arrived, bias, scaleA, scaleB, scaleOut, m, n, k, apart }: Args,
    gpu: ProductGpu,
  ) => {
    const { PARTS } = gpu;
    const { ROWS, COLUMNS, STAGES, PANEL_B, COPIED, DEPTH } = gpu;
    const { GROUP, START, END, TILES_BEFORE, TILES_END } = gpu;
    const GROUPS = ROWS / 64;
    const lines = gpu.lines();
    const linesOfRight = gpu.linesOfRight();
    const full = gpu.shared.u64(STAGES);
    const empty = gpu.shared.u64(STAGES);
    if (gpu.threadIdx.x === 0) {
      for (let s = 0; s < STAGES; s++) {
        gpu.barrier.init(full, s, 1);
        gpu.barrier.init(empty, s, GROUPS);
      }
      gpu.fence.barriers();
    }
    gpu.block.sync();

    const warpGroup = gpu.warpIdx >> 2;
    const thread = gpu.threadIdx.x % 128;
    const across = (n + (COLUMNS - 1)) / COLUMNS;
    const steps = (k + (DEPTH - 1)) / DEPTH;
    const found = gpu.found();
    // Tiles before the last round, and the parts of each tile of that.
    let whole = 0x7fffffff;
    let parts = 1;
    if (PARTS > 1) {
      const all = gpu.countTiles(ends, m) * across;
      const rest = all % gpu.gridDim.x;
      whole = all - rest;
      if (rest > 0) parts = Math.max(1, Math.min(gpu.gridDim.x / rest, PARTS, steps));
    }
    if (warpGroup === GROUPS) {
      if (GROUPS > 1) gpu.group.fewerRegisters(40);
      if (gpu.warpIdx % 4 === 0) {
        let stage = 0;
        let parity = 1;
        for (let item = gpu.blockIdx.x; found[GROUP]! < ends.length; item += gpu.gridDim.x) {
          const tile = PARTS > 1 && item >= whole ? whole + (item - whole) / parts : item;
          gpu.findGroup(found, ends, m, tile / across);
          // Rows after the last group have no products.
          if (found[GROUP]! < ends.length && thread === 0) {
            const number = tile - found[TILES_BEFORE]! * across;
            const down = found[TILES_END]! - found[TILES_BEFORE]!;
            const top = found[START]! + gpu.rowOf(number, down, across) * ROWS;
            const side = gpu.columnOf(number, down, across) * COLUMNS;
            const group = found[GROUP]! * apart;
            let begin = 0;
            let end = steps;
            if (PARTS > 1 && item >= whole) {
              begin = (steps * ((item - whole) % parts)) / parts;
              end = (steps * (((item - whole) % parts) + 1)) / parts;
            }
            for (let step = begin; step < end; step++) {
              gpu.barrier.wait(empty, stage, parity);
              gpu.barrier.expect(full, stage, (ROWS + COLUMNS) * 128);
              const line = stage * (ROWS + COLUMNS);
              const at = step * DEPTH;
              gpu.tensor.load(lines, line, ROWS, a, full, stage, top, at);
              const to = line + ROWS;
              if (PANEL_B === 0)
                gpu.tensor.load(linesOfRight, to, COLUMNS, b, full, stage, group, side, at);
              else {
                gpu.unroll();
                for (let p = 0; p < COLUMNS; p += 64)
                  gpu.tensor.load(linesOfRight, to + p, 64, b, full, stage, group, at, side + p);
              }
              stage++;
              if (stage === STAGES) {
                stage = 0;
                parity ^= 1;
              }
            }
          }
        }
      }
    } else {
      if (GROUPS > 1) gpu.group.moreRegisters(232);
      const sums = gpu.sums();
      let half = 0;
      let before = 0;
      for (let item = gpu.blockIdx.x; found[GROUP]! <= ends.length; item += gpu.gridDim.x) {
        const isPart = PARTS > 1 && item >= whole && parts > 1;
        const tile = isPart ? whole + (item - whole) / parts : item;
        gpu.findGroup(found, ends, m, tile / across);
        if (found[GROUP]! <= ends.length) {
          const number = tile - found[TILES_BEFORE]! * across;
          const down = found[TILES_END]! - found[TILES_BEFORE]!;
          const top = found[START]! + gpu.rowOf(number, down, across) * ROWS + warpGroup * 64;
          const side = gpu.columnOf(number, down, across) * COLUMNS;
          let own = steps;
          if (isPart)
            own =
              (steps * (((item - whole) % parts) + 1)) / parts -
              (steps * ((item - whole) % parts)) / parts;
          if (found[GROUP]! >= ends.length) own = 0;
          gpu.sumTile(sums, lines, linesOfRight, full, empty, before, own, warpGroup, thread);
          before += own;
          let isDone = true;
          if (PARTS > 1 && isPart)
            isDone = gpu.joinParts(sums, partial, arrived, item - whole, parts, warpGroup, thread);
          if (isDone)
            half = gpu.writeTile(
              sums,
              out,
              bias,
              scaleA,
              scaleB,
              scaleOut,
              found[END]!,
              n,
              0,
              top,
              side,
              warpGroup,
              thread,
              half,
            );
        }
      }
      if (COPIED && thread === 0) gpu.tensor.waitRead(0);
    }
  },
);

const FINISH = finishForm(NO_FINISH);

/** What a kernel is specialised for. */
interface Form {
  readonly plan: WarpGroupPlan;
  readonly dtype: KernelDType;
  readonly right: KernelDType;
  readonly out: KernelDType;
  readonly rightByDepth: boolean;
  readonly copied: boolean;
  /** The dtype of the groups' ends. */
  readonly ends: KernelDType;
  /** The most parts of a tile of the last round. */
  readonly parts: number;
}

/** Gives the kernel for a form. */
export function groupedWarpGroupProduct(form: Form): Launchable {
  const { plan, dtype, right, out, rightByDepth, copied, ends, parts } = form;
  const { rows, columns, stages, group } = plan;
  const key =
    `${pairName(dtype, right)}_${out.name}_${rows}x${columns}_${stages}_${group}_` +
    `${rightByDepth ? 'k' : 'n'}${copied ? '' : '_plain'}_${ends.name}` +
    (parts > 1 ? `_${parts}` : '');
  const tile = tileUses({ ...form, ...plan, leftByDepth: true, clipped: true, finish: FINISH });
  return products.member(key, () => ({
    signature: {
      out: output(out, 3),
      a: input(dtype, 2),
      b: input(right, 3),
      ends: input(ends),
      ...(parts > 1
        ? { partial: inout(dtype.kind === 'float' ? f32 : i32), arrived: inout(i32) }
        : { partial: input(ends), arrived: input(ends) }),
      ...finishParameters(FINISH, dtype),
      ...Object.fromEntries(['m', 'n', 'k', 'apart'].map((name) => [name, i32])),
    },
    uses: {
      ...tile,
      PARTS: parts,
      joinParts: deviceFunction(joinParts as never, { uses: tile as never }) as DeviceFunction,
      ...tileOrder(group),
      ...groupUses(rows),
    },
    block: tileThreads(plan),
  }));
}

/** a [m, k] and b [groups, k, n], whose runs tensor copies take; those of a are along k. */
export interface GroupedProduct {
  readonly out: KernelTensor;
  readonly a: KernelTensor;
  readonly b: KernelTensor;
  readonly ends: KernelTensor;
  readonly rightByDepth: boolean;
}

/** The most parts of a tile of the last round. */
const PARTS = 4;
/**
 * The time of a round, in µs, from which on its tiles may be computed in parts. Sums of parts are
 * written and read in about 5 µs, counters are cleared in 2.
 */
const LONG = 25;

/** Queues a product of grouped rows, on a device for which `isByWarpGroups` holds. */
export function multiplyGroupsByWarpGroups(
  work: Work,
  { out, a, b, ends, rightByDepth }: GroupedProduct,
  given?: WarpGroupPlan,
): void {
  const [m, n] = out.shape as readonly [number, number];
  const k = a.shape[1]!;
  const groups = ends.size;
  const { multiprocessorCount } = out.device.properties;
  // The sizes of groups are not known here: tiles are chosen for groups of the same size.
  const plan =
    given ?? planFor(Math.ceil(m / groups), n, k, groups, multiprocessorCount, a.dtype, [1]);
  const most = (Math.ceil(m / plan.rows) + groups) * Math.ceil(n / plan.columns);
  const isInParts = given === undefined ? roundOf(plan, k, a.dtype) >= LONG : given.splits > 1;
  const launch = groupedWarpGroupProduct({
    plan,
    dtype: a.dtype,
    right: b.dtype,
    out: out.dtype,
    rightByDepth,
    copied:
      out.dtype.bytes > 1 &&
      (n * out.dtype.bytes) % COPY_ALIGNMENT === 0 &&
      beginsAt(out, COPY_ALIGNMENT),
    ends: ends.dtype,
    parts: isInParts ? PARTS : 1,
  });
  const grid = Math.min(multiprocessorCount, most);
  const states = isInParts
    ? {
        partial: work.temporary(a.dtype.kind === 'float' ? f32 : i32, [
          grid * plan.rows * plan.columns,
        ]),
        arrived: work.temporary(i32, [grid * (plan.rows / 64)]),
      }
    : // Not read.
      { partial: ends, arrived: ends };
  if (isInParts) work.add((states.arrived as Tensor<'i32'>).fill(0));
  const apart = groups > 1 && b.layout.strides[0] !== 0;
  const { shape, strides, offset } = b.layout;
  const [, depth, columns] = shape as readonly [number, number, number];
  const [stride, along, onwards] = strides as readonly [number, number, number];
  const count = apart ? groups : 1;
  const right = rightByDepth
    ? layoutOf([count, columns, depth], [stride, onwards, along], offset)
    : layoutOf([count, depth, columns], [stride, along, onwards], offset);
  work.add(
    launch(
      {
        out: out.reshape([1, m, n] as never),
        a,
        b: new Tensor(b.buffer, right, false),
        ends,
        ...states,
        ...finishArguments(NO_FINISH, oneOf(a)),
        ...{ m, n, k, apart: apart ? 1 : 0 },
      },
      { grid, sharedBytes: factorBytes(plan) },
    ),
  );
}
