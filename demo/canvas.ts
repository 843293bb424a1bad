/**
 * A picture to draw on: filled rectangles, lines, other images, text. Coordinates are pixels from
 * the top left.
 */
import type { Image } from './image.js';
import { type FontSize, textWidth, typeface } from './typeface.js';

export type Color = readonly [red: number, green: number, blue: number];

/** In pixels; the middle of the first one is at 0.5. */
export interface Place {
  readonly x: number;
  readonly y: number;
}

export interface TextStyle {
  readonly size: FontSize;
  readonly color: Color;
  /** Which point of the line `x` names. Default `'left'`. */
  readonly align?: 'left' | 'center' | 'right';
}

export class Canvas implements Image {
  readonly width: number;
  readonly height: number;
  readonly data: Uint8Array;

  constructor(width: number, height: number, background: Color) {
    this.width = width;
    this.height = height;
    this.data = new Uint8Array(width * height * 3);
    this.fill(0, 0, width, height, background);
  }

  /**
   * Fills a rectangle; what lies outside the canvas is left out. Fractions are drawn as partial
   * coverage.
   */
  fill(x: number, y: number, width: number, height: number, color: Color): void {
    for (let row = Math.floor(y); row < y + height; row++) {
      const rowCoverage = Math.min(row + 1, y + height) - Math.max(row, y);
      for (let column = Math.floor(x); column < x + width; column++) {
        const columnCoverage = Math.min(column + 1, x + width) - Math.max(column, x);
        this.#blend(column, row, color, rowCoverage * columnCoverage);
      }
    }
  }

  /**
   * Draws a straight line, `width` wide, with round ends; what lies outside the canvas is left out.
   */
  line(from: Place, to: Place, width: number, color: Color): void {
    const reach = width / 2 + 0.5;
    const [dx, dy] = [to.x - from.x, to.y - from.y];
    const squared = dx * dx + dy * dy;
    for (
      let row = Math.floor(Math.min(from.y, to.y) - reach);
      row < Math.max(from.y, to.y) + reach;
      row++
    ) {
      for (
        let column = Math.floor(Math.min(from.x, to.x) - reach);
        column < Math.max(from.x, to.x) + reach;
        column++
      ) {
        const [x, y] = [column + 0.5 - from.x, row + 0.5 - from.y];
        const along = squared === 0 ? 0 : Math.max(0, Math.min(1, (x * dx + y * dy) / squared));
        const coverage = Math.min(1, reach - Math.hypot(x - along * dx, y - along * dy));
        if (coverage > 0) this.#blend(column, row, color, coverage);
      }
    }
  }

  /** Copies an image to the place. */
  draw(x: number, y: number, image: Image): void {
    for (let row = 0; row < image.height; row++) {
      const from = row * image.width * 3;
      this.data.set(
        image.data.subarray(from, from + image.width * 3),
        ((y + row) * this.width + x) * 3,
      );
    }
  }

  /** Writes one line; `y` is its baseline. */
  text(x: number, y: number, text: string, { size, color, align = 'left' }: TextStyle): void {
    const face = typeface(size);
    const width = textWidth(text, size);
    let pen = Math.round(align === 'left' ? x : align === 'right' ? x - width : x - width / 2);
    for (const character of text) {
      const { left, top, advance } = face.glyph(character);
      for (let row = 0; row < face.cellHeight; row++) {
        for (let column = 0; column < face.cellWidth; column++) {
          const ink = face.coverage(left + column, top + row) / 255;
          if (ink > 0)
            this.#blend(pen - face.margin + column, Math.round(y) - face.ascent + row, color, ink);
        }
      }
      pen += advance;
    }
  }

  #blend(x: number, y: number, color: Color, opacity: number): void {
    if (x < 0 || y < 0 || x >= this.width || y >= this.height) return;
    const at = (y * this.width + x) * 3;
    for (let channel = 0; channel < 3; channel++) {
      const under = this.data[at + channel]!;
      this.data[at + channel] = Math.round(under + (color[channel]! - under) * opacity);
    }
  }
}
