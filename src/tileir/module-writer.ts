/**
 * A module of Tile IR as bytecode: a header, and sections for functions, constants, debug
 * information, types and strings.
 */
import { Bytes } from './bytes.js';
import { DebugTable, NO_PLACE } from './debug-info.js';
import { FunctionBuilder } from './function-builder.js';
import type { Value } from './function-builder.js';
import { ConstantTable, StringTable } from './tables.js';
import { TypeTable } from './types.js';
import type { TypeId } from './types.js';

/**
 * The version of the bytecode. Newer assemblers take it; it is the first whose functions need no
 * hints of one target, so that the same bytes are assembled for every GPU.
 */
export const BYTECODE_VERSION = { major: 13, minor: 3 } as const;

const MAGIC = [0x7f, 0x54, 0x69, 0x6c, 0x65, 0x49, 0x52, 0x00];
const SECTIONS = { end: 0, strings: 1, functions: 2, debug: 3, constants: 4, types: 5 } as const;
/** The bit of a section's number that says that its alignment follows. */
const ALIGNED = 0x80;
/** The flag of an entry point. */
const ENTRY = 0x02;

/** An entry point: a kernel. */
export interface EntryPoint {
  readonly name: string;
  /** The place of the kernel, as a debug attribute. Default: none. */
  readonly place?: (debug: DebugTable) => number;
  /** The types of its parameters. */
  parameters(types: TypeTable): readonly TypeId[];
  /** Writes its operations, the last of which is `return`. */
  write(builder: FunctionBuilder, parameters: readonly Value[], debug: DebugTable): void;
}

/** Writes a module of one kernel. */
export function moduleOf(entry: EntryPoint): Uint8Array {
  const types = new TypeTable();
  const strings = new StringTable();
  const constants = new ConstantTable();
  const debug = new DebugTable(strings);
  const functions = new Bytes();
  functions.varint(1);
  functions.varint(strings.numberOfText(entry.name));
  const parameters = entry.parameters(types);
  functions.varint(types.function(parameters));
  functions.byte(ENTRY);
  // The function's number among those with debug attributes, from 1.
  functions.varint(1);
  const builder = new FunctionBuilder({ types, strings, constants });
  const place = entry.place?.(debug) ?? NO_PLACE;
  entry.write(builder, builder.take(parameters.length), debug);
  const { code } = builder;
  functions.varint(code.length);
  functions.bytes(code);

  const out = new Bytes();
  for (const byte of MAGIC) out.byte(byte);
  out.byte(BYTECODE_VERSION.major);
  out.byte(BYTECODE_VERSION.minor);
  out.integer(0, 2);
  section(out, 'functions', 8, (to) => {
    to.bytes(functions.toArray());
  });
  section(out, 'constants', 8, (to) => {
    constants.write(to, 8);
  });
  section(out, 'debug', 8, (to) => {
    writePlaces(to, [place, ...builder.places]);
    debug.write(to, 4);
  });
  section(out, 'types', 4, (to) => {
    types.write(to, 4);
  });
  section(out, 'strings', 4, (to) => {
    strings.write(to, 4);
  });
  out.byte(SECTIONS.end);
  return out.toArray();
}

/** The debug attribute of the function, and of each of its operations. */
function writePlaces(to: Bytes, places: readonly number[]): void {
  to.varint(1);
  to.pad(4);
  // Where the function's attributes begin.
  to.integer(0, 4);
  to.varint(places.length);
  to.pad(8);
  for (const place of places) to.integer(place, 8);
}

function section(
  out: Bytes,
  name: keyof typeof SECTIONS,
  alignment: number,
  write: (to: Bytes) => void,
): void {
  const content = new Bytes();
  write(content);
  out.byte(SECTIONS[name] | ALIGNED);
  out.varint(content.length);
  out.varint(alignment);
  out.pad(alignment);
  out.bytes(content.toArray());
}
