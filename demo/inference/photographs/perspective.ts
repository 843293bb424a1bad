/** Matrices that lead from one quadrilateral to another. */
import type { Point } from '../photograph.js';

type Row = readonly [number, number, number];

/**
 * The matrix that takes four points to four others, no three of which lie on a line.
 *
 * x' = (a·x + b·y + c) / (g·x + h·y + 1) and y' likewise are two linear equations in its eight
 * numbers for each pair of points.
 */
export function perspective(
  from: readonly Point[],
  to: readonly Point[],
): readonly [Row, Row, Row] {
  const equations = from.flatMap(({ x, y }, i) => {
    const { x: u, y: v } = to[i]!;
    return [
      [x, y, 1, 0, 0, 0, -u * x, -u * y, u],
      [0, 0, 0, x, y, 1, -v * x, -v * y, v],
    ];
  });
  const [a, b, c, d, e, f, g, h] = solved(equations) as [
    number,
    number,
    number,
    number,
    number,
    number,
    number,
    number,
  ];
  return [
    [a, b, c],
    [d, e, f],
    [g, h, 1],
  ];
}

/** Where the matrix takes the point. */
export function project(
  [[a, b, c], [d, e, f], [g, h, i]]: readonly [Row, Row, Row],
  { x, y }: Point,
): Point {
  const w = g * x + h * y + i;
  return { x: (a * x + b * y + c) / w, y: (d * x + e * y + f) / w };
}

/**
 * By Gauss and Jordan, with the largest pivot of each column. Each equation ends with its right
 * side.
 */
function solved(equations: number[][]): number[] {
  const rows = equations.map((row) => [...row]);
  for (let column = 0; column < rows.length; column++) {
    const pivot = rows
      .slice(column)
      .reduce((best, row) => (Math.abs(row[column]!) > Math.abs(best[column]!) ? row : best));
    rows.splice(rows.indexOf(pivot), 1);
    rows.splice(
      column,
      0,
      pivot.map((value) => value / pivot[column]!),
    );
    const unit = rows[column]!;
    for (const [i, row] of rows.entries()) {
      if (i !== column) rows[i] = row.map((value, k) => value - row[column]! * unit[k]!);
    }
  }
  return rows.map((row) => row.at(-1)!);
}
