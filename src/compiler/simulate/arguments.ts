/** The arguments of a simulated kernel, as memories and scalars. */
import type { KernelTree, StorageType, TreeParam } from '../tree.js';
import type { StructLayout } from '../../ground/struct-layout.js';
import { BIT_ARRAYS, DTYPE_NAMES, HOST_ARRAYS } from '../../ground/dtype.js';
import type { DTypeName } from '../../ground/dtype.js';
import { hostBits, hostValue, isNarrow, wideValues } from '../../ground/narrow-floats.js';
import { readAs, storageBytes } from '../storage-types.js';
import { StructMemory, memoryOf } from './memory.js';
import type { Memory, Value } from './memory.js';

/** Values of one scalar; i64 and u64 also take a number that is an integer. */
export type HostScalar = number | bigint | boolean;

/**
 * Elements of a tensor: a typed array of the tensor's own dtype, which the kernel works on in
 * place.
 *
 * | dtype | array |
 * |---|---|
 * | i8 u8 i16 u16 i32 u32 f32 f64 | the typed array of that name |
 * | i64 u64 | BigInt64Array, BigUint64Array |
 * | bool | Uint8Array of 0 and 1 |
 * | f16 bf16 | Uint16Array of bits (f16: Float16Array, too), or Float32Array of values |
 * | f8e4m3 f8e5m2 | Uint8Array of bits, or Float32Array of values |
 * | structure | any array or ArrayBuffer of its bytes, laid out as its StructType says |
 *
 * A Float32Array for a narrower float is rounded before the kernel runs, and an output's is what
 * would be read afterwards.
 */
export type HostArray = ArrayBufferView | ArrayBuffer | SharedArrayBuffer;

/**
 * A tensor with more than one axis. `strides` are in elements; without them the tensor is
 * contiguous. `offset` is the element of the array where the tensor begins.
 */
export interface HostTensor {
  readonly data: HostArray;
  readonly shape: readonly number[];
  readonly strides?: readonly number[];
  readonly offset?: number;
}

/** Arguments by the names of the parameters. */
export type HostArguments = Readonly<
  Record<string, HostArray | HostTensor | HostScalar | Readonly<Record<string, HostScalar>>>
>;

/** The arguments of the generated function, and the work after the run. */
export interface BoundArguments {
  readonly values: readonly (Memory | StructMemory | Value | Readonly<Record<string, Value>>)[];
  /** Copies results into arrays that hold them in another form. */
  readonly finish: () => void;
}

/** An argument that the kernel does not take. */
export class UnfitArgument extends TypeError {
  /** The parameter's name. */
  readonly argument: string;

  constructor(argument: string, message: string) {
    super(`simulate: ${message}`);
    this.argument = argument;
  }
}

const ARRAY_NAMES = Object.fromEntries(
  DTYPE_NAMES.map((name): [DTypeName, readonly string[]] => {
    const [host, bits] = [HOST_ARRAYS[name].name, BIT_ARRAYS[name].name];
    if (name === 'u8') return [name, [host, 'Uint8ClampedArray']];
    if (!isNarrow(name)) return [name, [host]];
    return [name, name === 'f16' ? [bits, 'Float16Array', host] : [bits, host]];
  }),
) as Readonly<Record<DTypeName, readonly string[]>>;

// eslint-disable-next-line @typescript-eslint/unbound-method -- called with the array in question
const typeOfArray = Object.getOwnPropertyDescriptor(
  Object.getPrototypeOf(Uint8Array.prototype),
  Symbol.toStringTag,
)!.get!;

/**
 * Gives the class that an array is made of: a subclass counts as its base (Node's Buffer as a
 * Uint8Array), and so do arrays of other realms.
 */
const arrayName = (value: object): string =>
  (typeOfArray.call(value) as string | undefined) ?? value.constructor?.name ?? 'object';

/** Tests a buffer by its tag: `instanceof` fails for a buffer of another realm. */
const isBuffer = (value: unknown): value is ArrayBuffer | SharedArrayBuffer =>
  /^\[object (?:Shared)?ArrayBuffer\]$/.test(Object.prototype.toString.call(value));

function describe(value: unknown): string {
  if (value === undefined) return 'nothing';
  if (value === null) return 'null';
  if (typeof value === 'object') return `a ${arrayName(value)}`;
  return typeof value === 'string'
    ? `'${value}'`
    : `${(value as symbol).toString()} (${typeof value})`;
}

function scalarOf(param: string, name: string, storage: StorageType, value: unknown): Value {
  const type = readAs[storage];
  if (type === 'bool') {
    if (typeof value === 'boolean') return value;
    throw new UnfitArgument(
      param,
      `'${name}' is a bool, but got ${describe(value)}. Pass true or false.`,
    );
  }
  if (type === 'f32' || type === 'f64') {
    if (typeof value !== 'number')
      throw new UnfitArgument(
        param,
        `'${name}' is a ${storage}, but got ${describe(value)}. Pass a number.`,
      );
    if (isNarrow(storage)) return hostValue(storage, value);
    return type === 'f32' ? Math.fround(value) : value;
  }
  const bits = storageBytes[storage] * 8;
  if (typeof value === 'bigint' || (typeof value === 'number' && Number.isInteger(value))) {
    const whole = BigInt(value);
    const fits =
      whole ===
      (storage.startsWith('u') ? BigInt.asUintN(bits, whole) : BigInt.asIntN(bits, whole));
    if (fits) return type === 'i64' || type === 'u64' ? whole : Number(whole);
  }
  throw new UnfitArgument(
    param,
    `'${name}' is a ${storage}, but got ${describe(value)}. Pass an integer that ${bits} ` +
      `bits hold${storage.startsWith('u') ? ', from 0' : ''}.`,
  );
}

function structOf(
  name: string,
  struct: StructLayout,
  value: unknown,
): Readonly<Record<string, Value>> {
  if (typeof value !== 'object' || value === null) {
    throw new UnfitArgument(
      name,
      `'${name}' is a structure, but got ${describe(value)}. Pass an object with ` +
        `${struct.fields.map((field) => field.name).join(', ')}.`,
    );
  }
  return Object.fromEntries(
    struct.fields.map((field) => [
      field.name,
      scalarOf(name, `${name}.${field.name}`, field.storage, ownOf(value, field.name)),
    ]),
  );
}

/**
 * Gives a property by a name that the program chose. Inherited properties (`toString`) do not
 * count.
 */
function ownOf(values: object, name: string): unknown {
  return Object.hasOwn(values, name) || !(name in Object.prototype)
    ? (values as Record<string, unknown>)[name]
    : undefined;
}

const isFloats = (data: HostArray): data is Float32Array => arrayName(data) === 'Float32Array';

function isTensor(value: object): value is HostTensor {
  return 'data' in value && 'shape' in value;
}

/** Whether an array without bytes was detached. Node 20 has no property for it. */
function isDetached(array: HostArray): boolean {
  if (array.byteLength > 0) return false;
  try {
    new Uint8Array(ArrayBuffer.isView(array) ? array.buffer : array);
    return false;
  } catch {
    return true;
  }
}

function bytesOf(array: HostArray): Uint8Array {
  return ArrayBuffer.isView(array)
    ? new Uint8Array(array.buffer, array.byteOffset, array.byteLength)
    : new Uint8Array(array);
}

function tensorOf(
  param: TreeParam & { kind: 'tensor' },
  value: unknown,
  after: (() => void)[],
): Memory | StructMemory {
  const { name, element, rank, access } = param;
  const isArray = (candidate: unknown): candidate is HostArray =>
    ArrayBuffer.isView(candidate) || isBuffer(candidate);
  const expected =
    'struct' in element
      ? 'an ArrayBuffer of its structures'
      : `a ${ARRAY_NAMES[element.storage].join(' or a ')}`;
  const given =
    typeof value === 'object' && value !== null && !isArray(value) && isTensor(value)
      ? value
      : undefined;
  const data = given === undefined ? value : given.data;
  const fits =
    isArray(data) &&
    ('struct' in element || ARRAY_NAMES[element.storage].includes(arrayName(data)));
  if (!fits)
    throw new UnfitArgument(
      name,
      `'${name}' is a tensor of ${'struct' in element ? 'structures' : element.storage}, but ` +
        `got ${describe(data)}. Pass ${expected}${rank > 1 ? ' as { data, shape }' : ''}.`,
    );
  if (rank > 1 && given?.shape.length !== rank) {
    throw new UnfitArgument(
      name,
      `'${name}' has ${rank} axes, but got ` +
        (given === undefined
          ? 'an array without a shape'
          : `the shape [${given.shape.join(', ')}]`) +
        '. Pass { data, shape: ' +
        `[${Array.from({ length: rank }, (_, axis) => `n${axis}`).join(', ')}] }.`,
    );
  }
  if (isDetached(data))
    throw new UnfitArgument(
      name,
      `'${name}' was detached or transferred: its bytes are elsewhere. Pass it before that, ` +
        'or pass a copy.',
    );
  const memory = memoryFor(param, data, access, after, given);
  const shape = given?.shape ?? [memory.length];
  memory.shape = shape;
  memory.strides =
    given?.strides ??
    shape.map((_, axis) => shape.slice(axis + 1).reduce((product, extent) => product * extent, 1));
  const last = shape.some((extent) => extent === 0)
    ? -1
    : shape.reduce((sum, extent, axis) => sum + (extent - 1) * memory.strides[axis]!, 0);
  if (last >= memory.length)
    throw new UnfitArgument(
      name,
      `'${name}' has the shape [${shape.join(', ')}], which needs ${last + 1} elements, but ` +
        `its array has ${memory.length}. Pass a longer array or a smaller shape.`,
    );
  return memory;
}

function memoryFor(
  { name, element }: TreeParam & { kind: 'tensor' },
  data: HostArray,
  access: 'input' | 'output' | 'inout',
  after: (() => void)[],
  given: HostTensor | undefined,
): Memory | StructMemory {
  const skipped = given?.offset ?? 0;
  let bytes = bytesOf(data);
  if ('struct' in element)
    return new StructMemory(name, element.struct, bytes.subarray(skipped * element.struct.bytes));
  const { storage } = element;
  if (isNarrow(storage) && isFloats(data)) {
    const words =
      storageBytes[storage] === 1 ? new Uint8Array(data.length) : new Uint16Array(data.length);
    data.forEach((number, index) => {
      words[index] = hostBits(storage, number);
    });
    if (access !== 'input')
      after.push(() => {
        words.forEach((word, index) => {
          data[index] = wideValues(storage)[word]!;
        });
      });
    bytes = new Uint8Array(words.buffer);
  }
  const from = skipped * storageBytes[storage];
  const dense =
    given !== undefined && given.strides === undefined && given.shape.length === 1
      ? given.shape[0]! * storageBytes[storage]
      : bytes.length - from;
  return memoryOf(name, 'global', storage, {
    buffer: bytes.buffer,
    offset: bytes.byteOffset + from,
    bytes: Math.max(0, Math.min(bytes.length - from, dense)),
  });
}

/**
 * Gives the arguments in the order of the tree's parameters.
 *
 * @throws {@link UnfitArgument}
 */
export function bindArguments(tree: KernelTree, given: HostArguments): BoundArguments {
  const names = tree.params.map((param) => param.name);
  for (const name of Object.keys(given)) {
    if (!names.includes(name))
      throw new UnfitArgument(
        name,
        `'${tree.name}' has no parameter '${name}'. It takes ${names.join(', ') || 'none'}.`,
      );
  }
  const after: (() => void)[] = [];
  const values = tree.params.map((param) => {
    const value = ownOf(given, param.name);
    if (value === undefined)
      throw new UnfitArgument(
        param.name,
        `'${tree.name}' needs '${param.name}', a ${param.kind}, but got nothing. Pass { ` +
          `${names.join(', ')} }.`,
      );
    if (param.kind === 'scalar') return scalarOf(param.name, param.name, param.storage, value);
    return param.kind === 'struct'
      ? structOf(param.name, param.struct, value)
      : tensorOf(param, value, after);
  });
  return {
    values,
    finish: () => {
      for (const each of after) each();
    },
  };
}
