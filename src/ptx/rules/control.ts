// Moves, calls, fences and the instructions that do nothing here.

import type { CallValue } from '../analysis/program.js';
import type { Emitter } from '../emit/emitter.js';
import { emitArrivalCheck, emitFenceCheck, emitHostCallCheck } from '../emit/check.js';
import { callSignature, isAggregate } from '../emit/calling.js';
import { HOST_FUNCTIONS } from '../emit/linker.js';
import { FAULT } from '../context.js';
import { scalarType } from '../scalar-types.js';
import type { ScalarType } from '../scalar-types.js';
import type { Variable } from '../syntax/ast.js';
import type { RuleRow } from './rule.js';

function move(e: Emitter): void {
  const type = e.type();
  e.argCount(2);
  if (e.has('v2') || e.has('v4')) throw e.unsupported('moving vectors is');
  const source = e.arg(1);
  const target = e.arg(0);
  // An untyped 32- or 64-bit number in a float move is its bits; addresses and clocks may be wider than the target.
  if (source.kind === 'integer' && type.kind === 'float' && type.wasm !== 'i32') {
    e.push(source, scalarType(`b${type.bits}`));
    e.convertBits(type.bits === 64 ? 'i64' : 'i32', type.wasm);
  } else {
    e.push(source, type);
  }
  e.pop(target, type);
}

/** Our own: any register into any other, as bits. */
function copy(e: Emitter): void {
  const target = e.arg(0);
  const source = e.arg(1);
  if (target.kind !== 'register') throw e.semantic('expected a register');
  const type = source.kind === 'register' ? source.register.type : target.register.type;
  e.push(source, type, 'wide');
  e.convertBits(type.wasm, target.register.type.wasm);
  e.code.set(e.registerLocal(target.register));
}

/** Pushes one argument the way calls pass it: bits in i32 or i64, aggregates by address. */
function pushArgument(e: Emitter, value: CallValue, variable: Variable): void {
  const { code } = e;
  const type = scalarType(variable.type);
  switch (value.kind) {
    case 'frame':
      e.pushFrame();
      if (value.offset) code.i32(value.offset).op('i32.add');
      return;
    case 'pointer': code.get(e.registerLocal(value.register)); return;
    case 'register':
      code.get(e.registerLocal(value.register));
      e.convertBits(value.register.type.wasm, type.bits === 64 ? 'i64' : 'i32');
      return;
    case 'constant': {
      const bits = scalarType(type.bits === 64 ? 'b64' : 'b32');
      e.push(value.arg, value.arg.kind === 'float' ? bits : bits);
      return;
    }
  }
}

function call(e: Emitter): void {
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
  // Aggregate results are written where the caller points.
  shape.returns.forEach((variable, index) => { if (isAggregate(variable)) pushArgument(e, site.results[index]!, variable); });
  shape.params.forEach((variable, index) => { pushArgument(e, site.args[index]!, variable); });
  if ('address' in site.callee) {
    code.get(e.registerLocal(site.callee.address));
    e.convertBits(site.callee.address.type.wasm, 'i64');
    code.i32(e.line).op('call').u32(e.around.indirectCall(callSignature(shape)));
  } else {
    code.op('call').u32(e.around.functionIndex(site.callee));
  }
  const returned = shape.returns.map((variable, index) => ({ variable, value: site.results[index]! })).filter(({ variable }) => !isAggregate(variable));
  for (const { variable, value } of returned.reverse()) {
    const from: ScalarType = scalarType(variable.type);
    if (value.kind !== 'register') throw e.semantic('a scalar result needs a register');
    e.convertBits(from.bits === 64 ? 'i64' : 'i32', value.register.type.wasm);
    code.set(e.registerLocal(value.register));
  }
  code.op('global.get').u32(e.around.linker.globalIndex('unwind'));
  e.when(() => { e.unwind(); });
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
    // message, file, line, function, character size
    code.get(e.ctx).i32(FAULT.assert).get(e.thread).i32(e.line);
    push(0, true);
    e.call('fault');
  }
  if (e.around.check) emitHostCallCheck(e);
  host.signature.params.forEach((type, index) => { push(index, type === 'i64'); });
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
  if (name === '__assertfail') e.leaveFaulted();
}

function fence(e: Emitter): void {
  if (e.around.check) emitFenceCheck(e);
  e.code.op('atomic.fence');
}

const nothing = (): void => {};

/** bar.arrive counts this thread without waiting. */
function arrive(e: Emitter): void {
  if (!e.has('arrive')) throw e.unsupported();
  const { code } = e;
  if (e.around.check) emitArrivalCheck(e);
  code.get(e.ctx);
  e.push(e.arg(0), scalarType('b32'));
  e.call('arrive');
}


export const CONTROL_RULES: readonly RuleRow[] = [
  ['mov', move], ['copy', copy], ['call', call],
  ['membar', fence], ['fence', fence], ['bar', arrive], ['barrier', arrive],
  ['nanosleep', nothing], ['brkpt', nothing], ['pmevent', nothing], ['setmaxnreg', nothing], ['griddepcontrol', nothing],
];
