/**
 * Which product of a tile kernel tensor cores compute: the one whose loop has no other
 * statement. It is found in the body's text, since the parser is part of the compiler, which a
 * kernel whose code is kept does not load; what is not found is computed without tensor cores.
 */
import { ACCUMULATORS, FACTORS, together } from '../compiler/factors.js';
import type { Accumulator } from '../compiler/factors.js';
import { DTYPES } from '../core/index.js';
import type { KernelDTypeName } from '../core/index.js';
import {
  LINE_BYTES,
  PARTS,
  PART_LINES,
  PRODUCT_ACROSS,
  PRODUCT_ROWS,
  PRODUCT_WIDTH,
  depthOf,
  strideName,
  sumsOf,
} from '../compiler/tiles/tile-form.js';
import type {
  AxisForm,
  CopiedForm,
  CutAxis,
  FactorForm,
  ProductFactor,
  ProductForm,
  TensorForm,
  TileForm,
  WarpProduct,
} from '../compiler/tiles/tile-form.js';
import { BYTES, SHARED_BYTES, EXCHANGING_NAMES } from '../compiler/tiles/tile-form.js';
import type { DeviceTarget, GivenTensor } from './shaped-kernel.js';
import type { TileCuts } from './tile-cuts.js';
import type { Layout } from '../tensor/index.js';
import { layoutOf } from '../tensor/layout.js';
import { WIDEST } from './tile-walk.js';
import type { TileWalk } from './tile-walk.js';

/** A product in the text of a body. */
export interface FoundProduct {
  /** The name of the axis that is summed over. */
  readonly summed: string;
  readonly left: FactorForm;
  readonly right: FactorForm;
  /** The precision that its options name. */
  readonly precision?: 'exact' | 'tensor';
  /** What its options sum in. */
  readonly accumulate?: Accumulator;
  /** Tensors of which the body uses nothing but one store, outside of loops. */
  readonly stored: readonly string[];
}

const NAME = String.raw`([\w$]+)`;
const OWN = String.raw`(?:[\w$]+\.)?`;
const LOAD = String.raw`${OWN}${NAME}\.load\(\s*\1\s*\)`;
const FACTOR = String.raw`(?:${OWN}transpose\(\s*${LOAD}\s*\)|${LOAD})`;
const QUOTE = String.raw`['"\x60]`;
const OPTIONS = String.raw`(?:,\s*\{([^{}]*)\}\s*)?`;
const OPTION = new RegExp(String.raw`^\s*(precision|accumulate)\s*:\s*${QUOTE}(\w+)${QUOTE}\s*$`);
const OVER = String.raw`${OWN}over\(\s*(['"\x60])${NAME}\2\s*\)`;
/**
 * The loop: its step, a quote, the axis, a brace, the sum; each factor if it is turned, and if not;
 * the options.
 */
const LOOP = new RegExp(
  String.raw`for\s*\(\s*(?:const|let|var)\s+${NAME}\s+of\s+${OVER}\s*\)\s*(\{\s*)?` +
    String.raw`${NAME}\s*=\s*${OWN}dot\(\s*${FACTOR}\s*,\s*${FACTOR}\s*,\s*\5\s*` +
    String.raw`${OPTIONS},?\s*\)(\s*;?\s*)`,
);
/** The parameters' names; bundlers write `{ a: a2 }` for those that the scope around it has. */
export const PARAMETERS =
  /^\s*(?:function\s*[\w$]*\s*)?\(\s*\{([\s\w$,:]*)\}\s*,\s*(?:([\w$]+)|\{([\s\w$,:]*)\})\s*\)/;
const STORE = /^\s*\.\s*store\s*\(/;
const REDUCTIONS = ['sum', 'max', 'min', 'mean'];
export const COMMENTS = /("[^"\n]*"|'[^'\n]*'|`[^`]*`)|\/\*[\s\S]*?\*\/|\/\/[^\n]*/g;

/** Names in a pattern, by those that the body gives them. */
export const namesIn = (pattern: string): Map<string, string> =>
  new Map(
    pattern
      .split(',')
      .filter((each) => each.trim() !== '')
      .map((each) => {
        const [name, local = name] = each.split(':').map((part) => part.trim()) as [string];
        return [local, name];
      }),
  );

export const named = (name: string): RegExp =>
  new RegExp(String.raw`(?<![\w$.])${name.replaceAll('$', String.raw`\$`)}(?![\w$])`);

/**
 * Finds the only product of a body whose parameters are destructured. `tensors`: the names of
 * tensors.
 */
export function productIn(given: string, tensors: readonly string[]): FoundProduct | undefined {
  const text = given.replace(COMMENTS, (_, literal?: string) => literal ?? ' ');
  const parameters = PARAMETERS.exec(text);
  const loop = LOOP.exec(text);
  if (parameters === null || loop === null) return undefined;
  const [head, own, tile, members = ''] = parameters as unknown as [
    string,
    string,
    string?,
    string?,
  ];
  let end = loop.index + loop[0].length;
  if (loop[4] !== undefined) {
    // It is the only statement of the block.
    if (text[end] !== '}') return undefined;
    end++;
  } else if (!/[;\n]/.test(loop[11]!) && end < text.length && text[end] !== '}') return undefined;
  const rest = text.slice(head.length, loop.index) + text.slice(end);
  if (exchanges(rest, tile, members)) return undefined;
  const locals = namesIn(own);
  const [left, right] = [6, 8].map((at): FactorForm | undefined => {
    const local = loop[at] ?? loop[at + 1]!;
    const name = locals.get(local);
    // It has a form of its own, so that it is loaded nowhere else.
    return name !== undefined && tensors.includes(name) && !named(local).test(rest)
      ? { name, turned: loop[at] !== undefined }
      : undefined;
  });
  if (left === undefined || right === undefined || left.name === right.name) return undefined;
  const options = optionsIn(loop[10] ?? '');
  if (options === undefined) return undefined;
  const stored = storedOnce(rest, locals).filter((name) => tensors.includes(name));
  return { summed: loop[3]!, left, right, ...options, stored };
}

/** The options of a product; undefined where they are no constants, which the compiler refuses. */
function optionsIn(text: string): Pick<FoundProduct, 'precision' | 'accumulate'> | undefined {
  const found: { precision?: 'exact' | 'tensor'; accumulate?: Accumulator } = {};
  for (const part of text.split(',')) {
    if (part.trim() === '') continue;
    const [, name, value] = OPTION.exec(part) ?? [];
    const sums = ACCUMULATORS.find((each) => each === value);
    if (name === 'precision' && (value === 'tensor' || value === 'exact')) found.precision = value;
    else if (name === 'accumulate' && sums !== undefined) found.accumulate = sums;
    else return undefined;
  }
  return found;
}

/** The names of what the rest of a body uses for one store only, by their local names. */
export function storedOnce(rest: string, locals: ReadonlyMap<string, string>): string[] {
  if (/\b(?:for|while|do)\b/.test(rest)) return [];
  return [...locals].flatMap(([local, name]) => {
    const [use, ...others] = rest.split(named(local));
    const isStore = others.length === 1 && use !== undefined && STORE.test(others[0]!);
    return isStore ? [name] : [];
  });
}

/**
 * Whether the rest of a body may use functions of tiles, whose threads exchange elements. Members
 * of the second parameter are known by its pattern, or where it is used for members only.
 */
function exchanges(rest: string, tile: string | undefined, members: string): boolean {
  if (tile === undefined) {
    const names = [...namesIn(members)];
    return (
      names.some(([, name]) => REDUCTIONS.includes(name)) ||
      names.some(
        ([local, name]) => EXCHANGING_NAMES.includes(name as 'over') && named(local).test(rest),
      )
    );
  }
  const plain = tile.replaceAll('$', String.raw`\$`);
  const uses = [...rest.matchAll(new RegExp(String.raw`(?<![\w$.])${plain}(?![\w$])`, 'g'))];
  return uses.some(({ index, 0: use }) => {
    const member = /^\s*\.\s*([\w$]+)/.exec(rest.slice(index + use.length))?.[1];
    return member === undefined || EXCHANGING_NAMES.includes(member as 'over');
  });
}

/** Rows of a warp group, and groups that multiply in a block, at most. */
export const GROUP_ROWS = 64;
const MOST_GROUPS = 2;
/** Columns of a tile. A thread has registers for 64 sums of a step beside 64 of all. */
const COLUMNS = [64, 128, 192, 256];
const COLUMNS_BY_STEPS = [64, 128];
/** Sums of a warp. */
const MOST_SUMS = 128 * 32;
export const MOST_STAGES = 6;
/** Bytes of shared memory that mbarriers and alignment take beside the factors. */
export const BESIDE = 2048;
/** Bytes for the parts of a tile that a warp group's tensor copies write. */
export const COPIED_BYTES = PARTS * PART_LINES * LINE_BYTES;

/** A kernel whose product tensor cores compute, and its launch. */
export interface ProductLaunch {
  readonly form: TileForm;
  /** Threads of a block beside those that share the tiles. */
  readonly moreThreads: number;
  /** Blocks at most: they stay, and compute one tile after the other. */
  readonly blocks: number;
  readonly sharedBytes: number;
  /** The layouts in which the kernel is passed its tensors: tensor maps describe the factors. */
  readonly layouts: TileWalk['layouts'];
  /** Strides of factors that are runs, by the names of the parameters. */
  readonly strides: Readonly<Record<string, number>>;
  /** The instruction of each product, for reports. */
  readonly instructions: readonly string[];
}

/** Threads of a block that copy. */
export const COPYING_THREADS = 128;

/** A factor as its instruction takes it, with the tensor's layout by rows. */
export interface Factor extends ProductFactor {
  readonly layout: Layout;
  /** Whether its last two axes are exchanged, as the product takes it from memory. */
  readonly isExchanged: boolean;
}

/**
 * A factor by the order of its elements in memory: a tensor whose columns are adjacent is the
 * transpose of one whose rows are.
 */
export function inMemory({ name, turned }: FactorForm, { layout, dtype }: GivenTensor): Factor {
  const { shape, strides, offset } = layout;
  const isRun = (axis: -1 | -2): boolean => shape.at(axis) === 1 || strides.at(axis) === 1;
  if (isRun(-1) || !isRun(-2)) return { name, turned, storage: dtype, layout, isExchanged: false };
  const exchanged = (values: readonly number[]): number[] => [
    ...values.slice(0, -2),
    values.at(-1)!,
    values.at(-2)!,
  ];
  return {
    ...{ name, turned: !turned, storage: dtype, isExchanged: true },
    layout: layoutOf(exchanged(shape), exchanged(strides), offset),
  };
}

/** Why tensor cores do not compute products of these dtypes. */
function notByDtype(
  { precision, accumulate }: FoundProduct,
  left: Factor,
  right: Factor,
  { capability }: DeviceTarget,
): string | undefined {
  if (precision === 'exact' && sumsOf(left.storage) === 'f32') return 'it is exact';
  if (!together(left.storage, right.storage))
    return `tensor cores have no product of ${left.storage} and ${right.storage}`;
  const { sums } = FACTORS[left.storage]!;
  if (accumulate !== undefined && !sums.includes(accumulate))
    return `products of ${left.storage} are summed in ${sums.join(' or ')}`;
  if (left.storage === 'f32' && precision !== 'tensor')
    return "f32 is exact by default: { precision: 'tensor' } rounds it to tf32";
  const least = capability === HOPPER ? undefined : BY_WARPS[left.storage];
  const shown = (number: number): string => `${Math.floor(number / 10)}.${number % 10}`;
  return least === undefined || capability >= least
    ? undefined
    : `products of ${left.storage} by warps begin with compute capability ${shown(least)}`;
}

/** The compute capability of warp groups, and of no other. */
export const HOPPER = 90;
/** The least compute capability whose warps multiply a dtype. */
const BY_WARPS: Readonly<Partial<Record<KernelDTypeName, number>>> = {
  f16: 80,
  bf16: 80,
  f32: 80,
  i8: 80,
  u8: 80,
  f8e4m3: 89,
  f8e5m2: 89,
};

/** The axes of a product whose factors have one of their own each, and one in common. */
function axesOfProduct(
  found: FoundProduct,
  cuts: NamedCuts,
): { readonly rows: number; readonly columns: number; readonly summed: number } | string {
  const summed = cuts.names.indexOf(found.summed);
  const axesOf = ({ name, turned }: FactorForm): (number | undefined)[] => {
    const axes = cuts.tensors[name]!.slice(-2);
    return turned ? axes.reverse() : axes;
  };
  const [[rows, leftSummed], [rightSummed, columns]] = [
    axesOf(found.left),
    axesOf(found.right),
  ] as [(number | undefined)[], (number | undefined)[]];
  if (
    rows === undefined ||
    columns === undefined ||
    rows === columns ||
    leftSummed !== summed ||
    rightSummed !== summed
  )
    return 'the factors have no common axis beside one of their own each';
  if (cuts.tensors[found.left.name]!.length < 2 || cuts.tensors[found.right.name]!.length < 2)
    return 'a factor has one axis';
  return { rows, columns, summed };
}

export type NamedCuts = TileCuts & { readonly tensors: NonNullable<TileCuts['tensors']> };

/** A product whose axes and dtypes tensor cores can compute, and the walk of its tiles. */
interface Candidate {
  readonly left: Factor;
  readonly right: Factor;
  readonly rows: number;
  readonly columns: number;
  readonly summed: number;
  readonly cuts: NamedCuts;
  readonly walk: TileWalk;
  readonly tensors: readonly GivenTensor[];
  readonly halfSums: boolean;
  /** Tensors of which the body uses nothing but one store. */
  readonly stored: readonly GivenTensor[];
}

/** Why tensor cores do not compute a product, or its launch. */
export function productForm(
  found: FoundProduct,
  cuts: NamedCuts,
  walk: TileWalk,
  tensors: readonly GivenTensor[],
  target: DeviceTarget,
): ProductLaunch | string {
  const given = (name: string): GivenTensor => tensors.find((tensor) => tensor.name === name)!;
  const [left, right] = [found.left, found.right].map((factor) =>
    inMemory(factor, given(factor.name)),
  ) as [Factor, Factor];
  const byDtype = notByDtype(found, left, right, target);
  if (byDtype !== undefined) return byDtype;
  const numbers = axesOfProduct(found, cuts);
  if (typeof numbers === 'string') return numbers;
  const { rows, columns, summed } = numbers;
  const [down, across, along] = [rows, columns, summed].map((axis) => walk.axes[axis]!) as [
    CutAxis,
    CutAxis,
    CutAxis,
  ];
  if (along.cut !== 'walk') return `blocks do not walk along ${along.name}`;
  if (along.extent === 0) return `there is nothing along ${along.name}`;
  if (down.cut !== 'blocks' || down.tile % GROUP_ROWS !== 0 || down.tile / GROUP_ROWS > MOST_GROUPS)
    return `tiles have ${down.tile} rows, and not 64 or 128`;
  for (const [factor, byDepth] of [
    [left, !left.turned],
    [right, right.turned],
  ] as const) {
    const reason = notMapped({ ...given(factor.name), layout: factor.layout });
    if (reason !== undefined) return `${factor.name} ${reason}`;
    if (!byDepth && DTYPES[factor.storage].bytes !== 2)
      return (
        `elements of ${factor.name} are not adjacent along ${along.name}, which products of ` +
        `${factor.storage} need`
      );
  }
  for (const { name } of tensors) {
    if (name === left.name || name === right.name) continue;
    const [row, column] = [cuts.tensors[name]!.at(-2), cuts.tensors[name]!.at(-1)];
    if ((row !== undefined && row !== rows) || (column !== undefined && column !== columns))
      return `${name} has rows and columns other than the product's`;
    if (cuts.tensors[name]!.includes(summed)) return `${name} has the axis ${along.name}`;
  }
  if (across.widest < PRODUCT_WIDTH || across.extent % PRODUCT_WIDTH !== 0)
    return 'rows of a tensor do not begin at multiples of two elements';
  const candidate: Candidate = {
    ...{ left, right, rows, columns, summed, cuts, walk, tensors },
    halfSums: found.accumulate === 'f16',
    stored: found.stored.map(given),
  };
  return target.capability === HOPPER
    ? warpGroupForm(candidate, target)
    : warpForm(candidate, target);
}

export const factorOf = ({ name, turned, storage }: Factor): ProductFactor => ({
  name,
  turned,
  storage,
});

const instructionOf = (shape: string, product: ProductForm): string =>
  `${shape}k${depthOf(product)} of ${dtypesOf(product)}` +
  ('halfSums' in product ? ', sums of f16' : '');

/** Why warp groups do not compute a product, or its launch. */
function warpGroupForm(
  { left, right, rows, columns, summed, cuts, walk, halfSums, stored }: Candidate,
  target: DeviceTarget,
): ProductLaunch | string {
  const [down, across] = [walk.axes[rows]!, walk.axes[columns]!];
  const bySteps = !halfSums && FACTORS[left.storage]!.addsSteps;
  const widths = bySteps ? COLUMNS_BY_STEPS : COLUMNS;
  if (across.cut !== 'blocks' || !widths.includes(across.tile))
    return `tiles have ${across.tile} columns, and not ${oneOf(widths)}`;
  const copied = stored.find((tensor) => {
    const axes = cuts.tensors[tensor.name]!;
    return (
      axes.at(-2) === rows &&
      axes.at(-1) === columns &&
      isCopiedDtype(tensor.dtype) &&
      notMapped(tensor) === undefined
    );
  });
  const stage = (down.tile + across.tile) * LINE_BYTES;
  const groups = down.tile / GROUP_ROWS;
  const beside = BESIDE + (copied === undefined ? 0 : COPIED_BYTES * groups);
  const stages = Math.min(MOST_STAGES, Math.floor((target.sharedBytes - beside) / stage));
  if (stages < 2) return 'shared memory does not hold two steps of the factors';
  const product: ProductForm = {
    ...{ by: 'warp groups', rows, columns, summed, stages },
    ...(halfSums ? { halfSums } : {}),
    ...{ left: factorOf(left), right: factorOf(right) },
    copied: copied && { name: copied.name, storage: copied.dtype as CopiedForm['storage'] },
  };
  const mapped = copied === undefined ? [left, right] : [left, right, copied];
  const strided = ({ name }: { readonly name: string }) =>
    [
      name,
      { ...walk.tensors[name]!, access: 'strided' as const, rank: cuts.tensors[name]!.length },
    ] as const;
  return {
    form: {
      ...{ across: PRODUCT_ACROSS, down: down.tile / 2 },
      ...formOf(walk, product),
      tensors: { ...walk.tensors, ...Object.fromEntries(mapped.map(strided)) },
    },
    moreThreads: COPYING_THREADS,
    blocks: target.multiprocessors,
    sharedBytes: stage * stages,
    layouts: new Map([
      ...walk.layouts,
      ...mapped.map(({ name, layout }) => [name, layout] as const),
    ]),
    strides: {},
    instructions: [instructionOf(`wgmma.m64n${across.tile}`, product)],
  };
}

/**
 * How warps share a tile of so many rows and columns: rows of each, and warps beside each other.
 * The sums of a thread are 128 at most; where it has those of a step beside them, 64.
 */
const WARPS: readonly (Pick<WarpProduct, 'warpRows' | 'warpsAcross'> & {
  readonly rows: number;
  readonly columns: number;
})[] = [
  { rows: 128, columns: 256, warpRows: 64, warpsAcross: 4 },
  { rows: 128, columns: 128, warpRows: 64, warpsAcross: 2 },
  { rows: 128, columns: 128, warpRows: 32, warpsAcross: 2 },
  { rows: 128, columns: 64, warpRows: 32, warpsAcross: 1 },
  { rows: 64, columns: 256, warpRows: 64, warpsAcross: 4 },
  { rows: 64, columns: 128, warpRows: 32, warpsAcross: 2 },
  { rows: 64, columns: 64, warpRows: 32, warpsAcross: 2 },
];
/** Bytes of a line of a step, and the steps in shared memory: the first that fit. */
const STEPS: readonly (readonly [bytes: number, stages: number])[] = [
  [128, 3],
  [64, 4],
  [64, 3],
  [64, 2],
];
/** Bytes of a summed axis that steps of 64 bytes suit better where they divide it better. */
const SHORT = 4 * LINE_BYTES;

/** Why warps do not compute a product, or its launch. */
function warpForm(
  { left, right, rows, columns, summed, cuts, walk, halfSums }: Candidate,
  target: DeviceTarget,
): ProductLaunch | string {
  const [down, across] = [walk.axes[rows]!, walk.axes[columns]!];
  const bySteps = !halfSums && FACTORS[left.storage]!.addsSteps;
  const most = MOST_SUMS / (bySteps ? 2 : 1);
  const fits = WARPS.filter(
    (row) => row.rows === down.tile && (row.warpRows * row.columns) / row.warpsAcross <= most,
  );
  const found = fits.find((row) => row.columns === across.tile);
  if (across.cut !== 'blocks' || found === undefined) {
    const widths = [...new Set(fits.map(({ columns: width }) => width))].sort((a, b) => a - b);
    return `tiles have ${across.tile} columns, and not ${oneOf(widths)}`;
  }
  const { warpRows, warpsAcross } = found;
  const bytesOf = ([line, stages]: (typeof STEPS)[number]): number =>
    (down.tile + across.tile) * line * stages;
  const depth = walk.axes[summed]!.extent * DTYPES[left.storage].bytes;
  // Half of the last long step would be zeros, which is much of a short axis.
  const isShort = depth <= SHORT && (depth - 1) % LINE_BYTES < LINE_BYTES / 2;
  const steps = STEPS.find(
    (each) => bytesOf(each) <= target.sharedBytes && !(isShort && each[0] === LINE_BYTES),
  );
  if (steps === undefined) return 'shared memory does not hold two steps of the factors';
  const product: ProductForm = {
    ...{ by: 'warps', rows, columns, summed, warpRows, warpsAcross },
    ...(halfSums ? { halfSums } : {}),
    ...{ left: factorOf(left), right: factorOf(right) },
    ...{ depth: steps[0] / DTYPES[left.storage].bytes, stages: steps[1] },
  };
  const form = formOf(walk, product);
  const factors = [left, right].map((factor) => asRun(factor, cuts, form.axes));
  return {
    form: {
      ...{ across: PRODUCT_ACROSS * warpsAcross, down: (down.tile / warpRows) * PRODUCT_ROWS },
      ...form,
      tensors: {
        ...walk.tensors,
        ...Object.fromEntries(factors.map(({ name, tensor }) => [name, tensor])),
      },
    },
    moreThreads: 0,
    blocks: Infinity,
    sharedBytes: bytesOf(steps),
    layouts: new Map([
      ...walk.layouts,
      ...factors.map(({ name, layout }) => [name, layout] as const),
    ]),
    strides: Object.assign({}, ...factors.map(({ strides }) => strides)) as Record<string, number>,
    instructions: [instructionOf('mma.m16n8', product)],
  };
}

/** A factor as a run: its form, its layout as one axis, and its strides by parameter. */
function asRun(
  { name, layout: { shape, strides, offset }, isExchanged }: Factor,
  cuts: NamedCuts,
  axes: readonly AxisForm[],
): {
  readonly name: string;
  readonly tensor: TensorForm;
  readonly layout: Layout;
  readonly strides: Readonly<Record<string, number>>;
} {
  const named = cuts.tensors[name]!;
  const [row, column] = isExchanged ? [named.at(-1), named.at(-2)] : [named.at(-2), named.at(-1)];
  const reach = shape.reduce((sum, extent, axis) => sum + (extent - 1) * strides[axis]!, 1);
  const width = axes[column!]!.width;
  return {
    name,
    tensor: { access: 'run', outer: named.slice(0, -2), row, column, rank: named.length },
    layout: layoutOf([shape.includes(0) ? 0 : reach], [1], offset),
    strides: Object.fromEntries(
      strides
        .slice(0, -1)
        .map((stride, at) => [strideName(name, at), shape[at]! > 1 ? stride / width : 0]),
    ),
  };
}

/** The parts of a form that follow from its product. */
function formOf(
  walk: TileWalk,
  product: ProductForm,
): Pick<TileForm, 'axes' | 'broadcast' | 'product'> {
  const { rows, columns } = product;
  return {
    axes: walk.axes.map(({ name, tile, cut, extent }, axis): AxisForm => {
      const divides = extent % tile === 0;
      const width = axis === columns ? PRODUCT_WIDTH : 1;
      return {
        ...{ name, tile, width, cut },
        exactRows: divides && axis === rows,
        exactColumns: divides && axis === columns,
      };
    }),
    broadcast: false,
    product,
  };
}

/** The dtypes of a product's factors, for reports. */
function dtypesOf({ left, right }: ProductForm): string {
  const [a, b] = [left, right].map(({ storage }) => (storage === 'f32' ? 'tf32' : storage));
  return a === b ? a! : `${a} and ${b}`;
}

const oneOf = (counts: readonly number[]): string =>
  `${counts.slice(0, -1).join(', ')} or ${counts.at(-1)!}`;

/** Axes of a tensor map, at most. */
const MOST_AXES = 5;

export const isCopiedDtype = (name: string): boolean =>
  ['f16', 'bf16', 'f32', 'i32'].includes(name);

/** Why no tensor map describes a tensor. */
export function notMapped({
  dtype,
  layout: { shape, strides },
  aligned,
}: GivenTensor): string | undefined {
  if (shape.length > MOST_AXES) return `has more than ${MOST_AXES} axes`;
  if (aligned === false) return 'does not begin at a multiple of 16 bytes';
  if (shape.at(-1) !== 1 && strides.at(-1) !== 1) return 'has no adjacent elements in its rows';
  const apart = strides
    .slice(0, -1)
    .every(
      (stride, axis) =>
        shape[axis] === 1 || (stride >= 0 && (stride * DTYPES[dtype].bytes) % WIDEST === 0),
    );
  return apart ? undefined : 'has rows that do not begin at multiples of 16 bytes';
}

/** Tiles of a product whose factors fit in the shared memory that a kernel declares. */
const SMALL_SIDE = 64;
const SMALL_DEPTH = 32;

/**
 * The axes, with smaller tiles where the factors as f32 or i32 would not fit in shared memory:
 * tiles that are right for tensor cores are too large without them, and a body that has nothing but
 * the product and elementwise functions computes the same with any tiles.
 */
export function fittingAxes(
  found: FoundProduct,
  cuts: NamedCuts,
  axes: readonly CutAxis[],
  tensors: readonly GivenTensor[],
): readonly CutAxis[] {
  const factor = tensors.find(({ name }) => name === found.left.name)!;
  const { precision } = found;
  const mayBeTensor = precision === 'tensor' || factor.dtype !== 'f32';
  if (FACTORS[factor.dtype] === undefined || !mayBeTensor) return axes;
  const summed = cuts.names.indexOf(found.summed);
  const others = [found.left, found.right].flatMap(({ name }) =>
    cuts.tensors[name]!.slice(-2).filter((axis) => axis !== undefined && axis !== summed),
  ) as number[];
  const length = (axis: number): number => axes[axis]!.tile;
  const elements = others.reduce((sum, axis) => sum + length(axis), 0) * length(summed);
  if (elements * BYTES <= SHARED_BYTES / 2) return axes;
  return axes.map((axis, number) => {
    const most = number === summed ? SMALL_DEPTH : others.includes(number) ? SMALL_SIDE : axis.tile;
    return axis.cut === 'whole' ? axis : { ...axis, tile: Math.min(axis.tile, most) };
  });
}
