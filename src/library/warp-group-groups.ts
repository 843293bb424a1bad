/**
 * Products of grouped rows by Hopper's warp groups: one launch whose blocks stay and compute the
 * tiles of all groups. Each warp finds the group of the block's next tile from the groups' ends, so
 * that the host needs no sizes. A tile has rows of one group; what is copied beyond the group's end
 * are rows of the next one, whose results are not written.
 */
import { i32 } from '../core/index.js';
import type { KernelDType } from '../core/index.js';
import { input, output } from '../kernels/index.js';
import type { KernelTensor } from '../tensor/index.js';
import { beginsAt } from '../tensor/alignment.js';
import { layoutOf } from '../tensor/layout.js';
import { Tensor } from '../tensor/index.js';
import { NO_FINISH, finishArguments, finishForm, finishParameters } from './finish.js';
import { groupUses } from './groups-of-rows.js';
import type { GroupsGpu } from './groups-of-rows.js';
import { KernelFamily, pairName } from './kernel-family.js';
import type { Launchable } from './kernel-family.js';
import type { Work } from './operation.js';
import { COPY_ALIGNMENT, oneOf, planFor } from './warp-group-matmul.js';
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

type ProductGpu = TileGpu & GroupsGpu & TileOrder;

const products = new KernelFamily(
  'warp_group_groups',
  ({ out, a, b, ends, bias, scaleA, scaleB, scaleOut, m, n, k, apart }: Args, gpu: ProductGpu) => {
    const { ROWS, COLUMNS, STAGES, PANEL_B, COPIED, DEPTH } = gpu;
    const { GROUP, START, END, TILES_BEFORE, TILES_END } = gpu;
    const GROUPS = ROWS / 64;
    const lines = gpu.lines();
    const linesOfRight = gpu.linesOfRight();
    const full = gpu.shared.u64(STAGES);
    const empty = gpu.shared.u64(STAGES);
    gpu.beginStages(full, empty, 1);

    const warpGroup = gpu.warpIdx >> 2;
    const thread = gpu.threadIdx.x % 128;
    const across = (n + (COLUMNS - 1)) / COLUMNS;
    const steps = (k + (DEPTH - 1)) / DEPTH;
    const found = gpu.found();
    if (warpGroup === GROUPS) {
      if (GROUPS > 1) gpu.group.fewerRegisters(40);
      if (gpu.warpIdx % 4 === 0) {
        let stage = 0;
        let parity = 1;
        for (let tile = gpu.blockIdx.x; found[GROUP]! < ends.length; tile += gpu.gridDim.x) {
          gpu.findGroup(found, ends, m, tile / across);
          // Rows after the last group have no products.
          if (found[GROUP]! < ends.length && thread === 0) {
            const number = tile - found[TILES_BEFORE]! * across;
            const down = found[TILES_END]! - found[TILES_BEFORE]!;
            const top = found[START]! + gpu.rowOf(number, down, across) * ROWS;
            const side = gpu.columnOf(number, down, across) * COLUMNS;
            const group = found[GROUP]! * apart;
            for (let step = 0; step < steps; step++) {
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
      for (let tile = gpu.blockIdx.x; found[GROUP]! <= ends.length; tile += gpu.gridDim.x) {
        gpu.findGroup(found, ends, m, tile / across);
        if (found[GROUP]! <= ends.length) {
          const number = tile - found[TILES_BEFORE]! * across;
          const down = found[TILES_END]! - found[TILES_BEFORE]!;
          const top = found[START]! + gpu.rowOf(number, down, across) * ROWS + warpGroup * 64;
          const side = gpu.columnOf(number, down, across) * COLUMNS;
          const own = found[GROUP]! < ends.length ? steps : 0;
          gpu.sumTile(sums, lines, linesOfRight, full, empty, before, own, warpGroup, thread);
          before += own;
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
}

/** Gives the kernel for a form. */
export function groupedWarpGroupProduct(form: Form): Launchable {
  const { plan, dtype, right, out, rightByDepth, copied, ends } = form;
  const { rows, columns, stages, group } = plan;
  const key =
    `${pairName(dtype, right)}_${out.name}_${rows}x${columns}_${stages}_${group}_` +
    `${rightByDepth ? 'k' : 'n'}${copied ? '' : '_plain'}_${ends.name}`;
  return products.member(key, () => ({
    signature: {
      out: output(out, 3),
      a: input(dtype, 2),
      b: input(right, 3),
      ends: input(ends),
      ...finishParameters(FINISH, dtype),
      ...Object.fromEntries(['m', 'n', 'k', 'apart'].map((name) => [name, i32])),
    },
    uses: {
      ...tileUses({ ...form, ...plan, leftByDepth: true, clipped: true, finish: FINISH }),
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
  });
  const most = (Math.ceil(m / plan.rows) + groups) * Math.ceil(n / plan.columns);
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
        ...finishArguments(NO_FINISH, oneOf(a)),
        ...{ m, n, k, apart: apart ? 1 : 0 },
      },
      { grid: Math.min(multiprocessorCount, most), sharedBytes: factorBytes(plan) },
    ),
  );
}
