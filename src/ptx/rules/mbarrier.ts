// mbarrier: a phase ends when all arrivals and all announced bytes have come. Threads poll it and
// give way to each other. Copies are done at once, so their bytes are complete before the next
// instruction.

import type { Arg } from '../analysis/program.js';
import type { Emitter } from '../emit/emitter.js';
import { checkedPlace } from '../emit/memory-access.js';
import { scalarType } from '../scalar-types.js';

const B32 = scalarType('b32');
const B64 = scalarType('b64');
const PRED = scalarType('pred');

/** Pushes the address of the mbarrier that an operand names. */
export function pushBarrier(e: Emitter, arg: Arg): void {
  const place = checkedPlace(e, arg, 8, 'generic');
  e.code.get(place.local);
  if (place.offset) e.code.i32(place.offset).op('i32.add');
}

/** Counts bytes that have arrived at an mbarrier. */
export function completeTransaction(e: Emitter, arg: Arg, pushBytes: () => void): void {
  pushBarrier(e, arg);
  e.code.i32(0);
  pushBytes();
  e.code.op('i32.sub');
  e.call('mbarrier_transaction');
}

export function barrier(e: Emitter): void {
  const { code } = e;
  const action = e.oneOf(
    'init',
    'inval',
    'arrive_drop',
    'arrive',
    'expect_tx',
    'complete_tx',
    'test_wait',
    'try_wait',
    'pending_count',
  );
  switch (action) {
    case 'init':
      pushBarrier(e, e.arg(0));
      e.push(e.arg(1), B32);
      e.call('mbarrier_init');
      return;
    case 'inval':
      pushBarrier(e, e.arg(0));
      code.op('drop');
      return;
    case 'arrive':
    case 'arrive_drop': {
      const expects = e.has('expect_tx');
      if (expects) {
        pushBarrier(e, e.arg(1));
        e.push(e.arg(2), B32);
        e.call('mbarrier_transaction');
      }
      pushBarrier(e, e.arg(1));
      const count = e.inst.args[2];
      if (count && !expects) e.push(count, B32);
      else code.i32(1);
      e.call(action === 'arrive' ? 'mbarrier_arrive' : 'mbarrier_drop');
      e.pop(e.arg(0), B64);
      return;
    }
    case 'expect_tx':
      pushBarrier(e, e.arg(0));
      e.push(e.arg(1), B32);
      e.call('mbarrier_transaction');
      return;
    case 'complete_tx':
      completeTransaction(e, e.arg(0), () => {
        e.push(e.arg(1), B32);
      });
      return;
    case 'pending_count':
      e.push(e.arg(1), B64);
      code.op('i32.wrap_i64').i32(PENDING).op('i32.and');
      e.pop(e.arg(0), B32);
      return;
    case 'test_wait':
    case 'try_wait':
      // The phase has passed if the current one differs from it. A time limit only limits how long
      // to sleep.
      pushBarrier(e, e.arg(1));
      code.memory('i64.load').i64(63).op('i64.shr_u').op('i32.wrap_i64');
      if (e.has('parity')) {
        e.push(e.arg(2), B32);
        code.i32(1).op('i32.and');
      } else {
        e.push(e.arg(2), B64);
        code.i64(63).op('i64.shr_u').op('i32.wrap_i64');
      }
      code.op('i32.ne');
      e.pop(e.arg(0), PRED);
      return;
    default:
      throw e.unsupported();
  }
}

const PENDING = 0xfffff;

/**
 * 64 bits: the missing arrivals in bits 0 to 19, the arrivals of a phase in 20 to 39, the announced
 * and missing bytes (signed: they may come before they are announced) in 40 to 62, the phase in 63.
 */
export const MBARRIER_FUNCTIONS = `
(func $mbarrier_init (param $at $count i32)
  (i64.store $at (i64.mul (i64.extend_i32_u (i32.and $count ${PENDING})) 0x100001L)))
;; Begins the next phase, if nothing is missing.
(func $mbarrier_settle (param $word i64) (result i64)
  (if (i64.ne (i64.and $word 0x7fffff00000fffffL) 0L) (then (return $word)))
  (i64.or (i64.xor $word 0x8000000000000000L) (i64.and (i64.shr_u $word 20L) ${PENDING}L)))
(func $mbarrier_arrive (param $at $count i32) (result i64) (local $word i64) (local $pending i32)
  (local.set $word (i64.load $at))
  (local.set $pending (i32.and (i32.wrap_i64 $word) ${PENDING}))
  (i64.store $at (call $mbarrier_settle (i64.sub $word
        (i64.extend_i32_u (select $count $pending (i32.lt_u $count $pending))))))
  $word)
(func $mbarrier_drop (param $at $count i32) (result i64) (local $word i64)
  (local.set $word (i64.load $at))
  (i64.store $at (i64.sub $word (i64.shl (i64.extend_i32_u $count) 20L)))
  (drop (call $mbarrier_arrive $at $count))
  $word)
;; Adds bytes that are announced, or subtracts bytes that have come.
(func $mbarrier_transaction (param $at $bytes i32) (local $word i64)
  (local.set $word (i64.load $at))
  (i64.store $at (call $mbarrier_settle (i64.or (i64.and $word 0x800000ffffffffffL)
    (i64.and (i64.add $word (i64.shl (i64.extend_i32_s $bytes) 40L)) 0x7fffff0000000000L)))))
`;
