/**
 * The text of a tile kernel whose product tensor cores compute by warps: `mma`, from compute
 * capability 8.0 on. Asynchronous copies bring both factors to shared memory, several steps of the
 * summed axis ahead; each warp loads its fragments of the next part of a step while it multiplies
 * the last ones.
 *
 * A warp has whole rows of its tile from its first row on, and every so many columns a group of
 * eight: so its elements have the distances that those of all tile kernels have.
 */
import { FACTORS } from '../factors.js';
import { storageBytes } from '../storage-types.js';
import { addsSteps, axesOfTensor, extentName, ownSums, strideName } from './tile-form.js';
import type { ProductFactor, WarpProduct } from './tile-form.js';
import { writePlaces } from './product-places.js';
import type { TileValue, TileWriter } from './tile-writer.js';

/** Bytes of a copy, and of a row of a matrix that fragments are loaded by. */
const RUN_BYTES = 16;
/** Rows of a fragment of the left factor, and columns of one of the right. */
const ROWS = 16;
const COLUMNS = 8;

/** A factor's tile in shared memory: lines of runs of 16 bytes, which are permuted in each line. */
interface Tile {
  readonly factor: ProductFactor;
  /** The array's name, and the place of the tile in a stage, in elements. */
  readonly array: string;
  readonly from: number;
  /** Whether lines are along the summed axis. */
  readonly byDepth: boolean;
  /** The factor's own axis. */
  readonly axis: number;
  readonly lines: number;
  /** Elements of a line and of a run. */
  readonly length: number;
  readonly run: number;
}

const isExact = (writer: TileWriter, { columns }: WarpProduct, axis: number): boolean => {
  const { exactRows, exactColumns } = writer.axis(axis);
  return axis === columns ? exactColumns : exactRows;
};

function tilesOf(writer: TileWriter, product: WarpProduct): readonly [left: Tile, right: Tile] {
  const { left, right, rows, columns, depth } = product;
  const of = (factor: ProductFactor, byDepth: boolean, axis: number, from: number): Tile => {
    const { tile } = writer.axis(axis);
    return {
      ...{ factor, byDepth, axis, from },
      array: factor === right && right.storage !== left.storage ? 'others$' : 'lines$',
      lines: byDepth ? tile : depth,
      length: byDepth ? depth : tile,
      run: RUN_BYTES / storageBytes[factor.storage],
    };
  };
  return [
    of(left, !left.turned, rows, 0),
    of(right, right.turned, columns, writer.axis(rows).tile * depth),
  ];
}

/** The place of a run in a line: runs of one number in eight lines lie in different banks. */
const placeOf = (
  { length, run }: Pick<Tile, 'length' | 'run'>,
  number: string,
  line: string,
): string =>
  `((${number}) ^ (${length / run === 4 ? `((${line}) >> 1) & 3` : `(${line}) & 7`})) * ${run}`;

/** Whether fragments have the factors' dtype, which then has 16 bits; else they are words. */
const isOfHalves = ({ left }: WarpProduct): boolean => storageBytes[left.storage] === 2;

const halvesIn = ({ left }: WarpProduct, elements: number): number =>
  (elements * storageBytes[left.storage]) / 2;

/** Elements of both factors in one step. */
const sizeOf = (writer: TileWriter, { rows, columns, depth }: WarpProduct): number =>
  (writer.axis(rows).tile + writer.axis(columns).tile) * depth;

/** Writes what all threads begin with: shared memory, the thread's place, and the block's. */
export function writeWarpHead(writer: TileWriter, product: WarpProduct): void {
  const { left, right, warpRows, warpsAcross } = product;
  writer.line(
    `const lines$ = gpu$.dynamicShared.${left.storage}();`,
    // The same memory, as elements of the right factor.
    ...(right.storage === left.storage
      ? []
      : [`const others$ = gpu$.dynamicShared.${right.storage}();`]),
    // Fragments are loaded by words, which elements of 16 bits name.
    ...(isOfHalves(product) ? [] : ['const words$ = gpu$.dynamicShared.f16();']),
    `const warpRow$ = gpu$.warpIdx / ${warpsAcross} * ${warpRows};`,
    `const warpColumn$ = gpu$.warpIdx % ${warpsAcross};`,
    'const threadRow$ = warpRow$ + (gpu$.lane >> 2);',
    'const threadColumn$ = warpColumn$ * 4 + (gpu$.lane & 3);',
    'const block$ = gpu$.blockIdx.x;',
  );
  writePlaces(writer, product);
}

/** Writes the copies of a tile's step at `ahead$` to the stage that begins at `to`. */
function writeCopies(
  writer: TileWriter,
  product: WarpProduct,
  { factor: { name }, array, from, byDepth, axis, lines, length, run }: Tile,
  to: string,
): string[] {
  const form = writer.form.tensors[name]!;
  const { across, down } = writer.form;
  const threads = across * down;
  const runs = length / run;
  const width = writer.widthOf(form.column);
  const own = `top${axis}$`;
  const [line, column] = byDepth
    ? [`${own} + line$`, `ahead$ + run$ * ${run}`]
    : ['ahead$ + line$', `${own} + run$ * ${run}`];
  const strides = axesOfTensor(form)
    .slice(0, -1)
    .flatMap((outer, at) => {
      const isLine = at === form.outer.length;
      const index = isLine ? `(${line})` : outer === undefined ? undefined : `top${outer}$`;
      return index === undefined ? [] : [`${index} * args$.${strideName(name, at)}`];
    });
  const ownWidth = writer.widthOf(axis);
  const extent = `args$.${extentName(axis)}${ownWidth === 1 ? '' : ` * ${ownWidth}`}`;
  const depth = `args$.${extentName(product.summed)}`;
  const exact = isExact(writer, product, axis);
  const given = byDepth
    ? `${exact ? '' : `${own} + line$ >= ${extent} ? 0 : `}${depth} - ahead$ - run$ * ${run}`
    : `ahead$ + line$ >= ${depth} ? 0 : ${exact ? run : `${extent} - ${own} - run$ * ${run}`}`;
  const linesAtOnce = threads / runs;
  // Lines that are a multiple of 8 apart have the same permutation.
  const like = linesAtOnce % 8 === 0 ? 'first$' : 'line$';
  const place = placeOf({ length, run }, 'run$', like);
  return [
    'gpu$.unroll();',
    `for (let i$ = 0; i$ < ${(lines * runs) / threads}; i$++) {`,
    `const run$ = gpu$.threadIdx.x % ${runs};`,
    `const first$ = gpu$.threadIdx.x / ${runs};`,
    `const line$ = first$ + i$ * ${linesAtOnce};`,
    `gpu$.async.copy(${array}, ${to} + (first$ * ${length} + ${place}) + ` +
      `(${from} + i$ * ${linesAtOnce * length}), args$.${name}, ` +
      `(${strides.join(' + ')})${width === 1 ? '' : ` * ${width}`} + ${column}, ${run}, ${given});`,
    '}',
  ];
}

/** Gives the text that loads a warp's fragments of part `part` of the step at `reading$`. */
function loadsOf(
  left: Tile,
  right: Tile,
  product: WarpProduct,
  pairs: number,
  [part, buffer]: readonly [part: string, buffer: string],
): string[] {
  const { warpRows, warpsAcross } = product;
  const array = isOfHalves(product) ? 'lines$' : 'words$';
  // Places are in units of 16 bits.
  const halves = (elements: number): number => halvesIn(product, elements);
  // `line`: the lane's, and how many lines further the matrices are. The permutation is that of the
  // lane, since matrices are multiples of 8 lines apart.
  const load = (
    tile: Tile,
    to: string,
    [line, further]: readonly [string, string],
    run: string,
  ): string =>
    `gpu$.warp.loadMatrices${tile.byDepth ? '' : 'Transposed'}(${to}, ${array}, reading$ + ` +
    `((${line}) * ${halves(tile.length)} + ` +
    `${placeOf({ length: halves(tile.length), run: RUN_BYTES / 2 }, run, 'gpu$.lane & 15')}) + ` +
    `(${halves(tile.from)} + (${further}) * ${halves(tile.length)}));`;
  // Two runs of a line are one part of a step.
  const toLeft = `left$[${buffer}][i$]`;
  const toRight = `right$[(${buffer}) * ${pairs} + j$]`;
  const group = `(gpu$.lane >> 4) * ${warpsAcross} + warpColumn$`;
  const pair = `j$ * ${2 * warpsAcross}`;
  const lowLane = '(gpu$.lane & 7)';
  return [
    'gpu$.unroll();',
    `for (let i$ = 0; i$ < ${warpRows / ROWS}; i$++) ` +
      (left.byDepth
        ? load(
            left,
            toLeft,
            ['warpRow$ + (gpu$.lane & 15)', `i$ * ${ROWS}`],
            `(${part}) * 2 + (gpu$.lane >> 4)`,
          )
        : load(
            left,
            toLeft,
            [`${lowLane} + (gpu$.lane >> 4) * 8`, `(${part}) * ${ROWS}`],
            `warpRow$ / 8 + i$ * 2 + ((gpu$.lane >> 3) & 1)`,
          )),
    'gpu$.unroll();',
    `for (let j$ = 0; j$ < ${pairs}; j$++) ` +
      (right.byDepth
        ? load(
            right,
            toRight,
            [`(${group}) * ${COLUMNS} + ${lowLane}`, `${pair} * ${COLUMNS}`],
            `(${part}) * 2 + ((gpu$.lane >> 3) & 1)`,
          )
        : load(right, toRight, ['gpu$.lane & 15', `(${part}) * ${ROWS}`], `${pair} + ${group}`)),
  ];
}

/** Writes the loop of a product, whose sums begin with those of `into` and go there. */
export function writeWarpLoop(writer: TileWriter, product: WarpProduct, into: TileValue): void {
  const { stages, depth, warpRows, warpsAcross, summed, columns } = product;
  const [left, right] = tilesOf(writer, product);
  const { storage } = product.left;
  const size = sizeOf(writer, product);
  const parts = depth / FACTORS[storage]!.depth;
  const [down, across] = [warpRows / ROWS, writer.axis(columns).tile / COLUMNS / warpsAcross];
  const pairs = across / 2;
  const copies = (to: string): string[] => [
    ...writeCopies(writer, product, left, to),
    ...writeCopies(writer, product, right, to),
    'gpu$.async.commit();',
    `ahead$ += ${depth};`,
  ];
  const loads = (part: string, buffer: string): string[] =>
    loadsOf(left, right, product, pairs, [part, buffer]);
  const last = (stages - 1) * size;
  const next = (name: string, unit: (elements: number) => number): string =>
    `${name} = ${name} === ${unit(last)} ? 0 : ${name} + ${unit(size)};`;
  const inHalves = (elements: number): number => halvesIn(product, elements);
  const type = ownSums(product);
  const all =
    `for (let i$ = 0; i$ < ${down}; i$++) for (let j$ = 0; j$ < ${across}; j$++) ` +
    'for (let e$ = 0; e$ < 4; e$++)';
  const element = writer.element(into, {
    row: '(i$ * 2 + (e$ >> 1))',
    column: 'j$ * 2 + (e$ & 1)',
  });
  // Columns go forth and back, so that two products in sequence have a factor in common.
  const column = `(i$ % 2 === 0 ? j$ : ${across - 1} - j$)`;
  const bySteps = addsSteps(product);
  const array = `gpu$.local.${type}(${down}, ${across}, 4)`;
  const factors =
    `${bySteps ? 'stepSums$' : 'sums$'}[i$][${column}], left$[p$ % 2][i$], ` +
    `right$[p$ % 2 * ${pairs} + ${column} / 2][${column} % 2]`;
  // The instruction by name sums in f32.
  const multiply =
    isOfHalves(product) && type === 'f32'
      ? `gpu$.warp.mma(${factors});`
      : `gpu$.mmaWords$(${factors}, lines$, ${right.array});`;
  const fragment = isOfHalves(product) ? storage : 'f16';
  writer.line(
    `const sums$ = ${array};`,
    `${all} sums$[i$][j$][e$] = ${element};`,
    '{',
    `const left$ = gpu$.local.${fragment}(2, ${down}, 8);`,
    `const right$ = gpu$.local.${fragment}(${2 * pairs}, 2, 4);`,
    `const depth$ = args$.${extentName(summed)};`,
    `let ahead$ = gpu$.${writer.definition.indexType}(0);`,
    'gpu$.unroll();',
    `for (let s$ = 0; s$ < ${stages - 1}; s$++) {`,
    ...copies(`s$ * ${size}`),
    '}',
    `gpu$.async.wait(${stages - 2});`,
    'gpu$.block.sync();',
    'let reading$ = 0;',
    ...loads('0', '0'),
    `let writing$ = ${last};`,
    'gpu$.unroll(1);',
    `for (let at$ = gpu$.${writer.definition.indexType}(0); at$ < depth$; at$ += ${depth}) {`,
    ...(bySteps ? [`const stepSums$ = ${array};`, `${all} stepSums$[i$][j$][e$] = 0;`] : []),
    'gpu$.unroll();',
    `for (let p$ = 0; p$ < ${parts}; p$++) {`,
    `if (p$ === ${parts - 1}) {`,
    `gpu$.async.wait(${stages - 2});`,
    'gpu$.block.sync();',
    next('reading$', inHalves),
    '}',
    ...loads(`(p$ + 1) % ${parts}`, '(p$ + 1) % 2'),
    'if (p$ === 0) {',
    // After the end zeros are copied, so that each step waits for the same number of groups.
    ...copies('writing$'),
    next('writing$', (elements) => elements),
    '}',
    'gpu$.unroll();',
    `for (let i$ = 0; i$ < ${down}; i$++) {`,
    'gpu$.unroll();',
    `for (let j$ = 0; j$ < ${across}; j$++) ${multiply}`,
    '}',
    '}',
    ...(bySteps ? [`${all} sums$[i$][j$][e$] = sums$[i$][j$][e$] + stepSums$[i$][j$][e$];`] : []),
    '}',
    '}',
    `${all} ${element} = sums$[i$][j$][e$];`,
  );
}
