/** Calls of the device's instructions: `gpu.group`, `gpu.tensor`, `gpu.barrier`, `gpu.cluster`. */
import { FACTORS, together } from '../factors.js';
import type { FactorFacts } from '../factors.js';
import type { InstructionName } from '../instructions.js';
import type { Expression, InstructionOperand, Place, StorageType } from '../tree.js';
import { arity, integer, known, number, statement, type Call } from './calls.js';
import { asFragment, fragment, matricesOf, sharedPlace } from './matrices.js';
import { constant } from './nodes.js';
import { literal } from './operands.js';
import { indexInto, placeIn } from './places.js';
import { storageBytes } from './types.js';
import { describe, type Value } from './values.js';

const value = (expression: Expression): InstructionOperand => ({
  kind: 'value',
  value: expression,
});
const address = (place: Place): InstructionOperand => ({ kind: 'address', place });

function instruction(
  call: Call,
  name: InstructionName,
  operands: readonly InstructionOperand[] = [],
  detail: readonly (string | number)[] = [],
): Value {
  return statement(call, (span) => ({ kind: 'instruction', name, detail, operands, span }));
}

/** Reads a call of the instruction with that name. */
type Row = (call: Call, name: InstructionName) => Value;

/** An instruction without arguments. */
const bare: Row = (call, name) => {
  arity(call, 0);
  return instruction(call, name);
};

/** An instruction whose only argument is a constant, in these bounds. */
const counted =
  (what: string, least: number, most: number, step = 1): Row =>
  (call, name) => {
    arity(call, 1);
    const count = known(call, 0);
    if (count < least || count > most || count % step !== 0)
      call.pass.fail(
        call.argNodes[0] ?? call.node,
        `${call.name} takes ${what} from ${least} to ${most}` +
          `${step === 1 ? '' : `, a multiple of ${step}`}, and got ${count}`,
        `Write ${least} to ${most}.`,
      );
    return instruction(call, name, [], [count]);
  };

/** Lines of shared memory: an array of two axes whose rows are as long as a swizzle spans. */
interface Lines {
  readonly place: Place;
  readonly storage: StorageType;
  /** Elements of a line. */
  readonly width: number;
}

const SPANS: readonly number[] = [32, 64, 128];

/** What an argument is, where a shared array belongs. */
const shown = (given: Value | undefined): string =>
  given === undefined ? 'missing' : given.kind === 'array' ? 'a local array' : describe(given);

/**
 * The argument as an array of lines in shared memory, and the place at a line and a column of it.
 */
function lines(call: Call, at: number, lineAt: number, columnAt?: number): Lines {
  const { pass, node, name, args, argNodes } = call;
  const given = args[at];
  const own = argNodes[at] ?? node;
  if (given?.kind !== 'array' || pass.arrays[given.array]!.space === 'local')
    return pass.fail(
      own,
      `Argument ${at + 1} of ${name} is ${shown(given)}, and has to be a shared array of two axes`,
      'Declare it with gpu.dynamicShared.f16(LINES, 64).',
    );
  const { storage } = pass.arrays[given.array]!;
  const [, width] = given.dims;
  const bytes = (width ?? 0) * storageBytes[storage];
  if (given.dims.length !== 2 || !SPANS.includes(bytes))
    return pass.fail(
      own,
      `Argument ${at + 1} of ${name} has ${given.dims.length} axes and lines of ${bytes} bytes, ` +
        'and has to have two axes and lines of 128, 64 or 32 bytes',
      `Declare it with gpu.dynamicShared.${storage}(LINES, ${128 / storageBytes[storage]}).`,
    );
  const line = indexInto(pass, node, given, number(call, lineAt), argNodes[lineAt] ?? node);
  if (line.kind !== 'array') throw new TypeError('a line of an array of two axes is an array');
  const place = placeIn(
    pass,
    node,
    line,
    columnAt === undefined ? literal(0, pass.span(own)) : number(call, columnAt),
    columnAt === undefined ? node : (argNodes[columnAt] ?? node),
    'write',
  );
  return { place, storage, width: width! };
}

/** Elements along a panel of a transposed factor, or 0. */
function panelOf(call: Call, at: number): number {
  if (call.args[at] === undefined) return 0;
  const panel = known(call, at);
  if (panel < 0 || panel % 8 !== 0)
    call.pass.fail(
      call.argNodes[at] ?? call.node,
      `Argument ${at + 1} of ${call.name} is the number of lines of a panel, a multiple of 8, ` +
        `and got ${panel}`,
      'Write 0 for lines along the common dimension.',
    );
  return panel;
}

/** The columns of a product whose sums are so many elements in each thread. */
function columnsOf(call: Call, length: number, integers: boolean): number {
  const n = length * 2;
  const exists = n % 8 === 0 && n >= 8 && n <= 256 && (!integers || n < 32 || n % 16 === 0);
  if (!exists)
    call.pass.fail(
      call.argNodes[0] ?? call.node,
      `Argument 1 of ${call.name} (the sums) has ${length} elements in each thread, which makes ` +
        `${n} columns; there are products of 8 to 256 columns, ` +
        `${integers ? 'from 32 on multiples of 16' : 'multiples of 8'}`,
      'Declare it with gpu.local.f32(N / 2) for N columns.',
    );
  return n;
}

/** `a` from shared memory, or with `registers` from a local array. */
const product = (registers: boolean) => (call: Call) => {
  const fixed = registers ? 5 : 7;
  arity(call, fixed, fixed + (registers ? 1 : 2));
  const { pass, node, name, argNodes } = call;
  const sum = fragment(call, 0, 'the sums');
  const b = registers ? lines(call, 2, 3, 4) : lines(call, 4, 5, 6);
  const factors = FACTORS[b.storage];
  if (factors === undefined)
    return pass.fail(
      argNodes[registers ? 2 : 4] ?? node,
      `${name} multiplies f16, bf16, f32 (as tf32), f8e4m3, f8e5m2, i8 and u8, and the right ` +
        `factor is ${b.storage}`,
      'Convert it.',
    );
  if (!(factors.sums as readonly StorageType[]).includes(sum.storage))
    pass.fail(
      argNodes[0] ?? node,
      `${name} of ${b.storage} sums in ${factors.sums.join(' or ')}, and argument 1 is an array ` +
        `of ${sum.storage}`,
      `Declare it with gpu.local.${factors.sums[0]!}(${sum.length}).`,
    );
  const n = columnsOf(call, sum.length, factors.sums[0] === 'i32');
  const panelA = registers ? 0 : panelOf(call, 7);
  const panelB = panelOf(call, registers ? 5 : 8);
  if ((panelA > 0 || panelB > 0) && storageBytes[b.storage] !== 2)
    pass.fail(
      node,
      `${name} takes transposed factors of 16 bits only, and these are ${b.storage}`,
      'Transpose them before.',
    );
  const detail = [`m64n${n}k${factors.depth}`, sum.storage, factors.type, panelA, b.width, panelB];
  const right = address(b.place);
  const sums: InstructionOperand = { kind: 'fragment', fragment: asFragment(sum), writes: true };
  pass.sums.add(sum.array);
  if (registers) {
    const a = fragment(call, 1, 'the left factor');
    const length = (4 * 4) / storageBytes[b.storage];
    if (a.storage !== b.storage || a.length !== length)
      pass.fail(
        argNodes[1] ?? node,
        `Argument 2 of ${name} has ${a.length} elements of ${a.storage}, and has to have ` +
          `${length} of ${b.storage}`,
        `Declare it with gpu.local.${b.storage}(${length}).`,
      );
    const left: InstructionOperand = {
      kind: 'fragment',
      fragment: asFragment(a),
      writes: false,
    };
    pass.factors.add(a.array);
    return instruction(call, 'group.mma', [sums, left, right], [...detail, 'registers']);
  }
  const a = lines(call, 1, 2, 3);
  if (!together(a.storage, b.storage))
    pass.fail(
      argNodes[1] ?? node,
      `${name} multiplies two of one dtype, and its factors are ${a.storage} and ${b.storage}`,
      `Declare both as ${b.storage}.`,
    );
  return instruction(
    call,
    'group.mma',
    [sums, address(a.place), right],
    [...detail, FACTORS[a.storage]!.type, a.width],
  );
};

/**
 * After the last group the sums of all products can be read, and factors in registers written: they
 * are operands of the wait.
 */
function wait(call: Call, name: InstructionName): Value {
  arity(call, 1);
  const { pass } = call;
  const pending = known(call, 0);
  if (pending < 0 || pending > 7)
    pass.fail(
      call.argNodes[0] ?? call.node,
      `${call.name} takes how many groups may be under way, 0 to 7, and got ${pending}`,
      'Write 0 to wait for all of them.',
    );
  const span = pass.span(call.node);
  const operands: InstructionOperand[] = [];
  // Which arrays hold sums is known when all of the body has been read.
  if (pending === 0) {
    const before = pass.arrays.length;
    pass.atEnd(() => {
      for (const array of [...pass.sums, ...pass.factors])
        if (array < before)
          operands.push({
            kind: 'fragment',
            fragment: {
              array,
              index: constant(0, 'i32', span),
              length: pass.arrays[array]!.length,
            },
            writes: pass.sums.has(array),
          });
    });
  }
  return instruction(call, name, operands, [pending]);
}

/** The argument as an mbarrier: an array of u64 in shared memory, and its element. */
function barrierAt(call: Call, at: number): InstructionOperand {
  const { pass, node, name, args, argNodes } = call;
  const given = args[at];
  if (
    given?.kind !== 'array' ||
    pass.arrays[given.array]!.space !== 'shared' ||
    pass.arrays[given.array]!.storage !== 'u64'
  )
    return pass.fail(
      argNodes[at] ?? node,
      `Argument ${at + 1} of ${name} is ` +
        `${given === undefined ? 'missing' : describe(given)}, and has to be a shared array of u64`,
      'Declare it with gpu.shared.u64(COUNT).',
    );
  return address(
    placeIn(pass, node, given, number(call, at + 1), argNodes[at + 1] ?? node, 'write'),
  );
}

const ofBarrier =
  (more: number): Row =>
  (call, name) => {
    arity(call, 2 + more);
    return instruction(call, name, [
      barrierAt(call, 0),
      ...Array.from({ length: more }, (_, at) => value(integer(call, 2 + at, 'u32'))),
    ]);
  };

/** The map of a tensor for boxes of `count` lines, and the coordinates from argument `from` on. */
function boxOf(
  call: Call,
  at: number,
  { storage, width }: Lines,
  count: number,
  from: number,
  kind: { readonly pixels?: true } = {},
): { map: InstructionOperand; coordinates: InstructionOperand[] } {
  const { pass, node, name, args, argNodes } = call;
  const given = args[at];
  const own = argNodes[at] ?? node;
  const param =
    given?.kind === 'tensor' && given.indices.length === 0 ? pass.params[given.param] : undefined;
  if (given?.kind !== 'tensor' || param?.kind !== 'tensor' || 'struct' in param.element)
    return pass.fail(
      own,
      `Argument ${at + 1} of ${name} is ` +
        `${given === undefined ? 'missing' : describe(given)}, and has to be a tensor`,
      'Pass a parameter that is declared with input, output or inout.',
    );
  if (param.rank < 2 || param.rank > 5)
    return pass.fail(
      own,
      `Argument ${at + 1} of ${name} has ${param.rank} axes, and has to have 2 to 5`,
      `Declare it with input(${param.element.storage}, 2).`,
    );
  if (param.element.storage !== storage)
    pass.fail(
      own,
      `${name} copies elements as they are, and the tensor has elements of ` +
        `${param.element.storage}, the shared array of ${storage}`,
      `Declare both as ${storage}.`,
    );
  const coordinates = args.length - from - (kind.pixels ? 2 : 0);
  if (coordinates !== param.rank)
    pass.fail(
      node,
      `${name} takes an index for each of the tensor's ${param.rank} axes, and got ${coordinates}`,
      'Give one for each axis, the last one last.',
    );
  if (!(count >= 1 && count <= 256))
    pass.fail(
      node,
      `${name} copies 1 to 256 lines, and got ${count}`,
      'Copy them in several parts.',
    );
  const map = pass.abi(
    {
      kind: 'map',
      param: given.param,
      box: [...new Array<number>(param.rank - 2).fill(1), count, width],
      swizzle: (width * storageBytes[storage]) as 128,
      ...kind,
    },
    pass.span(own),
    'u64',
  );
  return {
    map: value(map),
    coordinates: Array.from({ length: coordinates }, (_, axis) =>
      value(integer(call, from + axis, 'i32')),
    ),
  };
}

/**
 * load(to, line, count, tensor, barriers, barrier, ...indices); multicast has its blocks before
 * them: so many arguments more.
 */
const load =
  (more: 0 | 1) =>
  (call: Call, name: InstructionName): Value => {
    arity(call, more + 8, more + 11);
    const to = lines(call, more, more + 1);
    const count = known(call, more + 2);
    const { map, coordinates } = boxOf(call, more + 3, to, count, more + 6);
    const blocks = more === 0 ? [] : [value(integer(call, 0, 'u32'))];
    return instruction(
      call,
      name,
      [address(to.place), map, barrierAt(call, more + 4), ...coordinates, ...blocks],
      [coordinates.length],
    );
  };

/**
 * loadPixels(to, line, count, images, barriers, barrier, image, row, column, channel, down,
 * across): `count` pixels from one on in the order of the window's, each moved down and across.
 */
function loadPixels(call: Call, name: InstructionName): Value {
  arity(call, 12);
  const to = lines(call, 0, 1);
  const { map, coordinates } = boxOf(call, 3, to, known(call, 2), 6, { pixels: true });
  const [down, across] = [10, 11].map((at) => value(integer(call, at, 'u32')));
  return instruction(
    call,
    name,
    [address(to.place), map, barrierAt(call, 4), ...coordinates, across!, down!],
    [coordinates.length],
  );
}

/** store(tensor, from, line, count, ...indices), and add */
function store(call: Call, name: InstructionName): Value {
  arity(call, 6, 9);
  const from = lines(call, 1, 2);
  const count = known(call, 3);
  const { map, coordinates } = boxOf(call, 0, from, count, 4);
  return instruction(call, name, [map, address(from.place), ...coordinates], [coordinates.length]);
}

/** load(to, from, index, rank) */
function loadOfCluster(call: Call, name: InstructionName): Value {
  arity(call, 4);
  const { pass, node, argNodes } = call;
  const to = fragment(call, 0, 'what is read', true);
  if (storageBytes[to.storage] !== 4 || ![1, 2, 4].includes(to.length))
    pass.fail(
      argNodes[0] ?? node,
      `${call.name} reads 1, 2 or 4 elements of 32 bits, and argument 1 has ${to.length} of ` +
        to.storage,
      'Declare it with gpu.local.f32(4).',
    );
  const from = sharedPlace(call, 1, 2);
  if (from.storage !== to.storage)
    pass.fail(
      argNodes[1] ?? node,
      `${call.name} reads ${from.storage} into an array of ${to.storage}`,
      `Declare both as ${to.storage}.`,
    );
  return instruction(
    call,
    name,
    [
      { kind: 'fragment', fragment: asFragment(to), writes: true },
      address(from),
      value(integer(call, 3, 'u32')),
    ],
    [to.length, to.storage],
  );
}

/**
 * mmaWords(sum, a, b, left, right): fragments of f16 whose words hold elements of two arrays'
 * dtypes.
 */
function mmaWords(call: Call, name: InstructionName): Value {
  arity(call, 5);
  let sums: StorageType = 'f32';
  const [sum, a, b] = [0, 1, 2].map((at): InstructionOperand => {
    const found = fragment(call, at, at === 0 ? 'the sum' : 'a factor');
    if (at === 0) sums = found.storage;
    return { kind: 'fragment', fragment: asFragment(found), writes: at === 0 };
  }) as [InstructionOperand, InstructionOperand, InstructionOperand];
  const [left, right] = [3, 4].map((at) => {
    const given = call.args[at];
    const found =
      given?.kind === 'array' ? FACTORS[call.pass.arrays[given.array]!.storage] : undefined;
    if (found === undefined) throw new TypeError(`${name} names the arrays of its factors`);
    return found;
  }) as [FactorFacts, FactorFacts];
  const detail = [`m16n8k${left.depth}`, sums, left.type, right.type];
  return instruction(call, name, [sum, a, b], detail);
}

/** storeMatrices(to, index, from) */
function storeMatrices(call: Call, name: InstructionName): Value {
  arity(call, 3);
  const { pass, node, argNodes } = call;
  const from = matricesOf(call, 2, 'what is written');
  const to = sharedPlace(call, 0, 1);
  if (from.storage !== to.storage)
    pass.fail(
      argNodes[0] ?? node,
      `${call.name} writes ${from.storage} to an array of ${to.storage}`,
      `Declare both as ${to.storage}.`,
    );
  return instruction(
    call,
    name,
    [address(to), { kind: 'fragment', fragment: asFragment(from), writes: false }],
    [from.length / 2],
  );
}

const ROWS: Readonly<Record<InstructionName, Row>> = {
  'group.begin': bare,
  'group.mma': product(false),
  'group.commit': bare,
  'group.wait': wait,
  'group.moreRegisters': counted('registers of a thread', 24, 256, 8),
  'group.fewerRegisters': counted('registers of a thread', 24, 256, 8),
  'tensor.load': load(0),
  'tensor.multicast': load(1),
  'tensor.loadPixels': loadPixels,
  'tensor.store': store,
  'tensor.add': store,
  'tensor.commit': bare,
  'tensor.wait': counted('how many groups may be under way', 0, 63),
  'tensor.waitRead': counted('how many groups may be under way', 0, 63),
  'barrier.init': ofBarrier(1),
  'barrier.arrive': ofBarrier(0),
  'barrier.arriveIn': ofBarrier(1),
  'barrier.expect': ofBarrier(1),
  'barrier.wait': ofBarrier(1),
  'cluster.load': loadOfCluster,
  'cluster.sync': bare,
  'block.syncThreads': (call, name) => {
    arity(call, 2);
    return instruction(call, name, [
      value(integer(call, 0, 'u32')),
      value(integer(call, 1, 'u32')),
    ]);
  },
  'warp.mmaWords': mmaWords,
  'warp.storeMatrices': storeMatrices,
  'grid.waitForDependencies': (call, name) => {
    call.pass.dependent = true;
    return bare(call, name);
  },
  'grid.launchDependents': bare,
  'fence.async': bare,
  'fence.barriers': bare,
};

const OWN = 'warp.mmaWords';
/** Of the compiler's own kernels. */
export const wordProduct = (call: Call): Value => ROWS[OWN](call, OWN);

/** The functions by their names in `gpu`. Two of them read a product. */
export const instructionFunctions: Readonly<Record<string, (call: Call) => Value>> = {
  ...Object.fromEntries(
    (Object.keys(ROWS) as InstructionName[])
      .filter((name) => name !== OWN)
      .map((name) => [name, (call: Call) => ROWS[name](call, name)]),
  ),
  'group.mmaOfRegisters': product(true),
};
