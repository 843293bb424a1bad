/** Declarations of a TypeScript kernel's parameters. */
import { DTYPES } from '../core/index.js';
import type {
  Access,
  DType,
  KernelDTypeName,
  PointerParam,
  StructDeclaration,
  StructsParam,
  TensorParam,
} from '../core/index.js';
import { insteadOfComplex, isKernelDType } from '../ground/dtype.js';
import { checkDType, invalid } from '../ground/arguments.js';
import type { Signature, SignatureEntry } from '../compiler/signature.js';
import { checkName } from '../ground/names.js';
import { hasFields, withoutFields } from '../core/struct-declaration.js';

/**
 * The declaration of a parameter: a dtype for a scalar, {@link input}, {@link output}, {@link
 * inout}, {@link struct}.
 */
export type KernelParam =
  | DType<KernelDTypeName>
  | PointerParam<KernelDTypeName>
  | TensorParam
  | StructsParam
  | StructDeclaration;

/** Parameters by name. */
export type KernelParams = Readonly<Record<string, KernelParam>>;

/** A parameter with its name and place. */
export interface Parameter {
  readonly name: string;
  readonly declared: KernelParam;
  readonly entry: SignatureEntry;
}

/** @throws CudaArgumentError where the value is no signature */
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

/** @throws CudaArgumentError where the value is no dtype that kernels in TypeScript compute with */
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

/** The signature in the compiler's form. */
export function signatureOf(parameters: readonly Parameter[]): Signature {
  return Object.fromEntries(parameters.map(({ name, entry }) => [name, entry]));
}

/** The source text of a parameter's declaration. */
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
