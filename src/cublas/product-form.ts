/**
 * Products of matrices in cuBLASLt's terms. It stores matrices by columns, and computes
 * D = act(α · op(A) · op(B) + β · C + bias). A row-major tensor is the transpose of such a matrix,
 * so that of `out = a · b` it computes outᵀ = bᵀ · aᵀ: A is b then, and B is a.
 */
import { CudaArgumentError } from '../core/index.js';
import { invalid } from '../ground/arguments.js';
import type { AnyTensor, Layout } from '../tensor/index.js';
import { layoutOf } from '../tensor/layout.js';
import { broadcastAll, broadcastTo, coalesceTogether } from '../tensor/layouts.js';
import { sameShape, showShape } from '../tensor/shape.js';
import { DATA_TYPE, EPILOGUE } from './enums.js';
import type { CublasName } from './enums.js';

/** A product `out = act(alpha · a · b + beta · c + bias)`. */
export interface Product {
  /** `[…, M, K]`: f16, bf16, f32, f8e4m3 or f8e5m2. Axes before the last two broadcast. */
  readonly a: AnyTensor;
  /** `[…, K, N]`, of a's dtype; f8e4m3 and f8e5m2 may be mixed. */
  readonly b: AnyTensor;
  /**
   * `[…, M, N]`: the dtype of the factors, or f32; for factors of 8 bits f16, bf16, f32, f8e4m3 or
   * f8e5m2.
   */
  readonly out: AnyTensor;
  /** Default 1. */
  readonly alpha?: number;
  /** Default 1 where there is a `c`, else 0. Without a `c` it counts for out. */
  readonly beta?: number;
  /**
   * The residual, of out's shape and dtype; where out is of 8 bits, f16 or bf16. Its rows lie in
   * memory as out's do.
   */
  readonly c?: AnyTensor;
  /**
   * `[N]`, contiguous, of out's dtype. With factors of 8 bits it is f16 where out is, for out of 8
   * bits f16 or bf16 as `c` is, and bf16 otherwise.
   */
  readonly bias?: AnyTensor;
  /** `gelu` is the approximation by tanh. */
  readonly activation?: 'relu' | 'gelu';
  /** Factors of f32 that stand in memory, for dtypes of 8 bits: value = scale · element. */
  readonly scales?: {
    /** One element; or with `b` as a vector too, M elements, one for each row. */
    readonly a?: AnyTensor;
    /** One element; or with `a` as a vector too, N elements, one for each column. */
    readonly b?: AnyTensor;
    /** One element, which out's values are multiplied by before they are rounded. */
    readonly out?: AnyTensor;
  };
  /** One element of f32: it is set to the largest magnitude of out, for out of 8 bits. */
  readonly amax?: AnyTensor;
  /** Whether f32 factors are rounded to tf32, for tensor cores. Default false. */
  readonly tf32?: boolean;
  /** Whether sums of factors of 8 bits are less exact, and faster. Default false. */
  readonly fastAccumulation?: boolean;
}

/** What is checked of a result, which need not exist yet. */
export type ResultForm = Pick<AnyTensor, 'dtype' | 'shape' | 'rank' | 'size' | 'layout'>;

/** A product whose result need not exist yet. */
export interface PlannedProduct extends Omit<Product, 'out'> {
  readonly out: ResultForm;
}

/** A matrix as the library stores it, by columns. Numbers count elements. */
export interface Matrix {
  readonly dtype: CublasName;
  readonly rows: number;
  readonly columns: number;
  readonly pitch: number;
  /** The distance of the batch's matrices. */
  readonly apart: number;
  /** The multiple of bytes at which it begins, at most {@link ALIGNMENT}. */
  readonly alignment: number;
}

/** What stands behind a pointer that is an attribute of the descriptor. */
export type PointerName = 'biasPointer' | 'scaleOfA' | 'scaleOfB' | 'scaleOfD' | 'amaxOfD';

/** All that the choice of an algorithm depends on. */
export interface ProductForm {
  /** Products with the same key have the same plan. */
  readonly key: string;
  /** The product in errors. */
  readonly title: string;
  readonly batch: number;
  readonly left: Matrix;
  readonly right: Matrix;
  readonly d: Matrix;
  /** Undefined where C is D. */
  readonly c: Matrix | undefined;
  readonly leftIsTransposed: boolean;
  readonly rightIsTransposed: boolean;
  /** Whether C is read: null where it does not exist. */
  readonly readsC: boolean | null;
  readonly epilogue: number;
  readonly biasType: CublasName | undefined;
  readonly tf32: boolean;
  readonly fastAccumulation: boolean;
  /** Whether the scales are vectors. */
  readonly vectors: boolean;
  readonly pointers: readonly PointerName[];
}

/** A product in the library's terms, and the memory of one call. */
export interface PlacedProduct {
  readonly form: ProductForm;
  readonly alpha: number;
  readonly beta: number;
  /** The memory behind the pointers, in their order, then that of A, B, C and D. */
  readonly tensors: readonly AnyTensor[];
}

/** The alignment that the library assumes, and that all memory of the driver has. */
export const ALIGNMENT = 256;
/** The largest extent: the library's kernels count in 32 bits. */
const MOST = 2 ** 31 - 1;

/** What factors may be, and what out may be for them. */
const RESULTS: Readonly<Record<string, readonly CublasName[]>> = {
  'f32 f32': ['f32'],
  'f16 f16': ['f16', 'f32'],
  'bf16 bf16': ['bf16', 'f32'],
  'f8e4m3 f8e4m3': ['f16', 'bf16', 'f32', 'f8e4m3'],
  'f8e4m3 f8e5m2': ['f16', 'bf16', 'f32', 'f8e4m3', 'f8e5m2'],
  'f8e5m2 f8e4m3': ['f16', 'bf16', 'f32', 'f8e4m3', 'f8e5m2'],
};

function is8(tensor: ResultForm): boolean {
  return tensor.dtype.bytes === 1;
}

/** Why the library cannot compute the product, or undefined where it may be able to. */
export function whyNotCublas(product: PlannedProduct): string | undefined {
  try {
    checkedPlaces(product);
    return undefined;
  } catch (error) {
    if (error instanceof CudaArgumentError) return error.message;
    throw error;
  }
}

/**
 * Gives the product in the library's terms.
 *
 * @throws CudaArgumentError for shapes and dtypes that do not fit, and for layouts that the library
 *   cannot read: of the last two axes one has to be contiguous, and those before them have to be
 *   one axis with one stride
 */
export function placedProduct(product: Product): PlacedProduct {
  const { a, b, out, c, bias, activation, scales = {}, amax } = product;
  const { alpha = 1, beta = c === undefined ? 0 : 1 } = product;
  const places = checkedPlaces(product);
  const tensors = { a, b, out, c: c ?? out };
  const stored = (name: OperandName): Matrix => ({
    ...places.stored(name),
    alignment: alignmentOf(tensors[name]),
  });
  const { swapped, lines, batch } = places;
  const readsC = beta !== 0 ? true : is8(out) ? null : false;
  const [first, second] = swapped ? ([b, a] as const) : ([a, b] as const);
  const [linesOfFirst, linesOfSecond] = swapped ? [lines.b, lines.a] : [lines.a, lines.b];
  const d = stored('out');
  const behind: Readonly<Record<PointerName, AnyTensor | undefined>> = {
    biasPointer: bias,
    scaleOfA: swapped ? scales.b : scales.a,
    scaleOfB: swapped ? scales.a : scales.b,
    scaleOfD: scales.out,
    amaxOfD: amax,
  };
  const pointers = (Object.keys(behind) as PointerName[]).filter(
    (name) => behind[name] !== undefined,
  );
  const form: Omit<ProductForm, 'key'> = {
    title: titleOf(product),
    batch,
    left: stored(swapped ? 'b' : 'a'),
    right: stored(swapped ? 'a' : 'b'),
    d,
    c:
      readsC === true && c !== undefined
        ? stored('c')
        : is8(out)
          ? {
              ...d,
              dtype: (c ?? bias)?.dtype.name === 'f16' ? 'f16' : 'bf16',
              alignment: ALIGNMENT,
            }
          : undefined,
    leftIsTransposed: linesOfFirst.byRow !== swapped,
    rightIsTransposed: linesOfSecond.byRow !== swapped,
    readsC,
    epilogue: epilogueOf(activation, bias !== undefined),
    biasType: bias?.dtype.name as CublasName | undefined,
    tf32: product.tf32 ?? false,
    fastAccumulation: product.fastAccumulation ?? false,
    vectors: areVectors(product),
    pointers,
  };
  return {
    form: { ...form, key: keyOf(form) },
    alpha,
    beta,
    tensors: [
      ...pointers.map((name) => behind[name]!),
      first,
      second,
      ...(readsC === null ? [] : [readsC ? (c ?? out) : out]),
      out,
    ],
  };
}

type OperandName = 'a' | 'b' | 'c' | 'out';

/** How the operands lie in memory. */
interface Places {
  /** Whether the transposes are multiplied, because out's rows are contiguous. */
  readonly swapped: boolean;
  readonly batch: number;
  readonly lines: Readonly<Record<'a' | 'b' | 'out', Lines>>;
  stored(name: OperandName): Omit<Matrix, 'alignment'>;
}

function checkedPlaces(product: PlannedProduct): Places {
  checkShapes(product);
  checkTypes(product);
  return placesOf(product);
}

function placesOf(product: PlannedProduct): Places {
  const { a, b, out, c, bias } = product;
  const [n, k] = [out.shape.at(-1)!, a.shape.at(-1)!];
  const m = out.shape.at(-2)!;
  const outer = out.shape.slice(0, -2);
  const tensors = { a, b, out, c: c ?? out };
  const [forA, forB, forOut, forC] = coalesceTogether(
    Object.values(tensors).map((tensor) => leading(tensor, outer)),
  ) as [Layout, Layout, Layout, Layout];
  const apart = {
    a: forA.strides[0] ?? 0,
    b: forB.strides[0] ?? 0,
    out: forOut.strides[0] ?? 0,
    c: forC.strides[0] ?? 0,
  };
  const count = forOut.shape[0] ?? 1;
  if (
    forOut.shape.length > 1 ||
    Object.values(apart).some((stride) => stride < 0) ||
    (count > 1 && apart.out === 0)
  )
    throw invalid(
      'product',
      'axes before the last two that are one axis in memory, for cuBLASLt',
      [a, b, out].map(({ layout }) => `strides ${showShape(layout.strides)}`).join(', '),
      'Copy the operand that has none.',
    );
  const linesOfOut = linesOf('out', out, undefined);
  const swapped = linesOfOut.byRow;
  if (bias !== undefined && !swapped)
    throw invalid('out', 'contiguous rows, for a product with bias', showShape(out.layout.strides));
  const lines = {
    a: linesOf('a', a, undefined),
    b: linesOf('b', b, undefined),
    out: linesOfOut,
    c: c === undefined ? linesOfOut : linesOf('c', c, swapped),
  };
  if (count > 1 && areVectors(product))
    throw invalid('scales', 'one element each, for several matrices', 'vectors');
  // With one b for all matrices, their rows are the rows of a single one.
  const isSingle =
    count > 1 &&
    swapped &&
    apart.b === 0 &&
    count * m <= MOST &&
    (['a', 'out', 'c'] as const).every(
      (name) => lines[name].byRow && apart[name] === m * lines[name].pitch,
    );
  const [batch, height] = isSingle ? [1, count * m] : [count, m];
  const extents = { a: [height, k], b: [k, n], out: [height, n], c: [height, n] } as const;
  return {
    swapped,
    batch,
    lines,
    stored: (name) => {
      const [rows, columns] = extents[name];
      const { byRow, pitch } = lines[name];
      return {
        dtype: tensors[name].dtype.name as CublasName,
        rows: byRow ? columns : rows,
        columns: byRow ? rows : columns,
        pitch,
        apart: batch === 1 ? 0 : apart[name],
      };
    },
  };
}

function areVectors({ scales }: PlannedProduct): boolean {
  return (scales?.a?.size ?? 1) > 1 || (scales?.b?.size ?? 1) > 1;
}

function checkShapes(product: PlannedProduct): void {
  const { a, b, out, c, bias, scales = {}, amax } = product;
  for (const [name, tensor] of Object.entries({ a, b, out })) {
    if (tensor.rank < 2) throw invalid(name, 'at least two axes, for cuBLASLt', tensor);
    if (tensor.size === 0) throw invalid(name, 'at least one element, for cuBLASLt', tensor);
    if (tensor.shape.some((extent) => extent > MOST))
      throw invalid(name, `axes of at most ${MOST} elements, for cuBLASLt`, tensor);
  }
  const [m, k] = a.shape.slice(-2) as [number, number];
  const [rows, n] = b.shape.slice(-2) as [number, number];
  if (k !== rows) throw invalid('b', `${k} rows, as many as a has columns, for cuBLASLt`, b);
  const shape = [...broadcastAll([a.shape.slice(0, -2), b.shape.slice(0, -2)]), m, n];
  for (const [name, tensor] of Object.entries({ out, ...(c === undefined ? {} : { c }) }))
    if (!sameShape(tensor.shape, shape))
      throw invalid(name, `the shape ${showShape(shape)}, for cuBLASLt`, tensor);
  if (bias !== undefined) checkVector('bias', bias, [n]);
  for (const [name, tensor, lengths] of [
    ['scales.a', scales.a, [1, m]],
    ['scales.b', scales.b, [1, n]],
    ['scales.out', scales.out, [1]],
    ['amax', amax, [1]],
  ] as const)
    if (tensor !== undefined) {
      checkVector(name, tensor, lengths);
      if (tensor.dtype.name !== 'f32') throw invalid(name, 'f32', tensor.dtype.name);
    }
  if (areVectors(product) && (scales.a?.size !== m || scales.b?.size !== n))
    throw invalid(
      'scales',
      `one element each, or ${m} for a and ${n} for b`,
      `${scales.a?.size ?? 'none'} and ${scales.b?.size ?? 'none'}`,
    );
}

function checkVector(name: string, tensor: AnyTensor, lengths: readonly number[]): void {
  if (!lengths.includes(tensor.size) || !tensor.isContiguous)
    throw invalid(name, `${[...new Set(lengths)].join(' or ')} contiguous elements`, tensor);
}

function checkTypes(product: PlannedProduct): void {
  const { a, b, out, c, bias, scales, amax, tf32 } = product;
  const factors = `${a.dtype.name} ${b.dtype.name}`;
  const results = RESULTS[factors];
  if (results === undefined)
    throw invalid(
      'b',
      `factors of one of the dtypes ${Object.keys(RESULTS).join('; ')}, for cuBLASLt`,
      factors,
    );
  const name = out.dtype.name as CublasName;
  if (!results.includes(name))
    throw invalid('out', `${results.join(', ')} for factors of ${factors}, for cuBLASLt`, name);
  if (is8(out) && c === undefined && (product.beta ?? 0) !== 0)
    throw invalid('beta', `0 without c, where out is ${name}`, product.beta);
  const forC: readonly string[] = is8(out) ? ['f16', 'bf16'] : [name];
  if (c !== undefined && !forC.includes(c.dtype.name))
    throw invalid('c', `${forC.join(' or ')} where out is ${name}`, c.dtype.name);
  const forBias: readonly string[] = !is8(a)
    ? [name]
    : is8(out)
      ? c === undefined
        ? forC
        : [c.dtype.name]
      : [name === 'f16' ? 'f16' : 'bf16'];
  if (bias !== undefined && !forBias.includes(bias.dtype.name))
    throw invalid('bias', `${forBias.join(' or ')} where out is ${name}`, bias.dtype.name);
  if (!is8(a) && (scales?.a ?? scales?.b) !== undefined)
    throw invalid('scales', 'none, for factors of more than 8 bits', factors);
  if (!is8(out) && (scales?.out ?? amax) !== undefined)
    throw invalid('scales', 'none for out, and no amax, where out has more than 8 bits', name);
  if (tf32 === true && factors !== 'f32 f32')
    throw invalid('tf32', 'false, for factors other than f32', tf32);
}

/** The layout of the axes before the last two, in the batch's shape. */
function leading({ layout }: ResultForm, batch: readonly number[]): Layout {
  const { shape, strides, offset } = layout;
  return broadcastTo(layoutOf(shape.slice(0, -2), strides.slice(0, -2), offset), batch as never);
}

/** How the last two axes lie in memory: contiguous rows, or contiguous columns. */
interface Lines {
  readonly byRow: boolean;
  /** The elements from one row (column) to the next. */
  readonly pitch: number;
}

/** @param wanted the order that it has to have; rows are preferred where both are possible */
function linesOf(name: string, { layout }: ResultForm, wanted: boolean | undefined): Lines {
  const [rows, columns] = layout.shape.slice(-2) as [number, number];
  const [down, along] = layout.strides.slice(-2) as [number, number];
  const pitch = (stride: number, lines: number, length: number): number =>
    lines === 1 ? length : stride;
  const byRow = { byRow: true, pitch: pitch(down, rows, columns) };
  const byColumn = { byRow: false, pitch: pitch(along, columns, rows) };
  const isByRow = (columns === 1 || along === 1) && byRow.pitch >= columns;
  const isByColumn = (rows === 1 || down === 1) && byColumn.pitch >= rows;
  if (isByRow && wanted !== false) return byRow;
  if (isByColumn && wanted !== true) return byColumn;
  const lines = wanted === undefined ? 'rows or columns' : wanted ? 'rows' : 'columns';
  throw invalid(
    name,
    `contiguous ${lines}${wanted === undefined ? '' : ', as out has them'}, for cuBLASLt`,
    `strides ${showShape(layout.strides)}`,
    'Copy it first.',
  );
}

function alignmentOf({ buffer, layout, dtype }: AnyTensor): number {
  if (!buffer.memory.aligned) return dtype.bytes;
  const at = buffer.byteOffset + layout.offset * dtype.bytes;
  let alignment = ALIGNMENT;
  while (at % alignment !== 0) alignment /= 2;
  return alignment;
}

function epilogueOf(activation: Product['activation'], bias: boolean): number {
  const flags = (activation === undefined ? 0 : EPILOGUE[activation]) + (bias ? EPILOGUE.bias : 0);
  return flags === 0 ? EPILOGUE.none : flags;
}

function titleOf({ a, b, out, c, bias, activation }: Product): string {
  const types = [...new Set([a.dtype.name, b.dtype.name])].join(' and ');
  const more = [
    ...(c === undefined ? [] : ['c']),
    ...(bias === undefined ? [] : ['bias']),
    ...(activation === undefined ? [] : [activation]),
  ];
  return (
    `${showShape(a.shape)} × ${showShape(b.shape)} of ${types} to ${out.dtype.name}` +
    (more.length === 0 ? '' : `, with ${more.join(', ')}`)
  );
}

function keyOf({ left, right, c, d, ...rest }: Omit<ProductForm, 'key'>): string {
  const matrices = [left, right, c, d].map((matrix) =>
    matrix === undefined
      ? '-'
      : [
          DATA_TYPE[matrix.dtype],
          matrix.rows,
          matrix.columns,
          matrix.pitch,
          matrix.apart,
          matrix.alignment,
        ].join(),
  );
  return [...matrices, ...Object.values(rest)].join(' ');
}
