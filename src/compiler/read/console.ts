/** console.log as printf, console.assert as an assertion. */
import type { Expression } from '../tree.js';
import { arity, number, statement, type Call } from './calls.js';
import { convert } from './nodes.js';
import { concrete, nothing, type Value } from './values.js';
import type { ValueType } from '../tree.js';
import { truth } from './operands.js';

/** The conversion of printf for each type, and the type in which the value is passed. */
const formats: Readonly<Record<ValueType, readonly [format: string, type: ValueType]>> = {
  bool: ['%d', 'i32'],
  i32: ['%d', 'i32'],
  u32: ['%u', 'u32'],
  i64: ['%lld', 'i64'],
  u64: ['%llu', 'u64'],
  f32: ['%g', 'f64'],
  f64: ['%g', 'f64'],
};

export const consoleFunctions: Readonly<Record<string, (call: Call) => Value>> = {
  log: (call) => {
    const values: Expression[] = [];
    const pieces = call.args.map((arg, at) => {
      if (arg.kind === 'string') return arg.value.replaceAll('%', '%%');
      const value = concrete(number(call, at));
      const [format, type] = formats[value.type];
      values.push(convert(value, type));
      return format;
    });
    return statement(call, (span) => ({
      kind: 'print',
      format: `${pieces.join(' ')}\n`,
      values,
      span,
    }));
  },
  assert: (call) => {
    const { pass, args, argNodes } = call;
    arity(call, 1, 2);
    const [, message] = args;
    if (message !== undefined && message.kind !== 'string')
      pass.fail(
        argNodes[1]!,
        'The message of console.assert has to be a string',
        "Write console.assert(i < n, 'i is beyond n').",
      );
    const test = truth(number(call, 0));
    if (test.op === 'constant' && test.value === true) return nothing;
    return statement(call, (span) => ({
      kind: 'assert',
      test,
      message: message?.kind === 'string' ? message.value : 'Assertion failed',
      span,
    }));
  },
};
