/**
 * Reductions of a tile: each thread joins its own elements, then the lanes of a warp do, then warps through shared memory. The order
 * depends on the form alone, so the bits are the same on every device.
 */
import type { AnyNode } from 'acorn';

import type { REDUCTIONS } from './tile-form.js';
import { NOWHERE, TURN, all } from './tile-writer.js';
import type { TileValue, TileWriter, Varies } from './tile-writer.js';

export type Reduction = (typeof REDUCTIONS)[number];

type Join = (a: string, b: string) => string;

/** Reduces the expression, which has the axes of `of`, and writes the result, which differs along the other axis. */
export function writeReduction(writer: TileWriter, value: AnyNode, reduction: Reduction, of: Varies, axis: 0 | 1 | undefined): TileValue {
  const join: Join = (a, b) => (reduction === 'max' || reduction === 'min' ? `Math.${reduction}(${a}, ${b})` : `${a} + ${b}`);
  const written = new WrittenReduction(writer, value, reduction, join, of);
  if (axis === 1) return written.alongRows();
  return axis === 0 ? written.alongColumns() : written.whole();
}

class WrittenReduction {
  private readonly writer: TileWriter;
  private readonly value: AnyNode;
  private readonly reduction: Reduction;
  private readonly join: Join;
  private readonly of: Varies;
  private readonly name: string;
  private readonly part: string;

  constructor(writer: TileWriter, value: AnyNode, reduction: Reduction, join: Join, of: Varies) {
    this.writer = writer;
    this.value = value;
    this.reduction = reduction;
    this.join = join;
    this.of = of;
    this.name = writer.newName(reduction);
    this.part = writer.newName('part');
  }

  /** Elements of this tile along an axis that is reduced. */
  private lengthOf(as: 'rows' | 'columns'): string {
    return this.writer.lengthOf(this.of[as]!, as);
  }

  /** Joins the elements of some slots into `sum$`. What is beyond the edge counts for no sum. */
  private joinSlots(loops: Varies): void {
    const { writer, value, join } = this;
    const { out } = writer;
    const sums = this.reduction === 'sum' || this.reduction === 'mean';
    out.write('let sum$ = ');
    if (sums) out.write('0');
    else writer.print(value, { row: loops.rows === undefined ? 'r$' : '0', column: loops.columns === undefined ? 'c$' : '0' });
    writer.line(';');
    const width = writer.widthOf(loops.columns);
    const inside = all(
      loops.rows === undefined ? '' : writer.rowExists(loops.rows, 'r$'),
      loops.columns === undefined ? '' : writer.groupExists(loops.columns, width === 1 ? 'c$' : `(c$ / ${width})`),
    );
    writer.each(loops, () => {
      out.write('const each$ = ');
      writer.print(value, TURN);
      out.write(`; sum$ = ${join('sum$', sums && inside !== '' ? `(${inside} ? each$ : 0)` : 'each$')};`);
    });
  }

  private butterfly(lanes: number): void {
    for (let bits = lanes / 2; bits >= 1; bits /= 2) this.writer.line(`sum$ = ${this.join('sum$', `gpu$.warp.shuffleXor(sum$, ${bits})`)};`);
  }

  private divisor(...lengths: readonly string[]): string {
    return this.reduction === 'mean' ? ` / (${lengths.join(' * ')})` : '';
  }

  alongRows(): TileValue {
    const { writer, name, part, join, value } = this;
    const { across, down } = writer.form;
    const { rows: axis, columns } = this.of;
    const rows = writer.rowSlots(axis);
    const warps = across / 32;
    const mean = this.divisor(this.lengthOf('columns'));
    writer.declare('local', name, rows, value);
    if (warps > 1) {
      writer.declare('shared', part, down * rows * warps, value);
      writer.meetInLoop();
    }
    writer.line(`for (let r$ = 0; r$ < ${rows}; r$++) {`);
    this.joinSlots({ rows: undefined, columns });
    this.butterfly(Math.min(32, across));
    if (warps <= 1) {
      writer.line(`${name}[r$] = sum$${mean}; }`);
    } else {
      writer.line(
        `if (gpu$.lane === 0) ${part}[(below$ * ${rows} + r$) * ${warps} + beside$ / 32] = sum$;`, '}', 'gpu$.block.sync();',
        `for (let r$ = 0; r$ < ${rows}; r$++) {`, `const from$ = (below$ * ${rows} + r$) * ${warps};`, `let sum$ = ${part}[from$];`,
        `for (let w$ = 1; w$ < ${warps}; w$++) sum$ = ${join('sum$', `${part}[from$ + w$]`)};`, `${name}[r$] = sum$${mean};`, '}',
      );
    }
    return { name: axis === undefined ? `${name}[0]` : name, varies: { rows: axis, columns: undefined } };
  }

  alongColumns(): TileValue {
    const { writer, name, part, join, value } = this;
    const { across, down } = writer.form;
    const { rows, columns: axis } = this.of;
    const columns = writer.columnSlots(axis);
    const mean = this.divisor(this.lengthOf('rows'));
    writer.declare('local', name, columns, value);
    if (down > 1) {
      writer.declare('shared', part, down * columns * across, value);
      writer.meetInLoop();
    }
    writer.line(`for (let c$ = 0; c$ < ${columns}; c$++) {`);
    this.joinSlots({ rows, columns: undefined });
    if (down === 1) {
      writer.line(`${name}[c$] = sum$${mean}; }`);
    } else {
      writer.line(
        `${part}[(below$ * ${columns} + c$) * ${across} + beside$] = sum$;`, '}', 'gpu$.block.sync();',
        `for (let c$ = 0; c$ < ${columns}; c$++) {`, `let sum$ = ${part}[c$ * ${across} + beside$];`,
        `for (let d$ = 1; d$ < ${down}; d$++) sum$ = ${join('sum$', `${part}[(d$ * ${columns} + c$) * ${across} + beside$]`)};`, `${name}[c$] = sum$${mean};`, '}',
      );
    }
    return { name: axis === undefined ? `${name}[0]` : name, varies: { rows: undefined, columns: axis } };
  }

  whole(): TileValue {
    const { writer, name, part, join, value } = this;
    const { across, down } = writer.form;
    const warps = (across * down) / 32;
    const mean = this.divisor(this.lengthOf('rows'), this.lengthOf('columns'));
    writer.declare('shared', part, warps, value);
    writer.meetInLoop();
    writer.line('{');
    this.joinSlots(this.of);
    this.butterfly(32);
    writer.line(
      `if (gpu$.lane === 0) ${part}[gpu$.warpIdx] = sum$;`, '}', 'gpu$.block.sync();', `let ${name}all = ${part}[0];`,
      `for (let w$ = 1; w$ < ${warps}; w$++) ${name}all = ${join(`${name}all`, `${part}[w$]`)};`, `const ${name} = ${name}all${mean};`,
    );
    return { name, varies: NOWHERE };
  }
}
