// Loads and stores of four threads. Neighbouring addresses are one v128 access after one check of the whole range;
// others are four accesses after a check of all four addresses. Where that check fails, because a thread is switched off
// or because there is a fault to report, a run-time function goes through the threads one by one.

import type { Arg } from '../analysis/program.js';
import { CTX, NULL_PAGE } from '../context.js';
import { elements, sharedElements } from '../emit/memory-access.js';
import { accessSpace, WATCHED } from '../rules/memory.js';
import type { ScalarType } from '../scalar-types.js';
import type { LaneEmitter, LaneRule } from './lane-emitter.js';

export interface Access {
  type: ScalarType;
  log2: number;
  shared: boolean;
  address: Arg & { kind: 'address' };
  /** Step of the address from thread to thread. */
  stride: number | undefined;
  wide: boolean;
}

export function access(e: LaneEmitter, address: Arg | undefined, value: Arg | undefined): Access | undefined {
  const [type] = e.types();
  const { inst } = e;
  if (inst.args.length !== 2 || e.types().length !== 1 || !type || (type.bits !== 32 && type.bits !== 64) || /x2$|^tf32$/.test(type.name)) return undefined;
  if (e.oneOf('v2', 'v4', 'v8', 'async') || WATCHED.some(word => e.has(word)) || address?.kind !== 'address' || !address.base) return undefined;
  if (value?.kind === 'register' ? value.register.type.bits !== type.bits || value.register.type.kind === 'predicate' : value?.kind !== 'integer' && value?.kind !== 'float') return undefined;
  const { bits } = address.base.type;
  if (bits !== 32 && bits !== 64) return undefined;
  const stride = e.stride(address);
  return { type, log2: type.bits === 64 ? 3 : 2, shared: accessSpace(e) === 'shared', address, stride, wide: bits === 64 };
}

const load: LaneRule = e => {
  const [target] = e.inst.args;
  if (target?.kind !== 'register') return false;
  const found = access(e, e.inst.args[1], target);
  if (!found) return false;
  const { code } = e;
  const { type } = found;
  const parts = type.bits === 64 ? [0, 1] : [0];
  const known = e.unchecked?.get(e.inst);
  if (known) {
    parts.forEach(part => {
      code.get(known.local).memory('v128.load', known.offset + 16 * part);
      e.popLanes(target, part);
    });
    return true;
  }
  const values = parts.map(() => e.temp('v128'));
  if (found.stride === type.bits / 8) {
    const place = e.temp('i32');
    checkRange(e, found, place);
    code.op('if').byte(0x40);
    parts.forEach(part => { code.get(place).memory('v128.load', 16 * part).set(values[part]!); });
  } else {
    const places = e.temp('v128');
    checkAll(e, found, places);
    code.op('if').byte(0x40);
    for (let lane = 0; lane < 4; lane++) {
      const value = values[type.bits === 64 ? lane >> 1 : 0]!;
      code.get(places).lane('i32x4.extract_lane', lane).get(value);
      code.memory(`v128.load${type.bits}_lane`).byte(type.bits === 64 ? lane & 1 : lane).set(value);
    }
  }
  code.op('else');
  e.nest(() => {
    parts.forEach(part => {
      code.get(e.ctx).get(e.base);
      pushAddresses(e, found);
      code.get(e.guardMask()).op('i32x4.bitmask');
      pushLimits(e, found);
      code.i32(e.line).i32(part);
      e.call(`lane_load_${type.bits}`);
      code.set(values[part]!);
    });
    checkFault(e);
  });
  code.op('end');
  parts.forEach(part => {
    code.get(values[part]!);
    e.popLanes(target, part);
  });
  return true;
};

const store: LaneRule = e => {
  const value = e.inst.args[1];
  const found = access(e, e.inst.args[0], value);
  if (!found || !value) return false;
  const { code } = e;
  const { type } = found;
  const parts = type.bits === 64 ? [0, 1] : [0];
  const values = parts.map(part => {
    const local = e.temp('v128');
    if (type.bits === 64) e.pushHalf(value, storedAs(value, type), part);
    else e.pushLanes(value, storedAs(value, type));
    code.set(local);
    return local;
  });
  const known = e.unchecked?.get(e.inst);
  if (known) {
    parts.forEach(part => { code.get(known.local).get(values[part]!).memory('v128.store', known.offset + 16 * part); });
    return true;
  }
  const everyone = (): void => { code.get(e.guardMask()).op('i32x4.all_true'); };
  if (found.stride === type.bits / 8) {
    const place = e.temp('i32');
    checkRange(e, found, place);
    everyone();
    code.op('i32.and').op('if').byte(0x40);
    parts.forEach(part => { code.get(place).get(values[part]!).memory('v128.store', 16 * part); });
  } else {
    const places = e.temp('v128');
    checkAll(e, found, places);
    everyone();
    code.op('i32.and').op('if').byte(0x40);
    for (let lane = 0; lane < 4; lane++) {
      code.get(places).lane('i32x4.extract_lane', lane).get(values[type.bits === 64 ? lane >> 1 : 0]!);
      code.memory(`v128.store${type.bits}_lane`).byte(type.bits === 64 ? lane & 1 : lane);
    }
  }
  code.op('else');
  e.nest(() => {
    code.get(e.ctx).get(e.base);
    pushAddresses(e, found);
    values.forEach(local => code.get(local));
    code.get(e.guardMask()).op('i32x4.bitmask');
    pushLimits(e, found);
    code.i32(e.line);
    e.call(`lane_store_${type.bits}`);
    checkFault(e);
  });
  code.op('end');
  return true;
};

/** Registers of any class may be stored as bits of their width. */
const storedAs = (value: Arg, type: ScalarType): ScalarType => value.kind === 'register' ? value.register.type : type;

/** Pushes the truth of: the four threads' elements lie in range and aligned. Leaves the first's place in a local. */
function checkRange(e: LaneEmitter, { address, log2, shared, wide }: Access, place: number): void {
  const { code } = e;
  const base = address.base!;
  code.get(e.registerLocal(base));
  if (address.offset) {
    if (wide) code.i64(address.offset).op('i64.add');
    else code.i32(address.offset).op('i32.add');
  }
  const whole = wide ? e.temp('i64') : place;
  code.tee(whole);
  testPlace(e, shared, log2, wide, 4);
  if (wide) code.get(whole).op('i32.wrap_i64').set(place);
}

/** Makes the address on the stack a truth: `count` elements from it on are aligned and within what may be touched. */
export function testPlace(e: LaneEmitter, shared: boolean, log2: number, wide: boolean, count: number): void {
  const { code } = e;
  const type = wide ? 'i64' : 'i32';
  if (shared) {
    code.get(e.contextField('shared'));
    if (wide) code.op('i64.extend_i32_u');
  } else if (wide) {
    code.i64(NULL_PAGE);
  } else {
    code.i32(NULL_PAGE);
  }
  code.op(`${type}.sub`);
  if (wide) code.i64(log2);
  else code.i32(log2);
  code.op(`${type}.rotr`).get(startsOf(e, shared, log2, wide, count)).op(`${type}.lt_u`);
}

/** Number of places where `count` elements in a row may start. */
function startsOf(e: LaneEmitter, shared: boolean, log2: number, wide: boolean, count: number): number {
  const all = elementsOf(e, shared, log2);
  const type = wide ? 'i64' : 'i32';
  return e.hoist(`starts:${shared}:${log2}:${type}:${count}`, type, code => {
    code.get(all).i64(count - 1).op('i64.sub').i64(0).get(all).i64(count - 1).op('i64.gt_u').op('select');
    if (!wide) code.op('i32.wrap_i64');
  });
}

function elementsOf(e: LaneEmitter, shared: boolean, log2: number): number {
  if (!shared) return elements(e, log2, 'i64');
  const count = sharedElements(e, log2);
  return e.hoist(`sharedElements:${log2}:i64`, 'i64', code => { code.get(count).op('i64.extend_i32_u'); });
}

/** Pushes the truth of: each thread's address is good. Leaves the addresses as four i32 in a local. */
function checkAll(e: LaneEmitter, found: Access, places: number): void {
  const { code } = e;
  const { log2, shared, wide } = found;
  const count = elementsOf(e, shared, log2);
  const limit = e.hoist(`lanes:${shared}:${log2}`, 'v128', prologue => { prologue.get(count).op('i32.wrap_i64').op('i32x4.splat'); });
  const lower = e.hoist(`lower:${shared}`, 'v128', prologue => {
    if (shared) prologue.get(e.ctx).memory('i32.load', CTX.shared);
    else prologue.i32(NULL_PAGE);
    prologue.op('i32x4.splat');
  });
  if (wide) {
    const halves = [0, 1].map(half => {
      const local = e.temp('v128');
      pushAddressHalf(e, found, half);
      code.set(local);
      return local;
    }) as [number, number];
    code.get(halves[0]).get(halves[1]).shuffle([0, 2, 4, 6]).set(places);
    code.get(halves[0]).get(halves[1]).shuffle([1, 3, 5, 7]);
  } else {
    pushAddress32(e, found);
    code.set(places);
    code.v128([0, 0, 0, 0]);
  }
  // The high words, and what alignment forbids, must all be zero.
  const mask = 2 ** log2 - 1;
  code.get(places).v128([mask, mask, mask, mask]).op('v128.and').op('v128.or').op('v128.any_true').op('i32.eqz');
  code.get(places).get(lower).op('i32x4.sub').i32(log2).op('i32x4.shr_u').get(limit).op('i32x4.lt_u').op('i32x4.all_true').op('i32.and');
}

function pushAddress32(e: LaneEmitter, { address }: Access): void {
  const { code } = e;
  const base = address.base!;
  e.pushLanes({ kind: 'register', register: base, at: address.at }, base.type);
  if (address.offset) code.i32(address.offset).op('i32x4.splat').op('i32x4.add');
}

function pushAddressHalf(e: LaneEmitter, { address }: Access, half: number): void {
  const { code } = e;
  const base = address.base!;
  e.pushHalf({ kind: 'register', register: base, at: address.at }, base.type, half);
  if (address.offset) code.i64(address.offset).op('i64x2.splat').op('i64x2.add');
}

/** Pushes the four 64-bit addresses as two vectors. */
function pushAddresses(e: LaneEmitter, found: Access): void {
  if (found.wide) {
    pushAddressHalf(e, found, 0);
    pushAddressHalf(e, found, 1);
    return;
  }
  const all = e.temp('v128');
  pushAddress32(e, found);
  e.code.set(all).get(all).op('i64x2.extend_low_i32x4_u').get(all).op('i64x2.extend_high_i32x4_u');
}

function pushLimits(e: LaneEmitter, { shared, log2 }: Access): void {
  const { code } = e;
  if (shared) code.get(e.contextField('shared')).op('i64.extend_i32_u');
  else code.i64(NULL_PAGE);
  code.get(elementsOf(e, shared, log2));
}

function checkFault(e: LaneEmitter): void {
  e.code.op('global.get').u32(e.around.linker.globalIndex('unwind'));
  e.when(() => { e.leaveFaulted(); });
}

export const MEMORY: readonly (readonly [string, LaneRule])[] = [['ld', load], ['ldu', load], ['st', store]];

const eachLane = (body: (lane: number) => string): string => [0, 1, 2, 3].map(lane => `
  (if (i32.and $bits ${1 << lane}) (then
    (local.set $address (i64x2.extract_lane ${lane & 1} ${lane < 2 ? '$a' : '$b'}))
    ${body(lane)}))`).join('');
const checked = (lane: number, log2: number): string => `
    (if (i64.ge_u (i64.rotr (i64.sub $address $low) ${log2}L) $elements) (then
      (call $fault_memory $ctx (i32.add $thread ${lane}) $address ${2 ** log2} $line)
      (return RESULT)))`;

export const LANE_FUNCTIONS = `
;; Threads of a group, one by one: those whose bit is set, in order, up to the first fault.
(func $lane_load_32 (param $ctx $thread i32) (param $a $b v128) (param $bits i32) (param $low $elements i64) (param $line $part i32) (result v128)
  (local $address i64) (local $value v128)
  ${eachLane(lane => `${checked(lane, 2).replace('RESULT', '$value')}
    (local.set $value (i32x4.replace_lane ${lane} $value (i32.load (i32.wrap_i64 $address))))`)}
  $value)
(func $lane_load_64 (param $ctx $thread i32) (param $a $b v128) (param $bits i32) (param $low $elements i64) (param $line $part i32) (result v128)
  (local $address i64) (local $value v128)
  ${eachLane(lane => `${checked(lane, 3).replace('RESULT', '$value')}
    (if (i32.eq $part ${lane >> 1}) (then
      (local.set $value (i64x2.replace_lane ${lane & 1} $value (i64.load (i32.wrap_i64 $address))))))`)}
  $value)
(func $lane_store_32 (param $ctx $thread i32) (param $a $b $value v128) (param $bits i32) (param $low $elements i64) (param $line i32)
  (local $address i64)
  ${eachLane(lane => `${checked(lane, 2).replace('RESULT', '')}
    (i32.store (i32.wrap_i64 $address) (i32x4.extract_lane ${lane} $value))`)})
(func $lane_store_64 (param $ctx $thread i32) (param $a $b $first $second v128) (param $bits i32) (param $low $elements i64) (param $line i32)
  (local $address i64)
  ${eachLane(lane => `${checked(lane, 3).replace('RESULT', '')}
    (i64.store (i32.wrap_i64 $address) (i64x2.extract_lane ${lane & 1} ${lane < 2 ? '$first' : '$second'}))`)})
`;
