/**
 * Tables of the bytecode: strings, constants, types and debug attributes are written once each, and
 * other parts refer to them by number.
 */
import { Bytes } from './bytes.js';

/** Items by their bytes, numbered in the order in which they were added. */
export class Table {
  private readonly numbers = new Map<string, number>();
  private readonly items: Uint8Array[] = [];
  private readonly first: number;

  /** `first`: the number of the first item. */
  constructor(first = 0) {
    this.first = first;
  }

  get size(): number {
    return this.items.length;
  }

  /** The number of an item, which is added where it is new. */
  numberOf(item: Uint8Array): number {
    const key = item.join();
    let number = this.numbers.get(key);
    if (number === undefined) {
      number = this.first + this.items.length;
      this.numbers.set(key, number);
      this.items.push(item);
    }
    return number;
  }

  /** Writes the number of items, the place of each in `width` bytes, and the items. */
  write(to: Bytes, width: number): void {
    to.varint(this.items.length);
    to.pad(width);
    let place = 0;
    for (const item of this.items) {
      to.integer(place, width);
      place += item.length;
    }
    for (const item of this.items) to.bytes(item);
  }
}

/** Texts in UTF-8. */
export class StringTable extends Table {
  private readonly encoder = new TextEncoder();

  numberOfText(text: string): number {
    return this.numberOf(this.encoder.encode(text));
  }
}

/** Elements of constants: one for all of a tile, or one for each. */
export class ConstantTable extends Table {
  numberOfElements(elements: Uint8Array): number {
    const item = new Bytes();
    item.varint(elements.length);
    item.bytes(elements);
    return this.numberOf(item.toArray());
  }
}
