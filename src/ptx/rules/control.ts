// Moves, calls, fences, and the instructions without effect.

import { ALLOCA_BYTES } from '../analysis/lowering-state.js';
import type { Arg, CallValue } from '../analysis/program.js';
import type { Emitter } from '../emit/emitter.js';
import { emitArrivalCheck, emitFenceCheck, emitCallerCheck } from '../emit/check.js';
import { callSignature, isAggregate } from '../emit/calling.js';
import { HOST_FUNCTIONS } from '../emit/linker.js';
import { FAULT } from '../context.js';
import { scalarType } from '../scalar-types.js';
import type { ScalarType } from '../scalar-types.js';
import type { Variable } from '../syntax/ast.js';

const U32 = scalarType('u32');

export function move(e: Emitter): void {
  const type = e.type();
  e.argCount(2);
  if (type.bits > 64) {
    moveWide(e);
    return;
  }
  const source = e.arg(1);
  const target = e.arg(0);
  e.push(source, type);
  e.pop(target, type);
}

/** mov.b128: two 64-bit values, a whole register or packed from parts. */
function moveWide(e: Emitter): void {
  const half = scalarType('b64');
  const [target, source] = [e.arg(0), e.arg(1)].map((arg) => {
    if (arg.kind === 'vector' && arg.elements.length === 2) return arg.elements;
    throw e.semantic('expected two 64-bit halves', arg.at);
  });
  for (const part of source!) e.push(part, half);
  for (const part of [...target!].reverse()) e.pop(part, half);
}

/** An instruction of the compiler: copies any register to any other, as bits. */
export function copy(e: Emitter): void {
  const target = e.arg(0);
  const source = e.arg(1);
  if (target.kind !== 'register') throw e.semantic('expected a register');
  const type = source.kind === 'register' ? source.register.type : target.register.type;
  e.push(source, type, 'wide');
  e.convertBits(type.wasm, target.register.type.wasm);
  e.code.set(e.registerLocal(target.register));
}

/** Pushes one argument in the calling convention: bits in i32 or i64, aggregates by address. */
function pushArgument(e: Emitter, value: CallValue, variable: Variable): void {
  const { code } = e;
  const type = scalarType(variable.type);
  switch (value.kind) {
    case 'frame':
      e.pushFrame();
      if (value.offset) code.i32(value.offset).op('i32.add');
      return;
    case 'pointer':
      code.get(e.registerLocal(value.register));
      return;
    case 'register':
      code.get(e.registerLocal(value.register));
      e.convertBits(value.register.type.wasm, type.bits === 64 ? 'i64' : 'i32');
      return;
    case 'constant': {
      const passed =
        type.wasm === 'f32' || type.wasm === 'f64'
          ? type
          : scalarType(type.bits === 64 ? 'b64' : 'b32');
      e.push(value.arg, passed);
      e.convertBits(passed.wasm, type.bits === 64 ? 'i64' : 'i32');
      return;
    }
  }
}

export function call(e: Emitter): void {
  const { code } = e;
  const site = e.inst.call!;
  if (typeof site.callee === 'string') {
    callHost(e, site.callee, site.args, site.results);
    return;
  }
  const shape = 'address' in site.callee ? site.callee.prototype : site.callee;
  if (shape.params.length !== site.args.length || shape.returns.length !== site.results.length) {
    throw e.semantic('the call does not match its prototype');
  }
  code.get(e.ctx).get(e.thread);
  e.pushStack();
  // Aggregate results are written to the address that the caller passes.
  shape.returns.forEach((variable, index) => {
    if (isAggregate(variable)) pushArgument(e, site.results[index]!, variable);
  });
  shape.params.forEach((variable, index) => {
    pushArgument(e, site.args[index]!, variable);
  });
  if ('address' in site.callee) {
    code.get(e.registerLocal(site.callee.address));
    e.convertBits(site.callee.address.type.wasm, 'i64');
    code
      .i32(e.line)
      .op('call')
      .u32(e.around.indirectCall(callSignature(shape)));
  } else {
    code.op('call').u32(e.around.functionIndex(site.callee));
  }
  const returned = shape.returns
    .map((variable, index) => ({ variable, value: site.results[index]! }))
    .filter(({ variable }) => !isAggregate(variable));
  for (const { variable, value } of returned.reverse()) {
    const from: ScalarType = scalarType(variable.type);
    if (value.kind !== 'register') throw e.semantic('a scalar result needs a register');
    e.convertBits(from.bits === 64 ? 'i64' : 'i32', value.register.type.wasm);
    code.set(e.registerLocal(value.register));
  }
  code.op('global.get').u32(e.around.linker.globalIndex('unwind'));
  e.when(() => {
    e.unwind();
  });
}

function callHost(e: Emitter, name: string, args: CallValue[], results: CallValue[]): void {
  const { code } = e;
  const host = HOST_FUNCTIONS[name]!;
  const push = (index: number, wide: boolean): void => {
    const value = args[index]!;
    if (value.kind === 'register') {
      code.get(e.registerLocal(value.register));
      e.convertBits(value.register.type.wasm, wide ? 'i64' : 'i32');
    } else if (value.kind === 'constant') {
      e.push(value.arg, scalarType(wide ? 'b64' : 'b32'));
    } else {
      throw e.unsupported('an aggregate parameter is');
    }
  };
  if (name === '__assertfail') {
    code.get(e.ctx).get(e.thread).i32(e.line);
    e.call('fault_assert');
  }
  if (e.around.check) emitCallerCheck(e);
  if (name === '__assertfail') {
    // Message, file, line, function. The last argument is a character's size; the host gets the
    // thread in its place.
    for (let index = 0; index < 4; index++) push(index, false);
    code.get(e.ctx).get(e.thread);
  } else {
    host.signature.params.forEach((type, index) => {
      push(index, type === 'i64');
    });
  }
  e.call(host.importName);
  if (host.signature.results.length) {
    const value = results[0];
    if (value?.kind === 'register') {
      e.convertBits(host.signature.results[0]!, value.register.type.wasm);
      code.set(e.registerLocal(value.register));
    } else {
      code.op('drop');
    }
  }
}

export function fence(e: Emitter): void {
  if (e.around.check) emitFenceCheck(e);
  e.code.op('atomic.fence');
}

export const nothing = (): void => {};

/** bar.arrive counts this thread without waiting. */
export function arrive(e: Emitter): void {
  if (!e.has('arrive')) throw e.unsupported();
  const { code } = e;
  if (e.has('cluster')) {
    // If no thread waits at it there is no barrier.
    if (!e.waitsForCluster) return;
    code.get(e.ctx).get(e.thread);
    e.call('cluster_arrive');
    return;
  }
  if (e.around.check) emitArrivalCheck(e);
  code.get(e.ctx);
  e.push(e.arg(0), scalarType('b32'));
  code.get(e.thread);
  e.call('arrive');
}

/**
 * How much of alloca's stack is in use, and the address of that stack: the lowering adds both as
 * operands.
 */
function stackOf(e: Emitter): { top: Arg; base: Arg } {
  const [top, base] = e.inst.args.slice(-2);
  return { top: top!, base: base! };
}

/**
 * The alignment of the stack's beginning (`Lowering.allocaStack`), and the largest alignment that
 * ptxas takes.
 */
const STACK_ALIGNMENT = 16;
const LARGEST_ALIGNMENT = 1n << 23n;

export function allocate(e: Emitter): void {
  const { code } = e;
  const type = e.type();
  const { top, base } = stackOf(e);
  const alignment = e.inst.args.length === 5 ? e.arg(2) : undefined;
  if (
    alignment &&
    (alignment.kind !== 'integer' ||
      alignment.value < 1n ||
      alignment.value > LARGEST_ALIGNMENT ||
      (alignment.value & (alignment.value - 1n)) !== 0n)
  ) {
    throw e.semantic(
      `an alignment of alloca is a power of two, ${LARGEST_ALIGNMENT} at most`,
      alignment.at,
    );
  }
  const align = alignment?.kind === 'integer' ? Number(alignment.value) : 8;
  const at = e.temp('i32');
  const size = e.temp('i32');
  e.push(top, U32);
  if (align > STACK_ALIGNMENT) {
    // Then the address in memory is aligned, not the offset in the stack.
    e.push(base, U32);
    code
      .op('i32.add')
      .i32(align - 1)
      .op('i32.add')
      .i32(-align)
      .op('i32.and');
    e.push(base, U32);
    // Past the stack's end none of it is left, and every size is too large.
    code
      .op('i32.sub')
      .tee(at)
      .i32(ALLOCA_BYTES)
      .get(at)
      .i32(ALLOCA_BYTES)
      .op('i32.lt_u')
      .op('select')
      .set(at);
  } else {
    code
      .i32(align - 1)
      .op('i32.add')
      .i32(-align)
      .op('i32.and')
      .set(at);
  }
  e.push(e.arg(1), type);
  if (type.wasm === 'i64') {
    // A size that does not fit 32 bits does not fit the stack either.
    const wide = e.temp('i64');
    code
      .set(wide)
      .get(wide)
      .i64(0xffffffffn)
      .get(wide)
      .i64(0xffffffffn)
      .op('i64.lt_u')
      .op('select')
      .op('i32.wrap_i64');
  }
  code.tee(size).i32(ALLOCA_BYTES).get(at).op('i32.sub').op('i32.gt_u');
  e.when(() => {
    code.get(e.ctx).i32(FAULT.stackOverflow).get(e.thread).i32(e.line).i64(0);
    e.call('fault');
    e.leaveFaulted();
  });
  code.get(at).get(size).op('i32.add');
  e.pop(top, U32);
  e.push(base, scalarType('b32'));
  code.get(at).op('i32.add');
  if (type.wasm === 'i64') code.op('i64.extend_i32_u');
  e.pop(e.arg(0), type);
}

/** stacksave gives the address of the next allocation; stackrestore takes it. */
export function saveStack(e: Emitter): void {
  const { code } = e;
  const type = e.type();
  const { top, base } = stackOf(e);
  e.push(base, U32);
  e.push(top, U32);
  code.op('i32.add');
  if (type.wasm === 'i64') code.op('i64.extend_i32_u');
  e.pop(e.arg(0), type);
}

export function restoreStack(e: Emitter): void {
  const { code } = e;
  const type = e.type();
  const { top, base } = stackOf(e);
  e.push(e.arg(0), type);
  if (type.wasm === 'i64') code.op('i32.wrap_i64');
  e.push(base, U32);
  code.op('i32.sub');
  e.pop(top, U32);
}
