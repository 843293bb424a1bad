/**
 * Whether a test of numbers of rows and columns holds for all elements of a warp's part of a tile,
 * by the least and the greatest that each side can be.
 */
import type { AnyNode } from 'acorn';

import { FIRST } from './tile-writer.js';
import type { TileWriter, Varies } from './tile-writer.js';

/** Writes an expression. */
type Write = () => void;

interface Range {
  readonly least: Write;
  readonly most: Write;
}

/** Rows of a warp. */
const WARP_ROWS = 16;

/**
 * Gives the text of a test for the warp; undefined where it is not known. `indexOf`: the axis of
 * rows or columns that an expression numbers.
 */
export function alwaysHolds(
  writer: TileWriter,
  test: AnyNode,
  indexOf: (node: AnyNode) => Varies | undefined,
): Write | undefined {
  const { out } = writer;
  const joined =
    (a: Write, by: string, b: Write): Write =>
    () => {
      out.write('(');
      a();
      out.write(` ${by} `);
      b();
      out.write(')');
    };
  const text =
    (written: string): Write =>
    () => {
      out.write(written);
    };

  function rangeOf(node: AnyNode): Range | undefined {
    if (node.type === 'ParenthesizedExpression') return rangeOf(node.expression);
    const index = indexOf(node);
    if (index?.columns !== undefined) {
      const { tile } = writer.axis(index.columns);
      const least = `top${index.columns}$`;
      return { least: text(least), most: text(`(${least} + ${tile - 1})`) };
    }
    if (index?.rows !== undefined) {
      const least = `top${index.rows}$ + gpu$.warpIdx * ${WARP_ROWS}`;
      return { least: text(`(${least})`), most: text(`(${least} + ${WARP_ROWS - 1})`) };
    }
    const { rows, columns } = writer.varies(node);
    if (rows === undefined && columns === undefined) {
      const same: Write = () => {
        writer.print(node, FIRST);
      };
      return { least: same, most: same };
    }
    if (node.type !== 'BinaryExpression') return undefined;
    const { operator, left, right } = node;
    if (operator !== '+' && operator !== '-') return undefined;
    const [a, b] = [rangeOf(left), rangeOf(right)];
    if (a === undefined || b === undefined) return undefined;
    return operator === '+'
      ? { least: joined(a.least, '+', b.least), most: joined(a.most, '+', b.most) }
      : { least: joined(a.least, '-', b.most), most: joined(a.most, '-', b.least) };
  }

  if (test.type === 'ParenthesizedExpression') return alwaysHolds(writer, test.expression, indexOf);
  if (test.type === 'LogicalExpression' && test.operator === '&&') {
    const [a, b] = [test.left, test.right].map((each) => alwaysHolds(writer, each, indexOf));
    return a === undefined || b === undefined ? undefined : joined(a, '&&', b);
  }
  if (test.type !== 'BinaryExpression') return undefined;
  const { operator, left, right } = test;
  if (left.type === 'PrivateIdentifier') return undefined;
  const [a, b] = [rangeOf(left), rangeOf(right)];
  if (a === undefined || b === undefined) return undefined;
  if (operator === '<' || operator === '<=') return joined(a.most, operator, b.least);
  if (operator === '>' || operator === '>=') return joined(a.least, operator, b.most);
  return undefined;
}
