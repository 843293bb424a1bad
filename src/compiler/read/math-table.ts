/**
 * Math: functions that become nodes of the tree, functions that are written in the kernel language,
 * and constants.
 */
import type { AnyNode } from 'acorn';
import { mathsTexts } from '../maths/index.js';
import type { BinaryOperator, Expression, UnaryOperator } from '../tree.js';
import { arity, floatType, integer, isFloatValue, number, type Call } from './calls.js';
import { binary, convert, unary } from './nodes.js';
import type { Pass } from './pass.js';
import { isFloat, isUnsigned, settled } from './types.js';
import { concrete, constantOf, inType, typed, type NumberValue, type Value } from './values.js';
import { checkCommonType, commonType, literal } from './operands.js';
import { callText } from './reading.js';

export const mathConstants: Readonly<Record<string, number>> = {
  E: Math.E,
  LN10: Math.LN10,
  LN2: Math.LN2,
  LOG10E: Math.LOG10E,
  LOG2E: Math.LOG2E,
  PI: Math.PI,
  SQRT1_2: Math.SQRT1_2,
  SQRT2: Math.SQRT2,
};

/** Functions with one correct result: literals are computed at once. */
const exact = new Set([
  'abs',
  'min',
  'max',
  'floor',
  'ceil',
  'trunc',
  'round',
  'sign',
  'sqrt',
  'imul',
  'clz32',
]);

/** Functions that are written in the kernel language. */
const texts: Readonly<Record<string, string>> = {
  // Rounds to the nearest, ties up; floor(x + 0.5) would round 0.49999997 up. Zeros keep the sign
  // of x, as in JavaScript.
  round:
    '(x, gpu) => { const r = Math.floor(x); return gpu.copysign(x - r >= 0.5 ? r + 1 : r, x); }',
  sign: '(x) => x > 0 ? 1 : x < 0 ? -1 : x',
  signOfUnsigned: '(x) => x > 0 ? 1 : 0',
};

/**
 * Square root of the sum of squares, scaled by the largest so that no square overflows or
 * underflows.
 */
function hypotText(count: number): string {
  const names = Array.from({ length: count }, (_, at) => `x${at}`);
  const magnitudes = names.map((name) => `Math.abs(${name})`).join(', ');
  const squares = names
    .map((name) => `const q${name} = ${name} / m; s = q${name} * q${name} + s;`)
    .join(' ');
  const infinite = names.map((name) => `Math.abs(${name}) === Infinity`).join(' || ');
  return (
    `(${names.join(', ')}) => { if (${infinite}) return Infinity; const m = ` +
    `Math.max(${magnitudes}); if (m === 0) return m; let s = 0.0; ${squares} return m * ` +
    'Math.sqrt(s); }'
  );
}

/**
 * A quotient of integers, which `/` has truncated, rounded as JavaScript rounds the quotient with a
 * fraction.
 */
const quotientTexts: Readonly<Record<string, Readonly<Record<'signed' | 'unsigned', string>>>> = {
  floor: {
    signed: '(a, b) => { const q = a / b; return q * b !== a && (a < 0) !== (b < 0) ? q - 1 : q; }',
    unsigned: '(a, b) => a / b',
  },
  ceil: {
    signed: '(a, b) => { const q = a / b; return q * b !== a && (a < 0) === (b < 0) ? q + 1 : q; }',
    unsigned: '(a, b) => { const q = a / b; return q * b !== a ? q + 1 : q; }',
  },
};

/** Both operands, where the value is a quotient of integers. */
function quotientOf(
  value: NumberValue,
): readonly [left: Expression, right: Expression] | undefined {
  const { content } = value;
  if (
    content.is !== 'expression' ||
    content.expression.op !== 'binary' ||
    content.expression.operator !== 'div' ||
    isFloat(content.expression.type)
  )
    return undefined;
  return [content.expression.left, content.expression.right];
}

/** Floats take the instruction; integers stay the same. */
const rounding =
  (operator: UnaryOperator) =>
  (call: Call): Value => {
    arity(call, 1);
    const value = number(call, 0);
    if (isFloatValue(value))
      return typed(unary(operator, concrete(value), call.pass.span(call.node)));
    const quotient = quotientOf(value);
    const texts = quotientTexts[operator];
    if (quotient === undefined || texts === undefined)
      return typed(inType(value, commonType(value)));
    return callText(
      call.pass,
      call.node,
      call.name,
      texts[isUnsigned(quotient[0].type) ? 'unsigned' : 'signed'],
      quotient.map((side) => typed(side)),
    );
  };

const extreme =
  (operator: BinaryOperator, ofNone: number) =>
  (call: Call): Value => {
    const span = call.pass.span(call.node);
    if (call.args.length === 0) return literal(ofNone, span);
    const values = call.args.map((_, at) => number(call, at));
    const type = commonType(...values);
    checkCommonType(call.pass, call.node, values, type);
    return typed(
      values.map((value) => inType(value, type)).reduce((a, b) => binary(operator, a, b, span)),
    );
  };

/** A function that is written in the kernel language, in the float type of its arguments. */
const fromText =
  (name: string, count: number) =>
  (call: Call): Value => {
    arity(call, count);
    return callNamed(
      call,
      name,
      call.args.map((_, at) => number(call, at)),
    );
  };

function callNamed(
  { pass, node, name: shown }: Pick<Call, 'pass' | 'node' | 'name'>,
  name: string,
  values: readonly NumberValue[],
): Value {
  const type = floatType(...values);
  const text = Object.hasOwn(mathsTexts, name) ? mathsTexts[name]![type] : undefined;
  if (text === undefined) {
    return pass.fail(
      node,
      `${shown} is not supported in a kernel for ${type}`,
      type === 'f64'
        ? 'Compute it in f32: gpu.f32(…).'
        : 'Write it as a device function and give it through uses.',
    );
  }
  return callText(
    pass,
    node,
    `${shown} (${type})`,
    text,
    values.map((value) => typed(inType(value, type))),
  );
}

const table: Readonly<Record<string, (call: Call) => Value>> = {
  abs: (call) => {
    arity(call, 1);
    const value = number(call, 0);
    const type = commonType(value);
    return typed(
      isUnsigned(type)
        ? inType(value, type)
        : unary('abs', inType(value, type), call.pass.span(call.node)),
    );
  },
  min: extreme('min', Infinity),
  max: extreme('max', -Infinity),
  floor: rounding('floor'),
  ceil: rounding('ceil'),
  trunc: rounding('trunc'),
  round: (call) => {
    arity(call, 1);
    const value = number(call, 0);
    if (isFloatValue(value))
      return callText(call.pass, call.node, call.name, texts.round!, [typed(concrete(value))]);
    if (quotientOf(value) !== undefined) {
      const code = call.pass.code(call.argNodes[0] ?? call.node);
      call.pass.failUnlessTypesChange(
        call.node,
        'A quotient of whole numbers is whole, and nothing is left to round: ' +
          `${call.pass.code(call.node)}`,
        `Divide floats, as in gpu.f32(a) / b, or cut off by ${code}.`,
      );
    }
    return typed(inType(value, commonType(value)));
  },
  sign: (call) => {
    arity(call, 1);
    const value = number(call, 0);
    const type = commonType(value);
    return callText(
      call.pass,
      call.node,
      call.name,
      isUnsigned(type) ? texts.signOfUnsigned! : texts.sign!,
      [typed(inType(value, type))],
    );
  },
  sqrt: (call) => {
    arity(call, 1);
    const value = number(call, 0);
    return typed(unary('sqrt', inType(value, floatType(value)), call.pass.span(call.node)));
  },
  fround: (call) => {
    arity(call, 1);
    return typed(convert(inType(number(call, 0), floatType(number(call, 0))), 'f32'));
  },
  imul: (call) => {
    arity(call, 2);
    // 0x9e3779b9 stands for its bits here, and does not determine the sign.
    const type = [0, 1].some(
      (at) =>
        number(call, at).content.is !== 'literal' && settled(number(call, at).level) === 'u32',
    )
      ? 'u32'
      : 'i32';
    return typed(
      binary('mul', integer(call, 0, type), integer(call, 1, type), call.pass.span(call.node)),
    );
  },
  clz32: (call) => {
    arity(call, 1);
    return typed(unary('clz', integer(call, 0, 'i32'), call.pass.span(call.node)));
  },
  hypot: (call) => {
    if (call.args.length === 0) arity(call, 1, 16);
    const values = call.args.map((_, at) => number(call, at));
    if (values.length === 2) return callNamed(call, 'hypot', values);
    const type = floatType(...values);
    return callText(
      call.pass,
      call.node,
      call.name,
      hypotText(values.length),
      values.map((value) => typed(inType(value, type))),
    );
  },
  pow: (call) => {
    arity(call, 2);
    const [base, exponent] = [number(call, 0), number(call, 1)];
    const type = floatType(base, exponent);
    // pow also gives a square that is rounded once.
    if (constantOf(exponent) === 2) {
      const factor = call.pass.reusable(inType(base, type), 'base');
      return typed(binary('mul', factor, factor, call.pass.span(call.node)));
    }
    return callNamed(call, 'pow', [base, exponent]);
  },
  ...Object.fromEntries((['atan2'] as const).map((name) => [name, fromText(name, 2)])),
  ...Object.fromEntries(
    (
      [
        'acos',
        'acosh',
        'asin',
        'asinh',
        'atan',
        'atanh',
        'cbrt',
        'cos',
        'cosh',
        'exp',
        'expm1',
        'log',
        'log10',
        'log1p',
        'log2',
        'sin',
        'sinh',
        'tan',
        'tanh',
      ] as const
    ).map((name) => [name, fromText(name, 1)]),
  ),
};

/** Gives the function of this name, or undefined where kernels have none. */
export function mathFunction(name: string): ((call: Call) => Value) | undefined {
  if (!Object.hasOwn(table, name)) return undefined;
  return (call) => foldMath(call, name) ?? table[name]!(call);
}

function foldMath(call: Call, name: string): Value | undefined {
  if (!exact.has(name) || call.args.length === 0) return undefined;
  const values: number[] = [];
  for (const arg of call.args) {
    if (
      arg.kind !== 'number' ||
      arg.content.is !== 'literal' ||
      typeof arg.content.value === 'bigint'
    )
      return undefined;
    values.push(Number(arg.content.value));
  }
  const compute = (Math as unknown as Record<string, (...values: number[]) => number>)[name]!;
  return literal(compute(...values), call.pass.span(call.node));
}

/** Calls Math's function on numbers that were read already. */
export function callMath(
  pass: Pass,
  node: AnyNode,
  name: string,
  values: readonly NumberValue[],
): NumberValue {
  const call: Call = {
    pass,
    node,
    name: `Math.${name}`,
    args: values,
    argNodes: values.map(() => node),
  };
  const value = mathFunction(name)!(call);
  return value.kind === 'number'
    ? value
    : pass.fail(node, `Math.${name} gives no number`, 'Write something else.');
}

/** A function that kernels have beside Math's, from the same texts. */
export const textFunction = fromText;
