// Runs the threads of one block until all have ended: each thread to its next cut, then the waiting
// ones are released, and so on. It is written once for each kernel, around the kernel's `body(ctx,
// from, to)`.

import { CTX, FAULT, STATUS } from '../context.js';
import { BARRIER_REDUCTION } from '../emit/arrivals.js';
import { CLUSTER_BARRIER, MAIL, SCRATCH, STATE } from '../emit/frame-layout.js';

/**
 * The turns of a warp in a pass while its operations complete. After them the other warps get their
 * turn: the warp may wait for them in a loop of votes. In the same way, the other threads of a warp
 * cannot delay a thread at `activemask` without end.
 */
const WARP_TURNS = 64;

export interface SchedulerNeeds {
  warps: boolean;
  /** Some of the warp operations are on matrices. */
  matrices: boolean;
  /** `plain`: every barrier is barrier 0 for the whole block, and no mail is written. */
  barriers: 'none' | 'plain' | 'general';
  /** Threads wait at the cluster's barrier. */
  cluster: boolean;
  /** Warps take their turns in an order that is drawn for each pass. */
  ordered: boolean;
  /** The code reports when threads may have been released. */
  check: boolean;
  /** See `probeWhereZero`. */
  probed: boolean;
}

/**
 * The layout of a body's frame on the stack depends on the frame of the function that calls it. To
 * measure it, the caller calls the exported function with 0 in place of a block, which calls
 * `env.probe` in place of the body.
 */
export const probeWhereZero = (block: string): string =>
  `(if (i32.eqz ${block}) (then (return (call $probe $fuel))))`;
export const PROBE_SIGNATURE = { params: ['i32'], results: ['i32'] } as const;

/** The exported function of a body that runs one block after the other by itself. */
export const PROBED_BODY = `
(func $kernel (param $ctx $fuel i32) (result i32)
  ${probeWhereZero('$ctx')}
  (call $body $ctx $fuel))
`;

/** The exported function of a kernel without state: its body, for one block after the other. */
export const blockLoopText = (probed: boolean): string => `
(func $kernel (param $ctx $fuel i32) (result i32) (local $status i32)
  ${probed ? probeWhereZero('$ctx') : ''}
  (loop $next
    (local.set $status (call $body $ctx $fuel))
    (if (i32.or $status (i32.eqz (i32.load offset=${CTX.further} $ctx))) (then (return $status)))
    (i32.store offset=${CTX.further} $ctx (i32.sub (i32.load offset=${CTX.further} $ctx) 1))
    (i32.store offset=${CTX.ctaid} $ctx (i32.add (i32.load offset=${CTX.ctaid} $ctx) 1))
    (br $next))
  (unreachable))
`;

const run = (from: string, to: string): string => `(call $body $ctx ${from} ${to})`;

/**
 * Completes the operations of the warp at $warp: all, or with `any` also those without all members.
 */
const resolveWarp = ({ matrices }: SchedulerNeeds, any: 0 | 1, last: string): string =>
  `(call $${matrices ? 'resolve_matrix_warp' : 'resolve_warp'} $ctx $warp $end ${any} ${last})`;

const SET_END =
  '(local.set $end (i32.add $warp 32)) (if (i32.gt_u $end $threads) (then (local.set $end ' +
  '$threads)))';

/** The word of scratch with the warp that a pass has reached. */
const warpWord = ({ ordered }: SchedulerNeeds): number =>
  ordered ? SCRATCH.position : SCRATCH.warp;

const keepTurns = ({ warps }: SchedulerNeeds, turns: string): string =>
  warps ? `(i32.store offset=${SCRATCH.turns} $scratch ${turns})` : '';

const warpReleased = ({ check }: SchedulerNeeds): string =>
  check ? '(call $check_released $ctx $warp $end)' : '';

const endTurn = (needs: SchedulerNeeds): string => `
        (local.set $turns (i32.add $turns 1))
        (local.set $verdict ${resolveWarp(needs, 0, `(i32.eq $turns ${WARP_TURNS})`)})
        ${warpReleased(needs)}
        (br_if $again (i32.and $verdict (i32.lt_u $turns ${WARP_TURNS})))`;

/** A pass in which warps take their turns in the drawn order. */
const passInDrawnOrder = (needs: SchedulerNeeds): string => `
    (if (i32.eqz $position) (then
      (local.set $order (call $next_order $scratch))
      (local.set $position 1)))
    (local.set $count (i32.shr_u (i32.add $threads 31) 5))
    (block $warps_done (loop $warps
      (br_if $warps_done (i32.gt_u $position $count))
      (local.set $warp (i32.shl (call $warp_at $order (i32.sub $position 1) $count) 5))
      ${SET_END}
      (loop $again
        (local.set $status (call $body $ctx (select $cursor $warp (i32.gt_u $cursor $warp)) $end))
        (if $status (then
          (i32.store offset=${SCRATCH.cursor} $scratch (global.get $cursor))
          (i32.store offset=${SCRATCH.position} $scratch $position)
          ${keepTurns(needs, '$turns')}
          (i32.store offset=${SCRATCH.carry} $scratch (global.get $carry))
          (return $status)))
        (local.set $cursor 0)
        ${needs.warps ? endTurn(needs) : ''})
      ${needs.warps ? '(local.set $turns 0)' : ''}
      (local.set $position (i32.add $position 1))
      (br $warps)))
    (local.set $position 0)`;

/** A pass over one warp after the other. */
const passByWarps = (needs: SchedulerNeeds): string => `
    (block $warps_done (loop $warps
      (br_if $warps_done (i32.ge_u $warp $threads))
      ${SET_END}
      (loop $again
        (local.set $status ${run('(select $cursor $warp (i32.gt_u $cursor $warp))', '$end')})
        (if $status (then
          (i32.store offset=${SCRATCH.cursor} $scratch (global.get $cursor))
          (i32.store offset=${SCRATCH.warp} $scratch $warp)
          ${keepTurns(needs, '$turns')}
          (i32.store offset=${SCRATCH.carry} $scratch (global.get $carry))
          (return $status)))
        (local.set $cursor 0)
        ${endTurn(needs)})
      (local.set $turns 0)
      (local.set $warp $end)
      (br $warps)))
    (local.set $warp 0)`;

/** A pass over all threads in one call. */
const passInOne = `
    (local.set $status ${run('$cursor', '$threads')})
    (if $status (then
      (i32.store offset=${SCRATCH.cursor} $scratch (global.get $cursor))
      (i32.store offset=${SCRATCH.carry} $scratch (global.get $carry))
      (return $status)))
    (local.set $cursor 0)`;

/** Returns if all threads wait for other blocks of the cluster. */
const waitForCluster = (needs: SchedulerNeeds): string => `
    (if (i32.eq $verdict 3) (then
      (i32.store offset=${SCRATCH.cursor} $scratch 0)
      (i32.store offset=${SCRATCH.carry} $scratch 0)
      ${needs.warps ? `(i32.store offset=${warpWord(needs)} $scratch 0)` : ''}
      ${keepTurns(needs, '0')}
      (return ${STATUS.waiting})))`;

const forgiveWarps = (needs: SchedulerNeeds): string => `
    ;; All live threads wait. An operation whose members name different masks is undefined; GPUs let
    ;; many of them pass.
    (local.set $verdict 0)
    (local.set $warp 0)
    (block $forgiven_done (loop $forgiven
      (br_if $forgiven_done (i32.ge_u $warp $threads))
      ${SET_END}
      (local.set $verdict (i32.or $verdict ${resolveWarp(needs, 1, '1')}))
      ${warpReleased(needs)}
      (local.set $warp $end)
      (br $forgiven)))
    (local.set $warp 0)
    (br_if $pass $verdict)`;

const BARRIER_FUNCTIONS = {
  none: 'block_state',
  plain: 'resolve_plain',
  general: 'resolve_block',
} as const;

/** The exported function of a kernel with state. */
export function schedulerText(needs: SchedulerNeeds): string {
  const { warps, barriers, cluster, check, ordered, probed } = needs;
  return `
(func $kernel (param $ctx $fuel i32) (result i32)
  (local $scratch $threads $status $cursor $warp $end $live $verdict i32)
  ${warps ? '(local $turns i32)' : ''}
  ${ordered ? '(local $position $order $count i32)' : ''}
  ${probed ? probeWhereZero('$ctx') : ''}
  (local.set $scratch (i32.load offset=${CTX.scratch} $ctx))
  (local.set $threads (i32.load offset=${CTX.threads} $ctx))
  (local.set $cursor (i32.load offset=${SCRATCH.cursor} $scratch))
  (local.set $warp (i32.load offset=${SCRATCH.warp} $scratch))
  (global.set $fuel (select $fuel 1 (i32.gt_s $fuel 0)))
  (global.set $carry (i32.load offset=${SCRATCH.carry} $scratch))
  (global.set $unwind 0)
  ${warps ? `(local.set $turns (i32.load offset=${SCRATCH.turns} $scratch))` : ''}
  ${
    ordered
      ? `
  (local.set $position (i32.load offset=${SCRATCH.position} $scratch))
  (local.set $order (i32.load offset=${SCRATCH.order} $scratch))`
      : ''
  }
  (loop $pass
    ${ordered ? passInDrawnOrder(needs) : warps ? passByWarps(needs) : passInOne}
    (local.set $verdict (call $${cluster ? 'resolve_cluster' : BARRIER_FUNCTIONS[barriers]} $ctx))
    ${check ? '(call $check_released $ctx 0 $threads)' : ''}
    (if (i32.eq $verdict 0) (then (return ${STATUS.done})))
    (br_if $pass (i32.eq $verdict 1))
    ${cluster ? waitForCluster(needs) : ''}
    ${warps ? forgiveWarps(needs) : ''})
  (call $fault_stuck $ctx)
  ${STATUS.fault})
`;
}

/** The address of the first state. */
export const STATES = `(i32.add (i32.load offset=${CTX.scratch} $ctx) ${SCRATCH.states})`;
/** The address of the first mailbox. */
export const MAILBOXES =
  `(i32.add ${STATES} (i32.and (i32.add (i32.shl (i32.load offset=${CTX.threads} $ctx) 2) 127) ` +
  '-128))';

/** The threads that the block's last warp lacks. */
const MISSING = '(i32.and (i32.sub 0 $threads) 31)';

export const SCHEDULER_FUNCTIONS = `
;; The order of a pass: its lowest bit is the direction, the others give the first warp. Xorshift; 1
;; if there is no seed.
(func $next_order (param $scratch i32) (result i32) (local $x i32)
  (local.set $x (i32.load offset=${SCRATCH.orderSeed} $scratch))
  (local.set $x (i32.xor $x (i32.shl $x 13)))
  (local.set $x (i32.xor $x (i32.shr_u $x 17)))
  (local.set $x (i32.xor $x (i32.shl $x 5)))
  (i32.store offset=${SCRATCH.orderSeed} $scratch $x)
  (local.set $x (select $x 1 $x))
  (i32.store offset=${SCRATCH.order} $scratch $x)
  $x)
;; The warp of a turn.
(func $warp_at (param $order $turn $count i32) (result i32) (local $first i32)
  (local.set $first (i32.rem_u (i32.shr_u $order 1) $count))
  (i32.rem_u (i32.add $first (select $turn (i32.sub $count $turn) (i32.and $order 1))) $count))

;; 0: every thread has exited, 1: some thread can run, 2: all live threads wait.
(func $block_state (param $ctx i32) (result i32) (local $at $end $state $waiting i32)
  (local.set $at ${STATES})
  (local.set $end (i32.add $at (i32.shl (i32.load offset=${CTX.threads} $ctx) 2)))
  (block $scanned (loop $scan
    (br_if $scanned (i32.ge_u $at $end))
    (local.set $state (i32.load $at))
    (if (i32.ge_s $state 0) (then (return 1)))
    (if (i32.ne $state ${STATE.exited}) (then (local.set $waiting 1)))
    (local.set $at (i32.add $at 4))
    (br $scan)))
  (i32.shl $waiting 1))

;; Like block_state, if the only barrier is the one for all threads.
(func $resolve_plain (param $ctx i32) (result i32)
  (local $at $end $state i32) (local $four $waiting $ready $other v128)
  (local.set $at ${STATES})
  ;; The missing threads of the last group count as its first one does.
  (call $fill_group $ctx)
  (local.set $end (i32.add $at (i32.shl (i32.load offset=${CTX.threads} $ctx) 2)))
  (block $scanned (loop $scan
    (br_if $scanned (i32.ge_u $at $end))
    (local.set $four (v128.load $at))
    (local.set $ready (v128.or $ready (i32x4.ge_s $four (i32x4.splat 0))))
    (local.set $waiting (v128.or $waiting (i32x4.lt_s $four (i32x4.splat ${STATE.warp}))))
    (local.set $other (v128.or $other (v128.and (i32x4.ge_s $four (i32x4.splat ${STATE.warp}))
          (i32x4.lt_s $four (i32x4.splat ${STATE.exited})))))
    (local.set $at (i32.add $at 16))
    (br $scan)))
  (if (v128.any_true (v128.or $ready $other)) (then (return (select 1 2 (v128.any_true $ready)))))
  (if (v128.any_true $waiting) (then (call $release $ctx) (return 1)))
  0)

;; Copies the state of the last thread to the missing threads in its group of four.
(func $fill_group (param $ctx i32) (local $at $state i32)
  (local.set $at (i32.add ${STATES} (i32.shl (i32.load offset=${CTX.threads} $ctx) 2)))
  (local.set $state (i32.load (i32.sub $at 4)))
  (block $filled (loop $fill
    (br_if $filled (i32.eqz (i32.and $at 15)))
    (i32.store $at $state)
    (local.set $at (i32.add $at 4))
    (br $fill))))

;; Like block_state, after releasing every barrier that is complete.
(func $resolve_block (param $ctx i32) (result i32)
  (local $scratch $threads $states $mail $thread $state $exited $ready $waiting $plain $barrier
    $arrived $expected $count $reduced $and $or $box $progress $last $absent i32)
  (local.set $scratch (i32.load offset=${CTX.scratch} $ctx))
  (local.set $threads (i32.load offset=${CTX.threads} $ctx))
  (local.set $states ${STATES})
  (local.set $mail ${MAILBOXES})
  ;; Counts the threads in each state, and tests whether all waiting ones wait at barrier 0 for the
  ;; whole block.
  (local.set $plain 1)
  (block $scanned (loop $scan
    (br_if $scanned (i32.ge_u $thread $threads))
    (local.set $state (i32.load (i32.add $states (i32.shl $thread 2))))
    (if (i32.ge_s $state 0)
      (then (local.set $ready (i32.add $ready 1)))
      (else (if (i32.eq $state ${STATE.exited})
        (then (local.set $exited (i32.add $exited 1)))
        (else (if (i32.lt_u $state ${STATE.warp})
          (then
            (local.set $waiting (i32.add $waiting 1))
            (local.set $box (i32.add $mail (i32.mul $thread ${MAIL.bytes})))
            (if (i32.or (i32.or (i32.load offset=${MAIL.operation} $box)
                  (i32.load offset=${MAIL.mask} $box)) (i32.load offset=${MAIL.lane} $box))
              (then (local.set $plain 0)))))))))
    (local.set $thread (i32.add $thread 1))
    (br $scan)))
  (if (i32.and $plain (i32.and (i32.ne $waiting 0)
        (i32.eq (i32.add (i32.add $waiting $exited)
            (i32.load16_u offset=${SCRATCH.arrivals} $scratch)) $threads)))
    (then
      (i32.store offset=${SCRATCH.arrivals} $scratch 0)
      (call $release $ctx)
      (return 1)))
  (if (i32.eqz $waiting) (then
    (if $ready (then (return 1)))
    (return (select 0 2 (i32.eq $exited $threads)))))
  ;; Each barrier separately.
  (block $resolved (loop $next
    (br_if $resolved (i32.eq $barrier ${CLUSTER_BARRIER}))
    (local.set $thread 0) (local.set $count 0) (local.set $expected 0) (local.set $reduced 0)
    (local.set $and 1) (local.set $or 0)
    (block $counted (loop $each
      (br_if $counted (i32.ge_u $thread $threads))
      (local.set $state (i32.load (i32.add $states (i32.shl $thread 2))))
      (local.set $box (i32.add $mail (i32.mul $thread ${MAIL.bytes})))
      (if (i32.and (i32.and (i32.lt_s $state 0) (i32.lt_u $state ${STATE.warp}))
          (i32.eq (i32.load offset=${MAIL.mask} $box) $barrier)) (then
        (local.set $count (i32.add $count 1))
        (local.set $expected (i32.load offset=${MAIL.lane} $box))
        (local.set $last $thread)
        (if (i32.load offset=${MAIL.operation} $box) (then
          (local.set $reduced (i32.add $reduced (i32.load offset=${MAIL.value} $box)))
          (local.set $and (i32.and $and (i32.load offset=${MAIL.value} $box)))
          (local.set $or (i32.or $or (i32.load offset=${MAIL.value} $box)))))))
      (local.set $thread (i32.add $thread 1))
      (br $each)))
    (if $count (then
      (local.set $arrived (i32.load offset=${SCRATCH.arrivals}
          (i32.add $scratch (i32.shl $barrier 2))))
      (local.set $absent (i32.shr_u $arrived 16))
      (local.set $arrived (i32.add $count (i32.and $arrived 0xffff)))
      ;; Warps arrive as a whole, as on an H200: the block's last warp, which may lack threads,
      ;; waits as a whole, too.
      (if (i32.ge_u $last (i32.and (i32.sub $threads 1) -32)) (then (local.set $absent ${MISSING})))
      ;; A barrier does not wait for threads that have exited.
      (if $expected
        (then (local.set $arrived (i32.add $arrived $absent)))
        (else (local.set $expected (i32.sub $threads $exited))))
      (if (i32.ge_u $arrived $expected) (then
        (i32.store offset=${SCRATCH.arrivals} (i32.add $scratch (i32.shl $barrier 2)) 0)
        (local.set $progress 1)
        (local.set $thread 0)
        (block $released (loop $one
          (br_if $released (i32.ge_u $thread $threads))
          (local.set $state (i32.load (i32.add $states (i32.shl $thread 2))))
          (local.set $box (i32.add $mail (i32.mul $thread ${MAIL.bytes})))
          (if (i32.and (i32.and (i32.lt_s $state 0) (i32.lt_u $state ${STATE.warp}))
              (i32.eq (i32.load offset=${MAIL.mask} $box) $barrier)) (then
            (i32.store (i32.add $states (i32.shl $thread 2)) (i32.and $state ${STATE.entryMask}))
            (i32.store offset=${MAIL.result} $box
              (select $or
                (select $and $reduced (i32.eq (i32.load offset=${MAIL.operation} $box)
                    ${BARRIER_REDUCTION.and}))
                (i32.eq (i32.load offset=${MAIL.operation} $box) ${BARRIER_REDUCTION.or})))))
          (local.set $thread (i32.add $thread 1))
          (br $one)))))))
    (local.set $barrier (i32.add $barrier 1))
    (br $next)))
  (select 1 2 (i32.or $progress $ready)))

;; Releases every thread that waits at a barrier.
(func $release (param $ctx i32) (local $at $end i32) (local $four v128)
  (local.set $at ${STATES})
  (local.set $end (i32.add $at (i32.shl (i32.load offset=${CTX.threads} $ctx) 2)))
  (block $done (loop $each
    (br_if $done (i32.ge_u $at $end))
    (local.set $four (v128.load $at))
    (v128.store $at (v128.bitselect (v128.and $four (i32x4.splat ${STATE.entryMask})) $four
        (i32x4.lt_s $four (i32x4.splat ${STATE.warp}))))
    (local.set $at (i32.add $at 16))
    (br $each))))

;; No event can release the threads that wait: the first of them is reported.
(func $fault_stuck (param $ctx i32) (local $thread i32)
  (block $found (loop $each
    (br_if $found (i32.ge_u $thread (i32.load offset=${CTX.threads} $ctx)))
    (br_if $found (i32.ne (i32.load (i32.add ${STATES} (i32.shl $thread 2))) ${STATE.exited}))
    (local.set $thread (i32.add $thread 1))
    (br $each)))
  (call $fault $ctx ${FAULT.divergentBarrier} $thread 0 0L))

;; bar.arrive: counts without waiting; if the block's last thread arrives, the high half counts the
;; threads that its warp lacks.
(func $arrive (param $ctx $barrier $thread i32) (local $cell $threads i32)
  (local.set $threads (i32.load offset=${CTX.threads} $ctx))
  (local.set $cell (i32.add (i32.load offset=${CTX.scratch} $ctx)
      (i32.shl (i32.and $barrier 15) 2)))
  (i32.store offset=${SCRATCH.arrivals} $cell (i32.add
    (i32.add (i32.load offset=${SCRATCH.arrivals} $cell) 1)
    (select (i32.shl ${MISSING} 16) 0 (i32.eq (i32.add $thread 1) $threads)))))
`;
