// Test only: runs the subset of the kernel language that the texts of this folder use. Types are
// found as reading finds them; what could be read in two ways (a conditional of two literals, two
// products in one sum) is refused, so that the texts avoid it.
import {
  parse,
  type AnyNode,
  type Expression,
  type Pattern,
  type Program,
  type SpreadElement,
  type Statement,
  type Super,
  type PrivateIdentifier,
} from 'acorn';
import { fusedExactly } from './exact-reals.test-support.js';

export type TextType = 'bool' | 'i32' | 'u32' | 'i64' | 'u64' | 'f32' | 'f64';

/** A language in which a text is written out. Codes are those of the named types. */
export interface Dialect {
  constant(type: TextType, value: number | bigint): string;
  /**
   * Both operands and the result have one type, except for shifts: the count is a 32-bit integer.
   */
  binary(operator: string, type: TextType, left: string, right: string): string;
  compare(operator: string, type: TextType, left: string, right: string): string;
  logical(operator: string, left: string, right: string): string;
  conditional(test: string, then: string, otherwise: string): string;
  unary(operator: string, type: TextType, operand: string): string;
  fma(type: TextType, a: string, b: string, c: string): string;
  /**
   * A function of one type: sqrt, abs, floor, trunc, min, max, mulhi, clz, copysign. `clz` gives
   * i32.
   */
  call(name: string, type: TextType, operands: readonly string[]): string;
  convert(from: TextType, to: TextType, operand: string): string;
  bitcast(from: TextType, to: TextType, operand: string): string;
  declare(type: TextType, name: string, value: string): string;
  define(name: string, type: TextType, params: readonly string[], body: string): string;
}

/** `literal`: it takes the type of the other operand; `fraction`: only a float type. */
type Found =
  | { readonly type: TextType; readonly code: string; readonly product?: readonly [string, string] }
  | { readonly type: 'literal' | 'fraction'; readonly value: number | bigint };
type Typed = Extract<Found, { code: string }>;

const floats = new Set<string>(['f32', 'f64']);
const bitsOf: Readonly<Record<string, TextType>> = { f32: 'u32', f64: 'u64' };
const fromBitsOf: Readonly<Record<string, TextType>> = {
  u32: 'f32',
  i32: 'f32',
  u64: 'f64',
  i64: 'f64',
};
const unsigned: Readonly<Record<string, TextType>> = {
  i32: 'u32',
  i64: 'u64',
  u32: 'u32',
  u64: 'u64',
};
const constants: Readonly<Record<string, number>> = { Infinity, NaN };
const casts = new Set<string>(['i32', 'u32', 'i64', 'u64', 'f32', 'f64']);
/** Functions whose operands have the type of the result, and the number of operands. */
const functions: Readonly<Record<string, number>> = {
  'Math.sqrt': 1,
  'Math.abs': 1,
  'Math.floor': 1,
  'Math.trunc': 1,
  'Math.min': 2,
  'Math.max': 2,
  'gpu.mulhi': 2,
  'gpu.clz': 1,
  'gpu.copysign': 2,
};

/**
 * Writes a text out in a dialect, as a function of this name. Parameters before `gpu` are floats of
 * the type.
 */
export function writeText(
  name: string,
  text: string,
  type: 'f32' | 'f64',
  dialect: Dialect,
): string {
  const program: Program = parse(`(${text})`, { ecmaVersion: 2022 });
  const statement = program.body[0];
  if (
    statement?.type !== 'ExpressionStatement' ||
    statement.expression.type !== 'ArrowFunctionExpression'
  )
    throw new Error(`${name}: not an arrow function`);
  const { params, body } = statement.expression;
  const names = params.map((param) => nameOf(param));
  if (names.pop() !== 'gpu') throw new Error(`${name}: the last parameter is not gpu`);
  if (body.type !== 'BlockStatement') throw new Error(`${name}: not a block`);

  const fail = (node: AnyNode, what: string): never => {
    throw new Error(`${name} (${type}): ${what}: ${text.slice(node.start - 1, node.end - 1)}`);
  };
  const as = (found: Found, to: TextType, node: AnyNode): string => {
    if ('code' in found)
      return found.type === to ? found.code : fail(node, `${found.type} where ${to} is wanted`);
    if (found.type === 'fraction' && !floats.has(to))
      return fail(node, 'a fraction among integers');
    return dialect.constant(to, found.value);
  };
  /** Both sides in one type: that of the side that is no literal. */
  const together = (
    left: Found,
    right: Found,
    node: AnyNode,
  ): { type: TextType; left: string; right: string } => {
    const typed = 'code' in left ? left : 'code' in right ? right : fail(node, 'two literals');
    return {
      type: typed.type,
      left: as(left, typed.type, node),
      right: as(right, typed.type, node),
    };
  };

  type Scope = Map<string, TextType>;
  const typed = (
    node: Expression | SpreadElement | Super | PrivateIdentifier,
    scope: Scope,
  ): Typed => {
    const found = read(node, scope);
    return 'code' in found ? found : fail(node, 'a literal alone');
  };
  const test = (node: Expression, scope: Scope): string => {
    const found = typed(node, scope);
    return found.type === 'bool' ? found.code : fail(node, 'not a condition');
  };
  const call = (
    callee: string,
    args: readonly (Expression | SpreadElement)[],
    node: AnyNode,
    scope: Scope,
  ): Found => {
    const first = args[0] ?? fail(node, 'no argument');
    if (callee === 'gpu.bits') {
      const value = typed(first, scope);
      const to = bitsOf[value.type] ?? fail(node, 'bits of no float');
      return { type: to, code: dialect.bitcast(value.type, to, value.code) };
    }
    if (callee === 'gpu.fromBits') {
      const value = read(first, scope);
      const from = 'code' in value ? value.type : typeof value.value === 'bigint' ? 'i64' : 'i32';
      const to = fromBitsOf[from] ?? fail(node, 'fromBits of no integer');
      return { type: to, code: dialect.bitcast(from, to, as(value, from, first)) };
    }
    if (callee === 'gpu.fma') {
      const [a, b, c] = args.map((argument) => read(argument, scope));
      if (!a || !b || !c) return fail(node, 'fma takes three');
      const found =
        [a, b, c].find((operand): operand is Typed => 'code' in operand) ??
        fail(node, 'three literals');
      if (!floats.has(found.type)) fail(node, 'fma of no floats');
      return {
        type: found.type,
        code: dialect.fma(
          found.type,
          as(a, found.type, node),
          as(b, found.type, node),
          as(c, found.type, node),
        ),
      };
    }
    const [space, method = ''] = callee.split('.');
    if (space === 'gpu' && casts.has(method)) {
      const to = method as TextType;
      const value = read(first, scope);
      if (!('code' in value)) return { type: to, code: as(value, to, node) };
      return {
        type: to,
        code: value.type === to ? value.code : dialect.convert(value.type, to, value.code),
      };
    }
    const count = functions[callee] ?? fail(node, 'not a function that texts may use');
    if (args.length !== count) fail(node, `${callee} takes ${count}`);
    const operands = args.map((argument) => read(argument, scope));
    const found =
      operands.find((operand): operand is Typed => 'code' in operand) ??
      fail(node, 'literals alone');
    return {
      type: method === 'clz' ? 'i32' : found.type,
      code: dialect.call(
        method,
        found.type,
        operands.map((operand) => as(operand, found.type, node)),
      ),
    };
  };
  const read = (
    node: Expression | SpreadElement | Super | PrivateIdentifier,
    scope: Scope,
  ): Found => {
    switch (node.type) {
      case 'Literal':
        if (typeof node.value === 'bigint') return { type: 'literal', value: node.value };
        if (typeof node.value !== 'number') return fail(node, 'a literal of another type');
        return {
          type:
            Number.isInteger(node.value) &&
            !/[.e]/.test(node.raw?.startsWith('0x') ? '' : (node.raw ?? ''))
              ? 'literal'
              : 'fraction',
          value: node.value,
        };
      case 'Identifier': {
        const found = scope.get(node.name);
        if (found) return { type: found, code: node.name };
        const value = constants[node.name];
        return value === undefined ? fail(node, 'unknown') : { type: 'fraction', value };
      }
      case 'UnaryExpression': {
        const operand = read(node.argument, scope);
        if (!('code' in operand))
          return node.operator === '-'
            ? { type: operand.type, value: -operand.value }
            : fail(node, 'an operator on a literal');
        if (operand.product) return fail(node, 'the negative of a product');
        return {
          type: operand.type,
          code: dialect.unary(node.operator, operand.type, operand.code),
        };
      }
      case 'LogicalExpression':
        return {
          type: 'bool',
          code: dialect.logical(node.operator, test(node.left, scope), test(node.right, scope)),
        };
      case 'ConditionalExpression': {
        const both = together(read(node.consequent, scope), read(node.alternate, scope), node);
        return {
          type: both.type,
          code: dialect.conditional(test(node.test, scope), both.left, both.right),
        };
      }
      case 'BinaryExpression': {
        const left = read(node.left, scope);
        const right = read(node.right, scope);
        if (node.operator === '<<' || node.operator === '>>' || node.operator === '>>>') {
          if (!('code' in left)) return fail(node, 'a literal is shifted');
          const to =
            node.operator === '>>>'
              ? (unsigned[left.type] ?? fail(node, 'a shift of no integer'))
              : left.type;
          const value = to === left.type ? left.code : dialect.convert(left.type, to, left.code);
          const count = 'code' in right ? right.code : dialect.constant('i32', right.value);
          return {
            type: to,
            code: dialect.binary(node.operator === '<<' ? 'shl' : 'shr', to, value, count),
          };
        }
        const both = together(left, right, node);
        if (['<', '<=', '>', '>=', '===', '!=='].includes(node.operator))
          return {
            type: 'bool',
            code: dialect.compare(node.operator, both.type, both.left, both.right),
          };
        if (floats.has(both.type)) {
          const a = 'code' in left ? left.product : undefined;
          const b = 'code' in right ? right.product : undefined;
          if (node.operator === '+' || node.operator === '-') {
            if (a && b) return fail(node, 'two products in one sum');
            const minus = (code: string): string => dialect.unary('-', both.type, code);
            if (a)
              return {
                type: both.type,
                code: dialect.fma(
                  both.type,
                  a[0],
                  a[1],
                  node.operator === '-' ? minus(both.right) : both.right,
                ),
              };
            if (b)
              return {
                type: both.type,
                code: dialect.fma(
                  both.type,
                  node.operator === '-' ? minus(b[0]) : b[0],
                  b[1],
                  both.left,
                ),
              };
          } else if (node.operator !== '*' && node.operator !== '/') {
            return fail(node, 'an operator of integers');
          }
        }
        const code = dialect.binary(node.operator, both.type, both.left, both.right);
        return node.operator === '*' && floats.has(both.type)
          ? { type: both.type, code, product: [both.left, both.right] }
          : { type: both.type, code };
      }
      case 'CallExpression': {
        const { callee } = node;
        if (
          callee.type !== 'MemberExpression' ||
          callee.object.type !== 'Identifier' ||
          callee.property.type !== 'Identifier'
        )
          return fail(node, 'a call');
        return call(`${callee.object.name}.${callee.property.name}`, node.arguments, node, scope);
      }
      case 'ParenthesizedExpression':
        return read(node.expression, scope);
      default:
        return fail(node, 'not in the subset');
    }
  };
  const statements = (list: readonly Statement[], outer: Scope): string => {
    const scope = new Map(outer);
    return list.map((node) => write(node, scope)).join('\n');
  };
  const write = (node: Statement, scope: Scope): string => {
    switch (node.type) {
      case 'VariableDeclaration':
        return node.declarations
          .map((declaration) => {
            const variable = nameOf(declaration.id);
            if (scope.has(variable)) fail(node, 'a name that hides another');
            const value = typed(declaration.init ?? fail(node, 'no value'), scope);
            scope.set(variable, value.type);
            return dialect.declare(value.type, variable, value.code);
          })
          .join('\n');
      case 'ExpressionStatement': {
        const { expression } = node;
        if (
          expression.type !== 'AssignmentExpression' ||
          expression.operator !== '=' ||
          expression.left.type !== 'Identifier'
        )
          return fail(node, 'not an assignment');
        const to = scope.get(expression.left.name) ?? fail(node, 'unknown');
        return `${expression.left.name} = ${as(read(expression.right, scope), to, node)};`;
      }
      case 'BlockStatement':
        return statements(node.body, scope);
      case 'IfStatement':
        return (
          `if (${test(node.test, scope)}) ` +
          `{\n${write(node.consequent, scope)}\n}` +
          (node.alternate ? ` else {\n${write(node.alternate, scope)}\n}` : '')
        );
      case 'ReturnStatement':
        return `return ${as(read(node.argument ?? fail(node, 'no value'), scope), type, node)};`;
      default:
        return fail(node, 'not in the subset');
    }
  };
  return dialect.define(
    name,
    type,
    names,
    statements(body.body, new Map(names.map((param): [string, TextType] => [param, type]))),
  );
}

function nameOf(pattern: Pattern): string {
  if (pattern.type !== 'Identifier') throw new Error('a pattern');
  return pattern.name;
}

const wrap: Readonly<Record<string, (code: string) => string>> = {
  i32: (code) => `(${code} | 0)`,
  u32: (code) => `(${code} >>> 0)`,
  i64: (code) => `BigInt.asIntN(64, ${code})`,
  u64: (code) => `BigInt.asUintN(64, ${code})`,
  f32: (code) => `Math.fround(${code})`,
  f64: (code) => `(${code})`,
};
const wrapped = (type: TextType, code: string): string => wrap[type]?.(code) ?? code;
const wide = (type: TextType): boolean => type === 'i64' || type === 'u64';

const javaScript: Dialect = {
  constant: (type, value) => {
    if (wide(type)) return `${wrapped(type, `${value < 0 ? `(${value}n)` : `${value}n`}`)}`;
    const number = type === 'f32' ? Math.fround(Number(value)) : Number(value);
    if (type === 'u32' || type === 'i32') return `(${wrapped(type, String(number))})`;
    return Object.is(number, -0) ? '(-0)' : `(${number})`;
  },
  binary: (operator, type, left, right) => {
    if (operator === 'shl')
      return wide(type)
        ? wrapped(type, `(${left} << BigInt(${right} & 63))`)
        : wrapped(type, `(${left} << ${right})`);
    if (operator === 'shr')
      return wide(type)
        ? `(${left} >> BigInt(${right} & 63))`
        : type === 'u32'
          ? `(${left} >>> ${right})`
          : `(${left} >> ${right})`;
    if (operator === '*' && (type === 'i32' || type === 'u32'))
      return wrapped(type, `Math.imul(${left}, ${right})`);
    return wrapped(type, `(${left} ${operator} ${right})`);
  },
  compare: (operator, _type, left, right) => `(${left} ${operator} ${right})`,
  logical: (operator, left, right) => `(${left} ${operator} ${right})`,
  conditional: (test, then, otherwise) => `(${test} ? ${then} : ${otherwise})`,
  unary: (operator, type, operand) =>
    operator === '!'
      ? `(!${operand})`
      : floats.has(type)
        ? `(-${operand})`
        : wrapped(type, `(${operator}${operand})`),
  fma: (type, a, b, c) => `fma_${type}(${a}, ${b}, ${c})`,
  call: (name, type, operands) => {
    if (name === 'mulhi') return `mulhi_${type}(${operands.join(', ')})`;
    if (name === 'clz')
      return wide(type) ? `clz_64(${operands.join(', ')})` : `Math.clz32(${operands.join(', ')})`;
    if (name === 'copysign') return `copysign(${operands.join(', ')})`;
    return wrapped(type, `Math.${name}(${operands.join(', ')})`);
  },
  convert: (from, to, operand) => {
    if (floats.has(from) && floats.has(to)) return wrapped(to, operand);
    if (floats.has(from)) return `saturate_${to}(${operand})`;
    if (floats.has(to))
      return to === 'f32' && wide(from)
        ? `round_f32(${operand})`
        : wrapped(to, `Number(${operand})`);
    if (wide(to)) return wrapped(to, `BigInt(${operand})`);
    return wide(from)
      ? `Number(BigInt.as${to === 'i32' ? 'Int' : 'Uint'}N(32, ${operand}))`
      : wrapped(to, operand);
  },
  bitcast: (from, to, operand) => `bits_${from}_${to}(${operand})`,
  declare: (_type, name, value) => `let ${name} = ${value};`,
  define: (name, _type, params, body) => `function ${name}(${params.join(', ')}) {\n${body}\n}`,
};

const view = new DataView(new ArrayBuffer(8));
const setters = {
  f32: (value: number) => {
    view.setFloat32(0, value);
  },
  f64: (value: number) => {
    view.setFloat64(0, value);
  },
  u32: (value: number) => {
    view.setUint32(0, value);
  },
  i32: (value: number) => {
    view.setInt32(0, value);
  },
  u64: (value: bigint) => {
    view.setBigUint64(0, value);
  },
  i64: (value: bigint) => {
    view.setBigInt64(0, value);
  },
};
/** The bits of a f64. */
export function bitsOfF64(value: number): bigint {
  view.setFloat64(0, value);
  return view.getBigUint64(0);
}
/** The f64 of bits. */
export function f64OfBits(bits: bigint): number {
  view.setBigUint64(0, bits);
  return view.getFloat64(0);
}
/** The f32 of bits. */
export function f32OfBits(bits: number): number {
  view.setUint32(0, bits);
  return view.getFloat32(0);
}

/**
 * Rounds a sum and the error of its rounding to odd: to the next double in the error's direction
 * where the last bit is even.
 */
function toOdd(sum: number, error: number): number {
  if (error === 0 || !Number.isFinite(sum)) return sum;
  view.setFloat64(0, sum);
  const low = view.getInt32(4);
  if (low & 1) return sum;
  const bits = view.getBigInt64(0);
  view.setBigInt64(0, error > 0 === sum > 0 ? bits + 1n : bits - 1n);
  return view.getFloat64(0);
}

/**
 * The product of two f32 is exact in f64; a sum rounded to odd there makes the rounding to f32 the
 * only one.
 */
function fmaF32(a: number, b: number, c: number): number {
  const product = a * b;
  const sum = product + c;
  const part = sum - product;
  return Math.fround(toOdd(sum, product - (sum - part) + (c - part)));
}

const magnitudeIsPlain = (value: number): boolean => {
  const m = Math.abs(value);
  return m > 1e-130 && m < 1e130;
};

/**
 * The exact product by Dekker, then sums rounded to odd (Boldo and Melquiond); in integers where
 * the product may leave the range.
 */
function fmaF64(a: number, b: number, c: number): number {
  if (a === 0 || b === 0 || !Number.isFinite(a) || !Number.isFinite(b) || !Number.isFinite(c))
    return a * b + c;
  if (!magnitudeIsPlain(a) || !magnitudeIsPlain(b) || (c !== 0 && !magnitudeIsPlain(c)))
    return fusedExactly(a, b, c, 'f64');
  const product = a * b;
  let t = 134217729 * a;
  const ah = t - (t - a);
  const al = a - ah;
  t = 134217729 * b;
  const bh = t - (t - b);
  const bl = b - bh;
  const rest = al * bl - (product - ah * bh - al * bh - ah * bl);
  const u = c + rest;
  let part = u - c;
  const ul = c - (u - part) + (rest - part);
  const v = product + u;
  part = v - product;
  const vl = product - (v - part) + (u - part);
  const z = vl + ul;
  part = z - vl;
  return v + toOdd(z, vl - (z - part) + (ul - part));
}

const clampNumber = (value: number, low: number, high: number): number =>
  Number.isNaN(value) ? 0 : Math.min(Math.max(Math.trunc(value), low), high);
const support: Record<string, unknown> = {
  fma_f32: fmaF32,
  fma_f64: fmaF64,
  mulhi_u32: (a: number, b: number) => Number((BigInt(a) * BigInt(b)) >> 32n),
  mulhi_i32: (a: number, b: number) => Number((BigInt(a) * BigInt(b)) >> 32n),
  mulhi_u64: (a: bigint, b: bigint) => (a * b) >> 64n,
  mulhi_i64: (a: bigint, b: bigint) => (a * b) >> 64n,
  clz_64: (value: bigint) => (value ? 64 - BigInt.asUintN(64, value).toString(2).length : 64),
  copysign: (magnitude: number, sign: number) =>
    sign < 0 || Object.is(sign, -0) ? -Math.abs(magnitude) : Math.abs(magnitude),
  saturate_i32: (value: number) => clampNumber(value, -2147483648, 2147483647),
  saturate_u32: (value: number) => clampNumber(value, 0, 4294967295),
};
for (const [from, to, read] of [
  ['f32', 'u32', () => view.getUint32(0)],
  ['u32', 'f32', () => view.getFloat32(0)],
  ['i32', 'f32', () => view.getFloat32(0)],
  ['f64', 'u64', () => view.getBigUint64(0)],
  ['u64', 'f64', () => view.getFloat64(0)],
  ['i64', 'f64', () => view.getFloat64(0)],
] as const) {
  const set = setters[from] as (value: unknown) => void;
  support[`bits_${from}_${to}`] = (value: unknown) => {
    set(value);
    return read();
  };
}

/**
 * A text as a function of JavaScript that rounds as the device does. Values of f32 must be f32
 * values.
 */
export function runnable(
  name: string,
  text: string,
  type: 'f32' | 'f64',
): (...values: number[]) => number {
  const code = writeText(name.replace('.', '_'), text, type, javaScript);
  // eslint-disable-next-line @typescript-eslint/no-implied-eval -- it is this file's output
  return new Function(...Object.keys(support), `'use strict'; return ${code}`)(
    ...Object.values(support),
  ) as (...values: number[]) => number;
}
