/** What goes into the models' tasks, and what comes out of them to be drawn. */

/** Packed 8-bit RGB. */
export interface Photograph {
  readonly width: number;
  readonly height: number;
  /** `height` × `width` × 3 bytes. */
  readonly data: Uint8Array;
}

/** In pixels of a photograph, from its top left corner. */
export interface Point {
  readonly x: number;
  readonly y: number;
}

/** Something on a photograph, with its name and where it is. */
export interface Finding {
  readonly label: string;
  /** How sure the model is, from 0 to 1. */
  readonly score: number;
  /** Four, clockwise from what is its top left one when it is held upright. */
  readonly corners: readonly Point[];
}
