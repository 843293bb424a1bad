/** Values of the tree's expressions. */
import type { Expression, SpecialName, ValueType } from '../tree.js';
import { numberOf, registerOf } from './builder.js';
import type { Builder } from './builder.js';
import type { NumberType, RegisterType, Value } from './function.js';
import { resolve } from './function.js';
import { buildAtomic, buildLoad, readParameter } from './places.js';
import { pureOperations } from './operations.js';
import { rangeOf } from './ranges.js';
import { throughMemory } from './storage.js';

const isFloat = (type: ValueType): boolean => type === 'f32' || type === 'f64';
const isWide = (type: ValueType): boolean => type === 'i64' || type === 'u64' || type === 'f64';

/** Unsigned where the type is. */
const signed = (type: ValueType): NumberType | undefined =>
  isFloat(type) || type === 'bool' ? undefined : numberOf[type];

/** Operations that read their operands' signs. */
const readsSign = new Set(['div', 'rem', 'min', 'max', 'shr', 'mulhi']);

/** Highest value of each special register. */
const specialRanges: Readonly<Record<string, number>> = {
  'tid.x': 1023,
  'tid.y': 1023,
  'tid.z': 63,
  'ntid.x': 1024,
  'ntid.y': 1024,
  'ntid.z': 64,
  'ctaid.x': 2 ** 31 - 2,
  'ctaid.y': 65534,
  'ctaid.z': 65534,
  'nctaid.x': 2 ** 31 - 1,
  'nctaid.y': 65535,
  'nctaid.z': 65535,
  laneid: 31,
  // More than a block has on any device: 227 KiB (CUDA C++ Programming Guide, table of compute
  // capabilities).
  dynamic_smem_size: 2 ** 20,
};

function special(b: Builder, name: string): Value {
  const { block } = b.options;
  const axis = 'xyz'.indexOf(name.at(-1)!);
  if (block && name.startsWith('ntid.')) return b.constant('b32', block[axis]!);
  if (block && name.startsWith('tid.') && block[axis] === 1) return b.constant('b32', 0);
  const value = b.once('special', 'b32', [], name);
  let highest = specialRanges[name]!;
  if (block && name.startsWith('tid.')) highest = block[axis]! - 1;
  value.range = [name.startsWith('n') ? 1 : 0, highest];
  return value;
}

/** Thread's number in its block. */
function linearThread(b: Builder): Value {
  const [x, y, z] = ['tid.x', 'tid.y', 'tid.z'].map((name) => special(b, name)) as [
    Value,
    Value,
    Value,
  ];
  const rows = b.make('add', 'b32', [b.make('mul', 'b32', [z, special(b, 'ntid.y')]), y]);
  const value = b.make('add', 'b32', [b.make('mul', 'b32', [rows, special(b, 'ntid.x')]), x]);
  if (value.constant === undefined) value.range ??= [0, 1023];
  return value;
}

/**
 * Of the grid's width: no tensor of an i32 kernel has as many elements, so that its index is not
 * negative.
 */
function across(b: Builder, first: string, second: string, added: Value | undefined): Value {
  const [x, y] = [special(b, first), special(b, second)];
  if (b.tree.indexType === 'i64') {
    const product = b.make('mul', 'b64', [
      b.make('extend', 'b64', [x], '', 'u32'),
      b.make('extend', 'b64', [y], '', 'u32'),
    ]);
    return added === undefined
      ? product
      : b.make('add', 'b64', [product, b.make('extend', 'b64', [added], '', 'u32')]);
  }
  const product = b.make('mul', 'b32', [x, y]);
  if (product.constant === undefined) product.range ??= [added === undefined ? 1 : 0, 2 ** 31 - 1];
  const value = added === undefined ? product : b.make('add', 'b32', [product, added]);
  if (value.constant === undefined) value.range ??= [0, 2 ** 31 - 1];
  return value;
}

function buildSpecial(b: Builder, name: SpecialName): Value {
  const axis = name.at(-1)!;
  switch (name.slice(0, -2)) {
    case 'threadIdx':
      return special(b, `tid.${axis}`);
    case 'blockIdx':
      return special(b, `ctaid.${axis}`);
    case 'blockDim':
      return special(b, `ntid.${axis}`);
    case 'gridDim':
      return special(b, `nctaid.${axis}`);
    case 'globalId':
      return across(b, `ctaid.${axis}`, `ntid.${axis}`, special(b, `tid.${axis}`));
    case 'globalSize':
      return across(b, `nctaid.${axis}`, `ntid.${axis}`, undefined);
    default:
      break;
  }
  switch (name) {
    case 'lane':
      return b.options.block && b.options.block[1] === 1 && b.options.block[2] === 1
        ? b.make('and', 'b32', [special(b, 'tid.x'), b.constant('b32', 31)])
        : special(b, 'laneid');
    case 'warp':
      return b.make('shr', 'b32', [linearThread(b), b.constant('b32', 5)], '', 'u32');
    case 'dynamicSharedBytes':
      return special(b, 'dynamic_smem_size');
    default:
      return b.effect('clock', 'b64', [], name);
  }
}

/**
 * Nodes that may be computed where the source would not, and what each takes. Undefined: it must
 * not be.
 */
function costInVain(node: Expression): number | undefined {
  const sum = (...nodes: readonly Expression[]): number | undefined => {
    let total = 0;
    for (const one of nodes) {
      const cost = costInVain(one);
      if (cost === undefined) return undefined;
      total += cost;
    }
    return total;
  };
  const plus = (cost: number, ...nodes: readonly Expression[]): number | undefined => {
    const inner = sum(...nodes);
    return inner === undefined ? undefined : inner + cost;
  };
  switch (node.op) {
    case 'constant':
    case 'local':
    case 'abi':
      return 0;
    case 'special':
      return node.name === 'clock' || node.name === 'globaltimer' ? undefined : 1;
    case 'unary':
      return plus(pureOperations[node.operator]!.cost, node.operand);
    case 'binary':
      return plus(pureOperations[node.operator]!.cost, node.left, node.right);
    case 'fma':
      return plus(1, node.a, node.b, node.c);
    case 'compare':
    case 'logical':
      return plus(1, node.left, node.right);
    case 'conditional':
      return plus(1, node.test, node.then, node.otherwise);
    case 'convert':
      return plus(1, node.operand);
    case 'bitcast':
      return plus(1, node.operand);
    default:
      return undefined;
  }
}

/**
 * Few enough operations, none of which reads memory, so that computing it always is cheaper than a
 * jump.
 */
function isCheap(node: Expression): boolean {
  const cost = costInVain(node);
  return cost !== undefined && cost <= 6;
}

/** Goes to one block where the value is true, to the other where not. */
export function branchOn(
  b: Builder,
  test: Expression,
  then: ReturnType<Builder['newBlock']>,
  otherwise: ReturnType<Builder['newBlock']>,
): void {
  if (test.op === 'unary' && test.operator === 'not') {
    branchOn(b, test.operand, otherwise, then);
    return;
  }
  if (test.op === 'logical' && !isCheap(test.right)) {
    const further = b.newBlock();
    if (test.operator === 'and') branchOn(b, test.left, further, otherwise);
    else branchOn(b, test.left, then, further);
    b.enterIfReached(further);
    if (b.reachable) branchOn(b, test.right, then, otherwise);
    return;
  }
  b.branch(buildValue(b, test), then, otherwise);
}

function buildChoice(
  b: Builder,
  type: RegisterType,
  test: Expression,
  then: () => Value,
  otherwise: () => Value,
): Value {
  const [first, second, join] = [b.newBlock(), b.newBlock(), b.newBlock()];
  branchOn(b, test, first, second);
  const values: Value[] = [];
  for (const [block, side] of [
    [first, then],
    [second, otherwise],
  ] as const) {
    b.enterIfReached(block);
    if (!b.reachable) continue;
    const value = side();
    const before = join.before.length;
    b.jump(join);
    if (join.before.length > before) values.push(value);
  }
  b.enterIfReached(join);
  if (!b.reachable || values.length === 0) return b.f.undefinedOf(type);
  if (values.length === 1 || values[0] === values[1]) return values[0]!;
  const phi = b.phi(join, type);
  phi.args = values;
  return phi;
}

function convert(b: Builder, value: Value, from: ValueType, to: ValueType): Value {
  if (from === to) return value;
  if (to === 'bool')
    return b.make('compare', 'pred', [value, b.constant(value.type, 0)], 'ne', numberOf[from]);
  const register = registerOf[to];
  if (from === 'bool') {
    const flag = b.make('select', register === 'b64' ? 'b32' : register, [
      value,
      b.constant(register === 'b64' ? 'b32' : register, 1),
      b.constant(register === 'b64' ? 'b32' : register, 0),
    ]);
    return register === 'b64' ? b.make('extend', 'b64', [flag], '', 'u32') : flag;
  }
  if (!isFloat(from) && !isFloat(to)) {
    if (isWide(from) === isWide(to)) return value;
    return isWide(to)
      ? b.make('extend', 'b64', [value], '', numberOf[from])
      : b.make('truncate', 'b32', [value]);
  }
  const converted = b.make('convert', register, [value], `${numberOf[to]}.${numberOf[from]}`);
  // Only from f32 to 32 bits does cvt give 0 for NaN.
  if (
    !isFloat(from) ||
    isFloat(to) ||
    (from === 'f32' && !isWide(to)) ||
    converted.constant !== undefined
  )
    return converted;
  return b.make('select', register, [
    b.make('compare', 'pred', [value, value], 'nan', numberOf[from]),
    b.constant(register, 0),
    converted,
  ]);
}

/** Whole numbers up to this are f32, both ways. */
const EXACT_IN_F32 = 2 ** 24;

/**
 * To f32, towards zero and then with the last bit set where something was cut off, which converting
 * back shows.
 */
function convertToOdd(b: Builder, value: Value, from: ValueType, to: ValueType): Value {
  const [low, high] = isFloat(from) ? [-Infinity, Infinity] : rangeOf(value);
  if (low >= -EXACT_IN_F32 && high <= EXACT_IN_F32 && (low >= 0 || from === 'i32'))
    return convert(b, value, from, to);
  const number = numberOf[from];
  const cut = b.make('convert', 'f32', [value], `f32.${number}.rz`);
  const back = b.make('convert', value.type, [cut], `${number}.f32`);
  const inexact = b.make('compare', 'pred', [back, value], 'ne', number);
  const bits = b.make('bits', 'b32', [cut]);
  return b.make('bits', 'f32', [
    b.make('select', 'b32', [inexact, b.make('or', 'b32', [bits, b.constant('b32', 1)]), bits]),
  ]);
}

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
    // JavaScript counts some bits of the right side; PTX would shift everything out.
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

/** What shfl takes: lanes of a segment in the upper byte, its last lane in the lower. */
function segment(mode: string, width: number): number {
  return ((32 - width) << 8) | (mode === 'up' ? 0 : 31);
}

function buildShuffle(b: Builder, node: Extract<Expression, { op: 'shuffle' }>): Value {
  const value = buildValue(b, node.value);
  const lane = buildValue(b, node.lane);
  const mask = buildValue(b, node.mask);
  const detail = `${node.mode} ${segment(node.mode, node.width)}`;
  const one = (part: Value): Value => b.effect('shuffle', 'b32', [part, lane, mask], detail);
  switch (value.type) {
    case 'pred':
      return b.make(
        'compare',
        'pred',
        [one(convert(b, value, 'bool', 'i32')), b.constant('b32', 0)],
        'ne',
        's32',
      );
    case 'b32':
      return one(value);
    case 'f32':
      return b.make('bits', 'f32', [one(b.make('bits', 'b32', [value]))]);
    default: {
      const bits = value.type === 'f64' ? b.make('bits', 'b64', [value]) : value;
      const low = one(b.make('low', 'b32', [bits]));
      const both = b.make('pair', 'b64', [low, one(b.make('high', 'b32', [bits]))]);
      return value.type === 'f64' ? b.make('bits', 'f64', [both]) : both;
    }
  }
}

/** The expression's value, with what it does done. */
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
    case 'vote': {
      const predicate = buildValue(b, node.predicate);
      return b.effect(
        'vote',
        node.mode === 'ballot' ? 'b32' : 'pred',
        [predicate, buildValue(b, node.mask)],
        node.mode,
      );
    }
    case 'match': {
      const value = buildValue(b, node.value);
      const bits =
        value.type === 'f32'
          ? b.make('bits', 'b32', [value])
          : value.type === 'f64'
            ? b.make('bits', 'b64', [value])
            : value.type === 'pred'
              ? convert(b, value, 'bool', 'i32')
              : value;
      return b.effect('match', 'b32', [bits, buildValue(b, node.mask)]);
    }
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
