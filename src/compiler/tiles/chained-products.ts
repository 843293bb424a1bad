/**
 * The text of a tile kernel with two products in one loop, of which the first one's tile is the
 * left factor of the second: attention. After FlashAttention-3 (Shah et al., 2024), a warp group of
 * its own copies the factors; each of the others has 64 rows, and begins the first product of a
 * step and the second one of the step before. What the body computes between them runs beside the
 * second product. The groups take turns, so that the products of one run beside the rest of
 * another.
 */
import { LINE_BYTES, PRODUCT_ACROSS, blockAxes, tilesName } from './tile-form.js';
import type { ChainedProducts } from './tile-form.js';
import { writeChainPlaces } from './product-places.js';
import { variesOf, storageIn } from './tile-memory.js';
import type { TileValue, TileWriter } from './tile-writer.js';
import { FIRST_OF_GROUP, groupsOf, writeCopiedRoom } from './warp-group-products.js';

/** Elements of a line of shared memory, and of the summed axis in one instruction. */
const LINE = LINE_BYTES / 2;
const DEPTH = 16;

/** Registers of a thread of the group that copies, and of the others, by the number of those. */
const REGISTERS: Readonly<Record<number, readonly [copying: number, multiplying: number]>> = {
  2: [24, 240],
  3: [32, 160],
};

export const isFactorOf = ({ left, right, values }: ChainedProducts, name: string): boolean =>
  [left, right, values].some((factor) => factor.name === name);

/** The tile of a factor, which no thread has: products read it from shared memory. */
export const factorValue = (writer: TileWriter, name: string): TileValue => ({
  name: `${name}$factor`,
  varies: variesOf(writer.form.tensors[name]!),
  storage: storageIn(writer.definition, name),
});

/** The extents of the tiles, and where factors begin in shared memory, in lines. */
interface Places {
  readonly rows: number;
  readonly keys: number;
  readonly columns: number;
  /** Parts of lines of the inner axis, and of the columns. */
  readonly inner: number;
  readonly across: number;
  readonly firstRight: number;
  readonly firstValues: number;
  readonly lines: number;
}

function placesOf(writer: TileWriter, product: ChainedProducts): Places {
  const { stages } = product;
  const [rows, keys, columns] = [product.rows, product.summed, product.columns].map(
    (axis) => writer.axis(axis).tile,
  ) as [number, number, number];
  const inner = writer.axis(product.inner).tile / LINE;
  const across = columns / LINE;
  const firstRight = inner * rows;
  const firstValues = firstRight + stages * inner * keys;
  const lines = firstValues + stages * across * keys;
  return { rows, keys, columns, inner, across, firstRight, firstValues, lines };
}

/** Writes what all threads begin with: shared memory, mbarriers, and the thread's place. */
export function writeChainHead(writer: TileWriter, product: ChainedProducts): void {
  const { left, stages } = product;
  const { lines } = placesOf(writer, product);
  const groups = groupsOf(writer, product);
  writeCopiedRoom(writer, product);
  writer.line(
    `const lines$ = gpu$.dynamicShared.${left.storage}(${lines}, ${LINE});`,
    ...['fullRight$', 'emptyRight$', 'fullValues$', 'emptyValues$'].map(
      (name) => `const ${name} = gpu$.shared.u64(${stages});`,
    ),
    'const fullLeft$ = gpu$.shared.u64(1);',
    'const emptyLeft$ = gpu$.shared.u64(1);',
    `const turns$ = gpu$.shared.u64(${groups});`,
    'if (gpu$.threadIdx.x === 0) {',
    `for (let s$ = 0; s$ < ${stages}; s$++) {`,
    'gpu$.barrier.init(fullRight$, s$, 1);',
    `gpu$.barrier.init(emptyRight$, s$, ${groups});`,
    'gpu$.barrier.init(fullValues$, s$, 1);',
    `gpu$.barrier.init(emptyValues$, s$, ${groups});`,
    '}',
    'gpu$.barrier.init(fullLeft$, 0, 1);',
    `gpu$.barrier.init(emptyLeft$, 0, ${groups});`,
    `for (let g$ = 0; g$ < ${groups}; g$++) gpu$.barrier.init(turns$, g$, 1);`,
    'gpu$.fence.barriers();',
    '}',
    'gpu$.block.sync();',
    'const warpGroup$ = gpu$.warpIdx >> 2;',
    `const threadColumn$ = gpu$.lane & ${PRODUCT_ACROSS - 1};`,
    'const threadRow$ = gpu$.warpIdx * 16 + (gpu$.lane >> 2);',
    `const tiles$ = ${blockAxes(writer.form)
      .map((axis) => `args$.${tilesName(axis)}`)
      .join(' * ')};`,
    'let place$ = gpu$.blockIdx.x;',
    'let stageRight$ = 0;',
    'let stageValues$ = 0;',
  );
}

/**
 * Writes the beginning of the loop over the block's tiles. In every second round blocks take them
 * in the opposite order.
 */
function writeTiles(writer: TileWriter, product: ChainedProducts): void {
  writer.line(
    'for (let round$ = 0; round$ + place$ < tiles$; round$ += gpu$.gridDim.x) {',
    'const block$ = round$ + place$;',
  );
  writeChainPlaces(writer, product);
}

const TILES_END = ['place$ = gpu$.gridDim.x - 1 - place$;', '}'];

/** Goes on to the next stage. */
const next = ({ stages }: ChainedProducts, stage: string, parity: string): string[] => [
  `${stage}++;`,
  `if (${stage} === ${stages}) { ${stage} = 0; ${parity} ^= 1; }`,
];

/** The copies of parts of lines of a factor's tile. */
function copies(
  writer: TileWriter,
  { name }: { readonly name: string },
  parts: number,
  [first, count]: readonly [first: string, count: number],
  [bar, at]: readonly [bar: string, at: string],
  place: string,
): string[] {
  const outer = writer.form.tensors[name]!.outer.map((each) =>
    each === undefined ? '0, ' : `tile${each}$, `,
  ).join('');
  return [
    'gpu$.unroll();',
    `for (let c$ = 0; c$ < ${parts}; c$++) gpu$.tensor.load(lines$, ${first} + c$ * ${count}, ` +
      `${count}, args$.${name}, ${bar}, ${at}, ${outer}${place}, c$ * ${LINE});`,
  ];
}

/**
 * Writes the warp group that copies, up to the beginning of the others' branch. `writeSteps` writes
 * `begin$` and `steps$`.
 */
export function writeChainProducer(
  writer: TileWriter,
  product: ChainedProducts,
  writeSteps: () => void,
): void {
  const groups = groupsOf(writer, product);
  const { rows, keys, inner, across, firstRight, firstValues } = placesOf(writer, product);
  const registers = REGISTERS[groups];
  writer.line(
    `if (warpGroup$ === ${groups}) {`,
    ...(registers === undefined ? [] : [`gpu$.group.fewerRegisters(${registers[0]});`]),
    `if (gpu$.threadIdx.x === ${128 * groups}) {`,
    'let emptiesRight$ = 1;',
    'let emptiesValues$ = 1;',
    'let emptiesLeft$ = 1;',
  );
  writeTiles(writer, product);
  writeSteps();
  // The values of a step are needed after the right factor of the next one.
  writer.line(
    'if (steps$ > 0) {',
    'for (let step$ = 0; step$ <= steps$; step$++) {',
    'if (step$ < steps$) {',
    'gpu$.barrier.wait(emptyRight$, stageRight$, emptiesRight$);',
    `gpu$.barrier.expect(fullRight$, stageRight$, ${inner * keys * LINE_BYTES});`,
    ...copies(
      writer,
      product.right,
      inner,
      [`${firstRight} + stageRight$ * ${inner * keys}`, keys],
      ['fullRight$', 'stageRight$'],
      `(begin$ + step$) * ${keys}`,
    ),
    ...next(product, 'stageRight$', 'emptiesRight$'),
    '}',
    'if (step$ === 0) {',
    'gpu$.barrier.wait(emptyLeft$, 0, emptiesLeft$);',
    'emptiesLeft$ ^= 1;',
    `gpu$.barrier.expect(fullLeft$, 0, ${inner * rows * LINE_BYTES});`,
    ...copies(
      writer,
      product.left,
      inner,
      ['0', rows],
      ['fullLeft$', '0'],
      `tile${product.rows}$ * ${rows}`,
    ),
    '} else {',
    'gpu$.barrier.wait(emptyValues$, stageValues$, emptiesValues$);',
    `gpu$.barrier.expect(fullValues$, stageValues$, ${across * keys * LINE_BYTES});`,
    ...copies(
      writer,
      product.values,
      across,
      [`${firstValues} + stageValues$ * ${across * keys}`, keys],
      ['fullValues$', 'stageValues$'],
      `(begin$ + step$ - 1) * ${keys}`,
    ),
    ...next(product, 'stageValues$', 'emptiesValues$'),
    '}',
    '}',
    '}',
    ...TILES_END,
    '}',
    '} else {',
    ...(registers === undefined ? [] : [`gpu$.group.moreRegisters(${registers[1]});`]),
    'let fullsRight$ = 0;',
    'let fullsValues$ = 0;',
    'let fullsLeft$ = 0;',
    // The first group begins.
    'let turn$ = warpGroup$ === 0 ? 1 : 0;',
    ...(product.copied === undefined ? [] : ['let part$ = 0;']),
  );
  writeTiles(writer, product);
}

/** Writes what comes before the end of the loop over the block's tiles. */
export function writeChainTileEnd(writer: TileWriter): void {
  writer.line(TILES_END[0]!);
}

const arrive = (bar: string, stage: string, test = ''): string =>
  `if (${test}${FIRST_OF_GROUP}) gpu$.barrier.arrive(${bar}, ${stage});`;

/** Writes a loop over the sums of the second product, in the order of their instruction. */
const eachSum = (writer: TileWriter, { columns }: ChainedProducts): string =>
  `for (let q$ = 0; q$ < ${writer.axis(columns).tile / 8}; q$++) for (let r$ = 0; r$ < 2; r$++) ` +
  'for (let k$ = 0; k$ < 2; k$++)';
const SUM = 'sums$[q$ * 4 + r$ * 2 + k$]';
const SUM_SLOT = { row: 'r$', column: 'q$ * 2 + k$' };

/** Assigns the sums to their variable. */
export const sumsTo = (writer: TileWriter, product: ChainedProducts, value: TileValue): string =>
  `${eachSum(writer, product)} ${writer.element(value, SUM_SLOT)} = ${SUM};`;

/** Assigns to the sums what the second product is added to. */
export const sumsFrom = (writer: TileWriter, product: ChainedProducts, value: TileValue): string =>
  `${eachSum(writer, product)} ${SUM} = ${writer.element(value, SUM_SLOT)};`;

/** Assigns the second product's left factor, with zeros after the end of the summed axis. */
export function writeShares(writer: TileWriter, product: ChainedProducts, value: TileValue): void {
  const { keys } = placesOf(writer, product);
  const element = writer.element(value, {
    row: '((i$ >> 1) & 1)',
    column: '(p$ * 2 + (i$ >> 2)) * 2 + (i$ & 1)',
  });
  const inside = writer.groupExists(product.summed, '(p$ * 2 + (i$ >> 2))');
  writer.line(
    `for (let p$ = 0; p$ < ${keys / DEPTH}; p$++) for (let i$ = 0; i$ < 8; i$++) ` +
      `shares$[p$][i$] = ${inside === '' ? element : `${inside} ? ${element} : 0`};`,
  );
}

/** Writes the declarations of the loop, and the first product of its first step. */
export function writeChainStart(writer: TileWriter, product: ChainedProducts): void {
  const { keys, columns } = placesOf(writer, product);
  writer.line(
    `const sums$ = gpu$.local.f32(${columns / 2});`,
    `const scores$ = gpu$.local.f32(${keys / 2});`,
    `const shares$ = gpu$.local.${product.values.storage}(${keys / DEPTH}, 8);`,
    'let step$ = 0;',
    'gpu$.barrier.wait(fullLeft$, 0, fullsLeft$);',
    'fullsLeft$ ^= 1;',
    'gpu$.barrier.wait(fullRight$, stageRight$, fullsRight$);',
    ...beginFirst(writer, product),
  );
}

function beginFirst(writer: TileWriter, product: ChainedProducts): string[] {
  const { rows, keys, inner, firstRight } = placesOf(writer, product);
  return [
    'gpu$.unroll();',
    `for (let i$ = 0; i$ < ${keys / 2}; i$++) scores$[i$] = 0;`,
    'gpu$.group.begin();',
    'gpu$.unroll();',
    `for (let p$ = 0; p$ < ${(inner * LINE) / DEPTH}; p$++) gpu$.group.mma(scores$, lines$, ` +
      `warpGroup$ * 64 + (p$ >> 2) * ${rows}, (p$ & 3) * ${DEPTH}, lines$, ` +
      `${firstRight} + stageRight$ * ${inner * keys} + (p$ >> 2) * ${keys}, (p$ & 3) * ${DEPTH});`,
    'gpu$.group.commit();',
  ];
}

function beginSecond(writer: TileWriter, product: ChainedProducts): string[] {
  const { keys, across, firstValues } = placesOf(writer, product);
  return [
    'gpu$.barrier.wait(fullValues$, stageValues$, fullsValues$);',
    'gpu$.group.begin();',
    'gpu$.unroll();',
    `for (let p$ = 0; p$ < ${keys / DEPTH}; p$++) gpu$.group.mmaOfRegisters(sums$, shares$[p$], ` +
      `lines$, ${firstValues} + stageValues$ * ${across * keys} + p$ * ${DEPTH}, 0, ${keys});`,
    'gpu$.group.commit();',
  ];
}

/**
 * Writes the wait for the first product of a step and its tile. Elements of the tile
 * beyond the end of the summed axis are set to the last element before it, as a load sets them.
 */
export function writeChainedTile(
  writer: TileWriter,
  product: ChainedProducts,
  value: TileValue,
  isFirst: boolean,
): void {
  const { keys } = placesOf(writer, product);
  const { summed } = product;
  const element = writer.element(value, { row: 'r$', column: 'q$ * 2 + k$' });
  const all = (body: string): string => `for (let r$ = 0; r$ < 2; r$++) { ${body} }`;
  const slots = `for (let q$ = 0; q$ < ${keys / 8}; q$++)`;
  writer.line(
    `gpu$.group.wait(${isFirst ? 0 : 1});`,
    arrive('emptyRight$', 'stageRight$'),
    arrive('emptyLeft$', '0', 'step$ + 1 === steps$ && '),
    ...next(product, 'stageRight$', 'fullsRight$'),
    `const ${value.name} = gpu$.local.f32(${writer.slots(value.varies)});`,
    all(`${slots} for (let k$ = 0; k$ < 2; k$++) ${element} = scores$[q$ * 4 + r$ * 2 + k$];`),
  );
  const exists = writer.groupExists(summed, 'q$');
  if (exists === '') return;
  const last = `lastGroup${summed}$`;
  writer.line(
    `if (${last} + 1 < left${summed}$ + ${keys / 2}) {`,
    all(
      'let last$ = gpu$.f32(0);' +
        `${slots} { if (firstGroup${summed}$ + q$ * ${PRODUCT_ACROSS} === ${last}) ` +
        `last$ = ${element.replace('k$', '1')}; }` +
        `last$ = gpu$.warp.shuffle(last$, (gpu$.lane & ~3) | ((${last} - left${summed}$) & 3));` +
        `${slots} for (let k$ = 0; k$ < 2; k$++) if (!(${exists})) ${element} = last$;`,
    ),
    '}',
  );
}

/** Writes the beginning of a later step: its first product, and the second of the step before. */
export function writeLaterStep(writer: TileWriter, product: ChainedProducts): void {
  const groups = groupsOf(writer, product);
  const turns = groups > 1;
  writer.line(
    'if (steps$ > 1) gpu$.barrier.wait(fullRight$, stageRight$, fullsRight$);',
    'gpu$.unroll(1);',
    'for (step$ = 1; step$ < steps$; step$++) {',
    ...(turns ? ['gpu$.barrier.wait(turns$, warpGroup$, turn$);'] : []),
    ...beginFirst(writer, product),
    ...beginSecond(writer, product),
    ...(turns
      ? [
          'turn$ ^= 1;',
          `if (${FIRST_OF_GROUP}) gpu$.barrier.arrive(turns$, ` +
            `warpGroup$ === ${groups - 1} ? 0 : warpGroup$ + 1);`,
        ]
      : []),
  );
}

/** Writes the wait for the second product of the step before. */
export function writeLaterWait(writer: TileWriter, product: ChainedProducts): void {
  writer.line(
    // The branch keeps ptxas from moving the wait that follows before the rest of the body.
    'if (step$ + 1 < steps$) gpu$.barrier.wait(fullRight$, stageRight$, fullsRight$);',
    'gpu$.group.wait(0);',
    arrive('emptyValues$', 'stageValues$'),
    ...next(product, 'stageValues$', 'fullsValues$'),
  );
}

/** Writes the second product of the last step. */
export function writeChainEnd(writer: TileWriter, product: ChainedProducts): void {
  writer.line(
    ...beginSecond(writer, product),
    'gpu$.group.wait(0);',
    arrive('emptyValues$', 'stageValues$'),
    ...next(product, 'stageValues$', 'fullsValues$'),
  );
}
