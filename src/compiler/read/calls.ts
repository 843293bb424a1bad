/** A call of a function of the language, and conversions of its arguments. */
import type { AnyNode } from 'acorn';
import type { Expression, Span, ValueType } from '../tree.js';
import { constant } from './nodes.js';
import type { Pass } from './pass.js';
import { isFloat, settled } from './types.js';
import {
  constantOf,
  describe,
  inType,
  nothing,
  typed,
  type NumberValue,
  type Value,
} from './values.js';
import { wholeOperand } from './operands.js';

export interface Call {
  readonly pass: Pass;
  readonly node: AnyNode;
  /** The function as it was written, for messages: `Math.max`, `gpu.warp.sum`. */
  readonly name: string;
  readonly args: readonly Value[];
  readonly argNodes: readonly AnyNode[];
}

/** Rejects calls with fewer or more arguments. */
export function arity({ pass, node, name, args }: Call, least: number, most = least): void {
  if (args.length >= least && args.length <= most) return;
  const expected = least === most ? `${least}` : `${least} to ${most}`;
  pass.fail(
    node,
    `${name} takes ${expected} argument${most === 1 ? '' : 's'}, and got ${args.length}`,
    `Give it ${expected}.`,
  );
}

/** The argument as a number. */
export function number({ pass, node, name, args, argNodes }: Call, at: number): NumberValue {
  const value = args[at];
  if (value?.kind === 'number') return value;
  return pass.fail(
    argNodes[at] ?? node,
    `Argument ${at + 1} of ${name} is ${value === undefined ? 'missing' : describe(value)}, ` +
      'and has to be a number',
    'Give it a number.',
  );
}

/** The argument as an integer of this type. */
export function integer(call: Call, at: number, type: ValueType): Expression {
  const value = number(call, at);
  wholeOperand(
    call.pass,
    call.argNodes[at] ?? call.node,
    value,
    `Argument ${at + 1} of ${call.name}`,
  );
  return inType(value, type);
}

/** The argument as a number that is a compile-time constant. */
export function known(call: Call, at: number): number {
  const value = constantOf(number(call, at));
  if (value !== undefined && Number.isSafeInteger(Number(value))) return Number(value);
  const node = call.argNodes[at] ?? call.node;
  return call.pass.fail(
    node,
    `Argument ${at + 1} of ${call.name} has to be known when the kernel is compiled: ` +
      `${call.pass.code(node)}`,
    'Write an integer, or give it through uses: { SIZE: 16 } and write gpu.SIZE.',
  );
}

/** The float type of the arguments: f32 for integers, else their own. */
export function floatType(...values: readonly NumberValue[]): 'f32' | 'f64' {
  return values.some(({ level }) => settled(level) === 'f64') ? 'f64' : 'f32';
}

/** The argument as an f32; f64 is rejected, because it would be rounded silently. */
export function single(call: Call, at: number): Expression {
  const value = number(call, at);
  if (value.level === 'f64') {
    const node = call.argNodes[at] ?? call.node;
    call.pass.fail(
      node,
      `${call.name} works in f32, and argument ${at + 1} is f64`,
      `Write gpu.f32(${call.pass.code(node)}).`,
    );
  }
  return inType(value, 'f32');
}

/** A warp's mask: all 32 lanes where the call gives none. */
export function maskOf(call: Call, at: number): Expression {
  return call.args[at] === undefined
    ? constant(0xffffffff, 'u32', call.pass.span(call.node))
    : integer(call, at, 'u32');
}

/** Emits an operation that runs once and in its place; its value is put into a local. */
export function emitOnce(call: Call, expression: Expression, name: string): Value {
  return typed(call.pass.save(expression, name));
}

/** Emits a statement in place of the call. */
export function statement(call: Call, emit: (span: Span) => Parameters<Pass['emit']>[0]): Value {
  call.pass.emit(emit(call.pass.span(call.node)));
  return nothing;
}

export const isFloatValue = (value: NumberValue): boolean => isFloat(settled(value.level));
