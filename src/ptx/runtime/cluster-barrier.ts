// The barrier of a cluster's blocks. Each thread that arrives sets a mark; when all threads that
// have not exited have one, in every block, the marks are cleared and the threads that wait without
// one continue. Blocks of a cluster run in turn on one thread, and the first one that finds the
// barrier complete clears the marks of all.

import { CTX } from '../context.js';
import { CLUSTER_BARRIER, CLUSTER_STATE, MAIL, SCRATCH, STATE } from '../emit/frame-layout.js';
import { MAILBOXES, STATES } from './scheduler.js';

/** Whether a waiting thread waits at the cluster's barrier. */
const AT_CLUSTER_BARRIER =
  `(i32.eq (i32.load offset=${MAIL.mask} (i32.add $mail (i32.mul $thread ${MAIL.bytes}))) ` +
  `${CLUSTER_BARRIER})`;

/** `completed` runs when the barrier is complete. */
const clusterFunctions = (completed: string): string => `
;; The address of the threads' marks.
(func $cluster_marks (param $ctx i32) (result i32)
  (i32.add ${MAILBOXES} (i32.mul (i32.load offset=${CTX.threads} $ctx) ${MAIL.bytes})))

;; barrier.cluster.arrive
(func $cluster_arrive (param $ctx $thread i32)
  (i32.store8 (i32.add (call $cluster_marks $ctx) $thread) 1))

;; Releases every thread that waits at the cluster's barrier and has no mark: 1 if there were any.
(func $cluster_release (param $ctx i32) (result i32)
  (local $threads $states $mail $marks $thread $state $released i32)
  (local.set $threads (i32.load offset=${CTX.threads} $ctx))
  (local.set $states ${STATES})
  (local.set $mail ${MAILBOXES})
  (local.set $marks (call $cluster_marks $ctx))
  (block $done (loop $each
    (br_if $done (i32.ge_u $thread $threads))
    (local.set $state (i32.load (i32.add $states (i32.shl $thread 2))))
    (if (i32.and (i32.lt_s $state 0) (i32.lt_u $state ${STATE.warp})) (then
      (if (i32.and (i32.eqz (i32.load8_u (i32.add $marks $thread)))
          ${AT_CLUSTER_BARRIER}) (then
        (i32.store (i32.add $states (i32.shl $thread 2)) (i32.and $state ${STATE.entryMask}))
        (local.set $released 1)))))
    (local.set $thread (i32.add $thread 1))
    (br $each)))
  $released)

;; Like resolve_block, after recording how far the block is at the cluster's barrier, which may
;; complete it; 3: all live threads wait, and other blocks of the cluster may release some.
(func $resolve_cluster (param $ctx i32) (result i32)
  (local $scratch $threads $states $mail $marks $thread $state $live $missing $ready $here
    $elsewhere i32)
  (local.set $scratch (i32.load offset=${CTX.scratch} $ctx))
  (local.set $threads (i32.load offset=${CTX.threads} $ctx))
  (local.set $states ${STATES})
  (local.set $mail ${MAILBOXES})
  (local.set $marks (call $cluster_marks $ctx))
  (block $scanned (loop $scan
    (br_if $scanned (i32.ge_u $thread $threads))
    (local.set $state (i32.load (i32.add $states (i32.shl $thread 2))))
    (if (i32.ne $state ${STATE.exited}) (then
      (local.set $live 1)
      (if (i32.eqz (i32.load8_u (i32.add $marks $thread))) (then (local.set $missing 1)))
      (if (i32.ge_s $state 0) (then (local.set $ready 1))
        (else (if (i32.and (i32.lt_u $state ${STATE.warp})
            ${AT_CLUSTER_BARRIER})
          (then (local.set $here 1))
          (else (local.set $elsewhere 1)))))))
    (local.set $thread (i32.add $thread 1))
    (br $scan)))
  (i32.store offset=${SCRATCH.cluster} $scratch
    (select ${CLUSTER_STATE.open} (select ${CLUSTER_STATE.arrived} ${CLUSTER_STATE.ended} $live)
      $missing))
  (if (i32.eqz $missing) (then (call $cluster_complete $ctx)))
  (if $here (then (if (call $cluster_release $ctx) (then (return 1)))))
  (if $elsewhere
    (then
      (local.set $state (call $resolve_block $ctx))
      (if (i32.ne $state 2) (then (return $state))))
    (else
      (if $ready (then (return 1)))
      (if (i32.eqz $live) (then (return 0)))))
  (select 3 2 (i32.eq (i32.load offset=${SCRATCH.cluster} $scratch) ${CLUSTER_STATE.arrived})))

;; Clears the marks of all blocks if no block has a thread without one.
(func $cluster_complete (param $ctx i32) (local $count $stride $first $i $at $end $toMarks i32)
  (local.set $count (call $cluster_blocks $ctx))
  (local.set $stride (i32.load offset=${CTX.clusterStride} $ctx))
  (local.set $first (i32.sub (i32.load offset=${CTX.scratch} $ctx)
      (i32.mul (i32.load offset=${CTX.clusterRank} $ctx) $stride)))
  (local.set $toMarks (i32.sub (call $cluster_marks $ctx) (i32.load offset=${CTX.scratch} $ctx)))
  (block $looked (loop $look
    (br_if $looked (i32.ge_u $i $count))
    (if (i32.eqz (i32.load offset=${SCRATCH.cluster} (i32.add $first (i32.mul $i $stride))))
      (then (return)))
    (local.set $i (i32.add $i 1))
    (br $look)))
  (local.set $i 0)
  (block $cleared (loop $clear
    (br_if $cleared (i32.ge_u $i $count))
    (local.set $at (i32.add $first (i32.mul $i $stride)))
    (if (i32.eq (i32.load offset=${SCRATCH.cluster} $at) ${CLUSTER_STATE.arrived})
      (then (i32.store offset=${SCRATCH.cluster} $at ${CLUSTER_STATE.open})))
    (local.set $at (i32.add $at $toMarks))
    (local.set $end (i32.add $at (i32.load offset=${CTX.threads} $ctx)))
    (block $filled (loop $fill
      (br_if $filled (i32.ge_u $at $end))
      (v128.store $at (i32x4.splat 0))
      (local.set $at (i32.add $at 16))
      (br $fill)))
    (local.set $i (i32.add $i 1))
    (br $clear)))
  ${completed})
`;

export const CLUSTER_BARRIER_FUNCTIONS = clusterFunctions('');
/** The same in code compiled with `check`. */
export const CHECKED_CLUSTER_BARRIER_FUNCTIONS = clusterFunctions('(call $check_cluster $ctx)');
