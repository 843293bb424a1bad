/**
 * Loads and stores of a tensor's tile. A thread beyond the edge computes with the last element
 * again: its reads are valid, and its values change no maximum and no minimum. Sums and stores
 * leave it out.
 */
import type { KernelSource } from '../signature.js';
import type { StorageType } from '../tree.js';
import { extentName, strideName } from './tile-form.js';
import type { TensorForm } from './tile-form.js';
import { all } from './tile-writer.js';
import type { TileValue, TileWriter, Varies } from './tile-writer.js';

/** The axes along which the tensor differs within a tile. */
export function variesOf({ access, row, column }: TensorForm): Varies {
  return {
    rows: access === 'row' || access === 'one' ? undefined : row,
    columns: access === 'column' || access === 'one' ? undefined : column,
  };
}

/** The dtype of a tensor. */
export function storageIn({ signature }: KernelSource, name: string): StorageType | undefined {
  const entry = signature[name]!;
  return entry.kind === 'tensor' && 'storage' in entry.element ? entry.element.storage : undefined;
}

/**
 * Whether threads read elements that another thread writes. Threads beyond the edge read the
 * element at the edge, and where the tensor lacks one of the tile's axes, all threads along it read
 * what the first of them writes.
 */
export function isReadByOthers(writer: TileWriter, name: string): boolean {
  const { down, across } = writer.form;
  const { rows, columns } = variesOf(writer.form.tensors[name]!);
  return (
    (rows === undefined ? down > 1 : !writer.axis(rows).exactRows) ||
    (columns === undefined ? across > 1 : !writer.axis(columns).exactColumns)
  );
}

/** The element at row `row$` and column `k$` of group `group$`. */
function place(writer: TileWriter, name: string): string {
  const tensor = writer.form.tensors[name]!;
  const width = writer.widthOf(tensor.column);
  const column =
    tensor.column === undefined ? '0' : width === 1 ? 'group$' : `group$ * ${width} + k$`;
  const row = tensor.row === undefined ? '0' : 'row$';
  const outer = tensor.outer.map((axis) => (axis === undefined ? '0' : `top${axis}$`));
  switch (tensor.access) {
    case 'dense':
      return (
        `args$.${name}[(row$ * args$.${extentName(tensor.column!)} + ` +
        `group$)${width === 1 ? '' : ` * ${width} + k$`}]`
      );
    case 'row':
      return `args$.${name}[${column}]`;
    case 'column':
      return `args$.${name}[row$]`;
    case 'one':
      return `args$.${name}[0]`;
    case 'strided': {
      const indices = tensor.rank === 1 ? [column] : [...outer, row, column];
      return `args$.${name}${indices.map((index) => `[${index}]`).join('')}`;
    }
    case 'run': {
      const strided = (tensor.rank === 1 ? [] : [...outer, row]).flatMap((index, axis) =>
        index === '0' ? [] : [`${index} * args$.${strideName(name, axis)}`],
      );
      const groups = [...strided, ...(tensor.column === undefined ? [] : ['group$'])];
      const sum = groups.join(' + ');
      return `args$.${name}[${width === 1 ? sum || '0' : `(${sum}) * ${width} + k$`}]`;
    }
  }
}

/** Writes a load. Every thread reads; those beyond the edge read the element at the edge. */
export function writeLoad(writer: TileWriter, name: string): TileValue {
  const tensor = writer.form.tensors[name]!;
  const { across } = writer.form;
  const varies = variesOf(tensor);
  const { rows, columns } = varies;
  const storage = storageIn(writer.definition, name);
  const value: TileValue = { name: writer.newName(name), varies, storage };
  const from = place(writer, name);
  if (rows === undefined && columns === undefined) {
    writer.line(`const ${value.name} = ${from};`);
    return value;
  }
  const width = writer.widthOf(columns);
  const first = `args$.${name}${tensor.access === 'strided' ? '[0]'.repeat(tensor.rank) : '[0]'}`;
  const number = (
    axis: number,
    of: 'Row' | 'Group',
    turn: string,
    stride: number,
    exact: boolean,
  ): string =>
    exact
      ? `first${of}${axis}$ + ${turn} * ${stride}`
      : `Math.min(first${of}${axis}$ + ${turn} * ${stride}, last${of}${axis}$)`;
  writer.line(
    `const ${value.name} = gpu$.localLike$(${writer.slots(varies)}, ${first});`,
    rows === undefined
      ? '{'
      : `for (let r$ = 0; r$ < ${writer.rowSlots(rows)}; r$++) { const row$ = ` +
          `${number(rows, 'Row', 'r$', writer.rowStep, writer.axis(rows).exactRows)};`,
    columns === undefined
      ? '{'
      : `for (let q$ = 0; q$ < ${writer.columnSlots(columns) / width}; q$++) { const group$ = ` +
          `${number(columns, 'Group', 'q$', across, writer.axis(columns).exactColumns)};`,
    width > 1 ? `for (let k$ = 0; k$ < ${width}; k$++)` : '',
    `${writer.element(value, { row: 'r$', column: width === 1 ? 'q$' : `q$ * ${width} + k$` })} ` +
      `= ${from};`,
    '} }',
  );
  return value;
}

/** Writes a store of the elements in the tile and in the tensor; one thread writes each. */
export function writeStore(writer: TileWriter, name: string, value: TileValue): void {
  const { across } = writer.form;
  const { rows, columns } = variesOf(writer.form.tensors[name]!);
  const width = writer.widthOf(columns);
  const inside = all(
    rows === undefined
      ? 'threadRow$ === 0'
      : writer.axis(rows).exactRows
        ? ''
        : `row$ <= lastRow${rows}$`,
    columns === undefined
      ? 'threadColumn$ === 0'
      : writer.axis(columns).exactColumns
        ? ''
        : `group$ <= lastGroup${columns}$`,
  );
  writer.line(
    rows === undefined
      ? '{'
      : `for (let r$ = 0; r$ < ${writer.rowSlots(rows)}; r$++) { const row$ = firstRow${rows}$ ` +
          `+ r$ * ${writer.rowStep};`,
    columns === undefined
      ? '{'
      : `for (let q$ = 0; q$ < ${writer.columnSlots(columns) / width}; q$++) { const group$ = ` +
          `firstGroup${columns}$ + q$ * ${across};`,
    inside === '' ? '{' : `if (${inside}) {`,
    width > 1 ? `for (let k$ = 0; k$ < ${width}; k$++)` : '',
    `${place(writer, name)} = ` +
      `${writer.element(value, { row: 'r$', column: width === 1 ? 'q$' : `q$ * ${width} + k$` })};`,
    '} } }',
  );
}
