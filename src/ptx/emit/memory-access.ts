// Addresses. Every access is checked for the null page, the end of memory and its natural alignment
// with one unsigned comparison: subtracting the lower limit and rotating right by log2(size) gives
// an element index that a misaligned address makes enormous.

import type { Arg, Symbol } from '../analysis/program.js';
import { CTX, NULL_PAGE } from '../context.js';
import { scalarType } from '../scalar-types.js';
import { emitAccessCheck } from './check.js';
import type { Emitter } from './emitter.js';
import type { AccessSpace, Place } from './place.js';

const U32 = scalarType('u32');
const U64 = scalarType('u64');

/** The number of elements of 2^log2 bytes in global memory after the null page. */
export function elements(e: Emitter, log2: number, wasm: 'i32' | 'i64'): number {
  return e.hoist(`elements:${log2}:${wasm}`, wasm, (code) => {
    // 0 stands for 4 GiB: top - 1 as unsigned 32 bits, plus 1.
    code
      .get(e.ctx)
      .memory('i32.load', CTX.memoryTop)
      .i32(1)
      .op('i32.sub')
      .op('i64.extend_i32_u')
      .i64(1)
      .op('i64.add');
    code.i64(NULL_PAGE).op('i64.sub').i64(log2).op('i64.shr_u');
    if (wasm === 'i32') code.op('i32.wrap_i64');
  });
}

export function sharedElements(e: Emitter, log2: number): number {
  return e.hoist(`sharedElements:${log2}`, 'i32', (code) => {
    code.get(e.ctx).memory('i32.load', CTX.sharedBytes).i32(log2).op('i32.shr_u');
  });
}

/** The fault path; the condition is on the stack. */
function faultWhen(e: Emitter, pushAddress: () => void, size: number): void {
  const { code } = e;
  e.when(() => {
    code.get(e.ctx).get(e.thread);
    pushAddress();
    code.i32(size);
    e.pushLine();
    e.call('fault_memory');
    e.leaveFaulted();
  });
}

const isShared = (space: AccessSpace): boolean => space === 'shared' || space === 'cluster';

/** Pushes the beginning of the shared memory of the cluster's block to which an address belongs. */
function pushSharedOf(e: Emitter, pushAddress: () => void): void {
  e.code.get(e.ctx);
  pushAddress();
  e.call('shared_of');
}

/** Checks an address operand for an access of `size` bytes. */
export function checkedPlace(e: Emitter, arg: Arg, size: number, space: AccessSpace): Place {
  const place = boundedPlace(e, arg, size, space);
  if (e.around.check) emitAccessCheck(e, place, arg, size, space);
  return place;
}

/**
 * True if a variable may be named as an address of a space; generic addresses may be of any space
 * but parameters.
 */
function isIn(symbol: Symbol, space: AccessSpace): boolean {
  switch (symbol.kind) {
    case 'data':
      return space === 'generic' || space === symbol.space;
    case 'shared':
      return space === 'generic' || isShared(space);
    case 'entryParam':
      return space === 'param';
    default:
      return space !== 'global' && space !== 'const' && !isShared(space);
  }
}

/** The same for an instruction that reports its accesses itself. */
export function boundedPlace(e: Emitter, arg: Arg, size: number, space: AccessSpace): Place {
  if (arg.kind !== 'address') throw e.semantic('expected an address in brackets', arg.at);
  const { code } = e;
  const log2 = Math.log2(size);
  const local = e.temp('i32');
  const { base, symbol, offset } = arg;
  if (symbol && !isIn(symbol, space)) throw e.semantic('the variable is in another space', arg.at);
  if (symbol) {
    const known = staticPlace(e, arg, size, local);
    if (known) return known;
    e.pushSymbol(symbol, 0, 'i64', arg.at);
  } else if (!base) {
    code.i64(BigInt(offset));
  } else if (base.type.bits === 32) {
    // A 32-bit address is usually one of shared memory.
    code.get(e.registerLocal(base));
    e.convertBits(base.type.wasm, 'i32');
    if (offset) code.i32(offset).op('i32.add');
    code.tee(local);
    if (space === 'shared') code.get(e.contextField('shared'));
    else if (space === 'cluster')
      pushSharedOf(e, () => {
        code.get(local).op('i64.extend_i32_u');
      });
    else code.i32(NULL_PAGE);
    code.op('i32.sub');
    if (log2) code.i32(log2).op('i32.rotr');
    code.get(isShared(space) ? sharedElements(e, log2) : elements(e, log2, 'i32')).op('i32.ge_u');
    faultWhen(
      e,
      () => {
        code.get(local).op('i64.extend_i32_u');
      },
      size,
    );
    return { local, offset: 0 };
  } else if (base.type.bits === 64) {
    code.get(e.registerLocal(base));
    e.convertBits(base.type.wasm, 'i64');
  } else {
    throw e.semantic(
      `'${base.name}' is .${base.type.name}, an address needs 32 or 64 bits`,
      arg.at,
    );
  }
  if ((base || symbol) && offset) code.i64(offset).op('i64.add');
  return checkedAddress(e, size, space);
}

/** Checks the i64 address on the stack for an access of `size` bytes. */
export function checkedAddress(e: Emitter, size: number, space: AccessSpace): Place {
  const { code } = e;
  const log2 = Math.log2(size);
  const local = e.temp('i32');
  const address = e.temp('i64');
  code.tee(address);
  if (space === 'shared') code.get(e.contextField('shared')).op('i64.extend_i32_u');
  else if (space === 'cluster') {
    pushSharedOf(e, () => {
      code.get(address);
    });
    code.op('i64.extend_i32_u');
  } else code.i64(NULL_PAGE);
  code.op('i64.sub');
  if (log2) code.i64(log2).op('i64.rotr');
  if (isShared(space)) code.get(sharedElements(e, log2)).op('i64.extend_i32_u');
  else code.get(elements(e, log2, 'i64'));
  code.op('i64.ge_u');
  faultWhen(
    e,
    () => {
      code.get(address);
    },
    size,
  );
  code.get(address).op('i32.wrap_i64').set(local);
  return { local, offset: 0 };
}

/** Checks an access whose bytes are in a local, and returns the local of its address. */
export function checkedRange(
  e: Emitter,
  arg: Arg,
  bytes: number,
  align: number,
  space: 'shared' | 'cluster' | 'generic',
): number {
  const { code } = e;
  if (arg.kind !== 'address') throw e.semantic('expected an address in brackets', arg.at);
  const address = e.temp('i64');
  const local = e.temp('i32');
  if (arg.base)
    e.push(
      { kind: 'register', register: arg.base, at: arg.at },
      arg.base.type.bits === 64 ? U64 : U32,
      'wide',
    );
  if (arg.base && arg.base.type.bits !== 64) code.op('i64.extend_i32_u');
  else if (arg.symbol) e.pushSymbol(arg.symbol, 0, 'i64', arg.at);
  else if (!arg.base) code.i64(0);
  code.i64(arg.offset).op('i64.add').set(address);
  code.get(e.ctx).get(e.thread).get(address).get(bytes).i32(align);
  if (isShared(space)) {
    const window = e.temp('i64');
    if (space === 'shared') code.get(e.contextField('shared'));
    else
      pushSharedOf(e, () => {
        code.get(address);
      });
    code
      .op('i64.extend_i32_u')
      .tee(window)
      .get(window)
      .get(e.contextField('sharedBytes'))
      .op('i64.extend_i32_u')
      .op('i64.add');
  } else {
    code
      .i64(NULL_PAGE)
      .get(elements(e, 0, 'i64'))
      .i64(NULL_PAGE)
      .op('i64.add');
  }
  code.i32(e.line);
  e.call('check_range');
  e.when(() => {
    e.leaveFaulted();
  });
  code.get(address).op('i32.wrap_i64').set(local);
  // copy_masked reports only the bytes that the mask selects.
  if (e.around.check && !(e.has('cp_mask') && arg === e.inst.args[0]))
    emitAccessCheck(
      e,
      { local, offset: 0 },
      arg,
      () => {
        code.get(bytes);
      },
      space,
    );
  return local;
}

/** Places that are known to be valid at compile time. */
function staticPlace(
  e: Emitter,
  arg: Arg & { kind: 'address' },
  size: number,
  local: number,
): Place | undefined {
  const { symbol, offset } = arg;
  const { code } = e;
  if (!symbol || offset < 0 || offset % size !== 0) return undefined;
  switch (symbol.kind) {
    case 'entryParam':
      if (offset + size > symbol.size)
        throw e.semantic('access past the end of the parameter', arg.at);
      return { local: e.contextField('params'), offset: symbol.offset + offset };
    case 'shared': {
      const { variable } = symbol;
      if (variable.dynamic || offset + size > variable.size || variable.align % size !== 0)
        return undefined;
      return { local: e.contextField('shared'), offset: e.around.sharedOffset(variable) + offset };
    }
    case 'frame':
      e.pushFrame();
      code.set(local);
      return { local, offset: symbol.offset + offset };
    case 'incoming':
      return { local: e.registerLocal(symbol.pointer), offset };
    default:
      return undefined;
  }
}

/** Pushes an address operand as an i64, with all of its bits and without a check. */
export function pushWideAddress(e: Emitter, arg: Arg): void {
  const { code } = e;
  if (arg.kind !== 'address') throw e.semantic('expected an address in brackets', arg.at);
  const { base, symbol, offset } = arg;
  if (base) {
    code.get(e.registerLocal(base));
    e.convertBits(base.type.wasm, 'i64');
  } else if (symbol) {
    e.pushSymbol(symbol, 0, 'i64', arg.at);
  } else {
    code.i64(0);
  }
  if (offset) code.i64(offset).op('i64.add');
}

/** Pushes an address operand as a flat i32 without checking it. */
export function pushUncheckedAddress(e: Emitter, arg: Arg): void {
  if (arg.kind === 'address') {
    if (arg.base)
      e.push(
        { kind: 'register', register: arg.base, at: arg.at },
        arg.base.type.bits === 64 ? U64 : U32,
        'wide',
      );
    else if (arg.symbol) e.pushSymbol(arg.symbol, 0, 'i64', arg.at);
    else e.code.i64(0);
    if (!arg.base || arg.base.type.bits === 64) e.code.op('i32.wrap_i64');
    if (arg.offset) e.code.i32(arg.offset).op('i32.add');
    return;
  }
  throw e.semantic('expected an address in brackets', arg.at);
}
