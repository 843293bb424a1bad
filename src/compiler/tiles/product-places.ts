/** The place of a block's tile in a product whose factors tensor cores multiply. */
import { blockAxes, tilesName } from './tile-form.js';
import type { ProductForm } from './tile-form.js';
import type { TileWriter } from './tile-writer.js';

/** Rows of tiles that concurrent blocks compute, so that they share factors. */
const GROUP = 8;

/** Writes the tile's number on each axis that numbers blocks, from the block's number `block$`. */
export function writePlaces(
  writer: TileWriter,
  { rows, columns }: Pick<ProductForm, 'rows' | 'columns'>,
): void {
  writer.line(
    `const down$ = args$.${tilesName(rows)};`,
    `const across$ = args$.${tilesName(columns)};`,
    'const number$ = block$ % (down$ * across$);',
    `const first$ = number$ / (${GROUP} * across$) * ${GROUP};`,
    `const within$ = number$ % (${GROUP} * across$);`,
    `const here$ = Math.min(down$ - first$, ${GROUP});`,
    `const tile${rows}$ = first$ + within$ % here$;`,
    `const tile${columns}$ = within$ / here$;`,
  );
  let rest = 'block$ / (down$ * across$)';
  for (const axis of blockAxes(writer.form)) {
    if (axis === rows || axis === columns) continue;
    writer.line(
      `const tile${axis}$ = ${rest} % args$.${tilesName(axis)};`,
      `const rest${axis}$ = ${rest} / args$.${tilesName(axis)};`,
    );
    rest = `rest${axis}$`;
  }
}
