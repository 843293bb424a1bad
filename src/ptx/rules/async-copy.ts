// cp.async: copies from global to shared memory. Here a copy is done at once, so waiting for it is nothing, and an
// mbarrier is a phase with a count of arrivals that threads poll, giving way to each other.

import type { Emitter } from '../emit/emitter.js';
import { checkedPlace } from '../emit/memory-access.js';
import { scalarType } from '../scalar-types.js';
import type { RuleRow } from './rule.js';

const B32 = scalarType('b32');
const B64 = scalarType('b64');
const PRED = scalarType('pred');

function copy(e: Emitter): void {
  const { code } = e;
  if (!e.has('async') || e.has('bulk')) throw e.unsupported();
  if (e.has('commit_group') || e.has('wait_group') || e.has('wait_all')) return;
  if (e.has('mbarrier')) {
    // cp.async.mbarrier.arrive.noinc: the copies are done, so this thread arrives.
    if (!e.has('noinc')) return;
    const place = checkedPlace(e, e.arg(0), 8, 'shared');
    code.get(place.local);
    if (place.offset) code.i32(place.offset).op('i32.add');
    code.i32(1);
    e.call('mbarrier_arrive');
    code.op('drop');
    return;
  }
  e.argCount(3, 5);
  const size = e.arg(2);
  if (size.kind !== 'integer' || ![4n, 8n, 16n].includes(size.value)) throw e.semantic("'cp.async' copies 4, 8 or 16 bytes");
  const bytes = Number(size.value);
  const target = checkedPlace(e, e.arg(0), bytes, 'shared');
  const source = checkedPlace(e, e.arg(1), bytes, 'global');
  const given = e.inst.args[3];
  const limit = e.temp('i32');
  if (given && given.kind === 'register' && given.register.type.kind === 'predicate') {
    // An ignore-source predicate copies zeros.
    code.i32(0).i32(bytes);
    e.push(given, PRED);
    code.op('select').set(limit);
  } else if (given && !(given.kind === 'integer' && given.value === size.value) && given.kind !== 'address') {
    e.push(given, B32);
    code.tee(limit).i32(bytes).get(limit).i32(bytes).op('i32.lt_u').op('select').set(limit);
  } else {
    // The common case: whole words.
    for (let at = 0; at < bytes; at += 4) {
      code.get(target.local).get(source.local).memory('i32.load', source.offset + at).memory('i32.store', target.offset + at);
    }
    return;
  }
  const push = (place: { local: number; offset: number }): void => {
    code.get(place.local);
    if (place.offset) code.i32(place.offset).op('i32.add');
  };
  push(target);
  code.i32(0).i32(bytes).op('memory.fill').byte(0);
  push(target);
  push(source);
  code.get(limit).op('memory.copy').byte(0).byte(0);
}

/** An mbarrier is 64 opaque bits: see MBARRIER_FUNCTIONS for what is in them. */
function barrier(e: Emitter): void {
  const { code } = e;
  const action = e.inst.modifiers[0];
  const writes = action === 'arrive' || action === 'arrive_drop' || action === 'test_wait' || action === 'try_wait' || action === 'pending_count';
  if (action === 'pending_count') {
    e.push(e.arg(1), B64);
    code.op('i32.wrap_i64').i32(0x7fff).op('i32.and');
    e.pop(e.arg(0), B32);
    return;
  }
  if (e.has('expect_tx') || e.has('complete_tx') || e.has('shared::cluster')) throw e.unsupported('transactions are');
  const place = checkedPlace(e, e.arg(writes ? 1 : 0), 8, 'generic');
  const address = (): void => {
    code.get(place.local);
    if (place.offset) code.i32(place.offset).op('i32.add');
  };
  switch (action) {
    case 'init':
      address();
      e.push(e.arg(1), B32);
      e.call('mbarrier_init');
      return;
    case 'inval': return;
    case 'arrive': case 'arrive_drop': {
      address();
      const count = e.inst.args[2];
      if (count) e.push(count, B32);
      else code.i32(1);
      e.call(action === 'arrive' ? 'mbarrier_arrive' : 'mbarrier_drop');
      e.pop(e.arg(0), B64);
      return;
    }
    case 'test_wait': case 'try_wait':
      // The phase asked about has passed when the current one differs.
      address();
      code.memory('i32.load').i32(31).op('i32.shr_u');
      if (e.has('parity')) {
        e.push(e.arg(2), B32);
        code.i32(1).op('i32.and');
      } else {
        e.push(e.arg(2), B64);
        code.op('i32.wrap_i64').i32(31).op('i32.shr_u');
      }
      code.op('i32.ne');
      e.pop(e.arg(0), PRED);
      return;
    default: throw e.unsupported();
  }
}

export const ASYNC_RULES: readonly RuleRow[] = [['cp', copy], ['mbarrier', barrier]];

/** Low word: phase << 31 | pending; high word: expected. */
export const MBARRIER_FUNCTIONS = `
(func $mbarrier_init (param $at $count i32)
  (i32.store $at $count)
  (i32.store offset=4 $at $count))
(func $mbarrier_arrive (param $at $count i32) (result i64) (local $word i32)
  (local.set $word (i32.load $at))
  (if (i32.le_u (i32.and $word 0x7fffffff) $count)
    (then (i32.store $at (i32.or (i32.and (i32.xor $word 0x80000000) 0x80000000) (i32.load offset=4 $at))))
    (else (i32.store $at (i32.sub $word $count))))
  (i64.extend_i32_u $word))
(func $mbarrier_drop (param $at $count i32) (result i64)
  (i32.store offset=4 $at (i32.sub (i32.load offset=4 $at) $count))
  (call $mbarrier_arrive $at $count))
`;
