/**
 * The operations of Tile IR that are written: one row each, with everything that its encoding
 * depends on. The numbers and the order of parts are those of bytecode 13.3.
 *
 * An operation is written as its number, the types of its results, its flags, its attributes, its
 * operands and its regions.
 */
import {
  assumption,
  axes,
  elements,
  memoryOrdering,
  neutrals,
  ordering,
  overflow,
  predicate,
  rounding,
  signedness,
  whole,
} from './attributes.js';
import type { Attribute } from './attributes.js';

/** An operand: one value, several after their number, or one that may be left out. */
export type OperandPart = 'one' | 'counted' | 'optional';

type AttributeRow = Readonly<Record<string, Attribute<never>>>;

export interface OperationRow<A extends AttributeRow = AttributeRow> {
  readonly code: number;
  /** Whether the number of results is written before their types. */
  readonly results: 'fixed' | 'counted';
  /** Names of the bits of its flags, the lowest first; undefined where it has none. */
  readonly flags: readonly string[] | undefined;
  readonly attributes: A;
  readonly operands: readonly OperandPart[];
  readonly regions: 0 | 1;
}

const row = <const A extends Readonly<Record<string, Attribute<never>>>>(
  code: number,
  operands: readonly OperandPart[],
  attributes: A,
  {
    flags,
    results = 'fixed',
    regions = 0,
  }: Partial<Pick<OperationRow, 'flags' | 'results' | 'regions'>> = {},
): OperationRow<A> => ({ code, results, flags, attributes, operands, regions });

const ONE = ['one'] as const;
const TWO = ['one', 'one'] as const;
const THREE = ['one', 'one', 'one'] as const;
/** Subnormal numbers become zero. */
const FLUSH = { flags: ['flushToZero'] } as const;
const EXTREME = { flags: ['propagateNaN', 'flushToZero'] } as const;
/** Ends a region with its results. */
const END = { results: 'counted' } as const;
/** The bits say which of the optional parts are there. */
const VIEW = { results: 'counted', flags: ['scope', 'hints', 'token'] } as const;

export const OPERATIONS = {
  absf: row(0, ONE, {}),
  absi: row(1, ONE, {}),
  addf: row(2, TWO, { rounding }, FLUSH),
  addi: row(3, TWO, { overflow }),
  andi: row(4, TWO, {}),
  assume: row(6, ONE, { assumption }),
  bitcast: row(9, ONE, {}),
  broadcast: row(11, ONE, {}),
  ceil: row(13, ONE, {}),
  cmpf: row(14, TWO, { predicate, ordering }),
  cmpi: row(15, TWO, { predicate, signedness }),
  constant: row(16, [], { elements }),
  continue: row(17, ['counted'], {}, END),
  cos: row(18, ONE, {}),
  cosh: row(19, ONE, {}),
  divf: row(20, TWO, { rounding }, FLUSH),
  divi: row(21, TWO, { signedness, rounding }),
  exp: row(23, ONE, { rounding }),
  exp2: row(24, ONE, {}, FLUSH),
  exti: row(37, ONE, { signedness }),
  floor: row(39, ONE, {}),
  fma: row(40, THREE, { rounding }, FLUSH),
  for: row(41, ['counted'], {}, { results: 'counted', flags: ['unsigned'], regions: 1 }),
  ftof: row(42, ONE, { rounding }),
  ftoi: row(43, ONE, { signedness, rounding }),
  getIndexSpaceShape: row(45, ONE, {}, { results: 'counted' }),
  getNumTileBlocks: row(46, [], {}),
  getTileBlockId: row(48, [], {}),
  iota: row(58, [], {}),
  itof: row(59, ONE, { signedness, rounding }),
  loadView: row(62, ['one', 'counted', 'optional'], { ordering: memoryOrdering }, VIEW),
  log: row(63, ONE, {}),
  log2: row(64, ONE, {}),
  makePartitionView: row(66, ONE, {}),
  makeTensorView: row(67, ['one', 'counted', 'counted'], {}, { results: 'counted' }),
  makeToken: row(68, [], {}),
  maxf: row(69, TWO, {}, EXTREME),
  maxi: row(70, TWO, { signedness }),
  minf: row(71, TWO, {}, EXTREME),
  mini: row(72, TWO, { signedness }),
  mmaf: row(73, THREE, {}, { flags: ['fastSums'] }),
  mmai: row(74, THREE, { left: signedness, right: signedness }),
  mulf: row(76, TWO, { rounding }, FLUSH),
  mulhii: row(77, TWO, {}),
  muli: row(78, TWO, { overflow }),
  negf: row(79, ONE, {}),
  negi: row(80, ONE, { overflow }),
  ori: row(82, TWO, {}),
  permute: row(83, ONE, { axes }),
  pow: row(84, TWO, {}),
  reduce: row(88, ['counted'], { axis: whole, neutrals }, { results: 'counted', regions: 1 }),
  remf: row(89, TWO, {}),
  remi: row(90, TWO, { signedness }),
  reshape: row(91, ONE, {}),
  return: row(92, ['counted'], {}, END),
  rsqrt: row(93, ONE, {}, FLUSH),
  select: row(95, THREE, {}),
  shli: row(96, TWO, { overflow }),
  shri: row(97, TWO, { signedness }),
  sin: row(98, ONE, {}),
  sinh: row(99, ONE, {}),
  sqrt: row(100, ONE, { rounding }, FLUSH),
  storeView: row(102, ['one', 'one', 'counted', 'optional'], { ordering: memoryOrdering }, VIEW),
  subf: row(103, TWO, { rounding }, FLUSH),
  subi: row(104, TWO, { overflow }),
  tan: row(105, ONE, {}),
  tanh: row(106, ONE, { rounding }),
  trunci: row(107, ONE, { overflow }),
  xori: row(108, TWO, {}),
  yield: row(109, ['counted'], {}, END),
} as const;

export type OperationName = keyof typeof OPERATIONS;

/** The attributes of an operation, by name. */
export type AttributesOf<N extends OperationName> =
  (typeof OPERATIONS)[N] extends OperationRow<infer A>
    ? { readonly [K in keyof A]: A[K] extends Attribute<infer T> ? T : never }
    : never;

/** The names of an operation's flags. */
export type FlagsOf<N extends OperationName> = NonNullable<(typeof OPERATIONS)[N]['flags']>[number];
