// cp.async, bulk copies and bulk reductions. A copy is done at once, so a wait for one does
// nothing, and arrivals and bytes are counted at once.

import type { Arg } from '../analysis/program.js';
import { ACCESS, GROUP_EVENT, IN_FLIGHT } from '../check.js';
import {
  emitAccessCheck,
  emitCallerCheck,
  emitCopyCheck,
  emitGroupCheck,
  emitTouch,
} from '../emit/check.js';
import { boundedPlace, checkedPlace, checkedRange } from '../emit/memory-access.js';
import type { Emitter } from '../emit/emitter.js';
import { scalarType } from '../scalar-types.js';
import { readModifyWrite } from './atomics.js';
import { mapToRank } from './cluster.js';
import { completeTransaction, pushBarrier } from './mbarrier.js';
import { loadName } from './memory.js';
import { toSelectedBlocks } from './multicast.js';
import { copyTensor } from './tensor-copy.js';

const B32 = scalarType('b32');
const B16 = scalarType('b16');
const PRED = scalarType('pred');

export function copy(e: Emitter): void {
  if (!e.has('async')) throw e.unsupported();
  if (e.has('tensor')) {
    copyTensor(e);
    return;
  }
  if (e.has('commit_group') || e.has('wait_group') || e.has('wait_all')) {
    awaitGroups(e);
    return;
  }
  if (e.has('reduce')) reduceBulk(e);
  else if (e.has('bulk')) copyBulk(e);
  else if (e.has('mbarrier')) arriveAfterCopies(e);
  else copySmall(e);
}

function awaitGroups(e: Emitter): void {
  const operations = e.has('bulk') ? IN_FLIGHT.bulk : IN_FLIGHT.copy;
  if (!e.has('wait_group')) emitGroupCheck(e, operations, GROUP_EVENT.committed);
  if (e.has('commit_group')) return;
  const left = e.inst.args[0];
  const groups = left?.kind === 'integer' ? Number(left.value) : 0;
  emitGroupCheck(e, operations, groups | (e.has('read') ? GROUP_EVENT.reads : 0));
}

/**
 * cp.async.mbarrier.arrive: the copies are done, so this thread arrives. Without .noinc it first
 * adds a pending arrival, so that the count stays the same.
 */
function arriveAfterCopies(e: Emitter): void {
  emitGroupCheck(e, IN_FLIGHT.copy, GROUP_EVENT.handedOver);
  if (!e.has('noinc')) {
    pushBarrier(e, e.arg(0));
    e.code.op('drop');
    return;
  }
  pushBarrier(e, e.arg(0));
  e.code.i32(1);
  e.call('mbarrier_arrive');
  e.code.op('drop');
}

/** cp.async of 4, 8 or 16 bytes; bytes beyond the source's are zero. */
function copySmall(e: Emitter): void {
  const { code } = e;
  e.argCount(3, 5);
  const size = e.arg(2);
  if (size.kind !== 'integer') throw e.semantic('expected a number of bytes', size.at);
  const bytes = Number(size.value);
  const target = checkedPlace(e, e.arg(0), bytes, 'shared');
  const hasPolicy = e.has('L2::cache_hint');
  const given = e.inst.args.length - (hasPolicy ? 1 : 0) > 3 ? e.arg(3) : undefined;
  const limit = e.temp('i32');
  if (given && isPredicate(given)) {
    // An ignore-source predicate copies zeros.
    code.i32(0).i32(bytes);
    e.push(given, PRED);
    code.op('select').set(limit);
  } else if (given && !(given.kind === 'integer' && given.value === size.value)) {
    e.push(given, B32);
    code.tee(limit).i32(bytes).get(limit).i32(bytes).op('i32.lt_u').op('select').set(limit);
  } else {
    const source = checkedPlace(e, e.arg(1), bytes, 'global');
    emitCopyCheck(e, target, source, () => {
      code.i32(bytes);
    });
    // The common case: whole words.
    for (let at = 0; at < bytes; at += 4) {
      code
        .get(target.local)
        .get(source.local)
        .memory('i32.load', source.offset + at)
        .memory('i32.store', target.offset + at);
    }
    return;
  }
  const push = (place: { local: number; offset: number }): void => {
    code.get(place.local);
    if (place.offset) code.i32(place.offset).op('i32.add');
  };
  push(target);
  code.i32(0).i32(bytes).op('memory.fill').byte(0);
  // Bytes beyond the limit are not read, and may be anywhere.
  code.get(limit);
  e.when(() => {
    const source = boundedPlace(e, e.arg(1), bytes, 'global');
    if (e.around.check)
      emitAccessCheck(
        e,
        source,
        e.arg(1),
        () => {
          code.get(limit);
        },
        'global',
      );
    emitCopyCheck(e, target, source, () => {
      code.get(limit);
    });
    push(target);
    push(source);
    code.get(limit).op('memory.copy').byte(0).byte(0);
  });
}

const isPredicate = (arg: Arg): boolean =>
  arg.kind === 'not' || (arg.kind === 'register' && arg.register.type.kind === 'predicate');

/** The operands of a bulk operation: [target], [source], bytes. */
function bulkRanges(e: Emitter): { target: number; source: number; bytes: number } {
  const bytes = e.temp('i32');
  e.push(e.arg(2), B32);
  e.code.set(bytes);
  const targetSpace = e.has('shared::cluster')
    ? 'cluster'
    : e.has('shared::cta') && !e.has('bulk_group')
      ? 'shared'
      : 'generic';
  const fromShared = !e.has('global') || e.has('bulk_group');
  const target = checkedRange(e, e.arg(0), bytes, 16, targetSpace);
  const source = checkedRange(e, e.arg(1), bytes, 16, fromShared ? 'shared' : 'generic');
  return { target, source, bytes };
}

function signal(e: Emitter, bytes: number): void {
  if (e.has('mbarrier::complete_tx::bytes'))
    completeTransaction(e, e.arg(3), () => {
      e.code.get(bytes);
    });
}

function copyBulk(e: Emitter): void {
  const { code } = e;
  if (e.has('prefetch')) return;
  const { target, source, bytes } = bulkRanges(e);
  if (e.has('multicast::cluster')) {
    copyToMany(e, target, source, bytes);
    return;
  }
  if (e.has('cp_mask')) {
    code.get(target).get(source).get(bytes);
    e.push(e.arg(e.has('L2::cache_hint') ? 4 : 3), B16);
    if (e.around.check) emitCallerCheck(e);
    e.call('copy_masked');
    return;
  }
  emitCopyCheck(e, { local: target, offset: 0 }, { local: source, offset: 0 }, () => {
    code.get(bytes);
  });
  code.get(target).get(source).get(bytes).op('memory.copy').byte(0).byte(0);
  signal(e, bytes);
}

/** Copies to the same offset in every block whose bit is set in the mask. */
function copyToMany(e: Emitter, target: number, source: number, bytes: number): void {
  const { code } = e;
  const there = e.temp('i32');
  const pushBytes = (): void => {
    code.get(bytes);
  };
  toSelectedBlocks(e, e.arg(4), e.arg(3), bytes, (pushRank) => {
    code.get(target).op('i64.extend_i32_u');
    mapToRank(e, pushRank);
    code.op('i32.wrap_i64').set(there);
    if (e.around.check) emitTouch(e, { local: there, offset: 0 }, pushBytes, ACCESS.write);
    emitCopyCheck(e, { local: there, offset: 0 }, { local: source, offset: 0 }, pushBytes);
    code.get(there).get(source).get(bytes).op('memory.copy').byte(0).byte(0);
  });
}

/**
 * cp.reduce.async.bulk: one reduction for each element. Its sums of singles are not flushed, unlike
 * those of atom and red (measured on an H200).
 */
function reduceBulk(e: Emitter): void {
  const { code } = e;
  const type = e.type();
  const operation = e.oneOf('add', 'and', 'or', 'xor', 'min', 'max', 'inc', 'dec');
  if (!operation) throw e.semantic("'cp.reduce' needs an operation");
  const { target, source, bytes } = bulkRanges(e);
  const size = type.bits / 8;
  const integer = type.bits === 64 ? 'i64' : 'i32';
  const old = e.temp(integer);
  const done = e.temp('i32');
  code.i32(0).set(done).op('block').byte(0x40).op('loop').byte(0x40);
  e.nest(() => {
    e.nest(() => {
      code.get(done).get(bytes).op('i32.ge_u').op('br_if').u32(1);
      readModifyWrite(
        e,
        { local: target, offset: 0 },
        operation,
        type,
        e.has('shared::cluster'),
        old,
        () => {
          code.get(source).memory(loadName(scalarType(`b${type.bits}`), false), 0);
        },
      );
      for (const local of [target, source, done])
        code.get(local).i32(size).op('i32.add').set(local);
      code.op('br').u32(0);
    });
  });
  code.op('end').op('end');
  signal(e, bytes);
}

/** `touch` runs before every byte that is written. */
const copyMasked = (touch: string): string => `
;; Of every 16 bytes, copies those whose bit is set in the mask.
(func $copy_masked (param $to $from $bytes $mask i32) (local $i i32)
  (block $done (loop $each
    (br_if $done (i32.ge_u $i $bytes))
    (if (i32.and (i32.shr_u $mask (i32.and $i 15)) 1)
      (then ${touch}(i32.store8 (i32.add $to $i) (i32.load8_u (i32.add $from $i)))))
    (local.set $i (i32.add $i 1))
    (br $each))))
`;

export const COPY_FUNCTIONS = copyMasked('');
/** The same in code compiled with `check`. */
export const CHECKED_COPY_FUNCTIONS = copyMasked(
  `(call $check_touch (i32.add $to $i) 1 ${ACCESS.write}) (call $check_copied (i32.add $to ` +
    '$i) (i32.add $from $i) 1) ',
);
