// Records a fault in the context block. Only the first fault of a block is recorded.

import { CTX, FAULT, NULL_PAGE } from '../context.js';

export const FAULT_FUNCTIONS = `
(func $record_fault (param $ctx $kind $thread $line i32) (param $address i64)
  (if (i32.eqz (i32.load offset=${CTX.faultKind} $ctx)) (then
    (i32.store offset=${CTX.faultKind} $ctx $kind)
    (i64.store offset=${CTX.faultAddress} $ctx $address)
    (i32.store offset=${CTX.faultThread} $ctx $thread)
    (i32.store offset=${CTX.faultLine} $ctx $line))))
(func $fault (param $ctx $kind $thread $line i32) (param $address i64)
  (call $record_fault $ctx $kind $thread $line $address)
  (global.set $unwind 2))
;; An assertion ends only its thread: other threads of the grid may fail, too, and each is reported.
(func $fault_assert (param $ctx $thread $line i32)
  (call $record_fault $ctx ${FAULT.assert} $thread $line 0L))

(func $fault_trap (param $ctx $thread $line i32)
  (call $fault $ctx ${FAULT.trap} $thread $line 0L))
(func $fault_brkpt (param $ctx $thread $line i32)
  (call $fault $ctx ${FAULT.breakpoint} $thread $line 0L))

;; An access of \`size\` bytes was refused: an address outside memory is reported before a
;; misaligned one.
(func $fault_memory (param $ctx $thread i32) (param $address i64) (param $size $line i32)
  (local $top i64)
  (local.set $top (i64.extend_i32_u (i32.load offset=${CTX.memoryTop} $ctx)))
  (if (i64.eqz $top) (then (local.set $top 0x100000000L)))
  (call $fault $ctx
    (select ${FAULT.outOfBounds} ${FAULT.misaligned}
      (i32.or
        (i64.gt_u (i64.sub $address ${NULL_PAGE}L)
          (i64.sub (i64.sub $top ${NULL_PAGE}L) (i64.extend_i32_u $size)))
        (i64.eqz (i64.and $address (i64.extend_i32_u (i32.sub $size 1))))))
    $thread $line $address))

;; 1, with a fault recorded, if an access of \`bytes\` bytes leaves [low, high) or is not aligned.
(func $check_range (param $ctx $thread i32) (param $address i64) (param $bytes $align i32)
  (param $low $high i64) (param $line i32) (result i32)
  (if (i32.or (i64.lt_u $address $low) (i64.gt_u
        (i64.add $address (i64.extend_i32_u $bytes)) $high))
    (then (call $fault $ctx ${FAULT.outOfBounds} $thread $line $address) (return 1)))
  (if (i64.eqz (i64.and $address (i64.extend_i32_u (i32.sub $align 1)))) (then (return 0)))
  (call $fault $ctx ${FAULT.misaligned} $thread $line $address)
  1)
`;
