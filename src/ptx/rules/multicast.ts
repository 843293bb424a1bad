// Copies to several blocks of a cluster at once.

import type { Arg } from '../analysis/program.js';
import { ACCESS, ACCESS_SPACES } from '../check.js';
import { ARRIVES, emitTouch } from '../emit/check.js';
import type { Emitter } from '../emit/emitter.js';
import { boundedPlace } from '../emit/memory-access.js';
import { scalarType } from '../scalar-types.js';
import { mapToRank } from './cluster.js';

const B16 = scalarType('b16');

/**
 * Calls `copy` in a loop over the blocks whose bit is set in the mask. The mbarrier at the same
 * offset in each of them counts the bytes, whose number is in the local `bytes` after the copy.
 */
export function toSelectedBlocks(
  e: Emitter,
  maskOperand: Arg,
  barrierOperand: Arg,
  bytes: number,
  copy: (pushRank: () => void) => void,
): void {
  const { code } = e;
  const mask = e.temp('i32');
  const rank = e.temp('i32');
  const barrier = e.temp('i64');
  const barrierThere = e.temp('i32');
  const pushRank = (): void => {
    code.get(rank);
  };
  e.push(maskOperand, B16);
  code.i32(0xffff).op('i32.and').set(mask).i32(0).set(rank);
  // An mbarrier in the cluster's shared memory has a counterpart in every block, and each counts
  // its own bytes.
  const own = boundedPlace(e, barrierOperand, 8, 'cluster');
  code
    .get(own.local)
    .i32(own.offset)
    .op('i32.add')
    .op('i64.extend_i32_u')
    .set(barrier)
    .op('block')
    .byte(0x40)
    .op('loop')
    .byte(0x40);
  e.nest(() => {
    e.nest(() => {
      // Bits beyond the cluster's blocks select no block.
      code.get(rank).get(e.ctx);
      e.call('cluster_blocks');
      code.op('i32.ge_u').op('br_if').u32(1);
      code.get(mask).get(rank).op('i32.shr_u').i32(1).op('i32.and');
      e.when(() => {
        copy(pushRank);
        code.get(barrier);
        mapToRank(e, pushRank);
        code.op('i32.wrap_i64').set(barrierThere);
        if (e.around.check)
          emitTouch(
            e,
            { local: barrierThere, offset: 0 },
            8,
            ARRIVES | (ACCESS_SPACES.indexOf('cluster') << ACCESS.spaceShift),
          );
        code.get(barrierThere).i32(0).get(bytes).op('i32.sub');
        e.call('mbarrier_transaction');
      });
      code.get(rank).i32(1).op('i32.add').set(rank).op('br').u32(0);
    });
  });
  code.op('end').op('end');
}
