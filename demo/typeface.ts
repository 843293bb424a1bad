/**
 * A typeface at one size, from the atlas in `font/`: where each glyph lies, how far it advances.
 */
import { readFileSync } from 'node:fs';

import { PNG } from 'pngjs';

export type FontSize = 18 | 24 | 40;

export interface Glyph {
  /** Top left corner of the glyph's cell in the atlas. */
  readonly left: number;
  readonly top: number;
  readonly advance: number;
}

export interface Typeface {
  readonly cellWidth: number;
  readonly cellHeight: number;
  /** How far the glyph's origin lies inside the cell. */
  readonly margin: number;
  /** From the cell's top to the baseline. */
  readonly ascent: number;
  /** How much of the pixel is ink, 0 to 255. */
  coverage(x: number, y: number): number;
  /** Characters outside printable ASCII (and the middle dot) show as a question mark. */
  glyph(character: string): Glyph;
}

interface Metrics {
  readonly characters: string;
  readonly columns: number;
  readonly sizes: Readonly<Record<FontSize, SizeMetrics>>;
}

interface SizeMetrics {
  readonly cellWidth: number;
  readonly cellHeight: number;
  readonly margin: number;
  readonly ascent: number;
  readonly advances: readonly number[];
}

const loaded = new Map<FontSize, Typeface>();

/** The typeface at a size, read from disk at its first use. */
export function typeface(size: FontSize): Typeface {
  const known = loaded.get(size);
  if (known !== undefined) return known;

  const { characters, columns, sizes } = JSON.parse(
    readFileSync(fontFile('metrics.json'), 'utf8'),
  ) as Metrics;
  const { cellWidth, cellHeight, margin, ascent, advances } = sizes[size];
  const atlas = PNG.sync.read(readFileSync(fontFile(`aileron-${size}.png`)));
  const face: Typeface = {
    cellWidth,
    cellHeight,
    margin,
    ascent,
    coverage: (x, y) => atlas.data[4 * (y * atlas.width + x)]!,
    glyph: (character) => {
      const found = characters.indexOf(character);
      const index = found < 0 ? characters.indexOf('?') : found;
      return {
        left: (index % columns) * cellWidth,
        top: Math.floor(index / columns) * cellHeight,
        advance: advances[index]!,
      };
    },
  };
  loaded.set(size, face);
  return face;
}

/** The width of a line of text in pixels. */
export function textWidth(text: string, size: FontSize): number {
  const face = typeface(size);
  return [...text].reduce((width, character) => width + face.glyph(character).advance, 0);
}

function fontFile(name: string): URL {
  return new URL(`./font/${name}`, import.meta.url);
}
