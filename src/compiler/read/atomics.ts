/** Atomics; loads and stores that are ordered with other threads'; streaming loads and stores. */
import type { Expression, Place, StorageType, ValueType } from '../tree.js';
import { arity, emitOnce, integer, number, statement, type Call } from './calls.js';
import { placeIn } from './places.js';
import { isFloat, isInteger, readAs, settled } from './types.js';
import { describe, inStorage, typed, type Value } from './values.js';
import { callText } from './reading.js';

type Operator = (Expression & { op: 'atomic' })['operator'];

/** The storage types of each operator. A device compares and exchanges at least 16 bits. */
const whole: readonly StorageType[] = ['i16', 'u16', 'i32', 'u32', 'i64', 'u64'];
const single: readonly StorageType[] = [...whole, 'f16', 'bf16', 'f32', 'f64'];
const allowed: Readonly<Record<Operator, readonly StorageType[]>> = {
  add: single,
  min: single,
  max: single,
  and: whole,
  or: whole,
  xor: whole,
  exch: single,
  cas: single,
};

/** The element of the first two arguments. */
function target(call: Call, access: 'read' | 'write'): Place {
  const { pass, node, argNodes, args, name } = call;
  const value = args[0];
  if (value?.kind !== 'tensor' && value?.kind !== 'array') {
    return pass.fail(
      argNodes[0] ?? node,
      `${name} takes a tensor or an array, its index and a value, and got ` +
        `${value === undefined ? 'nothing' : describe(value)}`,
      `Write ${name}(y, i, …), not ${name}(y[i], …).`,
    );
  }
  return placeIn(pass, node, value, number(call, 1), argNodes[1] ?? node, access);
}

/** A value of that element's type. */
function operand(call: Call, at: number, storage: StorageType): Expression {
  const type: ValueType = readAs[storage];
  const value = number(call, at);
  if (isInteger(type) || type === 'bool') return integer(call, at, type);
  if (settled(value.level) === 'f64' && type === 'f32') {
    const node = call.argNodes[at] ?? call.node;
    call.pass.fail(
      node,
      `${call.name} changes ${storage}, and the value is f64`,
      `Write gpu.${storage === 'f16' || storage === 'bf16' ? storage : 'f32'}` +
        `(${call.pass.code(node)}).`,
    );
  }
  return inStorage(value, storage);
}

/**
 * Minimum and maximum of elements for which the device has no instruction: a loop of
 * compare-and-exchange. It compares bits, because -0 equals 0.
 */
const loops: Partial<Record<Operator, string>> = Object.fromEntries(
  (['<', '>'] as const).map((than) => [
    than === '<' ? 'min' : 'max',
    `(y, i, value, gpu) => { let seen = gpu.volatileLoad(y, i); while (value ${than} seen) { ` +
      'const before = gpu.atomicCompareExchange(y, i, seen, value); if (gpu.bits(before) === ' +
      'gpu.bits(seen)) break; seen = before; } return seen; }',
  ]),
);

/** What to write where an operator does not support these elements. */
function insteadOf(operator: Operator, storage: StorageType): string {
  if (!isFloat(readAs[storage]))
    return 'Use elements of 16 bits or more for what is changed together.';
  return operator !== 'cas' && allowed.cas.includes(storage)
    ? 'For floats use gpu.atomicCompareExchange in a loop.'
    : 'Use f16, bf16 or f32 for what is changed together.';
}

function atomic(operator: Operator) {
  return (call: Call): Value => {
    const values = operator === 'cas' ? 2 : 1;
    arity(call, 2 + values);
    const place = target(call, 'write');
    const { pass, node, name } = call;
    if (!allowed[operator].includes(place.storage)) {
      pass.fail(
        node,
        `${name} cannot change ${place.storage}: it is for ${allowed[operator].join(', ')}`,
        insteadOf(operator, place.storage),
      );
    }
    const loop = isFloat(place.storage as ValueType) ? loops[operator] : undefined;
    if (loop !== undefined)
      return callText(pass, node, name, loop, [
        call.args[0]!,
        call.args[1]!,
        typed(operand(call, 2, place.storage)),
      ]);
    const compare = operator === 'cas' ? operand(call, 2, place.storage) : undefined;
    return emitOnce(
      call,
      {
        op: 'atomic',
        operator,
        type: readAs[place.storage],
        place,
        operand: operand(call, operator === 'cas' ? 3 : 2, place.storage),
        scope: 'device',
        span: pass.span(node),
        ...(compare !== undefined && { compare }),
      },
      'before',
    );
  };
}

function loading(cache: 'volatile' | 'streaming') {
  return (call: Call): Value => {
    arity(call, 2);
    const place = target(call, 'read');
    return emitOnce(
      call,
      { op: 'load', type: readAs[place.storage], place, cache, span: call.pass.span(call.node) },
      'seen',
    );
  };
}

function storing(cache: 'volatile' | 'streaming') {
  return (call: Call): Value => {
    arity(call, 3);
    const place = target(call, 'write');
    const value = operand(call, 2, place.storage);
    return statement(call, (span) => ({ kind: 'store', place, value, cache, span }));
  };
}

export const atomicFunctions: Readonly<Record<string, (call: Call) => Value>> = {
  atomicAdd: atomic('add'),
  atomicMin: atomic('min'),
  atomicMax: atomic('max'),
  atomicAnd: atomic('and'),
  atomicOr: atomic('or'),
  atomicXor: atomic('xor'),
  atomicExchange: atomic('exch'),
  atomicCompareExchange: atomic('cas'),
  volatileLoad: loading('volatile'),
  volatileStore: storing('volatile'),
  streamingLoad: loading('streaming'),
  streamingStore: storing('streaming'),
};
