/**
 * Which two products of a tile kernel Hopper's warp groups compute in one loop, as attention has
 * them: the tile of the first is the left factor of the second. They are found in the body's text,
 * as single products are.
 */
import { FACTORS } from '../compiler/factors.js';
import {
  BYTES,
  LINE_BYTES,
  PRODUCT_ACROSS,
  PRODUCT_WIDTH,
  SHARED_BYTES,
  TILE_NAMES,
} from '../compiler/tiles/tile-form.js';
import type {
  AxisForm,
  ChainedProducts,
  CopiedForm,
  CutAxis,
  TileForm,
} from '../compiler/tiles/tile-form.js';
import type { DeviceTarget, GivenTensor } from './shaped-kernel.js';
import {
  BESIDE,
  COMMENTS,
  COPIED_BYTES,
  COPYING_THREADS,
  GROUP_ROWS,
  HOPPER,
  PARAMETERS,
  factorOf,
  inMemory,
  isCopiedDtype,
  named,
  namesIn,
  notMapped,
  storedOnce,
} from './tile-products.js';
import type { Factor, NamedCuts, ProductLaunch } from './tile-products.js';
import type { TileWalk } from './tile-walk.js';

/** Two products in the text of a body. */
export interface FoundChain {
  /** The name of the axis of their loop. */
  readonly summed: string;
  /** The names of their factors. */
  readonly left: string;
  readonly right: string;
  readonly values: string;
  /** The dtype to which the first one's tile is converted. */
  readonly converted: string | undefined;
  readonly isExact: boolean;
  /** Tensors of which the body uses nothing but one store, outside of loops. */
  readonly stored: readonly string[];
}

const NAME = String.raw`([\w$]+)`;
const OWN = String.raw`(?:[\w$]+\.)?`;
const OVER = new RegExp(String.raw`\bfor\s*\(\s*(?:const|let|var)\s+${NAME}\s+of\s+${OWN}over\(`);
const AXIS = /^(['"`])([\w$]+)\1$/;
const LOOPS = /\b(?:for|while|do)\b/g;
const DOT = new RegExp(String.raw`(?<![\w$])${OWN}dot\(`, 'g');
const LOAD = new RegExp(String.raw`^${NAME}\.load\(\s*([\w$]*)\s*\)$`);
const TRANSPOSED = new RegExp(String.raw`^${OWN}transpose\(([^]*)\)$`);
const CONVERTED = new RegExp(String.raw`^${OWN}${NAME}\(`);
const CONSTANT = new RegExp(
  String.raw`(?<![\w$.])const\s+${NAME}\s*=\s*(${NAME}\.load\(\s*[\w$]*\s*\))\s*(?=[;\n])`,
  'g',
);
const ASSIGNED = new RegExp(
  String.raw`(?<![\w$.=!<>])${NAME}\s*(?:[-+*/%&|^]|<<|>>>?)?=(?![=>])`,
  'g',
);
const EXACT = /^\{\s*precision:\s*['"`]exact['"`]\s*,?\s*\}$/;
const REDUCTIONS = ['sum', 'max', 'min', 'mean'];

const TILES = new RegExp(String.raw`\b(?:load|index|dot|transpose|${REDUCTIONS.join('|')})\s*\(`);

const CLOSING: Readonly<Record<string, string>> = { '(': ')', '[': ']', '{': '}' };

/** The pieces of a bracket's contents between commas, and the place after it. */
function piecesAt(
  text: string,
  open: number,
): { readonly pieces: readonly string[]; readonly end: number } | undefined {
  const waiting: string[] = [];
  const pieces: string[] = [];
  let from = open + 1;
  for (let at = open; at < text.length; at++) {
    const char = text[at]!;
    if (char === '"' || char === "'" || char === '`') {
      at = text.indexOf(char, at + 1);
      if (at < 0) return undefined;
    } else if (CLOSING[char] !== undefined) waiting.push(CLOSING[char]);
    else if (char === waiting.at(-1)) {
      waiting.pop();
      if (waiting.length === 0) {
        const last = text.slice(from, at).trim();
        return { pieces: last === '' ? pieces : [...pieces, last], end: at + 1 };
      }
    } else if (char === ',' && waiting.length === 1) {
      pieces.push(text.slice(from, at).trim());
      from = at + 1;
    }
  }
  return undefined;
}

interface Call {
  readonly start: number;
  readonly end: number;
  readonly pieces: readonly string[];
}

const callsIn = (text: string, pattern: RegExp): (Call | undefined)[] =>
  [...text.matchAll(pattern)].map(({ 0: head, index }) => {
    const found = piecesAt(text, index + head.length - 1);
    return found && { start: index, ...found };
  });

const LITERALS = /"[^"\n]*"|'[^'\n]*'|`[^`]*`/g;

/** How often a name occurs. */
const usesOf = (text: string, name: string): number =>
  text.replace(LITERALS, '').split(new RegExp(named(name), 'g')).length - 1;

/**
 * Whether the body's functions of tiles are known by their names, and all reductions are along
 * rows: those have their elements in one warp.
 */
function reducesRows(rest: string, tile: string | undefined, members: string): boolean {
  const own: readonly string[] = TILE_NAMES;
  let prefix = String.raw`(?<![\w$.])`;
  if (tile === undefined) {
    for (const [local, name] of namesIn(members))
      if (local !== name && own.includes(name)) return false;
  } else {
    const plain = tile.replaceAll('$', String.raw`\$`);
    prefix += String.raw`${plain}\s*\.\s*`;
    const uses = usesOf(rest, tile);
    const asMember = [...rest.matchAll(new RegExp(`${prefix}[\\w$]+`, 'g'))];
    if (uses !== asMember.length) return false;
  }
  const reductions = new RegExp(`${prefix}(?:${REDUCTIONS.join('|')})(?![\\w$])`, 'g');
  const calls = callsIn(rest, new RegExp(`${reductions.source}\\(`, 'g'));
  return (
    calls.length === [...rest.matchAll(reductions)].length &&
    calls.every((call) => call?.pieces.length === 2 && call.pieces[1] === '1')
  );
}

/** The names that an expression has, apart from those of members. */
const namesOf = (text: string): Set<string> =>
  new Set(
    [...text.replace(LITERALS, '').matchAll(/(?<![\w$.])[A-Za-z_$][\w$]*/g)].map(([name]) => name),
  );

/** Finds the two products of a body whose parameters are destructured, or says what is missing. */
export function chainIn(given: string, tensors: readonly string[]): FoundChain | undefined {
  const text = given.replace(COMMENTS, (_, literal?: string) => literal ?? ' ');
  const parameters = PARAMETERS.exec(text);
  const loop = OVER.exec(text);
  if (parameters === null || loop === null) return undefined;
  const [head, own, tile, members = ''] = parameters as unknown as [
    string,
    string,
    string?,
    string?,
  ];
  const rest = text.slice(head.length);
  if ([...rest.matchAll(LOOPS)].length !== 1 || !reducesRows(rest, tile, members)) return undefined;
  const over = piecesAt(text, loop.index + loop[0].length - 1);
  const brace = over && /^\s*\)\s*\{/.exec(text.slice(over.end));
  const summed = AXIS.exec(over?.pieces[0] ?? '')?.[2];
  if (over === undefined || !brace || summed === undefined) return undefined;
  if (!areGlobal(over.pieces[1] ?? '', [...namesIn(own).keys(), ...namesIn(members).keys(), tile]))
    return undefined;
  const open = over.end + brace[0].length - 1;
  const block = piecesAt(text, open);
  if (block === undefined) return undefined;
  const inLoop = text.slice(open + 1, block.end - 1);
  const outside = text.slice(head.length, loop.index) + text.slice(block.end);
  const dots = callsIn(inLoop, DOT);
  const [first, second] = partsOf(dots);
  if (first === undefined || second === undefined || DOT.test(outside)) return undefined;
  const locals = namesIn(own);
  const step = loop[1];
  const loads = new Map([...rest.matchAll(CONSTANT)].map(([, name, load]) => [name!, load!]));
  /** The tensor of a factor that is loaded, with or without a step, and used nowhere else. */
  const factor = (piece: string, at: string): string | undefined => {
    const load = LOAD.exec(loads.get(piece) ?? piece);
    const name = load === null ? undefined : locals.get(load[1]!);
    return load?.[2] === at &&
      name !== undefined &&
      tensors.includes(name) &&
      usesOf(rest, load[1]!) === 1 &&
      (!loads.has(piece) || usesOf(rest, piece) === 2)
      ? name
      : undefined;
  };
  const turned = TRANSPOSED.exec(first.pieces[1]!)?.[1];
  const left = factor(first.pieces[0]!, '');
  const right = turned === undefined ? undefined : factor(turned.trim(), step!);
  const values = factor(second.pieces[1]!, step!);
  if (left === undefined || right === undefined || values === undefined) return undefined;
  if (!isLastUse(inLoop, second)) return undefined;
  return {
    ...{ summed, left, right, values },
    converted: conversionOf(second.pieces[0]!, namesIn(members)),
    isExact: [first, second].some(({ pieces }) => EXACT.test(pieces.at(-1)!)),
    stored: storedOnce(outside, locals).filter(
      (name) =>
        tensors.includes(name) &&
        [...locals].every(([local, of]) => of !== name || usesOf(inLoop, local) === 0),
    ),
  };
}

/** The first and the second of two products; the first may be within the second. */
function partsOf(
  dots: readonly (Call | undefined)[],
): readonly [first: Call | undefined, second: Call | undefined] {
  const [a, b, more] = dots;
  if (a === undefined || b === undefined || more !== undefined) return [undefined, undefined];
  const [first, second] = b.end < a.end ? [b, a] : [a, b];
  const options = (call: Call, count: number): boolean =>
    call.pieces.length === count ||
    (call.pieces.length === count + 1 && call.pieces[count]!.startsWith('{'));
  // The first one is added to nothing.
  return options(first, 2) && options(second, 3) ? [first, second] : [undefined, undefined];
}

/** The dtype to which an expression converts as a whole. */
function conversionOf(piece: string, members: ReadonlyMap<string, string>): string | undefined {
  const call = CONVERTED.exec(piece);
  const name = members.get(call?.[1] ?? '') ?? call?.[1];
  return (name === 'f16' || name === 'bf16') &&
    piecesAt(piece, call![0].length - 1)?.end === piece.length
    ? name
    : undefined;
}

/**
 * Whether the values of a loop's options are computed from parameters and places of the tile: the
 * threads that copy have no others.
 */
const areGlobal = (options: string, known: readonly (string | undefined)[]): boolean =>
  !TILES.test(options.replace(/\bMath\s*\.\s*\w+/g, '')) &&
  [...namesOf(options.replace(/\b(?:from|to)\s*:/g, ''))].every(
    (name) => name === 'Math' || known.includes(name),
  );

/**
 * Whether the second product is a statement that assigns to its own sum, which the loop uses
 * nowhere else, and whether its operands are the same after the statements that follow it.
 */
function isLastUse(inLoop: string, { start, end, pieces }: Call): boolean {
  const sum = /(?:^|[;{}\n])\s*([\w$]+)\s*=\s*$/.exec(inLoop.slice(0, start))?.[1];
  const after = inLoop.slice(end);
  if (sum === undefined || !/^\s*(?:[;\n]|$)/.test(after)) return false;
  const added = usesOf(pieces[2]!, sum);
  if (usesOf(inLoop, sum) !== 1 + added) return false;
  const used = namesOf(`${pieces[0]!} ${pieces[2]!}`);
  return ![...after.matchAll(ASSIGNED)].some(([, name]) => used.has(name!));
}

/** Elements of a line, and of the summed axis in one instruction. */
const LINE = LINE_BYTES / 2;
const DEPTH = 16;
const MOST_KEYS = 256;
const MOST_STAGES = 4;
const MOST_INNER = 256;
/**
 * Elements of both tiles that a thread has, at most: sums, scores and those of the last step, two
 * in a register. By the number of warp groups.
 */
const MOST_EACH: Readonly<Record<number, number>> = { 1: 184, 2: 176, 3: 112 };
/** Bytes of factors that a section of matrices has: they stay in the cache. */
const SECTION_BYTES = 16 << 20;

/** Why warp groups do not compute two products of one loop, or their launch. */
export function chainForm(
  found: FoundChain,
  cuts: NamedCuts,
  walk: TileWalk,
  tensors: readonly GivenTensor[],
  target: DeviceTarget,
): ProductLaunch | string {
  if (found.isExact) return 'it is exact';
  if (target.capability !== HOPPER)
    return 'two products of one loop are computed by compute capability 9.0';
  const given = (name: string): GivenTensor => tensors.find((tensor) => tensor.name === name)!;
  const names = [found.left, found.right, found.values] as const;
  const [left, right, values] = names.map((name) =>
    inMemory({ name, turned: name === found.right }, given(name)),
  ) as [Factor, Factor, Factor];
  const { storage } = left;
  if (
    (storage !== 'f16' && storage !== 'bf16') ||
    names.some((name) => given(name).dtype !== storage)
  )
    return `${names.join(', ')} are not all of f16, or all of bf16`;
  if (found.converted !== storage)
    return `the left factor of ${found.values} is f32: tile.${storage}(…) converts it`;
  const numbers = axesOf(found, cuts);
  if (typeof numbers === 'string') return numbers;
  for (const factor of [left, right, values]) {
    const reason = factor.isExchanged
      ? 'has no adjacent elements in its rows'
      : notMapped({ ...given(factor.name), layout: factor.layout });
    if (reason !== undefined) return `${factor.name} ${reason}`;
  }
  const reason = notByTiles(numbers, walk) ?? notByOthers(names, numbers, cuts, walk, tensors);
  if (reason !== undefined) return reason;
  return launchOf({ left, right, values }, numbers, found, cuts, walk, tensors, target);
}

type Numbers = Pick<ChainedProducts, 'rows' | 'columns' | 'summed' | 'inner'>;

function axesOf(
  { left, right, values, summed: name }: FoundChain,
  cuts: NamedCuts,
): Numbers | string {
  const summed = cuts.names.indexOf(name);
  const of = (tensor: string): (number | undefined)[] => {
    const axes = cuts.tensors[tensor]!;
    return [axes.at(-2), axes.at(-1)];
  };
  const [[rows, inner], [keys, along], [alsoKeys, columns]] = [left, right, values].map(of) as [
    (number | undefined)[],
    (number | undefined)[],
    (number | undefined)[],
  ];
  return rows === undefined ||
    inner === undefined ||
    columns === undefined ||
    inner !== along ||
    keys !== summed ||
    alsoKeys !== summed ||
    rows === columns ||
    rows === summed
    ? `the axes of ${left}, ${right} and ${values} are not those of two products`
    : { rows, columns, summed, inner };
}

/** Why the tiles are not those of warp groups. */
function notByTiles({ rows, columns, summed, inner }: Numbers, walk: TileWalk): string | undefined {
  const [down, across, along, within] = [rows, columns, summed, inner].map(
    (axis) => walk.axes[axis]!,
  ) as [CutAxis, CutAxis, CutAxis, CutAxis];
  if (along.cut !== 'walk') return `blocks do not walk along ${along.name}`;
  if (along.extent === 0) return `there is nothing along ${along.name}`;
  const groups = down.tile / GROUP_ROWS;
  const most = MOST_EACH[groups];
  if (down.cut !== 'blocks' || most === undefined)
    return `tiles have ${down.tile} ${down.name}, and not 64, 128 or 192`;
  if (along.tile % DEPTH !== 0 || along.tile > MOST_KEYS)
    return `tiles have ${along.tile} ${along.name}, and not a multiple of 16 of at most 256`;
  for (const axis of [within, across])
    if (axis.cut !== 'whole' || axis.tile % LINE !== 0 || axis.tile > MOST_INNER)
      return (
        `there are ${axis.extent} ${axis.name} in tiles of ${axis.tile}, and not all in one of ` +
        '64, 128, 192 or 256'
      );
  const each = across.tile / 2 + along.tile / 2 + along.tile / 4;
  return each > most
    ? `tiles of ${down.tile} ${down.name} × ${along.tile} ${along.name} take too many registers`
    : undefined;
}

/** Why the other tensors are not those of the two products' tiles. */
function notByOthers(
  names: readonly string[],
  { rows, columns, summed }: Numbers,
  cuts: NamedCuts,
  walk: TileWalk,
  tensors: readonly GivenTensor[],
): string | undefined {
  for (const { name, written } of tensors) {
    if (names.includes(name)) continue;
    const axes = cuts.tensors[name]!;
    const [row, column] = [axes.at(-2), axes.at(-1)];
    if (
      (row !== undefined && row !== rows) ||
      (column !== undefined && column !== columns && column !== summed)
    )
      return `${name} has rows and columns other than the products'`;
    if (written && axes.includes(summed))
      return `${name} is written along ${walk.axes[summed]!.name}`;
  }
  for (const axis of [columns, summed]) {
    const { widest, extent, name } = walk.axes[axis]!;
    if (extent % PRODUCT_WIDTH !== 0) return `the number of ${name} is odd`;
    const isRead = tensors.some((each) => cuts.tensors[each.name]!.at(-1) === axis);
    if (isRead && widest < PRODUCT_WIDTH)
      return 'rows of a tensor do not begin at multiples of two elements';
  }
  return undefined;
}

/** The launch, or why shared memory does not hold it. */
function launchOf(
  { left, right, values }: Record<'left' | 'right' | 'values', Factor>,
  numbers: Numbers,
  { stored }: FoundChain,
  cuts: NamedCuts,
  walk: TileWalk,
  tensors: readonly GivenTensor[],
  target: DeviceTarget,
): ProductLaunch | string {
  const { rows, columns, summed, inner } = numbers;
  const [down, across, along, within] = [rows, columns, summed, inner].map(
    (axis) => walk.axes[axis]!,
  ) as [CutAxis, CutAxis, CutAxis, CutAxis];
  const groups = down.tile / GROUP_ROWS;
  const copied = tensors.find((tensor) => {
    const axes = cuts.tensors[tensor.name]!;
    return (
      // The parts of three groups are more than the shared memory that a kernel declares.
      groups <= 2 &&
      stored.includes(tensor.name) &&
      axes.at(-2) === rows &&
      axes.at(-1) === columns &&
      isCopiedDtype(tensor.dtype) &&
      notMapped(tensor) === undefined
    );
  });
  const fixed = (within.tile / LINE) * down.tile * LINE_BYTES;
  const stage = ((within.tile + across.tile) / LINE) * along.tile * LINE_BYTES;
  const beside = BESIDE + fixed + (copied === undefined ? 0 : COPIED_BYTES * groups);
  const stages = Math.min(MOST_STAGES, Math.floor((target.sharedBytes - beside) / stage));
  if (stages < 2) return 'shared memory does not hold two steps of the factors';
  const bytes = along.extent * (within.tile + across.tile) * 2;
  const product: ChainedProducts = {
    by: 'chain',
    ...{ left: factorOf(left), right: factorOf(right), values: factorOf(values) },
    ...numbers,
    stages,
    section: 2 ** Math.floor(Math.log2(Math.max(1, SECTION_BYTES / bytes))),
    copied: copied && { name: copied.name, storage: copied.dtype as CopiedForm['storage'] },
  };
  const mapped = [left, right, values, ...(copied === undefined ? [] : [copied])];
  const form: TileForm = {
    ...{ across: PRODUCT_ACROSS, down: down.tile / 2, broadcast: false, product },
    axes: walk.axes.map(({ name, tile, cut, extent }, axis): AxisForm => {
      const isColumn = axis === columns || axis === summed;
      const divides = extent % tile === 0;
      return {
        ...{ name, tile, cut, width: isColumn ? PRODUCT_WIDTH : 1 },
        exactRows: divides && axis === rows,
        exactColumns: divides && isColumn,
      };
    }),
    tensors: {
      ...walk.tensors,
      ...Object.fromEntries(
        mapped.map(({ name }) => [
          name,
          { ...walk.tensors[name]!, access: 'strided' as const, rank: cuts.tensors[name]!.length },
        ]),
      ),
    },
  };
  const { depth } = FACTORS[left.storage]!;
  return {
    form,
    moreThreads: COPYING_THREADS,
    blocks: target.multiprocessors,
    sharedBytes: fixed + stage * stages,
    layouts: new Map([
      ...walk.layouts,
      ...mapped.map(({ name, layout }) => [name, layout] as const),
    ]),
    strides: {},
    instructions: [along.tile, across.tile].map(
      (width) => `wgmma.m64n${width}k${depth} of ${left.storage}`,
    ),
  };
}

/** Rows and steps of smaller tiles, in the order in which they are tried. */
const SMALLER: readonly (readonly [rows: number, along: number])[] = [
  [Infinity, Infinity],
  [64, 32],
  [32, 32],
  [32, 16],
  [16, 16],
  [8, 8],
];
/** Elements between rows in shared memory, at most. */
const PAD = 8;

/**
 * The axes, with smaller tiles where the factors as f32 would not fit in the shared memory that a
 * kernel declares: tiles that are right for tensor cores are too large without them.
 */
export function fittingChain(
  { left, values, summed }: FoundChain,
  cuts: NamedCuts,
  axes: readonly CutAxis[],
  tensors: readonly GivenTensor[],
): readonly CutAxis[] {
  const { dtype } = tensors.find(({ name }) => name === left)!;
  if (dtype !== 'f16' && dtype !== 'bf16') return axes;
  const along = cuts.names.indexOf(summed);
  const [rows, inner] = cuts.tensors[left]!.slice(-2);
  const columns = cuts.tensors[values]!.at(-1);
  if ([rows, inner, columns].includes(undefined)) return axes;
  const lengths = axes.map(({ tile }) => tile + PAD);
  const fitting = SMALLER.map(([down, step]): readonly CutAxis[] =>
    axes.map((axis, number) => {
      const most = number === rows ? down : number === along ? step : Infinity;
      return axis.cut === 'whole' ? axis : { ...axis, tile: Math.min(axis.tile, most) };
    }),
  );
  // The left factor stays; the right one and the values may have a place each.
  const bytesOf = (of: readonly CutAxis[]): number =>
    (of[rows!]!.tile + 2 * of[along]!.tile) *
    Math.max(lengths[inner!]!, lengths[columns!]!) *
    BYTES;
  return fitting.find((of) => bytesOf(of) <= SHARED_BYTES) ?? fitting.at(-1)!;
}
