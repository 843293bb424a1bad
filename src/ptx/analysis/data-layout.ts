// Places .global and .const variables in one data image, fills in their initial values, and records
// which cells hold addresses, to which the loader adds the address of the image.

import { scalarType } from '../scalar-types.js';
import type { Initializer, PtxFunction, PtxModule, Variable } from '../syntax/ast.js';
import type { SharedVariable, Symbol } from './program.js';

const LARGEST_IMAGE = 2 ** 30;
/** Function pointers have this tag, so that no data address is taken for one. */
export const FUNCTION_TAG = 1n << 40n;

export interface DataVariable {
  name: string;
  space: 'global' | 'const';
  offset: number;
  size: number;
  align: number;
  visible: boolean;
}

/**
 * The cell at `offset` becomes dataBase + addend: 64 bits of it, or the bytes that `part`
 * describes.
 */
export interface Relocation {
  offset: number;
  addend: number;
  /**
   * Bytes of the cell, and how far the address is shifted right before its low bits are written.
   */
  part?: { bytes: 1 | 4; shift: number };
}

/**
 * Writes the addresses that depend on where a module's data image is. The image has to be in the
 * memory at `dataBase`, a multiple of 256, before the call.
 *
 * @example
 * ```ts
 * const { data, relocations } = compilePtx(`.version 8.0
 *   .target sm_80
 *   .address_size 64
 *   .global .u64 value = 7;
 *   .global .u64 pointer = value;`);
 * const memory = new Uint8Array(4096);
 * memory.set(data, 1024);
 * relocate(new DataView(memory.buffer), 1024, relocations);
 * console.log(new BigUint64Array(memory.buffer, 1024, 2)); // BigUint64Array(2) [ 7n, 1024n ]
 * ```
 */
export function relocate(
  view: DataView,
  dataBase: number,
  relocations: readonly Relocation[],
): void {
  for (const { offset, addend, part } of relocations) {
    const address = BigInt(dataBase + addend);
    if (!part) view.setBigUint64(dataBase + offset, address, true);
    else if (part.bytes === 4)
      view.setUint32(dataBase + offset, Number(BigInt.asUintN(32, address)), true);
    else view.setUint8(dataBase + offset, Number((address >> BigInt(part.shift)) & 255n));
  }
}

export interface DataLayout {
  image: Uint8Array;
  relocations: Relocation[];
  variables: DataVariable[];
  symbols: Map<string, Symbol>;
  /** Where the .const variables are: after the .global ones. */
  constants: { from: number; to: number };
}

/** The shift for a mask that chooses one byte. */
const BYTE_MASKS: ReadonlyMap<bigint, number> = new Map(
  Array.from({ length: 8 }, (_, byte) => [0xffn << BigInt(8 * byte), 8 * byte]),
);

export const alignUp = (value: number, align: number): number => Math.ceil(value / align) * align;

export function variableLayout(variable: Variable): {
  size: number;
  align: number;
  element: number;
  aggregate: boolean;
} {
  const type = scalarType(variable.type);
  const element = Math.max(1, type.bits / 8);
  const natural = element * variable.vector;
  const count = variable.dimensions.reduce((product, size) => product * size, 1);
  return {
    size: natural * count,
    align: Math.max(variable.align ?? natural, 1),
    element,
    aggregate: variable.dimensions.length > 0,
  };
}

export function sharedVariable(variable: Variable): SharedVariable {
  const { size, align } = variableLayout(variable);
  // A variable with a size is an ordinary variable, as in ptxas, which then ignores 'extern'.
  // Taichi writes such variables.
  return {
    name: variable.name,
    size,
    align,
    dynamic: size === 0 && variable.linkage.includes('extern'),
  };
}

/** The address of a function: its index among the functions whose address is taken. */
export function functionAddress(target: PtxFunction, taken: PtxFunction[]): bigint {
  let index = taken.indexOf(target);
  if (index < 0) index = taken.push(target) - 1;
  return FUNCTION_TAG + BigInt(index) * 16n;
}

/** The error message for a name that has no definition. */
export function undefinedSymbol(name: string, { variables, functions }: PtxModule): string {
  const declared =
    variables.some((variable) => variable.name === name) ||
    functions.some((fn) => fn.name === name);
  return declared
    ? `'${name}' is defined in another module, and modules are not linked: link them to one ` +
        'text first (from LTO-IR, as nvcc -dlto and NVRTC make it)'
    : `undefined symbol '${name}'`;
}

/** A variable and its place in the image. */
interface Placed {
  readonly variable: Variable;
  readonly offset: number;
}

/** `gap` is the number of bytes to leave free after each variable. */
export function layOutData(
  module: PtxModule,
  functions: Map<string, PtxFunction>,
  taken: PtxFunction[],
  gap: number,
): DataLayout {
  const symbols = new Map<string, Symbol>();
  const variables: DataVariable[] = [];
  const { placed, constants } = placeVariables(module, gap, symbols, variables);
  const writer = new ImageWriter(module, functions, taken, symbols, constants.to);
  for (const { variable, offset } of placed)
    if (variable.initializer)
      writer.write(variable, offset, variable.dimensions, variable.initializer);
  const { image, relocations } = writer;
  return { image, relocations, variables, symbols, constants };
}

/** Bytes of a variable. Its initial values may determine the first dimension. */
function bytesOf(
  { initializer, dimensions, vector }: Variable,
  size: number,
  element: number,
): number {
  if (dimensions[0] !== 0 || initializer?.kind !== 'list') return size;
  const inner = dimensions.slice(1).reduce((product, count) => product * count, 1);
  return element * vector * initializer.elements.length * inner;
}

/** Places the module's variables; those in .const come after those in .global. */
function placeVariables(
  module: PtxModule,
  gap: number,
  symbols: Map<string, Symbol>,
  variables: DataVariable[],
): { placed: Placed[]; constants: DataLayout['constants'] } {
  const { source } = module;
  const placed: Placed[] = [];
  const isConstant = (variable: Variable): boolean => variable.space === 'const';
  let end = 0;
  let firstConstant = -1;
  for (const variable of [
    ...module.variables.filter((variable) => !isConstant(variable)),
    ...module.variables.filter(isConstant),
  ]) {
    const { name, space, linkage } = variable;
    if (isConstant(variable) && firstConstant < 0) firstConstant = end;
    if (space === 'shared') {
      if (!symbols.has(name))
        symbols.set(name, { kind: 'shared', variable: sharedVariable(variable) });
      continue;
    }
    if (space !== 'global' && space !== 'const') {
      throw source.error(
        'unsupported',
        `.${space} variables of a module are not covered yet`,
        variable.at,
      );
    }
    if (linkage.includes('extern')) continue;
    const layout = variableLayout(variable);
    if (symbols.has(name))
      throw source.error('semantic', `variable '${name}' is defined twice`, variable.at);
    const size = bytesOf(variable, layout.size, layout.element);
    const offset = alignUp(end, layout.align);
    end = offset + size + gap;
    if (end > LARGEST_IMAGE)
      throw source.error(
        'semantic',
        `variable '${name}' makes the module's data larger than 1 GiB`,
        variable.at,
      );
    symbols.set(name, { kind: 'data', name, offset, space });
    variables.push({
      name,
      space,
      offset,
      size,
      align: layout.align,
      visible: linkage.some((word) => word === 'visible' || word === 'weak' || word === 'common'),
    });
    placed.push({ variable, offset });
  }
  return { placed, constants: { from: firstConstant < 0 ? end : firstConstant, to: end } };
}

/** Writes initial values into the image of all variables. */
class ImageWriter {
  readonly image: Uint8Array;
  readonly relocations: Relocation[] = [];
  private readonly view: DataView;
  private readonly module: PtxModule;
  private readonly functions: Map<string, PtxFunction>;
  private readonly taken: PtxFunction[];
  private readonly symbols: ReadonlyMap<string, Symbol>;

  constructor(
    module: PtxModule,
    functions: Map<string, PtxFunction>,
    taken: PtxFunction[],
    symbols: ReadonlyMap<string, Symbol>,
    bytes: number,
  ) {
    this.module = module;
    this.functions = functions;
    this.taken = taken;
    this.symbols = symbols;
    this.image = new Uint8Array(alignUp(bytes, 16));
    this.view = new DataView(this.image.buffer);
  }

  write(variable: Variable, at: number, dimensions: readonly number[], value: Initializer): void {
    const { element } = variableLayout(variable);
    if (!dimensions.length) {
      if (value.kind !== 'list') {
        this.writeScalar(variable, at, element, value);
        return;
      }
      value.elements.forEach((part, index) => {
        this.writeScalar(variable, at + index * element, element, part);
      });
      return;
    }
    if (value.kind !== 'list')
      throw this.error(`'${variable.name}' is an array: expected a list of initialisers`, value);
    const inner = dimensions.slice(1);
    const stride = element * variable.vector * inner.reduce((product, count) => product * count, 1);
    if (dimensions[0] && value.elements.length > dimensions[0])
      throw this.error(`too many initialisers for '${variable.name}'`, value);
    value.elements.forEach((part, index) => {
      // Nested dimensions may also be flat.
      if (inner.length && part.kind !== 'list')
        this.writeScalar(variable, at + index * element, element, part);
      else this.write(variable, at + index * stride, inner, part);
    });
  }

  private error(message: string, { at }: Initializer): Error {
    return this.module.source.error('semantic', message, at);
  }

  private writeScalar(variable: Variable, at: number, element: number, value: Initializer): void {
    const { image, view } = this;
    const { type } = variable;
    if (at + element > image.length)
      throw this.error(`too many initialisers for '${variable.name}'`, value);
    if (value.kind === 'list') throw this.error('unexpected list of initialisers', value);
    if (value.kind === 'symbol') {
      this.writeAddress(variable, at, element, value);
      return;
    }
    if (type === 'f32' || type === 'f64') {
      const number = value.kind === 'float' ? numberOf(value) : Number(value.value);
      if (type === 'f32') view.setFloat32(at, number, true);
      else view.setFloat64(at, number, true);
      return;
    }
    let bits = value.kind === 'float' ? value.bits : value.value;
    for (let byte = 0; byte < element; byte++, bits >>= 8n) image[at + byte] = Number(bits & 255n);
  }

  private writeAddress(
    variable: Variable,
    at: number,
    element: number,
    value: Initializer & { kind: 'symbol' },
  ): void {
    const { image, relocations, view } = this;
    const { mask } = value;
    // A mask chooses one byte of the address.
    if (mask !== undefined && !BYTE_MASKS.has(mask))
      throw this.error('a mask is 0xff, or 0xff in a higher byte', value);
    if (mask === undefined && element !== 8 && element !== 4)
      throw this.error(
        `an address needs 8 bytes, '${variable.name}' has elements of ${element}`,
        value,
      );
    const target = this.functions.get(value.name);
    if (target) {
      const address = functionAddress(target, this.taken) + BigInt(value.addend);
      if (mask !== undefined) image[at] = Number((address >> BigInt(BYTE_MASKS.get(mask)!)) & 255n);
      else if (element === 4)
        throw this.error(
          `an address of a function needs 8 bytes, '${variable.name}' has elements of 4`,
          value,
        );
      else view.setBigUint64(at, address, true);
      return;
    }
    const symbol = this.symbols.get(value.name);
    if (symbol?.kind !== 'data') throw this.error(undefinedSymbol(value.name, this.module), value);
    // The cell holds zero: the loader writes dataBase + addend.
    const relocation = { offset: at, addend: symbol.offset + value.addend };
    if (mask !== undefined)
      relocations.push({ ...relocation, part: { bytes: 1, shift: BYTE_MASKS.get(mask)! } });
    else if (element === 4) relocations.push({ ...relocation, part: { bytes: 4, shift: 0 } });
    else relocations.push(relocation);
  }
}

function numberOf({ width, bits }: Initializer & { kind: 'float' }): number {
  return width === 64
    ? new Float64Array(new BigUint64Array([bits]).buffer)[0]!
    : new Float32Array(new Uint32Array([Number(bits)]).buffer)[0]!;
}
