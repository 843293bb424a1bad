// Places .global and .const variables in one data image, fills in their initial values, and records
// which cells hold addresses that the loader must shift by where it puts the image.

import { scalarType } from '../scalar-types.js';
import type { Initializer, PtxFunction, PtxModule, Variable } from '../syntax/ast.js';
import type { SharedVariable, Symbol } from './program.js';

const LARGEST_IMAGE = 2 ** 30;
/** Function pointers are tagged so that no data address is mistaken for one. */
export const FUNCTION_TAG = 1n << 40n;

export interface DataVariable {
  name: string;
  space: 'global' | 'const';
  offset: number;
  size: number;
  align: number;
  visible: boolean;
}

/** The cell at `offset` becomes dataBase + addend: 64 bits of it, or as many as `part` says. */
export interface Relocation {
  offset: number;
  addend: number;
  /** Bytes of the cell, and how far the address is shifted right before its low bits go there. */
  part?: { bytes: 1 | 4; shift: number };
}

/** Writes the addresses that depend on where the data image is. */
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

/** How far the byte stands that a mask chooses. */
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
  // One with a size is a variable as any other, as in ptxas, which ignores the 'extern' then.
  // Taichi's are.
  return {
    name: variable.name,
    size,
    align,
    dynamic: size === 0 && variable.linkage.includes('extern'),
  };
}

/** The address of a function: its place among the functions whose address is taken. */
export function functionAddress(target: PtxFunction, taken: PtxFunction[]): bigint {
  let index = taken.indexOf(target);
  if (index < 0) index = taken.push(target) - 1;
  return FUNCTION_TAG + BigInt(index) * 16n;
}

/** What is to be said of a name that stands for nothing here. */
export function undefinedSymbol(name: string, { variables, functions }: PtxModule): string {
  const declared =
    variables.some((variable) => variable.name === name) ||
    functions.some((fn) => fn.name === name);
  return declared
    ? `'${name}' is defined in another module, and modules are not linked: link them to one ` +
        'text first (from LTO-IR, as nvcc -dlto and NVRTC make it)'
    : `undefined symbol '${name}'`;
}

/** `gap`: bytes to leave free behind each variable. */
export function layOutData(
  module: PtxModule,
  functions: Map<string, PtxFunction>,
  taken: PtxFunction[],
  gap: number,
): DataLayout {
  const { source } = module;
  const symbols = new Map<string, Symbol>();
  const variables: DataVariable[] = [];
  const placed: { variable: Variable; offset: number }[] = [];
  let end = 0;
  const isConstant = (variable: Variable): boolean => variable.space === 'const';
  let firstConstant = -1;
  for (const variable of [
    ...module.variables.filter((variable) => !isConstant(variable)),
    ...module.variables.filter(isConstant),
  ]) {
    if (isConstant(variable) && firstConstant < 0) firstConstant = end;
    if (variable.space === 'shared') {
      if (!symbols.has(variable.name))
        symbols.set(variable.name, { kind: 'shared', variable: sharedVariable(variable) });
      continue;
    }
    if (variable.space !== 'global' && variable.space !== 'const') {
      throw source.error(
        'unsupported',
        `.${variable.space} variables of a module are not covered yet`,
        variable.at,
      );
    }
    if (variable.linkage.includes('extern')) continue;
    const layout = variableLayout(variable);
    if (symbols.has(variable.name))
      throw source.error('semantic', `variable '${variable.name}' is defined twice`, variable.at);
    let { size } = layout;
    if (variable.dimensions[0] === 0 && variable.initializer?.kind === 'list') {
      size =
        layout.element *
        variable.vector *
        variable.initializer.elements.length *
        variable.dimensions.slice(1).reduce((product, count) => product * count, 1);
    }
    const offset = alignUp(end, layout.align);
    end = offset + size + gap;
    if (end > LARGEST_IMAGE)
      throw source.error(
        'semantic',
        `variable '${variable.name}' makes the module's data larger than 1 GiB`,
        variable.at,
      );
    symbols.set(variable.name, {
      kind: 'data',
      name: variable.name,
      offset,
      space: variable.space,
    });
    variables.push({
      name: variable.name,
      space: variable.space,
      offset,
      size,
      align: layout.align,
      visible: variable.linkage.some(
        (word) => word === 'visible' || word === 'weak' || word === 'common',
      ),
    });
    placed.push({ variable, offset });
  }

  const constants = { from: firstConstant < 0 ? end : firstConstant, to: end };
  const image = new Uint8Array(alignUp(end, 16));
  const view = new DataView(image.buffer);
  const relocations: Relocation[] = [];

  const writeScalar = (
    variable: Variable,
    at: number,
    element: number,
    value: Initializer,
  ): void => {
    const { type } = variable;
    if (at + element > image.length)
      throw source.error('semantic', `too many initialisers for '${variable.name}'`, value.at);
    if (value.kind === 'list')
      throw source.error('semantic', 'unexpected list of initialisers', value.at);
    if (value.kind === 'symbol') {
      const target = functions.get(value.name);
      const symbol = symbols.get(value.name);
      const mask = value.mask;
      // A mask chooses one byte of the address.
      if (mask !== undefined && !BYTE_MASKS.has(mask))
        throw source.error('semantic', 'a mask is 0xff, or 0xff in a higher byte', value.at);
      if (mask === undefined && element !== 8 && element !== 4)
        throw source.error(
          'semantic',
          `an address needs 8 bytes, '${variable.name}' has elements of ${element}`,
          value.at,
        );
      if (target) {
        const address = functionAddress(target, taken) + BigInt(value.addend);
        if (mask !== undefined)
          image[at] = Number((address >> BigInt(BYTE_MASKS.get(mask)!)) & 255n);
        else if (element === 4)
          throw source.error(
            'semantic',
            `an address of a function needs 8 bytes, '${variable.name}' has elements of 4`,
            value.at,
          );
        else view.setBigUint64(at, address, true);
        return;
      }
      if (symbol?.kind !== 'data')
        throw source.error('semantic', undefinedSymbol(value.name, module), value.at);
      // The cell holds zero: the loader writes dataBase + addend.
      const relocation = { offset: at, addend: symbol.offset + value.addend };
      if (mask !== undefined)
        relocations.push({ ...relocation, part: { bytes: 1, shift: BYTE_MASKS.get(mask)! } });
      else if (element === 4) relocations.push({ ...relocation, part: { bytes: 4, shift: 0 } });
      else relocations.push(relocation);
      return;
    }
    let bits: bigint;
    const floats = type === 'f32' || type === 'f64';
    if (value.kind === 'float' && floats) {
      const number =
        value.width === 64
          ? new Float64Array(new BigUint64Array([value.bits]).buffer)[0]!
          : new Float32Array(new Uint32Array([Number(value.bits)]).buffer)[0]!;
      if (type === 'f32') view.setFloat32(at, number, true);
      else view.setFloat64(at, number, true);
      return;
    }
    if (value.kind === 'integer' && floats) {
      if (type === 'f32') view.setFloat32(at, Number(value.value), true);
      else view.setFloat64(at, Number(value.value), true);
      return;
    }
    bits = value.kind === 'float' ? value.bits : value.value;
    for (let byte = 0; byte < element; byte++, bits >>= 8n) image[at + byte] = Number(bits & 255n);
  };

  const write = (
    variable: Variable,
    at: number,
    dimensions: readonly number[],
    value: Initializer,
  ): void => {
    const { element } = variableLayout(variable);
    if (!dimensions.length) {
      if (value.kind !== 'list') return writeScalar(variable, at, element, value);
      value.elements.forEach((part, index) =>
        writeScalar(variable, at + index * element, element, part),
      );
      return;
    }
    if (value.kind !== 'list')
      throw source.error(
        'semantic',
        `'${variable.name}' is an array: expected a list of initialisers`,
        value.at,
      );
    const inner = dimensions.slice(1);
    const stride = element * variable.vector * inner.reduce((product, count) => product * count, 1);
    if (dimensions[0] && value.elements.length > dimensions[0]) {
      throw source.error('semantic', `too many initialisers for '${variable.name}'`, value.at);
    }
    value.elements.forEach((part, index) => {
      // Nested dimensions may also be given flat.
      if (inner.length && part.kind !== 'list')
        writeScalar(variable, at + index * element, element, part);
      else write(variable, at + index * stride, inner, part);
    });
  };
  for (const { variable, offset } of placed)
    if (variable.initializer) write(variable, offset, variable.dimensions, variable.initializer);
  return { image, relocations, variables, symbols, constants };
}
