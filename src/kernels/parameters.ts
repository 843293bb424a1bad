/** What a kernel in TypeScript declares of each of its parameters. */
import { DTYPES } from '../core/index.js';
import type { Access, DType, KernelDTypeName, PointerParam } from '../core/index.js';
import { insteadOfComplex, isKernelDType } from '../ground/dtype.js';
import { checkDType, invalid } from '../ground/arguments.js';
import type { Signature, SignatureEntry } from '../compiler/signature.js';
import { checkName } from './names.js';
import { hasFields, withoutFields } from './struct-declaration.js';
import type { StructDeclaration, StructFields } from './struct-declaration.js';

/** Axes that a body can index a tensor by. */
export type Rank = 1 | 2 | 3 | 4;
const MOST_AXES = 4;

/** A tensor of a dtype. Also a parameter of a loaded module's kernel. */
export interface TensorParam<
  D extends KernelDTypeName = KernelDTypeName,
  A extends Access = Access,
  R extends Rank = Rank,
> extends PointerParam<D, A> {
  readonly rank: R;
}

/** A tensor of structures. */
export interface StructsParam<F extends StructFields = StructFields, A extends Access = Access> {
  readonly pointer: true;
  readonly element: StructDeclaration<F>;
  readonly access: A;
  readonly rank: 1;
}

/**
 * What a parameter is declared as: a dtype for a scalar, {@link input}, {@link output},
 * {@link inout}, {@link struct}.
 */
export type KernelParam =
  | DType<KernelDTypeName>
  | PointerParam<KernelDTypeName>
  | TensorParam
  | StructsParam
  | StructDeclaration;

/** Parameters by name. */
export type KernelParams = Readonly<Record<string, KernelParam>>;

interface Declare<A extends Access> {
  // Two signatures: with one, a rank that is left out would be inferred from where the declaration
  // stands.
  /** A tensor as one run of elements, whatever its shape: `x[i]`. It has to be contiguous. */
  <D extends KernelDTypeName>(dtype: DType<D>): TensorParam<D, A, 1>;
  /** A tensor of so many axes: `x[row]![column]`. Any view of that many axes can be passed. */
  <D extends KernelDTypeName, const R extends Rank>(dtype: DType<D>, rank: R): TensorParam<D, A, R>;
  /** A tensor whose bytes are structures: of u8, or of the dtype that all fields have. */
  <F extends StructFields>(element: StructDeclaration<F>): StructsParam<F, A>;
}

function declare<A extends Access>(access: A): Declare<A> {
  return ((given: DType | StructDeclaration, rank: Rank = 1): TensorParam | StructsParam => {
    if (!Number.isInteger(rank) || rank < 1 || rank > MOST_AXES)
      throw invalid('rank', `a number of axes from 1 to ${MOST_AXES}`, rank);
    if (hasFields(given)) {
      if (rank !== 1)
        throw invalid(
          'rank',
          '1 for a tensor of structures',
          rank,
          'Index it by row · columns + column.',
        );
      return { pointer: true, element: given, access, rank };
    }
    if (typeof given === 'object' && (given as unknown) !== null && 'struct' in given)
      throw withoutFields('element');
    checkComputed(given, 'dtype');
    return { pointer: true, dtype: given, access, rank };
  }) as Declare<A>;
}

/** The kernel only reads it; readers on several streams may overlap. */
export const input = declare('input');
/** The kernel writes it. Grid and block are inferred from the outputs. */
export const output = declare('output');
/** The kernel reads and writes it. */
export const inout = declare('inout');

/** A parameter with its name and place. */
export interface Parameter {
  readonly name: string;
  readonly declared: KernelParam;
  readonly entry: SignatureEntry;
}

/** @throws CudaArgumentError for what is no signature */
export function parametersOf(signature: unknown): Parameter[] {
  if (typeof signature !== 'object' || signature === null || Array.isArray(signature)) {
    throw invalid(
      'signature',
      'an object of parameters by name',
      signature,
      'Write { y: inout(f32), a: f32, x: input(f32) }.',
    );
  }
  return Object.entries(signature).map(([name, declared]: [string, unknown]) => {
    checkName('signature', name, 'a parameter');
    return { name, declared: declared as KernelParam, entry: entryOf(name, declared) };
  });
}

/** @throws CudaArgumentError for what is no dtype that kernels in TypeScript compute with */
function checkComputed(dtype: unknown, argument: string): asserts dtype is DType<KernelDTypeName> {
  checkDType(dtype, argument);
  if (!isKernelDType(dtype.name))
    throw invalid(
      argument,
      'a dtype that kernels in TypeScript compute with',
      dtype.name,
      insteadOfComplex(dtype),
    );
}

const ACCESSES: readonly unknown[] = ['input', 'output', 'inout'] satisfies Access[];

function entryOf(name: string, declared: unknown): SignatureEntry {
  const argument = `signature.${name}`;
  if (typeof declared === 'object' && declared !== null) {
    if (hasFields(declared)) return { kind: 'struct', struct: declared.layout };
    if ('pointer' in declared) {
      const { access, dtype, element, rank = 1 } = declared as Partial<TensorParam & StructsParam>;
      if (access !== undefined && ACCESSES.includes(access)) {
        if (hasFields(element))
          return { kind: 'tensor', element: { struct: element.layout }, access, rank: 1 };
        checkComputed(dtype, `${argument}.dtype`);
        return { kind: 'tensor', element: { storage: dtype.name }, access, rank };
      }
    }
    if ('struct' in declared) throw withoutFields(argument);
    if (Object.values(DTYPES).includes(declared as DType)) {
      checkComputed(declared, argument);
      return { kind: 'scalar', storage: declared.name };
    }
  }
  throw invalid(argument, 'a dtype, input(…), output(…), inout(…) or struct({…})', declared);
}

/** The signature as the compiler takes it. */
export function signatureOf(parameters: readonly Parameter[]): Signature {
  return Object.fromEntries(parameters.map(({ name, entry }) => [name, entry]));
}

/** A parameter's declaration as it is written. */
export function describeEntry(entry: SignatureEntry): string {
  if (entry.kind === 'scalar') return entry.storage;
  if (entry.kind === 'struct') return describeStruct(entry.struct.fields);
  const element =
    'struct' in entry.element ? describeStruct(entry.element.struct.fields) : entry.element.storage;
  return `${entry.access}(${element}${entry.rank === 1 ? '' : `, ${entry.rank}`})`;
}

function describeStruct(fields: readonly { name: string; storage: string }[]): string {
  return `struct({ ${fields.map(({ name, storage }) => `${name}: ${storage}`).join(', ')} })`;
}
