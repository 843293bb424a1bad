/** Casts (`gpu.i32(x)` and the others), and the bits of floats. */
import { castStorages } from '../storage-types.js';
import type { Expression, StorageType, ValueType } from '../tree.js';
import { arity, number, type Call } from './calls.js';
import { constant, convert } from './nodes.js';
import { isFloat, readAs, settled } from './types.js';
import { inStorage, inType, typed, type NumberValue, type Value } from './values.js';
import { failNegated, truth } from './operands.js';

/** Bounds of integers, for saturation. */
const bounds: Partial<Record<ValueType, readonly [bigint, bigint]>> = {
  i32: [-(2n ** 31n), 2n ** 31n - 1n],
  u32: [0n, 2n ** 32n - 1n],
  i64: [-(2n ** 63n), 2n ** 63n - 1n],
  u64: [0n, 2n ** 64n - 1n],
};

/**
 * A literal with a fraction as an integer: truncated, saturated, and 0 for NaN, as for a conversion
 * of any float.
 */
function whole(value: NumberValue, type: ValueType): Expression {
  const { content } = value;
  if (content.is !== 'literal') return convert(inType(value, 'f32'), type);
  const [least, most] = bounds[type]!;
  const number = Number(content.value);
  const cut = Number.isNaN(number)
    ? 0n
    : number >= Number(most)
      ? most
      : number <= Number(least)
        ? least
        : BigInt(Math.trunc(number));
  return constant(cut, type, content.span);
}

function cast(storage: StorageType) {
  return (call: Call): Value => {
    arity(call, 1);
    const value = number(call, 0);
    const type = readAs[storage];
    if (isFloat(type)) failNegated(call.pass, call.node, value);
    const expression =
      value.level === 'fraction' && !isFloat(type) ? whole(value, type) : inStorage(value, storage);
    if (storage === type) return typed(expression);
    return typed({
      op: 'narrow',
      type,
      storage,
      operand: expression,
      span: call.pass.span(call.node),
    });
  };
}

/**
 * A value that is kept in an f32 until it is written to elements of a narrow float: for kernels
 * that the compiler itself writes.
 */
export function asNarrowFloat(call: Call): Value {
  const value = number(call, 0);
  failNegated(call.pass, call.argNodes[0] ?? call.node, value);
  return typed(inStorage(value, 'f16'));
}

export const castFunctions: Readonly<Record<string, (call: Call) => Value>> = {
  ...Object.fromEntries(castStorages.map((storage) => [storage, cast(storage)])),
  bool: (call) => {
    arity(call, 1);
    return typed(truth(number(call, 0)));
  },
};

const bitsOf: Partial<Record<ValueType, ValueType>> = { f32: 'u32', f64: 'u64' };
const floatOf: Partial<Record<ValueType, ValueType>> = {
  i32: 'f32',
  u32: 'f32',
  i64: 'f64',
  u64: 'f64',
};

export function toBits(call: Call): Value {
  arity(call, 1);
  const value = number(call, 0);
  const own = settled(value.level);
  const literal = value.level === 'int' || value.level === 'int32u' || value.level === 'int64';
  const type = literal || bitsOf[own] === undefined ? 'f32' : own;
  const bits = bitsOf[type]!;
  // In `let m = 0; … gpu.bits(m); … m = x[i]` a variable that starts as an integer may become a
  // float.
  if (!literal && bitsOf[own] === undefined)
    call.pass.failUnlessTypesChange(
      call.argNodes[0]!,
      `${call.name} takes a float, and got ${own}`,
      `An integer's bits are its value; for the bits of its float write ` +
        `gpu.bits(gpu.f32(${call.pass.code(call.argNodes[0]!)})).`,
    );
  return typed({
    op: 'bitcast',
    type: bits,
    operand: inType(value, type),
    span: call.pass.span(call.node),
  });
}

export function fromBits(call: Call): Value {
  arity(call, 1);
  const value = number(call, 0);
  // 0xff800000 alone is an i64; here it stands for 32 bits.
  const own = value.level === 'int32u' ? 'u32' : settled(value.level);
  const float = floatOf[own];
  if (float === undefined)
    return call.pass.fail(
      call.argNodes[0]!,
      `${call.name} takes an integer's bits, and got ${own}`,
      'Give it an i32 or a u32 for f32, an i64 or a u64 for f64.',
    );
  return typed({
    op: 'bitcast',
    type: float,
    operand: inType(value, own),
    span: call.pass.span(call.node),
  });
}
