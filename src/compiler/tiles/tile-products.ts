/**
 * Products and transpositions of tiles: both pass elements between threads through shared memory.
 * The operands of a product are stored there as f32, or as i32 where both are integers. Each thread
 * computes its block of the result from registers, in the order of the axis that is summed over,
 * with one rounding for each product and sum: the bits do not depend on the form.
 */
import type { AnyNode } from 'acorn';

import { BYTES } from './tile-form.js';
import type { SumStorage } from './tile-form.js';
import { IN_LOOP, all } from './tile-writer.js';
import type { Buffer, StagedForm, TileValue, TileWriter } from './tile-writer.js';

/** An operand in shared memory. */
export interface Staged {
  readonly buffer: number;
  /** Elements from one row to the next. */
  readonly pitch: number;
}

/** One side of a product. `turned`: its rows are the operand's columns. */
export interface Side {
  readonly value: TileValue;
  readonly turned: boolean;
  /** Its place, where it was staged before the loop. */
  readonly staged: Staged | undefined;
}

/** Padding between rows: adjacent rows begin in different banks, and at multiples of 16 bytes. */
const PAD = 4;
/** Buffers of shared memory, which are reused as the text is written. */
export class Buffers {
  readonly all: Buffer[] = [];
  private readonly taken = new Set<number>();

  take(length: number, type: SumStorage): number {
    const apart = (buffer: number): number => Math.abs(this.all[buffer]!.length - length);
    const free = [...this.all.keys()]
      .filter((buffer) => !this.taken.has(buffer) && this.all[buffer]!.type === type)
      .sort((a, b) => apart(a) - apart(b))[0];
    const buffer = free ?? this.all.length;
    this.all[buffer] = { length: Math.max(length, this.all[buffer]?.length ?? 0), type };
    this.taken.add(buffer);
    return buffer;
  }

  release(buffer: number): void {
    this.taken.delete(buffer);
  }

  get bytes(): number {
    return this.all.reduce((sum, { length }) => sum + length * BYTES, 0);
  }
}

export const bufferName = (buffer: number): string => `buffer${buffer}$`;

/**
 * Puts a value of rows and columns into shared memory, with zeros after the end of the axis that is
 * summed over.
 */
export function writeStaged(
  writer: TileWriter,
  buffers: Buffers,
  value: TileValue,
  { summed, type }: StagedForm,
): Staged {
  const { rows, columns } = value.varies as { rows: number; columns: number };
  const { across, down } = writer.form;
  const pitch = writer.columnSlots(columns) * across + PAD;
  const buffer = buffers.take(writer.rowSlots(rows) * down * pitch, type);
  const width = writer.widthOf(columns);
  const inside = summed === rows ? writer.rowExists(rows, 'r$') : writer.groupExists(columns, 'q$');
  const given = writer.element(value, {
    row: 'r$',
    column: width === 1 ? 'q$' : `q$ * ${width} + k$`,
  });
  const element = type === 'i32' ? `gpu$.i32(${given})` : given;
  writer.line(
    `for (let r$ = 0; r$ < ${writer.rowSlots(rows)}; r$++) for (let q$ = 0; q$ < ` +
      `${writer.columnSlots(columns) / width}; ` +
      `q$++)${width === 1 ? '' : ` for (let k$ = 0; k$ < ${width}; k$++)`}`,
    `${bufferName(buffer)}[${writer.rowInTile('r$')} * ${pitch} + ` +
      `${writer.columnInTile(columns, 'q$', 'k$')}] = ` +
      `${inside === '' ? element : `(${inside} ? ${element} : 0)`};`,
  );
  return { buffer, pitch };
}

/** Writes `a` times `b`, added to the value of `into`. */
export function writeProduct(
  writer: TileWriter,
  buffers: Buffers,
  into: TileValue,
  a: Side,
  b: Side,
  form: StagedForm,
): void {
  const { summed, type } = form;
  const { rows, columns } = into.varies as { rows: number; columns: number };
  const [left, right] = [a, b].map(
    (side) => side.staged ?? writeStaged(writer, buffers, side.value, form),
  ) as [Staged, Staged];
  writer.barrier();
  const { tile } = writer.axis(summed);
  const by = [4, 2, 1].find((count) => tile % count === 0)!;
  const [down, columnsEach] = [writer.rowSlots(rows), writer.columnSlots(columns)];
  const width = writer.widthOf(columns);
  // A column can lie beyond the rows that were staged.
  const column = writer.columnInTile(columns, 'q$', 'k$');
  const there = writer.rowSlots(columns) * writer.form.down;
  const row = writer.rowInTile('r$');
  const thereAcross = writer.columnSlots(rows) * writer.form.across;
  const turnedRow =
    thereAcross < down * writer.form.down ? `Math.min(${row}, ${thereAcross - 1})` : row;
  const turnedColumn =
    there < columnsEach * writer.form.across ? `Math.min(${column}, ${there - 1})` : column;
  const leftAt = a.turned
    ? `(k0$ + j$) * ${left.pitch} + ${turnedRow}`
    : `${row} * ${left.pitch} + k0$ + j$`;
  const rightAt = b.turned
    ? `${turnedColumn} * ${right.pitch} + k0$ + j$`
    : `(k0$ + j$) * ${right.pitch} + ${column}`;
  const turn = `for (let j$ = 0; j$ < ${by}; j$++)`;
  const [factorA, factorB] = [`left$[j$ * ${down} + r$]`, `right$[j$ * ${columnsEach} + c$]`];
  const sum = writer.element(into, IN_LOOP);
  writer.line(
    'gpu$.unroll(1);',
    `for (let k0$ = 0; k0$ < ${tile}; k0$ += ${by}) {`,
    `const left$ = gpu$.local.${type}(${down * by}); ` +
      `const right$ = gpu$.local.${type}(${columnsEach * by});`,
    `for (let r$ = 0; r$ < ${down}; r$++) ${turn} left$[j$ * ${down} + r$] = ` +
      `${bufferName(left.buffer)}[${leftAt}];`,
    `${turn} for (let q$ = 0; q$ < ${columnsEach / width}; q$++) for (let k$ = 0; k$ < ${width}; ` +
      `k$++) right$[j$ * ${columnsEach} + q$ * ${width} + k$] = ` +
      `${bufferName(right.buffer)}[${rightAt}];`,
    `${turn} for (let r$ = 0; r$ < ${down}; r$++) for (let c$ = 0; c$ < ${columnsEach}; c$++) ` +
      `${sum} = ` +
      (type === 'i32'
        ? `${factorA} * ${factorB} + ${sum};`
        : `gpu$.fma(${factorA}, ${factorB}, ${sum});`),
    '}',
  );
  const own = [a, b].flatMap((side, at) =>
    side.staged === undefined ? [[left, right][at]!.buffer] : [],
  );
  // The next statements may write there.
  if (own.length > 0) writer.barrier();
  for (const buffer of own) buffers.release(buffer);
}

/** The value with rows and columns exchanged. */
export function writeTurned(writer: TileWriter, value: TileValue, like: AnyNode): TileValue {
  const { rows, columns } = value.varies;
  const { across, down } = writer.form;
  const name = writer.newName('turned');
  const { storage } = value;
  const turned: TileValue = { name, varies: { rows: columns, columns: rows }, storage };
  const part = writer.newName('part');
  const [height, length] = [
    rows === undefined ? 1 : writer.rowSlots(rows) * down,
    columns === undefined ? 1 : writer.columnSlots(columns) * across,
  ];
  const pitch = columns === undefined || rows === undefined ? length : length + 1;
  writer.declare('local', name, writer.slots(turned.varies), like);
  writer.declare('shared', part, height * pitch, like);
  writer.barrierInLoop();
  const own = all(
    rows === undefined ? 'threadRow$ === 0' : '',
    columns === undefined ? 'threadColumn$ === 0' : '',
  );
  const [from, to] = [writer.widthOf(columns), writer.widthOf(rows)];
  const least = (index: string, reach: number, there: number): string =>
    reach > there ? `Math.min(${index}, ${there - 1})` : index;
  const reach = writer.columnSlots(rows) * across;
  const at = [
    rows === undefined
      ? '0'
      : `${least(writer.columnInTile(rows, 'q$', 'k$'), reach, height)} * ${pitch}`,
    columns === undefined
      ? '0'
      : least(writer.rowInTile('r$'), writer.rowSlots(columns) * down, length),
  ].join(' + ');
  const slot = (width: number): string => (width === 1 ? 'q$' : `q$ * ${width} + k$`);
  const over = (row: number | undefined, column: number | undefined, width: number): string =>
    `for (let r$ = 0; r$ < ${writer.rowSlots(row)}; r$++) for (let q$ = 0; q$ < ` +
    `${writer.columnSlots(column) / width}; q$++) for (let k$ = 0; k$ < ${width}; k$++)`;
  writer.line(
    `${own === '' ? '' : `if (${own}) `}${over(rows, columns, from)} ` +
      `${part}[${rows === undefined ? '0' : `${writer.rowInTile('r$')} * ${pitch}`} + ` +
      `${columns === undefined ? '0' : writer.columnInTile(columns, 'q$', 'k$')}] = ` +
      `${writer.element(value, { row: 'r$', column: slot(from) })};`,
    'gpu$.block.sync();',
    `${over(columns, rows, to)} ${writer.element(turned, { row: 'r$', column: slot(to) })} = ` +
      `${part}[${at}];`,
  );
  return turned;
}
