// Blocks that go through memory with the whole grid's stride: the blocks between them read what
// lies between two of their places. One after the other they access each page once for each block;
// side by side, one pass of each in turn, they go through memory together, as they would on a GPU.
// In C, 64 blocks of 256 threads over 64 MB: 4.9 ms one after the other, 2.8 ms by 16, 2.5 ms all
// at once; a plain loop takes 2.4 ms.

import type { Block } from '../analysis/blocks.js';
import { instructionsOf } from '../analysis/liveness.js';
import { CTX, STATUS, TEAM } from '../context.js';
import { probeWhereZero } from '../runtime/scheduler.js';
import { isPure } from './spread.js';

const GRID_SIZE = /^nctaid/;

/** Numbers of the registers whose values depend on the number of blocks. */
export function registersOfGridSize(
  blocks: readonly Block[],
  order: readonly number[],
): ReadonlySet<number> {
  const found = new Set<number>();
  for (let grows = true; grows;) {
    grows = false;
    for (const index of order) {
      for (const inst of instructionsOf(blocks[index]!)) {
        if (!isPure(inst)) continue;
        if (
          !inst.uses.some(({ id }) => found.has(id)) &&
          !inst.args.some((arg) => arg.kind === 'special' && GRID_SIZE.test(arg.name))
        )
          continue;
        for (const { id } of inst.defs) {
          if (found.has(id)) continue;
          found.add(id);
          grows = true;
        }
      }
    }
  }
  return found;
}

/**
 * Runs the blocks of a team by a body that runs one of them to its end: a call gives each a pass in
 * turn, which runs a loop `burst` times for each of its units, until the fuel is used up. Thread
 * states are written in the last round only.
 */
export function sideBySideText(width: number, burst: number): string {
  return `
(func $side_by_side (param $head $fuel i32) (result i32)
  (local $first $stride $blocks $all $turn $cost $rank $block $status i32)
  ${probeWhereZero('$head')}
  (local.set $first (i32.add $head (i32.load offset=${TEAM.first} $head)))
  (local.set $stride (i32.load offset=${CTX.clusterStride} $head))
  (local.set $blocks (i32.load offset=${TEAM.blocks} $head))
  (local.set $all (i32.shr_u -1 (i32.sub 32 $blocks)))
  (local.set $turn (i32.mul ${burst + 1} (i32.shr_u
        (i32.add ${width - 1} (i32.load offset=${CTX.threads} $first)) ${Math.log2(width)})))
  (local.set $cost (i32.mul $turn $blocks))
  (loop $rounds
    (local.set $fuel (i32.sub $fuel $cost))
    (global.set $quiet (i32.gt_s $fuel 0))
    (local.set $rank 0)
    (loop $ranks
      (if (i32.eqz (i32.and 1 (i32.shr_u (i32.load offset=${TEAM.ended} $head) $rank))) (then
        (local.set $block (i32.add $first (i32.mul $rank $stride)))
        (i32.store offset=${CTX.memoryTop} $block (i32.load offset=${CTX.memoryTop} $head))
        (i64.store offset=${CTX.clockLo} $block (i64.load offset=${CTX.clockLo} $head))
        (i32.store offset=${TEAM.faulty} $head $block)
        (local.set $status (call $body $block $turn))
        (i64.store offset=${CTX.clockLo} $head (i64.load offset=${CTX.clockLo} $block))
        (if (i32.ne $status ${STATUS.yielded}) (then
          (if $status (then
            (global.set $quiet 0)
            (return $status)))
          (i32.store offset=${TEAM.ended} $head
            (i32.or (i32.load offset=${TEAM.ended} $head) (i32.shl 1 $rank)))
          (if (i32.eq $all (i32.load offset=${TEAM.ended} $head)) (then
            (global.set $quiet 0)
            (return ${STATUS.done})))))))
      (local.set $rank (i32.add $rank 1))
      (br_if $ranks (i32.lt_u $rank $blocks)))
    (br_if $rounds (i32.gt_s $fuel 0)))
  (return ${STATUS.yielded}))
`;
}
