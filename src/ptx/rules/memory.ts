// Loads and stores in every space, with vectors. All spaces are one flat memory; cache hints change nothing.
// Accesses that another block may watch are atomic ones.

import type { Arg } from '../analysis/program.js';
import type { Emitter } from '../emit/emitter.js';
import { checkedPlace } from '../emit/memory-access.js';
import type { AccessSpace } from '../emit/memory-access.js';
import { scalarType } from '../scalar-types.js';
import type { ScalarType } from '../scalar-types.js';
import type { RuleRow } from './rule.js';

/** Accesses that other threads may be looking at. */
export const WATCHED = ['volatile', 'relaxed', 'acquire', 'release', 'mmio'];

export function accessSpace(e: Emitter): AccessSpace {
  for (const modifier of e.inst.modifiers) {
    const space = modifier.split('::')[0]!;
    switch (space) {
      case 'global': case 'local': case 'const': case 'param': return space;
      case 'shared':
        if (modifier === 'shared::cluster') return 'generic';
        return 'shared';
    }
  }
  return 'generic';
}

function vectorWidth(e: Emitter): number {
  const width = e.oneOf('v2', 'v4', 'v8');
  return width ? Number(width.slice(1)) : 1;
}

/** The WebAssembly load for a memory type, giving a value of that type. */
export function loadName(type: ScalarType, atomic: boolean): string {
  if (type.bits >= 32) return atomic ? `i${type.bits}.atomic.load` : `${type.wasm}.load`;
  if (atomic) return `i32.atomic.load${type.bits}_u`;
  return `i32.load${type.bits}_${type.kind === 'signed' ? 's' : 'u'}`;
}

export function storeName(type: ScalarType, atomic: boolean): string {
  if (type.bits >= 32) return atomic ? `i${type.bits}.atomic.store` : `${type.wasm}.store`;
  return atomic ? `i32.atomic.store${type.bits}` : `i32.store${type.bits}`;
}

const integerOf = (type: ScalarType): 'i32' | 'i64' => type.bits === 64 ? 'i64' : 'i32';

function components(e: Emitter, arg: Arg, width: number): Arg[] {
  if (width === 1) {
    // ld.v1 does not exist, but {%r} for one register does.
    if (arg.kind === 'vector' && arg.elements.length === 1) return arg.elements;
    return [arg];
  }
  if (arg.kind !== 'vector' || arg.elements.length !== width) throw e.semantic(`expected a vector of ${width}`, arg.at);
  return arg.elements;
}

function load(e: Emitter): void {
  e.argCount(2, 3);
  const type = e.type();
  if (type.bits > 64) throw e.unsupported('128-bit values are');
  const { code } = e;
  const source = e.arg(1);
  if (source.kind === 'address' && source.symbol?.kind === 'paramRegister') {
    if (source.offset !== 0) throw e.unsupported('a part of a scalar parameter is');
    e.push({ kind: 'register', register: source.symbol.register, at: source.at }, bitsLike(type), 'wide');
    if (type.kind === 'signed' && type.bits < 32) code.op(type.bits === 8 ? 'i32.extend8_s' : 'i32.extend16_s');
    e.pop(e.arg(0), type, 'wide');
    return;
  }
  const width = vectorWidth(e);
  const parts = components(e, e.arg(0), width);
  const bytes = type.bits / 8;
  const atomic = width === 1 && WATCHED.some(word => e.has(word));
  const place = checkedPlace(e, source, bytes * width, accessSpace(e));
  const loads: number[] = [];
  parts.forEach((part, index) => {
    if (part.kind === 'sink') return;
    code.get(place.local).memory(loadName(type, atomic), place.offset + index * bytes);
    if (atomic) {
      if (type.bits < 32 && type.kind === 'signed') code.op(type.bits === 8 ? 'i32.extend8_s' : 'i32.extend16_s');
      e.convertBits(integerOf(type), type.wasm);
    }
    if (parts.length === 1) {
      e.pop(part, type, 'wide');
      return;
    }
    // The address register may be among the results: collect first.
    const value = e.temp(type.wasm);
    code.set(value);
    loads[index] = value;
  });
  if (parts.length === 1) return;
  parts.forEach((part, index) => {
    if (part.kind === 'sink') return;
    code.get(loads[index]!);
    e.pop(part, type, 'wide');
  });
}

/** Untyped bits of a type's width, or the type where it is at home. */
function bitsLike(type: ScalarType): ScalarType {
  return type.kind === 'float' && type.bits >= 32 && !type.name.includes('x') ? type : scalarType(`b${type.bits}`);
}

function store(e: Emitter): void {
  e.argCount(2, 3);
  const type = e.type();
  if (type.bits > 64) throw e.unsupported('128-bit values are');
  if (e.has('async')) throw e.unsupported();
  const { code } = e;
  const target = e.arg(0);
  if (target.kind === 'address' && target.symbol?.kind === 'paramRegister') {
    if (target.offset !== 0) throw e.unsupported('a part of a scalar parameter is');
    const { register } = target.symbol;
    e.push(e.arg(1), type, 'wide');
    e.narrow(type);
    e.convertBits(type.wasm, register.type.wasm);
    code.set(e.registerLocal(register));
    return;
  }
  const width = vectorWidth(e);
  const parts = components(e, e.arg(1), width);
  const bytes = type.bits / 8;
  const atomic = width === 1 && WATCHED.some(word => e.has(word));
  const place = checkedPlace(e, target, bytes * width, accessSpace(e));
  parts.forEach((part, index) => {
    code.get(place.local);
    e.push(part, type, 'wide');
    if (atomic) e.convertBits(type.wasm, integerOf(type));
    code.memory(storeName(type, atomic), place.offset + index * bytes);
  });
}

/** ldu, prefetches and hints. */
const nothing = (): void => {};

function isSpace(e: Emitter): void {
  // Flat memory: shared is its window, everything else that is not null is global.
  const { code } = e;
  e.argCount(2);
  const address = e.temp('i64');
  const arg = e.arg(1);
  const narrow = arg.kind === 'register' && arg.register.type.bits === 32;
  e.push(arg, scalarType(narrow ? 'u32' : 'u64'));
  if (narrow) code.op('i64.extend_i32_u');
  code.set(address);
  const inShared = (): void => {
    code.get(address).get(e.contextField('shared')).op('i64.extend_i32_u').op('i64.sub');
    code.get(e.contextField('sharedBytes')).op('i64.extend_i32_u').op('i64.lt_u');
  };
  const space = accessSpace(e);
  switch (space) {
    case 'shared': inShared(); break;
    case 'global':
      inShared();
      code.op('i32.eqz').get(address).i64(65536).op('i64.ge_u').op('i32.and');
      break;
    default: throw e.unsupported();
  }
  e.pop(e.arg(0), scalarType('pred'));
}

export const MEMORY_RULES: readonly RuleRow[] = [
  ['ld', load], ['ldu', load], ['st', store], ['isspacep', isSpace],
  ['prefetch', nothing], ['prefetchu', nothing], ['discard', nothing], ['applypriority', nothing],
];
