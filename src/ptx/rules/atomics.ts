// atom and red. On global and generic addresses they are WebAssembly atomics, because other blocks
// run at the same time. Shared memory belongs to one block, whose threads never run at once, so
// plain loads and stores are enough.

import type { Emitter } from '../emit/emitter.js';
import { checkedPlace } from '../emit/memory-access.js';
import type { AccessSpace, Place } from '../emit/place.js';
import { scalarType } from '../scalar-types.js';
import type { ScalarType, WasmType } from '../scalar-types.js';
import { LEAST, flush } from './flush.js';
import { widenHalf } from './half-values.js';
import { completeTransaction } from './mbarrier.js';
import { accessSpace, components, loadName, storeName, vectorOf } from './memory.js';
import { canonicalNaN } from './nan.js';
import { asOne } from './wide-access.js';
import { accessNamed, opcodeNamed } from '../wasm/opcodes.js';

const B64 = scalarType('b64');
const NATIVE: Record<string, string> = {
  add: 'add',
  and: 'and',
  or: 'or',
  xor: 'xor',
  exch: 'xchg',
  cas: 'cmpxchg',
};
export const OPERATIONS = [
  'add',
  'and',
  'or',
  'xor',
  'exch',
  'cas',
  'min',
  'max',
  'inc',
  'dec',
] as const;
export type Operation = (typeof OPERATIONS)[number];

export const atomic =
  (returns: boolean) =>
  (e: Emitter): void => {
    const { code } = e;
    const operation = e.oneOf(...OPERATIONS);
    if (!operation) throw e.semantic(`'${e.inst.mnemonic}' needs an operation`);
    const { type, width } = vectorOf(e);
    const first = returns ? 1 : 0;
    const isAsync = e.has('async');
    const space =
      isAsync && !e.has('mmio') && e.has('mbarrier::complete_tx::bytes')
        ? 'cluster'
        : accessSpace(e);
    const size = type.bits / 8;
    const operands = first + (operation === 'cas' ? 3 : 2);
    e.argCount(operands, operands + 2);
    const place = checkedPlace(e, e.arg(first), size * width, space);
    const shared = space === 'shared';
    if (e.type().bits > 64) {
      exchangeWide(e, place, operation, shared);
      return;
    }
    const integer: WasmType = type.bits === 64 ? 'i64' : 'i32';
    // A cache policy may follow them.
    const lists = e.inst.args
      .slice(first + 1, operands)
      .map((arg) => (width > 1 ? components(e, arg, width) : [arg]));
    const limit = flushLimit(e, place, operation, type, space);
    const olds = Array.from({ length: width }, (_, index) => {
      const old = e.temp(integer);
      readModifyWrite(
        e,
        { local: place.local, offset: place.offset + index * size },
        operation,
        type,
        shared,
        old,
        (operand) => {
          e.push(lists[operand - 1]![index]!, type);
          e.convertBits(type.wasm, integer);
          e.narrow(type);
        },
        limit,
      );
      return old;
    });
    if (isAsync && e.has('mbarrier::complete_tx::bytes'))
      completeTransaction(e, e.arg(2), () => {
        code.i32(size);
      });
    if (!returns) return;
    const result = e.arg(0);
    const targets =
      result.kind === 'sink'
        ? olds.map(() => result)
        : width > 1
          ? components(e, result, width)
          : [result];
    targets.forEach((target, index) => {
      code.get(olds[index]!);
      e.convertBits(integer, type.wasm);
      e.pop(target, type.bits < 32 ? bitsOf(type) : type, type.bits < 32 ? 'wide' : 'exact');
    });
  };

/**
 * Sums of singles in global memory are flushed, and so are their operands; those in shared memory
 * are not. Returns a local with the magnitude below which a value is flushed, or nothing if none
 * is.
 */
function flushLimit(
  e: Emitter,
  place: Place,
  operation: Operation,
  type: ScalarType,
  space: AccessSpace,
): number | undefined {
  if (operation !== 'add' || type.name !== 'f32' || space === 'shared' || space === 'cluster')
    return undefined;
  const { code } = e;
  const limit = e.temp('f32');
  if (space === 'generic') {
    code
      .f32(0)
      .f32(LEAST)
      .get(e.ctx)
      .get(place.local)
      .op('i64.extend_i32_u')
      .i64(place.offset)
      .op('i64.add');
    e.call('is_cluster_shared');
    code.op('select').set(limit);
  } else {
    code.f32(LEAST).set(limit);
  }
  return limit;
}

/**
 * Changes one value in memory and leaves the old one, as bits, in `old`. `pushOperand(1)` pushes
 * the bits of the operand, `pushOperand(2)` those of the value that cas writes. `limit` is the
 * result of `flushLimit`.
 */
export function readModifyWrite(
  e: Emitter,
  place: Place,
  operation: Operation,
  type: ScalarType,
  shared: boolean,
  old: number,
  pushOperand: (index: number) => void,
  limit?: number,
): void {
  const { code } = e;
  const integer: WasmType = type.bits === 64 ? 'i64' : 'i32';
  const bits = bitsOf(type);
  const native = NATIVE[operation];
  if (!shared && native && (type.kind !== 'float' || operation === 'exch')) {
    code.get(place.local);
    pushOperand(1);
    if (operation === 'cas') pushOperand(2);
    const width = type.bits < 32 ? `rmw${type.bits}` : 'rmw';
    code
      .memory(
        accessNamed(`${integer}.atomic.${width}.${native}${type.bits < 32 ? '_u' : ''}`),
        place.offset,
      )
      .set(old);
  } else if (shared) {
    code.get(place.local).memory(loadName(bits, false), place.offset).set(old);
    const value = e.temp(integer);
    combine(e, operation, type, integer, old, pushOperand, limit);
    code.set(value).get(place.local).get(value).memory(storeName(bits, false), place.offset);
  } else {
    compareAndSwap(e, place, type, integer, old, () => {
      combine(e, operation, type, integer, old, pushOperand, limit);
    });
  }
}

/** exch and cas of 128 bits. */
function exchangeWide(e: Emitter, place: Place, operation: Operation, shared: boolean): void {
  const { code } = e;
  const swaps = operation === 'cas';
  const values = e.inst.args.slice(2, swaps ? 4 : 3).map((arg) =>
    components(e, arg, 2).map((part) => {
      const local = e.temp('i64');
      e.push(part, B64);
      code.set(local);
      return local;
    }),
  );
  const old = [e.temp('i64'), e.temp('i64')];
  asOne(e, !shared, () => {
    old.forEach((local, half) => {
      code
        .get(place.local)
        .memory('i64.load', place.offset + 8 * half)
        .set(local);
    });
    const write = (): void => {
      values.at(-1)!.forEach((value, half) => {
        code
          .get(place.local)
          .get(value)
          .memory('i64.store', place.offset + 8 * half);
      });
    };
    if (swaps) {
      code
        .get(old[0]!)
        .get(values[0]![0]!)
        .op('i64.eq')
        .get(old[1]!)
        .get(values[0]![1]!)
        .op('i64.eq')
        .op('i32.and');
      e.when(write);
    } else {
      write();
    }
  });
  components(e, e.arg(0), 2).forEach((target, half) => {
    code.get(old[half]!);
    e.pop(target, B64);
  });
}

const bitsOf = (type: ScalarType): ScalarType => scalarType(`b${type.bits}`);

/** Retries until no other thread has changed the value in between. */
function compareAndSwap(
  e: Emitter,
  place: Place,
  type: ScalarType,
  integer: WasmType,
  old: number,
  pushNew: () => void,
): void {
  const { code } = e;
  const seen = e.temp(integer);
  const narrow = type.bits < 32;
  code
    .get(place.local)
    .memory(
      accessNamed(narrow ? `i32.atomic.load${type.bits}_u` : `${integer}.atomic.load`),
      place.offset,
    )
    .set(old);
  code.op('loop').byte(0x40);
  e.nest(() => {
    code.get(place.local).get(old);
    pushNew();
    code.memory(
      accessNamed(
        narrow ? `i32.atomic.rmw${type.bits}.cmpxchg_u` : `${integer}.atomic.rmw.cmpxchg`,
      ),
      place.offset,
    );
    code.set(seen).get(seen).get(old).op(`${integer}.ne`).get(seen).set(old).op('br_if').u32(0);
  });
  code.op('end');
}

/** Pushes the new value, as bits, from `old`. */
function combine(
  e: Emitter,
  operation: string,
  type: ScalarType,
  integer: WasmType,
  old: number,
  pushOperand: (index: number) => void,
  limit?: number,
): void {
  const { code } = e;
  const zero = (): unknown => (integer === 'i64' ? code.i64(0) : code.i32(0));
  const suffix = type.kind === 'signed' ? 's' : 'u';
  switch (operation) {
    case 'exch':
      pushOperand(1);
      return;
    case 'cas':
      pushOperand(2);
      code.get(old).get(old);
      pushOperand(1);
      code.op(`${integer}.eq`).op('select');
      return;
    case 'and':
    case 'or':
    case 'xor':
      code.get(old);
      pushOperand(1);
      code.op(opcodeNamed(`${integer}.${operation}`));
      return;
    case 'add':
      if (type.kind === 'float') {
        addFloats(e, type, integer, old, pushOperand, limit);
        return;
      }
      code.get(old);
      pushOperand(1);
      code.op(`${integer}.add`);
      return;
    case 'min':
    case 'max': {
      if (type.kind === 'float') {
        if (type.wasm === 'i32') {
          combineHalves(e, type, old, pushOperand, () => {
            e.call(`${operation}_f64`);
          });
          return;
        }
        code.get(old);
        e.convertBits(integer, type.wasm);
        pushOperand(1);
        e.convertBits(integer, type.wasm);
        e.call(`${operation}_${type.wasm}`);
        e.convertBits(type.wasm, integer);
        return;
      }
      const value = e.temp(integer);
      pushOperand(1);
      code
        .set(value)
        .get(old)
        .get(value)
        .get(old)
        .get(value)
        .op(opcodeNamed(`${integer}.${operation === 'min' ? 'lt' : 'gt'}_${suffix}`))
        .op('select');
      return;
    }
    case 'inc': {
      // (old >= b) ? 0 : old + 1
      zero();
      code.get(old);
      if (integer === 'i64') code.i64(1);
      else code.i32(1);
      code.op(`${integer}.add`).get(old);
      pushOperand(1);
      code.op(opcodeNamed(`${integer}.ge_u`)).op('select');
      return;
    }
    case 'dec': {
      // (old == 0 or old > b) ? b : old - 1
      const limit = e.temp(integer);
      pushOperand(1);
      code.tee(limit).get(old);
      if (integer === 'i64') code.i64(1);
      else code.i32(1);
      code
        .op(`${integer}.sub`)
        .get(old)
        .op(opcodeNamed(`${integer}.eqz`))
        .get(old)
        .get(limit)
        .op(opcodeNamed(`${integer}.gt_u`))
        .op('i32.or')
        .op('select');
      return;
    }
  }
}

function addFloats(
  e: Emitter,
  type: ScalarType,
  integer: WasmType,
  old: number,
  pushOperand: (index: number) => void,
  limit?: number,
): void {
  const { code } = e;
  const flushed = (): void => {
    if (limit !== undefined)
      flush(e, () => {
        code.get(limit);
      });
  };
  if (type.wasm !== 'i32') {
    code.get(old);
    e.convertBits(integer, type.wasm);
    flushed();
    pushOperand(1);
    e.convertBits(integer, type.wasm);
    flushed();
    code.op(`${type.wasm}.add`);
    flushed();
    canonicalNaN(e, type);
    e.convertBits(type.wasm, integer);
    return;
  }
  combineHalves(e, type, old, pushOperand, () => {
    code.op('f64.add');
  });
}

/** Each half of the old value and the operand's, combined in f64 and rounded once. */
function combineHalves(
  e: Emitter,
  type: ScalarType,
  old: number,
  pushOperand: (index: number) => void,
  operate: () => void,
): void {
  const { code } = e;
  const half = scalarType(type.name.replace('x2', ''));
  const value = e.temp('i32');
  pushOperand(1);
  code.set(value);
  const shifts = type.name.endsWith('x2') ? [0, 16] : [0];
  for (const shift of shifts) {
    for (const local of [old, value]) {
      code.get(local).i32(shift).op('i32.shr_u').i32(0xffff).op('i32.and');
      widenHalf(e, half);
      code.op('f64.promote_f32');
    }
    operate();
    e.call(half.name === 'bf16' ? 'f64_to_bf16' : 'f64_to_f16');
    if (shift) code.i32(16).op('i32.shl').op('i32.or');
  }
}
