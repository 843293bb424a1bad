/**
 * Kernel signatures: the type and place of each parameter. They are read from the PTX or the
 * driver, or declared by the program. A declaration is checked against the kernel's own parameters.
 */
import type { KernelSignature } from '../ptx/index.js';
import { ACCESS_READ, ACCESS_WRITE } from '../runtime/commands.js';
import { CudaArgumentError } from '../ground/errors.js';
import { checkDType, invalid } from '../ground/arguments.js';
import type { DType, DTypeName } from '../ground/dtype.js';
import { DTYPES, DTYPE_FACTS, DTYPE_NAMES } from '../ground/dtype.js';
import type {
  Access,
  MapParam,
  ParamDeclaration,
  PointerParam,
  StructsParam,
} from './parameter-declarations.js';
import { MAX_PARAMETER_BYTES } from './parameter-space.js';
import { hasFields } from './struct-declaration.js';
import type { BytesParam } from './struct-declaration.js';

/** How one parameter is encoded in the parameter buffer. */
export interface ParamLayout {
  readonly index: number;
  readonly offset: number;
  readonly size: number;
  /** `word` is a value of at most 4 bytes whose type is not known, `map` a tensor map. */
  readonly kind: 'pointer' | 'scalar' | 'struct' | 'word' | 'map';
  readonly scalar: DTypeName | undefined;
  /** The dtype that a pointer's buffer must have; undefined where every dtype is allowed. */
  readonly dtype: DTypeName | undefined;
  /** The element type of a pointer in the source. Memory with other elements is refused. */
  readonly pointee: DTypeName | undefined;
  /** ACCESS_READ, ACCESS_WRITE or both. */
  readonly access: number;
  /** Whether the access was declared rather than assumed. */
  readonly declared: boolean;
  /**
   * The type of a scalar in the signature or the source. Undefined where the type is known from PTX
   * only, which does not distinguish signed from unsigned words.
   */
  readonly exact: DTypeName | undefined;
}

/** Dtypes by the names of their types in PTX. */
const PTX_SCALARS: ReadonlyMap<string, DTypeName> = new Map(
  DTYPE_NAMES.flatMap((name) => {
    const type = DTYPE_FACTS[name].ptx?.type ?? null;
    return type === null ? [] : [[type, name]];
  }),
);

/** Bytes of a tensor map, and the alignment of one as a parameter (PTX ISA, .tensormap). */
const MAP_BYTES = 128;
const MAP_ALIGNMENT = 64;

const BOTH = ACCESS_READ | ACCESS_WRITE;

/**
 * The layout from the kernel's PTX, with types of scalars. A signed or unsigned integer of 64 bits
 * may be a pointer. Offsets are the driver's where it gives them: those of parameters that are
 * aligned to more than 16 bytes depend on where it puts the first one.
 */
export function layoutFromPtx(
  signature: KernelSignature,
  params?: readonly { offset: number; size: number }[],
): ParamLayout[] {
  const known = params?.length === signature.params.length ? params : undefined;
  return signature.params.map((param, index) => {
    const base = {
      index,
      offset: known?.[index]?.offset ?? param.offset,
      size: param.size,
      dtype: undefined,
      pointee: undefined,
      access: BOTH,
      declared: false,
      exact: undefined,
    };
    if (param.aggregate) return { ...base, kind: 'struct', scalar: undefined };
    const scalar = PTX_SCALARS.get(param.type);
    if (param.pointer || ['u64', 's64', 'b64'].includes(param.type))
      return { ...base, kind: 'pointer', scalar: scalar ?? 'u64' };
    if (scalar === undefined) return { ...base, kind: 'word', scalar: undefined };
    return { ...base, kind: 'scalar', scalar };
  });
}

/** The layout from the driver, which gives offsets and sizes only. */
export function layoutFromDriver(
  params: readonly { offset: number; size: number }[],
): ParamLayout[] {
  return params.map(({ offset, size }, index) => ({
    index,
    offset,
    size,
    kind: size === 8 ? 'pointer' : size <= 4 ? 'word' : 'struct',
    scalar: undefined,
    dtype: undefined,
    pointee: undefined,
    access: BOTH,
    declared: false,
    exact: undefined,
  }));
}

/** A pointer parameter in the source of a kernel. */
export interface SourcePointer {
  /** Whether the kernel only reads the memory. */
  readonly isRead: boolean;
  /** The element type; undefined where it is not a scalar. */
  readonly pointee: DTypeName | undefined;
}

/**
 * An integer parameter in the source of a kernel. Its size is the kernel's: `long` has 32 or 64
 * bits.
 */
export type SourceWord = 'signed' | 'unsigned' | 'bool';

/** Parameters in the source of a kernel, by their index. */
export interface SourceParameters {
  readonly pointers: ReadonlyMap<number, SourcePointer>;
  readonly words: ReadonlyMap<number, SourceWord>;
}

const WORDS: Readonly<Record<number, Readonly<Record<'signed' | 'unsigned', DTypeName>>>> = {
  1: { signed: 'i8', unsigned: 'u8' },
  2: { signed: 'i16', unsigned: 'u16' },
  4: { signed: 'i32', unsigned: 'u32' },
  8: { signed: 'i64', unsigned: 'u64' },
};

/**
 * The layout, refined by the source's parameters. An address may still be passed as an integer of
 * 64 bits.
 */
export function layoutOfSource(
  layout: readonly ParamLayout[],
  { pointers, words }: SourceParameters,
): ParamLayout[] {
  return layout.map((param) => {
    const pointer = param.kind === 'pointer' ? pointers.get(param.index) : undefined;
    if (pointer !== undefined)
      return {
        ...param,
        pointee: pointer.pointee,
        access: pointer.isRead ? ACCESS_READ : param.access,
      };
    const word =
      param.kind === 'struct' ||
      (param.scalar !== undefined && DTYPES[param.scalar].kind === 'float')
        ? undefined
        : words.get(param.index);
    const exact =
      word === 'bool' ? (param.size === 1 ? 'bool' : undefined) : word && WORDS[param.size]?.[word];
    if (exact === undefined) return param;
    return param.kind === 'pointer'
      ? { ...param, exact }
      : { ...param, kind: 'scalar', scalar: exact, exact };
  });
}

/**
 * Whether memory of a dtype can be passed for a pointer to `pointee`: the elements have the same
 * size and kind, where signed and unsigned integers are of one kind.
 */
export function passesFor(dtype: DType, pointee: DTypeName): boolean {
  const { name, bytes, kind } = DTYPES[pointee];
  const isInteger = (each: DType['kind']): boolean => each !== 'float' && each !== 'complex';
  return isInteger(kind) && isInteger(dtype.kind) ? dtype.bytes === bytes : dtype.name === name;
}

const ACCESSES: Readonly<Record<Access, number>> = {
  input: ACCESS_READ,
  output: ACCESS_WRITE,
  inout: BOTH,
};

function isPointer(declaration: ParamDeclaration): declaration is PointerParam | StructsParam {
  return 'pointer' in declaration;
}

function isStruct(declaration: ParamDeclaration): declaration is BytesParam {
  return 'struct' in declaration;
}

const isMap = (declaration: ParamDeclaration): declaration is MapParam => 'map' in declaration;

function describe(declaration: ParamDeclaration): string {
  if (isMap(declaration)) return `tensorMap(${declaration.access})`;
  if (isPointer(declaration)) {
    const element = 'element' in declaration ? describeFields(declaration) : declaration.dtype.name;
    return `${declaration.access}(${element})`;
  }
  if (isStruct(declaration)) return `struct(${declaration.bytes})`;
  return declaration.name;
}

/**
 * The layout of the declared signature, checked against the kernel's own parameters; `own` is
 * undefined where they are not known.
 *
 * @throws CudaArgumentError where the two differ
 */
export function layoutFromDeclaration(
  kernel: string,
  declarations: readonly ParamDeclaration[],
  own: readonly ParamLayout[] | undefined,
): ParamLayout[] {
  [...declarations].forEach(checkKind);
  if (own !== undefined && own.length !== declarations.length) {
    throw new CudaArgumentError(
      'signature',
      `signature: kernel '${kernel}' has ${own.length} parameters, ${declarations.length} ` +
        `were declared (${declarations.map(describe).join(', ')}).`,
    );
  }
  let offset = 0;
  return declarations.map((declaration, index) => {
    const size = isMap(declaration) ? MAP_BYTES : isPointer(declaration) ? 8 : declaration.bytes;
    const align = isMap(declaration)
      ? MAP_ALIGNMENT
      : isStruct(declaration)
        ? (declaration.align ?? Math.min(16, size & -size || 1))
        : size;
    if (
      own === undefined &&
      isStruct(declaration) &&
      declaration.align === undefined &&
      offset % align !== 0
    ) {
      throw new CudaArgumentError(
        `signature[${index}]`,
        `signature[${index}]: this driver does not give the offset of parameter ${index} of ` +
          `kernel '${kernel}'. Give the structure's alignment, that of its largest member: ` +
          `struct(${size}, 4).`,
      );
    }
    offset = Math.ceil(offset / align) * align;
    const at = own?.[index]?.offset ?? offset;
    offset = at + size;
    if (offset > MAX_PARAMETER_BYTES)
      throw invalid(
        'signature',
        `at most ${MAX_PARAMETER_BYTES} bytes of parameters`,
        `${offset} bytes up to parameter ${index}`,
      );
    const actual = own?.[index];
    if (actual !== undefined) checkDeclaration(kernel, index, declaration, size, actual);
    const base = { index, offset: at, size, pointee: undefined, declared: true, exact: undefined };
    if (isPointer(declaration)) {
      return {
        ...base,
        kind: 'pointer',
        scalar: undefined,
        dtype: 'element' in declaration ? undefined : declaration.dtype.name,
        access: ACCESSES[declaration.access],
      };
    }
    if (isMap(declaration)) {
      const access = ACCESSES[declaration.access];
      return { ...base, kind: 'map', scalar: undefined, dtype: undefined, access };
    }
    if (isStruct(declaration))
      return { ...base, kind: 'struct', scalar: undefined, dtype: undefined, access: 0 };
    return {
      ...base,
      kind: 'scalar',
      scalar: declaration.name,
      dtype: undefined,
      access: 0,
      exact: declaration.name,
    };
  });
}

function checkKind(declaration: unknown, index: number): void {
  const kind = declaration as ParamDeclaration;
  if (typeof kind === 'object' && (kind as unknown) !== null) {
    if (isMap(kind)) return;
    if (isPointer(kind) && Object.hasOwn(ACCESSES, kind.access)) {
      if ('element' in kind && hasFields(kind.element)) return;
      return checkDType((kind as PointerParam).dtype, `signature[${index}].dtype`);
    }
    if (isStruct(kind) && Number.isInteger(kind.bytes)) return;
    if ('name' in kind && Object.values(DTYPES).includes(kind)) {
      const dtype: DType = kind;
      if (dtype.kind !== 'complex') return;
      throw invalid(
        `signature[${index}]`,
        'a dtype that a scalar has in PTX',
        dtype.name,
        `Write struct(${dtype.bytes}, ${dtype.bytes / 2}), and pass the bytes of both parts.`,
      );
    }
  }
  throw invalid(
    `signature[${index}]`,
    'a dtype, input(…), output(…), inout(…) or struct(…)',
    declaration,
  );
}

function checkDeclaration(
  kernel: string,
  index: number,
  declaration: ParamDeclaration,
  size: number,
  actual: ParamLayout,
): void {
  const problem = (what: string): CudaArgumentError =>
    new CudaArgumentError(
      `signature[${index}]`,
      `signature[${index}]: ${describe(declaration)} was declared, but parameter ${index} of ` +
        `kernel '${kernel}' ${what}.`,
    );
  if (size !== actual.size) throw problem(`has ${actual.size} bytes`);
  if (isPointer(declaration)) {
    if (actual.kind !== 'pointer')
      throw problem(`is ${actual.scalar ?? actual.kind}, not a pointer`);
    return;
  }
  if (isMap(declaration) && actual.kind !== 'struct') throw problem('is no tensor map');
  if (isMap(declaration) || isStruct(declaration) || actual.scalar === undefined) return;
  const declared = DTYPES[declaration.name].kind === 'float';
  const own = DTYPES[actual.scalar].kind === 'float';
  // nvcc declares 64-bit integers and pointers alike, so an unsigned word may be of any type but a
  // float.
  if (declared !== own) throw problem(`is ${actual.scalar}`);
}

function describeFields({ element }: StructsParam): string {
  const fields = element.layout.fields.map(({ name, storage }) => `${name}: ${storage}`);
  return `struct({ ${fields.join(', ')} })`;
}
