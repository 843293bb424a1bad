// The addresses of a unit's loads and stores, as far as they are known, and the checks that they
// are valid.

import type { Arg, Register } from '../analysis/program.js';
import { CTX, NULL_PAGE } from '../context.js';
import { elements, sharedElements } from '../emit/memory-access.js';
import { STRONG, accessSpace, components, vectorOf } from '../rules/memory.js';
import type { ScalarType } from '../scalar-types.js';
import type { LaneEmitter } from './lane-emitter.js';

export interface Access {
  type: ScalarType;
  /** The registers or literals that are read or written: several with .v2 and .v4. */
  values: Arg[];
  /** Bytes for each thread, and their binary logarithm. */
  size: number;
  log2: number;
  shared: boolean;
  address: Arg & { kind: 'address' };
  /** The step of the address from thread to thread. */
  stride: number | undefined;
  /** The distance of each thread's address from the first one's, if it is known. */
  steps: readonly number[] | undefined;
  wide: boolean;
}

const PACKED = /x[24]$|^tf32$/;

/** The access of the instruction, if there are vector forms for it. */
export function access(
  e: LaneEmitter,
  address: Arg | undefined,
  value: Arg | undefined,
  operands = 2,
): Access | undefined {
  const { inst } = e;
  const [type] = e.types();
  if (
    inst.args.length !== operands ||
    e.types().length !== 1 ||
    !type ||
    type.bits > 64 ||
    PACKED.test(type.name) ||
    !value
  )
    return undefined;
  if (
    e.oneOf('v8', 'async', 'bulk') ||
    STRONG.some((word) => e.has(word)) ||
    address?.kind !== 'address' ||
    !address.base
  )
    return undefined;
  const space = accessSpace(e);
  if (space === 'cluster') return undefined;
  const { width } = vectorOf(e);
  const values = components(e, value, width);
  const size = (width * type.bits) / 8;
  if (size > 16 || (size < 4 && width > 1) || (type.bits < 32 && size > 4)) return undefined;
  if (!values.every((part) => holds(part, type))) return undefined;
  const { bits } = address.base.type;
  if (bits !== 32 && bits !== 64) return undefined;
  return {
    type,
    values,
    size,
    log2: Math.log2(size),
    shared: space === 'shared',
    address,
    stride: e.stride(address),
    steps: e.steps(address),
    wide: bits === 64,
  };
}

/** An operand that holds a value of the type without conversion. */
function holds(part: Arg, type: ScalarType): boolean {
  if (part.kind === 'register') {
    const { bits, kind, name } = part.register.type;
    if (kind === 'predicate' || PACKED.test(name)) return false;
    return type.bits < 32 ? (bits === 16 || bits === 32) && kind !== 'float' : bits === type.bits;
  }
  return (
    part.kind === 'sink' || (type.bits >= 32 && (part.kind === 'integer' || part.kind === 'float'))
  );
}

/** The bytes of the group's first thread. */
export type Place =
  | { kind: 'range'; local: number; offset: number; stride: number }
  /** At known distances from the start of the range, with the bytes of the whole range. */
  | { kind: 'apart'; local: number; steps: readonly number[]; bytes: number }
  | { kind: 'each'; addresses: readonly number[]; offset: number };

/** Pushes whether every thread's address is valid. */
export function check(e: LaneEmitter, found: Access): Place {
  const { address, log2, shared, size, stride, steps, wide } = found;
  if (stride === undefined && steps?.every((step) => step % size === 0))
    return checkApart(e, found, steps);
  if (stride === undefined || stride % size !== 0) return checkAll(e, found);
  const span = (e.width - 1) * stride;
  const local = pushStart(e, address, Math.min(span, 0), wide);
  testPlace(e, shared, log2, wide, Math.abs(span) / size + 1);
  local.settle();
  return { kind: 'range', local: local.place, offset: -Math.min(span, 0), stride };
}

/** The same for addresses at known distances, as one range. */
function checkApart(
  e: LaneEmitter,
  { address, log2, shared, size, wide }: Access,
  steps: readonly number[],
): Place {
  const least = Math.min(...steps);
  const bytes = Math.max(...steps) - least + size;
  const local = pushStart(e, address, least, wide);
  testPlace(e, shared, log2, wide, bytes / size);
  local.settle();
  return { kind: 'apart', local: local.place, steps: steps.map((step) => step - least), bytes };
}

/** Pushes the address of a range's first byte. `place` is its local if it has been computed. */
function pushStart(
  e: LaneEmitter,
  address: Access['address'],
  by: number,
  wide: boolean,
): { place: number; settle: () => void } {
  const { code } = e;
  const place = e.temp('i32');
  const whole = wide ? e.temp('i64') : place;
  const start = address.offset + by;
  code.get(e.registerLocal(address.base!));
  if (start) {
    if (wide) code.i64(start).op('i64.add');
    else code.i32(start).op('i32.add');
  }
  code.tee(whole);
  return {
    place,
    settle: () => {
      if (wide) code.get(whole).op('i32.wrap_i64').set(place);
    },
  };
}

/**
 * Replaces the address on the stack by whether `count` elements from it on are aligned and within
 * accessible memory.
 */
export function testPlace(
  e: LaneEmitter,
  shared: boolean,
  log2: number,
  wide: boolean,
  count: number,
): void {
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
  if (log2) {
    if (wide) code.i64(log2);
    else code.i32(log2);
    code.op(`${type}.rotr`);
  }
  code.get(startsOf(e, shared, log2, wide, count)).op(`${type}.lt_u`);
}

/** The number of places at which `count` adjacent elements may start. */
function startsOf(
  e: LaneEmitter,
  shared: boolean,
  log2: number,
  wide: boolean,
  count: number,
): number {
  const all = elementsOf(e, shared, log2);
  const type = wide ? 'i64' : 'i32';
  return e.keep(`starts:${shared}:${log2}:${type}:${count}`, type, (code) => {
    code
      .get(all)
      .i64(count - 1)
      .op('i64.sub')
      .i64(0)
      .get(all)
      .i64(count - 1)
      .op('i64.gt_u')
      .op('select');
    if (!wide) code.op('i32.wrap_i64');
  });
}

export function elementsOf(e: LaneEmitter, shared: boolean, log2: number): number {
  if (!shared) return elements(e, log2, 'i64');
  const count = sharedElements(e, log2);
  return e.hoist(`sharedElements:${log2}:i64`, 'i64', (code) => {
    code.get(count).op('i64.extend_i32_u');
  });
}

/** The same for any addresses, of which the place has four i32 for each group. */
function checkAll(e: LaneEmitter, found: Access): Place {
  const { code } = e;
  const addresses = e.temps(e.groups);
  const { log2, shared, wide } = found;
  const count = elementsOf(e, shared, log2);
  const limit = e.hoist(`lanes:${shared}:${log2}`, 'v128', (prologue) => {
    prologue.get(count).op('i32.wrap_i64').op('i32x4.splat');
  });
  const lower = e.hoist(`lower:${shared}`, 'v128', (prologue) => {
    if (shared) prologue.get(e.ctx).memory('i32.load', CTX.shared);
    else prologue.i32(NULL_PAGE);
    prologue.op('i32x4.splat');
  });
  // The bits below the alignment, and the high words, all have to be zero.
  const bad = log2 || wide ? e.temp('v128') : -1;
  const good = e.temp('v128');
  const mask = 2 ** log2 - 1;
  e.eachGroup((group) => {
    e.scoped(() => {
      const places = addresses[group]!;
      let terms = 0;
      if (wide) {
        const halves = [0, 1].map((half) => {
          const local = e.temp('v128');
          pushAddressHalf(e, found, half);
          code.set(local);
          return local;
        }) as [number, number];
        code.get(halves[0]).get(halves[1]).shuffle([0, 2, 4, 6]).set(places);
        code.get(halves[0]).get(halves[1]).shuffle([1, 3, 5, 7]);
        terms++;
      } else {
        pushAddress32(e, found);
        code.set(places);
      }
      if (mask) {
        code.get(places).v128([mask, mask, mask, mask]).op('v128.and');
        if (terms++) code.op('v128.or');
      }
      if (terms) {
        if (group) code.get(bad).op('v128.or');
        code.set(bad);
      }
      code.get(places).get(lower).op('i32x4.sub');
      if (log2) code.i32(log2).op('i32x4.shr_u');
      code.get(limit).op('i32x4.lt_u');
      if (group) code.get(good).op('v128.and');
      code.set(good);
    });
  });
  code.get(good).op('i32x4.all_true');
  if (bad >= 0) code.get(bad).op('v128.any_true').op('i32.eqz').op('i32.and');
  return { kind: 'each', addresses, offset: 0 };
}

const baseOf = (address: Arg & { kind: 'address' }): Arg & { kind: 'register' } => {
  const register: Register = address.base!;
  return { kind: 'register', register, at: address.at };
};

export function pushAddress32(e: LaneEmitter, { address }: Access): void {
  const { code } = e;
  const base = baseOf(address);
  e.pushLanes(base, base.register.type);
  if (address.offset) code.i32(address.offset).op('i32x4.splat').op('i32x4.add');
}

export function pushAddressHalf(e: LaneEmitter, { address }: Access, half: number): void {
  const { code } = e;
  const base = baseOf(address);
  e.pushHalf(base, base.register.type, half);
  if (address.offset) code.i64(address.offset).op('i64x2.splat').op('i64x2.add');
}
