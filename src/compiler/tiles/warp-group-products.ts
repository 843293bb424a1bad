/**
 * The text of a tile kernel whose product Hopper's warp groups compute. A warp group of its own
 * copies boxes of both factors, several steps ahead; the others multiply, and compute the rest of
 * the body. Blocks stay, and compute one tile after the other.
 */
import {
  LINE_BYTES,
  PARTS,
  PART_LINES,
  addsSteps,
  blockAxes,
  depthOf,
  extentName,
  ownSums,
  stepOf,
  tilesName,
} from './tile-form.js';
import type { CopiedForm, FactorForm, WarpGroupProduct } from './tile-form.js';
import { storageBytes } from '../storage-types.js';
import { writePlaces } from './product-places.js';
import { IN_LOOP } from './tile-writer.js';
import type { TileValue, TileWriter } from './tile-writer.js';

/** Registers of a thread in each kind of warp group, of the block's 65,536. */
const COPYING = 40;
const MULTIPLYING = 232;

const PANEL = 64;

/** The numbers of barriers: one of all warps that multiply, and one for each of their groups. */
const FIRST_GROUP_BARRIER = 2;

/** Elements in a line of the tile that is copied. */
const widthOf = ({ storage }: CopiedForm): number => LINE_BYTES / storageBytes[storage];

export const groupsOf = (writer: TileWriter, { rows }: Pick<WarpGroupProduct, 'rows'>): number =>
  writer.axis(rows).tile / 64;

/** Writes the shared memory for the parts of a tile that tensor copies write. */
export function writeCopiedRoom(
  writer: TileWriter,
  product: Pick<WarpGroupProduct, 'rows' | 'copied'>,
): void {
  const { copied } = product;
  if (copied !== undefined)
    writer.line(
      `const staged$ = gpu$.shared.${copied.storage}(` +
        `${groupsOf(writer, product) * PARTS * PART_LINES}, ${widthOf(copied)});`,
    );
}

/** Writes what all threads begin with: shared memory, mbarriers, and the thread's place. */
export function writeProductHead(writer: TileWriter, product: WarpGroupProduct): void {
  const { rows, columns, left, right, stages } = product;
  const step = stepOf(product);
  const lines = writer.axis(rows).tile + writer.axis(columns).tile;
  writeCopiedRoom(writer, product);
  writer.line(
    `const lines$ = gpu$.dynamicShared.${left.storage}(${stages * lines}, ${step});`,
    // The same memory, as elements of the right factor.
    ...(right.storage === left.storage
      ? []
      : [`const others$ = gpu$.dynamicShared.${right.storage}(${stages * lines}, ${step});`]),
    `const full$ = gpu$.shared.u64(${stages});`,
    `const empty$ = gpu$.shared.u64(${stages});`,
    'if (gpu$.threadIdx.x === 0) {',
    `for (let s$ = 0; s$ < ${stages}; s$++) {`,
    'gpu$.barrier.init(full$, s$, 1);',
    `gpu$.barrier.init(empty$, s$, ${groupsOf(writer, product)});`,
    '}',
    'gpu$.fence.barriers();',
    '}',
    'gpu$.block.sync();',
    'const warpGroup$ = gpu$.warpIdx >> 2;',
    'const threadColumn$ = gpu$.lane & 3;',
    'const threadRow$ = gpu$.warpIdx * 16 + (gpu$.lane >> 2);',
    `const steps$ = (args$.${extentName(product.summed)} + ${step - 1}) / ${step};`,
    `const tiles$ = ${blockAxes(writer.form)
      .map((axis) => `args$.${tilesName(axis)}`)
      .join(' * ')};`,
    'let stage$ = 0;',
  );
}

/** Writes the beginning of the loop over the block's tiles, and the tile's number on each axis. */
function writeTiles(writer: TileWriter, product: WarpGroupProduct): void {
  writer.line('for (let block$ = gpu$.blockIdx.x; block$ < tiles$; block$ += gpu$.gridDim.x) {');
  writePlaces(writer, product);
}

/** The name of the shared memory as elements of the right factor. */
const linesOfRight = ({ left, right }: WarpGroupProduct): string =>
  left.storage === right.storage ? 'lines$' : 'others$';

/** Writes the copies of one factor's boxes to `lines`, from the line `first` of the stage on. */
function writeCopies(
  writer: TileWriter,
  { name }: FactorForm,
  byDepth: boolean,
  axis: number,
  [lines, first]: readonly [string, string],
): void {
  const { tile } = writer.axis(axis);
  const outer = writer.form.tensors[name]!.outer.map((each) =>
    each === undefined ? '0, ' : `tile${each}$, `,
  );
  const load = (line: string, count: number, place: string): string => {
    const indices = byDepth ? `${place}, at$` : `at$, ${place}`;
    return (
      `gpu$.tensor.load(${lines}, ${line}, ${count}, args$.${name}, full$, stage$, ` +
      `${outer.join('')}${indices});`
    );
  };
  if (byDepth) {
    writer.line(load(first, tile, `tile${axis}$ * ${tile}`));
    return;
  }
  for (let panel = 0; panel < tile; panel += PANEL)
    writer.line(load(`${first} + ${panel}`, PANEL, `tile${axis}$ * ${tile} + ${panel}`));
}

/** Whether a thread is the one that begins its warp group's copies. */
export const FIRST_OF_GROUP = 'gpu$.threadIdx.x % 128 === 0';

const leftByDepth = ({ left }: WarpGroupProduct): boolean => !left.turned;
const rightByDepth = ({ right }: WarpGroupProduct): boolean => right.turned;

/** Goes on to the next stage. */
const next = ({ stages }: WarpGroupProduct, parity: string): string[] => [
  'stage$++;',
  `if (stage$ === ${stages}) { stage$ = 0; ${parity} ^= 1; }`,
];

/** Writes the warp group that copies, up to the beginning of the others' branch. */
export function writeProducer(writer: TileWriter, product: WarpGroupProduct): void {
  const { rows, columns } = product;
  const groups = groupsOf(writer, product);
  const lines = writer.axis(rows).tile + writer.axis(columns).tile;
  writer.line(
    `if (warpGroup$ === ${groups}) {`,
    ...(groups > 1 ? [`gpu$.group.fewerRegisters(${COPYING});`] : []),
    `if (gpu$.threadIdx.x === ${128 * groups}) {`,
    'let empties$ = 1;',
  );
  writeTiles(writer, product);
  writer.line(
    'for (let step$ = 0; step$ < steps$; step$++) {',
    'gpu$.barrier.wait(empty$, stage$, empties$);',
    `gpu$.barrier.expect(full$, stage$, ${lines * 128});`,
    `const line$ = stage$ * ${lines};`,
    `const at$ = step$ * ${stepOf(product)};`,
  );
  writeCopies(writer, product.left, leftByDepth(product), rows, ['lines$', 'line$']);
  const right = `line$ + ${writer.axis(rows).tile}`;
  writeCopies(writer, product.right, rightByDepth(product), columns, [
    linesOfRight(product),
    right,
  ]);
  writer.line(...next(product, 'empties$'), '}', '}', '}', '} else {');
  if (groups > 1) writer.line(`gpu$.group.moreRegisters(${MULTIPLYING});`);
  writer.line('let fulls$ = 0;');
  // Which of the parts of shared memory the next part of a tile is written to.
  if (product.copied !== undefined) writer.line('let part$ = 0;');
  writeTiles(writer, product);
}

/** Writes the end of the loop over the block's tiles, and of the branch of those that multiply. */
export function writeProductTail(
  writer: TileWriter,
  { copied }: Pick<WarpGroupProduct, 'copied'>,
): void {
  writer.line('}');
  // Shared memory is the block's until copies have read it.
  if (copied !== undefined) writer.line(`if (${FIRST_OF_GROUP}) gpu$.tensor.waitRead(0);`);
  writer.line('}');
}

/** Writes the loop of a product, whose sums begin with those of `into` and go there. */
export function writeProductLoop(
  writer: TileWriter,
  product: WarpGroupProduct,
  into: TileValue,
): void {
  const { rows, columns } = product;
  const { tile } = writer.axis(columns);
  const each = writer.axis(rows).tile + tile;
  const [byLeft, byRight] = [leftByDepth(product), rightByDepth(product)];
  const element = writer.element(into, { ...IN_LOOP, column: 'q$ * 2 + k$' });
  const all =
    `for (let q$ = 0; q$ < ${tile / 8}; q$++) for (let r$ = 0; r$ < 2; r$++) ` +
    'for (let k$ = 0; k$ < 2; k$++)';
  const arrive = (stage: string, test: string): string =>
    `if (${test}${FIRST_OF_GROUP}) gpu$.barrier.arrive(empty$, ${stage});`;
  const multiply = (sums: string): string[] => [
    'gpu$.group.begin();',
    'gpu$.unroll();',
    `for (let p$ = 0; p$ < ${stepOf(product)}; p$ += ${depthOf(product)}) ` +
      `gpu$.group.mma(${sums}, lines$, ` +
      `line$ + warpGroup$ * 64${byLeft ? '' : ' + p$'}, ${byLeft ? 'p$' : '0'}, ` +
      `${linesOfRight(product)}, ` +
      `line$ + ${writer.axis(rows).tile}${byRight ? '' : ' + p$'}, ${byRight ? 'p$' : '0'}, ` +
      `${byLeft ? 0 : PANEL}, ${byRight ? 0 : PANEL});`,
    'gpu$.group.commit();',
  ];
  const bySteps = addsSteps(product);
  const type = ownSums(product);
  const array = `gpu$.local.${type}(${tile / 2})`;
  const eachSum = ['gpu$.unroll();', `for (let i$ = 0; i$ < ${tile / 2}; i$++)`];
  writer.line(
    `const sums$ = ${array};`,
    `${all} sums$[q$ * 4 + r$ * 2 + k$] = ${element};`,
    '{',
    ...(bySteps ? [] : ['let before$ = 0;']),
    'let step$ = 0;',
    'do {',
    'gpu$.barrier.wait(full$, stage$, fulls$);',
    `const line$ = stage$ * ${each};`,
    ...(bySteps
      ? [
          `const stepSums$ = ${array};`,
          ...[...eachSum, 'stepSums$[i$] = 0;'],
          ...multiply('stepSums$'),
          'gpu$.group.wait(0);',
          arrive('stage$', ''),
          ...[...eachSum, 'sums$[i$] = sums$[i$] + stepSums$[i$];'],
        ]
      : [
          ...multiply('sums$'),
          'gpu$.group.wait(1);',
          arrive('before$', 'step$ > 0 && '),
          'before$ = stage$;',
        ]),
    ...next(product, 'fulls$'),
    'step$++;',
    '} while (step$ < steps$);',
    ...(bySteps ? [] : ['gpu$.group.wait(0);', arrive('before$', '')]),
    '}',
    `${all} ${element} = sums$[q$ * 4 + r$ * 2 + k$];`,
  );
}

/**
 * Writes a store by tensor copies, which clip the tile. Each warp group writes 64 rows of its part
 * of a line's width to shared memory while the copy before the last one is read.
 */
export function writeCopiedStore(
  writer: TileWriter,
  { rows, columns }: Pick<WarpGroupProduct, 'rows' | 'columns'>,
  copied: CopiedForm,
  value: TileValue,
): void {
  const { name, storage } = copied;
  const width = widthOf(copied);
  const sync = `gpu$.block.syncThreads(warpGroup$ + ${FIRST_GROUP_BARRIER}, 128);`;
  const outer = writer.form.tensors[name]!.outer.map((axis) =>
    axis === undefined ? '0, ' : `top${axis}$, `,
  );
  const element = (row: string, group: string): string =>
    writer.element(value, { row, column: `(first$ / 8 + ${group}) * 2 + (i$ & 1)` });
  writer.line(
    'gpu$.unroll();',
    `for (let first$ = 0; first$ < ${writer.axis(columns).tile}; first$ += ${width}) {`,
    `const to$ = (warpGroup$ * ${PARTS} + part$) * ${PART_LINES};`,
    'part$ ^= 1;',
    `if (${FIRST_OF_GROUP}) gpu$.tensor.waitRead(1);`,
    sync,
    'gpu$.unroll();',
    ...(storageBytes[storage] === 4
      ? [
          'for (let q$ = 0; q$ < 4; q$++) {',
          'const line$ = to$ + gpu$.warpIdx % 4 * 16 + (gpu$.lane >> 2);',
          'const place$ = ((q$ * 2 + ((gpu$.lane & 3) >> 1)) ^ (gpu$.lane >> 2)) * 4 + ' +
            '(gpu$.lane & 1) * 2;',
          'gpu$.unroll();',
          'for (let i$ = 0; i$ < 4; i$++)',
          `staged$[line$ + 8 * (i$ >> 1)][place$ + (i$ & 1)] = ${element('(i$ >> 1)', 'q$')};`,
          '}',
        ]
      : [
          'for (let q$ = 0; q$ < 4; q$++) {',
          `const packed$ = gpu$.local.${storage}(8);`,
          'gpu$.unroll();',
          'for (let i$ = 0; i$ < 8; i$++)',
          `packed$[i$] = ${element('((i$ >> 1) & 1)', 'q$ * 2 + (i$ >> 2)')};`,
          'gpu$.warp.storeMatrices(' +
            'staged$[to$ + gpu$.warpIdx % 4 * 16 + (gpu$.lane & 15)], ' +
            '((q$ * 2 + (gpu$.lane >> 4)) ^ (gpu$.lane & 7)) * 8, packed$);',
          '}',
        ]),
    'gpu$.fence.async();',
    sync,
    `if (${FIRST_OF_GROUP}) {`,
    `gpu$.tensor.store(args$.${name}, staged$, to$, ${PART_LINES}, ${outer.join('')}` +
      `top${rows}$ + warpGroup$ * 64, tile${columns}$ * ${writer.axis(columns).tile} + first$);`,
    'gpu$.tensor.commit();',
    '}',
    '}',
  );
}
