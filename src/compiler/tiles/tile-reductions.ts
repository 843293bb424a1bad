/**
 * Reductions of a tile: each thread joins its own elements, then the lanes of a warp do, then warps
 * through shared memory. The order depends on the form alone, so the bits are the same on every
 * device.
 *
 * The mean of integers is a float, as in the library, because a quotient of integers is truncated.
 * The sum has 64 bits, as in the library, so that no sum wraps, and the mean is f32, the float type
 * of all integers.
 */
import type { AnyNode } from 'acorn';

import type { REDUCTIONS } from './tile-form.js';
import { NO_AXES, IN_LOOP, all } from './tile-writer.js';
import type { TileValue, TileWriter, Varies } from './tile-writer.js';

export type Reduction = (typeof REDUCTIONS)[number];

type Join = (a: string, b: string) => string;

/**
 * Added to integers it gives 64 bits; floats stay as they are: a literal takes the type of the
 * other operand, and this one is at least i64.
 */
const WIDE_ZERO = '0n';
/** Added to integers it gives f32; floats stay as they are. */
const FLOAT_ZERO = 'gpu$.f32(0)';

/**
 * The number of warps whose results each thread reads and joins itself. With more warps each lane
 * reads one result, and a butterfly joins them: for 16 warps that is nine instructions instead of
 * 19.
 */
const MOST_READ = 8;

/**
 * Writes a reduction of the expression, which has the axes of `of`, and its result, which differs
 * along the other axis.
 */
export function writeReduction(
  writer: TileWriter,
  value: AnyNode,
  reduction: Reduction,
  of: Varies,
  axis: 0 | 1 | undefined,
): TileValue {
  const join: Join = (a, b) =>
    reduction === 'max' || reduction === 'min' ? `Math.${reduction}(${a}, ${b})` : `${a} + ${b}`;
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

  private get isMean(): boolean {
    return this.reduction === 'mean';
  }

  /** Declares an array of results. */
  private declareResults(name: string, length: number): void {
    this.writer.declare('local', name, length, this.value, this.isMean ? FLOAT_ZERO : undefined);
  }

  /** Declares an array through which warps join their sums. */
  private declareParts(length: number): void {
    this.writer.declare(
      'shared',
      this.part,
      length,
      this.value,
      this.isMean ? WIDE_ZERO : undefined,
    );
  }

  /** The number of elements of this tile along an axis that is reduced. */
  private lengthOf(as: 'rows' | 'columns'): string {
    return this.writer.lengthOf(this.of[as]!, as);
  }

  /** Joins the elements of some slots into `sum$`. Elements beyond the edge are in no sum. */
  private joinSlots(loops: Varies): void {
    const { writer, value, join } = this;
    const { out } = writer;
    const sums = this.reduction === 'sum' || this.isMean;
    if (writer.form.product?.by === 'chain' && loops.rows === undefined) {
      this.joinPairs(loops, sums);
      return;
    }
    out.write('let sum$ = ');
    if (sums) out.write(this.isMean ? WIDE_ZERO : '0');
    else
      writer.print(value, {
        row: loops.rows === undefined ? 'r$' : '0',
        column: loops.columns === undefined ? 'c$' : '0',
      });
    writer.line(';');
    const width = writer.widthOf(loops.columns);
    const inside = all(
      loops.rows === undefined ? '' : writer.rowExists(loops.rows, 'r$'),
      loops.columns === undefined
        ? ''
        : writer.groupExists(loops.columns, width === 1 ? 'c$' : `(c$ / ${width})`),
    );
    writer.each(loops, () => {
      out.write('const each$ = ');
      writer.print(value, IN_LOOP);
      out.write(
        `; sum$ = ${join('sum$', sums && inside !== '' ? `(${inside} ? each$ : 0)` : 'each$')};`,
      );
    });
  }

  /**
   * The same for columns in pairs, whose first and second elements are joined apart: half as many
   * operations wait for each other.
   */
  private joinPairs({ columns }: Varies, sums: boolean): void {
    const { writer, value, join } = this;
    const { out } = writer;
    const inside = sums ? writer.groupExists(columns!, 'p$') : '';
    const first = this.isMean ? WIDE_ZERO : '0';
    const names = ['sum$', 'other$'] as const;
    for (const [at, name] of names.entries()) {
      out.write(`let ${name} = `);
      if (sums) out.write(first);
      else writer.print(value, { row: 'r$', column: `${at}` });
      writer.line(';');
    }
    writer.line(`for (let p$ = 0; p$ < ${writer.columnSlots(columns) / 2}; p$++) {`);
    for (const [at, name] of names.entries()) {
      const each = `each${at}$`;
      out.write(`const ${each} = `);
      writer.print(value, { row: 'r$', column: `p$ * 2 + ${at}` });
      const element = inside === '' ? each : `(${inside} ? ${each} : 0)`;
      writer.line(`; ${name} = ${join(name, element)};`);
    }
    writer.line('}', `sum$ = ${join('sum$', 'other$')};`);
  }

  private butterfly(lanes: number): void {
    for (let bits = lanes / 2; bits >= 1; bits /= 2)
      this.writer.line(`sum$ = ${this.join('sum$', `gpu$.warp.shuffleXor(sum$, ${bits})`)};`);
  }

  /** Joins the results of warps, in shared memory from `first` on, into `sum$`. */
  private joinWarps(first: string, warps: number): void {
    const { writer, part, join } = this;
    if (warps > MOST_READ) {
      writer.line(`let sum$ = ${part}[${first} + gpu$.lane % ${warps}];`);
      this.butterfly(warps);
    } else {
      writer.line(
        `let sum$ = ${part}[${first}];`,
        `for (let w$ = 1; w$ < ${warps}; w$++) sum$ = ${join('sum$', `${part}[${first} + w$]`)};`,
      );
    }
  }

  /**
   * Joins the maximum with the warp's own again. That changes nothing, but shows the compiler that
   * no element of the thread is above it.
   */
  private shown(sum: string, own: string): string {
    return this.reduction === 'max' ? this.join(sum, own) : sum;
  }

  /**
   * Assigns the joined value to a result. A mean becomes a float once the sum is complete, and is
   * divided after that.
   */
  private finish(result: string, joined: string, ...lengths: readonly string[]): string {
    return (
      `${result} = ` +
      `${joined};${this.isMean ? ` ${result} = ${result} / (${lengths.join(' * ')});` : ''}`
    );
  }

  alongRows(): TileValue {
    const { writer, name, part } = this;
    const { across, down } = writer.form;
    const { rows: axis, columns } = this.of;
    const rows = writer.rowSlots(axis);
    const warps = across / 32;
    const length = this.lengthOf('columns');
    this.declareResults(name, rows);
    if (warps > 1) {
      this.declareParts(down * rows * warps);
      writer.barrierInLoop();
    }
    writer.line(`for (let r$ = 0; r$ < ${rows}; r$++) {`);
    this.joinSlots({ rows: undefined, columns });
    this.butterfly(Math.min(32, across));
    if (warps <= 1) {
      writer.line(this.finish(`${name}[r$]`, 'sum$', length), '}');
    } else {
      writer.line(
        `if (gpu$.lane === 0) ${part}[(threadRow$ * ${rows} + r$) * ${warps} + ` +
          'threadColumn$ / 32] = sum$;',
        this.reduction === 'max' ? `${name}[r$] = sum$;` : '',
        '}',
        'gpu$.block.sync();',
        `for (let r$ = 0; r$ < ${rows}; r$++) {`,
        `const from$ = (threadRow$ * ${rows} + r$) * ${warps};`,
      );
      this.joinWarps('from$', warps);
      writer.line(this.finish(`${name}[r$]`, this.shown('sum$', `${name}[r$]`), length), '}');
    }
    return {
      name: axis === undefined ? `${name}[0]` : name,
      varies: { rows: axis, columns: undefined },
    };
  }

  alongColumns(): TileValue {
    const { writer, name, part, join } = this;
    const { across, down } = writer.form;
    const { rows, columns: axis } = this.of;
    const columns = writer.columnSlots(axis);
    const length = this.lengthOf('rows');
    this.declareResults(name, columns);
    if (down > 1) {
      this.declareParts(down * columns * across);
      writer.barrierInLoop();
    }
    writer.line(`for (let c$ = 0; c$ < ${columns}; c$++) {`);
    this.joinSlots({ rows, columns: undefined });
    if (down === 1) {
      writer.line(this.finish(`${name}[c$]`, 'sum$', length), '}');
    } else {
      writer.line(
        `${part}[(threadRow$ * ${columns} + c$) * ${across} + threadColumn$] = sum$;`,
        '}',
        'gpu$.block.sync();',
        `for (let c$ = 0; c$ < ${columns}; c$++) {`,
        `let sum$ = ${part}[c$ * ${across} + threadColumn$];`,
        `for (let d$ = 1; d$ < ${down}; d$++) sum$ = ` +
          `${join('sum$', `${part}[(d$ * ${columns} + c$) * ${across} + threadColumn$]`)};`,
        this.finish(`${name}[c$]`, 'sum$', length),
        '}',
      );
    }
    return {
      name: axis === undefined ? `${name}[0]` : name,
      varies: { rows: undefined, columns: axis },
    };
  }

  whole(): TileValue {
    const { writer, name, part } = this;
    const { across, down } = writer.form;
    const warps = (across * down) / 32;
    this.declareParts(warps);
    writer.barrierInLoop();
    this.declareResults(`${name}all`, 1);
    writer.line('{');
    this.joinSlots(this.of);
    this.butterfly(32);
    writer.line(
      `if (gpu$.lane === 0) ${part}[gpu$.warpIdx] = sum$;`,
      this.reduction === 'max' ? `${name}all[0] = sum$;` : '',
      '}',
      'gpu$.block.sync();',
      '{',
    );
    this.joinWarps('0', warps);
    writer.line(
      this.finish(
        `${name}all[0]`,
        this.shown('sum$', `${name}all[0]`),
        this.lengthOf('rows'),
        this.lengthOf('columns'),
      ),
      '}',
      `const ${name} = ${name}all[0];`,
    );
    return { name, varies: NO_AXES };
  }
}
