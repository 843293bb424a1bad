/** The place of a block's tile in a product whose factors tensor cores multiply. */
import { blockAxes, tilesName } from './tile-form.js';
import type { ChainedProducts, ProductForm } from './tile-form.js';
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
  writeOthers(writer, [rows, columns], 'block$ / (down$ * across$)');
}

/** Writes the tile's number on each other axis that numbers blocks, from one number. */
function writeOthers(writer: TileWriter, own: readonly number[], number: string): void {
  let rest = number;
  for (const axis of blockAxes(writer.form)) {
    if (own.includes(axis)) continue;
    writer.line(
      `const tile${axis}$ = ${rest} % args$.${tilesName(axis)};`,
      `const rest${axis}$ = ${rest} / args$.${tilesName(axis)};`,
    );
    rest = `rest${axis}$`;
  }
}

/**
 * The same for chained products. Blocks compute the tiles of a section of matrices beside each
 * other, so that these share factors, and the last rows first, whose loops may be the longest.
 */
export function writeChainPlaces(
  writer: TileWriter,
  { rows, section }: Pick<ChainedProducts, 'rows' | 'section'>,
): void {
  writer.line(
    `const down$ = args$.${tilesName(rows)};`,
    'const matrices$ = tiles$ / down$;',
    `const base$ = block$ / (${section} * down$) * ${section};`,
    `const within$ = block$ % (${section} * down$);`,
    `const here$ = Math.min(matrices$ - base$, ${section});`,
    `const tile${rows}$ = down$ - 1 - within$ / here$;`,
    'const matrix$ = base$ + within$ % here$;',
  );
  writeOthers(writer, [rows], 'matrix$');
}
