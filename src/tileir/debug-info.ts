/** Places in the user's file, which operations name. */
import { Bytes } from './bytes.js';
import { Table } from './tables.js';
import type { StringTable } from './tables.js';

/** Kinds of debug attributes, by their tags. */
const TAGS = { compileUnit: 0x01, file: 0x02, place: 0x04, subprogram: 0x05 } as const;

/** The number of an operation without a place. */
export const NO_PLACE = 0;

/** A line and a column of the user's file, from 1. */
export interface SourcePlace {
  readonly line: number;
  readonly column: number;
}

/** The debug attributes of a module. */
export class DebugTable extends Table {
  private readonly strings: StringTable;

  constructor(strings: StringTable) {
    super(NO_PLACE + 1);
    this.strings = strings;
  }

  /** A function that begins at a place of a file. */
  subprogram(name: string, file: string, { line }: SourcePlace): number {
    const slash = file.lastIndexOf('/');
    const known = this.add(TAGS.file, [
      this.strings.numberOfText(file.slice(slash + 1)),
      this.strings.numberOfText(file.slice(0, Math.max(0, slash))),
    ]);
    const text = this.strings.numberOfText(name);
    const unit = this.add(TAGS.compileUnit, [known]);
    return this.add(TAGS.subprogram, [known, line, text, text, unit, line]);
  }

  /** A place within a function. */
  place(subprogram: number, file: string, { line, column }: SourcePlace): number {
    return this.add(TAGS.place, [subprogram, this.strings.numberOfText(file), line, column]);
  }

  /** The decoder takes no empty table: it gets an item that no operation names. */
  override write(to: Bytes, width: number): void {
    if (this.size === 0) this.numberOf(Uint8Array.of(0));
    super.write(to, width);
  }

  private add(tag: number, parts: readonly number[]): number {
    const item = new Bytes();
    item.byte(tag);
    for (const part of parts) item.varint(part);
    return this.numberOf(item.toArray());
  }
}
