/** Values of the tree's expressions. */
import type { Expression, ValueType } from '../tree.js';
import { isFloat, isWide, numberOf, registerOf } from './builder.js';
import type { Builder } from './builder.js';
import { buildChoice, isCheap } from './choices.js';
import { convert, convertToOdd } from './conversions.js';
import { resolve } from './function.js';
import type { NumberType, Value } from './function.js';
import { buildAtomic, buildLoad, readParameter } from './places.js';
import { buildSpecial } from './special-registers.js';
import { throughMemory } from './storage.js';
import { buildMatch, buildShuffle, buildVote } from './warp-operations.js';

/** The number type of integers; undefined for floats and bools. */
const signed = (type: ValueType): NumberType | undefined =>
  isFloat(type) || type === 'bool' ? undefined : numberOf[type];

/** Operations that read their operands' signs. */
const readsSign = new Set(['div', 'rem', 'min', 'max', 'shr', 'mulhi']);

function buildUnary(b: Builder, node: Extract<Expression, { op: 'unary' }>): Value {
  const operand = buildValue(b, node.operand);
  const { operator, type } = node;
  const from = node.operand.type;
  if (operator === 'abs' && (from === 'u32' || from === 'u64' || from === 'bool')) return operand;
  if ((operator === 'popc' || operator === 'clz') && isWide(from)) {
    const count = b.make(operator, 'b32', [operand], '', 'b64');
    return isWide(type) ? b.make('extend', 'b64', [count], '', 'u32') : count;
  }
  // Integers have no fraction.
  if (['floor', 'ceil', 'trunc', 'rint'].includes(operator) && !isFloat(from)) return operand;
  return b.make(operator, registerOf[type], [operand]);
}

function buildBinary(b: Builder, node: Extract<Expression, { op: 'binary' }>): Value {
  const { operator, type } = node;
  const left = buildValue(b, node.left);
  let right = buildValue(b, node.right);
  const register = registerOf[type];
  if (operator === 'shl' || operator === 'shr') {
    // JavaScript uses 5 or 6 bits of the distance; PTX would shift all bits out.
    if (right.type === 'b64') right = b.make('truncate', 'b32', [right]);
    right = b.make('and', 'b32', [right, b.constant('b32', isWide(type) ? 63 : 31)]);
    return b.make(
      operator,
      register,
      [left, right],
      '',
      operator === 'shr' ? signed(type) : undefined,
    );
  }
  return b.make(
    operator,
    register,
    [left, right],
    '',
    readsSign.has(operator) ? signed(type) : undefined,
  );
}

/** Builds an expression and gives its value. */
export function buildValue(b: Builder, node: Expression): Value {
  const outer = b.span;
  b.span = node.span;
  const value = valueOf(b, node);
  b.span = outer;
  return resolve(value);
}

function valueOf(b: Builder, node: Expression): Value {
  switch (node.op) {
    case 'constant':
      return b.constant(registerOf[node.type], node.value);
    case 'local':
      return b.read(node.local);
    case 'abi':
      return readParameter(b, node.abi);
    case 'special':
      return convert(
        b,
        buildSpecial(b, node.name),
        node.name.startsWith('global') && node.name !== 'globaltimer'
          ? b.tree.indexType
          : node.type,
        node.type,
      );
    case 'unary':
      return buildUnary(b, node);
    case 'binary':
      return buildBinary(b, node);
    case 'fma': {
      const a = buildValue(b, node.a);
      const by = buildValue(b, node.b);
      return b.make('fma', registerOf[node.type], [a, by, buildValue(b, node.c)]);
    }
    case 'compare': {
      const left = buildValue(b, node.left);
      return b.make(
        'compare',
        'pred',
        [left, buildValue(b, node.right)],
        node.operator,
        numberOf[node.left.type],
      );
    }
    case 'logical': {
      if (isCheap(node.right)) {
        const left = buildValue(b, node.left);
        return b.make(node.operator, 'pred', [left, buildValue(b, node.right)]);
      }
      return buildChoice(
        b,
        'pred',
        node.left,
        () => (node.operator === 'and' ? buildValue(b, node.right) : b.constant('pred', true)),
        () => (node.operator === 'and' ? b.constant('pred', false) : buildValue(b, node.right)),
      );
    }
    case 'conditional': {
      if (isCheap(node.then) && isCheap(node.otherwise)) {
        const test = buildValue(b, node.test);
        const then = buildValue(b, node.then);
        return b.make('select', registerOf[node.type], [test, then, buildValue(b, node.otherwise)]);
      }
      return buildChoice(
        b,
        registerOf[node.type],
        node.test,
        () => buildValue(b, node.then),
        () => buildValue(b, node.otherwise),
      );
    }
    case 'convert':
      return (node.odd ? convertToOdd : convert)(
        b,
        buildValue(b, node.operand),
        node.operand.type,
        node.type,
      );
    case 'narrow':
      return throughMemory(b, node.storage, buildValue(b, node.operand));
    case 'bitcast': {
      const operand = buildValue(b, node.operand);
      return operand.type === registerOf[node.type]
        ? operand
        : b.make('bits', registerOf[node.type], [operand]);
    }
    case 'approximate':
      return b.make(
        'approximate',
        registerOf[node.type],
        node.operands.map((operand) => buildValue(b, operand)),
        node.name,
      );
    case 'load':
      return buildLoad(b, node.place, node.cache);
    case 'atomic':
      return buildAtomic(b, node);
    case 'shuffle':
      return buildShuffle(b, node);
    case 'vote':
      return buildVote(b, node);
    case 'match':
      return buildMatch(b, node);
    case 'activemask':
      return b.effect('activemask', 'b32', []);
    case 'barrierReduce':
      return b.effect(
        'barrierReduce',
        node.mode === 'count' ? 'b32' : 'pred',
        [buildValue(b, node.predicate)],
        node.mode,
      );
    case 'block': {
      b.statements(node.statements);
      return b.reachable ? buildValue(b, node.value) : b.f.undefinedOf(registerOf[node.type]);
    }
    default:
      throw b.error(
        `'${(node as { op: string }).op}' is no operation of the tree`,
        'This is a defect of the compiler; please report it.',
        (node as Expression).span,
      );
  }
}
