// Completes warp operations: shuffles, votes, matches, reductions. Each waiting thread has written
// its operands to its mailbox; a group is complete when every thread in its mask that has not
// exited waits at the same operation, with the same mask. An `activemask` names no threads: it
// completes when nothing else does, since other threads may be on their way to it out of a loop,
// and a GPU's threads reconverge after one.

import { WARP_OPERATIONS as OP } from '../analysis/cuts.js';
import { MAIL, SCRATCH, STATE } from '../emit/frame-layout.js';
import { CTX } from '../context.js';
import { MAILBOXES } from './scheduler.js';

const box = (lane: string): string => `(i32.add $mail (i32.shl ${lane} 5))`;
const state = (lane: string): string => `(i32.add $states (i32.shl ${lane} 2))`;

/** A loop over the lanes of $group, lowest first, with the lane in $lane. */
const forGroup = (label: string, body: string): string => `
  (local.set $rest $group)
  (block $${label}_done (loop $${label}
    (br_if $${label}_done (i32.eqz $rest))
    (local.set $lane (i32.ctz $rest))
    (local.set $rest (i32.and $rest (i32.sub $rest 1)))
    (local.set $box ${box('$lane')})
    ${body}
    (br $${label})))`;

/**
 * Makes the function that completes each operation of a warp at which all its threads have arrived.
 * The function `apply` executes one operation. The code `gate` runs before it, and passes over an
 * operation that still waits for other warps.
 */
const resolver = (name: string, apply: string, gate = ''): string => `
;; Returns 1 if some thread of the warp can continue. \`first\` and \`end\` are linear thread
;; indices. \`any\`: masks of one operation may differ. \`last\`: activemask completes whatever else
;; does.
(func $${name} (param $ctx $first $end $any $last i32) (result i32)
  (local $states $mail $lane $count $s $live $waiting $todo $op $mask $group $rest $box $progress
    $same $asking i32)
  (local.set $states (i32.add (i32.add (i32.load offset=${CTX.scratch} $ctx) ${SCRATCH.states})
      (i32.shl $first 2)))
  (local.set $mail (i32.add ${MAILBOXES} (i32.shl $first 5)))
  (local.set $count (i32.sub $end $first))
  (block $scanned (loop $scan
    (br_if $scanned (i32.ge_u $lane $count))
    (local.set $s (i32.load ${state('$lane')}))
    (if (i32.ne $s ${STATE.exited}) (then
      (local.set $live (i32.or $live (i32.shl 1 $lane)))
      (if (i32.and (i32.lt_s $s 0) (i32.ge_u $s ${STATE.warp}))
        (then (local.set $waiting (i32.or $waiting (i32.shl 1 $lane)))))))
    (local.set $lane (i32.add $lane 1))
    (br $scan)))
  (local.set $todo $waiting)
  (block $finished (loop $groups
    ;; The second round, if some thread waits for it, is for activemask.
    (if (i32.eqz $todo) (then
      (br_if $finished (i32.or (i32.ne $asking 1) (i32.and $progress (i32.eqz $last))))
      (local.set $asking 2)
      (local.set $todo $waiting)))
    (local.set $lane (i32.ctz $todo))
    (local.set $todo (i32.and $todo (i32.sub $todo 1)))
    (local.set $box ${box('$lane')})
    (local.set $op (i32.load offset=${MAIL.operation} $box))
    (local.set $mask (i32.load offset=${MAIL.mask} $box))
    (if (i32.eq (i32.and $op 255) ${OP['activemask']!})
      (then
        (if (i32.ne $asking 2) (then (local.set $asking 1) (br $groups)))
        (local.set $group (i32.or (i32.shl 1 $lane) $todo)))
      (else
        (br_if $groups (i32.eq $asking 2))
        ;; A thread is in its own group even if its mask leaves it out.
        (local.set $group (i32.or (i32.and $mask $live) (i32.shl 1 $lane)))
        (br_if $groups (i32.and $group (i32.xor $waiting -1)))))
    ;; The threads of the group that wait at the same operation, of the same group: another
    ;; operation that overlaps may come first.
    (local.set $same 0)
    ${forGroup(
      'compare',
      `
      (if (i32.and
          (i32.eq (i32.load offset=${MAIL.operation} $box) $op)
          (i32.or $any (i32.or (i32.eq (i32.load offset=${MAIL.mask} $box) $mask)
              (i32.eq (i32.and $op 255) ${OP['activemask']!}))))
        (then (local.set $same (i32.or $same (i32.shl 1 $lane)))))`,
    )}
    (if (i32.eq (i32.and $op 255) ${OP['activemask']!})
      (then (local.set $group $same))
      (else (br_if $groups (i32.ne $group $same))))
    ${gate}
    (call $${apply} $mail $group (i32.and $op 255))
    ${forGroup(
      'wake',
      `
      (i32.store ${state('$lane')} (i32.and (i32.load ${state('$lane')}) ${STATE.entryMask}))`,
    )}
    (local.set $todo (i32.and $todo (i32.xor $group -1)))
    (local.set $waiting (i32.and $waiting (i32.xor $group -1)))
    (local.set $progress 1)
    (br $groups)))
  $progress)`;

export const WARP_FUNCTIONS = `
${resolver('resolve_warp', 'apply_warp')}
;; Kernels without matrices do not contain that part.
${resolver(
  'resolve_matrix_warp',
  'apply_matrix_warp',
  `(if (i32.eq (i32.and $op 255) ${OP['wgmma']!}) (then
      (br_if $groups (i32.eqz
        (call $group_arrived $ctx ${MAILBOXES} $first (i32.ctz $group))))))`,
)}

(func $apply_warp (param $mail $group $op i32)
  (local $rest $lane $box $value $sum $minS $maxS $minU $maxU $and $or $xor $ballot $count
    $leader i32)
  (if (i32.le_u $op ${OP['shfl.idx']!}) (then (call $apply_shuffle $mail $group $op) (return)))
  (if (i32.or (i32.eq $op ${OP['match.any']!}) (i32.eq $op ${OP['match.all']!}))
    (then (call $apply_match $mail $group $op) (return)))
  (local.set $minS 0x7fffffff) (local.set $maxS 0x80000000) (local.set $minU -1) (local.set $and -1)
  ${forGroup(
    'gather',
    `
    (local.set $value (i32.load offset=${MAIL.value} $box))
    (local.set $sum (i32.add $sum $value))
    (local.set $minS (select $value $minS (i32.lt_s $value $minS)))
    (local.set $maxS (select $value $maxS (i32.gt_s $value $maxS)))
    (local.set $minU (select $value $minU (i32.lt_u $value $minU)))
    (local.set $maxU (select $value $maxU (i32.gt_u $value $maxU)))
    (local.set $and (i32.and $and $value))
    (local.set $or (i32.or $or $value))
    (local.set $xor (i32.xor $xor $value))
    (if (i32.and $value 1) (then (local.set $ballot (i32.or $ballot (i32.shl 1 $lane)))))`,
  )}
  (local.set $leader (i32.ctz $group))
  (block $write
    ${[
      ['vote.all', '(i32.eq $ballot $group)'],
      ['vote.any', '(i32.ne $ballot 0)'],
      ['vote.uni', '(i32.or (i32.eqz $ballot) (i32.eq $ballot $group))'],
      ['vote.ballot', '$ballot'],
      ['redux.add', '$sum'],
      ['redux.min.s32', '$minS'],
      ['redux.max.s32', '$maxS'],
      ['redux.min.u32', '$minU'],
      ['redux.max.u32', '$maxU'],
      ['redux.and', '$and'],
      ['redux.or', '$or'],
      ['redux.xor', '$xor'],
      ['activemask', '$group'],
      ['elect', '$leader'],
    ]
      .map(
        ([name, result]) =>
          `(if (i32.eq $op ${OP[name!]!}) (then (local.set $value ${result!}) (br $write)))`,
      )
      .join('\n    ')})
  ${forGroup(
    'scatter',
    `
    (i32.store offset=${MAIL.result} $box $value)
    (i32.store offset=${MAIL.result + 4} $box (i32.eq $lane $leader))`,
  )})

;; PTX ISA, shfl.sync: maxLane and minLane come from the segment mask in bits 8 to 12 of c and its
;; clamp.
(func $apply_shuffle (param $mail $group $op i32)
  (local $rest $lane $box $b $c $max $source $ok $segment i32)
  ${forGroup(
    'each',
    `
    (local.set $b (i32.and (i32.load offset=${MAIL.lane} $box) 31))
    (local.set $c (i32.load offset=${MAIL.clamp} $box))
    (local.set $segment (i32.and (i32.shr_u $c 8) 31))
    (local.set $max (i32.or (i32.and $lane $segment)
        (i32.and (i32.and $c 31) (i32.xor $segment -1))))
    (block $chosen
      (if (i32.eq $op ${OP['shfl.up']!}) (then
        (local.set $source (i32.sub $lane $b))
        (local.set $ok (i32.ge_s $source $max))
        (br $chosen)))
      (if (i32.eq $op ${OP['shfl.down']!}) (then
        (local.set $source (i32.add $lane $b))
        (local.set $ok (i32.le_s $source $max))
        (br $chosen)))
      (if (i32.eq $op ${OP['shfl.bfly']!}) (then
        (local.set $source (i32.xor $lane $b))
        (local.set $ok (i32.le_s $source $max))
        (br $chosen)))
      (local.set $source (i32.or (i32.and $lane $segment) (i32.and $b (i32.xor $segment -1))))
      (local.set $ok (i32.le_s $source $max)))
    (if (i32.eqz $ok) (then (local.set $source $lane)))
    ;; A read from a lane without a thread is undefined: the thread reads its own value.
    (if (i32.eqz (i32.and (i32.shr_u $group $source) 1)) (then (local.set $source $lane)))
    (i32.store offset=${MAIL.result} $box (i32.load offset=${MAIL.value} ${box('$source')}))
    (i32.store offset=${MAIL.result + 4} $box $ok)`,
  )})

(func $apply_match (param $mail $group $op i32) (local $rest $lane $box $other $others $same i32)
  (local $value i64)
  ${forGroup(
    'each',
    `
    (local.set $value (i64.load offset=${MAIL.value} $box))
    (local.set $same 0)
    (local.set $others $group)
    (block $compared (loop $compare
      (br_if $compared (i32.eqz $others))
      (local.set $other (i32.ctz $others))
      (local.set $others (i32.and $others (i32.sub $others 1)))
      (if (i64.eq (i64.load offset=${MAIL.value} ${box('$other')}) $value)
        (then (local.set $same (i32.or $same (i32.shl 1 $other)))))
      (br $compare)))
    (if (i32.eq $op ${OP['match.all']!}) (then
      (local.set $same (select $group 0 (i32.eq $same $group)))))
    (i32.store offset=${MAIL.result} $box $same)
    (i32.store offset=${MAIL.result + 4} $box (i32.ne $same 0))`,
  )})
`;
