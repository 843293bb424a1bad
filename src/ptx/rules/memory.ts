// Loads and stores in every space, with vectors. All spaces are one flat memory; cache hints have
// no effect. Strong accesses, which another block may observe, are atomic.

import type { Arg } from '../analysis/program.js';
import type { Emitter } from '../emit/emitter.js';
import { NULL_PAGE } from '../context.js';
import { checkedPlace, checkedRange } from '../emit/memory-access.js';
import type { AccessSpace } from '../emit/place.js';
import { scalarType } from '../scalar-types.js';
import type { ScalarType } from '../scalar-types.js';
import { completeTransaction } from './mbarrier.js';
import { asOne } from './wide-access.js';
import { accessNamed } from '../wasm/opcodes.js';
import type { AccessOpcode } from '../wasm/opcodes.js';

/** Modifiers of strong accesses, which other threads may observe. */
export const STRONG = ['volatile', 'relaxed', 'acquire', 'release', 'mmio'];

export function accessSpace(e: Emitter): AccessSpace {
  for (const modifier of e.inst.modifiers) {
    const space = modifier.split('::')[0]!;
    switch (space) {
      case 'global':
      case 'local':
      case 'const':
      case 'param':
        return space;
      case 'shared':
        return modifier === 'shared::cluster' ? 'cluster' : 'shared';
    }
  }
  return 'generic';
}

/** The number and type of the values that an access moves; 128 bits are two values of 64. */
export function vectorOf(e: Emitter): { type: ScalarType; width: number } {
  const type = e.type();
  const width = e.oneOf('v2', 'v4', 'v8');
  if (type.bits > 64) return { type: scalarType('b64'), width: 2 };
  return { type, width: width ? Number(width.slice(1)) : 1 };
}

/** The WebAssembly load for a memory type, which gives a value of that type. */
export function loadName(type: ScalarType, atomic: boolean): AccessOpcode {
  if (type.bits >= 32)
    return atomic ? accessNamed(`i${type.bits}.atomic.load`) : `${type.wasm}.load`;
  if (atomic) return accessNamed(`i32.atomic.load${type.bits}_u`);
  return accessNamed(`i32.load${type.bits}_${type.kind === 'signed' ? 's' : 'u'}`);
}

export function storeName(type: ScalarType, atomic: boolean): AccessOpcode {
  if (type.bits >= 32)
    return atomic ? accessNamed(`i${type.bits}.atomic.store`) : `${type.wasm}.store`;
  return accessNamed(atomic ? `i32.atomic.store${type.bits}` : `i32.store${type.bits}`);
}

/** The WebAssembly integer that holds a type's bits. */
const integerOf = (type: ScalarType): 'i32' | 'i64' => (type.bits === 64 ? 'i64' : 'i32');

export function components(e: Emitter, arg: Arg, width: number): Arg[] {
  if (width === 1) {
    // ld.v1 does not exist, but {%r} for one register does.
    if (arg.kind === 'vector' && arg.elements.length === 1) return arg.elements;
    return [arg];
  }
  if (arg.kind !== 'vector' || arg.elements.length !== width)
    throw e.semantic(`expected a vector of ${width}`, arg.at);
  return arg.elements;
}

export function load(e: Emitter): void {
  e.argCount(2, 3);
  const { type, width } = vectorOf(e);
  const { code } = e;
  const source = e.arg(1);
  if (source.kind === 'address' && source.symbol?.kind === 'paramRegister') {
    if (source.offset !== 0) throw e.unsupported('a part of a scalar parameter is');
    e.push(
      { kind: 'register', register: source.symbol.register, at: source.at },
      bitsLike(type),
      'wide',
    );
    if (type.kind === 'signed' && type.bits < 32)
      code.op(type.bits === 8 ? 'i32.extend8_s' : 'i32.extend16_s');
    e.pop(e.arg(0), type, 'wide');
    return;
  }
  const parts = components(e, e.arg(0), width);
  const bytes = type.bits / 8;
  const strong = STRONG.some((word) => e.has(word));
  const space = accessSpace(e);
  const place = checkedPlace(e, source, bytes * width, space);
  // A vector is one access for each of its elements; 128 bits are one access.
  const whole = e.type().bits > 64;
  const atomic = strong && !whole;
  const loads: number[] = [];
  asOne(e, strong && whole && space !== 'shared', () => {
    parts.forEach((part, index) => {
      if (part.kind === 'sink') return;
      code.get(place.local).memory(loadName(type, atomic), place.offset + index * bytes);
      if (atomic) {
        if (type.bits < 32 && type.kind === 'signed')
          code.op(type.bits === 8 ? 'i32.extend8_s' : 'i32.extend16_s');
        e.convertBits(integerOf(type), type.wasm);
      }
      if (parts.length === 1) {
        e.pop(part, type, 'wide');
        return;
      }
      // The address register may be among the results, so the values are loaded first.
      const value = e.temp(type.wasm);
      code.set(value);
      loads[index] = value;
    });
  });
  if (parts.length === 1) return;
  parts.forEach((part, index) => {
    if (part.kind === 'sink') return;
    code.get(loads[index]!);
    e.pop(part, type, 'wide');
  });
}

/** Untyped bits of a type's width, or the type itself if its register has it. */
function bitsLike(type: ScalarType): ScalarType {
  return type.kind === 'float' && type.bits >= 32 && !type.name.includes('x')
    ? type
    : scalarType(`b${type.bits}`);
}

export function store(e: Emitter): void {
  if (e.has('bulk')) {
    fill(e);
    return;
  }
  const signals = e.has('mbarrier::complete_tx::bytes');
  e.argCount(signals ? 3 : 2, 3);
  const { type, width } = vectorOf(e);
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
  const parts = components(e, e.arg(1), width);
  const bytes = type.bits / 8;
  const strong = STRONG.some((word) => e.has(word));
  const space = accessSpace(e);
  const place = checkedPlace(e, target, bytes * width, space);
  const whole = e.type().bits > 64;
  const atomic = strong && !whole;
  asOne(e, strong && whole && space !== 'shared', () => {
    parts.forEach((part, index) => {
      code.get(place.local);
      e.push(part, type, signals ? 'exact' : 'wide');
      if (atomic) e.convertBits(type.wasm, integerOf(type));
      code.memory(storeName(type, atomic), place.offset + index * bytes);
    });
  });
  if (signals)
    completeTransaction(e, e.arg(2), () => {
      code.i32(bytes * width);
    });
}

/** st.bulk: writes zeros to a range whose length is known at run time. */
function fill(e: Emitter): void {
  const { code } = e;
  e.argCount(3);
  const bytes = e.temp('i32');
  e.push(e.arg(1), scalarType('b64'), 'wide');
  code.op('i32.wrap_i64').set(bytes);
  const at = checkedRange(e, e.arg(0), bytes, 8, 'shared');
  code.get(at).i32(0).get(bytes).op('memory.fill').byte(0);
}

/** Prefetches and hints. */
export const nothing = (): void => {};

/**
 * isspacep: all spaces are ranges of one memory, and an address in none of the others is global.
 */
export function isSpace(e: Emitter): void {
  const { code } = e;
  e.argCount(2);
  const address = e.temp('i64');
  const arg = e.arg(1);
  const narrow = arg.kind === 'register' && arg.register.type.bits === 32;
  e.push(arg, scalarType(narrow ? 'u32' : 'u64'));
  if (narrow) code.op('i64.extend_i32_u');
  code.set(address);
  /** from <= address < end, of two pushed i32 */
  const within = (from: () => void, end: () => void): void => {
    code.get(address);
    from();
    code.op('i64.extend_i32_u').op('i64.ge_u').get(address);
    end();
    code.op('i64.extend_i32_u').op('i64.lt_u').op('i32.and');
  };
  const field = (name: 'shared' | 'scratch' | 'params') => (): void => {
    code.get(e.contextField(name));
  };
  const data = (offset: number) => (): void => {
    code.op('global.get').u32(e.around.linker.globalIndex('dataBase'));
    if (offset) code.i32(offset).op('i32.add');
  };
  const tests = {
    shared: () => {
      within(field('shared'), () => {
        code.get(e.contextField('shared')).get(e.contextField('sharedBytes')).op('i32.add');
      });
    },
    cluster: () => {
      code.get(e.ctx).get(address);
      e.call('is_cluster_shared');
    },
    local: () => {
      within(field('scratch'), () => {
        e.pushLocalEnd();
      });
    },
    const: () => {
      within(data(e.around.data.constants.from), data(e.around.data.constants.to));
    },
    param: () => {
      within(field('params'), () => {
        code.get(e.contextField('params'));
        if (e.paramBytes !== undefined) code.i32(e.paramBytes);
        else code.op('global.get').u32(e.around.linker.globalIndex('paramBytes'));
        code.op('i32.add');
      });
    },
  };
  const space = accessSpace(e);
  if (space === 'global') {
    tests.cluster();
    tests.local();
    code.op('i32.or');
    tests.const();
    code.op('i32.or');
    tests.param();
    code.op('i32.or');
    code.op('i32.eqz').get(address).i64(NULL_PAGE).op('i64.ge_u').op('i32.and');
  } else if (space === 'generic') {
    throw e.semantic("'isspacep' needs a state space");
  } else {
    tests[space]();
  }
  e.pop(e.arg(0), scalarType('pred'));
}

/** A policy has no effect, so all policies are zero. */
export function createPolicy(e: Emitter): void {
  e.code.i64(0);
  e.pop(e.arg(0), scalarType('b64'));
}
