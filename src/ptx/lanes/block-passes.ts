// A block whose units are always suspended as a whole, and whose only barrier is the one for all
// threads, needs no scheduler: the function itself gives each unit its turn, pass by pass, until
// none is left. A unit's frame then begins with words for the states of its threads; the thread
// states are written only if the call ends before the block.

import { CTX, STATUS } from '../context.js';
import { SCRATCH, STATE } from '../emit/frame-layout.js';
import type { Code } from '../wasm/code.js';

/**
 * Words at the beginning of a unit's frame: its state, bits of the threads that have exited, and
 * whether masks were saved.
 */
export const UNIT = { state: 0, gone: 4, diverged: 8, bytes: 16 } as const;

/** Bits of the word in scratch that records how far a pass is. */
const PASS = { begun: 1, release: 2, ready: 4, left: 8 } as const;

/** Locals of the function. */
export interface PassLocals {
  /** The unit's frame. */
  frame: number;
  /** The state of the unit after its turn. */
  next: number;
  /** Bits of the unit's threads that have exited. */
  gone: number;
  /** Units that wait at the barrier may continue in this pass. */
  release: number;
  /** Some unit can continue without others. */
  ready: number;
  /** Some unit has not exited. */
  left: number;
}

/**
 * Resumes the pass that the last call has interrupted, or begins the block. `from` gets the first
 * thread of the next unit.
 */
export function emitResume(
  code: Code,
  { frame, release, ready, left }: PassLocals,
  from: number,
  scratch: number,
  frames: number,
  unitBytes: number,
  width: number,
  threads: number,
  begin: () => void,
): void {
  code.get(scratch).memory('i32.load', SCRATCH.pass).tee(ready).op('i32.eqz').op('if').byte(0x40);
  code.get(frames).i32(unitBytes);
  code
    .get(threads)
    .i32(width - 1)
    .op('i32.add')
    .i32(Math.log2(width))
    .op('i32.shr_u');
  begin();
  code.op('end');
  for (const [local, bit] of [
    [release, PASS.release],
    [left, PASS.left],
    [ready, PASS.ready],
  ] as const) {
    code.get(ready).i32(bit).op('i32.and').i32(0).op('i32.ne').set(local);
  }
  code
    .get(scratch)
    .memory('i32.load', SCRATCH.cursor)
    .tee(from)
    .i32(Math.log2(width))
    .op('i32.shr_u')
    .i32(unitBytes)
    .op('i32.mul')
    .get(frames)
    .op('i32.add')
    .set(frame);
}

/** Finds where the unit continues; branches to `skip` if it has exited or has to wait. */
export function emitBeginTurn(
  code: Code,
  { frame, next, gone, release, left }: PassLocals,
  entry: number,
  skip: (depth: number) => void,
): void {
  code
    .get(frame)
    .memory('i32.load', UNIT.state)
    .tee(entry)
    .i32(0)
    .op('i32.lt_s')
    .op('if')
    .byte(0x40);
  code.get(entry).i32(STATE.exited).op('i32.eq');
  skip(1);
  code.get(release).op('i32.eqz').op('if').byte(0x40);
  code.i32(1).set(left).i32(1);
  skip(2);
  code.op('end');
  code.get(entry).i32(STATE.entryMask).op('i32.and').set(entry).op('end');
  code.get(frame).memory('i32.load', UNIT.gone).set(gone);
  code.i32(STATE.exited).set(next);
}

export function emitEndTurn(code: Code, { frame, next, gone, ready, left }: PassLocals): void {
  code.get(frame).get(next).memory('i32.store', UNIT.state);
  code.get(frame).get(gone).memory('i32.store', UNIT.gone);
  code.get(left).get(next).i32(STATE.exited).op('i32.ne').op('i32.or').set(left);
  code.get(ready).get(next).i32(0).op('i32.ge_s').op('i32.or').set(ready);
}

/** The same if the state is known, and no thread has exited in this turn. */
export function emitEndWholeTurn(
  code: Code,
  { frame, ready, left }: PassLocals,
  state: number,
): void {
  code.get(frame).i32(state).memory('i32.store', UNIT.state);
  if (state === STATE.exited) return;
  code.i32(1).set(left);
  if (state >= 0) code.i32(1).set(ready);
}

/** After the last unit: ends the call if all have exited, else prepares the next pass. */
export function emitEndPass(
  code: Code,
  { frame, release, ready, left }: PassLocals,
  scratch: number,
  frames: number,
): void {
  code.get(left).op('i32.eqz').op('if').byte(0x40);
  // The same call may continue with another block.
  code
    .get(scratch)
    .i32(0)
    .memory('i32.store', SCRATCH.pass)
    .get(scratch)
    .i32(0)
    .memory('i32.store', SCRATCH.cursor);
  code.i32(STATUS.done).op('return').op('end');
  code.get(ready).op('i32.eqz').set(release);
  code.i32(0).set(ready).i32(0).set(left);
  code.get(frames).set(frame);
}

/**
 * The call ends here; the next one continues at `cursor`. The arguments of the function `tell` are
 * on the stack, up to the last but one.
 */
export function emitInterrupt(
  code: Code,
  { release, ready, left }: PassLocals,
  ctx: number,
  scratch: number,
  frames: number,
  unitBytes: number,
  width: number,
  cursor: number,
  tell: () => void,
): void {
  code.get(scratch).get(cursor).memory('i32.store', SCRATCH.cursor);
  code.get(scratch).i32(PASS.begun);
  for (const [local, bit] of [
    [release, PASS.release],
    [ready, PASS.ready],
    [left, PASS.left],
  ] as const)
    code.get(local).i32(bit).op('i32.mul').op('i32.or');
  code.memory('i32.store', SCRATCH.pass);
  code
    .get(ctx)
    .get(frames)
    .i32(unitBytes)
    .i32(Math.log2(width))
    .get(cursor)
    .i32(-1)
    .get(release)
    .op('select');
  tell();
  code.i32(STATUS.yielded).op('return');
}

export const PASS_FUNCTIONS = `
;; No thread of any unit has begun.
(func $lanes_begin (param $frame $bytes $units i32)
  (block $done (loop $each
    (br_if $done (i32.eqz $units))
    (v128.store $frame (i64x2.splat 0L))
    (local.set $frame (i32.add $frame $bytes))
    (local.set $units (i32.sub $units 1))
    (br $each))))

;; Writes the threads' states from those of their units. Those that wait at the barrier have been
;; released from $released on. Nothing reads them between two turns of blocks that run side by side.
(func $lanes_tell (param $ctx $frames $bytes $log2 $released i32) (local $thread $frame $state i32)
  (if (global.get $quiet) (then (return)))
  (block $done (loop $each
    (br_if $done (i32.ge_u $thread (i32.load offset=${CTX.threads} $ctx)))
    (local.set $frame (i32.add $frames (i32.mul (i32.shr_u $thread $log2) $bytes)))
    (local.set $state (i32.load offset=${UNIT.state} $frame))
    (if (i32.and (i32.ge_u $thread $released) (i32.ne $state ${STATE.exited})) (then
      (local.set $state (i32.and $state ${STATE.entryMask}))))
    (if (i32.and (i32.shr_u (i32.load offset=${UNIT.gone} $frame)
          (i32.and $thread (i32.sub (i32.shl 1 $log2) 1))) 1) (then
      (local.set $state ${STATE.exited})))
    (i32.store offset=${SCRATCH.states} (i32.add (i32.load offset=${CTX.scratch} $ctx)
        (i32.shl $thread 2)) $state)
    (local.set $thread (i32.add $thread 1))
    (br $each))))
`;
